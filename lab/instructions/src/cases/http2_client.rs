//! A client of HTTP/2 in clear text, and its header blocks (RFC 7541).

use std::net::TcpStream;
use std::ops::RangeInclusive;

use lab_testkit::http2::{Http2Connection, head_of, length};

/// Codes of the Huffman code with their lengths in bits, for the characters of [`file`]'s addresses
/// (RFC 7541 appendix B).
///
/// [`file`]: super::folder::file
const HUFFMAN: [(u8, u32, u32); 19] = [
    (b'.', 0x17, 6),
    (b'/', 0x18, 6),
    (b'0', 0x0, 5),
    (b'1', 0x1, 5),
    (b'2', 0x2, 5),
    (b'3', 0x19, 6),
    (b'4', 0x1a, 6),
    (b'5', 0x1b, 6),
    (b'6', 0x1c, 6),
    (b'7', 0x1d, 6),
    (b'8', 0x1e, 6),
    (b'9', 0x1f, 6),
    (b'e', 0x5, 5),
    (b'f', 0x25, 6),
    (b'i', 0x6, 5),
    (b'l', 0x28, 6),
    (b's', 0x8, 5),
    (b't', 0x9, 5),
    (b'x', 0x79, 7),
];

/// A client that waits for all answers.
pub(super) struct StreamsClient {
    connection: Http2Connection,
    /// True if the server's dynamic table has the fields that it is to remember.
    is_indexed: bool,
}

impl StreamsClient {
    pub(super) fn open(stream: TcpStream) -> Self {
        Self {
            connection: Http2Connection::open(stream).expect("a connection"),
            is_indexed: false,
        }
    }

    /// A request for `target` as h2load sends it: indexes of both tables, and a path in Huffman
    /// code that no table takes in. The first request puts its fields into the dynamic table.
    pub(super) fn indexed_request(&mut self, target: &str) -> Vec<u8> {
        let path = huffman(target);
        // `:path`, the 4th of the static table, as a literal without indexing.
        let mut block = vec![0x04, 0x80 | u8::try_from(path.len()).expect("a short path")];
        block.extend(path);
        // `:scheme: http`, the 6th.
        block.push(0x86);
        if self.is_indexed {
            // `:authority`, put in before `user-agent`; `:method: GET`, the 2nd; `user-agent`.
            block.extend([0x80 | 63, 0x82, 0x80 | 62]);
            return block;
        }
        // Literals with incremental indexing, their names the 1st and the 58th.
        block.push(0x41);
        push_string(&mut block, "localhost");
        block.extend([0x82, 0x40 | 58]);
        push_string(&mut block, "h2load nghttp2/1.52.0");
        self.is_indexed = true;
        block
    }

    /// Sends these requests at once, and reads responses of status 200 with bodies of this length.
    pub(super) fn ask(&mut self, requests: &[Vec<u8>], lengths: RangeInclusive<usize>) {
        for response in self.connection.send(requests).expect("responses") {
            assert_eq!(response.status, 200);
            let length = response.body.len();
            assert!(lengths.contains(&length), "{length} bytes");
        }
    }
}

/// A request for `target` without indexes and codes: the same bytes each time.
pub(super) fn literal_request(target: &str) -> Vec<u8> {
    head_of("http", "GET", target)
}

/// A string that is not coded.
fn push_string(block: &mut Vec<u8>, text: &str) {
    length(block, text.len());
    block.extend_from_slice(text.as_bytes());
}

/// `text` in Huffman code, filled up with ones (RFC 7541 section 5.2).
fn huffman(text: &str) -> Vec<u8> {
    let (mut bytes, mut bits, mut count) = (Vec::new(), 0_u32, 0);
    for character in text.bytes() {
        let code = HUFFMAN.iter().find(|(coded, ..)| *coded == character);
        let (_, code, length) = *code.expect("a character of a file's address");
        bits = bits << length | code;
        count += length;
        while count >= 8 {
            count -= 8;
            bytes.push((bits >> count).to_le_bytes()[0]);
        }
    }
    if count > 0 {
        bytes.push((bits << (8 - count) | 0xff >> count).to_le_bytes()[0]);
    }
    bytes
}
