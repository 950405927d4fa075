//! Loads whatever bytes, with the hashes set right so that they are looked at, and decodes if they load.
#![no_main]

use dwa_runtime::Vocab;
use glrgrid_fuzz as forge;
use libfuzzer_sys::fuzz_target;
use std::sync::{Arc, LazyLock};

static VOCAB: LazyLock<Arc<Vocab>> = LazyLock::new(forge::vocab);

fuzz_target!(|bytes: &[u8]| {
    let mut bytes = bytes.to_vec();
    forge::rehash(&mut bytes);
    forge::drive(&bytes, &VOCAB, &[b"a = 1e5 + /* c */(b);", b"a {b {{ cd }} {{e}}", b"xxyxx"]);
});
