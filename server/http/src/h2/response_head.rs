//! Heads of responses as header blocks (RFC 9113 sections 8.2 and 8.3.2).

use super::hpack::encoder::{push_field, push_status};
use crate::response::Response;

/// The header block of a response, without its date. It is the same on every connection, so it can
/// be made once and kept with the response.
pub(crate) fn encode_head(response: &Response) -> Box<[u8]> {
    let mut block = Vec::with_capacity(256);
    push_head(&mut block, response);
    block.into()
}

/// Encodes field lines, such as that of the date, as part of a header block.
pub(crate) fn encode_fields(lines: &str) -> Box<[u8]> {
    let mut block = Vec::with_capacity(32);
    for (name, value) in lines.lines().filter_map(|line| line.split_once(':')) {
        let name = name.to_ascii_lowercase();
        push_field(&mut block, name.as_bytes(), value.trim().as_bytes());
    }
    block.into()
}

/// Appends the header block of a response, without its date.
pub(crate) fn push_head(block: &mut Vec<u8>, response: &Response) {
    push_status(block, response.status());
    // The first line has the status.
    let mut is_first = true;
    let mut lower = [0; LONGEST_NAME];
    for part in [response.head(), response.extra()] {
        let lines = part.split(|&b| b == b'\n');
        for line in lines.skip(usize::from(std::mem::take(&mut is_first))) {
            let Some(colon) = memchr::memchr(b':', line) else {
                continue;
            };
            // A name that is too long is none that this server sends.
            let Some(name) = lower.get_mut(..colon) else {
                continue;
            };
            name.copy_from_slice(&line[..colon]);
            name.make_ascii_lowercase();
            if !is_dropped(name) {
                push_field(block, name, line[colon + 1..].trim_ascii());
            }
        }
    }
}

const LONGEST_NAME: usize = 128;

/// Fields of a connection must not be sent (section 8.2.2), and the date is added later.
fn is_dropped(name: &[u8]) -> bool {
    matches!(
        name,
        b"connection"
            | b"keep-alive"
            | b"proxy-connection"
            | b"transfer-encoding"
            | b"upgrade"
            | b"date"
    )
}
