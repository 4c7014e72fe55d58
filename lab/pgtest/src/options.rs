//! What a server is to be like.

use std::path::PathBuf;

use crate::{Error, Postgres, programs};

/// Settings of a server before it starts; the defaults of a test cluster where they say nothing.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// The folder of the server's programs; `None` is the usual one.
    pub(crate) programs: Option<PathBuf>,
    settings: Vec<(String, String)>,
}

impl Options {
    /// The defaults: `fsync` off, everything else PostgreSQL's own.
    pub fn new() -> Self {
        Self::default()
    }

    /// The defaults on each other version of PostgreSQL on this machine: Debian's, and those
    /// that `cargo xtask programs` has fetched.
    pub fn other_versions() -> Vec<Self> {
        let others = programs::others().into_iter();
        let of = |programs| Self {
            programs: Some(programs),
            ..Self::default()
        };
        others.map(of).collect()
    }

    /// Any setting of `postgresql.conf`; the last of a name counts.
    #[must_use]
    pub fn set(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.settings.push((name.into(), value.into()));
        self
    }

    /// `wal_level = logical`, with room for replication slots: what a change feed needs.
    #[must_use]
    pub fn logical(self) -> Self {
        self.set("wal_level", "logical")
            .set("max_wal_senders", "10")
            .set("max_replication_slots", "10")
    }

    /// How many connections the server takes.
    #[must_use]
    pub fn max_connections(self, connections: u32) -> Self {
        self.set("max_connections", connections.to_string())
    }

    /// Waits for the disk at each commit, as a production server does.
    #[must_use]
    pub fn durable(self) -> Self {
        self.set("fsync", "on").set("full_page_writes", "on")
    }

    /// Makes the cluster and starts the server.
    ///
    /// # Errors
    /// PostgreSQL is not installed, or the cluster could not be made or started; the message has
    /// the end of the log.
    pub fn start(self) -> Result<Postgres, Error> {
        Postgres::with(&self)
    }

    /// The settings as the server's arguments: they hold for restarts too.
    pub(crate) fn arguments(&self) -> Vec<String> {
        let usual = [
            ("fsync", "off"),
            ("full_page_writes", "off"),
            // A test reads the log after a failure; the log is never rotated.
            ("logging_collector", "off"),
            ("log_destination", "stderr"),
        ];
        let usual = usual.map(|(name, value)| (name.to_owned(), value.to_owned()));
        usual
            .iter()
            .chain(&self.settings)
            .flat_map(|(name, value)| ["-c".to_owned(), format!("{name}={value}")])
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::Options;

    #[test]
    fn later_settings_override_earlier_ones() {
        let arguments = Options::new().durable().max_connections(7).arguments();
        let at = |text: &str| arguments.iter().position(|argument| argument == text);
        assert!(at("fsync=off").unwrap() < at("fsync=on").unwrap());
        assert!(at("max_connections=7").is_some());
    }
}
