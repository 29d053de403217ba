// SPDX-License-Identifier: GPL-2.0-only OR MIT
//! Allocators of crates.io, each over the one piece of memory that it is given and no other, for the
//! benchmark in C: see ../crates.h. The allocator itself lies at the start of the memory.

use std::alloc::Layout;
use std::cell::Cell;
use std::mem::size_of;
use std::os::raw::c_void;
use std::ptr::{null_mut, slice_from_raw_parts_mut, NonNull};

use dlmalloc::Dlmalloc;
use rlsf::Tlsf;
use talc::base::Talc;
use talc::source::Manual;
use talc::DefaultBinning;

/// Bytes to which an object is aligned: as malloc()'s are.
const ALIGNMENT: usize = 16;
/// dlmalloc asks for memory in multiples of its page size; the memory begins and ends with one.
const PAGE: usize = 4096;

/// Puts `heap` at the start of the memory and gives it what is behind; null if `fill` says that this
/// is too little.
unsafe fn init<A>(
    memory: *mut c_void,
    size: usize,
    heap: A,
    fill: impl FnOnce(&mut A, *mut u8, usize) -> bool,
) -> *mut c_void {
    let own = (size_of::<A>() + PAGE - 1) / PAGE * PAGE;
    if size < own + PAGE {
        return null_mut();
    }
    let at = memory.cast::<A>();
    at.write(heap);
    let room = (size - own) / PAGE * PAGE;
    if !fill(&mut *at, memory.cast::<u8>().add(own), room) {
        return null_mut();
    }
    memory
}

/// The layout of an object of `size` bytes, which is not 0.
fn layout(size: usize) -> Layout {
    // SAFETY: the alignment is a power of two; the C side asks for no more than the memory has.
    unsafe { Layout::from_size_align_unchecked(size, ALIGNMENT) }
}

fn pointer(object: Option<NonNull<u8>>) -> *mut c_void {
    object.map_or(null_mut(), |object| object.as_ptr().cast())
}

/// Hands its memory out once.
struct Arena(Cell<Option<(*mut u8, usize)>>);

// SAFETY: the benchmark has one thread.
unsafe impl Send for Arena {}

// SAFETY: the memory is handed out once, whole, and never taken back.
unsafe impl dlmalloc::Allocator for Arena {
    fn alloc(&self, size: usize) -> (*mut u8, usize, u32) {
        match self.0.take() {
            Some((start, room)) if size <= room => (start, room, 0),
            _ => (null_mut(), 0, 0),
        }
    }

    fn remap(&self, _: *mut u8, _: usize, _: usize, _: bool) -> *mut u8 {
        null_mut()
    }

    fn free_part(&self, _: *mut u8, _: usize, _: usize) -> bool {
        false
    }

    fn free(&self, _: *mut u8, _: usize) -> bool {
        false
    }

    fn can_release_part(&self, _: u32) -> bool {
        false
    }

    fn allocates_zeros(&self) -> bool {
        false
    }

    fn page_size(&self) -> usize {
        PAGE
    }
}

type DlHeap = Dlmalloc<Arena>;
/// As many second-level lists as the benchmark's own TLSF has; blocks up to 32 MiB.
type RlsfHeap = Tlsf<'static, u32, u32, 20, 32>;
type TalcHeap = Talc<Manual, DefaultBinning>;

/// # Safety
/// `memory` are `size` bytes of the caller's, aligned to a page, for as long as the heap is used.
#[no_mangle]
pub unsafe extern "C" fn crate_dlmalloc_init(memory: *mut c_void, size: usize) -> *mut c_void {
    let empty = Dlmalloc::new_with_allocator(Arena(Cell::new(None)));
    init(memory, size, empty, |heap: &mut DlHeap, start, room| {
        heap.allocator().0.set(Some((start, room)));
        // takes the memory now, not in the first allocation that is counted
        let first = heap.malloc(1, ALIGNMENT);
        if first.is_null() {
            return false;
        }
        heap.free(first, 1, ALIGNMENT);
        true
    })
}

/// # Safety
/// `heap` is of `crate_dlmalloc_init()`; `size` is not 0.
#[no_mangle]
pub unsafe extern "C" fn crate_dlmalloc_alloc(heap: *mut c_void, size: usize) -> *mut c_void {
    (*heap.cast::<DlHeap>()).malloc(size, ALIGNMENT).cast()
}

/// # Safety
/// `object` is of `crate_dlmalloc_alloc()` for this heap and this size.
#[no_mangle]
pub unsafe extern "C" fn crate_dlmalloc_free(heap: *mut c_void, object: *mut c_void, size: usize) {
    (*heap.cast::<DlHeap>()).free(object.cast(), size, ALIGNMENT);
}

/// # Safety
/// As `crate_dlmalloc_init()`.
#[no_mangle]
pub unsafe extern "C" fn crate_rlsf_init(memory: *mut c_void, size: usize) -> *mut c_void {
    init(
        memory,
        size,
        Tlsf::new(),
        |heap: &mut RlsfHeap, start, room| {
            let block = NonNull::new_unchecked(slice_from_raw_parts_mut(start, room));
            heap.insert_free_block_ptr(block).is_some()
        },
    )
}

/// # Safety
/// As `crate_dlmalloc_alloc()`.
#[no_mangle]
pub unsafe extern "C" fn crate_rlsf_alloc(heap: *mut c_void, size: usize) -> *mut c_void {
    pointer((*heap.cast::<RlsfHeap>()).allocate(layout(size)))
}

/// # Safety
/// As `crate_dlmalloc_free()`.
#[no_mangle]
pub unsafe extern "C" fn crate_rlsf_free(heap: *mut c_void, object: *mut c_void, _size: usize) {
    (*heap.cast::<RlsfHeap>()).deallocate(NonNull::new_unchecked(object.cast()), ALIGNMENT);
}

/// # Safety
/// As `crate_dlmalloc_init()`.
#[no_mangle]
pub unsafe extern "C" fn crate_talc_init(memory: *mut c_void, size: usize) -> *mut c_void {
    init(
        memory,
        size,
        Talc::new(Manual),
        |heap: &mut TalcHeap, start, room| heap.claim(start, room).is_some(),
    )
}

/// # Safety
/// As `crate_dlmalloc_alloc()`.
#[no_mangle]
pub unsafe extern "C" fn crate_talc_alloc(heap: *mut c_void, size: usize) -> *mut c_void {
    pointer((*heap.cast::<TalcHeap>()).allocate(layout(size)))
}

/// # Safety
/// As `crate_dlmalloc_free()`.
#[no_mangle]
pub unsafe extern "C" fn crate_talc_free(heap: *mut c_void, object: *mut c_void, size: usize) {
    (*heap.cast::<TalcHeap>()).deallocate(object.cast(), layout(size));
}
