//! Bitmask buffers: numpy arrays, CPU torch tensors, anything with the buffer protocol.

use crate::error;
use pyo3::buffer::PyBuffer;
use pyo3::prelude::*;

/// Call `body` with row `index` of a `(batch, words)` int32 buffer, or with a `(words,)` one.
pub fn with_row<T>(
    bitmask: &Bound<'_, PyAny>,
    index: i64,
    words: usize,
    body: impl FnOnce(&mut [u32]) -> PyResult<T>,
) -> PyResult<T> {
    let (buffer, rows) = checked(bitmask, words)?;
    let index = row(index, rows)?;
    body(slice(&buffer, index * words, words))
}

/// Call `body` with all rows of a `(batch, words)` int32 buffer, or of a `(words,)` one.
pub fn with_rows<T>(
    bitmask: &Bound<'_, PyAny>,
    words: usize,
    body: impl FnOnce(&mut [u32]) -> PyResult<T>,
) -> PyResult<T> {
    let (buffer, rows) = checked(bitmask, words)?;
    body(slice(&buffer, 0, rows * words))
}

/// A row number that is in range.
pub fn row(index: i64, rows: usize) -> PyResult<usize> {
    match usize::try_from(index) {
        Ok(index) if index < rows => Ok(index),
        _ => Err(error::state(format!("bitmask row {index} is out of range: the bitmask has {rows} rows"))),
    }
}

/// The buffer, of the right type and shape, and its number of rows.
fn checked(bitmask: &Bound<'_, PyAny>, words: usize) -> PyResult<(PyBuffer<i32>, usize)> {
    let buffer = match PyBuffer::<i32>::get(bitmask) {
        Ok(buffer) => buffer,
        Err(_) => from_tensor(bitmask)?,
    };
    if buffer.format().to_bytes().first().is_some_and(|c| matches!(c, b'>' | b'!')) {
        return Err(error::state("bitmask is big-endian, expected int32 in native byte order".into()));
    }
    let describe = || format!("bitmask has shape {:?}", buffer.shape());
    let expected = || format!("expected (batch, {words}) int32 C-contiguous and writable");
    let rows = match *buffer.shape() {
        [found] if found == words => 1,
        [rows, found] if found == words => rows,
        _ => {
            let fix = match buffer.shape().last() {
                Some(&found) if found > words => {
                    "if the logits are wider than the vocabulary, give it their width: Vocab.from_file(path, size=...)"
                }
                _ => "allocate_token_bitmask(batch, vocab.size) makes one",
            };
            return Err(error::state(format!("{}, {}; {fix}", describe(), expected())));
        }
    };
    if !buffer.is_c_contiguous() {
        return Err(error::state(format!("{} but is not C-contiguous, {}", describe(), expected())));
    }
    if buffer.readonly() {
        return Err(error::state(format!("{} but is read-only, {}", describe(), expected())));
    }
    Ok((buffer, rows))
}

/// `count` words of a checked buffer from `start` on, both within it.
#[allow(unsafe_code, clippy::mut_from_ref)]
fn slice(buffer: &PyBuffer<i32>, start: usize, count: usize) -> &mut [u32] {
    if count == 0 {
        return &mut [];
    }
    // SAFETY: the buffer is a C-contiguous, writable array of at least start + count aligned i32 (PyBuffer and `checked`
    // see to it), and stays exported, hence neither freed nor resized, while `buffer` is borrowed. One slice of it is made
    // per call. Other threads must not use the rows meanwhile; within a call that keeps the GIL they cannot, and the others
    // say so in their documentation, as numpy's own functions do that release it.
    unsafe { std::slice::from_raw_parts_mut((buffer.buf_ptr() as *mut u32).add(start), count) }
}

/// A CPU tensor has no buffer protocol but shares memory with the array that `.numpy()` gives.
fn from_tensor(bitmask: &Bound<'_, PyAny>) -> PyResult<PyBuffer<i32>> {
    let problem = || -> PyErr {
        let kind = bitmask.get_type().name().map(|n| n.to_string()).unwrap_or_default();
        let dtype = bitmask.getattr("dtype").map(|d| format!(" of dtype {d}")).unwrap_or_default();
        error::state(format!(
            "bitmask is a {kind}{dtype}, expected an int32 numpy array or CPU torch tensor, aligned and of one or two dimensions"
        ))
    };
    if !bitmask.hasattr("numpy")? {
        return Err(problem());
    }
    let array = bitmask.call_method0("numpy").map_err(|_| problem())?;
    PyBuffer::<i32>::get(&array).map_err(|_| problem())
}
