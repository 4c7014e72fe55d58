//! The system allocator with a count of what each thread has taken, so that tests beside each other do not disturb it.
#![allow(unsafe_code)]

use std::{
    alloc::{GlobalAlloc, Layout, System},
    cell::Cell,
};

#[global_allocator]
static ALLOCATOR: Counting = Counting;

thread_local! {
    // Needs neither an allocation nor a destructor, so the allocator may use it at any time of a thread's life.
    static BYTES: Cell<isize> = const { Cell::new(0) };
}

/// Bytes that this thread has allocated less those that it has freed, as they were asked for.
pub(crate) fn allocated() -> isize {
    BYTES.with(Cell::get)
}

fn count(bytes: isize) {
    BYTES.with(|sum| sum.set(sum.get() + bytes));
}

struct Counting;

// SAFETY: every call is handed to `System` with the arguments it came with, and what `System` gives is given back
// unchanged; so what the caller promises holds for `System`, and what `System` promises holds for the caller. The count
// is a thread's own cell and does not allocate; no layout is larger than `isize::MAX`, and the sum of those that are out is not either.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size() as isize);
        // SAFETY: the caller's promise about `layout` is the one that `System` asks for.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        count(-(layout.size() as isize));
        // SAFETY: `pointer` came from `alloc` or `realloc` here, so from `System`, with this `layout`.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count(size as isize - layout.size() as isize);
        // SAFETY: as for `dealloc`, and the caller promises that `size` is not zero and does not overflow.
        unsafe { System.realloc(pointer, layout, size) }
    }
}
