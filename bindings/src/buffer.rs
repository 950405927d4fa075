//! Bitmask buffers: numpy arrays, CPU torch tensors, anything with the buffer protocol.

use crate::error;
use pyo3::buffer::PyBuffer;
use pyo3::prelude::*;

/// Call `body` with row `index` of a `(batch, words)` int32 buffer, or with a `(words,)` one.
#[allow(unsafe_code)]
pub fn with_row<T>(
    py: Python<'_>,
    bitmask: &Bound<'_, PyAny>,
    index: i64,
    words: usize,
    body: impl FnOnce(&mut [u32]) -> PyResult<T>,
) -> PyResult<T> {
    let buffer = match PyBuffer::<i32>::get(bitmask) {
        Ok(buffer) => buffer,
        Err(_) => from_tensor(bitmask)?,
    };
    if buffer.format().to_bytes().first().is_some_and(|c| matches!(c, b'>' | b'!')) {
        return Err(error::state("bitmask is big-endian, expected int32 in native byte order".into()));
    }
    let describe = || format!("bitmask has shape {:?}", buffer.shape());
    let expected = format!("expected (batch, {words}) int32 C-contiguous and writable");
    let rows = match *buffer.shape() {
        [found] if found == words => 1,
        [rows, found] if found == words => rows,
        _ => return Err(error::state(format!("{}, {expected}", describe()))),
    };
    if !buffer.is_c_contiguous() {
        return Err(error::state(format!("{} but is not C-contiguous, {expected}", describe())));
    }
    if buffer.readonly() {
        return Err(error::state(format!("{} but is read-only, {expected}", describe())));
    }
    if index < 0 || index as u64 >= rows as u64 {
        return Err(error::state(format!("bitmask row {index} is out of range: the bitmask has {rows} rows")));
    }
    let start = buffer.buf_ptr() as usize + index as usize * words * 4;
    let _held = py;
    // SAFETY: the buffer is a C-contiguous, writable array of at least (index + 1) * words aligned i32 (checked by PyBuffer
    // and above), it stays exported while `buffer` lives, and the GIL is held, so that no other Python code runs.
    let row = unsafe { std::slice::from_raw_parts_mut(start as *mut u32, words) };
    body(row)
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
