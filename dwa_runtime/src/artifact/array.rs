//! Typed views into an artifact's bytes. The only `unsafe` code of the crate.

use std::marker::PhantomData;
use std::ops::{Deref, Range};
use std::sync::Arc;

/// The bytes of an artifact: a mapped file, or memory aligned for every section type.
#[derive(Debug)]
pub enum Buffer {
    /// A private read-only map.
    Mapped(memmap2::Mmap),
    /// Memory of this process, in units that keep it aligned; the second field is the length in bytes.
    Owned(Vec<u64>, usize),
}

impl Buffer {
    /// Copy `bytes` into aligned memory.
    pub fn from_bytes(bytes: &[u8]) -> Self {
        let mut words = vec![0u64; bytes.len().div_ceil(8)];
        bytemuck::cast_slice_mut(&mut words)[..bytes.len()].copy_from_slice(bytes);
        Buffer::Owned(words, bytes.len())
    }

    /// Map a file.
    ///
    /// # Errors
    /// Those of opening and mapping it.
    #[allow(unsafe_code)]
    pub fn map(path: &std::path::Path) -> std::io::Result<Self> {
        let file = std::fs::File::open(path)?;
        // SAFETY: the map is private and read only. A file that another process truncates while it is mapped would
        // raise SIGBUS on access; artifacts are written to a new name and renamed, never changed in place.
        Ok(Buffer::Mapped(unsafe { memmap2::Mmap::map(&file)? }))
    }

    /// All bytes.
    pub fn bytes(&self) -> &[u8] {
        match self {
            Buffer::Mapped(map) => map,
            Buffer::Owned(words, len) => &bytemuck::cast_slice(words)[..*len],
        }
    }
}

/// A section as a slice of plain numbers, kept alive by its buffer.
#[derive(Debug)]
pub struct Array<T> {
    ptr: *const T,
    len: usize,
    _buffer: Arc<Buffer>,
    _type: PhantomData<T>,
}

impl<T: bytemuck::AnyBitPattern> Array<T> {
    /// View `range` of the buffer; `None` if it is not aligned for `T` or no whole number of them.
    pub fn new(buffer: &Arc<Buffer>, range: Range<usize>) -> Option<Self> {
        let slice: &[T] = bytemuck::try_cast_slice(buffer.bytes().get(range)?).ok()?;
        Some(Array { ptr: slice.as_ptr(), len: slice.len(), _buffer: Arc::clone(buffer), _type: PhantomData })
    }
}

impl<T> Deref for Array<T> {
    type Target = [T];

    #[inline]
    #[allow(unsafe_code)]
    fn deref(&self) -> &[T] {
        // SAFETY: `ptr` and `len` come from a checked slice of the buffer's bytes, which are immutable and do not move
        // while the Arc lives: neither variant of `Buffer` is ever handed out mutably.
        unsafe { std::slice::from_raw_parts(self.ptr, self.len) }
    }
}

// SAFETY: an Array is a shared reference to immutable plain data with its owner.
#[allow(unsafe_code)]
unsafe impl<T: Sync> Send for Array<T> {}
// SAFETY: as above.
#[allow(unsafe_code)]
unsafe impl<T: Sync> Sync for Array<T> {}
