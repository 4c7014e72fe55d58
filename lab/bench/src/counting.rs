//! The system allocator with a count of the bytes that are out.
#![allow(unsafe_code)]

use std::{
    alloc::{GlobalAlloc, Layout, System},
    sync::atomic::{AtomicUsize, Ordering},
};

#[global_allocator]
static ALLOCATOR: Counting = Counting;
static BYTES: AtomicUsize = AtomicUsize::new(0);

/// Bytes that are allocated now, as they were asked for: what the allocator adds to each is not in them.
pub(crate) fn allocated() -> usize {
    BYTES.load(Ordering::Relaxed)
}

struct Counting;

// SAFETY: every call is handed to `System` with the arguments it came with, and what `System` gives is given back
// unchanged; so what the caller promises holds for `System`, and what `System` promises holds for the caller. The count
// is an atomic and neither allocates nor panics.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        BYTES.fetch_add(layout.size(), Ordering::Relaxed);
        // SAFETY: the caller's promise about `layout` is the one that `System` asks for.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        BYTES.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: `pointer` came from `alloc` or `realloc` above, so from `System`, with this `layout`.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        BYTES.fetch_add(size, Ordering::Relaxed);
        BYTES.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: as for `dealloc`, and the caller promises that `size` is not zero and does not overflow.
        unsafe { System.realloc(pointer, layout, size) }
    }
}
