//! The end of every head: Date, Connection, empty line; rendered at most once a second per worker.

use std::time::{Duration, SystemTime};

use base_clock::Boottime;

/// Value of the Connection field.
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
#[derive(Debug)]
pub(crate) struct Tails {
    /// Field lines that every response has.
    fields: String,
    /// Makes field lines, each ending with CRLF, a part of a header block of HTTP/2.
    encode: fn(&str) -> Box<[u8]>,
    current: Option<RenderedTails>,
}

#[derive(Debug)]
struct RenderedTails {
    until: Boottime,
    default: String,
    keep_alive: String,
    close: String,
    /// The fields for HTTP/2, as part of a header block.
    http2: Box<[u8]>,
}

impl Tails {
    /// Ends with these field lines, each ending with CRLF; `encode` makes such lines a part of a
    /// header block of HTTP/2.
    pub(crate) const fn new(fields: String, encode: fn(&str) -> Box<[u8]>) -> Self {
        Self {
            fields,
            encode,
            current: None,
        }
    }

    /// The end of a head sent at `now`. A wall clock that is set shows within a second.
    #[inline]
    pub(crate) fn get(&mut self, now: Boottime, persistence: Persistence) -> &[u8] {
        let current = self.current(now);
        match persistence {
            Persistence::Default => &current.default,
            Persistence::KeepAlive => &current.keep_alive,
            Persistence::Close => &current.close,
        }
        .as_bytes()
    }

    /// The end of a header block sent at `now`.
    #[inline]
    pub(crate) fn get_http2(&mut self, now: Boottime) -> &[u8] {
        &self.current(now).http2
    }

    #[inline]
    fn current(&mut self, now: Boottime) -> &RenderedTails {
        if self.current.as_ref().is_some_and(|old| now >= old.until) {
            self.current = None;
        }
        self.current.get_or_insert_with(|| {
            RenderedTails::render(&self.fields, self.encode, now, base_clock::wall())
        })
    }
}

impl RenderedTails {
    #[cold]
    fn render(
        fields: &str,
        encode: fn(&str) -> Box<[u8]>,
        now: Boottime,
        wall: SystemTime,
    ) -> Self {
        let date = httpdate::fmt_http_date(wall);
        let since_epoch = wall
            .duration_since(SystemTime::UNIX_EPOCH)
            .unwrap_or_default();
        let left = Duration::from_secs(1)
            .saturating_sub(Duration::from_nanos(since_epoch.subsec_nanos().into()));
        Self {
            until: now.plus(left),
            default: format!("{fields}Date: {date}\r\n\r\n"),
            keep_alive: format!("{fields}Date: {date}\r\nConnection: keep-alive\r\n\r\n"),
            http2: encode(&format!("{fields}Date: {date}\r\n")),
            close: format!("{fields}Date: {date}\r\nConnection: close\r\n\r\n"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tail_lives_until_the_second_ends() {
        let wall = SystemTime::UNIX_EPOCH + Duration::from_millis(784_111_777_250);
        let current = RenderedTails::render(
            "A: b\r\n",
            |_| Box::default(),
            Boottime::from_nanos(1_000),
            wall,
        );
        assert_eq!(current.until, Boottime::from_nanos(750_001_000));
        assert_eq!(
            current.close,
            "A: b\r\nDate: Sun, 06 Nov 1994 08:49:37 GMT\r\nConnection: close\r\n\r\n"
        );
    }
}
