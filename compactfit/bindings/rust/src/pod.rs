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
/// whatever the program calls `assert`,
///
/// ```compile_fail,E0080
/// macro_rules! assert { ($($any:tt)*) => {} }
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
        #[derive(Clone, Copy)]
        #[repr(C)]
        $visible struct $name {
            $($(#[$field_attribute])* $field_visible $field: $type,)+
        }

        // SAFETY: what follows does not compile if a field is no Pod, or if there is padding.
        unsafe impl $crate::Pod for $name {}

        const _: () = {
            const SUM: ::core::primitive::usize = 0 $(+ ::core::mem::size_of::<$type>())+;
            ::core::assert!(::core::mem::size_of::<$name>() == SUM, "there is padding");

            #[allow(dead_code)]
            fn check(value: $name) {
                fn is_pod<T: $crate::Pod>(_: T) {}
                let $name { $($field),+ } = value;
                $(is_pod($field);)+
            }
        };
    };
}
