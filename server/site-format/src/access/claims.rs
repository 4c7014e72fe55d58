//! What a visitor's session says of them, and what pages and queries ask of it.

use millpond_db::{Value, ValueKind};

/// The most claims of a session.
pub const MOST_CLAIMS: usize = 32;

/// Names with their values, none of which is null: a null column makes no claim.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Claims(Vec<(String, Value)>);

impl Claims {
    pub fn new(claims: Vec<(String, Value)>) -> Self {
        Self(claims)
    }

    pub fn get(&self, name: &str) -> Option<&Value> {
        let found = self.0.iter().find(|(claim, _)| claim == name);
        found.map(|(_, value)| value)
    }

    pub fn iter(&self) -> impl Iterator<Item = (&str, &Value)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value))
    }
}

/// A claim that a page's queries use, as the kind of value that the database compares it with. Its
/// value is part of every key that is made from what the queries give (coherence.md, rule 15).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClaimUse {
    pub name: String,
    /// None where the database takes what it gets, and for `-- vary:`.
    pub kind: Option<ValueKind>,
}

impl ClaimUse {
    /// The value that is bound: null where the session, or the claim, is not there.
    pub fn value(&self, claims: &Claims) -> Value {
        claims
            .get(&self.name)
            .map_or(Value::Null, |value| as_kind(value, self.kind))
    }
}

/// A claim converted to another kind of value; null if it cannot be converted. A claim `'7'`
/// becomes the integer 7: a visitor who signs in with a column of another type is the same visitor.
pub(super) fn as_kind(value: &Value, kind: Option<ValueKind>) -> Value {
    match (kind, value) {
        (None, _) => value.clone(),
        (Some(ValueKind::Integer), Value::Integer(_))
        | (Some(ValueKind::Real), Value::Real(_))
        | (Some(ValueKind::Text | ValueKind::Other), Value::Text(_))
        | (Some(ValueKind::Boolean), Value::Boolean(_)) => value.clone(),
        (Some(ValueKind::Integer), Value::Boolean(truth)) => Value::Integer((*truth).into()),
        (Some(ValueKind::Integer), Value::Text(text)) => {
            text.parse().map_or(Value::Null, Value::Integer)
        }
        (Some(ValueKind::Boolean), Value::Integer(number @ (0 | 1))) => {
            Value::Boolean(*number == 1)
        }
        (Some(ValueKind::Real), Value::Integer(integer)) => Value::Real(*integer as f64),
        // A value of another kind is given as text, which the database reads.
        (Some(ValueKind::Text | ValueKind::Other), Value::Integer(integer)) => {
            Value::Text(integer.to_string().as_str().into())
        }
        _ => Value::Null,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_claim_is_what_the_database_compares_it_with() {
        let claims = Claims::new(vec![
            ("id".to_owned(), 7.into()),
            ("text".to_owned(), "7".into()),
            ("word".to_owned(), "x".into()),
            ("admin".to_owned(), Value::Boolean(true)),
        ]);
        let value = |name: &str, kind| {
            let name = name.to_owned();
            ClaimUse { name, kind }.value(&claims)
        };
        for (name, kind, expected) in [
            ("id", None, 7.into()),
            ("id", Some(ValueKind::Integer), 7.into()),
            ("id", Some(ValueKind::Text), "7".into()),
            ("id", Some(ValueKind::Other), "7".into()),
            ("id", Some(ValueKind::Real), Value::Real(7.0)),
            ("text", Some(ValueKind::Integer), 7.into()),
            ("text", None, "7".into()),
            ("word", Some(ValueKind::Integer), Value::Null),
            ("word", Some(ValueKind::Blob), Value::Null),
            ("admin", Some(ValueKind::Integer), 1.into()),
            ("admin", Some(ValueKind::Boolean), Value::Boolean(true)),
            ("none", Some(ValueKind::Text), Value::Null),
        ] {
            assert_eq!(value(name, kind), expected, "{name} as {kind:?}");
        }
    }
}
