//! Finds the end of a request, and the few facts on which the response depends.

use memchr::memmem;

/// The longest head.
const LONGEST: usize = 64 * 1024;
const END: &[u8] = b"\r\n\r\n";

/// Cuts the bytes of one connection into requests.
#[derive(Default)]
pub(super) struct Scanner {
    /// A head that is not complete.
    partial: Vec<u8>,
    /// Bytes of a body that are still to come.
    body: u64,
}

/// The facts on which the response depends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Request {
    /// The method is HEAD.
    pub(super) is_head: bool,
    /// The client wants the connection to be closed.
    pub close: bool,
}

/// A request that a null server does not support: its head is too long, or its body has no
/// Content-Length.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Refused;

impl Scanner {
    /// The next request whose head is complete. Takes the needed bytes from the front of `bytes`.
    /// Without a complete head it takes all bytes and returns `None`.
    pub(super) fn next(&mut self, bytes: &mut &[u8]) -> Result<Option<Request>, Refused> {
        let skipped = self.body.min(bytes.len() as u64);
        self.body -= skipped;
        *bytes = &bytes[skipped as usize..];
        if bytes.is_empty() {
            return Ok(None);
        }
        let (request, body) = if self.partial.is_empty() {
            let Some(at) = memmem::find(bytes, END) else {
                return self.keep(bytes);
            };
            let (head, rest) = bytes.split_at(at + END.len());
            *bytes = rest;
            parse_head(head)?
        } else {
            let before = self.partial.len();
            // The end may have begun in the bytes before.
            let from = before.saturating_sub(END.len() - 1);
            let fits = bytes.len().min(LONGEST);
            self.partial.extend_from_slice(&bytes[..fits]);
            let Some(at) = memmem::find(&self.partial[from..], END) else {
                self.partial.truncate(before);
                return self.keep(bytes);
            };
            let end = from + at + END.len();
            *bytes = &bytes[end - before..];
            let understood = parse_head(&self.partial[..end]);
            self.partial.clear();
            understood?
        };
        self.body = body;
        Ok(Some(request))
    }

    fn keep(&mut self, bytes: &mut &[u8]) -> Result<Option<Request>, Refused> {
        if self.partial.len() + bytes.len() > LONGEST {
            return Err(Refused);
        }
        self.partial.extend_from_slice(bytes);
        *bytes = &[];
        Ok(None)
    }
}

/// The request of a complete head, and the length of its body.
fn parse_head(head: &[u8]) -> Result<(Request, u64), Refused> {
    let mut lines = head
        .split(|&byte| byte == b'\n')
        .map(<[u8]>::trim_ascii_end);
    let first = lines.next().unwrap_or_default();
    let is_old = first.ends_with(b"HTTP/1.0");
    let mut request = Request {
        is_head: first.starts_with(b"HEAD "),
        close: is_old,
    };
    let mut body = 0;
    for line in lines {
        // Few fields begin with these letters.
        if !matches!(line.first(), Some(b'c' | b'C' | b't' | b'T')) {
            continue;
        }
        if let Some(value) = value(line, b"content-length:") {
            let length = std::str::from_utf8(value).ok();
            body = length.and_then(|text| text.parse().ok()).ok_or(Refused)?;
        } else if let Some(value) = value(line, b"connection:") {
            let value = value.to_ascii_lowercase();
            let has = |token: &[u8]| memmem::find(&value, token).is_some();
            request.close = has(b"close") || is_old && !has(b"keep-alive");
        } else if value(line, b"transfer-encoding:").is_some() {
            return Err(Refused);
        }
    }
    Ok((request, body))
}

fn value<'a>(line: &'a [u8], name: &[u8]) -> Option<&'a [u8]> {
    let (start, rest) = line.split_at_checked(name.len())?;
    start.eq_ignore_ascii_case(name).then(|| rest.trim_ascii())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The requests in `bytes` when they come in pieces of `size`.
    fn scan(bytes: &[u8], size: usize) -> Result<Vec<Request>, Refused> {
        let mut scanner = Scanner::default();
        let mut found = Vec::new();
        for mut piece in bytes.chunks(size) {
            while let Some(request) = scanner.next(&mut piece)? {
                found.push(request);
            }
            assert!(piece.is_empty());
        }
        Ok(found)
    }

    #[test]
    fn requests_are_found_however_they_are_cut() {
        let bytes = b"GET / HTTP/1.1\r\nHost: a\r\n\r\nPOST /b HTTP/1.1\r\ncontent-length: 7\r\n\r\n\r\n\r\nabc\
            HEAD / HTTP/1.1\r\nConnection: Close\r\n\r\nGET / HTTP/1.0\r\n\r\nGET / HTTP/1.0\r\nConnection: Keep-Alive\r\n\r\n";
        let request = |is_head, close| Request { is_head, close };
        let expected = [
            request(false, false),
            request(false, false),
            request(true, true),
            request(false, true),
            request(false, false),
        ];
        for size in 1..=bytes.len() {
            assert_eq!(scan(bytes, size).unwrap(), expected, "pieces of {size}");
        }
    }

    #[test]
    fn unsupported_requests_are_refused() {
        let endless = b"GET / HTTP/1.1\r\nX: ".iter().copied();
        let endless: Vec<u8> = endless.chain([b'x'; 2 * LONGEST]).collect();
        for size in [7, 4096, endless.len()] {
            assert_eq!(scan(&endless, size), Err(Refused));
        }
        for field in [
            "Transfer-Encoding: chunked",
            "Content-Length: -1",
            "Content-Length: 1, 1",
        ] {
            let bytes = format!("POST / HTTP/1.1\r\n{field}\r\n\r\n");
            assert_eq!(scan(bytes.as_bytes(), 9), Err(Refused), "{field}");
        }
    }
}
