//! A client of HTTP/2 whose turns do not depend on time.

use std::collections::BTreeMap;
use std::io;

use super::frames::{
    DATA, END_HEADERS, END_STREAM, Frame, Frames, GO_AWAY, HEADERS, PING, RESET, ReadWrite,
    SETTINGS, WINDOW, frame, status_of,
};

/// SETTINGS_INITIAL_WINDOW_SIZE (RFC 9113 section 6.5.2).
const INITIAL_WINDOW_SIZE: u16 = 4;
/// The largest window, in bytes (section 6.9.1). It is never opened again.
const LARGEST_WINDOW: u32 = (1 << 31) - 1;
/// The window of a connection before it is opened (section 6.9.2).
const FIRST_WINDOW: u32 = (1 << 16) - 1;

/// A response, read whole.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Http2Response {
    /// The status code.
    pub status: u16,
    /// The whole body.
    pub body: Vec<u8>,
}

/// A connection that sends requests in one write and waits until all of them are answered. It sends
/// nothing else meanwhile: what it owes the server leaves with the next requests. It takes less
/// than 2 GiB of bodies.
#[derive(Debug)]
pub struct Http2Connection {
    frames: Frames,
    /// The stream of the next request.
    next: u32,
    /// Acknowledgements.
    owed: Vec<u8>,
    is_ending: bool,
}

impl Http2Connection {
    /// Begins a connection whose windows are as large as windows can be. `stream` is a socket, if
    /// the server knows HTTP/2 in clear text (section 3.3), or has negotiated `h2`.
    ///
    /// # Errors
    /// The connection fails.
    pub fn open(stream: impl ReadWrite + 'static) -> io::Result<Self> {
        let frames = Frames::open(stream, &[(INITIAL_WINDOW_SIZE, LARGEST_WINDOW)])?;
        let increment = LARGEST_WINDOW - FIRST_WINDOW;
        Ok(Self {
            frames,
            next: 1,
            owed: frame(WINDOW, 0, 0, &increment.to_be_bytes()),
            is_ending: false,
        })
    }

    /// True if the server wants no further request here (RFC 9113 section 6.8).
    #[must_use]
    pub fn is_ending(&self) -> bool {
        self.is_ending
    }

    /// Sends a request without a body for each header block, in one write, and waits for all
    /// responses. They are in the order of the requests.
    ///
    /// # Errors
    /// The connection or a stream ends before its response does, or the server does not answer in
    /// time.
    pub fn send(&mut self, blocks: &[impl AsRef<[u8]>]) -> io::Result<Vec<Http2Response>> {
        let mut bytes = std::mem::take(&mut self.owed);
        let mut responses = BTreeMap::new();
        for block in blocks {
            let flags = END_STREAM | END_HEADERS;
            bytes.extend(frame(HEADERS, flags, self.next, block.as_ref()));
            responses.insert(self.next, Http2Response::default());
            self.next += 2;
        }
        self.frames.write(&bytes)?;
        let mut open = blocks.len();
        while open > 0 {
            let frame = self.frames.receive()?;
            let frame = frame.ok_or_else(|| io::Error::other("the connection has ended"))?;
            open -= usize::from(self.take(&frame, &mut responses)?);
        }
        Ok(responses.into_values().collect())
    }

    /// Takes a frame; true if it is the last one of a stream.
    fn take(
        &mut self,
        received: &Frame,
        responses: &mut BTreeMap<u32, Http2Response>,
    ) -> io::Result<bool> {
        let is_ack = received.flags & END_STREAM != 0;
        match received.kind {
            SETTINGS | PING => {
                if !is_ack {
                    let payload = match received.kind {
                        PING => &received.payload[..],
                        _ => &[],
                    };
                    self.owed
                        .extend(frame(received.kind, END_STREAM, 0, payload));
                }
                return Ok(false);
            }
            GO_AWAY if received.error() == Some(0) => {
                self.is_ending = true;
                return Ok(false);
            }
            RESET | GO_AWAY => {
                let error = received.error();
                return Err(io::Error::other(format!("the server's error {error:?}")));
            }
            HEADERS | DATA => {}
            _ => return Ok(false),
        }
        let response = responses
            .get_mut(&received.stream)
            .ok_or_else(|| io::Error::other("a frame of a stream that is not open"))?;
        match received.kind {
            HEADERS => response.status = status_of(&received.payload),
            _ => response.body.extend_from_slice(&received.payload),
        }
        Ok(received.flags & END_STREAM != 0)
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read as _, Write as _};
    use std::net::{TcpListener, TcpStream};

    use super::super::frames::head;
    use super::*;

    /// The next bytes that the server reads.
    fn read(server: &mut TcpStream, len: usize) -> Vec<u8> {
        let mut bytes = vec![0; len];
        server.read_exact(&mut bytes).unwrap();
        bytes
    }

    #[test]
    fn responses_of_mixed_streams_are_in_the_order_of_the_requests() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (mut server, _) = listener.accept().unwrap();
        let mut client = Http2Connection::open(client).unwrap();
        let frames = [
            frame(SETTINGS, 0, 0, &[]),
            frame(SETTINGS, END_STREAM, 0, &[]),
            frame(HEADERS, END_HEADERS, 3, &[0x88]),
            frame(DATA, 0, 3, b"ab"),
            frame(PING, 0, 0, b"12345678"),
            frame(HEADERS, END_HEADERS | END_STREAM, 1, &[0x8d]),
            frame(DATA, END_STREAM, 3, b"c"),
        ];
        server.write_all(&frames.concat()).unwrap();
        let blocks = [head("GET", "/a"), head("GET", "/b")];
        let responses = client.send(&blocks).unwrap();
        let found = responses.iter().map(|one| (one.status, &one.body[..]));
        assert_eq!(found.collect::<Vec<_>>(), [(404, &b""[..]), (200, b"abc")]);

        // Acknowledgements leave with the next requests, and not before.
        let preface = 24 + (9 + 6) + (9 + 4);
        let first = read(&mut server, preface + 2 * (9 + blocks[0].len()));
        assert!(first.ends_with(&frame(HEADERS, END_STREAM | END_HEADERS, 3, &blocks[1])));
        client.frames.write(&client.owed).unwrap();
        let owed = [
            frame(SETTINGS, END_STREAM, 0, &[]),
            frame(PING, END_STREAM, 0, b"12345678"),
        ];
        assert_eq!(read(&mut server, owed.concat().len()), owed.concat());
    }

    #[test]
    fn a_stream_that_is_reset_is_an_error() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (mut server, _) = listener.accept().unwrap();
        let reset = frame(RESET, 0, 1, &7_u32.to_be_bytes());
        server.write_all(&reset).unwrap();
        let mut client = Http2Connection::open(client).unwrap();
        let error = client.send(&[head("GET", "/")]).unwrap_err();
        assert!(error.to_string().contains('7'), "{error}");
    }
}
