//! What a session must say: the condition of a `-- require:` line and of a `[[require]]` entry.
//!
//! ```text
//! claims.user
//! claims.role = 'editor'
//! claims.role in ('editor', 'admin')
//! claims.role != 'guest'
//! claims.level not in (0, 1)
//! ```
//!
//! A claim that is not there meets no condition, as null meets none in SQL.

use std::fmt;

use millpond_db::Value;

use super::{
    claims::as_kind,
    lines::{LineFault, fault},
};
use crate::{parameter_names::is_name, suggest::closest};

/// A condition on one claim.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Condition {
    pub claim: String,
    pub(super) test: ClaimTest,
}

impl Condition {
    /// True if it keeps out whom the other keeps out: it is the same, or asks for a value where the
    /// other asks for any.
    pub fn is_as_strict_as(&self, other: &Self) -> bool {
        self == other || (other.test == ClaimTest::Present && self.test != ClaimTest::Present)
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum ClaimTest {
    /// Any value will do.
    Present,
    /// One of these.
    OneOf(Vec<Literal>),
    /// Any value but these.
    NoneOf(Vec<Literal>),
}

/// A value as it is written in a condition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Literal {
    Integer(i64),
    Boolean(bool),
    Text(String),
}

const EXAMPLE: &str = "for example: claims.role in ('editor', 'admin')";
const VALUE: &str =
    "a text in quotes, a whole number, true or false: -- require: claims.role = 'editor'";
const OPERATORS: [&str; 5] = ["=", "!=", "in", "not in", "else"];

impl Condition {
    /// Reads the condition at the beginning of `text`; gives what follows, too.
    pub(super) fn read(text: &str) -> Result<(Self, &str), LineFault> {
        let (claim, rest) = word(text.trim_start());
        let name = claim.strip_prefix("claims.").filter(|name| is_name(name));
        let Some(name) = name else {
            let shown = if claim.is_empty() { text.trim() } else { claim };
            let hint = match is_name(claim) {
                true => format!("for example: claims.{claim}"),
                false => EXAMPLE.to_owned(),
            };
            return Err(fault(shown, format!("`{shown}` is no claim"), &hint));
        };
        let (test, rest) = test(rest.trim_start())?;
        let claim = name.to_owned();
        Ok((Self { claim, test }, rest.trim()))
    }

    /// Reads a text that is one condition. `claims.` may be left out.
    pub fn parse(text: &str) -> Result<Self, String> {
        let text = text.trim();
        let full = match text.starts_with("claims.") {
            true => text.to_owned(),
            false => format!("claims.{text}"),
        };
        let sentence = |(_, message, hint): LineFault| format!("{message} ({hint})");
        let (condition, rest) = Self::read(&full).map_err(sentence)?;
        match rest {
            "" => Ok(condition),
            rest if word(rest).0 == "else" => {
                Err("where a visitor is led stands in a key of its own: else = \"/login\"".into())
            }
            rest => Err(sentence(superfluous(rest))),
        }
    }

