// SPDX-License-Identifier: GPL-2.0-only OR MIT
//! A program for a Cortex-M that uses the Rust crate: newlib starts it, and ends QEMU with what main() gives.
//! C that was compiled for another machine faults here.
#![no_std]

use compactfit::{pod, Config, Error, Handle, Heap};
use core::mem::MaybeUninit;
use core::panic::PanicInfo;

extern "C" {
    fn puts(text: *const u8) -> i32;
    fn abort() -> !;
}

pod! {
    struct Sample {
        time: u32,
        value: f32,
    }
}

#[panic_handler]
fn panic(_: &PanicInfo<'_>) -> ! {
    // SAFETY: C's
    unsafe { abort() }
}

/// Logs grow and go, so that objects are moved; the number of moves.
fn run(memory: &mut [MaybeUninit<u8>]) -> Result<u64, Error> {
    let config = Config {
        page_size: 1024,
        ..Config::default()
    };
    let mut heap = Heap::new(memory, &config)?;
    let mut logs = [Handle::<[Sample]>::NULL; 50];
    let mut random = 1_u32;
    for time in 0..2000 {
        random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        let log = &mut logs[(random >> 8) as usize % 50];
        let sample = Sample {
            time,
            value: time as f32,
        };
        let length = if log.is_null() { 0 } else { heap.get(*log)?.len() };
        if length == 0 {
            *log = heap.alloc_slice(&[sample])?;
        } else if length < 20 {
            *log = heap.resize(*log, length + 1)?;
            heap.get_mut(*log)?[length] = sample;
        } else {
            let samples = heap.get(*log)?;
            if samples.iter().any(|one| one.value != one.time as f32) {
                return Err(Error::Invalid);
            }
            heap.free(*log)?;
            *log = Handle::NULL;
        }
    }
    heap.verify().map_err(|_| Error::Invalid)?;
    Ok(heap.stats().moves)
}

#[no_mangle]
pub extern "C" fn main() -> i32 {
    let mut memory = [MaybeUninit::uninit(); 100 << 10];
    let good = matches!(run(&mut memory), Ok(moves) if moves > 0);
    let text: &[u8] = if good { b"ok\0" } else { b"not ok\0" };
    // SAFETY: a C string
    unsafe { puts(text.as_ptr()) };
    i32::from(!good)
}
