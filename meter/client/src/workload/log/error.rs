//! Why nothing could be learned from an access log.

use std::fmt;

/// A log that cannot be used; a sentence with its path.
#[derive(Debug)]
pub struct LogError(pub(super) String);

impl fmt::Display for LogError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0)
    }
}

impl std::error::Error for LogError {}