    /// True if a claim with this value meets it.
    pub fn is_met_by(&self, value: &Value) -> bool {
        match &self.test {
            ClaimTest::Present => true,
            ClaimTest::OneOf(wanted) => wanted.iter().any(|wanted| wanted.is(value)),
            ClaimTest::NoneOf(barred) => !barred.iter().any(|barred| barred.may_be(value)),
        }
    }
}

/// Returns the fault of text that follows a condition and is not part of it.
pub(super) fn superfluous(rest: &str) -> LineFault {
    let hint = match word(rest).0 {
        "and" => "write a line for each condition; all of them must hold",
        "or" => "several values of one claim: claims.role in ('editor', 'admin')",
        _ => EXAMPLE,
    };
    fault(rest, format!("`{rest}` is not part of a condition"), hint)
}

/// The word at the beginning, and what follows it.
pub(super) fn word(text: &str) -> (&str, &str) {
    let is_end = |c: char| c.is_whitespace() || matches!(c, '=' | '!' | '<' | '>' | '(' | '\'');
    text.split_at(text.find(is_end).unwrap_or(text.len()))
}

fn test(text: &str) -> Result<(ClaimTest, &str), LineFault> {
    let one = |(value, rest): (Literal, _)| (vec![value], rest);
    if let Some(rest) = text.strip_prefix("!=") {
        let (barred, rest) = literal(rest).map(one)?;
        return Ok((ClaimTest::NoneOf(barred), rest));
    }
    if let Some(rest) = text.strip_prefix('=') {
        let (wanted, rest) = literal(rest).map(one)?;
        return Ok((ClaimTest::OneOf(wanted), rest));
    }
    match word(text) {
        ("" | "else", _) if !text.starts_with(['!', '<', '>', '(', '\'']) => {
            Ok((ClaimTest::Present, text))
        }
        ("in", rest) => list(rest).map(|(wanted, rest)| (ClaimTest::OneOf(wanted), rest)),
        ("not", rest) => match word(rest.trim_start()) {
            ("in", rest) => list(rest).map(|(barred, rest)| (ClaimTest::NoneOf(barred), rest)),
            _ => Err(fault("not", "after `not` stands `in (…)`", EXAMPLE)),
        },
        ("and" | "or", _) => Err(superfluous(text)),
        (wrong, _) => {
            let shown = match wrong {
                "" => text.split_whitespace().next().unwrap_or_default(),
                wrong => wrong,
            };
            let hint = match closest(shown, OPERATORS) {
                Some(near) => format!("did you mean `{near}`?"),
                None => "a claim is compared with =, !=, in (…) or not in (…)".to_owned(),
            };
            Err(fault(shown, format!("`{shown}` is no comparison"), &hint))
        }
    }
}

/// `(…, …)`, and what follows.
fn list(text: &str) -> Result<(Vec<Literal>, &str), LineFault> {
    let begins = text.trim_start();
    let open = |text: &str| fault(text, "after `in` stands a list in brackets", EXAMPLE);
    let mut rest = begins.strip_prefix('(').ok_or_else(|| open("in"))?;
    let mut values = Vec::new();
    loop {
        let (value, after) = literal(rest)?;
        values.push(value);
        let after = after.trim_start();
        if let Some(after) = after.strip_prefix(')') {
            return Ok((values, after));
        }
        rest = after.strip_prefix(',').ok_or_else(|| {
            let shown = if after.is_empty() { begins } else { after };
            fault(shown, "the list does not end", EXAMPLE)
        })?;
    }
}

/// A value, and what follows.
fn literal(text: &str) -> Result<(Literal, &str), LineFault> {
    let text = text.trim_start();
    let Some(mut quoted) = text.strip_prefix('\'') else {
        let is_end = |c: char| c.is_whitespace() || matches!(c, ',' | ')');
        let (word, rest) = text.split_at(text.find(is_end).unwrap_or(text.len()));
        let literal = match word {
            "true" => Some(Literal::Boolean(true)),
            "false" => Some(Literal::Boolean(false)),
            word => word.parse().ok().map(Literal::Integer),
        };
        let missing = || fault(word, format!("`{word}` is no value"), VALUE);
        return literal.map(|value| (value, rest)).ok_or_else(missing);
    };
    let mut inside = String::new();
    loop {
        let Some((part, after)) = quoted.split_once('\'') else {
            return Err(fault(
                text,
                format!("the quote of {text} does not end"),
                VALUE,
            ));
        };
        inside.push_str(part);
        let Some(more) = after.strip_prefix('\'') else {
            return Ok((Literal::Text(inside), after));
        };
        // A quote within quotes is written twice.
        inside.push('\'');
        quoted = more;
    }
}

impl Literal {
    /// True if a claim has this value. A number and true or false also count as the text or the
    /// number that a column of another type gives for them.
    fn is(&self, claim: &Value) -> bool {
        match self {
            Self::Integer(integer) => {
                as_kind(claim, Some(millpond_db::ValueKind::Integer)) == Value::Integer(*integer)
            }
            Self::Boolean(truth) => {
                as_kind(claim, Some(millpond_db::ValueKind::Boolean)) == Value::Boolean(*truth)
            }
            Self::Text(text) => matches!(claim, Value::Text(claim) if **claim == **text),
        }
    }

    /// True if a claim may be this value where the value is barred: each spelling of the value is
    /// barred, too. *Counterexample* with [`Literal::is`]: `claims.level != '7'` would admit the
    /// number 7.
    fn may_be(&self, claim: &Value) -> bool {
        let number = match claim {
            Value::Integer(integer) => Some(*integer as f64),
            Value::Real(real) => Some(*real),
            Value::Text(text) => text.trim().parse().ok(),
            Value::Boolean(truth) => Some(f64::from(u8::from(*truth))),
            _ => None,
        };
        let text = match claim {
            Value::Integer(integer) => integer.to_string(),
            Value::Real(real) => real.to_string(),
            Value::Boolean(truth) => truth.to_string(),
            Value::Text(text) => text.to_string(),
            _ => String::new(),
        };
        let own_number = match self {
            Self::Integer(integer) => Some(*integer as f64),
            Self::Boolean(truth) => Some(f64::from(u8::from(*truth))),
            Self::Text(text) => text.trim().parse().ok(),
        };
        let own_text = match self {
            Self::Integer(integer) => integer.to_string(),
            Self::Boolean(truth) => truth.to_string(),
            Self::Text(text) => text.clone(),
        };
        self.is(claim) || text == own_text || (number.is_some() && number == own_number)
    }
}

impl fmt::Display for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "claims.{}", self.claim)?;
        let (one, many, values) = match &self.test {
            ClaimTest::Present => return Ok(()),
            ClaimTest::OneOf(values) => ("=", "in", values),
            ClaimTest::NoneOf(values) => ("!=", "not in", values),
        };
        match &values[..] {
            [value] => write!(f, " {one} {value}"),
            values => {
                let values: Vec<String> = values.iter().map(Literal::to_string).collect();
                write!(f, " {many} ({})", values.join(", "))
            }
        }
    }
}

