//! Typed views into an artifact's bytes. The only `unsafe` code of the crate.

use std::any::Any;
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

/// A section as a slice of plain numbers, kept alive by its buffer; or a vector that will not change any more.
#[derive(Debug)]
pub struct Array<T> {
    ptr: *const T,
    len: usize,
    _owner: Arc<dyn Any + Send + Sync>,
    _type: PhantomData<T>,
}

impl<T: bytemuck::AnyBitPattern> Array<T> {
    /// View `range` of the buffer; `None` if it is not aligned for `T` or no whole number of them.
    pub fn new(buffer: &Arc<Buffer>, range: Range<usize>) -> Option<Self> {
        let slice: &[T] = bytemuck::try_cast_slice(buffer.bytes().get(range)?).ok()?;
        let owner = Arc::clone(buffer) as Arc<dyn Any + Send + Sync>;
        Some(Array { ptr: slice.as_ptr(), len: slice.len(), _owner: owner, _type: PhantomData })
    }
}

impl<T: Send + Sync + 'static> From<Vec<T>> for Array<T> {
    fn from(values: Vec<T>) -> Self {
        let (ptr, len) = (values.as_ptr(), values.len()); // of its memory, which does not move with the vector
        Array { ptr, len, _owner: Arc::new(values), _type: PhantomData }
    }
}

impl<T> Deref for Array<T> {
    type Target = [T];

    #[inline]
    #[allow(unsafe_code)]
    fn deref(&self) -> &[T] {
        // SAFETY: `ptr` and `len` come from a checked slice of a buffer's bytes, or from a vector. Both are immutable and
        // do not move while the Arc lives: neither variant of `Buffer` is ever handed out mutably, nor is the vector.
        unsafe { std::slice::from_raw_parts(self.ptr, self.len) }
    }
}

// SAFETY: an Array is a shared reference to immutable plain data with its owner.
#[allow(unsafe_code)]
unsafe impl<T: Sync> Send for Array<T> {}
// SAFETY: as above.
#[allow(unsafe_code)]
unsafe impl<T: Sync> Sync for Array<T> {}

/// "None" in [`Ids`].
pub const NONE: u32 = u32::MAX;

/// Ids or offsets, stored in 16 bits where they fit and in 32 where not. [`NONE`] is all ones in both.
#[derive(Debug)]
pub enum Ids {
    /// Two bytes each.
    Narrow(Array<u16>),
    /// Four bytes each.
    Wide(Array<u32>),
}

impl Ids {
    /// The bytes and width that store `ids`.
    pub fn encode(ids: &[u32]) -> (Vec<u8>, u32) {
        if ids.iter().all(|&id| id < u32::from(u16::MAX) || id == NONE) {
            (ids.iter().flat_map(|&id| (id as u16).to_le_bytes()).collect(), 2)
        } else {
            (bytemuck::cast_slice(ids).to_vec(), 4)
        }
    }

    /// View `range` of the buffer as ids of `width` bytes.
    pub fn new(buffer: &Arc<Buffer>, range: Range<usize>, width: u32) -> Option<Self> {
        match width {
            2 => Array::new(buffer, range).map(Ids::Narrow),
            4 => Array::new(buffer, range).map(Ids::Wide),
            _ => None,
        }
    }

    /// Number of ids.
    #[inline]
    pub fn len(&self) -> usize {
        match self {
            Ids::Narrow(a) => a.len(),
            Ids::Wide(a) => a.len(),
        }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The id at `i`.
    #[inline]
    pub fn get(&self, i: usize) -> u32 {
        match self {
            Ids::Narrow(a) => match a[i] {
                u16::MAX => NONE,
                id => u32::from(id),
            },
            Ids::Wide(a) => a[i],
        }
    }

    /// All ids.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = u32> + ExactSizeIterator + '_ {
        (0..self.len()).map(|i| self.get(i))
    }

    /// As boundaries of lists: the range of list `i`.
    #[inline]
    pub fn list(&self, i: u32) -> Range<usize> {
        self.get(i as usize) as usize..self.get(i as usize + 1) as usize
    }

    /// Position of `id` in an ascending range.
    #[inline]
    pub fn search(&self, range: Range<usize>, id: u32) -> Option<usize> {
        match self {
            Ids::Narrow(a) => a[range.clone()].binary_search(&u16::try_from(id).ok()?).ok().map(|i| range.start + i),
            Ids::Wide(a) => a[range.clone()].binary_search(&id).ok().map(|i| range.start + i),
        }
    }

    /// Bytes taken.
    pub fn size_bytes(&self) -> usize {
        match self {
            Ids::Narrow(a) => a.len() * 2,
            Ids::Wide(a) => a.len() * 4,
        }
    }
}
