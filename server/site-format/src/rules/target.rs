//! Where a rule leads to: an address with the values of the rule's placeholders put in.

use millpond_http::path;
use percent_encoding::{AsciiSet, CONTROLS, NON_ALPHANUMERIC, utf8_percent_encode};

use super::pattern::PathPattern;

use crate::parameter_names::foreign_parameter;

/// Characters that a segment of a path may not have as they are (RFC 3986 section 3.3), and the
/// percent sign: values are not encoded yet.
const SEGMENT: &AsciiSet = &PATH.add(b'/');
/// Characters that values of several segments may not have as they are.
const PATH: &AsciiSet = &CONTROLS
    .add(b' ')
    .add(b'"')
    .add(b'#')
    .add(b'%')
    .add(b'<')
    .add(b'>')
    .add(b'?')
    .add(b'[')
    .add(b'\\')
    .add(b']')
    .add(b'^')
    .add(b'`')
    .add(b'{')
    .add(b'|')
    .add(b'}');
/// Everything but RFC 3986's unreserved characters: a value cannot leave its place in a query or a
/// fragment.
pub const VALUE: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~');
/// Characters that the text of a target, written by its owner, cannot have as they are.
const TEXT: &AsciiSet = &CONTROLS
    .add(b' ')
    .add(b'"')
    .add(b'<')
    .add(b'>')
    .add(b'\\')
    .add(b'^')
    .add(b'`')
    .add(b'{')
    .add(b'|')
    .add(b'}');

/// An address, ready to be filled in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RuleTarget {
    /// Path and query, or the whole URL.
    address: Vec<TargetPiece>,
    has_query: bool,
    fragment: Vec<TargetPiece>,
    /// True if it is a path of this site.
    is_local: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum TargetPiece {
    /// Encoded.
    Text(String),
    /// The place of a value among those of the pattern, and what in it is to be encoded.
    Value(usize, ValueEncoding),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ValueEncoding {
    Segment,
    Path,
    Value,
}

impl RuleTarget {
    /// Reads a target; `from` is the pattern that gives the values. What is wrong is a sentence.
    pub fn parse(text: &str, from: &PathPattern) -> Result<Self, String> {
        if text.chars().any(char::is_control) {
            return Err("a control character cannot be part of an address".to_owned());
        }
        let is_local = text.starts_with('/');
        if is_local && text[1..].starts_with(['/', '\\']) {
            return Err(format!(
                "`{text}` would be read as another host; write `https:{text}` if that is meant"
            ));
        }
        let authority = if is_local { 0 } else { authority(text)? };
        if let Some(fault) = foreign_parameter(&text[authority..]) {
            return Err(fault);
        }
        let (address, fragment) = match text.split_once('#') {
            Some((address, fragment)) => (address, Some(fragment)),
            None => (text, None),
        };
        let (place, query) = match address.split_once('?') {
            Some((place, query)) => (place, Some(query)),
            None => (address, None),
        };
        if is_local && let Err(error) = path::normalize(place) {
            return Err(format!("`{text}` is no path: {error}"));
        }
        let mut target = Self {
            address: vec![],
            has_query: query.is_some(),
            fragment: vec![],
            is_local,
        };
        let mut filler = Filler { from, whole: text };
        push_text(&mut target.address, &place[..authority]);
        filler.read(&place[authority..], false, &mut target.address)?;
        if let Some(query) = query {
            push_text(&mut target.address, "?");
            filler.read(query, true, &mut target.address)?;
        }
        if let Some(fragment) = fragment {
            push_text(&mut target.fragment, "#");
            filler.read(fragment, true, &mut target.fragment)?;
        }
        Ok(target)
    }

    /// True if it is a path of this site and has no fragment: what a rewrite can lead to.
    pub fn is_path(&self) -> bool {
        self.is_local && self.fragment.is_empty()
    }

    /// True if it is a path of this site.
    pub fn is_local(&self) -> bool {
        self.is_local
    }

    /// The address for these values. The client's query is added to its own.
    pub fn fill(&self, values: &[&str], query: Option<&str>) -> String {
        let mut address = String::new();
        push_all(&mut address, &self.address, values);
        if self.is_local {
            // An empty value, or one with a slash in front, must not make another host of a path.
            address = local(&address);
        }
        if let Some(query) = query.filter(|query| !query.is_empty()) {
            address.push(if self.has_query { '&' } else { '?' });
            address.push_str(query);
        }
        push_all(&mut address, &self.fragment, values);
        address
    }
}

/// A target that begins with two slashes would be another host (RFC 3986, section 4.2); a value
/// that is empty could make one.
pub fn local(target: &str) -> String {
    format!("/{}", target.trim_start_matches('/'))
}

/// A path in its normal form as it stands in a URL.
pub fn encode_path(path: &str) -> String {
    utf8_percent_encode(path, PATH).to_string()
}

/// How long scheme and host of a URL are.
fn authority(text: &str) -> Result<usize, String> {
    let scheme = ["https://", "http://"]
        .into_iter()
        .find(|scheme| text.starts_with(scheme))
        .ok_or_else(|| {
            format!("`{text}` is neither a path of this site nor a URL with http:// or https://")
        })?;
    let host = &text[scheme.len()..];
    let length = host.find(['/', '?', '#']).unwrap_or(host.len());
    let host = &host[..length];
    let good = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '.' | ':' | '[' | ']');
    let is_port = |port: &str| port.bytes().all(|byte| byte.is_ascii_digit());
    let port = host.rsplit_once(':').filter(|_| !host.ends_with(']'));
    if host.is_empty() || !host.chars().all(good) || !port.is_none_or(|(_, port)| is_port(port)) {
        return Err(format!(
            "`{text}` has no host that can stand in a URL; placeholders stand behind it"
        ));
    }
    Ok(scheme.len() + length)
}

