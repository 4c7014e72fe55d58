//! PostgreSQL's lexical rules, as far as they say where strings, names and comments end (PostgreSQL
//! manual, 4.1).

/// What stands at one place of a statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Token {
    /// White space and comments.
    Blank,
    Semicolon,
    /// A key word or a name without quotes.
    Word,
    /// A string, a number or a quoted name.
    Operand,
    /// `:name`.
    Parameter,
    /// `$1`.
    Positional,
    /// One character that is none of these, or `::` or `:=`.
    Other,
}

/// The token at byte `at`, which is before the end, and the byte at which it ends.
pub(super) fn token(sql: &str, at: usize) -> (Token, usize) {
    let rest = &sql[at..];
    let first = rest.chars().next().unwrap_or(' ');
    let (kind, length) = match first {
        ';' => (Token::Semicolon, 1),
        '-' if rest.starts_with("--") => (Token::Blank, rest.find('\n').unwrap_or(rest.len())),
        '/' if rest.starts_with("/*") => (Token::Blank, comment(rest)),
        '\'' => (Token::Operand, quoted(rest, 1, '\'', false)),
        '"' => (Token::Operand, quoted(rest, 1, '"', false)),
        // Only E'…' knows the backslash; B, N and X are words before an ordinary string.
        'e' | 'E' if rest[1..].starts_with('\'') => (Token::Operand, quoted(rest, 2, '\'', true)),
        '$' => dollar(rest),
        ':' => colon(rest),
        c if c.is_ascii_digit() => (Token::Operand, run(rest, is_part)),
        c if c.is_whitespace() => (Token::Blank, run(rest, char::is_whitespace)),
        c if is_start(c) => (Token::Word, run(rest, is_part)),
        c => (Token::Other, c.len_utf8()),
    };
    (kind, at + length)
}

fn is_start(c: char) -> bool {
    c.is_ascii_alphabetic() || c == '_' || !c.is_ascii()
}

fn is_part(c: char) -> bool {
    is_start(c) || c.is_ascii_digit() || c == '$'
}

fn run(rest: &str, holds: fn(char) -> bool) -> usize {
    rest.find(|c| !holds(c)).unwrap_or(rest.len())
}

/// A string or name in quotes whose content begins at `from`; a doubled quote stands for itself. It
/// may be left open.
fn quoted(rest: &str, from: usize, quote: char, backslash: bool) -> usize {
    let mut characters = rest[from..].char_indices().peekable();
    while let Some((at, c)) = characters.next() {
        if backslash && c == '\\' {
            characters.next();
        } else if c == quote && characters.next_if(|(_, next)| *next == quote).is_none() {
            return from + at + 1;
        }
    }
    rest.len()
}

/// Comments nest.
fn comment(rest: &str) -> usize {
    let mut depth = 0_usize;
    let mut at = 0;
    while at < rest.len() {
        if rest[at..].starts_with("/*") {
            depth += 1;
            at += 2;
        } else if rest[at..].starts_with("*/") {
            depth -= 1;
            at += 2;
            if depth == 0 {
                return at;
            }
        } else {
            at += rest[at..].chars().next().map_or(1, char::len_utf8);
        }
    }
    rest.len()
}

/// `$1`, or a string between `$tag$` and `$tag$`.
fn dollar(rest: &str) -> (Token, usize) {
    let digits = run(&rest[1..], |c| c.is_ascii_digit());
    if digits > 0 {
        return (Token::Positional, 1 + digits);
    }
    let tag = run(&rest[1..], |c| is_part(c) && c != '$');
    if !rest[1 + tag..].starts_with('$') {
        return (Token::Other, 1);
    }
    let opening = &rest[..tag + 2];
    let length = rest[opening.len()..]
        .find(opening)
        .map_or(rest.len(), |found| found + 2 * opening.len());
    (Token::Operand, length)
}

fn colon(rest: &str) -> (Token, usize) {
    let after = &rest[1..];
    match after.chars().next() {
        Some(':' | '=') => (Token::Other, 2),
        Some(c) if is_start(c) => (Token::Parameter, 1 + run(after, |c| is_part(c) && c != '$')),
        _ => (Token::Other, 1),
    }
}
