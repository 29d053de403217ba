// SPDX-License-Identifier: GPL-2.0-only OR MIT
//! Types whose values are nothing but bytes.

/// A type whose values are nothing but bytes: plain old data.
///
/// Objects are moved as bytes and end without drop. And a handle is checked, but its check is no proof
/// of its type: a handle of a freed object, or one of another heap, can pass for that of an object of
/// another type (see [`Heap`](crate::Heap)). The program then gets wrong values. That these are no
/// undefined behaviour either is what this trait is for; `Copy` is not enough, as `bool` and `&T` show.
///
/// Integers, floating-point numbers, handles and arrays of such types are `Pod`. A struct of them is
/// declared with [`pod!`](crate::pod!), which checks what there is to check.
///
/// # Safety
///
/// - Any bytes are a valid value: no `bool`, `char`, reference, enum, `NonZeroU32`.
/// - Each byte of a value is initialised: no padding.
/// - There is no interior mutability.
///
/// (What `bytemuck::Pod` asks for; also `FromBytes + IntoBytes + Immutable` of zerocopy.)
pub unsafe trait Pod: Copy + Send + Sync + 'static {}

macro_rules! numbers {
    ($($number:ty)*) => {
        $(
            // SAFETY: numbers of any bits
            unsafe impl Pod for $number {}
        )*
    };
}
numbers!(u8 u16 u32 u64 u128 usize i8 i16 i32 i64 i128 isize f32 f64);

// SAFETY: there are no bytes
unsafe impl Pod for () {}

// SAFETY: arrays have no padding between their elements
unsafe impl<T: Pod, const N: usize> Pod for [T; N] {}

/// Declares a `struct` that is [`Pod`], `Copy` and laid out as in C.
///
/// It does not compile if a field is not `Pod`, or if there is padding: then order the fields by
/// size, or declare the padding as a field.
///
/// ```
/// compactfit::pod! {
///     /// A measurement.
///     #[derive(Debug, PartialEq)]
///     pub struct Sample {
///         pub time: u64,
///         pub value: f32,
///         pub channel: u16,
///         pub reserved: [u8; 2],
///     }
/// }
/// ```
///
/// Padding, of 3 bytes here, is refused:
///
/// ```compile_fail,E0080
/// compactfit::pod! { struct Sample { value: u32, channel: u8 } }
/// ```
///
/// and so is a type for which not all bytes are values:
///
/// ```compile_fail,E0277
/// compactfit::pod! { struct Sample { value: u32, valid: [bool; 4] } }
/// ```
#[macro_export]
macro_rules! pod {
    (
        $(#[$attribute:meta])*
        $visible:vis struct $name:ident {
            $($(#[$field_attribute:meta])* $field_visible:vis $field:ident: $type:ty),+ $(,)?
        }
    ) => {
        $(#[$attribute])*
        #[derive($crate::__private::Clone, $crate::__private::Copy)]
        #[repr(C)]
        $visible struct $name {
            $($(#[$field_attribute])* $field_visible $field: $type,)+
        }

        // SAFETY: what follows does not compile if a field is no Pod, or if there is padding.
        unsafe impl $crate::Pod for $name {}

        // Nothing that is written above is believed: an attribute may have left it out, and another type may
        // have this name. The compiler is asked what fields the type has, and their types follow from that. It
        // is asked in the length of an array, as what is wrong there is never just a lint, and by reference, as
        // a value of type `!` would be taken for one of any other. No name is declared here but those of
        // bindings, and none of a type or function is looked up where the program may have defined it.
        const _: [(); 0] = [(); {
            $crate::__private::assert!(
                $crate::__private::has_no_padding(
                    |pod_value: $name| {
                        let $name { $($field: _),+ } = pod_value;
                    },
                    &[$($crate::__private::size_of_field(|pod_value: $name| {
                        let $name { $field: pod_field, .. } = pod_value;
                        $crate::__private::type_of(&pod_field)
                    })),+],
                ),
                "there is padding"
            );
            0
        }];
    };
}

/// What `pod!` expands to. Not for programs.
#[doc(hidden)]
pub mod __private {
    use super::Pod;
    use core::marker::PhantomData;
    use core::mem::size_of;

    pub use core::assert;
    pub use core::clone::Clone;
    pub use core::marker::Copy;

    /// The size of a field, which has to be `Pod`; its type is found by the compiler.
    pub const fn size_of_field<S, T: Pod>(_: fn(S) -> PhantomData<T>) -> usize {
        size_of::<T>()
    }

    /// Its type, to be told without a value of it.
    pub fn type_of<T>(_: &T) -> PhantomData<T> {
        PhantomData
    }

    /// Is each byte of the type in one of its fields? They are all there: who takes it apart names them.
    pub const fn has_no_padding<S>(_take_apart: fn(S), sizes: &[usize]) -> bool {
        let mut sum = 0;
        let mut i = 0;
        while i < sizes.len() {
            sum += sizes[i];
            i += 1;
        }
        size_of::<S>() == sum
    }
}
