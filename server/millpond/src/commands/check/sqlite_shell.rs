//! The `sqlite3` of this machine, which may write the site's file while the site is served.
//!
//! SQLite 3.7.0 to 3.51.2 can lose the end of a write-ahead log where two connections write or
//! checkpoint at the same moment. Millpond brings its own SQLite, without that fault; another
//! program on the same file may have it.

use std::process::{Command, Stdio};

use millpond_site::{Config, DatabaseUrl};

type Version = (u32, u32, u32);

/// The first with the log that the fault is in, and the first without the fault.
const FAULTY: (Version, Version) = ((3, 7, 0), (3, 51, 3));
/// Earlier lines that were mended too.
const MENDED: [Version; 2] = [(3, 44, 6), (3, 50, 7)];

/// Returns the warning, if a site has a file of SQLite and the `sqlite3` in the `PATH` the fault.
pub(super) fn warning(config: &Config) -> Option<String> {
    if !has_sqlite(config) {
        return None;
    }
    let mut command = Command::new("sqlite3");
    command.arg("--version").stdin(Stdio::null());
    let said = command.stderr(Stdio::null()).output().ok()?;
    let said = String::from_utf8_lossy(&said.stdout);
    let version = said.split_whitespace().next()?;
    is_faulty(read(version)?).then(|| {
        format!(
            "sqlite3 on this machine is {version}; until 3.51.3 (3.50.7, 3.44.6) SQLite can damage a database that two programs \
             write or checkpoint at once: write the site's file with a newer one while the site is served"
        )
    })
}

fn has_sqlite(config: &Config) -> bool {
    if config.has_hosts() {
        let mut hosts = config.hosts.iter();
        return hosts.any(|host| host.read().is_ok_and(|config| has_sqlite(&config)));
    }
    matches!(config.database, DatabaseUrl::Sqlite(_))
}

fn read(version: &str) -> Option<Version> {
    let mut parts = version.split('.').map(|part| part.parse().ok());
    Some((
        parts.next()??,
        parts.next()??,
        parts.next().flatten().unwrap_or(0),
    ))
}

fn is_faulty(version: Version) -> bool {
    let (first, mended) = FAULTY;
    let is_mended = |line: &Version| version.1 == line.1 && version >= *line;
    (first..mended).contains(&version) && !MENDED.iter().any(is_mended)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_versions_with_the_fault_are_known() {
        let faulty = |version: &str| is_faulty(read(version).unwrap());
        for version in [
            "3.7.0", "3.40.1", "3.44.5", "3.45.0", "3.50.6", "3.51.2", "3.51",
        ] {
            assert!(faulty(version), "{version}");
        }
        for version in ["3.6.23", "3.44.6", "3.50.7", "3.51.3", "3.52.0", "4.0.0"] {
            assert!(!faulty(version), "{version}");
        }
        assert_eq!(read("SQLite"), None);
    }
}
