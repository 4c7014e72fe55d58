//! A request path in its one normal form (RFC 3986 sections 2.1, 5.2.4 and 6.2.2).

use std::borrow::Cow;
use std::fmt;

/// Why a path has no normal form. Each is best answered with 400 or 404.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum PathError {
    /// It does not begin with a slash (such as `*`).
    NotAbsolute,
    /// A percent sign without two hexadecimal digits.
    BadEscape,
    /// A NUL or another control byte.
    Control,
    /// An encoded slash (`%2F`).
    EncodedSlash,
    /// The decoded bytes are not UTF-8.
    NotUtf8,
}

impl fmt::Display for PathError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NotAbsolute => "the path does not begin with a slash",
            Self::BadEscape => {
                "a percent sign in the path is not followed by two hexadecimal digits"
            }
            Self::Control => "the path contains a control character",
            Self::EncodedSlash => "the path contains an encoded slash",
            Self::NotUtf8 => "the path is not UTF-8",
        })
    }
}

impl std::error::Error for PathError {}

/// Decodes percent-escapes once and removes dot segments, which cannot climb above the root:
/// `/../a` is `/a`.
///
/// An encoded slash is refused: decoded it would make two segments of one, and kept as `%2F` it
/// could not be distinguished from `%252F`. Escaped dots count as dots, so that the result never
/// contains `..`. Repeated slashes are kept. Borrows when there is nothing to change, which is the
/// usual case; then it costs one scan.
///
/// ```
/// use millpond_http::path::normalize;
/// assert_eq!(normalize("/a%20b/%2e%2e/c").unwrap(), "/c");
/// ```
///
/// # Errors
/// See [`PathError`].
pub fn normalize(raw: &str) -> Result<Cow<'_, str>, PathError> {
    if !raw.starts_with('/') {
        return Err(PathError::NotAbsolute);
    }
    let Some(at) = raw.bytes().position(|byte| !PLAIN[byte as usize]) else {
        return Ok(Cow::Borrowed(raw));
    };
    // A dot that does not begin a segment is as plain as a letter.
    let mut before = raw.as_bytes()[at - 1];
    let is_plain = |byte: u8| {
        let is_inner_dot = byte == b'.' && before != b'/';
        before = byte;
        PLAIN[byte as usize] || is_inner_dot
    };
    if raw.bytes().skip(at).all(is_plain) {
        return Ok(Cow::Borrowed(raw));
    }
    let decoded = decode(raw)?;
    if !has_dot_segment(&decoded) {
        return Ok(decoded);
    }
    let mut path = String::with_capacity(decoded.len());
    let mut segments = decoded[1..].split('/').peekable();
    while let Some(segment) = segments.next() {
        let is_last = segments.peek().is_none();
        match segment {
            "." | ".." => {
                if segment == ".." {
                    path.truncate(path.rfind('/').unwrap_or(0));
                }
                if is_last {
                    path.push('/');
                }
            }
            _ => {
                path.push('/');
                path.push_str(segment);
            }
        }
    }
    Ok(Cow::Owned(path))
}

/// Bytes that are nothing but themselves: with these alone a path is in its normal form.
const PLAIN: [bool; 256] = {
    let mut table = [true; 256];
    let mut byte = 0;
    while byte < 256 {
        table[byte] =
            !(byte as u8).is_ascii_control() && byte != b'%' as usize && byte != b'.' as usize;
        byte += 1;
    }
    table
};

fn decode(raw: &str) -> Result<Cow<'_, str>, PathError> {
    if raw.bytes().any(|b| b.is_ascii_control()) {
        return Err(PathError::Control);
    }
    if memchr::memchr(b'%', raw.as_bytes()).is_none() {
        return Ok(Cow::Borrowed(raw));
    }
    let mut bytes = Vec::with_capacity(raw.len());
    let mut rest = raw.bytes();
    while let Some(byte) = rest.next() {
        if byte != b'%' {
            bytes.push(byte);
            continue;
        }
        let mut digit = || {
            rest.next()
                .and_then(|b| char::from(b).to_digit(16))
                .and_then(|d| u8::try_from(d).ok())
        };
        let (Some(high), Some(low)) = (digit(), digit()) else {
            return Err(PathError::BadEscape);
        };
        match high << 4 | low {
            b'/' => return Err(PathError::EncodedSlash),
            byte if byte.is_ascii_control() => return Err(PathError::Control),
            byte => bytes.push(byte),
        }
    }
    String::from_utf8(bytes)
        .map(Cow::Owned)
        .map_err(|_| PathError::NotUtf8)
}

fn has_dot_segment(path: &str) -> bool {
    path.contains("/.") && path.split('/').any(|segment| matches!(segment, "." | ".."))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn normal_forms() {
        for (raw, normal) in [
            ("/", "/"),
            ("/a/b", "/a/b"),
            ("/a//b/", "/a//b/"),
            ("/a%20b", "/a b"),
            ("/%C3%A4", "/ä"),
            ("/%252F", "/%2F"),
            ("/a/./b/.", "/a/b/"),
            ("/a/../b", "/b"),
            ("/a/b/..", "/a/"),
            ("/../../etc/passwd", "/etc/passwd"),
            ("/%2e%2E/etc", "/etc"),
            ("/..", "/"),
            ("/...", "/..."),
            ("/.well-known", "/.well-known"),
            ("//..//a", "//a"),
        ] {
            assert_eq!(normalize(raw).as_deref(), Ok(normal), "{raw}");
        }
    }

    #[test]
    fn refusals() {
        for (raw, error) in [
            ("*", PathError::NotAbsolute),
            ("", PathError::NotAbsolute),
            ("/%", PathError::BadEscape),
            ("/%4", PathError::BadEscape),
            ("/%+1", PathError::BadEscape),
            ("/a%00", PathError::Control),
            ("/a%0a", PathError::Control),
            ("/a%2Fb", PathError::EncodedSlash),
            ("/..%2f..", PathError::EncodedSlash),
            ("/%ff", PathError::NotUtf8),
            ("/%c0%ae%c0%ae/", PathError::NotUtf8),
        ] {
            assert_eq!(normalize(raw), Err(error), "{raw}");
        }
    }

    #[test]
    fn a_normal_path_is_borrowed() {
        assert!(matches!(normalize("/read/.hidden"), Ok(Cow::Borrowed(_))));
    }

    proptest! {
        #[test]
        fn no_dot_segment_survives(raw in "(/|\\.|%2e|%2E|a|%25){0,12}") {
            if let Ok(path) = normalize(&format!("/{raw}")) {
                prop_assert!(path.starts_with('/'));
                prop_assert!(!has_dot_segment(&path), "{path}");
            }
        }
    }
}
