//! Challenges that every node of a site answers.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::sleep;

use super::account::storage_failure;
use super::challenges::{ChallengeTable, PublishedChallenge};
use super::failure::AcmeFailure;
use super::lease::OrderLease;
use super::storage::CertificateStorage;
use crate::resolver::Certificates;

/// The challenges in the storage, and the answers to them on this node.
pub(super) struct SharedChallenges {
    storage: Arc<dyn CertificateStorage>,
    certificates: Arc<Certificates>,
    /// Only the node that holds it may change the list.
    lease: Arc<OrderLease>,
    /// The name of the value in the storage: a list in JSON.
    key: String,
    /// The list that this node answers.
    answered: Vec<u8>,
}

impl SharedChallenges {
    pub(super) fn new(
        storage: Arc<dyn CertificateStorage>,
        certificates: Arc<Certificates>,
        lease: Arc<OrderLease>,
        key: String,
    ) -> Self {
        Self {
            storage,
            certificates,
            lease,
            key,
            answered: Vec::new(),
        }
    }

    /// Answers what another node has published.
    pub(super) fn read(&mut self) -> io::Result<()> {
        let value = self.storage.load(&self.key)?.unwrap_or_default();
        if value != self.answered {
            self.answer(value)?;
        }
        Ok(())
    }

    /// Answers, again and again, what other nodes publish; for as long as the caller waits for
    /// something else. Faults are found again by the next [`Self::read`].
    pub(super) async fn keep_reading(&mut self) {
        let Some(interval) = self.storage.poll_interval() else {
            return std::future::pending().await;
        };
        loop {
            sleep(interval).await;
            let _ = self.read();
        }
    }

    /// Publishes these challenges and no others. Returns when every node has had the time to read
    /// them.
    pub(super) async fn publish(
        &mut self,
        challenges: &[PublishedChallenge],
    ) -> Result<(), AcmeFailure> {
        let written = match self.lease.prolong() {
            Ok(true) => self.write(challenges),
            Ok(false) => return Err(AcmeFailure::new("another node asks the authority")),
            Err(error) => Err(error),
        };
        written.map_err(|error| storage_failure(&error))?;
        let interval = self.storage.poll_interval().unwrap_or(Duration::ZERO);
        sleep(interval * 2).await;
        Ok(())
    }

    /// Answers no challenge any more, and lets the other nodes know. If the lease is lost, the list
    /// in the storage is that of another node and stays.
    pub(super) fn withdraw(&mut self) -> io::Result<()> {
        match self.lease.prolong() {
            Ok(false) => self.read(),
            // A storage that fails is found again by the change.
            Ok(true) | Err(_) => self.write(&[]),
        }
    }

    fn write(&mut self, challenges: &[PublishedChallenge]) -> io::Result<()> {
        let value = serde_json::to_vec(challenges)?;
        let stored = self.storage.store(&self.key, &value);
        // This node answers also when the storage fails.
        self.answer(value)?;
        stored
    }

    fn answer(&mut self, value: Vec<u8>) -> io::Result<()> {
        let challenges: Vec<PublishedChallenge> = if value.is_empty() {
            Vec::new()
        } else {
            serde_json::from_slice(&value)?
        };
        let table = ChallengeTable::of(&challenges).map_err(io::Error::other)?;
        self.certificates.set_challenges(table);
        self.answered = value;
        Ok(())
    }
}
