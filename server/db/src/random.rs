//! Numbers that differ between calls and between processes. They are not secret.

use std::hash::{BuildHasher, Hasher, RandomState};

/// A random number: std seeds its hash tables from the system's random numbers.
pub(crate) fn random() -> u64 {
    RandomState::new().build_hasher().finish()
}
