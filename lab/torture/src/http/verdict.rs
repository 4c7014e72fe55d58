//! Judges a server's answers: the statuses on one connection, and whether they are allowed answers.

/// Statuses that hostile input may get. 500, 502 and 504 are missing: they blame the server, not
/// the client.
const FAIR: &[u16] = &[
    100, 200, 204, 206, 301, 302, 303, 304, 307, 308, 400, 403, 404, 405, 406, 408, 411, 412, 413,
    414, 415, 416, 417, 421, 426, 429, 431, 501, 503, 505,
];

/// Type, flags and stream of the SETTINGS frame that an HTTP/2 server sends first. They follow the
/// three bytes of its length (RFC 9113 sections 3.4 and 4.1).
const HTTP2_SETTINGS: &[u8] = &[4, 0, 0, 0, 0, 0];

/// The statuses of all answers in `bytes`; none if the input was taken for HTTP/2.
///
/// Bodies are not measured, because the request of an answer is unknown here. So an answer is found
/// by its status line; no body of the site under attack has one.
///
/// # Errors
/// A sentence, if the bytes do not begin with a status line, or hostile input may not get a status.
pub(crate) fn statuses(bytes: &[u8]) -> Result<Vec<u16>, String> {
    if bytes.get(3..9) == Some(HTTP2_SETTINGS) {
        return Ok(Vec::new());
    }
    if !bytes.is_empty() && status(bytes).is_none() {
        let start = &bytes[..bytes.len().min(60)];
        return Err(format!("no status line: {}", start.escape_ascii()));
    }
    let mut found = Vec::new();
    let mut rest = bytes;
    while let Some(at) = rest.iter().position(|&byte| byte == b'H') {
        rest = &rest[at..];
        if let Some(status) = status(rest) {
            if !FAIR.contains(&status) {
                return Err(format!("status {status}"));
            }
            found.push(status);
        }
        rest = &rest[1..];
    }
    Ok(found)
}

/// The status in the status line at the beginning of `bytes` (RFC 9112 section 4).
fn status(bytes: &[u8]) -> Option<u16> {
    let digits = bytes.strip_prefix(b"HTTP/1.1 ")?.get(..4)?;
    let digits = digits.strip_suffix(b" ")?;
    std::str::from_utf8(digits).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::statuses;

    #[test]
    fn answers_are_found_by_their_status_lines() {
        assert_eq!(statuses(b""), Ok(vec![]));
        assert_eq!(statuses(b"\0\0\x06\x04\0\0\0\0\0\0\x03\0\0\0d"), Ok(vec![]));
        let two = b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nHTTHTTP/1.1 400 Bad Request\r\n\r\nspeaks HTTP/1.1\n";
        assert_eq!(statuses(two), Ok(vec![200, 400]));
        assert_eq!(statuses(b"HTTP/1.1 500 x\r\n"), Err("status 500".into()));
        assert!(statuses(b"<html>").is_err());
        assert!(statuses(b"HTTP/1.1 99").is_err());
    }
}
