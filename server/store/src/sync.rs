//! The synchronisation primitives of the store, which a model checker can replace.
//!
//! Under `--cfg shuttle` they are shuttle's, which runs a test under many schedules. Otherwise the
//! locks are `parking_lot`'s (no poisoning: a fill that panics does so outside every lock) and the
//! rest is std's.

#[cfg(not(shuttle))]
mod primitives {
    pub(crate) use parking_lot::{Mutex, MutexGuard, RwLock};
    pub(crate) use std::sync::Arc;
    pub(crate) use std::sync::atomic;
}

#[cfg(shuttle)]
mod primitives {
    pub(crate) use shuttle::sync::atomic;
    pub(crate) use shuttle::sync::{Arc, MutexGuard};

    /// shuttle's mutex with `parking_lot`'s signature.
    #[derive(Default)]
    pub(crate) struct Mutex<T>(shuttle::sync::Mutex<T>);

    impl<T> Mutex<T> {
        pub(crate) fn new(value: T) -> Self {
            Self(shuttle::sync::Mutex::new(value))
        }

        pub(crate) fn lock(&self) -> MutexGuard<'_, T> {
            self.0
                .lock()
                .unwrap_or_else(|poisoned| poisoned.into_inner())
        }
    }

    /// shuttle's read-write lock with `parking_lot`'s signature.
    #[derive(Default)]
    pub(crate) struct RwLock<T>(shuttle::sync::RwLock<T>);

    impl<T> RwLock<T> {
        pub(crate) fn new(value: T) -> Self {
            Self(shuttle::sync::RwLock::new(value))
        }

        pub(crate) fn read(&self) -> shuttle::sync::RwLockReadGuard<'_, T> {
            self.0
                .read()
                .unwrap_or_else(|poisoned| poisoned.into_inner())
        }

        pub(crate) fn write(&self) -> shuttle::sync::RwLockWriteGuard<'_, T> {
            self.0
                .write()
                .unwrap_or_else(|poisoned| poisoned.into_inner())
        }
    }
}

pub(crate) use primitives::*;

/// Keeps data that several cores write apart (two lines: the adjacent-line prefetcher works in
/// pairs).
#[repr(align(128))]
#[derive(Default)]
pub(crate) struct Padded<T>(pub(crate) T);

impl<T> std::ops::Deref for Padded<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}
