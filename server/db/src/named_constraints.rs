//! The constraints that have a name in the text of `create table`, as SQLite keeps it.

use sqlparser::{
    dialect::GenericDialect,
    keywords::Keyword,
    tokenizer::{Token, Tokenizer},
};

use crate::{ConstraintKind, written_schema::NamedKey};

/// Constraints that the text of a table names.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct NamedConstraints {
    /// CHECK constraints, each with the names in its condition.
    pub(crate) checks: Vec<(String, Vec<String>)>,
    pub(crate) keys: Vec<NamedKey>,
}

impl NamedConstraints {
    /// Reads the text of `create table`.
    pub(crate) fn read(create: &str) -> Self {
        let tokens = Tokenizer::new(&GenericDialect {}, create).tokenize();
        let tokens = tokens.unwrap_or_default().into_iter();
        let tokens = tokens.filter(|token| !matches!(token, Token::Whitespace(_)));
        let tokens: Vec<Token> = tokens.collect();
        let mut found = Self::default();
        let (mut depth, mut column) = (0_usize, None);
        for (at, token) in tokens.iter().enumerate() {
            match token {
                Token::LParen => depth += 1,
                Token::RParen => depth = depth.saturating_sub(1),
                _ => {}
            }
            // The name of a column begins its definition.
            if depth == 1 && matches!(token, Token::LParen | Token::Comma) {
                column = tokens.get(at + 1).and_then(name);
            }
            if is_keyword(token, Keyword::CONSTRAINT)
                && let Some(constraint) = tokens.get(at + 1).and_then(name)
            {
                found.take(constraint, column, &tokens[at + 2..]);
            }
        }
        found
    }

    /// Takes up a constraint: what stands behind its name, and the column in whose definition it
    /// is, if it is in one.
    fn take(&mut self, constraint: &str, column: Option<&str>, rest: &[Token]) {
        let is = |at: usize, keyword| rest.get(at).is_some_and(|token| is_keyword(token, keyword));
        let key = |kind, columns| NamedKey {
            name: constraint.to_owned(),
            kind,
            columns,
        };
        let own = || column.map(str::to_owned).into_iter().collect();
        let unique = |rest: &[Token]| {
            let columns = match rest.first() {
                Some(Token::LParen) => in_brackets(rest),
                _ => own(),
            };
            key(ConstraintKind::Unique, columns)
        };
        if is(0, Keyword::CHECK) && rest.get(1) == Some(&Token::LParen) {
            let names = in_brackets(&rest[1..]);
            self.checks.push((constraint.to_owned(), names));
        } else if is(0, Keyword::UNIQUE) {
            self.keys.push(unique(&rest[1..]));
        } else if is(0, Keyword::PRIMARY) && is(1, Keyword::KEY) {
            self.keys.push(unique(&rest[2..]));
        } else if is(0, Keyword::NOT) && is(1, Keyword::NULL) {
            self.keys.push(key(ConstraintKind::NotNull, own()));
        }
    }
}

fn is_keyword(token: &Token, keyword: Keyword) -> bool {
    matches!(token, Token::Word(word) if word.quote_style.is_none() && word.keyword == keyword)
}

fn name(token: &Token) -> Option<&str> {
    match token {
        Token::Word(word) => Some(&word.value),
        Token::DoubleQuotedString(name) => Some(name),
        _ => None,
    }
}

/// All names between the bracket with which the tokens begin and its end.
fn in_brackets(tokens: &[Token]) -> Vec<String> {
    let mut depth = 0_usize;
    let inside = tokens.iter().take_while(|token| {
        match token {
            Token::LParen => depth += 1,
            Token::RParen => depth = depth.saturating_sub(1),
            _ => {}
        }
        depth > 0
    });
    inside.filter_map(name).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn named_constraints_are_found_in_the_text_of_a_table() {
        let create = "create table a (title text constraint not_long check (length(title) < 40 and (1 = 1)), \
            low int constraint low_given not null, high int constraint one_high unique check (max(high, 1) > 0), \
            constraint \"in order\" check (low < high), constraint pair unique (low, high), \
            constraint it primary key (title), check (low > 0))";
        let owned = |columns: &[&str]| columns.iter().map(|name| (*name).to_owned()).collect();
        let check = |name: &str, columns: &[&str]| (name.to_owned(), owned(columns));
        let key = |name: &str, kind, columns: &[&str]| NamedKey {
            name: name.to_owned(),
            kind,
            columns: owned(columns),
        };
        use ConstraintKind::{NotNull, Unique};
        assert_eq!(
            NamedConstraints::read(create),
            NamedConstraints {
                checks: vec![
                    check("not_long", &["length", "title", "and"]),
                    check("in order", &["low", "high"])
                ],
                keys: vec![
                    key("low_given", NotNull, &["low"]),
                    key("one_high", Unique, &["high"]),
                    key("pair", Unique, &["low", "high"]),
                    key("it", Unique, &["title"]),
                ],
            }
        );
        let cut = NamedConstraints::read("constraint a check ((((");
        assert_eq!(cut.checks, [check("a", &[])]);
        for text in [
            "'",
            "",
            "constraint",
            "create table a (constraint b unique",
            "))))",
        ] {
            assert_eq!(NamedConstraints::read(text).checks, [], "{text}");
        }
    }
}
