// SPDX-License-Identifier: GPL-2.0-only OR MIT
//! The safe interface, and what it does if it is misused.

use std::collections::HashMap;
use std::mem::{size_of, size_of_val, transmute_copy, MaybeUninit};

use compactfit::{pod, Config, Error, Handle, Heap, Pod, MAX_CLASSES, UNLIMITED};

const SIZE: usize = 1 << 20;

fn buffer(size: usize) -> Vec<MaybeUninit<u8>> {
    vec![MaybeUninit::new(0xa5); size]
}

/// Runs a test in a heap of its own, and looks whether the heap is whole afterwards.
fn with(config: Config<'_>, test: impl FnOnce(&mut Heap<'_>)) {
    let mut buffer = buffer(SIZE);
    let mut heap = Heap::new(&mut buffer, &config).unwrap();
    test(&mut heap);
    assert_eq!(heap.verify(), Ok(()));
}

pod! {
    #[derive(Debug, PartialEq)]
    struct Node {
        value: u64,
        next: Handle<Node>,
    }
}

pod! {
    #[derive(Debug, PartialEq)]
    #[repr(align(64))]
    struct Line {
        bytes: [u8; 64],
    }
}

pod! {
    /// Of a size whose blocks are not all aligned like this by themselves.
    #[repr(align(32))]
    struct Sector {
        bytes: [u8; 800],
    }
}

#[test]
fn a_handle_is_as_cheap_as_an_integer() {
    assert_eq!(size_of::<Handle<Node>>(), 8);
    assert_eq!(size_of::<Handle<[u64]>>(), 12);
}

#[test]
fn objects_refer_to_each_other() {
    with(Config::default(), |heap| {
        let mut first = Handle::NULL;
        for value in 0..100 {
            first = heap.alloc(Node { value, next: first }).unwrap();
        }
        let mut sum = 0;
        while !first.is_null() {
            let node = *heap.get(first).unwrap();
            sum += node.value;
            heap.free(first).unwrap();
            first = node.next;
        }
        assert_eq!(sum, 4950);
        assert_eq!(heap.stats().objects, 0);
        assert_eq!(heap.get(first), Err(Error::Stale));
    });
}

#[test]
fn content_is_kept_while_objects_move() {
    with(Config::default(), |heap| {
        let mut live: Vec<(u32, Handle<u32>, Handle<[u16]>)> = Vec::new();
        let mut random = 1_u32;
        let mut growing = true;
        for round in 0..20_000 {
            random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let dice = (random >> 20) as usize;
            growing = live.len() < 1000 && (growing || live.len() < 100);
            if growing {
                let text = vec![round as u16; 1 + dice % 60];
                let number = heap.alloc(round).unwrap();
                live.push((round, number, heap.alloc_slice(&text).unwrap()));
            } else {
                let (round, number, text) = live.swap_remove(dice % live.len());
                assert_eq!(heap.get(number), Ok(&round));
                assert!(heap
                    .get(text)
                    .unwrap()
                    .iter()
                    .all(|&one| one == round as u16));
                heap.free(number).unwrap();
                heap.free(text).unwrap();
                assert_eq!(heap.get(number), Err(Error::Stale));
            }
        }
        assert!(heap.stats().moves > 1000);
        for (round, number, _) in live {
            assert_eq!(heap.get(number), Ok(&round));
        }
    });
}

#[test]
fn what_is_changed_stays_changed() {
    with(Config::default(), |heap| {
        let slice = heap.alloc_slice(&[1, 2, 3]).unwrap();
        heap.get_mut(slice).unwrap()[1] = 20;
        assert_eq!(heap.get(slice), Ok(&[1, 20, 3][..]));
    });
}

#[test]
fn slices_are_resized_and_what_is_new_is_zero() {
    with(Config::default(), |heap| {
        let ones = heap.alloc_slice(&[!0_u32; 100]).unwrap();
        let few = heap.resize(ones, 10).unwrap();
        let many = heap.resize(few, 1000).unwrap();
        let slice = heap.get(many).unwrap();
        assert_eq!(slice.len(), 1000);
        assert!(slice[..10].iter().all(|&one| one == !0));
        assert!(slice[10..].iter().all(|&one| one == 0));
        assert_eq!(heap.resize(many, 0), Err(Error::Size));
        assert_eq!(heap.resize(many, usize::MAX), Err(Error::Size));
        assert_eq!(heap.resize(many, SIZE / 4), Err(Error::Size));
        heap.resize(many, 1).unwrap();
        assert_eq!(
            heap.get(many),
            Err(Error::Stale),
            "the old length is too large"
        );
        assert_eq!(heap.resize(many, 2000), Err(Error::Stale));
    });
}

