//! Memory that will be read soon. A line that is in no cache takes as long to come as a few hundred
//! instructions; asked for ahead, it comes while something else is done.

#![allow(unsafe_code)]

/// Asks for the line of memory in which `it` begins, and does not wait for it.
#[inline(always)]
pub(crate) fn prefetch<T: ?Sized>(it: &T) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: a hint, which reads nothing that the program could see, for any address.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(std::ptr::from_ref(it).cast()) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = it;
}
