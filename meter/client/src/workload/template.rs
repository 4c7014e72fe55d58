//! Templates, compiled: text and values in turn.

/// A compiled template.
#[derive(Debug, Default)]
pub(crate) struct Template {
    pub(crate) parts: Vec<TemplatePart>,
}

impl Template {
    /// Appends text; neighbouring pieces become one.
    pub(crate) fn push_text(&mut self, text: &[u8]) {
        match self.parts.last_mut() {
            _ if text.is_empty() => {}
            Some(TemplatePart::Text(last)) => last.extend_from_slice(text),
            _ => self.parts.push(TemplatePart::Text(text.to_vec())),
        }
    }

    /// Appends another template.
    pub(crate) fn append(&mut self, other: Self) {
        for part in other.parts {
            match part {
                TemplatePart::Text(text) => self.push_text(&text),
                value @ TemplatePart::Value(..) => self.parts.push(value),
            }
        }
    }
}

/// A piece of a template.
#[derive(Debug, PartialEq)]
pub(crate) enum TemplatePart {
    Text(Vec<u8>),
    Value(Value, Encoding),
}

/// The source of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Value {
    /// The number of the session.
    Counter,
    /// The number of the request in the session.
    Step,
    /// A whole number: the least, and how many there are.
    Random(i64, u64),
    /// A random UUID (RFC 9562, version 4).
    Uuid,
    /// This many random hexadecimal digits.
    Hex(u32),
    /// A column of a table.
    Data(usize, usize),
    /// A choice.
    Choice(usize),
    /// An extracted value.
    Slot(usize),
    /// The recorded target.
    Target,
}

/// How a value is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Encoding {
    /// Unchanged: in bodies.
    Raw,
    /// Without control characters: in fields.
    Field,
    /// Percent-encoded but for unreserved characters (RFC 3986, section 2.3): in targets.
    Percent,
    /// A complete target: percent-encoded where a request line could not hold it, and without a
    /// fragment.
    Target,
    /// As a JSON string with its quotes.
    Json,
}

impl Encoding {
    /// Appends `value`; false if characters had to be left out.
    pub(crate) fn put(self, value: &[u8], out: &mut Vec<u8>) -> bool {
        match self {
            Self::Raw => out.extend_from_slice(value),
            Self::Field => {
                let before = out.len();
                out.extend(
                    value
                        .iter()
                        .filter(|&&byte| byte == b'\t' || byte >= 0x20 && byte != 0x7f),
                );
                return out.len() - before == value.len();
            }
            Self::Percent => encode(value, out, |byte| {
                byte.is_ascii_alphanumeric() || b"-._~".contains(&byte)
            }),
            Self::Target => {
                let sent = value.split(|&byte| byte == b'#').next().unwrap_or_default();
                encode(sent, out, |byte| byte.is_ascii_graphic());
            }
            Self::Json => json(value, out),
        }
        true
    }
}

fn encode(value: &[u8], out: &mut Vec<u8>, is_plain: impl Fn(u8) -> bool) {
    for &byte in value {
        if is_plain(byte) {
            out.push(byte);
        } else {
            out.push(b'%');
            hex(byte, b"0123456789ABCDEF", out);
        }
    }
}

/// Appends both digits of a byte.
pub(crate) fn hex(byte: u8, digits: &[u8; 16], out: &mut Vec<u8>) {
    out.extend([
        digits[usize::from(byte >> 4)],
        digits[usize::from(byte & 15)],
    ]);
}

/// A JSON string (RFC 8259, section 7); what is not UTF-8 becomes U+FFFD.
fn json(value: &[u8], out: &mut Vec<u8>) {
    out.push(b'"');
    for chunk in value.utf8_chunks() {
        for &byte in chunk.valid().as_bytes() {
            match byte {
                b'"' | b'\\' => out.extend([b'\\', byte]),
                0..0x20 => {
                    out.extend_from_slice(b"\\u00");
                    hex(byte, b"0123456789abcdef", out);
                }
                _ => out.push(byte),
            }
        }
        if !chunk.invalid().is_empty() {
            out.extend_from_slice("\u{fffd}".as_bytes());
        }
    }
    out.push(b'"');
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(encoding: Encoding, value: &[u8], expected: &str, whole: bool) {
        let mut out = Vec::new();
        assert_eq!(encoding.put(value, &mut out), whole, "{expected}");
        assert_eq!(String::from_utf8_lossy(&out), expected);
    }

    #[test]
    fn no_value_breaks_out_of_its_position() {
        check(Encoding::Raw, b"a\r\n\"", "a\r\n\"", true);
        check(Encoding::Field, b"a\r\nX: b\tc", "aX: b\tc", false);
        check(Encoding::Field, b"a b", "a b", true);
        check(
            Encoding::Percent,
            "a/ü?\r\n-".as_bytes(),
            "a%2F%C3%BC%3F%0D%0A-",
            true,
        );
        check(Encoding::Target, b"/a?b=c d\r\n", "/a?b=c%20d%0D%0A", true);
        check(
            Encoding::Json,
            b"a\"\\\n\xff",
            "\"a\\\"\\\\\\u000a\u{fffd}\"",
            true,
        );
    }
}
