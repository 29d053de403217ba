// SPDX-License-Identifier: GPL-2.0-only OR MIT
//! Handles, and what they can be of.

use core::fmt;
use core::hash::{Hash, Hasher};
use core::marker::PhantomData;

use crate::pod::Pod;
use crate::sys::cf_handle;

/// What an object can be: a `T`, or a slice of `T`, for any [`Pod`] type. Nobody can implement it.
pub trait Object: sealed::Object {}

impl<T: Pod> Object for T {}
impl<T: Pod> Object for [T] {}

pub(crate) mod sealed {
    use super::{fmt, Hash, Pod};

    pub trait Object: 'static {
        /// What has to be known of the object beside its type.
        type Len: Pod + Eq + Hash + fmt::Debug;
        const NO_LEN: Self::Len;
        const ALIGN: usize;

        /// None if it overflows: a handle may be made of any bytes.
        fn size(len: Self::Len) -> Option<usize>;

        /// The pointer with its length.
        fn pointer(byte: *mut u8, len: Self::Len) -> *mut Self;
    }

    impl<T: Pod> Object for T {
        type Len = ();
        const NO_LEN: () = ();
        const ALIGN: usize = core::mem::align_of::<T>();

        fn size(_: ()) -> Option<usize> {
            Some(core::mem::size_of::<T>())
        }

        fn pointer(byte: *mut u8, _: ()) -> *mut T {
            byte.cast()
        }
    }

    impl<T: Pod> Object for [T] {
        type Len = u32;
        const NO_LEN: u32 = 0;
        const ALIGN: usize = core::mem::align_of::<T>();

        fn size(len: u32) -> Option<usize> {
            core::mem::size_of::<T>().checked_mul(len as usize)
        }

        fn pointer(byte: *mut u8, len: u32) -> *mut [T] {
            core::ptr::slice_from_raw_parts_mut(byte.cast(), len as usize)
        }
    }
}

/// An object in a [`Heap`](crate::Heap); a value, as cheap to copy as an integer. It owns nothing.
///
/// It stays the same wherever the object moves, until the object is freed. 8 bytes; 12 for a slice.
/// Handles are [`Pod`] themselves, so that objects can refer to each other.
#[repr(C)]
pub struct Handle<T: ?Sized + Object> {
    pub(crate) raw: cf_handle,
    pub(crate) len: T::Len,
    _type: PhantomData<fn() -> T>,
}

// SAFETY: 32-bit numbers, two or three, of any bits: the heap takes none of them on trust.
unsafe impl<T: ?Sized + Object> Pod for Handle<T> {}

impl<T: ?Sized + Object> Handle<T> {
    /// No object. All its bytes are zero.
    pub const NULL: Self = Handle::new(cf_handle { slot: 0, stamp: 0 }, T::NO_LEN);

    pub(crate) const fn new(raw: cf_handle, len: T::Len) -> Self {
        Handle {
            raw,
            len,
            _type: PhantomData,
        }
    }

    /// Was there never an object? Whether there still is, only the heap knows.
    pub const fn is_null(self) -> bool {
        self.raw.slot == 0
    }
}

// By hand, as the derived ones would ask all this of T.

impl<T: ?Sized + Object> Clone for Handle<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T: ?Sized + Object> Copy for Handle<T> {}

impl<T: ?Sized + Object> Default for Handle<T> {
    fn default() -> Self {
        Self::NULL
    }
}

impl<T: ?Sized + Object> PartialEq for Handle<T> {
    fn eq(&self, other: &Self) -> bool {
        self.raw == other.raw && self.len == other.len
    }
}

impl<T: ?Sized + Object> Eq for Handle<T> {}

impl<T: ?Sized + Object> Hash for Handle<T> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.raw.hash(state);
        self.len.hash(state);
    }
}

impl<T: ?Sized + Object> fmt::Debug for Handle<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Handle({:#x}, {:#x})", self.raw.slot, self.raw.stamp)
    }
}
