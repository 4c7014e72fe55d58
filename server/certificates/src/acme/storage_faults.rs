//! Faults of the storage, each reported once, and their end.

use std::io;

use super::AcmeReport;

/// Last failures of the storage. Reading and writing are apart: a database that became a standby is
/// read with success and refuses every change.
#[derive(Debug, Default)]
pub(super) struct StorageFaults {
    read: Option<String>,
    write: Option<String>,
}

impl StorageFaults {
    /// Takes the result of reading all values; returns what is to be reported.
    pub(super) fn note_read(&mut self, result: io::Result<()>) -> Option<AcmeReport> {
        note(&mut self.read, &self.write, result)
    }

    /// True if the last change failed.
    pub(super) fn are_of_changes(&self) -> bool {
        self.write.is_some()
    }

    /// Takes the result of a change; returns what is to be reported.
    pub(super) fn note_write(&mut self, result: io::Result<()>) -> Option<AcmeReport> {
        note(&mut self.write, &self.read, result)
    }
}

fn note(
    fault: &mut Option<String>,
    other: &Option<String>,
    result: io::Result<()>,
) -> Option<AcmeReport> {
    let cause = result.err().map(|error| error.to_string());
    let old = std::mem::replace(fault, cause);
    match fault {
        Some(cause) if old.as_ref() != Some(cause) && other.as_ref() != Some(cause) => {
            let cause = cause.clone();
            Some(AcmeReport::StorageFailed { cause })
        }
        None if old.is_some() && other.is_none() => Some(AcmeReport::StorageRecovered),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::StorageFaults;
    use crate::AcmeReport;

    fn fails(cause: &str) -> io::Result<()> {
        Err(io::Error::other(cause))
    }

    fn failed(cause: &str) -> Option<AcmeReport> {
        let cause = cause.to_owned();
        Some(AcmeReport::StorageFailed { cause })
    }

    #[test]
    fn a_fault_is_reported_once_and_so_is_its_end() {
        let mut faults = StorageFaults::default();
        assert_eq!(faults.note_read(Ok(())), None);
        assert_eq!(faults.note_read(fails("lost")), failed("lost"));
        assert_eq!(faults.note_write(fails("lost")), None);
        assert_eq!(faults.note_read(fails("lost")), None);
        assert_eq!(faults.note_read(fails("refused")), failed("refused"));
        assert_eq!(faults.note_read(Ok(())), None, "changes still fail");
        let recovered = Some(AcmeReport::StorageRecovered);
        assert_eq!(faults.note_write(Ok(())), recovered);
        assert_eq!(faults.note_write(Ok(())), None);
    }

    #[test]
    fn a_storage_that_is_read_and_not_written_is_reported_once() {
        let mut faults = StorageFaults::default();
        assert_eq!(faults.note_write(fails("read-only")), failed("read-only"));
        for _ in 0..3 {
            assert_eq!(faults.note_read(Ok(())), None);
            assert_eq!(faults.note_write(fails("read-only")), None);
        }
    }
}
