//! One connection that stays open, and asks for one page after the other.

use std::{
    io::{Read as _, Write as _},
    net::TcpStream,
    time::Duration,
};

use crate::{Result, server};

pub(super) struct PageClient {
    stream: TcpStream,
    host: String,
    response: Vec<u8>,
}

impl PageClient {
    /// Connects to the server whose URL is `url`.
    pub(super) fn connect(url: &str) -> Result<Self> {
        let address = url.trim_start_matches("http://");
        let host = address.split('/').next().unwrap_or(address).to_owned();
        let stream = TcpStream::connect(&host)
            .and_then(|stream| {
                stream.set_nodelay(true)?;
                stream.set_read_timeout(Some(Duration::from_secs(30)))?;
                Ok(stream)
            })
            .map_err(|error| format!("{host}: {error}"))?;
        Ok(Self {
            stream,
            host,
            response: Vec::new(),
        })
    }

    /// The body of `path`; anything but 200 is an error.
    pub(super) fn get(&mut self, path: &str) -> Result<String> {
        let request = format!("GET {path} HTTP/1.1\r\nHost: {}\r\n\r\n", self.host);
        let whole = self
            .exchange(&request)
            .map_err(|error| format!("{path}: {error}"))?;
        let text = String::from_utf8_lossy(&self.response[..whole]);
        let (head, body) = text.split_once("\r\n\r\n").unwrap_or((&text, ""));
        if head.starts_with("HTTP/1.1 200 ") {
            Ok(body.to_owned())
        } else {
            Err(format!(
                "{path}: {}",
                head.lines().next().unwrap_or_default()
            ))
        }
    }

    fn exchange(&mut self, request: &str) -> std::io::Result<usize> {
        self.stream.write_all(request.as_bytes())?;
        self.response.clear();
        loop {
            if let Some(length) = server::length(&self.response)
                && self.response.len() >= length
            {
                return Ok(length);
            }
            let mut chunk = [0; 16 << 10];
            match self.stream.read(&mut chunk)? {
                0 => return Err(std::io::ErrorKind::UnexpectedEof.into()),
                read => self.response.extend_from_slice(&chunk[..read]),
            }
        }
    }
}
