//! A value in the storage: what was read last, and what is still to be written.

use std::io;

use super::storage::CertificateStorage;

/// One value of the storage, as this node knows it.
///
/// A value that could not be written is kept and written again. Until then the older value in the
/// storage is not taken for news.
pub(super) struct StoredValue {
    key: String,
    /// The value that the storage had when it was last read or written.
    loaded: Vec<u8>,
    /// Value that the storage did not take.
    unsaved: Option<Vec<u8>>,
}

impl StoredValue {
    /// The value with this name, not read yet.
    pub(super) fn new(key: String) -> Self {
        Self {
            key,
            loaded: Vec::new(),
            unsaved: None,
        }
    }

    /// Reads the value. Returns it if another node has changed it since it was last read; empty: it
    /// was taken away. It counts as unread until [`Self::accept`].
    ///
    /// # Errors
    ///
    /// The storage cannot be read.
    pub(super) fn read_change(
        &mut self,
        storage: &dyn CertificateStorage,
    ) -> io::Result<Option<Vec<u8>>> {
        let value = storage.load(&self.key)?.unwrap_or_default();
        if self.unsaved.as_ref() == Some(&value) {
            // It was stored although the storage said that it failed.
            self.unsaved = None;
            self.loaded = value;
            return Ok(None);
        }
        Ok((value != self.loaded).then_some(value))
    }

    /// Takes note of a change that was read. What was not saved is still to be written.
    pub(super) fn accept(&mut self, value: Vec<u8>) {
        self.loaded = value;
    }

    /// Gives up what was not saved: another node has stored something better.
    pub(super) fn forget_unsaved(&mut self) {
        self.unsaved = None;
    }

    /// True if a value is still to be written.
    pub(super) fn is_unsaved(&self) -> bool {
        self.unsaved.is_some()
    }

    /// True if the storage has, or is to have, a value that is not empty.
    pub(super) fn is_set(&self) -> bool {
        !self.unsaved.as_ref().unwrap_or(&self.loaded).is_empty()
    }

    /// Replaces the value.
    ///
    /// # Errors
    ///
    /// The storage fails. The value is kept for [`Self::write_unsaved`].
    pub(super) fn write(
        &mut self,
        value: Vec<u8>,
        storage: &dyn CertificateStorage,
    ) -> io::Result<()> {
        self.unsaved = Some(value);
        self.write_unsaved(storage)
    }

    /// Writes what was not saved, if there is something.
    ///
    /// # Errors
    ///
    /// The storage fails again.
    pub(super) fn write_unsaved(&mut self, storage: &dyn CertificateStorage) -> io::Result<()> {
        if let Some(value) = self.unsaved.take() {
            if let Err(error) = storage.store(&self.key, &value) {
                self.unsaved = Some(value);
                return Err(error);
            }
            self.loaded = value;
        }
        Ok(())
    }
}
