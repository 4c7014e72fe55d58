//! File descriptors: every connection takes one, and the usual soft limit is 1024.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Descriptors that are not connections: listeners, database files, the log, event loops, watched folders.
const RESERVE: u64 = 128;

/// Raises the soft limit to the hard one, and gives the connections that fit under it, at most `wanted`.
pub(crate) fn make_room(wanted: usize) -> usize {
    let limit = getrlimit(Resource::Nofile);
    if limit.current != limit.maximum {
        let raised = Rlimit {
            current: limit.maximum,
            maximum: limit.maximum,
        };
        // Where it is refused, what the old limit leaves is what there is.
        let _ = setrlimit(Resource::Nofile, raised);
    }
    fitting(wanted, getrlimit(Resource::Nofile).current)
}

/// `None` is no limit.
fn fitting(wanted: usize, allowed: Option<u64>) -> usize {
    let Some(allowed) = allowed else {
        return wanted;
    };
    let room = allowed.saturating_sub(RESERVE).max(1);
    wanted.min(usize::try_from(room).unwrap_or(usize::MAX))
}

#[cfg(test)]
mod tests {
    use super::fitting;

    #[test]
    fn connections_fit_under_the_limit() {
        assert_eq!(fitting(10_000, None), 10_000);
        assert_eq!(fitting(10_000, Some(1 << 20)), 10_000);
        assert_eq!(fitting(10_000, Some(1024)), 896);
        assert_eq!(fitting(10_000, Some(16)), 1);
    }
}
