// SPDX-License-Identifier: GPL-2.0-only OR MIT
//! What safe code can do at worst. It makes handles of any bits: a stale one that passes for another
//! object's reads and writes numbers as a handle. With these it reaches for bytes that nobody has
//! initialised, which are poison here, and for what lies beside its objects.
#![forbid(unsafe_code)]

use std::mem::MaybeUninit;

use compactfit::{Config, Error, Handle, Heap};

const POISON: u8 = 0xa5;
const SIZE: usize = 8 << 20; // stamps are short: 8 bits

/// The same three words, as a handle and as numbers.
struct Forge {
    as_handle: Handle<Handle<[u8]>>,
    as_words: Handle<[u32; 3]>,
}

impl Forge {
    fn new(heap: &mut Heap<'_>) -> Self {
        let as_handle = heap.alloc(Handle::<[u8]>::NULL).unwrap();
        heap.free(as_handle).unwrap();
        for _ in 0..1000 {
            let as_words = heap.alloc([0_u32; 3]).unwrap();
            if heap.get(as_handle).is_ok() {
                return Forge {
                    as_handle,
                    as_words,
                };
            }
            heap.free(as_words).unwrap();
        }
        panic!("stamps are longer than they were");
    }

    fn words(&self, heap: &mut Heap<'_>, handle: Handle<[u8]>) -> [u32; 3] {
        *heap.get_mut(self.as_handle).unwrap() = handle;
        *heap.get(self.as_words).unwrap()
    }

    fn handle(&self, heap: &mut Heap<'_>, words: [u32; 3]) -> Handle<[u8]> {
        *heap.get_mut(self.as_words).unwrap() = words;
        *heap.get(self.as_handle).unwrap()
    }

    /// Reads the most that a handle of these bits gives, and overwrites it with `byte`; its length.
    fn exploit(&self, heap: &mut Heap<'_>, slot: u32, stamp: u32, byte: u8) -> Option<u32> {
        let (mut least, mut most) = (0, 1 << 16);
        while most - least > 1 {
            let middle = (least + most) / 2;
            let forged = self.handle(heap, [slot, stamp, middle]);
            if heap.get(forged).is_ok() {
                least = middle;
            } else {
                most = middle;
            }
        }
        let forged = self.handle(heap, [slot, stamp, least]);
        let bytes = heap.get_mut(forged).ok()?;
        assert!(bytes.iter().all(|&byte| byte != POISON), "uninitialised");
        bytes.fill(byte);
        Some(least)
    }
}

struct Random(u32);

impl Random {
    fn below(&mut self, limit: u32) -> u32 {
        self.0 = self.0.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (self.0 >> 8) % limit
    }
}

/// Numbers near those of a real handle, and extremes.
fn near(random: &mut Random, value: u32) -> u32 {
    match random.below(8) {
        0 => value ^ 1 << random.below(31),
        1 => value.wrapping_add(random.below(64)),
        2 => value.wrapping_sub(random.below(64)),
        3 => [0, 1, u32::MAX, 1 << 31][random.below(4) as usize],
        _ => value,
    }
}

fn attack(config: &Config<'_>, steps: u32) {
    let mut buffer = vec![MaybeUninit::new(POISON); SIZE];
    let mut heap = Heap::new(&mut buffer, config).unwrap();
    let forge = Forge::new(&mut heap);
    heap.pin(forge.as_words).unwrap(); // nobody frees it by a forged handle
    let mut random = Random(1);
    let mut live: Vec<Handle<[u8]>> = Vec::new();
    let (mut reached, mut refused) = (0, 0);
    for step in 0..steps {
        let some = random.below(live.len() as u32 + 1) as usize;
        let bits = 1 + random.below(10);
        let size = 1 + random.below(1 << bits) as usize;
        match random.below(if live.len() < 2000 { 7 } else { 12 }) {
            0 | 1 => live.push(heap.alloc_slice(&vec![step as u8 | 0x40; size]).unwrap()),
            2 => live.push(heap.alloc_zeroed(size).unwrap()),
            3 if some < live.len() => match heap.resize(live[some], size) {
                Ok(handle) => live[some] = handle,
                Err(error) => assert!(matches!(error, Error::Stale | Error::Pinned)),
            },
            4 => {
                heap.compact(size);
            }
            5 | 6 if some < live.len() => {
                let [slot, stamp, _] = forge.words(&mut heap, live[some]);
                let (slot, stamp) = (near(&mut random, slot), near(&mut random, stamp));
                match forge.exploit(&mut heap, slot, stamp, step as u8 | 0x40) {
                    Some(_) => reached += 1,
                    None => refused += 1,
                }
                // whoever's object it is; no unpin, or the forge would go
                let forged = forge.handle(&mut heap, [slot, stamp, 1]);
                match random.below(16) {
                    0 => drop(heap.free(forged)),
                    1 => drop(heap.resize(forged, size)),
                    2 => drop(heap.pin(forged)),
                    _ => {}
                }
            }
            _ if some < live.len() => drop(heap.free(live.swap_remove(some))),
            _ => {}
        }
        if step % 2000 == 0 {
            assert_eq!(heap.verify(), Ok(()));
        }
    }
    assert_eq!(heap.verify(), Ok(()));
    assert!(
        reached > steps / 50 && refused > steps / 50,
        "{reached} {refused}"
    );
}

#[test]
fn forged_handles_reach_nothing_that_is_not_initialised() {
    attack(&Config::default(), 20_000);
}

#[test]
fn nor_in_small_pages() {
    let config = Config {
        page_size: 1024,
        deferred: true,
        ..Config::default()
    };
    attack(&config, 20_000);
}