#[test]
fn types_that_are_aligned_to_more_than_malloc_does() {
    with(Config::default(), |heap| {
        let sectors: Vec<_> = (0..50)
            .map(|n| heap.alloc(Sector { bytes: [n; 800] }).unwrap())
            .collect();
        for pair in sectors.chunks(2) {
            heap.free(pair[0]).unwrap();
        }
        assert!(heap.stats().moves > 0);
        for (n, pair) in sectors.chunks(2).enumerate() {
            let sector = heap.get(pair[1]).unwrap();
            assert_eq!(sector as *const Sector as usize % 32, 0);
            assert_eq!(sector.bytes, [2 * n as u8 + 1; 800]);
        }
        let slice = heap.alloc_zeroed::<Line>(3).unwrap();
        assert_eq!(heap.resize(slice, 4), Err(Error::Invalid));
    });
}

#[test]
fn a_freed_object_is_stale() {
    with(Config::default(), |heap| {
        let object = heap.alloc(1_u64).unwrap();
        heap.free(object).unwrap();
        assert_eq!(heap.free(object), Err(Error::Stale));
        assert_eq!(heap.get(object), Err(Error::Stale));
        assert_eq!(heap.get_mut(object), Err(Error::Stale));
        assert_eq!(heap.pin(object), Err(Error::Stale));
        assert_eq!(heap.unpin(object), Err(Error::Stale));
        heap.alloc(2_u64).unwrap(); // in its slot
        assert_eq!(heap.get(object), Err(Error::Stale));
    });
}

#[test]
fn handles_of_another_heap_are_stale() {
    let (mut one, mut two) = (buffer(SIZE), buffer(SIZE));
    let mut one = Heap::new(&mut one, &Config::default()).unwrap();
    let mut two = Heap::new(&mut two, &Config::default()).unwrap();
    let ours: Vec<_> = (0..100).map(|n| one.alloc(n).unwrap()).collect();
    let theirs: Vec<_> = (0..100).map(|n| two.alloc(n).unwrap()).collect();
    // Where stamps start is a matter of where the buffers lie: some of a hundred may pass.
    for (n, (&a, &b)) in ours.iter().zip(&theirs).enumerate() {
        match two.get(a) {
            Err(error) => assert_eq!(error, Error::Stale),
            Ok(_) => assert_eq!(a, b),
        }
        assert_eq!(one.get(a), Ok(&(n as i32)));
        assert_eq!(two.get(b), Ok(&(n as i32)));
    }
}

/// A handle of these bits: its length is the last, if it has one.
fn forged<T: Pod>(bits: [u32; 3]) -> T {
    // SAFETY: all bits are a T, and it is no larger.
    assert!(size_of::<T>() <= size_of_val(&bits));
    unsafe { transmute_copy(&bits) }
}

#[test]
fn any_bits_are_a_handle_that_does_no_harm() {
    with(Config::default(), |heap| {
        for slot in (0..SIZE as u32 / 4).step_by(7).chain([u32::MAX, 1 << 31]) {
            for stamp in [0, 1 << 24, u32::MAX] {
                let handle: Handle<[u64]> = forged([slot, stamp, 1]);
                assert_eq!(heap.get(handle), Err(Error::Stale));
                assert_eq!(heap.free(handle), Err(Error::Stale));
                assert_eq!(heap.pin(handle), Err(Error::Stale));
            }
        }
    });
}

#[test]
fn a_length_that_is_wrong_is_stale() {
    with(Config::default(), |heap| {
        let slice = heap.alloc_slice(&[0_u64; 2]).unwrap();
        // SAFETY: a handle is two numbers, and a length
        let [slot, stamp] = unsafe { transmute_copy::<_, [u32; 2]>(&slice) };
        assert!(heap.get(forged::<Handle<[u64]>>([slot, stamp, 2])).is_ok());
        let long = forged::<Handle<[u64]>>([slot, stamp, 3]);
        assert_eq!(heap.get(long), Err(Error::Stale));
        assert_eq!(heap.resize(long, 1), Err(Error::Stale));
        // 2^64 bytes: as many as 0 if that overflows
        let overflows = forged::<Handle<[[u64; 1 << 31]]>>([slot, stamp, 1 << 30]);
        assert!(heap.get(overflows).is_err());
    });
}

