//! A client that sends one request after the other and looks at what the server says about it.

use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use base_clock::Boottime;

/// Longest wait for a piece of an response.
const PATIENCE: Duration = Duration::from_secs(10);

/// A connection that is kept open.
pub(crate) struct TimingClient {
    stream: BufReader<TcpStream>,
    address: SocketAddr,
}

/// Result of one request.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct TimedResponse {
    /// Its status.
    pub(crate) status: u16,
    /// From the request's first byte to the response's last, in microseconds.
    pub(crate) total_us: f64,
    /// The database's part, as the server says (`Server-Timing`), in microseconds.
    pub(crate) database_us: Option<f64>,
    /// `Cache-Status`, empty if there was none.
    pub(crate) cache_status: String,
    /// Bytes of the body.
    pub(crate) bytes: usize,
}

impl TimingClient {
    /// Connects to the server at `address`.
    pub(crate) fn connect(address: SocketAddr) -> io::Result<Self> {
        let stream = TcpStream::connect(address)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        Ok(Self {
            stream: BufReader::with_capacity(1 << 16, stream),
            address,
        })
    }

    /// Asks for `path` and reads the whole response.
    pub(crate) fn get(&mut self, path: &str) -> io::Result<TimedResponse> {
        let request = format!("GET {path} HTTP/1.1\r\nHost: {}\r\n\r\n", self.address);
        let sent = Boottime::now();
        self.stream.get_mut().write_all(request.as_bytes())?;
        let mut response = TimedResponse {
            status: status(&self.line()?)?,
            ..TimedResponse::default()
        };
        loop {
            let line = self.line()?;
            if line.is_empty() {
                break;
            }
            response.note_field(&line);
        }
        let mut body = vec![0; response.bytes];
        self.stream.read_exact(&mut body)?;
        response.total_us = Boottime::now().since(sent).as_secs_f64() * 1e6;
        Ok(response)
    }

    fn line(&mut self) -> io::Result<String> {
        let mut line = String::new();
        if self.stream.read_line(&mut line)? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        line.truncate(line.trim_end().len());
        Ok(line)
    }
}

impl TimedResponse {
    fn note_field(&mut self, line: &str) {
        let Some((name, value)) = line.split_once(':') else {
            return;
        };
        let value = value.trim();
        match name.to_ascii_lowercase().as_str() {
            // Pages always have one; the experiment asks for nothing else.
            "content-length" => self.bytes = value.parse().unwrap_or(0),
            "cache-status" => value.clone_into(&mut self.cache_status),
            "server-timing" => self.database_us = database_us(value),
            _ => {}
        }
    }
}

fn status(line: &str) -> io::Result<u16> {
    let status = line
        .split(' ')
        .nth(1)
        .and_then(|status| status.parse().ok());
    status.ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "no status line"))
}

/// The entry `db;dur=…` of a `Server-Timing` field, which is in milliseconds.
fn database_us(value: &str) -> Option<f64> {
    let entries = value.split(',').map(|entry| entry.trim().split_once(';'));
    let (_, parameter) = entries.flatten().find(|(name, _)| *name == "db")?;
    let millis: f64 = parameter.trim().strip_prefix("dur=")?.parse().ok()?;
    Some(millis * 1e3)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_database_time_is_read_from_its_field() {
        assert_eq!(database_us("db;dur=0.42, render;dur=0.1"), Some(420.0));
        assert_eq!(database_us("render;dur=0.1"), None);
        assert_eq!(database_us("db;dur=x"), None);
    }

    #[test]
    fn fields_are_noted_whatever_their_case() {
        let mut response = TimedResponse::default();
        response.note_field("CONTENT-LENGTH: 17");
        response.note_field("Cache-Status: millpond; hit");
        response.note_field("no field");
        assert_eq!(response.bytes, 17);
        assert_eq!(response.cache_status, "millpond; hit");
        assert_eq!(status("HTTP/1.1 200 OK").unwrap(), 200);
        assert!(status("nonsense").is_err());
    }
}
