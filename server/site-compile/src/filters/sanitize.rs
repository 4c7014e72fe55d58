//! `sanitize`: HTML of visitors, without anything that could run or leave its place.
//!
//! Nothing of the text is copied: each tag of the result is written anew from the lists of
//! `allowed`, with its attributes in double quotes, and all other text is escaped. So how a browser
//! reads the text does not matter, only how it reads the result, which has no other tags and no
//! element whose content is read in another way. `tags` reads the text in one pass. A tree as a
//! browser makes it was rejected: some thousand formatting elements make one of millions of nodes.

mod allowed;
mod tags;
#[cfg(test)]
mod tests;

use minijinja::{
    AutoEscape, Error, State,
    value::{Value, ValueKind},
};

use super::{
    fault::{given, unfit},
    markdown::is_harmless,
};
use allowed::{AttributeKind, Element, SCOPES};
pub use tags::{Piece, TagText, Tags};

/// Elements may stand in each other this deep; the tags of deeper ones are left out.
const DEPTH: usize = 64;

/// The text with the tags and attributes that are allowed. In a page of another type it is escaped
/// as any other text.
pub(super) fn sanitize(state: &State, value: &Value) -> Result<Value, Error> {
    let Some(value) = given("sanitize", value)? else {
        return Ok(Value::from(""));
    };
    let text = value.as_str().filter(|_| value.kind() == ValueKind::String);
    let text = text.ok_or_else(|| unfit("sanitize", value, "a text"))?;
    let html = clean(text);
    Ok(match state.auto_escape() {
        AutoEscape::Html => Value::from_safe_string(html),
        _ => Value::from(html),
    })
}

/// The text of HTML, without tags: for an excerpt, or a field that has no HTML. Spaces and line
/// breaks in a row are one space.
pub(super) fn striptags(value: &Value) -> Result<String, Error> {
    let Some(value) = given("striptags", value)? else {
        return Ok(String::new());
    };
    let text = value.as_str().filter(|_| value.kind() == ValueKind::String);
    let text = text.ok_or_else(|| unfit("striptags", value, "a text"))?;
    let mut plain = String::with_capacity(text.len());
    for piece in Tags::new(text) {
        match piece {
            Piece::Text(text) => plain.push_str(&decoded(text)),
            Piece::Start(TagText { name, .. }) | Piece::End(name) if !is_in_line(&name) => {
                plain.push(' ');
            }
            Piece::Start(_) | Piece::End(_) => {}
        }
    }
    Ok(plain.split_whitespace().collect::<Vec<_>>().join(" "))
}

/// True if an element stands in a line, so that no space is between it and the text around.
fn is_in_line(name: &str) -> bool {
    matches!(
        name,
        "a" | "abbr"
            | "b"
            | "bdi"
            | "bdo"
            | "cite"
            | "code"
            | "del"
            | "dfn"
            | "em"
            | "i"
            | "ins"
            | "kbd"
            | "mark"
            | "q"
            | "s"
            | "samp"
            | "small"
            | "span"
            | "strong"
            | "sub"
            | "sup"
            | "u"
            | "var"
    )
}

fn clean(text: &str) -> String {
    let mut output = SafeHtml {
        html: String::with_capacity(text.len() + text.len() / 8),
        open: Vec::new(),
    };
    for piece in Tags::new(text) {
        match piece {
            Piece::Text(text) => push_text(&mut output.html, text),
            Piece::Start(tag) => output.start(&tag),
            Piece::End(name) => output.end(&name),
        }
    }
    output.close_from(0);
    output.html
}

struct SafeHtml {
    html: String,
    open: Vec<&'static Element>,
}

impl SafeHtml {
    fn start(&mut self, tag: &TagText<'_>) {
        let Some(element) = Element::of(&tag.name) else {
            return;
        };
        let scopes = if element.within.is_empty() {
            SCOPES
        } else {
            element.within
        };
        let scope = self
            .open
            .iter()
            .rposition(|open| scopes.contains(&open.name));
        let inner = scope.map_or(0, |at| at + 1);
        let ended = self.open[inner..]
            .iter()
            .position(|open| element.ends.contains(&open.name));
        if let Some(at) = ended {
            self.close_from(inner + at);
        }
        let has_place = element.within.is_empty() || scope.is_some();
        if !has_place || self.open.len() >= DEPTH {
            return;
        }
        self.html.push('<');
        self.html.push_str(element.name);
        self.html.push_str(element.added);
        for (at, (name, value)) in tag.attributes.iter().enumerate() {
            let is_first = !tag.attributes[..at].iter().any(|(other, _)| other == name);
            if let Some((name, kind)) = element.attribute(name)
                && is_first
            {
                self.attribute(name, kind, value);
            }
        }
        self.html.push('>');
        if !element.is_void {
            self.open.push(element);
        }
    }