#[test]
fn stamps_wrap_around_to_another_type_and_do_no_harm() {
    // 8 MiB: the shortest stamps, of 8 bits
    let mut buffer = buffer(8 << 20);
    let mut heap = Heap::new(&mut buffer, &Config::default()).unwrap();
    let small = heap.alloc([7_u8; 3]).unwrap();
    heap.free(small).unwrap();
    let mut passed = 0;
    for _ in 0..2048 {
        let other = heap.alloc(Line { bytes: [1; 64] }).unwrap();
        match heap.get(small) {
            Ok(bytes) => {
                assert_eq!(bytes, &[1; 3]);
                passed += 1;
            }
            Err(error) => assert_eq!(error, Error::Stale),
        }
        heap.free(other).unwrap();
    }
    assert_eq!(passed, 8, "one of 256 allocations");

    // The other way round the object is too small,
    let large = heap.alloc([!0_u64; 512]).unwrap();
    heap.free(large).unwrap();
    for _ in 0..2048 {
        let other = heap.alloc(5_u8).unwrap();
        assert_eq!(heap.get(large), Err(Error::Stale));
        heap.free(other).unwrap();
    }

    // or what was not written of its block is zero, whatever was there before.
    let middle = heap.alloc([!0_u8; 16]).unwrap();
    heap.free(middle).unwrap();
    for _ in 0..2048 {
        let other = heap.alloc(5_u8).unwrap();
        if let Ok(bytes) = heap.get(middle) {
            assert_eq!(bytes, &[5, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
            passed += 1;
        }
        heap.free(other).unwrap();
    }
    assert_eq!(passed, 16);
    assert_eq!(heap.verify(), Ok(()));
}

#[test]
fn an_object_that_is_not_aligned_for_the_type_is_stale() {
    with(Config::default(), |heap| {
        let mut refused = 0;
        for _ in 0..4 {
            let object = heap.alloc([0_u8; 80]).unwrap();
            // SAFETY: a handle is two numbers
            let [slot, stamp] = unsafe { transmute_copy::<_, [u32; 2]>(&object) };
            let place = heap.get(object).unwrap() as *const _ as usize;
            let line = heap.get(forged::<Handle<Line>>([slot, stamp, 0]));
            assert_eq!(line.is_ok(), place % 64 == 0);
            refused += u32::from(line.is_err());
        }
        assert_eq!(refused, 3);
    });
}

#[test]
fn sizes_that_no_object_has() {
    with(Config::default(), |heap| {
        assert_eq!(heap.max_size(), 16384);
        assert_eq!(heap.alloc(()), Err(Error::Size));
        assert_eq!(heap.alloc_slice::<u8>(&[]), Err(Error::Size));
        assert_eq!(heap.alloc_zeroed::<u8>(16385), Err(Error::Size));
        assert_eq!(heap.alloc_zeroed::<u64>(usize::MAX / 4), Err(Error::Size));
        assert!(heap.alloc_zeroed::<u8>(16384).is_ok());
    });
}

#[test]
fn pins_keep_an_object_where_it_is() {
    with(Config::default(), |heap| {
        let objects: Vec<_> = (0..1000_u32).map(|n| heap.alloc(n).unwrap()).collect();
        let pinned = objects[999]; // the page that is not full: Rule 2 moves its objects
        let place = heap.pin(pinned).unwrap();
        assert_eq!(heap.free(pinned), Err(Error::Pinned));
        assert_eq!(heap.stats().pinned, 1);
        for &object in &objects[..999] {
            heap.free(object).unwrap();
        }
        assert!(heap.stats().moves > 0);
        // SAFETY: it is pinned, and there is no reference to it
        unsafe { *place.as_ptr() += 1 };
        assert_eq!(heap.get(pinned), Ok(&1000));
        assert_eq!(heap.get(pinned).unwrap() as *const u32, place.as_ptr());
        for _ in 1..5 {
            heap.pin(pinned).unwrap();
        }
        assert_eq!(heap.pin(pinned), Err(Error::Pins));
        for _ in 0..5 {
            heap.unpin(pinned).unwrap();
        }
        assert_eq!(heap.unpin(pinned), Err(Error::Pins));
        heap.free(pinned).unwrap();
    });
}

#[test]
fn the_bound_is_kept_after_any_history() {
    with(Config::default(), |heap| {
        let mut objects = Vec::new();
        while let Ok(object) = heap.alloc([0_u8; 48]) {
            objects.push(object);
        }
        assert_eq!(heap.alloc([0_u8; 48]), Err(Error::NoMemory));
        for (n, &object) in objects.iter().enumerate() {
            if n % 4 != 0 {
                heap.free(object).unwrap();
            }
        }
        let bound = heap.bound(10_000);
        assert!(bound >= 8, "{bound}");
        for _ in 0..bound {
            heap.alloc_zeroed::<u8>(10_000).unwrap();
        }
    });
}

#[test]
fn compaction_can_be_left_to_others() {
    let config = Config {
        deferred: true,
        ..Config::default()
    };
    with(config, |heap| {
        let objects: Vec<_> = (0..4000_u32).map(|n| heap.alloc(n).unwrap()).collect();
        for object in objects.iter().step_by(2) {
            heap.free(*object).unwrap();
        }
        assert_eq!(heap.stats().moves, 0);
        assert!(heap.debt() > 0);
        assert_eq!(heap.compact(10), 0, "less than an object");
        assert_eq!(heap.compact(160), 160);
        while heap.compact(1600) > 0 {}
        assert_eq!(heap.debt(), 0);
        assert_eq!(heap.stats().moved_bytes, 16 * heap.stats().moves);
        for (n, &object) in objects.iter().enumerate().skip(1).step_by(2) {
            assert_eq!(heap.get(object), Ok(&(n as u32)));
        }
    });
}

/// Frees every other object, and counts the objects that this moves.
fn moves(config: &Config<'_>) -> u64 {
    let mut buffer = buffer(SIZE);
    let mut heap = Heap::new(&mut buffer, config).unwrap();
    let objects: Vec<_> = (0..4000_u32).map(|n| heap.alloc(n).unwrap()).collect();
    for &object in objects.iter().step_by(2) {
        heap.free(object).unwrap();
    }
    heap.stats().moves
}

#[test]
fn each_word_of_the_configuration_arrives() {
    let plain = Config::default();
    let never = Config {
        max_not_full: UNLIMITED,
        ..plain
    };
    let own = [UNLIMITED; MAX_CLASSES];
    let never_in_any = Config {
        class_max_not_full: Some(&own),
        ..plain
    };
    assert!(moves(&plain) > 0);
    assert_eq!(moves(&never), 0);
    assert_eq!(moves(&never_in_any), 0);

    let small = Config {
        page_size: 1024,
        ..plain
    };
    with(small, |heap| assert_eq!(heap.max_size(), 1024));
    let wrong = Config {
        page_size: 1000,
        ..plain
    };
    let few_classes = Config {
        class_max_not_full: Some(&own[1..]),
        ..plain
    };
    for config in [wrong, few_classes] {
        let made = Heap::new(&mut buffer(SIZE), &config).err();
        assert_eq!(made, Some(Error::Invalid));
    }

    // wide: 4 bytes more an object
    let wide = Config {
        wide: true,
        ..plain
    };
    let capacity = |config| {
        let mut bound = 0;
        with(config, |heap| bound = heap.bound(16));
        bound
    };
    assert!(capacity(wide) < capacity(plain));

    // seed: the same buffer, other stamps
    let mut buffer = buffer(SIZE);
    let mut first = |seed| {
        let config = Config { seed, ..plain };
        Heap::new(&mut buffer, &config).unwrap().alloc(1).unwrap()
    };
    assert_eq!(first(0), first(0));
    assert_ne!(first(0), first(1));
    assert_ne!(first(1), first(2));
}

#[test]
fn buffers_that_are_no_heap() {
    for size in [0, 1, 100, 1000, 3000] {
        let made = Heap::new(&mut buffer(size), &Config::default()).err();
        assert_eq!(made, Some(Error::Invalid), "{size}");
    }
    // any alignment
    let mut buffer = buffer(SIZE);
    for from in 0..16 {
        let mut heap = Heap::new(&mut buffer[from..], &Config::default()).unwrap();
        let object = heap.alloc(1).unwrap();
        assert_eq!(heap.get(object), Ok(&1));
    }
}

#[test]
fn a_heap_goes_to_another_thread() {
    with(Config::default(), |heap| {
        let object = heap.alloc(1).unwrap();
        std::thread::scope(|scope| {
            scope.spawn(|| *heap.get_mut(object).unwrap() += 1);
        });
        assert_eq!(heap.get(object), Ok(&2));
    });
}

#[test]
fn handles_are_values() {
    with(Config::default(), |heap| {
        let (a, b) = (heap.alloc(1).unwrap(), heap.alloc(1).unwrap());
        let copy = a;
        assert_eq!(a, copy);
        assert_ne!(a, b);
        assert_eq!(Handle::<i32>::default(), Handle::NULL);
        assert!(format!("{a:?}").starts_with("Handle(0x"));
        let names: HashMap<_, _> = [(a, "a"), (b, "b")].into();
        assert_eq!(names[&copy], "a");
    });
}

#[test]
fn errors_are_said_in_words() {
    assert_eq!(Error::NoMemory.to_string(), "no memory for this size now");
}

#[test]
#[cfg(core_error)]
fn errors_are_errors_of_rust() {
    let error: Box<dyn std::error::Error> = Error::Size.into();
    assert!(error.downcast_ref::<Error>() == Some(&Error::Size));
}