impl fmt::Display for Literal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Integer(integer) => write!(f, "{integer}"),
            Self::Boolean(truth) => write!(f, "{truth}"),
            Self::Text(text) => write!(f, "'{}'", text.replace('\'', "''")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn met(text: &str, value: impl Into<Value>) -> bool {
        let (condition, rest) = Condition::read(text).unwrap();
        assert_eq!(rest, "", "{text}");
        assert_eq!(condition.to_string().parse_again(), condition);
        condition.is_met_by(&value.into())
    }

    trait ParseAgain {
        fn parse_again(&self) -> Condition;
    }

    impl ParseAgain for String {
        fn parse_again(&self) -> Condition {
            Condition::parse(self).unwrap()
        }
    }

    #[test]
    fn a_claim_is_compared_with_values() {
        for (text, value, expected) in [
            ("claims.a", Value::from("x"), true),
            ("claims.a = 'x'", "x".into(), true),
            ("claims.a='x'", "X".into(), false),
            ("claims.a = 7", "7".into(), true),
            ("claims.a = '7'", 7.into(), false),
            ("claims.a = true", 1.into(), true),
            ("claims.a in ('x', 'y')", "y".into(), true),
            ("claims.a in('x','y')", "z".into(), false),
            ("claims.a in (1,2 , 3)", 3.into(), true),
            (
                "claims.a in ('it''s, (here) else')",
                "it's, (here) else".into(),
                true,
            ),
            ("claims.a != 'x'", "y".into(), true),
            ("claims.a != 'x'", "x".into(), false),
            ("claims.a not in ('x', 'y')", "y".into(), false),
            ("claims.a not in ('x', 'y')", "z".into(), true),
            ("claims.a not  in (1)", "1".into(), false),
            ("claims.a != '7'", 7.into(), false),
            ("claims.a != 7", Value::Real(7.0), false),
            ("claims.a != 7", "07".into(), false),
            ("claims.a != 'true'", Value::Boolean(true), false),
            ("claims.a != 'true'", Value::Boolean(false), true),
        ] {
            assert_eq!(met(text, value.clone()), expected, "{text}: {value:?}");
        }
    }

    #[test]
    fn what_follows_is_left_to_the_caller() {
        for (text, rest) in [
            ("claims.a else /login", "else /login"),
            ("claims.a = 'x' else /login", "else /login"),
            ("claims.a in ('else /a') else /b", "else /b"),
            ("claims.a = 'x' and claims.b", "and claims.b"),
        ] {
            assert_eq!(Condition::read(text).unwrap().1, rest, "{text}");
        }
        assert_eq!(Condition::parse("role in ('a')").unwrap().claim, "role");
        assert_eq!(Condition::parse("claims.role").unwrap().claim, "role");
    }

    #[test]
    fn faults_say_what_to_write() {
        for (text, said) in [
            ("", "is no claim"),
            ("role", "claims.role"),
            ("claims.", "is no claim"),
            ("claims.a-b", "is no claim"),
            ("claims.a = x", "`x` is no value"),
            ("claims.a = 'x", "does not end"),
            ("claims.a in", "a list in brackets"),
            ("claims.a in 'x'", "a list in brackets"),
            ("claims.a in ()", "is no value"),
            ("claims.a in ('x'", "the list does not end"),
            ("claims.a in ('x' 'y')", "the list does not end"),
            ("claims.a not 'x'", "after `not`"),
            ("claims.a inn ('x')", "did you mean `in`?"),
            ("claims.a and claims.b", "all of them must hold"),
            ("claims.a or claims.b", "several values of one claim"),
            ("claims.a <> 'x'", "is no comparison"),
            ("claims.a > 1", "is no comparison"),
        ] {
            let (_, message, hint) = Condition::read(text).unwrap_err();
            assert!(
                format!("{message} {hint}").contains(said),
                "{text}: {message} {hint}"
            );
        }
        for text in ["role = 'a' else /x", "role = 'a' and user", "role = a"] {
            assert!(Condition::parse(text).is_err(), "{text}");
        }
    }
}
