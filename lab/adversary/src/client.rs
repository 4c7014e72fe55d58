//! One HTTP connection that stays open: enough to ask a node and to read its answer.

use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

/// Longer than any fault lasts: a frozen node answers once it goes on.
const PATIENCE: Duration = Duration::from_secs(60);

/// An answer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) hit: bool,
    pub(crate) location: String,
    /// The `name=value` of a cookie that it sets.
    pub(crate) cookie: String,
    pub(crate) body: String,
}

/// A connection to a node.
#[derive(Debug)]
pub(crate) struct Client {
    stream: BufReader<TcpStream>,
    address: SocketAddr,
}

impl Client {
    pub(crate) fn open(address: SocketAddr) -> io::Result<Self> {
        let stream = TcpStream::connect_timeout(&address, PATIENCE)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_write_timeout(Some(PATIENCE))?;
        stream.set_nodelay(true)?;
        Ok(Self {
            stream: BufReader::new(stream),
            address,
        })
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Asks, with a cookie if it is not empty.
    pub(crate) fn get(&mut self, target: &str, cookie: &str) -> io::Result<Answer> {
        let cookie = match cookie {
            "" => String::new(),
            cookie => format!("Cookie: {cookie}\r\n"),
        };
        let host = self.address;
        let request = format!("GET {target} HTTP/1.1\r\nHost: {host}\r\n{cookie}\r\n");
        self.exchange(&request)
    }

    /// Sends a form of this very site.
    pub(crate) fn post(&mut self, target: &str, form: &str) -> io::Result<Answer> {
        let request = format!(
            "POST {target} HTTP/1.1\r\nHost: {0}\r\nOrigin: http://{0}\r\nContent-Type: application/x-www-form-urlencoded\r\n\
             Content-Length: {1}\r\n\r\n{form}",
            self.address,
            form.len()
        );
        self.exchange(&request)
    }

    fn exchange(&mut self, request: &str) -> io::Result<Answer> {
        self.stream.get_mut().write_all(request.as_bytes())?;
        let invalid = || io::Error::from(io::ErrorKind::InvalidData);
        let head = self.line()?;
        let status = head.split(' ').nth(1).and_then(|word| word.parse().ok());
        let mut answer = Answer {
            status: status.ok_or_else(invalid)?,
            ..Answer::default()
        };
        let mut length = 0;
        loop {
            let line = self.line()?;
            let Some((name, value)) = line.split_once(':') else {
                break;
            };
            match name.to_ascii_lowercase().as_str() {
                "content-length" => length = value.trim().parse().map_err(|_| invalid())?,
                "cache-status" => answer.hit = value.trim() == "millpond; hit",
                "location" => value.trim().clone_into(&mut answer.location),
                "set-cookie" => {
                    let pair = value.split(';').next().unwrap_or_default();
                    pair.trim().clone_into(&mut answer.cookie);
                }
                _ => {}
            }
        }
        let mut body = vec![0; length];
        self.stream.read_exact(&mut body)?;
        answer.body = String::from_utf8(body).map_err(|_| invalid())?;
        Ok(answer)
    }

    fn line(&mut self) -> io::Result<String> {
        let mut line = String::new();
        if self.stream.read_line(&mut line)? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        Ok(line.trim_end().to_owned())
    }
}
