//! Reads HTML into text and tags, nearly as a browser does (WHATWG HTML, section 13.2.5), in one
//! pass. Where a browser would read the text in another way, the result is another, and as safe.

use super::allowed::LEFT_OUT;

/// A part of a text of HTML.
#[derive(Debug, PartialEq, Eq)]
pub enum Piece<'t> {
    Text(&'t str),
    Start(TagText<'t>),
    /// The name in lower case.
    End(String),
}

/// A start tag.
#[derive(Debug, PartialEq, Eq)]
pub struct TagText<'t> {
    /// In lower case.
    pub name: String,
    /// The name as it is written, which says where the tag is.
    pub written: &'t str,
    /// Names in lower case, and values as they are written.
    pub attributes: Vec<(String, &'t str)>,
}

/// Attributes of a tag that are looked at.
const MAX_ATTRIBUTES: usize = 32;

/// The pieces of a text.
pub struct Tags<'t> {
    rest: &'t str,
    /// True if the fields are given that are left out otherwise.
    has_fields: bool,
}

impl<'t> Tags<'t> {
    pub fn new(text: &'t str) -> Self {
        Self {
            rest: text,
            has_fields: false,
        }
    }

    /// The pieces of a text with `select` and what is in it, and with the start of each `textarea`.
    pub fn with_fields(text: &'t str) -> Self {
        Self {
            has_fields: true,
            ..Self::new(text)
        }
    }

    /// Returns the text that has not been read.
    pub fn rest(&self) -> &'t str {
        self.rest
    }

    /// Takes the text before `end`, and `end` itself; all if `end` is not there.
    fn take_until(&mut self, end: &str) -> &'t str {
        match self.rest.split_once(end) {
            Some((before, after)) => {
                self.rest = after;
                before
            }
            None => std::mem::take(&mut self.rest),
        }
    }

    fn skip_while(&mut self, is_of_it: impl Fn(char) -> bool) -> &'t str {
        let end = self.rest.find(|letter| !is_of_it(letter));
        let (taken, rest) = self.rest.split_at(end.unwrap_or(self.rest.len()));
        self.rest = rest;
        taken
    }

    /// After `<`: a comment, or what browsers read as one.
    fn comment(&mut self) {
        if let Some(rest) = self.rest.strip_prefix("!--") {
            self.rest = rest;
            if !rest.starts_with('>') && !rest.starts_with("->") {
                self.take_until("-->");
                return;
            }
        }
        self.take_until(">");
    }

    /// After `<` or `</`: the name in lower case, and the attributes. None where the text ends in
    /// the tag.
    fn tag(&mut self) -> Option<TagText<'t>> {
        let name = self.skip_while(|letter| !is_space(letter) && !matches!(letter, '/' | '>'));
        let mut tag = TagText {
            name: name.to_ascii_lowercase(),
            written: name,
            attributes: Vec::new(),
        };
        loop {
            self.skip_while(|letter| is_space(letter) || letter == '/');
            if let Some(rest) = self.rest.strip_prefix('>') {
                self.rest = rest;
                return Some(tag);
            }
            if self.rest.is_empty() {
                return None;
            }
            let attribute = self.attribute();
            if tag.attributes.len() < MAX_ATTRIBUTES {
                tag.attributes.push(attribute);
            }
        }
    }

    fn attribute(&mut self) -> (String, &'t str) {
        // The first letter belongs to the name, also if it is `=`.
        let first = self.rest.chars().next().map_or(0, char::len_utf8);
        let start = self.rest;
        self.rest = &start[first..];
        self.skip_while(|letter| !is_space(letter) && !matches!(letter, '/' | '>' | '='));
        let name = &start[..start.len() - self.rest.len()];
        let name = name.to_ascii_lowercase();
        self.skip_while(is_space);
        let Some(rest) = self.rest.strip_prefix('=') else {
            return (name, "");
        };
        self.rest = rest;
        self.skip_while(is_space);
        let value = match self.rest.chars().next() {
            Some(quote @ ('"' | '\'')) => {
                self.rest = &self.rest[1..];
                let quote = if quote == '"' { "\"" } else { "'" };
                self.take_until(quote)
            }
            _ => self.skip_while(|letter| !is_space(letter) && letter != '>'),
        };
        (name, value)
    }

    /// Leaves out the content of an element, up to its end tag, or all that follows.
    fn leave_out(&mut self, name: &str) {
        loop {
            self.take_until("</");
            if self.rest.is_empty() {
                return;
            }
            let found = self.rest.get(..name.len());
            let is_its = found.is_some_and(|found| found.eq_ignore_ascii_case(name))
                && !self.rest[name.len()..]
                    .starts_with(|letter: char| letter.is_ascii_alphanumeric());
            if is_its {
                self.tag();
                return;
            }
        }
    }
}

impl<'t> Iterator for Tags<'t> {
    type Item = Piece<'t>;

    fn next(&mut self) -> Option<Piece<'t>> {
        loop {
            let Some(rest) = self.rest.strip_prefix('<') else {
                let end = self.rest.find('<').unwrap_or(self.rest.len());
                let (text, rest) = self.rest.split_at(end);
                self.rest = rest;
                return (!text.is_empty()).then_some(Piece::Text(text));
            };
            let whole = self.rest;
            self.rest = rest;
            let is_letter = |letter: char| letter.is_ascii_alphabetic();
            if rest.starts_with(is_letter) {
                let tag = self.tag()?;
                if self.has_fields && matches!(&*tag.name, "select" | "textarea") {
                    if tag.name == "textarea" {
                        self.leave_out(&tag.name);
                    }
                    return Some(Piece::Start(tag));
                }
                if LEFT_OUT.split(' ').any(|name| name == tag.name) {
                    self.leave_out(&tag.name);
                    continue;
                }
                return Some(Piece::Start(tag));
            }
            if let Some(after) = rest.strip_prefix('/') {
                self.rest = after;
                if after.starts_with(is_letter) {
                    return self.tag().map(|tag| Piece::End(tag.name));
                }
                self.take_until(">");
                continue;
            }
            if rest.starts_with(['!', '?']) {
                self.comment();
                continue;
            }
            return Some(Piece::Text(&whole[..1]));
        }
    }
}

/// White space of HTML.
fn is_space(letter: char) -> bool {
    matches!(letter, '\t' | '\n' | '\u{c}' | '\r' | ' ')
}
