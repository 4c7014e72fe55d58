//! A client that reads whole responses.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};

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
    /// The value of the first field of this name, which is in lower case.
    #[must_use]
    pub fn field(&self, name: &str) -> Option<&str> {
        let found = self.fields.iter().find(|(field, _)| field == name);
        found.map(|(_, value)| value.as_str())
    }

    /// The body as text.
    #[must_use]
    pub fn text(&self) -> String {
        text(&self.body)
    }
}

/// A keep-alive connection. Bytes go out as they are given; a response must have a Content-Length or no body.
pub struct Connection {
    stream: BufReader<TcpStream>,
    address: SocketAddr,
}

impl Connection {
    /// Connects.
    ///
    /// # Panics
    /// The server does not accept.
    #[must_use]
    pub fn open(address: SocketAddr) -> Self {
        let stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.set_write_timeout(Some(PATIENCE)).unwrap();
        stream.set_nodelay(true).unwrap();
        Self {
            stream: BufReader::new(stream),
            address,
        }
    }

    /// A GET request and its response.
    pub fn get(&mut self, target: &str) -> Response {
        self.get_with(target, &[])
    }

    /// With more field lines, such as `Accept-Encoding: br`.
    pub fn get_with(&mut self, target: &str, fields: &[&str]) -> Response {
        let more: String = fields.iter().map(|field| format!("{field}\r\n")).collect();
        self.send(&format!(
            "GET {target} HTTP/1.1\r\nHost: {}\r\n{more}\r\n",
            self.address
        ));
        self.receive()
    }

    /// A form of this very site.
    pub fn post(&mut self, target: &str, form: &str) -> Response {
        self.send(&format!(
            "POST {target} HTTP/1.1\r\nHost: {0}\r\nOrigin: http://{0}\r\nContent-Type: application/x-www-form-urlencoded\r\n\
             Content-Length: {1}\r\n\r\n{form}",
            self.address,
            form.len()
        ));
        self.receive()
    }

    /// Sends `bytes` as they are.
    ///
    /// # Panics
    /// The server does not take them.
    pub fn send(&mut self, bytes: &str) {
        self.stream.get_mut().write_all(bytes.as_bytes()).unwrap();
    }

    /// The next response.
    ///
    /// # Panics
    /// No whole response comes.
    pub fn receive(&mut self) -> Response {
        let head = self.line();
        let status = head
            .split(' ')
            .nth(1)
            .and_then(|status| status.parse().ok());
        let status = status.unwrap_or_else(|| panic!("no status in {head:?}"));
        let mut fields = Vec::new();
        loop {
            let line = self.line();
            let Some((name, value)) = line.split_once(':') else {
                break;
            };
            fields.push((name.to_ascii_lowercase(), value.trim().to_owned()));
        }
        let mut response = Response {
            status,
            fields,
            body: Vec::new(),
        };
        let length = response
            .field("content-length")
            .map_or(0, |n| n.parse().unwrap());
        response.body.resize(length, 0);
        self.stream.read_exact(&mut response.body).unwrap();
        response
    }

    /// Whether the server closes the connection without another byte.
    pub fn is_closed(&mut self) -> bool {
        matches!(self.stream.read(&mut [0]), Ok(0))
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.stream.read_line(&mut line).unwrap();
        line.trim_end().to_owned()
    }
}
