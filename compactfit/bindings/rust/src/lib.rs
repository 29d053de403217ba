// SPDX-License-Identifier: GPL-2.0-only OR MIT
#![doc = include_str!("../README.md")]
#![no_std]
#![deny(unsafe_op_in_unsafe_fn)]
#![warn(missing_docs)]

use core::ffi::c_void;
use core::fmt;
use core::marker::PhantomData;
use core::mem::{align_of, size_of, MaybeUninit};
use core::ptr::{self, NonNull};
use core::slice;

mod handle;
mod pod;
mod sys;

pub use handle::{Handle, Object};
#[doc(hidden)]
pub use pod::__private;
pub use pod::Pod;

use sys::cf_handle;

/// Size-classes that a heap can have.
pub const MAX_CLASSES: usize = sys::CF_MAX_CLASSES;
/// As [`Config::max_not_full`]: never compact.
pub const UNLIMITED: u16 = sys::CF_UNLIMITED;
/// What `cf_malloc()` and `cf_realloc()` align to at most.
const MALLOC_ALIGN: usize = 16;

/// Why something was not done. Nothing has changed then.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Error {
    /// No memory for this size now.
    NoMemory,
    /// A size of 0, or more than [`Heap::max_size()`].
    Size,
    /// An argument that is never right.
    Invalid,
    /// Not the handle of a live object of this heap and of this type: freed, or foreign.
    Stale,
    /// The object is pinned.
    Pinned,
    /// The object is pinned as often as can be, or to be unpinned and not pinned.
    Pins,
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Error::NoMemory => "no memory for this size now",
            Error::Size => "a size that no object can have",
            Error::Invalid => "an argument that is never right",
            Error::Stale => "not the handle of a live object of this heap",
            Error::Pinned => "the object is pinned",
            Error::Pins => "pinned too often, or not at all",
        })
    }
}

#[cfg(core_error)] // the compiler is new enough
impl core::error::Error for Error {}

fn check(status: i32) -> Result<(), Error> {
    match status {
        sys::CF_OK => Ok(()),
        sys::CF_ENOMEM => Err(Error::NoMemory),
        sys::CF_ESIZE => Err(Error::Size),
        sys::CF_ESTALE => Err(Error::Stale),
        sys::CF_EPINNED => Err(Error::Pinned),
        sys::CF_EPINS => Err(Error::Pins),
        _ => Err(Error::Invalid),
    }
}

/// What a heap shall be; the default is a good choice.
///
/// ```
/// # use compactfit::Config;
/// let config = Config { page_size: 4096, deferred: true, ..Config::default() };
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct Config<'a> {
    /// Bytes of a page, a power of two of 256 to 65,536; the largest object. 0: what suits
    /// the buffer: 16,384 from 1 MiB on, on 64-bit machines 32,768 from 6 MiB on.
    pub page_size: u32,
    /// Pages of a size-class that may be not full (the paper's K). 0: 1, always compact.
    pub max_not_full: u16,
    /// The same for each size-class, [`MAX_CLASSES`] of them, 0: as `max_not_full`.
    pub class_max_not_full: Option<&'a [u16]>,
    /// Leave compaction to [`Heap::compact()`].
    pub deferred: bool,
    /// 4 more bytes an object, and no stale handle ever passes. Heaps above 8 MiB are wide anyway.
    pub wide: bool,
    /// Where stamps start. Another one (1, 2, 3, ... will do) each time a heap is made in the same
    /// buffer makes handles of the earlier one those of another heap.
    pub seed: u32,
}

/// A heap at one moment. Read [`Heap::stats()`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stats {
    /// Pages for objects and handles.
    pub pages: usize,
    /// Those of them that are free.
    pub free_pages: usize,
    /// Those with handles.
    pub handle_pages: usize,
    /// Those that are not full.
    pub not_full_pages: usize,
    /// Those that are not full, and all of their objects pinned.
    pub stuck_pages: usize,
    /// Live objects.
    pub objects: usize,
    /// Pinned ones.
    pub pinned: usize,
    /// Objects moved since the heap was made, of each size-class modulo 2<sup>32</sup>.
    pub moves: u64,
    /// Their bytes.
    pub moved_bytes: u64,
}

