//! The constraints of the tables that a statement writes, as far as messages about them need them.

use sqlparser::{
    dialect::GenericDialect,
    tokenizer::{Token, Tokenizer},
};

use crate::{ConstraintKind, Violated};

/// Schema of the tables that a statement writes. It may be older than the schema: it says where a
/// message belongs, and nothing else.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WrittenSchema {
    /// The columns that refer to other rows.
    pub(crate) references: Vec<String>,
    /// The names of CHECK constraints, with their columns.
    pub(crate) checks: Vec<(String, Vec<String>)>,
    /// Other constraints that have a name and are violated without it: SQLite names the columns.
    pub(crate) keys: Vec<NamedKey>,
    /// The names of all others.
    pub(crate) names: Vec<String>,
}

/// A named constraint of which the database says the columns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct NamedKey {
    pub(crate) name: String,
    /// Unique, also of a primary key; or not null.
    pub(crate) kind: ConstraintKind,
    pub(crate) columns: Vec<String>,
}

impl WrittenSchema {
    /// The names of the constraints that can be told from others when they are violated.
    pub fn constraints(&self) -> impl Iterator<Item = &str> {
        let checks = self.checks.iter().map(|(name, _)| name.as_str());
        let keys = self.keys.iter().map(|key| key.name.as_str());
        let others = self.names.iter().map(String::as_str);
        checks.chain(keys).chain(others)
    }

    /// True if a violated constraint may be the one of this name. On SQLite two unique constraints
    /// on columns of the same names, in two tables that are written, cannot be told apart.
    #[must_use]
    pub fn is_named(&self, name: &str, kind: ConstraintKind, violated: &Violated) -> bool {
        if let Some(constraint) = &violated.constraint {
            return constraint.eq_ignore_ascii_case(name);
        }
        let kind = match kind {
            ConstraintKind::PrimaryKey => ConstraintKind::Unique,
            kind => kind,
        };
        let same = |columns: &[String]| {
            let mut pairs = columns.iter().zip(&violated.columns);
            columns.len() == violated.columns.len()
                && pairs.all(|(one, other)| one.eq_ignore_ascii_case(other))
        };
        let mut keys = self.keys.iter();
        keys.any(|key| {
            key.kind == kind && key.name.eq_ignore_ascii_case(name) && same(&key.columns)
        })
    }

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_constraint_leads_to_columns() {
        let schema = WrittenSchema {
            references: vec!["artist_id".to_owned()],
            checks: vec![("in_order".to_owned(), vec!["low".to_owned()])],
            ..WrittenSchema::default()
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
