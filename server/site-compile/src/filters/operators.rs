//! Operators as filters: templates call them in the place of `+` and its like
//! (`template/operators.rs`).
//!
//! With null they give null, as SQL does. What cannot be calculated is null, too, and a note for
//! the owner.

use std::fmt::{self, Write as _};
use std::sync::{Arc, LazyLock};

use minijinja::{
    Environment, Error, ErrorKind, Expression, State, filters,
    value::{Object, Value, ValueKind},
};

use super::tolerance::{Otherwise, settle};

/// The operators between two values, with the names of their filters.
pub const BINARY: [(&str, &str); 9] = [
    ("+", "__add"),
    ("-", "__sub"),
    ("*", "__mul"),
    ("/", "__div"),
    ("//", "__floordiv"),
    ("%", "__rem"),
    ("**", "__pow"),
    ("~", "__concat"),
    ("in", "__in"),
];
pub const NOT_IN: &str = "__not_in";
pub const NEG: &str = "__neg";
/// A value of which a part is taken.
pub const SLICED: &str = "__sliced";
/// The place at which a part begins or ends.
pub const BOUND: &str = "__bound";
/// How far the items of a part lie from each other.
pub const STEP: &str = "__step";
/// Name of the value of a loop.
pub const EACH: &str = "__each";
/// Fails for an undefined value that is an error where it is printed, with its name.
const ASKED: &str = "__asked";

/// The engine's own operators, in the order of [`BINARY`].
static COMPILED: LazyLock<Vec<Expression<'static, 'static>>> = LazyLock::new(|| {
    let signs = BINARY
        .iter()
        .map(|(sign, _)| compiled(&format!("a {sign} b")));
    signs.collect()
});

/// Value of an `if` without an `else`.
pub(super) static SILENT: LazyLock<Value> =
    LazyLock::new(|| compiled("1 if false").eval(()).unwrap_or_default());

fn compiled(expression: &str) -> Expression<'static, 'static> {
    static ENGINE: LazyLock<Environment<'static>> = LazyLock::new(Environment::new);
    let compiled = ENGINE.compile_expression_owned(expression.to_owned());
    compiled.expect("it is an expression")
}

/// The two values of an operator.
#[derive(Debug)]
struct Operands(Value, Value);

impl Object for Operands {
    fn get_value(self: &Arc<Self>, key: &Value) -> Option<Value> {
        match key.as_str() {
            Some("a") => Some(self.0.clone()),
            Some("b") => Some(self.1.clone()),
            _ => None,
        }
    }
}

pub(super) fn register(environment: &mut Environment<'_>) {
    for (at, (_, name)) in BINARY.iter().enumerate() {
        environment.add_filter(
            *name,
            move |state: &mut State, left: Value, right: Value| binary(state, at, &left, &right),
        );
    }
    environment.add_filter(NOT_IN, |state: &mut State, left: Value, right: Value| {
        let is_in = binary(state, BINARY.len() - 1, &left, &right)?;
        Ok::<_, Error>(!is_in.is_true())
    });
    environment.add_filter(NEG, |state: &mut State, value: Value| {
        binary(state, 1, &Value::from(0), &value)
    });
    environment.add_filter(ASKED, filters::upper);
    environment.add_filter(EACH, |value: Value| {
        let tried = value.try_iter().map(|_| value.clone());
        settle(tried, std::slice::from_ref(&value), Otherwise::Nothing)
    });
    environment.add_filter(SLICED, |state: &mut State, value: Value| {
        match value.kind() {
            ValueKind::None => Ok(Value::from("")),
            ValueKind::Undefined => known(state, &value).map(|_| Value::from("")),
            ValueKind::Number | ValueKind::Bool | ValueKind::Map | ValueKind::Plain => {
                let error = cannot(&format!("a part of {}", value.kind()));
                settle(Err(error), &[], Otherwise::Blank)
            }
            _ => Ok(value),
        }
    });
    for (name, is_step) in [(BOUND, false), (STEP, true)] {
        environment.add_filter(name, move |state: &mut State, value: Value| {
            let number = known(state, &value)?.as_i64();
            // A step of nothing would never end.
            let number = number.filter(|number| !is_step || *number != 0);
            Ok::<_, Error>(number.map_or_else(|| Value::from(()), Value::from))
        });
    }
}

/// The value of an operator.
fn binary(state: &mut State, at: usize, left: &Value, right: &Value) -> Result<Value, Error> {
    let (sign, _) = BINARY[at];
    if let Some(whole) = whole(sign, left, right) {
        return Ok(whole);
    }
    let (left, right) = (&known(state, left)?, &known(state, right)?);
    match sign {
        "in" if right.is_none() => return Ok(Value::from(false)),
        "in" | "~" => {}
        _ if left.is_none() || right.is_none() => return Ok(Value::from(())),
        _ => {}
    }
    let operand = |value: &Value| match sign {
        "~" if value.is_none() => Value::from(""),
        _ => value.clone(),
    };
    let operands = Value::from_object(Operands(operand(left), operand(right)));
    let calculated = COMPILED[at].eval(operands);
    let calculated = calculated.map_err(|error| {
        let why = error.detail().unwrap_or_default().to_owned();
        cannot(&format!(
            "{} {sign} {} ({why})",
            beginning(left),
            beginning(right)
        ))
    });
    let otherwise = match sign {
        "in" => Otherwise::False,
        _ => Otherwise::Nothing,
    };
    settle(calculated, &[], otherwise)
}

/// The value, and null for one that is undefined and may be printed. The error of any other names
/// it.
pub(super) fn known(state: &mut State, value: &Value) -> Result<Value, Error> {
    if !value.is_undefined() {
        return Ok(value.clone());
    }
    let asked = state.apply_filter(ASKED, std::slice::from_ref(value));
    asked.map(|_| Value::from(()))
}

/// Calculates with small whole numbers, as most templates do.
fn whole(sign: &str, left: &Value, right: &Value) -> Option<Value> {
    if !left.is_integer() || !right.is_integer() {
        return None;
    }
    let (left, right) = (left.as_i64()?, right.as_i64()?);
    let result = match sign {
        "+" => left.checked_add(right)?,
        "-" => left.checked_sub(right)?,
        "*" => left.checked_mul(right)?,
        "%" if right > 0 => left.rem_euclid(right),
        _ => return None,
    };
    Some(Value::from(result))
}

/// Characters of a value that a note shows.
const MOST_SHOWN: usize = 40;

/// A value for a note, cut. A value may be large, so what is cut off is not even written.
fn beginning(value: &Value) -> String {
    struct Beginning(String);
    impl fmt::Write for Beginning {
        fn write_str(&mut self, text: &str) -> fmt::Result {
            let room = MOST_SHOWN.saturating_sub(self.0.chars().count());
            let mut characters = text.chars();
            self.0.extend(characters.by_ref().take(room));
            match characters.next() {
                None => Ok(()),
                Some(_) => Err(fmt::Error),
            }
        }
    }
    let mut text = Beginning(String::new());
    let is_cut = write!(text, "{value:?}").is_err();
    text.0 + if is_cut { "…" } else { "" }
}

fn cannot(what: &str) -> Error {
    Error::new(
        ErrorKind::InvalidOperation,
        format!("cannot calculate {what}"),
    )
}
