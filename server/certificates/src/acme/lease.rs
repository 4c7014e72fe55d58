//! The lease that lets one node of a site ask the authority.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use base_clock::Boottime;
use parking_lot::Mutex;
use tokio::time::sleep;

use super::storage::CertificateStorage;

/// A lease is prolonged after this part of its time, so that it outlasts a short fault of the
/// storage.
const PROLONGED_AFTER: u32 = 10;

/// A lock in the storage, and how long this node may rely on it.
///
/// The storage decides which node holds the lease. This node also counts the time itself: a machine
/// that was suspended, or that did not reach the storage, may have lost the lease to a node that
/// has freed it since.
pub(super) struct OrderLease {
    storage: Arc<dyn CertificateStorage>,
    key: String,
    duration: Duration,
    /// When the storage was last asked with success; `None` if this node does not hold the lease.
    prolonged_at: Mutex<Option<Boottime>>,
}

impl OrderLease {
    /// A lease that no node holds yet, under the name `key`.
    pub(super) fn new(
        storage: Arc<dyn CertificateStorage>,
        key: String,
        duration: Duration,
    ) -> Self {
        Self {
            storage,
            key,
            duration,
            prolonged_at: Mutex::new(None),
        }
    }

    /// Takes the lease; `false` if another node holds it.
    ///
    /// # Errors
    ///
    /// The storage fails. A lease that was held before lasts on.
    pub(super) fn take(&self) -> io::Result<bool> {
        let asked_at = Boottime::now();
        let is_taken = self.storage.lock(&self.key, self.duration)?;
        *self.prolonged_at.lock() = is_taken.then_some(asked_at);
        Ok(is_taken)
    }

    /// Lets the lease begin anew; `false` if it is lost.
    ///
    /// # Errors
    ///
    /// As [`Self::take`].
    pub(super) fn prolong(&self) -> io::Result<bool> {
        Ok(self.is_held() && self.take()?)
    }

    /// True while no other node can have taken the lease.
    pub(super) fn is_held(&self) -> bool {
        let prolonged_at = *self.prolonged_at.lock();
        prolonged_at.is_some_and(|moment| Boottime::now().since(moment) < self.duration)
    }

    /// Prolongs the lease again and again. Returns when the lease is lost.
    ///
    /// # Errors
    ///
    /// The lease is lost because the storage fails.
    pub(super) async fn keep(&self) -> io::Result<()> {
        loop {
            sleep(self.duration / PROLONGED_AFTER).await;
            match self.prolong() {
                Ok(true) => {}
                Ok(false) => return Ok(()),
                Err(_) if self.is_held() => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Frees the lease if this node holds it.
    ///
    /// # Errors
    ///
    /// The storage fails. The lease ends by itself.
    pub(super) fn release(&self) -> io::Result<()> {
        let is_held = self.is_held();
        *self.prolonged_at.lock() = None;
        if is_held {
            self.storage.unlock(&self.key)
        } else {
            Ok(())
        }
    }
}
