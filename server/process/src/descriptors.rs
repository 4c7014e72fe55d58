//! File descriptors: every connection and every file served from disk takes one, and the usual soft
//! limit is 1024.

use std::fs;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Reserved for later: files that are read or served from disk, the database's files, a reopened
/// log.
const RESERVED: u64 = 64;
/// Descriptors that a worker opens when it starts: its event loop, its waker, a timer, and one to
/// spare.
const RESERVED_PER_WORKER: u64 = 4;

/// Raises the soft limit to the hard limit. Called before anything is opened, because a site may
/// hold more files than the soft limit allows.
pub fn raise() {
    let limit = getrlimit(Resource::Nofile);
    if limit.current != limit.maximum {
        let raised = Rlimit {
            current: limit.maximum,
            maximum: limit.maximum,
        };
        // Where it is refused, what the old limit leaves is what there is.
        let _ = setrlimit(Resource::Nofile, raised);
    }
}

/// Descriptors that the limit leaves for connections.
#[derive(Debug, PartialEq, Eq)]
pub struct DescriptorBudget {
    wanted: usize,
    /// `None` is no limit.
    allowed: Option<u64>,
    open: u64,
    kept: u64,
}

impl DescriptorBudget {
    /// The present room, with the site and its listeners open and its workers not yet started.
    pub fn now(wanted: usize, workers: usize) -> Self {
        Self {
            wanted,
            allowed: getrlimit(Resource::Nofile).current,
            open: open_now(),
            kept: RESERVED + RESERVED_PER_WORKER * workers as u64,
        }
    }

    /// The number of connections that fit, at most the configured number and at least one.
    pub fn connections(&self) -> usize {
        let Some(allowed) = self.allowed else {
            return self.wanted;
        };
        let room = allowed.saturating_sub(self.open + self.kept).max(1);
        self.wanted.min(usize::try_from(room).unwrap_or(usize::MAX))
    }

    /// The warning when fewer connections fit than are configured: how many, why, and the command
    /// that makes room for all.
    pub fn shortage(&self) -> Option<String> {
        let allowed = self.allowed?;
        let fitting = self.connections();
        if fitting == self.wanted {
            return None;
        }
        let needed = self.wanted as u64 + self.open + self.kept;
        Some(format!(
            "limits.connections is {}, but only {fitting} fit: of the {allowed} file descriptors that the process may have, \
             {} are open and {} are kept for files; `ulimit -n {needed}` before the start, or LimitNOFILE={needed} in the \
             unit of systemd, makes room for all",
            self.wanted, self.open, self.kept
        ))
    }
}

/// Descriptors that are open; 0 where `/proc` is not there.
pub(crate) fn open_now() -> u64 {
    // The folder itself is open while it is read.
    fs::read_dir("/proc/self/fd").map_or(0, |entries| (entries.count() as u64).saturating_sub(1))
}

#[cfg(test)]
mod tests {
    use super::{DescriptorBudget, open_now};

    fn room(allowed: Option<u64>) -> DescriptorBudget {
        DescriptorBudget {
            wanted: 10_000,
            allowed,
            open: 30,
            kept: 68,
        }
    }

    #[test]
    fn connections_fit_under_the_limit() {
        for (allowed, fitting) in [
            (None, 10_000),
            (Some(1 << 20), 10_000),
            (Some(10_098), 10_000),
            (Some(10_097), 9_999),
            (Some(1024), 926),
            (Some(16), 1),
        ] {
            assert_eq!(room(allowed).connections(), fitting, "{allowed:?}");
        }
    }

    #[test]
    fn a_shortage_is_said_with_its_figures() {
        assert_eq!(room(None).shortage(), None);
        assert_eq!(room(Some(10_098)).shortage(), None);
        let said = room(Some(1024)).shortage().expect("too few");
        for part in [
            "10000, but only 926 fit",
            "the 1024 file",
            "30 are open and 68",
            "`ulimit -n 10098`",
        ] {
            assert!(said.contains(part), "{said}");
        }
    }

    #[test]
    fn what_is_open_is_counted() {
        assert!(open_now() >= 3);
    }
}
