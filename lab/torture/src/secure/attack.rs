//! The attacks by name, each with the end that it must have.

use std::io;

use super::target::SecureTarget;
use super::{records, streams};

/// How a server ended an attack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AttackEnd {
    /// GOAWAY with this error (RFC 9113 section 7).
    GoAway(u32),
    /// All streams were reset, the last one with this error.
    Reset(u32),
    /// The connection was closed, or reset.
    Closed,
    /// All was sent, and the connection still stood.
    NotEnded,
}

/// PROTOCOL_ERROR and others have their numbers there; this is the one for floods.
const CALM_DOWN: AttackEnd = AttackEnd::GoAway(11);
/// CANCEL.
const CANCELLED: AttackEnd = AttackEnd::Reset(8);

macro_rules! attacks {
    ($($(#[$about:meta])* $name:ident, $text:literal, $run:path, $end:expr;)*) => {
        /// A way to misbehave on a connection with TLS.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum SecureAttack {
            $($(#[$about])* $name,)*
        }

        impl SecureAttack {
            /// All of them.
            pub const ALL: &[Self] = &[$(Self::$name,)*];

            /// Its name in a table.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$name => $text,)*
                }
            }

            /// How it must end.
            #[must_use]
            pub const fn end(self) -> AttackEnd {
                match self {
                    $(Self::$name => $end,)*
                }
            }

            /// Attacks with one connection, until the server ends it.
            ///
            /// # Errors
            /// The server does not accept the connection, or does not end it in time.
            pub fn run(self, target: &SecureTarget) -> io::Result<AttackEnd> {
                match self {
                    $(Self::$name => $run(target),)*
                }
            }
        }
    };
}

attacks! {
    /// Requests that are given up at once (CVE-2023-44487).
    RapidReset, "rapid reset", streams::rapid_reset, CALM_DOWN;
    /// Requests that the server is made to give up (CVE-2025-8671).
    MadeYouReset, "made you reset", streams::made_you_reset, CALM_DOWN;
    /// A head without an end (CVE-2024-27316).
    Continuations, "CONTINUATION flood", streams::continuations, CALM_DOWN;
    /// A byte of a head that means thousands.
    HpackBomb, "HPACK bomb", streams::hpack_bomb, CALM_DOWN;
    /// A byte of a cookie that means thousands.
    CookieBomb, "cookie bomb", streams::cookie_bomb, CALM_DOWN;
    /// Windows that never open.
    StalledStreams, "stalled streams", streams::stalled_streams, CANCELLED;
    /// Windows that are opened byte by byte.
    DrippingWindows, "windows of one byte", streams::dripping_windows, CANCELLED;
    /// SETTINGS again and again.
    SettingsFlood, "SETTINGS flood", streams::settings_flood, CALM_DOWN;
    /// PING again and again.
    PingFlood, "PING flood", streams::ping_flood, CALM_DOWN;
    /// DATA without data.
    EmptyData, "empty DATA", streams::empty_data, CALM_DOWN;
    /// HEADERS without END_HEADERS.
    OpenHead, "open HEADERS", streams::open_head, CALM_DOWN;
    /// A connection without a byte.
    Silent, "silent connection", records::silent, AttackEnd::Closed;
    /// A half ClientHello.
    HalfHello, "half a ClientHello", records::half_a_hello, AttackEnd::Closed;
    /// A ClientHello in single bytes.
    HelloByteByByte, "ClientHello by bytes", records::hello_byte_by_byte, AttackEnd::Closed;
    /// A handshake's message of 64 KB without its end.
    EndlessHello, "endless ClientHello", records::endless_hello, AttackEnd::Closed;
    /// A handshake, and then nothing.
    HandshakeAndNothing, "handshake and nothing", records::handshake_and_nothing, AttackEnd::Closed;
    /// A record without its end.
    PartialRecord, "partial record", records::partial_record, AttackEnd::Closed;
    /// A request, and the beginning of a handshake's message behind it.
    MessageBehindRequest, "message behind a request", records::message_behind_request, AttackEnd::Closed;
    /// A broken record behind the beginning of a handshake's message.
    BrokenMessage, "broken message", records::broken_message, AttackEnd::Closed;
    /// A second handshake in TLS 1.2.
    Renegotiation, "renegotiation", records::renegotiation, AttackEnd::Closed;
    /// A request for one, which only a server may send.
    HelloRequests, "HelloRequest", records::hello_requests, AttackEnd::Closed;
    /// New keys again and again.
    KeyUpdates, "KeyUpdate flood", records::key_updates, AttackEnd::Closed;
    /// Records without a byte.
    EmptyRecords, "empty records", records::empty_records, AttackEnd::Closed;
    /// Records of padding.
    PaddedRecords, "padded records", records::padded_records, AttackEnd::Closed;
    /// Warnings.
    Alerts, "alerts", records::alerts, AttackEnd::Closed;
}
