//! The sub-protocol of a replication connection: its commands, and what travels in its copy stream
//! (PostgreSQL's manual, "Streaming Replication Protocol").

use std::time::{Duration, SystemTime};

use bytes::{BufMut as _, BytesMut};

use super::reader::Reader;

/// The first version whose stream carries messages, without which nothing shows how old the stream
/// is.
pub(crate) const OLDEST: u32 = 14_00_00;
/// The version from which options of CREATE_REPLICATION_SLOT stand in brackets.
const BRACKETS: u32 = 15_00_00;
/// PostgreSQL counts time from the first second of 2000.
const EPOCH: Duration = Duration::from_secs(946_684_800);

/// Makes a slot that goes with its connection. No snapshot is exported, because no reader uses one.
pub(crate) fn create_slot(slot: &str, version: u32) -> String {
    let slot = identifier(slot);
    if version >= BRACKETS {
        format!("CREATE_REPLICATION_SLOT {slot} TEMPORARY LOGICAL pgoutput (SNAPSHOT 'nothing')")
    } else {
        format!("CREATE_REPLICATION_SLOT {slot} TEMPORARY LOGICAL pgoutput NOEXPORT_SNAPSHOT")
    }
}

/// Starts the stream. Large transactions are streamed before they commit, so that they hold up
/// nothing (coherence.md, rule 20).
pub(crate) fn start(slot: &str, publication: &str) -> String {
    format!(
        "START_REPLICATION SLOT {} LOGICAL 0/0 (proto_version '2', streaming 'on', messages 'true', publication_names {})",
        identifier(slot),
        literal(&identifier(publication)),
    )
}

/// A name in double quotes.
pub(crate) fn identifier(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// A text in single quotes.
pub(crate) fn literal(text: &str) -> String {
    let quoted = text.replace('\'', "''");
    if quoted.contains('\\') {
        format!(" E'{}'", quoted.replace('\\', "\\\\"))
    } else {
        format!("'{quoted}'")
    }
}

/// Message of the copy stream.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Copied<'a> {
    /// A message of the output plugin.
    Data(&'a [u8]),
    /// Everything up to `end` has been sent; whether the server wants to hear from us.
    KeepAlive { end: u64, reply: bool },
}

/// Reads one; `None` if it is neither.
pub(crate) fn read(body: &[u8]) -> Option<Copied<'_>> {
    let mut reader = Reader(body);
    match reader.u8()? {
        b'w' => {
            // Where the data begins and how far the server is, and its clock: 8 bytes each.
            reader.take(24)?;
            Some(Copied::Data(reader.0))
        }
        b'k' => {
            let end = reader.u64()?;
            reader.take(8)?;
            let reply = reader.u8()? != 0;
            Some(Copied::KeepAlive { end, reply })
        }
        _ => None,
    }
}

/// Says that everything up to `position` was received and need not be kept for us.
pub(crate) fn status(position: u64, into: &mut BytesMut) {
    let now = SystemTime::UNIX_EPOCH
        .elapsed()
        .unwrap_or_default()
        .saturating_sub(EPOCH);
    into.put_u8(b'd');
    into.put_u32(4 + 34);
    into.put_u8(b'r');
    // Written, flushed, applied.
    for _ in 0..3 {
        into.put_u64(position);
    }
    // Shown in pg_stat_replication.reply_time; nothing depends on it.
    into.put_u64(u64::try_from(now.as_micros()).unwrap_or(u64::MAX));
    into.put_u8(0);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_quoted_for_their_place() {
        assert_eq!(
            start("s", "it's \"x\""),
            "START_REPLICATION SLOT \"s\" LOGICAL 0/0 (proto_version '2', streaming 'on', messages 'true', publication_names '\"it''s \"\"x\"\"\"')"
        );
        assert!(create_slot("s", 15_00_14).ends_with("(SNAPSHOT 'nothing')"));
        assert!(create_slot("s", 14_00_20).ends_with("NOEXPORT_SNAPSHOT"));
        assert_eq!(literal("a\\'b"), " E'a\\\\''b'");
    }

    #[test]
    fn what_is_cut_short_is_nothing() {
        let alive = [&b"k"[..], &7_u64.to_be_bytes(), &[0; 8], &[1]].concat();
        let read_alive = Copied::KeepAlive {
            end: 7,
            reply: true,
        };
        assert_eq!(read(&alive), Some(read_alive));
        for cut in 0..alive.len() {
            assert_eq!(read(&alive[..cut]), None);
        }
        let data = [&b"w"[..], &[0; 24], b"B"].concat();
        assert_eq!(read(&data), Some(Copied::Data(b"B")));
        assert_eq!(read(&data[..20]), None);
        assert_eq!(read(b"x"), None);
    }

    #[test]
    fn a_status_has_its_length() {
        let mut bytes = BytesMut::new();
        status(9, &mut bytes);
        assert_eq!(bytes.len(), 1 + 38);
        assert_eq!(Reader(&bytes[6..]).u64(), Some(9));
    }
}
