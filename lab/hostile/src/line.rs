//! One connection of a client that behaves.

use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

/// An answer that takes longer is an error.
const PATIENCE: Duration = Duration::from_secs(30);

/// A connection that stays open.
pub(crate) struct Line(BufReader<TcpStream>, SocketAddr);

impl Line {
    pub(crate) fn open(address: SocketAddr) -> io::Result<Self> {
        let stream = TcpStream::connect_timeout(&address, PATIENCE)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_write_timeout(Some(PATIENCE))?;
        stream.set_nodelay(true)?;
        Ok(Self(BufReader::new(stream), address))
    }

    /// The body of a 200.
    pub(crate) fn get(&mut self, target: &str) -> io::Result<Vec<u8>> {
        self.get_with(target, "")
    }

    /// The body of a 200, where the request has these fields besides its Host, each with the end of its line.
    pub(crate) fn get_with(&mut self, target: &str, fields: &str) -> io::Result<Vec<u8>> {
        let request = format!("GET {target} HTTP/1.1\r\nHost: {}\r\n{fields}\r\n", self.1);
        let wrong = |what: &str| io::Error::other(format!("{target}: {what}"));
        self.0.get_mut().write_all(request.as_bytes())?;
        let status = self.line()?;
        if !status.starts_with("HTTP/1.1 200 ") {
            return Err(wrong(&format!("answered with {status:?}")));
        }
        let mut length = None;
        loop {
            let line = self.line()?;
            if line.is_empty() {
                break;
            }
            if let Some((name, value)) = line.split_once(':')
                && name.eq_ignore_ascii_case("content-length")
            {
                length = value.trim().parse().ok();
            }
        }
        let mut body = vec![0; length.ok_or_else(|| wrong("no length"))?];
        self.0.read_exact(&mut body)?;
        Ok(body)
    }

    fn line(&mut self) -> io::Result<String> {
        let mut line = String::new();
        if self.0.read_line(&mut line)? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        Ok(line.trim_end().to_owned())
    }
}
