// SPDX-License-Identifier: GPL-2.0-only OR MIT
//! A logger keeps the samples of many sensors in a fixed memory. A sensor's log grows until it is sent,
//! each at a time of its own; so all sizes are in use at all times. An alarm needs a log of the largest
//! size at once, and shall find the memory for it.

use compactfit::{pod, Config, Error, Handle, Heap};
use std::mem::MaybeUninit;

const MEMORY: usize = 1 << 20;
const SENSORS: usize = 100;
const LONGEST: usize = 500; // samples of a log before it is sent
const ALARMS: usize = 50;

pod! {
    /// A measurement. (`pod!` checks that any bytes are one: that keeps stale handles harmless.)
    struct Sample {
        time: u32,
        value: f32,
    }
}

fn main() -> Result<(), Error> {
    let mut memory = vec![MaybeUninit::uninit(); MEMORY];
    // Each size-class may have a page that is not full: small pages, as there are many sizes.
    let config = Config {
        page_size: 4096,
        ..Config::default()
    };
    let mut heap = Heap::new(&mut memory, &config)?;
    let alarm_size = LONGEST * std::mem::size_of::<Sample>();
    assert!(heap.bound(alarm_size) >= ALARMS, "the memory is too small");

    // The longest history that there is: a log is sent when it is full, or at random.
    let mut logs: Vec<Handle<[Sample]>> = vec![Handle::NULL; SENSORS];
    let mut random = 1_u32;
    let mut sent = 0;
    for time in 0..200_000 {
        random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        let log = &mut logs[(random >> 8) as usize % SENSORS];
        let sample = Sample {
            time,
            value: (random >> 24) as f32,
        };
        if log.is_null() {
            *log = heap.alloc_slice(&[sample])?;
            continue;
        }
        let length = heap.get(*log)?.len();
        if length == LONGEST || random >> 24 == 0 {
            let samples = heap.get(*log)?;
            assert!(samples.windows(2).all(|two| two[0].time < two[1].time));
            heap.free(*log)?; // `samples` cannot be used any more: the compiler sees to that
            *log = Handle::NULL;
            sent += 1;
        } else {
            *log = heap.resize(*log, length + 1)?;
            heap.get_mut(*log)?[length] = sample;
        }
    }
    let stats = heap.stats();
    println!("{sent} logs sent, {} objects moved", stats.moves);

    // How much is there for alarms, whatever happened? The answer costs no search.
    let promised = heap.bound(alarm_size);
    println!(
        "{} logs live, room for {promised} alarms for certain",
        stats.objects
    );
    assert!(promised >= ALARMS);
    for _ in 0..promised {
        heap.alloc_zeroed::<Sample>(LONGEST)?;
    }
    println!("{promised} alarms allocated");
    Ok(())
}
