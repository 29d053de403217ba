// SPDX-License-Identifier: GPL-2.0-only OR MIT
//! The C library's declarations, as in compactfit.h; tests/header.rs compares them with it.
//!
//! C's `int` is `i32` here: `core::ffi::c_int` came after Rust 1.63.
#![allow(non_camel_case_types)]

use core::ffi::c_void;
use core::marker::{PhantomData, PhantomPinned};

pub const CF_OK: i32 = 0;
pub const CF_ENOMEM: i32 = -1;
pub const CF_ESIZE: i32 = -2;
pub const CF_ESTALE: i32 = -4;
pub const CF_EPINNED: i32 = -5;
pub const CF_EPINS: i32 = -6;

pub const CF_MAX_CLASSES: usize = 80;
pub const CF_UNLIMITED: u16 = 0xffff;

/// Not `Send`, not `Sync`, not to be moved; only pointers to it exist.
#[repr(C)]
pub struct cf_heap {
    _opaque: [u8; 0],
    _marker: PhantomData<(*mut u8, PhantomPinned)>,
}

#[repr(C)]
#[derive(Clone, Copy, Debug, Hash, PartialEq, Eq)]
pub struct cf_handle {
    pub slot: u32,
    pub stamp: u32,
}

/// As large as the target's C makes it.
#[repr(C)]
pub enum cf_engine {
    CF_MOVING,
}

#[repr(C)]
pub struct cf_config {
    pub engine: cf_engine,
    pub page_size: u32,
    pub block_size: u32,
    pub max_not_full: u16,
    pub deferred: bool,
    pub wide: bool,
    pub pieces: bool,
    pub remote_frees: u32,
    pub seed: u32,
    pub class_max_not_full: *const u16,
    pub lock: Option<unsafe extern "C" fn(arg: *mut c_void)>,
    pub unlock: Option<unsafe extern "C" fn(arg: *mut c_void)>,
    pub lock_arg: *mut c_void,
}

#[repr(C)]
#[derive(Default)]
pub struct cf_stats {
    pub pages: usize,
    pub free_pages: usize,
    pub handle_pages: usize,
    pub large_pages: usize,
    pub not_full_pages: usize,
    pub stuck_pages: usize,
    pub objects: usize,
    pub pinned: usize,
    pub free_blocks: usize,
    pub remote_failed: usize,
    pub moves: u64,
    pub moved_bytes: u64,
}

extern "C" {
    pub fn cf_init(buffer: *mut c_void, size: usize, config: *const cf_config) -> *mut cf_heap;
    pub fn cf_malloc(heap: *mut cf_heap, size: usize, handle: *mut cf_handle) -> i32;
    pub fn cf_aligned_alloc(
        heap: *mut cf_heap,
        align: usize,
        size: usize,
        handle: *mut cf_handle,
    ) -> i32;
    pub fn cf_realloc(heap: *mut cf_heap, handle: cf_handle, size: usize) -> i32;
    pub fn cf_free(heap: *mut cf_heap, handle: cf_handle) -> i32;
    pub fn cf_at(
        heap: *mut cf_heap,
        handle: cf_handle,
        offset: usize,
        length: *mut usize,
    ) -> *mut c_void;
    pub fn cf_pin(heap: *mut cf_heap, handle: cf_handle) -> i32;
    pub fn cf_unpin(heap: *mut cf_heap, handle: cf_handle) -> i32;
    pub fn cf_compact(heap: *mut cf_heap, budget: usize) -> usize;
    pub fn cf_debt(heap: *mut cf_heap) -> usize;
    pub fn cf_bound(heap: *mut cf_heap, size: usize) -> usize;
    pub fn cf_max_contiguous(heap: *const cf_heap) -> usize;
    pub fn cf_get_stats(heap: *mut cf_heap, stats: *mut cf_stats);
    /// A C string that is never freed.
    pub fn cf_verify(heap: *mut cf_heap) -> *const u8;
}
