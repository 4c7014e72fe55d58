//! Where each token ends (PostgreSQL manual, 4.1; SQLite's documentation of its language).

use super::{
    Dialect,
    token::{Token, TokenKind},
};

/// The tokens of a text, in order; they cover it. What is left open ends with the text.
#[derive(Clone, Debug)]
pub struct Lexer<'s> {
    sql: &'s str,
    at: usize,
    dialect: Dialect,
}

/// A kind, the length in bytes, and whether the token is closed.
type Scanned = (TokenKind, usize, bool);

impl<'s> Lexer<'s> {
    /// Begins at the start of a text.
    #[must_use]
    pub const fn new(sql: &'s str, dialect: Dialect) -> Self {
        Self {
            sql,
            at: 0,
            dialect,
        }
    }

    /// Returns the tokens that are neither white space nor comments.
    #[must_use]
    pub fn significant(self) -> Vec<Token<'s>> {
        self.filter(|token| !token.is_blank()).collect()
    }

    /// Goes back, so that the text from this byte on is read again.
    pub(crate) fn go_to(&mut self, at: usize) {
        self.at = self.sql.floor_char_boundary(at);
    }
}

impl<'s> Iterator for Lexer<'s> {
    type Item = Token<'s>;

    fn next(&mut self) -> Option<Token<'s>> {
        let rest = &self.sql[self.at..];
        let first = rest.chars().next()?;
        let (kind, length, is_closed) = scan(rest, first, self.dialect);
        let start = self.at;
        self.at += length;
        Some(Token {
            kind,
            start,
            text: &rest[..length],
            is_closed,
        })
    }
}

/// Reads the token with which a text begins.
fn scan(rest: &str, first: char, dialect: Dialect) -> Scanned {
    let is_sqlite = dialect == Dialect::Sqlite;
    let closed = |kind, length| (kind, length, true);
    let next = rest[first.len_utf8()..].chars().next();
    match first {
        ';' => closed(TokenKind::Semicolon, 1),
        '-' if next == Some('-') => closed(TokenKind::Comment, line(rest, dialect)),
        '/' if next == Some('*') => upto(TokenKind::Comment, rest, comment(rest, dialect)),
        '\'' => string(rest, 1, dialect, false),
        '"' => upto(TokenKind::Name, rest, quoted(rest, 1, '"', false)),
        '`' if is_sqlite => upto(TokenKind::Name, rest, quoted(rest, 1, '`', false)),
        '[' if is_sqlite => upto(TokenKind::Name, rest, rest.find(']').map(|at| at + 1)),
        ':' if matches!(next, Some(':' | '=')) => closed(TokenKind::Sign, 2),
        '?' if is_sqlite => closed(TokenKind::Positional, run(rest, 1, |c| c.is_ascii_digit())),
        ':' => parameter(rest, dialect),
        '@' | '$' if is_sqlite => parameter(rest, dialect),
        '$' => dollar(rest),
        c if is_blank(c, dialect) => {
            closed(TokenKind::Blank, run(rest, 0, |c| is_blank(c, dialect)))
        }
        '.' if next.is_some_and(|c| c.is_ascii_digit()) => closed(TokenKind::Number, number(rest)),
        c if c.is_ascii_digit() => closed(TokenKind::Number, number(rest)),
        c if is_start(c) => word(rest, dialect),
        c => closed(TokenKind::Sign, c.len_utf8()),
    }
}

/// A token that ends at a byte, or is open and ends with the text.
fn upto(kind: TokenKind, rest: &str, end: Option<usize>) -> Scanned {
    (kind, end.unwrap_or(rest.len()), end.is_some())
}

/// SQLite takes a byte order mark for white space.
fn is_blank(c: char, dialect: Dialect) -> bool {
    let is_mark = c == '\u{feff}' && dialect == Dialect::Sqlite;
    c.is_ascii_whitespace() || c == '\u{b}' || is_mark
}

fn is_start(c: char) -> bool {
    c.is_ascii_alphabetic() || c == '_' || !c.is_ascii()
}

fn is_part(c: char) -> bool {
    is_start(c) || c.is_ascii_digit() || c == '$'
}

/// Returns the first byte from `from` on at which a character does not hold.
fn run(rest: &str, from: usize, holds: impl Fn(char) -> bool) -> usize {
    let end = rest[from..].find(|c| !holds(c));
    end.map_or(rest.len(), |at| from + at)
}

/// Returns the length of a comment that ends with its line.
fn line(rest: &str, dialect: Dialect) -> usize {
    let is_end = |c| c == '\n' || (c == '\r' && dialect == Dialect::Postgres);
    run(rest, 0, |c| !is_end(c))
}

