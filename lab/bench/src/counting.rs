//! The system allocator with a count of the bytes that are out.
#![allow(unsafe_code)]

use std::{
    alloc::{GlobalAlloc, Layout, System},
    sync::atomic::{AtomicUsize, Ordering},
};

#[global_allocator]
static ALLOCATOR: Counting = Counting;
static BYTES: AtomicUsize = AtomicUsize::new(0);

/// Bytes allocated now, by their requested sizes: the allocator's own overhead is not included.
pub(crate) fn allocated() -> usize {
    BYTES.load(Ordering::Relaxed)
}

struct Counting;

// SAFETY: every call is passed to `System` with its arguments, and the result of `System` is
// returned unchanged; so the caller's promises hold for `System`, and the promises of `System` hold
// for the caller. The count is an atomic and neither allocates nor panics.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        BYTES.fetch_add(layout.size(), Ordering::Relaxed);
        // SAFETY: the caller's promise about `layout` is the one that `System` asks for.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        BYTES.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: `pointer` came from `alloc` or `realloc` above, so from `System`, with this
        // `layout`.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        BYTES.fetch_add(size, Ordering::Relaxed);
        BYTES.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: as for `dealloc`, and the caller promises that `size` is not zero and does not
        // overflow.
        unsafe { System.realloc(pointer, layout, size) }
    }
}
