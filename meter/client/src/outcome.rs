//! Kinds of failed requests, and their counts.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// How a request ended without a good response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FailureKind {
    /// The server refused the connection.
    ConnectRefused,
    /// The connection failed otherwise.
    ConnectFailed,
    /// No source port was left.
    NoSourcePort,
    /// The timeout passed.
    Timeout,
    /// The connection ended before the response was complete.
    ClosedEarly,
    /// The connection was reset.
    Reset,
    /// The response was no HTTP.
    BadResponse,
    /// Bytes arrived that answer no request.
    Unsolicited,
    /// A status from 400 to 499 that was not expected.
    Status4xx,
    /// A status from 500 to 599 that was not expected.
    Status5xx,
    /// Another status that was not expected.
    StatusOther,
    /// The deadline passed before the request could be sent.
    Shed,
    /// TLS failed: a handshake or a record.
    Tls,
    /// The status was good and the body failed a check.
    BadBody,
    /// A value that later requests need was not in the response.
    NoMatch,
}

/// Why a request had no good response: the kind, and a detail.
pub type Fault = (FailureKind, Option<&'static str>);

impl FailureKind {
    /// Every kind, in the order in which counts are kept.
    pub const ALL: [Self; 15] = [
        Self::ConnectRefused,
        Self::ConnectFailed,
        Self::NoSourcePort,
        Self::Timeout,
        Self::ClosedEarly,
        Self::Reset,
        Self::BadResponse,
        Self::Unsolicited,
        Self::Status4xx,
        Self::Status5xx,
        Self::StatusOther,
        Self::Shed,
        Self::Tls,
        Self::BadBody,
        Self::NoMatch,
    ];

    /// The key in a run's `errors`.
    pub fn key(self) -> &'static str {
        match self {
            Self::ConnectRefused => "connect_refused",
            Self::ConnectFailed => "connect_failed",
            Self::NoSourcePort => "no_source_port",
            Self::Timeout => "timeout",
            Self::ClosedEarly => "closed_early",
            Self::Reset => "reset",
            Self::BadResponse => "bad_response",
            Self::Unsolicited => "unsolicited",
            Self::Status4xx => "status_4xx",
            Self::Status5xx => "status_5xx",
            Self::StatusOther => "status_other",
            Self::Shed => "shed",
            Self::Tls => "tls",
            Self::BadBody => "bad_body",
            Self::NoMatch => "no_match",
        }
    }

    /// True if it ends an attempt to connect.
    pub(crate) const fn is_about_connecting(self) -> bool {
        matches!(
            self,
            Self::ConnectRefused | Self::ConnectFailed | Self::NoSourcePort | Self::Tls
        )
    }

    /// The kind of a complete response whose status was not expected.
    pub fn of_status(status: u16) -> Self {
        match status {
            400..=499 => Self::Status4xx,
            500..=599 => Self::Status5xx,
            _ => Self::StatusOther,
        }
    }
}

/// Measured requests that did not end with a good response, by kind. Every kind is present, also
/// with a count of 0.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Errors {
    /// Counts by kind: `connect_refused`, `connect_failed`, `no_source_port`, `timeout`,
    /// `closed_early`, `reset`, `bad_response`, `unsolicited` (bytes that answer no request),
    /// `status_4xx`, `status_5xx`, `status_other`, `shed` (past its deadline before it could be
    /// sent), `tls` (a handshake or a record), `bad_body` (a good status with a body that fails a
    /// check), `no_match` (the response lacks a value that later requests of a session need).
    #[serde(flatten)]
    pub by_kind: BTreeMap<String, u64>,
}

impl Errors {
    /// From the counts in the order of [`FailureKind::ALL`].
    pub fn new(counts: &[u64; FailureKind::ALL.len()]) -> Self {
        let by_kind = FailureKind::ALL
            .iter()
            .map(|kind| (kind.key().to_owned(), counts[*kind as usize]))
            .collect();
        Self { by_kind }
    }

    /// The count of one kind; 0 for an unknown name.
    pub fn count(&self, kind: &str) -> u64 {
        self.by_kind.get(kind).copied().unwrap_or(0)
    }

    /// All kinds together.
    pub fn total(&self) -> u64 {
        self.by_kind.values().sum()
    }
}