fn push_text(pieces: &mut Vec<TargetPiece>, text: &str) {
    let encoded = utf8_percent_encode(text, TEXT).to_string();
    match pieces.last_mut() {
        Some(TargetPiece::Text(before)) => before.push_str(&encoded),
        _ if encoded.is_empty() => {}
        _ => pieces.push(TargetPiece::Text(encoded)),
    }
}

fn push_all(address: &mut String, pieces: &[TargetPiece], values: &[&str]) {
    for piece in pieces {
        match piece {
            TargetPiece::Text(text) => address.push_str(text),
            TargetPiece::Value(at, part) => {
                let set = match part {
                    ValueEncoding::Segment => SEGMENT,
                    ValueEncoding::Path => PATH,
                    ValueEncoding::Value => VALUE,
                };
                let value = values.get(*at).copied().unwrap_or_default();
                address.extend(utf8_percent_encode(value, set));
            }
        }
    }
}

/// Finds placeholders in a part of a target.
struct Filler<'a> {
    from: &'a PathPattern,
    whole: &'a str,
}

impl Filler<'_> {
    fn read(
        &mut self,
        text: &str,
        is_query: bool,
        pieces: &mut Vec<TargetPiece>,
    ) -> Result<(), String> {
        let mut start = 0;
        let mut at = 0;
        while let Some(found) = text[at..].find([':', '*']) {
            at += found;
            let name = if text[at..].starts_with('*') {
                "*"
            } else {
                // `Help:Contents` is a name with a colon in it.
                let begins = !text[..at].ends_with(|c: char| c.is_ascii_alphanumeric());
                let word = |c: char| c.is_ascii_alphanumeric() || c == '_';
                let rest = &text[at + 1..];
                let end = rest.find(|c| !word(c)).unwrap_or(rest.len());
                if begins { &rest[..end] } else { "" }
            };
            if name.is_empty() {
                at += 1;
                continue;
            }
            let value = self.place(name)?;
            push_text(pieces, &text[start..at]);
            let part = match (is_query, name) {
                (true, _) => ValueEncoding::Value,
                (false, "*") => ValueEncoding::Path,
                (false, _) => ValueEncoding::Segment,
            };
            pieces.push(TargetPiece::Value(value, part));
            at += if name == "*" { 1 } else { name.len() + 1 };
            start = at;
        }
        push_text(pieces, &text[start..]);
        Ok(())
    }

    fn place(&self, name: &str) -> Result<usize, String> {
        let shown = if name == "*" {
            "*"
        } else {
            &format!(":{name}")
        };
        self.from
            .names()
            .position(|known| known == name)
            .ok_or_else(|| {
                format!(
                    "`{}` has `{shown}`, which `{}` does not give",
                    self.whole, self.from
                )
            })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filled(from: &str, to: &str, path: &str, query: Option<&str>) -> String {
        let from = PathPattern::parse(from).unwrap();
        let target = RuleTarget::parse(to, &from).unwrap();
        target.fill(&from.capture(path).unwrap(), query)
    }

    #[test]
    fn targets_are_filled_in() {
        for (from, to, path, query, expected) in [
            ("/a", "/b", "/a", None, "/b"),
            ("/a", "/b", "/a", Some("x=1"), "/b?x=1"),
            ("/a", "/b?y=2", "/a", Some("x=1"), "/b?y=2&x=1"),
            ("/a", "/b#c", "/a", Some("x=1"), "/b?x=1#c"),
            ("/a", "/b", "/a", Some(""), "/b"),
            ("/:x/:y", "/:y/:x", "/1/2", None, "/2/1"),
            (
                "/a/:id",
                "/read?id=:id#c-:id",
                "/a/7",
                None,
                "/read?id=7#c-7",
            ),
            ("/old/*", "/new/*", "/old/a/b", None, "/new/a/b"),
            (
                "/old/*",
                "https://x.example/*",
                "/old/a",
                Some("q"),
                "https://x.example/a?q",
            ),
            ("/wiki", "/Help:Contents", "/wiki", None, "/Help:Contents"),
            ("/a", "/ä b%20c", "/a", None, "/%C3%A4%20b%20c"),
            ("/a", "/b?c[]=%7Bx%7D", "/a", None, "/b?c[]=%7Bx%7D"),
            // A value keeps to its place.
            ("/a/:x", "/b/:x", "/a/ä%?#", None, "/b/%C3%A4%25%3F%23"),
            ("/a/:x", "/b?x=:x", "/a/1&y=2#", None, "/b?x=1%26y%3D2%23"),
            ("/a/*", "/*", "/a//evil.example", None, "/evil.example"),
            ("/a/*", "/*", "/a/\\evil.example", None, "/%5Cevil.example"),
        ] {
            assert_eq!(filled(from, to, path, query), expected, "{from} {to}");
        }
    }

    #[test]
    fn what_is_no_target() {
        let from = PathPattern::parse("/a/:x").unwrap();
        for (to, said) in [
            ("b", "neither a path"),
            ("ftp://h/", "neither a path"),
            ("javascript:alert(1)", "neither a path"),
            ("//h/", "another host"),
            ("/\\h", "another host"),
            ("https://", "no host"),
            ("https://:x.example/", "no host"),
            ("https://u@h/", "no host"),
            ("/b\r\nSet-Cookie: x", "control character"),
            ("/b/:y", "`/a/:x` does not give"),
            ("/b/*", "does not give"),
            ("/b%2Fc", "is no path"),
            ("/50%", "is no path"),
            ("/{x}", "a parameter is written `:x`"),
            ("/b?id={x}", "a parameter is written `:x`"),
            ("https://h/{x}#a", "a parameter is written `:x`"),
            ("/[x]/b", "a parameter is written `:x`"),
        ] {
            let error = RuleTarget::parse(to, &from).expect_err(to);
            assert!(error.contains(said), "{to}: {error}");
        }
        assert!(RuleTarget::parse("http://[::1]:80/x", &from).is_ok());
        assert!(!RuleTarget::parse("/b#c", &from).unwrap().is_path());
    }
}
