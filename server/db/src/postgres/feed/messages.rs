//! The messages that a node leaves in the log and knows again when they come back: heartbeats and
//! the tokens of writes.

use crate::postgres::pending_writes::PREFIX;

/// A message of this node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Note {
    /// A heartbeat, by its number.
    Heartbeat(u64),
    /// The token of a write that waits.
    Write(u64),
}

/// Reads a message; `None` if it is another's. Each node has a name of its own, so that none takes
/// another's for its own.
pub(crate) fn read(node: &str, prefix: &str, content: &[u8]) -> Option<Note> {
    if prefix != PREFIX {
        return None;
    }
    let rest = std::str::from_utf8(content).ok()?.strip_prefix(node)?;
    let (kind, number) = rest.strip_prefix(':')?.split_once(':')?;
    let number = number.parse().ok()?;
    match kind {
        "h" => Some(Note::Heartbeat(number)),
        "w" => Some(Note::Write(number)),
        _ => None,
    }
}

/// True if a message, of whichever node, is the token of a write.
pub(crate) fn is_write(prefix: &str, content: &[u8]) -> bool {
    let kind = std::str::from_utf8(content).ok();
    prefix == PREFIX && kind.and_then(|text| text.split(':').nth(1)) == Some("w")
}

/// Returns the message that a heartbeat leaves in the log.
pub(crate) fn heartbeat(node: &str, number: u64) -> String {
    format!("{node}:h:{number}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_reads_only_its_own_messages() {
        let of = |content: &str| read("0a", PREFIX, content.as_bytes());
        assert_eq!(of(&heartbeat("0a", 7)), Some(Note::Heartbeat(7)));
        assert_eq!(of("0a:w:8"), Some(Note::Write(8)));
        for other in [
            "0b:h:7", "0a:x:7", "0a:h:", "0a:h:-1", "0ah:7", "", "0a:h:7 ",
        ] {
            assert_eq!(of(other), None, "{other}");
        }
        assert!(is_write(PREFIX, b"0b:w:8") && !is_write(PREFIX, b"0b:h:8"));
        assert!(!is_write("another", b"0a:w:8") && !is_write(PREFIX, b"\xff"));
        assert_eq!(read("0a", "another", b"0a:h:7"), None);
        assert_eq!(read("0a", PREFIX, b"\xff"), None);
    }
}
