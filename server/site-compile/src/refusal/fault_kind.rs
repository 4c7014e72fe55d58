//! What can be wrong with a field of a form, in one word for templates and in a sentence for the
//! visitor.

use millpond_db::ConstraintKind;

pub const MISSING: &str = "missing";
pub const TYPE: &str = "type";
pub const RANGE: &str = "range";
pub const CHOICE: &str = "choice";
pub const UNIQUE: &str = "unique";
pub const CHECK: &str = "check";
pub const REFERENCE: &str = "reference";
pub const IN_USE: &str = "in_use";
pub const PASSWORD: &str = "password";
pub const SIZE: &str = "size";
pub const COUNT: &str = "count";
pub const CONFLICT: &str = "conflict";

/// All of them.
pub const ALL: &[&str] = &[
    MISSING, TYPE, RANGE, CHOICE, UNIQUE, CHECK, REFERENCE, IN_USE, PASSWORD, SIZE, COUNT, CONFLICT,
];

/// Describes a violated constraint at a field: the word, and the text behind the field's name.
pub const fn of_constraint(kind: ConstraintKind) -> (&'static str, &'static str) {
    match kind {
        ConstraintKind::Unique | ConstraintKind::PrimaryKey => (UNIQUE, "exists already"),
        ConstraintKind::ForeignKey => (REFERENCE, "refers to something that does not exist"),
        ConstraintKind::StillReferenced => (IN_USE, "is still in use"),
        ConstraintKind::EitherReference => (
            REFERENCE,
            "refers to something that does not exist, or is still in use",
        ),
        ConstraintKind::NotNull => (MISSING, "must be filled in"),
        ConstraintKind::Check | ConstraintKind::Policy | ConstraintKind::Other => {
            (CHECK, "is too short, too long or not allowed")
        }
    }
}

/// A sentence about a field: its name as a person would write it, and what is wrong.
pub fn sentence(field: &str, wrong: &str) -> String {
    let words = field.replace('_', " ");
    let mut letters = words.trim().chars();
    let first = letters.next().map(|first| first.to_uppercase().to_string());
    let name = first.unwrap_or_default() + letters.as_str();
    format!("{name} {}.", wrong.trim_end_matches('.'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sentence_begins_with_the_name_of_the_field() {
        assert_eq!(
            sentence("artist_id", "must be filled in"),
            "Artist id must be filled in."
        );
        assert_eq!(sentence("é", "x."), "É x.");
    }
}