/// A heap in a buffer, of the moving engine: objects are contiguous, and compaction copies them.
///
/// # References
///
/// Whatever may move an object takes `&mut self`; so the compiler lets no reference live that long:
///
/// ```compile_fail,E0502
/// # let mut buffer = [core::mem::MaybeUninit::uninit(); 128 << 10];
/// # let mut heap = compactfit::Heap::new(&mut buffer, &Default::default()).unwrap();
/// let (a, b) = (heap.alloc(1).unwrap(), heap.alloc(2).unwrap());
/// let kept = heap.get(b).unwrap();
/// heap.free(a).unwrap(); // may move b
/// assert_eq!(*kept, 2);
/// ```
///
/// ```compile_fail,E0499
/// # let mut buffer = [core::mem::MaybeUninit::uninit(); 128 << 10];
/// # let mut heap = compactfit::Heap::new(&mut buffer, &Default::default()).unwrap();
/// let (a, b) = (heap.alloc(1).unwrap(), heap.alloc(2).unwrap());
/// let kept = heap.get_mut(a).unwrap();
/// *heap.get_mut(b).unwrap() = 3; // b may be a
/// *kept = 2;
/// ```
///
/// Nor may the heap outlive its buffer, or somebody else use it:
///
/// ```compile_fail,E0499
/// # let mut buffer = [core::mem::MaybeUninit::uninit(); 128 << 10];
/// # let mut heap = compactfit::Heap::new(&mut buffer, &Default::default()).unwrap();
/// buffer.fill(core::mem::MaybeUninit::new(0));
/// heap.alloc(1).unwrap();
/// ```
///
/// # Wrong handles
///
/// A handle is checked each time, in constant time. A handle of a freed object is [`Error::Stale`]: in a
/// wide heap, which each heap above 8 MiB is, for ever; in others until its slot is used again, by an object
/// allocated a multiple of 2<sup>b</sup> allocations later, so the 256th use of the slot at the soonest in a
/// heap of 8 MiB. One of another heap passes in one case of 2<sup>b</sup>. (b is 29 in wide heaps, 15 in one of
/// 64 KiB, 8 in one of 8 MiB.) It is then taken for that of another object, perhaps of another type.
/// If the object is too small for the handle's type or not aligned for it, that is `Stale` too. Else its
/// bytes are what the program gets, or changes: a bug, but never undefined behaviour. To this end objects
/// are [`Pod`], and each byte of their blocks is initialised.
///
/// ```compile_fail,E0277
/// # let mut buffer = [core::mem::MaybeUninit::uninit(); 128 << 10];
/// # let mut heap = compactfit::Heap::new(&mut buffer, &Default::default()).unwrap();
/// heap.alloc(true).unwrap(); // of 256 bytes only two are a bool
/// ```
///
/// # Threads
///
/// A heap can be sent to another thread, but not shared: calls must not overlap, not even those that
/// change nothing. Share it as `Mutex<Heap>`, or in firmware in a cell that masks interrupts.
///
/// ```compile_fail,E0277
/// # let mut buffer = [core::mem::MaybeUninit::uninit(); 128 << 10];
/// # let heap = compactfit::Heap::new(&mut buffer, &Default::default()).unwrap();
/// std::thread::scope(|scope| scope.spawn(|| heap.stats().objects).join());
/// ```
pub struct Heap<'buf> {
    raw: NonNull<sys::cf_heap>,
    _buffer: PhantomData<&'buf mut [MaybeUninit<u8>]>,
}

// SAFETY: the buffer is the heap's own, objects are Send, and the C library knows nothing of threads.
unsafe impl Send for Heap<'_> {}

