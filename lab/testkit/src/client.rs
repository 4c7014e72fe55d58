//! A client that reads whole responses.

use std::io::{self, ErrorKind, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use crate::{PATIENCE, text};

/// A response, read whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Response {
    /// The status code.
    pub status: u16,
    /// Field names in lower case, values trimmed, in order.
    pub fields: Vec<(String, String)>,
    /// The whole body.
    pub body: Vec<u8>,
}

impl Response {
    /// The value of the first field of this name, in upper or lower case.
    #[must_use]
    pub fn field(&self, name: &str) -> Option<&str> {
        let mut fields = self.fields.iter();
        let found = fields.find(|(field, _)| field.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value.as_str())
    }

    /// The body as text.
    #[must_use]
    pub fn text(&self) -> String {
        text(&self.body)
    }
}

/// A keep-alive connection whose errors are values, for clients that expect failures. Bytes are
/// sent unchanged. A response body has a Content-Length or is chunked; a response with neither has
/// no body.
#[derive(Debug)]
pub struct Client {
    stream: TcpStream,
    address: SocketAddr,
    /// Bytes that have arrived and belong to no response yet.
    buffer: Vec<u8>,
}

impl Client {
    /// Connects, and waits at most `patience` for the connection and for each later read and write.
    ///
    /// # Errors
    /// The server does not accept.
    pub fn open(address: SocketAddr, patience: Duration) -> io::Result<Self> {
        let stream = TcpStream::connect_timeout(&address, patience)?;
        stream.set_read_timeout(Some(patience))?;
        stream.set_write_timeout(Some(patience))?;
        stream.set_nodelay(true)?;
        Ok(Self {
            stream,
            address,
            buffer: Vec::new(),
        })
    }

    /// The address that it is connected to.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// A GET request and its response, with more field lines, such as `Accept-Encoding: br`.
    ///
    /// # Errors
    /// The connection fails, or the response is malformed.
    pub fn get(&mut self, target: &str, fields: &[&str]) -> io::Result<Response> {
        let more: String = fields.iter().map(|field| format!("{field}\r\n")).collect();
        let host = self.address;
        self.send(format!(
            "GET {target} HTTP/1.1\r\nHost: {host}\r\n{more}\r\n"
        ))?;
        self.receive()
    }

    /// A form that a page of the same origin sends, and the response.
    ///
    /// # Errors
    /// As [`Client::get`].
    pub fn post(&mut self, target: &str, form: &str) -> io::Result<Response> {
        self.send(format!(
            "POST {target} HTTP/1.1\r\nHost: {0}\r\nOrigin: http://{0}\r\nContent-Type: application/x-www-form-urlencoded\r\n\
             Content-Length: {1}\r\n\r\n{form}",
            self.address,
            form.len()
        ))?;
        self.receive()
    }

    /// Sends `bytes` as they are.
    ///
    /// # Errors
    /// The connection fails.
    pub fn send(&mut self, bytes: impl AsRef<[u8]>) -> io::Result<()> {
        self.stream.write_all(bytes.as_ref())
    }

    /// The socket, for what is no exchange of messages: a half-close, bytes from another thread.
    #[must_use]
    pub fn stream(&self) -> &TcpStream {
        &self.stream
    }

