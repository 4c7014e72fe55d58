//! A storage in memory, which a test can silence, make refuse, and look into.

use std::collections::HashMap;
use std::io;
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::Duration;

use millpond_certificates::CertificateStorage;

use crate::support::PATIENCE;

/// The nodes that use the storage: the one under test, and the test itself.
pub(crate) const NODE: u8 = 1;
pub(crate) const OTHER: u8 = 2;

/// A storage in memory, as one of its nodes uses it.
#[derive(Clone)]
pub(crate) struct MemoryStorage {
    owner: u8,
    pub(crate) shared: Arc<(Mutex<MemoryValues>, Condvar)>,
}

#[derive(Default)]
pub(crate) struct MemoryValues {
    pub(crate) values: HashMap<String, Vec<u8>>,
    pub(crate) clock: Duration,
    /// The name of the lock that was asked for last.
    pub(crate) lock: String,
    pub(crate) holder: Option<(u8, Duration)>,
    /// How often each node got the lock or had it prolonged, and how often it did not.
    pub(crate) taken: [usize; 3],
    pub(crate) refused: [usize; 3],
    /// Nothing is answered.
    pub(crate) is_silent: bool,
    /// How many calls wait for an answer.
    pub(crate) waiting: usize,
    /// Values whose names end so are not stored.
    pub(crate) unwritable: Vec<&'static str>,
    /// How often each node has read its first value: the challenges.
    pub(crate) rounds: [usize; 3],
}

impl MemoryValues {
    pub(crate) fn take(&mut self, owner: u8, lease: Duration) -> bool {
        let is_free = self
            .holder
            .is_none_or(|(holder, until)| holder == owner || until <= self.clock);
        if is_free {
            self.holder = Some((owner, self.clock + lease));
            self.taken[usize::from(owner)] += 1;
        } else {
            self.refused[usize::from(owner)] += 1;
        }
        is_free
    }
}

impl MemoryStorage {
    pub(crate) fn new() -> Self {
        Self {
            owner: NODE,
            shared: Arc::default(),
        }
    }

    /// The storage as the other node uses it.
    pub(crate) fn other(&self) -> Self {
        Self {
            owner: OTHER,
            shared: Arc::clone(&self.shared),
        }
    }

    /// Waits until the values are so.
    pub(crate) fn wait(
        &self,
        is_so: impl Fn(&MemoryValues) -> bool,
    ) -> MutexGuard<'_, MemoryValues> {
        let (values, changed) = &*self.shared;
        let guard = values.lock().unwrap();
        let waited = changed.wait_timeout_while(guard, PATIENCE, |values| !is_so(values));
        let (guard, result) = waited.unwrap();
        assert!(!result.timed_out(), "the storage is never so");
        guard
    }

    /// Performs a call once the storage answers.
    fn answer<T>(&self, work: impl FnOnce(&mut MemoryValues) -> T) -> io::Result<T> {
        let (values, changed) = &*self.shared;
        let mut guard = values.lock().unwrap();
        guard.waiting += 1;
        changed.notify_all();
        let mut guard = changed
            .wait_while(guard, |values| values.is_silent)
            .unwrap();
        guard.waiting -= 1;
        let result = work(&mut guard);
        changed.notify_all();
        Ok(result)
    }
}

impl MemoryValues {
    /// The value whose name ends so.
    pub(crate) fn value(&self, end: &str) -> Option<Vec<u8>> {
        let mut values = self.values.iter();
        let found = values.find(|(name, _)| name.ends_with(end));
        found.map(|(_, value)| value.clone())
    }
}

impl CertificateStorage for MemoryStorage {
    fn load(&self, name: &str) -> io::Result<Option<Vec<u8>>> {
        self.answer(|values| {
            if name.ends_with("/challenges.json") {
                values.rounds[usize::from(self.owner)] += 1;
            }
            values.values.get(name).cloned()
        })
    }

    fn store(&self, name: &str, value: &[u8]) -> io::Result<()> {
        self.answer(|values| {
            if values.unwritable.iter().any(|end| name.ends_with(end)) {
                return Err(io::Error::from(io::ErrorKind::StorageFull));
            }
            values.values.insert(name.to_owned(), value.to_owned());
            Ok(())
        })?
    }

    fn lock(&self, name: &str, lease: Duration) -> io::Result<bool> {
        self.answer(|values| {
            name.clone_into(&mut values.lock);
            values.take(self.owner, lease)
        })
    }

    fn unlock(&self, _name: &str) -> io::Result<()> {
        self.answer(|values| {
            if values
                .holder
                .is_some_and(|(holder, _)| holder == self.owner)
            {
                values.holder = None;
            }
        })
    }

    fn poll_interval(&self) -> Option<Duration> {
        Some(Duration::from_millis(100))
    }
}
