//! What a response says of the store, by `Cache-Status` (RFC 9211).

use std::fmt::Write as _;
use std::time::Duration;

use bytes::Bytes;
use millpond_store::{FillOutcome, MissReason};

/// Source of a response.
#[derive(Clone, Copy, Debug)]
pub enum CacheStatus {
    /// From memory.
    Hit,
    /// Another request had begun it (RFC 9211 section 2.7).
    Collapsed,
    /// Made for this request, and then kept or not; no outcome if it was not to be kept.
    Made(MissReason, Option<FillOutcome>),
    /// Made, of what cannot be kept.
    Uncacheable,
    /// Made, and the first to turn out to be its visitor's own.
    FirstPrivate,
    /// Made for a visitor alone, of what is shared.
    Private,
    /// Made anew for a visitor who has written on another node.
    OwnWrite,
    /// The page of a form that was refused, with what was typed.
    Form,
    /// Nothing is kept.
    Off,
}

/// How long the steps to a response took; zero for one that was not taken.
#[derive(Clone, Copy, Debug, Default)]
pub struct Timing {
    /// The wait for a turn, or for another request that made the page.
    pub queue: Duration,
    /// The database.
    pub database: Duration,
    /// The template.
    pub render: Duration,
}

const NAME: &str = "Cache-Status: ";

impl CacheStatus {
    /// Returns the field line, with its end.
    #[must_use]
    pub const fn line(self) -> Bytes {
        Bytes::from_static(self.text().as_bytes())
    }

    /// Returns the value of the field.
    #[must_use]
    pub fn value(self) -> &'static str {
        let text = self.text().trim_end();
        text.strip_prefix(NAME).unwrap_or(text)
    }

    /// Returns the field lines `Cache-Status` and `Server-Timing`.
    #[must_use]
    pub fn timed(self, timing: Timing) -> Bytes {
        let mut lines = format!("{}Server-Timing: cache;desc={}", self.text(), self.word());
        for (name, time) in [
            ("queue", timing.queue),
            ("db", timing.database),
            ("render", timing.render),
        ] {
            if !time.is_zero() {
                let millis = time.as_secs_f64() * 1000.0;
                let _ = write!(lines, ", {name};dur={millis:.3}");
            }
        }
        lines.push_str("\r\n");
        lines.into()
    }

    const fn word(self) -> &'static str {
        match self {
            Self::Hit => "hit",
            Self::Collapsed => "waited",
            Self::Made(..) | Self::Uncacheable => "miss",
            Self::FirstPrivate | Self::Private => "private",
            Self::OwnWrite | Self::Form | Self::Off => "bypass",
        }
    }

    /// Why the request went forward and what became of the answer (RFC 9211, sections 2.2 and 2.5).
    const fn text(self) -> &'static str {
        use FillOutcome::{Fenced, Outlived, Stored, Unproven};
        use MissReason::{Absent, Epoch, Expired, FeedOld, Invalidated};
        match self {
            Self::Hit => "Cache-Status: millpond; hit\r\n",
            Self::Collapsed => "Cache-Status: millpond; fwd=miss; collapsed\r\n",
            Self::Made(_, Some(Fenced)) => "Cache-Status: millpond; fwd=miss; detail=fenced\r\n",
            Self::Made(_, Some(Outlived)) => {
                "Cache-Status: millpond; fwd=miss; detail=new-epoch\r\n"
            }
            Self::Made(_, Some(Unproven)) => {
                "Cache-Status: millpond; fwd=miss; detail=unproven\r\n"
            }
            Self::Made(Absent, Some(Stored)) => "Cache-Status: millpond; fwd=miss; stored\r\n",
            Self::Made(Absent, None) => "Cache-Status: millpond; fwd=miss\r\n",
            Self::Made(Invalidated | Epoch | Expired, Some(Stored)) => {
                "Cache-Status: millpond; fwd=stale; stored\r\n"
            }
            Self::Made(Invalidated | Epoch | Expired, None) => {
                "Cache-Status: millpond; fwd=stale\r\n"
            }
            Self::Made(FeedOld, Some(Stored)) => {
                "Cache-Status: millpond; fwd=bypass; stored; detail=feed-old\r\n"
            }
            Self::Made(FeedOld, None) => "Cache-Status: millpond; fwd=bypass; detail=feed-old\r\n",
            Self::Uncacheable => "Cache-Status: millpond; fwd=miss; detail=uncacheable\r\n",
            Self::FirstPrivate => "Cache-Status: millpond; fwd=miss; detail=private\r\n",
            Self::Private => "Cache-Status: millpond; fwd=bypass; detail=private\r\n",
            Self::OwnWrite => "Cache-Status: millpond; fwd=bypass; detail=own-write\r\n",
            Self::Form => "Cache-Status: millpond; fwd=bypass; detail=form\r\n",
            Self::Off => "Cache-Status: millpond; fwd=bypass; detail=no-cache\r\n",
        }
    }
}
