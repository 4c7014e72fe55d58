//! Servers that speak HTTP/2: one uses the `h2` crate, the other sends single frames and can break
//! the rules.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::sync::Arc;

use bytes::Bytes;
use h2::server::{self, SendResponse};
use h2::{RecvStream, SendStream};
use http::{Request, Response};
use rustls::ServerConfig;
use tokio::io::{AsyncRead, AsyncWrite};

use crate::stub::StubServer;

/// The bytes before the client's frames (RFC 9113, section 3.4).
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
pub(crate) const HEADERS: u8 = 1;
const RST_STREAM: u8 = 3;
const SETTINGS: u8 = 4;
const GOAWAY: u8 = 7;
pub(crate) const END_STREAM: u8 = 1;
const ACK: u8 = 1;
const END_HEADERS: u8 = 4;

/// A connection of single frames.
pub(crate) struct Frames {
    stream: TcpStream,
}

impl Frames {
    /// Reads the next request: the number of its stream; `None` at the end of the connection.
    pub(crate) fn request(&mut self) -> Option<u32> {
        loop {
            let mut head = [0; 9];
            self.stream.read_exact(&mut head).ok()?;
            let [a, b, c, kind, flags, stream @ ..] = head;
            let mut payload = vec![0; u32::from_be_bytes([0, a, b, c]) as usize];
            self.stream.read_exact(&mut payload).ok()?;
            match kind {
                SETTINGS if flags & ACK == 0 => self.send(SETTINGS, ACK, 0, &[]),
                HEADERS => return Some(u32::from_be_bytes(stream)),
                _ => {}
            }
        }
    }

    pub(crate) fn send(&mut self, kind: u8, flags: u8, stream: u32, payload: &[u8]) {
        let mut frame = (payload.len() as u32).to_be_bytes()[1..].to_vec();
        frame.extend([kind, flags]);
        frame.extend(stream.to_be_bytes());
        frame.extend(payload);
        // The next read notices a client that has gone.
        let _ = self.stream.write_all(&frame);
    }

    /// Status 200 without a body.
    pub(crate) fn answer(&mut self, stream: u32) {
        self.send(HEADERS, END_HEADERS | END_STREAM, stream, &[0x88]);
    }

    /// Status 200 with this `content-length`; DATA is to follow.
    pub(crate) fn announce(&mut self, stream: u32, length: u8) {
        // A literal field without indexing, its name the 28th of HPACK's static table.
        let block = [0x88, 0x0f, 0x0d, 1, b'0' + length];
        self.send(HEADERS, END_HEADERS, stream, &block);
    }

    pub(crate) fn reset(&mut self, stream: u32, reason: h2::Reason) {
        self.send(RST_STREAM, 0, stream, &u32::from(reason).to_be_bytes());
    }

    pub(crate) fn go_away(&mut self, last: u32) {
        let payload = [last.to_be_bytes(), [0; 4]].concat();
        self.send(GOAWAY, 0, 0, &payload);
    }
}

/// Calls `handle` with every connection after its preface; `streams` may be open at a time.
pub(crate) fn frames(streams: u32, handle: impl Fn(Frames) + Send + Sync + 'static) -> StubServer {
    StubServer::start(move |mut stream| {
        let mut preface = [0; PREFACE.len()];
        if stream.read_exact(&mut preface).is_err() {
            return;
        }
        assert_eq!(preface, PREFACE);
        let _ = stream.set_nodelay(true);
        let mut frames = Frames { stream };
        let setting = [&[0, 3][..], &streams.to_be_bytes()].concat();
        frames.send(SETTINGS, 0, 0, &setting);
        handle(frames);
    })
}

/// Answers each request with the number of bytes in its path, and reads its body; over TLS with a
/// `config`.
pub(crate) fn sizes(config: Option<ServerConfig>) -> StubServer {
    let acceptor = config.map(|config| tokio_rustls::TlsAcceptor::from(Arc::new(config)));
    StubServer::start(move |stream| {
        stream.set_nonblocking(true).unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_io()
            .build()
            .unwrap();
        runtime.block_on(async {
            let stream = tokio::net::TcpStream::from_std(stream).unwrap();
            match &acceptor {
                None => serve(stream).await,
                Some(acceptor) => {
                    if let Ok(stream) = acceptor.accept(stream).await {
                        serve(stream).await;
                    }
                }
            }
        });
    })
}

async fn serve(stream: impl AsyncRead + AsyncWrite + Unpin) {
    let Ok(mut connection) = server::handshake(stream).await else {
        return;
    };
    while let Some(Ok((request, respond))) = connection.accept().await {
        // Bodies flow only while the connection is polled, so another task serves them.
        tokio::spawn(answer(request, respond));
    }
}

/// Status 400 where the body is not as long as announced, or has other bytes than `y`.
async fn answer(request: Request<RecvStream>, mut respond: SendResponse<Bytes>) {
    let size = request
        .uri()
        .path()
        .trim_start_matches('/')
        .parse()
        .unwrap();
    let announced = request.headers().get("content-length").map(|length| {
        let length = length.to_str().unwrap();
        length.parse::<usize>().unwrap()
    });
    let (mut body, mut length, mut is_good) = (request.into_body(), 0, true);
    while let Some(Ok(data)) = body.data().await {
        length += data.len();
        is_good &= data.iter().all(|&byte| byte == b'y');
        body.flow_control().release_capacity(data.len()).unwrap();
    }
    is_good &= announced.is_none_or(|announced| announced == length);
    let head = Response::builder()
        .status(if is_good { 200 } else { 400 })
        .header("content-length", size)
        .body(())
        .unwrap();
    if let Ok(stream) = respond.send_response(head, false) {
        send(stream, size).await;
    }
}

/// No faster than the windows of the client allow.
async fn send(mut stream: SendStream<Bytes>, size: usize) {
    let mut left = size;
    while left > 0 {
        stream.reserve_capacity(left);
        let capacity = std::future::poll_fn(|context| stream.poll_capacity(context));
        let Some(Ok(count)) = capacity.await else {
            return;
        };
        left -= count;
        if stream.send_data(vec![b'x'; count].into(), false).is_err() {
            return;
        }
    }
    let _ = stream.send_data(Bytes::new(), true);
}
