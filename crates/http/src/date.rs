//! The end of every head: Date, Connection, empty line; rendered at most once a second per worker.

use std::cell::RefCell;
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use millpond_store::clock::Boottime;

/// What the Connection field says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Persistence {
    /// Nothing: HTTP/1.1 keeps the connection by default.
    Default,
    /// `keep-alive`, for an HTTP/1.0 client that asked for it.
    KeepAlive,
    /// `close`.
    Close,
}

/// The three possible ends of a head in this second.
#[derive(Debug, Default)]
pub(crate) struct Tails {
    current: RefCell<Option<Current>>,
}

#[derive(Debug)]
struct Current {
    until: Boottime,
    default: Bytes,
    keep_alive: Bytes,
    close: Bytes,
}

impl Tails {
    /// The end of a head sent at `now`. A wall clock that is set shows within a second.
    pub(crate) fn get(&self, now: Boottime, persistence: Persistence) -> Bytes {
        let mut current = self.current.borrow_mut();
        if current.as_ref().is_none_or(|old| now >= old.until) {
            *current = None;
        }
        let current = current.get_or_insert_with(|| Current::render(now, SystemTime::now()));
        match persistence {
            Persistence::Default => &current.default,
            Persistence::KeepAlive => &current.keep_alive,
            Persistence::Close => &current.close,
        }
        .clone()
    }
}

impl Current {
    fn render(now: Boottime, wall: SystemTime) -> Self {
        let date = httpdate::fmt_http_date(wall);
        let since_epoch = wall
            .duration_since(SystemTime::UNIX_EPOCH)
            .unwrap_or_default();
        let left = Duration::from_secs(1)
            .saturating_sub(Duration::from_nanos(since_epoch.subsec_nanos().into()));
        Self {
            until: now.plus(left),
            default: format!("Date: {date}\r\n\r\n").into(),
            keep_alive: format!("Date: {date}\r\nConnection: keep-alive\r\n\r\n").into(),
            close: format!("Date: {date}\r\nConnection: close\r\n\r\n").into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tail_lives_until_the_second_ends() {
        let wall = SystemTime::UNIX_EPOCH + Duration::from_millis(784_111_777_250);
        let current = Current::render(Boottime::from_nanos(1_000), wall);
        assert_eq!(current.until, Boottime::from_nanos(750_001_000));
        assert_eq!(
            &current.close[..],
            b"Date: Sun, 06 Nov 1994 08:49:37 GMT\r\nConnection: close\r\n\r\n"
        );
    }
}