impl<'buf> Heap<'buf> {
    /// Makes a heap of a buffer of any alignment; what is before the first multiple of the page size
    /// is lost. Constant time.
    ///
    /// # Errors
    ///
    /// [`Error::Invalid`] if the configuration is wrong, or the buffer larger than 8 GiB or too small:
    /// the heap itself takes 3 to 10 KB, and there have to be two pages.
    pub fn new(buffer: &'buf mut [MaybeUninit<u8>], config: &Config<'_>) -> Result<Self, Error> {
        let each_class = config.class_max_not_full;
        if each_class.map_or(false, |all| all.len() < MAX_CLASSES) {
            return Err(Error::Invalid);
        }
        let config = sys::cf_config {
            engine: sys::cf_engine::CF_MOVING,
            page_size: config.page_size,
            block_size: 0,
            max_not_full: config.max_not_full,
            class_max_not_full: each_class.map_or(ptr::null(), |all| all.as_ptr()),
            deferred: config.deferred,
            wide: config.wide,
            pieces: false,
            remote_frees: 0,
            seed: config.seed,
            lock: None,
            unlock: None,
            lock_arg: ptr::null_mut(),
        };
        // SAFETY: the buffer is borrowed as long as the heap exists, the configuration during the call.
        let raw = unsafe { sys::cf_init(buffer.as_mut_ptr().cast(), buffer.len(), &config) };
        Ok(Heap {
            raw: NonNull::new(raw).ok_or(Error::Invalid)?,
            _buffer: PhantomData,
        })
    }

    /// Allocates an object. O(size).
    ///
    /// # Errors
    ///
    /// [`Error::Size`], [`Error::NoMemory`]. A type aligned to more than a page is refused by `Size`, by
    /// [`Error::Invalid`] if it has no bytes.
    pub fn alloc<T: Pod>(&mut self, value: T) -> Result<Handle<T>, Error> {
        let raw = self.alloc_bytes::<T>(size_of::<T>(), bytes(slice::from_ref(&value)))?;
        Ok(Handle::new(raw, ()))
    }

    /// Allocates a copy of a slice. O(size).
    ///
    /// # Errors
    ///
    /// As [`alloc()`](Heap::alloc); `Size` for an empty slice, too.
    pub fn alloc_slice<T: Pod>(&mut self, values: &[T]) -> Result<Handle<[T]>, Error> {
        let content = bytes(values);
        let len = u32::try_from(values.len()).map_err(|_| Error::Size)?;
        let raw = self.alloc_bytes::<T>(content.len(), content)?;
        Ok(Handle::new(raw, len))
    }

    /// Allocates a slice of `len` zeros. O(size).
    ///
    /// # Errors
    ///
    /// As [`alloc_slice()`](Heap::alloc_slice).
    pub fn alloc_zeroed<T: Pod>(&mut self, len: usize) -> Result<Handle<[T]>, Error> {
        let (len, size) = slice_size::<T>(len)?;
        Ok(Handle::new(self.alloc_bytes::<T>(size, &[])?, len))
    }

    /// Changes the length of a slice. Content is kept up to the lesser of both lengths, the rest is
    /// zero. Use the handle that is returned: the old one still has the old length. O(both sizes).
    ///
    /// # Errors
    ///
    /// [`Error::Size`], [`Error::NoMemory`], [`Error::Stale`], [`Error::Pinned`]; [`Error::Invalid`] for a
    /// type aligned to more than 16 bytes.
    pub fn resize<T: Pod>(
        &mut self,
        handle: Handle<[T]>,
        len: usize,
    ) -> Result<Handle<[T]>, Error> {
        if align_of::<T>() > MALLOC_ALIGN {
            return Err(Error::Invalid);
        }
        let kept = bytes(self.get(handle)?).len();
        let (len, size) = slice_size::<T>(len)?;
        self.check_size(size)?;
        // SAFETY: the heap exists.
        check(unsafe { sys::cf_realloc(self.raw.as_ptr(), handle.raw, size) })?;
        let block = self.block(handle.raw, size, align_of::<T>())?;
        // SAFETY: the block is the object's, and nobody else refers to it.
        unsafe { clear(block, kept.min(size)) };
        Ok(Handle::new(handle.raw, len))
    }

    /// Frees an object. May move one other, so constant time or O(size of its class).
    ///
    /// # Errors
    ///
    /// [`Error::Stale`] (also if freed before), [`Error::Pinned`].
    pub fn free<T: ?Sized + Object>(&mut self, handle: Handle<T>) -> Result<(), Error> {
        // SAFETY: the heap exists.
        check(unsafe { sys::cf_free(self.raw.as_ptr(), handle.raw) })
    }