    fn attribute(&mut self, name: &str, kind: AttributeKind, value: &str) {
        let value = decoded(value);
        let is_allowed = match kind {
            AttributeKind::Text => true,
            AttributeKind::Address => is_harmless(&value),
            AttributeKind::Number => {
                (1..=5).contains(&value.len()) && value.bytes().all(|byte| byte.is_ascii_digit())
            }
            AttributeKind::Word(words) => words.contains(&value.as_str()),
        };
        if is_allowed {
            self.html.push(' ');
            self.html.push_str(name);
            self.html.push_str("=\"");
            value
                .chars()
                .for_each(|letter| push_escaped(&mut self.html, letter));
            self.html.push('"');
        }
    }

    /// Ends the last element of this name that is open, and those in it.
    fn end(&mut self, name: &str) {
        if let Some(at) = self.open.iter().rposition(|open| open.name == name) {
            self.close_from(at);
        }
    }

    fn close_from(&mut self, at: usize) {
        while self.open.len() > at
            && let Some(element) = self.open.pop()
        {
            self.close(element);
        }
    }

    fn close(&mut self, element: &Element) {
        self.html.push_str("</");
        self.html.push_str(element.name);
        self.html.push('>');
    }
}

/// Writes text. A character reference stays one: no reference of text begins a tag.
fn push_text(html: &mut String, text: &str) {
    for (at, letter) in text.char_indices() {
        match letter {
            '&' if reference(&text[at..]).is_some() => html.push('&'),
            letter => push_escaped(html, letter),
        }
    }
}

fn push_escaped(html: &mut String, letter: char) {
    match letter {
        '&' => html.push_str("&amp;"),
        '<' => html.push_str("&lt;"),
        '>' => html.push_str("&gt;"),
        '"' => html.push_str("&quot;"),
        '\'' => html.push_str("&#39;"),
        '\t' | '\n' | '\r' => html.push(letter),
        letter if letter.is_control() => {}
        letter => html.push(letter),
    }
}

/// The longest name of a reference, and the digits of the greatest character.
const LONGEST_REFERENCE: usize = 32;

/// Returns the text between `&` and `;` at the beginning of a text.
fn reference(text: &str) -> Option<&str> {
    let rest = text.strip_prefix('&')?;
    let window = rest.as_bytes().get(..LONGEST_REFERENCE.min(rest.len()))?;
    let end = window.iter().position(|byte| *byte == b';')?;
    let name = rest.get(..end)?;
    let digits = name.strip_prefix('#').unwrap_or(name);
    let is_name = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_alphanumeric());
    is_name.then_some(name)
}

/// The value of an attribute with its references resolved: those by number, and the five that a
/// writer needs. Any other is text, and is written as text, so a browser does not resolve it
/// either.
fn decoded(value: &str) -> String {
    let mut out = String::with_capacity(value.len());
    let mut rest = value;
    while let Some(at) = rest.find('&') {
        out.push_str(&rest[..at]);
        rest = &rest[at..];
        match reference(rest).and_then(|name| Some((name, resolved(name)?))) {
            Some((name, letter)) => {
                out.push(letter);
                rest = &rest[name.len() + 2..];
            }
            None => {
                out.push('&');
                rest = &rest[1..];
            }
        }
    }
    out.push_str(rest);
    out
}

fn resolved(name: &str) -> Option<char> {
    let number = |digits: &str, base| u32::from_str_radix(digits, base).ok();
    match name {
        "amp" => Some('&'),
        "lt" => Some('<'),
        "gt" => Some('>'),
        "quot" => Some('"'),
        "apos" => Some('\''),
        _ => {
            let digits = name.strip_prefix('#')?;
            let code = match digits.strip_prefix(['x', 'X']) {
                Some(digits) => number(digits, 16),
                None => number(digits, 10),
            };
            char::from_u32(code?)
        }
    }
}
