//! What a response says of the store, by `Cache-Status` (RFC 9211): as `millpond serve` does.

use bytes::Bytes;
use millpond_store::{FillOutcome, MissReason};

/// Where a page came from.
#[derive(Clone, Copy, Debug)]
pub(crate) enum CacheStatus {
    /// From memory.
    Hit,
    /// Another request had begun it.
    Collapsed,
    /// Made for this request, and then kept or not; no outcome if it was not to be kept.
    Made(MissReason, Option<FillOutcome>),
}

const NAME: &str = "Cache-Status: ";

impl CacheStatus {
    /// The field line, with its end.
    pub(crate) fn line(self) -> Bytes {
        Bytes::from_static(self.text().as_bytes())
    }

    /// The value of the field.
    pub(crate) fn value(self) -> &'static str {
        let text = self.text().trim_end();
        text.strip_prefix(NAME).unwrap_or(text)
    }

    fn text(self) -> &'static str {
        use FillOutcome::{Fenced, Outlived, Stored};
        use MissReason::{Absent, Epoch, Expired, FeedOld, Invalidated};
        match self {
            Self::Hit => "Cache-Status: millpond; hit\r\n",
            Self::Collapsed => "Cache-Status: millpond; fwd=miss; collapsed\r\n",
            Self::Made(_, Some(Fenced)) => "Cache-Status: millpond; fwd=miss; detail=fenced\r\n",
            Self::Made(_, Some(Outlived)) => {
                "Cache-Status: millpond; fwd=miss; detail=new-epoch\r\n"
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
        }
    }
}