    /// The object. Constant time.
    ///
    /// # Errors
    ///
    /// [`Error::Stale`].
    pub fn get<T: ?Sized + Object>(&self, handle: Handle<T>) -> Result<&T, Error> {
        // SAFETY: `find()` answers for it; nothing moves or changes while the heap is borrowed.
        Ok(unsafe { self.find(handle)?.as_ref() })
    }

    /// The object, to be changed. Constant time.
    ///
    /// # Errors
    ///
    /// [`Error::Stale`].
    pub fn get_mut<T: ?Sized + Object>(&mut self, handle: Handle<T>) -> Result<&mut T, Error> {
        // SAFETY: `find()` answers for it; the heap is borrowed, so nobody else refers to an object.
        Ok(unsafe { self.find(handle)?.as_mut() })
    }

    /// Keeps an object where it is, and alive, until it is unpinned; where that is. For hardware that
    /// writes to memory, or for C. Pins nest, up to 5. Constant time.
    ///
    /// A page all of whose objects are pinned cannot be compacted: each pinned object may cost one page.
    ///
    /// The pointer is as good as one from [`get_mut()`](Heap::get_mut) until `unpin()`: who uses it, by
    /// `unsafe` code, has to see to it that no reference to the object lives at the time. There is
    /// no guard that gives a reference, as `get_mut()` would make a second one of the same object.
    ///
    /// # Errors
    ///
    /// [`Error::Stale`], [`Error::Pins`].
    pub fn pin<T: ?Sized + Object>(&mut self, handle: Handle<T>) -> Result<NonNull<T>, Error> {
        let object = self.find(handle)?;
        // SAFETY: the heap exists.
        check(unsafe { sys::cf_pin(self.raw.as_ptr(), handle.raw) })?;
        Ok(object)
    }

    /// Takes one `pin()` back. May move the object. O(size).
    ///
    /// # Errors
    ///
    /// [`Error::Stale`], [`Error::Pins`].
    pub fn unpin<T: ?Sized + Object>(&mut self, handle: Handle<T>) -> Result<(), Error> {
        // SAFETY: the heap exists.
        check(unsafe { sys::cf_unpin(self.raw.as_ptr(), handle.raw) })
    }

    /// Does compaction that was deferred: moves at most `budget` bytes. The bytes moved. O(budget).
    pub fn compact(&mut self, budget: usize) -> usize {
        // SAFETY: the heap exists.
        unsafe { sys::cf_compact(self.raw.as_ptr(), budget) }
    }

    /// Not-full pages that [`compact()`](Heap::compact) would remove. O(size-classes).
    pub fn debt(&self) -> usize {
        // SAFETY: the heap exists.
        unsafe { sys::cf_debt(self.raw.as_ptr()) }
    }

    /// How many more objects of `size` bytes will be had, whatever happened before. O(size-classes).
    ///
    /// Holds for any history and for frees in between, not for more pins, nor for types that are aligned to
    /// more than 16 bytes.
    pub fn bound(&self, size: usize) -> usize {
        if size > self.max_size() {
            return 0;
        }
        // SAFETY: the heap exists.
        unsafe { sys::cf_bound(self.raw.as_ptr(), size) }
    }

    /// Bytes of the largest object: a page. (C's larger ones are not in one piece, so they can be no `&T`.)
    /// Constant time.
    pub fn max_size(&self) -> usize {
        // SAFETY: the heap exists.
        unsafe { sys::cf_max_contiguous(self.raw.as_ptr()) }
    }

    /// What the heap holds. O(size-classes).
    pub fn stats(&self) -> Stats {
        let mut now = sys::cf_stats::default();
        // SAFETY: the heap exists.
        unsafe { sys::cf_get_stats(self.raw.as_ptr(), &mut now) };
        Stats {
            pages: now.pages,
            free_pages: now.free_pages,
            handle_pages: now.handle_pages,
            not_full_pages: now.not_full_pages,
            stuck_pages: now.stuck_pages,
            objects: now.objects,
            pinned: now.pinned,
            moves: now.moves,
            moved_bytes: now.moved_bytes,
        }
    }

