//! The system allocator with a count for each thread, so that concurrent tests do not disturb each
//! other.
#![allow(unsafe_code)]

use std::{
    alloc::{GlobalAlloc, Layout, System},
    cell::Cell,
};

#[global_allocator]
static ALLOCATOR: Counting = Counting;

thread_local! {
    // Needs no allocation and no destructor, so the allocator may use it at any time of a thread's
    // life.
    static BYTES: Cell<isize> = const { Cell::new(0) };
}

/// Bytes that this thread has allocated less those that it has freed, as requested.
pub(crate) fn allocated() -> isize {
    BYTES.with(Cell::get)
}

fn count(bytes: isize) {
    BYTES.with(|sum| sum.set(sum.get() + bytes));
}

struct Counting;

// SAFETY: every call is passed to `System` with unchanged arguments, and the result of `System` is
// returned unchanged. So the caller's promises hold for `System`, and the promises of `System` hold
// for the caller. The count is a thread's own cell and does not allocate. No layout is larger than
// `isize::MAX`, and neither is the sum of all live ones.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size() as isize);
        // SAFETY: the caller's promise about `layout` is the one that `System` asks for.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        count(-(layout.size() as isize));
        // SAFETY: `pointer` came from `alloc` or `realloc` here, so from `System`, with this
        // `layout`.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count(size as isize - layout.size() as isize);
        // SAFETY: as for `dealloc`, and the caller promises that `size` is not zero and does not
        // overflow.
        unsafe { System.realloc(pointer, layout, size) }
    }
}
