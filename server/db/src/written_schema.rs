//! The constraints of the tables that a statement writes, as far as messages about them need them.

use sqlparser::{
    dialect::GenericDialect,
    keywords::Keyword,
    tokenizer::{Token, Tokenizer},
};

use crate::{ConstraintKind, Violated};

/// What the schema says of the tables that a statement writes. It may be older than the schema: it
/// says where a message belongs, and nothing else.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WrittenSchema {
    /// The columns that refer to other rows.
    pub(crate) references: Vec<String>,
    /// The names of CHECK constraints, with their columns.
    pub(crate) checks: Vec<(String, Vec<String>)>,
}

impl WrittenSchema {
    /// The columns that a violated constraint is about; `written` are those that the statement
    /// gives values of a request.
    #[must_use]
    pub fn columns_of(
        &self,
        kind: ConstraintKind,
        violated: &Violated,
        written: &[&str],
    ) -> Vec<String> {
        if kind == ConstraintKind::StillReferenced {
            // The database names the columns of the row that is referred to.
            return Vec::new();
        }
        if !violated.columns.is_empty() {
            return violated.columns.clone();
        }
        let named = violated.constraint.as_deref();
        let known = named.and_then(|name| self.checks.iter().find(|(known, _)| known == name));
        if let Some((_, columns)) = known {
            return columns.clone();
        }
        let is_written = |name: &&String| written.iter().any(|one| one.eq_ignore_ascii_case(name));
        if let Some(text) = named {
            // A condition, or a name such as `album_title_check`.
            let names = [identifiers(text), words(text, written)].concat();
            let names: Vec<String> = names.iter().filter(is_written).cloned().collect();
            if !names.is_empty() {
                return names;
            }
        }
        let is_key = matches!(
            kind,
            ConstraintKind::ForeignKey | ConstraintKind::EitherReference
        );
        let keys: Vec<String> = self.references.iter().filter(is_written).cloned().collect();
        match (is_key, keys.len(), written) {
            (true, 1, _) => keys,
            (true, 2.., _) | (false, _, []) => Vec::new(),
            (_, _, [only]) => vec![(*only).to_owned()],
            _ => Vec::new(),
        }
    }
}

/// The columns whose names stand in a constraint's name, between its ends and `_`.
fn words(name: &str, written: &[&str]) -> Vec<String> {
    let padded = format!("_{}_", name.to_ascii_lowercase());
    let has = |column: &&&str| padded.contains(&format!("_{}_", column.to_ascii_lowercase()));
    let found = written.iter().filter(has);
    // Of `title` and `sub_title`, both of which are in `sub_title_check`, the longer one.
    let longest = found.max_by_key(|column| column.len());
    longest
        .map(|column| (*column).to_owned())
        .into_iter()
        .collect()
}

/// All names in an expression.
fn identifiers(text: &str) -> Vec<String> {
    let tokens = Tokenizer::new(&GenericDialect {}, text).tokenize();
    let tokens = tokens.unwrap_or_default().into_iter();
    let names = tokens.filter_map(|token| match token {
        Token::Word(word) => Some(word.value),
        Token::DoubleQuotedString(name) => Some(name),
        _ => None,
    });
    names.collect()
}

/// The named CHECK constraints in the text of `create table`, each with the names in its condition.
pub(crate) fn checks(create: &str) -> Vec<(String, Vec<String>)> {
    let tokens = Tokenizer::new(&GenericDialect {}, create).tokenize();
    let tokens: Vec<Token> = tokens.unwrap_or_default();
    let tokens: Vec<&Token> = tokens
        .iter()
        .filter(|token| !matches!(token, Token::Whitespace(_)))
        .collect();
    let keyword = |token: &Token, keyword: Keyword| match token {
        Token::Word(word) => word.quote_style.is_none() && word.keyword == keyword,
        _ => false,
    };
    let mut checks = Vec::new();
    for (at, part) in tokens.windows(4).enumerate() {
        let [constraint, name, check, open] = part else {
            continue;
        };
        let name = match name {
            Token::Word(word) => &word.value,
            Token::DoubleQuotedString(name) => name,
            _ => continue,
        };
        let is_one = keyword(constraint, Keyword::CONSTRAINT) && keyword(check, Keyword::CHECK);
        if !is_one || **open != Token::LParen {
            continue;
        }
        let mut depth = 0_usize;
        let condition = tokens[at + 3..].iter().take_while(|token| {
            match token {
                Token::LParen => depth += 1,
                Token::RParen => depth -= 1,
                _ => {}
            }
            depth > 0
        });
        let names = condition.filter_map(|token| match token {
            Token::Word(word) => Some(word.value.clone()),
            Token::DoubleQuotedString(name) => Some(name.clone()),
            _ => None,
        });
        checks.push((name.clone(), names.collect()));
    }
    checks
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn named_conditions_are_found_in_the_text_of_a_table() {
        let create = "create table a (title text constraint not_long check (length(title) < 40 and (1 = 1)), \
            low int, high int, constraint \"in order\" check (low < high), check (low > 0))";
        let name = |name: &str, columns: &[&str]| {
            let columns = columns.iter().map(|column| (*column).to_owned());
            (name.to_owned(), columns.collect::<Vec<_>>())
        };
        assert_eq!(
            checks(create),
            [
                name("not_long", &["length", "title", "and"]),
                name("in order", &["low", "high"])
            ]
        );
        assert_eq!(checks("constraint a check (((("), [name("a", &[])]);
        assert_eq!(checks("'"), []);
    }

    #[test]
    fn a_constraint_leads_to_columns() {
        let schema = WrittenSchema {
            references: vec!["artist_id".to_owned()],
            checks: vec![("in_order".to_owned(), vec!["low".to_owned()])],
        };
        let named = |constraint: &str| Violated {
            columns: Vec::new(),
            constraint: Some(constraint.to_owned()),
        };
        let written = ["title", "artist_id", "low"];
        let columns = |kind, violated: &Violated| schema.columns_of(kind, violated, &written);
        use ConstraintKind::{Check, EitherReference, ForeignKey, StillReferenced, Unique};
        for (kind, violated, expected) in [
            (Check, named("in_order"), &["low"][..]),
            (Check, named("length(Title) < 40"), &["Title"]),
            (Check, named("album_title_check"), &["title"]),
            (Check, named("too_odd"), &[]),
            (ForeignKey, Violated::default(), &["artist_id"]),
            (EitherReference, Violated::default(), &["artist_id"]),
            (
                StillReferenced,
                Violated::of_sqlite("UNIQUE constraint failed: a.b"),
                &[],
            ),
            (
                Unique,
                Violated::of_sqlite("UNIQUE constraint failed: a.b"),
                &["b"],
            ),
            (Unique, named("by_lower"), &[]),
        ] {
            assert_eq!(columns(kind, &violated), expected, "{kind:?} {violated:?}");
        }
        let only = schema.columns_of(Check, &named("odd"), &["title"]);
        assert_eq!(only, ["title"]);
        assert_eq!(schema.columns_of(Check, &named("odd"), &[]), [""; 0]);
    }
}
