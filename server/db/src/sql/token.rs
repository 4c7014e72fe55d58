//! One token of SQL.

/// Kind of the content of one place of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TokenKind {
    /// White space.
    Blank,
    /// `-- …` or `/* … */`.
    Comment,
    /// A keyword, or a name without quotes.
    Word,
    /// A name in quotes: `"a b"`; on SQLite also `` `a b` `` and `[a b]`.
    Name,
    /// A string in quotes with its prefix: `'a'`, `E'a'`, `x'00'`, `$$a$$`.
    Text,
    /// `12`, `1.5e-3`, `0x1F`.
    Number,
    /// `:name`; on SQLite also `@name` and `$name`.
    Parameter,
    /// A parameter without a name: `$1` on PostgreSQL, `?` and `?1` on SQLite.
    Positional,
    /// `;`.
    Semicolon,
    /// One other character, or `::` or `:=`.
    Sign,
}

/// A piece of a text. The tokens of a text follow each other without a gap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Token<'s> {
    /// Its kind.
    pub kind: TokenKind,
    /// The byte at which it begins.
    pub start: usize,
    /// Its text, as it is written.
    pub text: &'s str,
    /// False if the text ends before the token's quote, bracket or comment does.
    pub is_closed: bool,
}

impl<'s> Token<'s> {
    /// Returns the byte behind the token.
    #[must_use]
    pub const fn end(&self) -> usize {
        self.start + self.text.len()
    }

    /// True for white space and comments.
    #[must_use]
    pub const fn is_blank(&self) -> bool {
        matches!(self.kind, TokenKind::Blank | TokenKind::Comment)
    }

    /// True if the token is this keyword, in any case of letters.
    #[must_use]
    pub fn is_word(&self, word: &str) -> bool {
        self.kind == TokenKind::Word && self.text.eq_ignore_ascii_case(word)
    }

    /// True if the token is this sign.
    #[must_use]
    pub fn is_sign(&self, sign: &str) -> bool {
        self.kind == TokenKind::Sign && self.text == sign
    }

    /// Returns the name of a parameter that is written `:name`.
    #[must_use]
    pub fn parameter(&self) -> Option<&'s str> {
        let is_parameter = self.kind == TokenKind::Parameter;
        self.text.strip_prefix(':').filter(|_| is_parameter)
    }

    /// Returns the text without its quotes; a doubled quote within stands for itself.
    #[must_use]
    pub fn content(&self) -> String {
        let is_quoted = matches!(self.kind, TokenKind::Name | TokenKind::Text) && self.is_closed;
        let Some(open) = self.text.chars().next().filter(|_| is_quoted) else {
            return self.text.to_owned();
        };
        match open {
            '[' => self.text[1..self.text.len() - 1].to_owned(),
            '\'' | '"' | '`' => {
                let inner = &self.text[1..self.text.len() - 1];
                inner.replace(&format!("{open}{open}"), &open.to_string())
            }
            _ => self.text.to_owned(),
        }
    }
}
