//! Pieces of hostile inputs, which mean something to a parser. Each file in `words/`
//! has a piece on each line, with the escapes of Rust.

use std::sync::LazyLock;

/// Pieces for one parser.
pub type Words = LazyLock<Vec<&'static [u8]>>;

/// Pieces of requests.
pub static HTTP: Words = LazyLock::new(|| read(include_str!("words/http.txt")));

/// Pieces of field values: ranges, conditions, preferences, dates.
pub static VALUES: Words = LazyLock::new(|| read(include_str!("words/values.txt")));

/// Pieces of paths and query strings.
pub static PATHS: Words = LazyLock::new(|| read(include_str!("words/paths.txt")));

/// Pieces of forms.
pub static FORMS: Words = LazyLock::new(|| read(include_str!("words/forms.txt")));

fn read(text: &'static str) -> Vec<&'static [u8]> {
    text.lines()
        .map(|line| piece(line).leak() as &[u8])
        .collect()
}

fn piece(line: &str) -> Vec<u8> {
    let mut parts = line.split('\\');
    let mut bytes = parts.next().unwrap_or_default().as_bytes().to_vec();
    while let Some(part) = parts.next() {
        // Without a letter it is the first of two backslashes; the next part is text.
        let (byte, rest) = match part.as_bytes().first() {
            Some(b'r') => (b'\r', &part[1..]),
            Some(b'n') => (b'\n', &part[1..]),
            Some(b't') => (b'\t', &part[1..]),
            Some(b'x') => (
                u8::from_str_radix(&part[1..3], 16).expect("two digits"),
                &part[3..],
            ),
            _ => (b'\\', parts.next().unwrap_or_default()),
        };
        bytes.push(byte);
        bytes.extend_from_slice(rest.as_bytes());
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_are_bytes() {
        assert_eq!(piece("a\\r\\n\\x00\\x20b"), b"a\r\n\0 b");
        assert_eq!(piece("..\\\\\\t\\\\\\\\x"), b"..\\\t\\\\x");
        for words in [&HTTP, &VALUES, &PATHS, &FORMS] {
            assert!(words.len() > 20 && words.iter().all(|word| !word.is_empty()));
        }
    }
}
