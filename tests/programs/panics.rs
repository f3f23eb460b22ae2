// SPDX-License-Identifier: MIT
//! Panics below a few calls; the message has the stack.

#[inline(never)]
fn innermost(x: i32) -> i32 {
    if x > 0 {
        panic!("at {}", x)
    }
    x
}

#[inline(never)]
fn middle(x: i32) -> i32 {
    innermost(x) + 1
}

#[inline(never)]
fn outer(x: i32) -> i32 {
    middle(x) * 2
}

fn main() {
    let caught = std::panic::catch_unwind(|| outer(std::env::args().count() as i32));
    println!("{}", caught.is_err());
}