/// Returns the length of a comment; PostgreSQL's nest.
fn comment(rest: &str, dialect: Dialect) -> Option<usize> {
    let mut depth = 1_usize;
    let mut at = 2;
    loop {
        at += rest[at..].find(['*', '/'])?;
        let is_open = rest[at..].starts_with("/*") && dialect == Dialect::Postgres;
        if is_open {
            depth += 1;
        } else if rest[at..].starts_with("*/") {
            depth -= 1;
        } else {
            at += 1;
            continue;
        }
        at += 2;
        if depth == 0 {
            return Some(at);
        }
    }
}

/// Returns the end of what stands in quotes and whose content begins at `from`; a doubled quote
/// stands for itself.
fn quoted(rest: &str, from: usize, quote: char, backslash: bool) -> Option<usize> {
    let mut characters = rest[from..].char_indices().peekable();
    while let Some((at, c)) = characters.next() {
        if backslash && c == '\\' {
            characters.next();
        } else if c == quote && characters.next_if(|(_, next)| *next == quote).is_none() {
            return Some(from + at + 1);
        }
    }
    None
}

/// A string; PostgreSQL goes on with the next one if only white space with a line's end stands
/// between them, by the rule of the first for backslashes.
fn string(rest: &str, from: usize, dialect: Dialect, backslash: bool) -> Scanned {
    let mut end = quoted(rest, from, '\'', backslash);
    while let Some(closed) = end.filter(|_| dialect == Dialect::Postgres) {
        let mut at = closed;
        loop {
            at = run(rest, at, |c| is_blank(c, dialect));
            if !rest[at..].starts_with("--") {
                break;
            }
            at += line(&rest[at..], dialect);
        }
        if !rest[at..].starts_with('\'') || !rest[closed..at].contains(['\n', '\r']) {
            break;
        }
        end = quoted(rest, at + 1, '\'', backslash);
    }
    upto(TokenKind::Text, rest, end)
}

/// A word, or a string or name with a letter in front of its quote.
fn word(rest: &str, dialect: Dialect) -> Scanned {
    let bytes = rest.as_bytes();
    match (bytes[0].to_ascii_lowercase(), &bytes[1..]) {
        (b'x', [b'\'', ..]) => string(rest, 2, dialect, false),
        _ if dialect == Dialect::Sqlite => (TokenKind::Word, run(rest, 0, is_part), true),
        (b'e', [b'\'', ..]) => string(rest, 2, dialect, true),
        (b'b' | b'n', [b'\'', ..]) => string(rest, 2, dialect, false),
        (b'u', [b'&', b'\'', ..]) => string(rest, 3, dialect, false),
        (b'u', [b'&', b'"', ..]) => upto(TokenKind::Name, rest, quoted(rest, 3, '"', false)),
        _ => (TokenKind::Word, run(rest, 0, is_part), true),
    }
}

/// Returns the length of a number, with letters behind it that make it none.
fn number(rest: &str) -> usize {
    let is_digit = |c: char| is_part(c) && c != '$';
    let mut end = run(rest, 0, is_digit);
    if rest[end..].starts_with('.') && !rest[end..].starts_with("..") {
        end = run(rest, end + 1, is_digit);
    }
    let has_exponent = rest[..end].ends_with(['e', 'E']) && !rest.starts_with("0x");
    match rest[end..].strip_prefix(['+', '-']) {
        Some(more) if has_exponent && more.starts_with(|c: char| c.is_ascii_digit()) => {
            run(rest, end + 1, is_digit)
        }
        _ => end,
    }
}

/// A parameter behind its sign. A name of PostgreSQL's has no digit in front and no `$`.
fn parameter(rest: &str, dialect: Dialect) -> Scanned {
    let end = match dialect {
        Dialect::Sqlite => run(rest, 1, is_part),
        Dialect::Postgres if rest[1..].starts_with(is_start) => {
            run(rest, 1, |c| is_part(c) && c != '$')
        }
        Dialect::Postgres => 1,
    };
    match end {
        1 => (TokenKind::Sign, 1, true),
        end => (TokenKind::Parameter, end, true),
    }
}

/// `$1`, or a string between `$tag$` and `$tag$`.
fn dollar(rest: &str) -> Scanned {
    let digits = run(rest, 1, |c| c.is_ascii_digit());
    if digits > 1 {
        return (TokenKind::Positional, digits, true);
    }
    let tag = run(rest, 1, |c| is_part(c) && c != '$');
    if !rest[tag..].starts_with('$') {
        return (TokenKind::Sign, 1, true);
    }
    let opening = &rest[..=tag];
    let end = rest[opening.len()..].find(opening);
    upto(TokenKind::Text, rest, end.map(|at| at + 2 * opening.len()))
}