    /// Reads once. Gives the number of bytes; 0 if the connection has ended or was reset.
    ///
    /// # Errors
    /// Nothing arrives in time.
    pub fn fill(&mut self) -> io::Result<usize> {
        let mut piece = [0; 16 << 10];
        loop {
            match self.stream.read(&mut piece) {
                Ok(length) => {
                    self.buffer.extend_from_slice(&piece[..length]);
                    return Ok(length);
                }
                Err(error) if error.kind() == ErrorKind::ConnectionReset => return Ok(0),
                // A read with a time limit is interrupted when the machine was halted.
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Bytes that have arrived and belong to no response yet.
    #[must_use]
    pub fn buffered(&self) -> usize {
        self.buffer.len()
    }

    /// The next response.
    ///
    /// # Errors
    /// The connection ends before the response does, or the response is malformed.
    pub fn receive(&mut self) -> io::Result<Response> {
        let mut response = self.receive_head()?;
        if response.field("transfer-encoding") == Some("chunked") {
            response.body = self.chunks()?;
        } else if let Some(length) = response.field("content-length") {
            let length = length.parse().map_err(|_| malformed(length))?;
            response.body = self.take(length)?;
        }
        Ok(response)
    }

    /// The next response without its body, as the response to a HEAD request is.
    ///
    /// # Errors
    /// As [`Client::receive`].
    pub fn receive_head(&mut self) -> io::Result<Response> {
        let head = self.line()?;
        let status = head.split(' ').nth(1).and_then(|word| word.parse().ok());
        let status = status.ok_or_else(|| malformed(&head))?;
        let mut fields = Vec::new();
        loop {
            let line = self.line()?;
            let Some((name, value)) = line.split_once(':') else {
                break;
            };
            fields.push((name.to_ascii_lowercase(), value.trim().to_owned()));
        }
        Ok(Response {
            status,
            fields,
            body: Vec::new(),
        })
    }

    /// True if the server closes the connection without another byte.
    pub fn is_closed(&mut self) -> bool {
        self.buffer.is_empty() && matches!(self.fill(), Ok(0))
    }

    /// The next `length` bytes.
    fn take(&mut self, length: usize) -> io::Result<Vec<u8>> {
        while self.buffer.len() < length {
            self.more()?;
        }
        Ok(self.buffer.drain(..length).collect())
    }

    /// Reads once; the end of the connection is an error.
    fn more(&mut self) -> io::Result<()> {
        match self.fill()? {
            0 => Err(ErrorKind::UnexpectedEof.into()),
            _ => Ok(()),
        }
    }

    fn chunks(&mut self) -> io::Result<Vec<u8>> {
        let mut body = Vec::new();
        loop {
            let line = self.line()?;
            let size = line.split(';').next().unwrap_or_default();
            let size = usize::from_str_radix(size, 16).map_err(|_| malformed(&line))?;
            if size == 0 {
                // Trailer fields end with an empty line.
                while !self.line()?.is_empty() {}
                return Ok(body);
            }
            body.extend(self.take(size)?);
            if !self.line()?.is_empty() {
                return Err(malformed("a chunk is longer than its size"));
            }
        }
    }

    fn line(&mut self) -> io::Result<String> {
        let end = loop {
            match self.buffer.iter().position(|byte| *byte == b'\n') {
                Some(at) => break at + 1,
                None => self.more()?,
            }
        };
        Ok(text(&self.take(end)?).trim_end().to_owned())
    }
}

fn malformed(what: &str) -> io::Error {
    io::Error::new(ErrorKind::InvalidData, format!("malformed: {what:?}"))
}

/// Sends `bytes`, also such as no client should send, and reads until the server closes.
///
/// # Panics
/// The server does not close in time.
#[must_use]
pub fn exchange(address: SocketAddr, bytes: &[u8]) -> Vec<u8> {
    let mut client = Client::open(address, PATIENCE).unwrap();
    // A server that refuses may close before it has read everything.
    let _ = client.send(bytes);
    while client.fill().unwrap() > 0 {}
    client.buffer
}

/// A [`Client`] that panics where a test should fail.
pub struct Connection(Client);

impl Connection {
    /// Connects.
    ///
    /// # Panics
    /// The server does not accept.
    #[must_use]
    pub fn open(address: SocketAddr) -> Self {
        Self(Client::open(address, PATIENCE).unwrap())
    }

    /// A GET request and its response.
    #[track_caller]
    pub fn get(&mut self, target: &str) -> Response {
        self.get_with(target, &[])
    }

    /// With more field lines, such as `Accept-Encoding: br`.
    ///
    /// # Panics
    /// No whole response arrives.
    #[track_caller]
    pub fn get_with(&mut self, target: &str, fields: &[&str]) -> Response {
        self.0.get(target, fields).unwrap()
    }

    /// A form that a page of the same origin sends.
    ///
    /// # Panics
    /// No whole response arrives.
    #[track_caller]
    pub fn post(&mut self, target: &str, form: &str) -> Response {
        self.0.post(target, form).unwrap()
    }

    /// Sends `bytes` as they are.
    ///
    /// # Panics
    /// The server does not take the bytes.
    #[track_caller]
    pub fn send(&mut self, bytes: impl AsRef<[u8]>) {
        self.0.send(bytes).unwrap();
    }

    /// The next response.
    ///
    /// # Panics
    /// No whole response arrives.
    #[track_caller]
    pub fn receive(&mut self) -> Response {
        self.0.receive().unwrap()
    }

    /// The next response without its body.
    ///
    /// # Panics
    /// No whole head arrives.
    #[track_caller]
    pub fn receive_head(&mut self) -> Response {
        self.0.receive_head().unwrap()
    }

    /// The socket; see [`Client::stream`].
    #[must_use]
    pub fn stream(&self) -> &TcpStream {
        self.0.stream()
    }

    /// Reads once; see [`Client::fill`].
    ///
    /// # Panics
    /// Nothing arrives in time.
    #[track_caller]
    pub fn fill(&mut self) -> usize {
        self.0.fill().unwrap()
    }

    /// Bytes that have arrived and belong to no response yet.
    #[must_use]
    pub fn buffered(&self) -> usize {
        self.0.buffered()
    }

    /// True if the server closes the connection without another byte.
    pub fn is_closed(&mut self) -> bool {
        self.0.is_closed()
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;
    use std::net::TcpListener;

    use super::Connection;

    #[test]
    fn bodies_end_where_their_framing_ends() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut connection = Connection::open(listener.local_addr().unwrap());
        let (mut server, _) = listener.accept().unwrap();
        server
            .write_all(
                b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3;a=b\r\nabc\r\nA\r\n0123456789\r\n0\r\nEnd: 1\r\n\r\n\
                  HTTP/1.1 204 No Content\r\nA: b\r\n\r\nHTTP/1.1 404 Not Found\r\nContent-Length: 2\r\n\r\n\xff\0",
            )
            .unwrap();
        drop(server);
        assert_eq!(connection.receive().body, b"abc0123456789");
        let empty = connection.receive();
        assert_eq!((empty.status, empty.field("a")), (204, Some("b")));
        assert_eq!(connection.receive().body, b"\xff\0");
        assert!(connection.is_closed());
    }
}
