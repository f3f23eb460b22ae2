// SPDX-License-Identifier: MIT
//! Panics caught by `catch_unwind`, at every depth, with destructors on the way; threads; closures;
//! generic functions. Linked with count.o, which counts the calls.

use std::os::raw::c_char;
use std::panic::{catch_unwind, resume_unwind, AssertUnwindSafe};

extern "C" {
    fn count_named(name: *const c_char);
    fn count_left();
}

/// The compiler knows nothing of the value behind it.
#[inline(always)]
fn black_box<T>(value: T) -> T {
    let same = unsafe { std::ptr::read_volatile(&value) };
    std::mem::forget(value);
    same
}

struct Counted;

impl Drop for Counted {
    #[inline(always)]
    fn drop(&mut self) {
        unsafe { count_left() }
    }
}

macro_rules! counted {
    ($name:literal) => {
        unsafe { count_named(concat!($name, "\0").as_ptr() as *const c_char) };
        let _counted = Counted;
    };
}

struct Resource(u64);

impl Drop for Resource {
    #[inline(always)]
    fn drop(&mut self) {
        release(self.0);
    }
}

#[inline(never)]
fn release(n: u64) {
    counted!("release");
    leaf(black_box(n));
}

#[inline(never)]
fn leaf(n: u64) -> u64 {
    counted!("leaf");
    black_box(n * 3)
}

#[inline(never)]
fn fails(n: u64) -> u64 {
    counted!("fails");
    leaf(n);
    if n % 3 == 0 {
        panic!("three in {}", n);
    }
    if n % 3 == 1 {
        resume_unwind(Box::new(n));
    }
    let numbers = vec![1u64, 2, 3];
    numbers[black_box(n as usize + 3)]
}

#[inline(never)]
fn nest(levels: u64, n: u64) -> u64 {
    counted!("nest");
    let held = Resource(levels);
    let r = if levels == 0 { fails(n) } else { nest(levels - 1, n) };
    leaf(r) + black_box(held.0)
}

#[inline(never)]
fn takes(n: u64) -> u64 {
    counted!("takes");
    let r = match catch_unwind(AssertUnwindSafe(|| nest(n % 6, n))) {
        Ok(value) => value,
        Err(payload) => match payload.downcast_ref::<u64>() {
            Some(value) => 1000 + value,
            None => match payload.downcast_ref::<String>() {
                Some(text) => text.len() as u64,
                None => 7,
            },
        },
    };
    leaf(r);
    nest_again(n % 4);
    r
}

#[inline(never)]
fn nest_again(levels: u64) -> u64 {
    counted!("nest_again");
    let r = if levels == 0 { leaf(1) } else { nest_again(levels - 1) };
    black_box(r + 1)
}

#[inline(never)]
fn work(rounds: u64) -> u64 {
    counted!("work");
    let mut sum = 0u64;
    for n in 0..rounds {
        sum = sum.wrapping_mul(31).wrapping_add(takes(n));
    }
    black_box(sum)
}

fn main() {
    std::panic::set_hook(Box::new(|_| {}));
    println!("caught {}", work(100));
    let threads: Vec<_> = (0..4).map(|n| std::thread::spawn(move || work(20 + n))).collect();
    for thread in threads {
        println!("thread {}", thread.join().unwrap());
    }
    let failed = std::thread::spawn(|| nest(3, 3)).join();
    println!("failed {}", failed.is_err());
    std::process::exit(if failed.is_err() { 11 } else { 0 });
}
