// SPDX-License-Identifier: GPL-2.0-only OR MIT
//! Types that `pod!` has to refuse, whatever safe code tries. This does not compile: tests/refused.rs looks
//! whether the compiler finds each line that is marked, and no other.
#![forbid(unsafe_code)]
#![allow(dead_code, unused_imports, unknown_lints, dependency_on_unit_never_type_fallback)]

mod padding {
    compactfit::pod! { pub struct AtTheEnd { value: u32, channel: u8 } } // refused
    compactfit::pod! { pub struct Between { channel: u8, value: u32 } } // refused
    compactfit::pod! { pub struct InTheMiddle { a: u16, b: u64, c: [u8; 6] } } // refused
    compactfit::pod! { pub struct OfAlignment { a: u8, b: [u64; 0] } } // refused
    compactfit::pod! { #[repr(align(16))] pub struct Aligned { a: u64 } } // refused
    compactfit::pod! { pub struct Nested { a: u64, b: Good, c: u8 } } // refused

    compactfit::pod! { pub struct Good { a: u32, b: [u8; 3], c: u8 } }
    compactfit::pod! { #[repr(packed)] pub struct Packed { a: u8, b: u32 } }
    compactfit::pod! { #[repr(align(16))] pub struct Filled { a: [u8; 48] } }
    compactfit::pod! { pub struct Empty { a: (), b: [u64; 0] } }
    compactfit::pod! { pub struct Other { a: Good, b: compactfit::Handle<[Good]> } }
}

mod not_any_bytes {
    #[derive(Clone, Copy)]
    pub enum Choice { A, B }
    #[derive(Clone, Copy)]
    pub struct Plain(u32);

    pub trait Returns { type Out; }
    impl<T> Returns for fn() -> T { type Out = T; }
    type Never = <fn() -> ! as Returns>::Out;
    compactfit::pod! { struct Nothing { a: Never, b: u32 } } // refused
    compactfit::pod! { struct Bool { a: bool } } // refused
    compactfit::pod! { struct Char { a: char } } // refused
    compactfit::pod! { struct NonZero { a: std::num::NonZeroU32 } } // refused
    compactfit::pod! { struct Reference { a: &'static u8 } } // refused
    compactfit::pod! { struct Pointer { a: *const u8 } } // refused
    compactfit::pod! { struct Function { a: fn() } } // refused
    compactfit::pod! { struct Enum { a: Choice } } // refused
    compactfit::pod! { struct Tuple { a: (u32, u32) } } // refused
    compactfit::pod! { struct Unknown { a: Plain } } // refused
    compactfit::pod! { struct Uninit { a: std::mem::MaybeUninit<u32> } } // refused
    compactfit::pod! { struct Cell { a: std::cell::Cell<u32> } } // refused
    compactfit::pod! { struct Atomic { a: std::sync::atomic::AtomicU32 } } // refused
    compactfit::pod! { struct Option { a: std::option::Option<u8> } } // refused
    compactfit::pod! { struct Array { a: [bool; 4] } } // refused
}

/// The struct that is declared is left out, and another one of its name is there.
mod absent {
    pub mod padded {
        #[derive(Clone, Copy)]
        #[repr(C)]
        pub struct Evil { pub a: u8, pub b: u32 }
        compactfit::pod! { #[cfg(any())] pub struct Evil { a: u32, b: u32 } } // refused
    }
    pub mod larger {
        #[derive(Clone, Copy)]
        pub struct Evil { a: u32, b: u32, c: u8 }
        compactfit::pod! { #[cfg(any())] struct Evil { a: u32, b: u32 } } // refused
    }
    pub mod alias {
        #[derive(Clone, Copy)]
        #[repr(C)]
        pub struct Padded { a: u8, b: u32 }
        pub type Evil = Padded;
        compactfit::pod! { #[cfg(any())] struct Evil { a: u32, b: u32 } } // refused
    }
    pub mod generic {
        #[derive(Clone, Copy)]
        pub struct Evil<T = u8> { a: T, b: u32 }
        compactfit::pod! { #[cfg(any())] struct Evil { a: u32, b: u32 } } // refused
    }
    pub mod union_of_one {
        #[derive(Clone, Copy)]
        pub union Evil { a: u32 }
        compactfit::pod! { #[cfg(any())] struct Evil { a: u32 } } // refused
    }
    pub mod union_of_two {
        #[derive(Clone, Copy)]
        pub union Evil { a: u32, b: u8 }
        compactfit::pod! { #[cfg(any())] struct Evil { a: u32, b: u8 } } // refused
    }
    pub mod variant {
        #[derive(Clone, Copy)]
        pub enum Evil { Only { a: u32 } }
        compactfit::pod! { #[cfg(any())] struct Evil { a: u32 } } // refused
    }
    pub mod field {
        compactfit::pod! { struct Evil { #[cfg(any())] a: [u8; 3], b: u32, c: u8 } } // refused
    }
}

/// Names that the check might mean.
mod shadowed {
    pub trait Pod {}
    impl<T> Pod for T {}
    pub fn is_pod<T>(_: T) {}
    pub const fn size<T: Copy>(_: T) -> usize { 8 }
    pub const fn size_of<T>() -> usize { 8 }
    pub const SUM: usize = 8;
    macro_rules! assert { ($($any:tt)*) => {} }
    compactfit::pod! { struct Padded { a: u32, b: u8 } } // refused
    compactfit::pod! { struct Wrong { a: bool } } // refused
}

/// A lint that is an error, and was not forbidden before Rust 1.65.
#[allow(unknown_lints, renamed_and_removed_lints, const_err)]
mod allowed {
    compactfit::pod! { struct Evil { a: u32, b: u8 } } // refused
}

/// Lengths that mean something else inside the check than in the struct.
mod lengths {
    const SUM: usize = 3;
    const CHECK: usize = 1;
    compactfit::pod! { struct Evil { a: u32, b: [u8; { const SUM: usize = 1; SUM }] } } // refused
    compactfit::pod! { struct Good { a: u32, b: [u8; SUM], c: [u8; CHECK] } }
}

fn local<T>() {
    compactfit::pod! { struct Evil { a: u32, b: u8 } } // refused
    compactfit::pod! { struct Good { a: u32, b: f32 } }
}