    /// Do all invariants hold? For tests. O(heap).
    ///
    /// # Errors
    ///
    /// The sentence that does not hold.
    pub fn verify(&self) -> Result<(), &'static str> {
        // SAFETY: the heap exists.
        let wrong = unsafe { sys::cf_verify(self.raw.as_ptr()) };
        if wrong.is_null() {
            return Ok(());
        }
        // SAFETY: a string literal of C's. (CStr came to core after Rust 1.63.)
        let sentence = unsafe {
            let len = (0..).take_while(|&i| *wrong.add(i) != 0).count();
            slice::from_raw_parts(wrong, len)
        };
        Err(core::str::from_utf8(sentence).unwrap_or("an invariant does not hold"))
    }

    /// C would allocate a larger object, in pieces.
    fn check_size(&self, size: usize) -> Result<(), Error> {
        if size > self.max_size() {
            return Err(Error::Size);
        }
        Ok(())
    }

    /// A new block that begins with `content`; all the rest of it is zero.
    fn alloc_bytes<T>(&mut self, size: usize, content: &[u8]) -> Result<cf_handle, Error> {
        let heap = self.raw.as_ptr();
        let mut raw = cf_handle { slot: 0, stamp: 0 };
        self.check_size(size)?;
        // SAFETY: the heap exists.
        check(unsafe {
            if align_of::<T>() > MALLOC_ALIGN {
                sys::cf_aligned_alloc(heap, align_of::<T>(), size, &mut raw)
            } else {
                sys::cf_malloc(heap, size, &mut raw)
            }
        })?;
        let block = self.block(raw, size, align_of::<T>())?;
        // SAFETY: the block is new, as large as `size` at least, and `content` is no larger.
        unsafe {
            ptr::copy_nonoverlapping(content.as_ptr(), block.as_ptr().cast(), content.len());
            clear(block, content.len());
        }
        Ok(raw)
    }

    /// The whole block of a live object that is `size` bytes or more, aligned.
    fn block(&self, raw: cf_handle, size: usize, align: usize) -> Result<NonNull<[u8]>, Error> {
        let mut length = 0;
        // SAFETY: the heap exists; any handle may be asked about.
        let byte: *mut c_void = unsafe { sys::cf_at(self.raw.as_ptr(), raw, 0, &mut length) };
        if length < size || byte as usize % align != 0 {
            return Err(Error::Stale);
        }
        NonNull::new(ptr::slice_from_raw_parts_mut(byte.cast(), length)).ok_or(Error::Stale)
    }

    /// Where the object is. It is a valid `T` there: each byte of a block is initialised since its
    /// allocation, and any bytes are a `T`.
    fn find<T: ?Sized + Object>(&self, handle: Handle<T>) -> Result<NonNull<T>, Error> {
        let size = T::size(handle.len).ok_or(Error::Stale)?;
        let block = self.block(handle.raw, size, T::ALIGN)?;
        NonNull::new(T::pointer(block.as_ptr().cast(), handle.len)).ok_or(Error::Stale)
    }
}

impl fmt::Debug for Heap<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Heap").field(&self.stats()).finish()
    }
}

fn bytes<T: Pod>(values: &[T]) -> &[u8] {
    // SAFETY: there is no padding.
    unsafe { slice::from_raw_parts(values.as_ptr().cast(), core::mem::size_of_val(values)) }
}

/// The length as handles have it, and the bytes.
fn slice_size<T: Pod>(len: usize) -> Result<(u32, usize), Error> {
    let size = len.checked_mul(size_of::<T>()).ok_or(Error::Size)?;
    Ok((u32::try_from(len).map_err(|_| Error::Size)?, size))
}

/// Zero a block from a byte of it on.
///
/// # Safety
///
/// The block is valid and nobody else refers to it; `from` is in it, or its end.
unsafe fn clear(block: NonNull<[u8]>, from: usize) {
    // SAFETY: as above
    unsafe {
        let byte: *mut u8 = block.as_ptr().cast();
        ptr::write_bytes(byte.add(from), 0, block.len() - from);
    }
}
