//! SQL as text: its tokens, and the statements of a script, by the lexical rules of each database.
//!
//! This is the only place that knows where a string, a name or a comment ends.

mod lexer;
mod script;
mod token;

#[cfg(test)]
mod tests;

pub use lexer::Lexer;
pub(crate) use script::{ScriptStatement, statements};
pub use token::{Token, TokenKind};

/// A kind of SQL.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialect {
    /// SQLite's.
    Sqlite,
    /// PostgreSQL's.
    Postgres,
}

/// Returns the byte at which a table, a column or a function is named, in any case of letters.
#[must_use]
pub fn place_of_name(sql: &str, dialect: Dialect, name: &str) -> Option<usize> {
    let mut tokens = Lexer::new(sql, dialect);
    let token = tokens.find(|token| {
        let is_name = matches!(token.kind, TokenKind::Word | TokenKind::Name);
        is_name && token.content().to_lowercase() == name.to_lowercase()
    });
    token.map(|token| token.start)
}
