//! Paths: percent-escapes, dot segments, and the one normal form.

use lab_torture::http::words;

use super::corpus;
use crate::path::normalize;

#[test]
fn paths() {
    let corpus = corpus("paths", &words::PATHS);
    bolero::check!(name = "paths")
        .with_max_len(256)
        .for_each(|engine: &[u8]| {
            for input in corpus.inputs(engine) {
                let text = String::from_utf8_lossy(&input);
                check(&text);
                check(&format!("/{text}"));
            }
        });
}

fn check(raw: &str) {
    let normal = normalize(raw);
    let expected = second_reading(raw);
    assert_eq!(normal.as_deref().ok(), expected.as_deref(), "{raw:?}");
    let Ok(path) = normal else { return };
    assert!(path.starts_with('/'), "{raw:?}");
    assert!(!path.chars().any(|c| c.is_ascii_control()), "{raw:?}");
    let climbs = path
        .split('/')
        .any(|segment| segment == "." || segment == "..");
    assert!(!climbs, "{raw:?} is {path:?}");
    // Written out again, it is the same path; so nothing is decoded twice.
    assert_eq!(normalize(&escaped(&path)).as_deref(), Ok(&*path), "{raw:?}");
}

/// RFC 3986 sections 2.1 and 5.2.4, one step after the other.
fn second_reading(raw: &str) -> Option<String> {
    let mut bytes = Vec::new();
    let mut parts = raw.strip_prefix('/')?.split('%');
    bytes.extend_from_slice(parts.next()?.as_bytes());
    for part in parts {
        let digits = part.get(..2)?;
        if !digits.bytes().all(|b| b.is_ascii_hexdigit()) {
            return None;
        }
        match u8::from_str_radix(digits, 16).ok()? {
            b'/' => return None,
            byte => bytes.push(byte),
        }
        bytes.extend_from_slice(&part.as_bytes()[2..]);
    }
    let decoded = String::from_utf8(bytes).ok()?;
    if decoded.bytes().any(|b| b.is_ascii_control()) {
        return None;
    }
    let mut kept = Vec::new();
    let segments: Vec<&str> = decoded.split('/').collect();
    for (at, segment) in segments.iter().enumerate() {
        let is_dots = matches!(*segment, "." | "..");
        if *segment == ".." {
            kept.pop();
        }
        if !is_dots {
            kept.push(*segment);
        } else if at + 1 == segments.len() {
            kept.push("");
        }
    }
    Some(format!("/{}", kept.join("/")))
}

/// With everything escaped that may be.
fn escaped(path: &str) -> String {
    let byte = |b: u8| match b {
        b'/' => "/".to_owned(),
        b'.' => "%2E".to_owned(),
        _ => format!("%{b:02x}"),
    };
    path.bytes().map(byte).collect()
}
