//! The one function inside which instructions are counted.

use std::hint::black_box;

/// Does `work` `times` times. `cargo xtask instructions` knows this function by its name, and
/// callgrind counts what the thread does between the function's beginning and its end.
#[inline(never)]
pub(crate) fn counted_instructions(times: u32, work: &mut dyn FnMut()) {
    for _ in 0..times {
        work();
    }
    // So that the last call is no jump that leaves this function before its time.
    black_box(times);
}
