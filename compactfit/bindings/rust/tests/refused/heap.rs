// SPDX-License-Identifier: GPL-2.0-only OR MIT
//! What safe code must not do with a heap: each line that is marked is an error.
#![forbid(unsafe_code)]
#![allow(dead_code, unused_variables, unused_must_use)]

use compactfit::{Config, Error, Handle, Heap, Object, Pod};
use std::mem::MaybeUninit;

fn needs_sync<T: Sync>(_: &T) {}
fn needs_send<T: Send>(_: &T) {}

fn a_reference_does_not_outlive_what_may_move_or_free(heap: &mut Heap<'_>, a: Handle<u32>, b: Handle<[u32]>) {
    let kept = heap.get(a).unwrap();
    heap.free(a); // refused
    heap.alloc(1_u8); // refused
    heap.alloc_slice(&[1_u8]); // refused
    heap.alloc_zeroed::<u8>(1); // refused
    heap.resize(b, 1); // refused
    heap.pin(a); // refused
    heap.unpin(a); // refused
    heap.compact(1); // refused
    heap.get_mut(a); // refused
    heap.get(a);
    heap.stats();
    let other = kept;
}

fn a_reference_that_writes_is_the_only_one(heap: &mut Heap<'_>, a: Handle<u32>, b: Handle<[u32]>) {
    let kept = heap.get_mut(a).unwrap();
    heap.get(a); // refused
    heap.get_mut(b); // refused
    heap.verify(); // refused
    *kept = 1;
    heap.alloc_slice(heap.get(b).unwrap()); // refused
}

fn nothing_outlives_the_heap<'buf>(buffer: &'buf mut [MaybeUninit<u8>]) {
    let mut heap = Heap::new(buffer, &Config::default()).unwrap();
    let one = heap.alloc(1).unwrap();
    let kept: &'buf u32 = heap.get(one).unwrap(); // refused
}

fn nor_what_it_lies_in() {
    let mut buffer = vec![MaybeUninit::uninit(); 1 << 20];
    let mut heap = Heap::new(&mut buffer, &Config::default()).unwrap();
    let second = Heap::new(&mut buffer, &Config::default()); // refused
    buffer[0] = MaybeUninit::new(1); // refused
    drop(buffer); // refused
    heap.alloc(1);
    std::mem::forget(heap);
}

fn a_heap_is_sent_not_shared(heap: Heap<'_>, place: std::ptr::NonNull<u32>) {
    needs_send(&heap);
    needs_sync(&heap); // refused
    needs_send(&std::sync::Mutex::new(heap));
    needs_send(&place); // refused
}

fn what_is_no_plain_data_is_no_object(heap: &mut Heap<'_>, handle: Handle<u8>) {
    heap.alloc(true); // refused
    heap.alloc('a'); // refused
    heap.alloc(&1); // refused
    heap.alloc(Some(1_u8)); // refused
    heap.alloc((1_u8, 2_u32)); // refused
    heap.alloc(Box::new(1)); // refused
    heap.alloc_slice(&["text"]); // refused
    let text: Handle<str> = Handle::NULL; // refused
    let dynamic: Handle<dyn Send> = Handle::NULL; // refused
    let other: Handle<u32> = handle; // refused
}

struct Own(bool);
impl Object for Own {} // refused
impl Pod for Own {} // refused
