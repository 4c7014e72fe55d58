//! The values to which a column is restricted.

use std::borrow::Cow;

use millpond_store::Tag;

use crate::Value;

/// The most values of one list, or of one witness; more make the whole table a dependency.
pub(crate) const MAX_VALUES: usize = 64;

/// How a column's equality can be put into one form (coherence.md, rule 11).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum ValueClass {
    /// Integers of any width, equal as numbers.
    Integer,
    /// Texts that are equal byte for byte.
    Text,
    /// Texts that are equal once the case of their letters is taken away.
    Folded(CaseFold),
    /// PostgreSQL's `uuid`.
    Uuid,
    /// PostgreSQL's `boolean`.
    Boolean,
}

/// How the case of letters is taken away.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum CaseFold {
    /// `lower(a) = lower(b)`. Only what is compared with values has this form, never a column by
    /// itself.
    Lower,
    /// `upper(a) = upper(b)`, as above.
    Upper,
    /// That of a column which SQLite compares by NOCASE.
    Collation,
}

impl CaseFold {
    /// The function that takes it away; none for the equality of the column itself.
    pub(crate) const fn function(self) -> Option<&'static str> {
        match self {
            Self::Lower => Some("lower"),
            Self::Upper => Some("upper"),
            Self::Collation => None,
        }
    }
}

impl ValueClass {
    /// The function of the column by which rows of this class are found, if it is not the column.
    pub(crate) const fn function(self) -> Option<&'static str> {
        match self {
            Self::Folded(fold) => fold.function(),
            _ => None,
        }
    }
}

/// A value that a column is compared with, known before the query runs.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Operand {
    /// A parameter, by its index from 0.
    Parameter(usize),
    /// All items of a parameter that is a list.
    Items(usize),
    Constant(Value),
    /// The value of the last of these first rows.
    Last(usize),
    /// A number of rows that is computed of two integers.
    Computed(Arithmetic, Box<[Self; 2]>),
    /// No value; but every value where this parameter is null or this constant, as in `:genre is
    /// null or genre = :genre`.
    Unless(usize, Value),
}

/// Operation on two integers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Arithmetic {
    Plus,
    Minus,
    Times,
}

impl Arithmetic {
    /// Returns the result; none where it is no integer of 64 bits, of which PostgreSQL makes an
    /// error and SQLite a double.
    const fn of(self, left: i64, right: i64) -> Option<i64> {
        match self {
            Self::Plus => left.checked_add(right),
            Self::Minus => left.checked_sub(right),
            Self::Times => left.checked_mul(right),
        }
    }

    pub(super) const fn sign(self) -> char {
        match self {
            Self::Plus => '+',
            Self::Minus => '-',
            Self::Times => '*',
        }
    }
}

impl Operand {
    /// Its value in an execution with these parameters, if they say it.
    pub(crate) fn value<'a>(&'a self, params: &'a [Value]) -> Option<Cow<'a, Value>> {
        match self {
            Self::Parameter(index) | Self::Items(index) => params.get(*index).map(Cow::Borrowed),
            Self::Constant(value) => Some(Cow::Borrowed(value)),
            Self::Last(_) | Self::Unless(..) => None,
            Self::Computed(by, sides) => {
                let [left, right] = sides.as_ref();
                let result = by.of(left.integer(params)?, right.integer(params)?)?;
                Some(Cow::Owned(Value::Integer(result)))
            }
        }
    }

    /// True if the values beside this one say nothing in an execution with these parameters.
    fn lets_all_pass(&self, params: &[Value]) -> bool {
        let Self::Unless(index, constant) = self else {
            return false;
        };
        match (params.get(*index), constant) {
            // An empty list is given as null.
            (Some(Value::Json(list)), Value::Null) => list.as_array().is_none_or(Vec::is_empty),
            (None | Some(Value::Null), _) => true,
            (Some(_), Value::Null) => false,
            (Some(Value::Integer(given)), Value::Integer(constant)) => given == constant,
            (Some(Value::Text(given)), Value::Text(constant)) => given == constant,
            // They may be equal once they are of one type.
            _ => true,
        }
    }

    /// Its value, if that is an integer.
    pub(crate) fn integer(&self, params: &[Value]) -> Option<i64> {
        match *self.value(params)? {
            Value::Integer(integer) => Some(integer),
            _ => None,
        }
    }
}

/// The values to which a column is restricted.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Values {
    Given(Vec<Operand>),
    /// Values that this witness of the statement finds.
    Witnessed(usize),
    /// Values of the first rows, which these are.
    First(usize),
}

impl Values {
    pub(crate) const fn are_witnessed(&self) -> bool {
        matches!(self, Self::Witnessed(_))
    }

    /// True if they say nothing for some values of a parameter.
    pub(super) fn are_optional(&self) -> bool {
        let is_unless = |value: &Operand| matches!(value, Operand::Unless(..));
        matches!(self, Self::Given(values) if values.iter().any(is_unless))
    }

    pub(super) fn are_constants(&self) -> bool {
        matches!(self, Self::Given(_)) && !self.has_parameter()
    }

    /// True if a parameter is among them. A constant often selects most rows.
    pub(crate) fn has_parameter(&self) -> bool {
        let is_parameter =
            |value: &Operand| matches!(value, Operand::Parameter(_) | Operand::Items(_));
        matches!(self, Self::Given(values) if values.iter().any(is_parameter))
    }
}

/// The rows of a reference in which a column has one of some values, or which come first by it.
/// Only these rows count.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ColumnRestriction {
    /// The column's place in its reference, from 0.
    pub(crate) column: usize,
    /// The form of its equality; none for the first rows.
    pub(crate) class: Option<ValueClass>,
    pub(crate) values: Values,
}

impl ColumnRestriction {
    /// Returns the restriction to the values of this one and of another on the same column; none if
    /// they are too many, or not given one by one.
    pub(super) fn or(&self, other: &Self) -> Option<Self> {
        let (Values::Given(left), Values::Given(right)) = (&self.values, &other.values) else {
            return None;
        };
        let mut values = left.clone();
        values.extend(right.iter().filter(|value| !left.contains(value)).cloned());
        (values.len() <= MAX_VALUES).then(|| Self {
            values: Values::Given(values),
            ..self.clone()
        })
    }
}

/// Returns the tags of the rows in which a column of this class has one of the operands' values, by
/// `tag`, which gives that of one value; none if a value has no tag, or if there are too many.
pub(crate) fn given_tags(
    operands: &[Operand],
    class: ValueClass,
    params: &[Value],
    tag: impl Fn(&Value) -> Option<Tag>,
) -> Option<Vec<Tag>> {
    let mut tags = Vec::with_capacity(operands.len() + 1);
    for operand in operands {
        if matches!(operand, Operand::Unless(..)) {
            if operand.lets_all_pass(params) {
                return None;
            }
            continue;
        }
        let value = operand.value(params)?;
        match operand {
            Operand::Items(_) => {
                for item in items(&value, class)? {
                    tags.push(tag(&item)?);
                }
            }
            _ => tags.push(tag(&value)?),
        }
    }
    (tags.len() <= MAX_VALUES).then_some(tags)
}

/// Returns the items of a list as values that are equal to those of a column of this class, byte
/// for byte; none if a database might convert one of them. Some versions of SQLite end a text of
/// JSON at a character of code zero.
pub(crate) fn items(list: &Value, class: ValueClass) -> Option<Vec<Value>> {
    use serde_json::Value as Json;
    let list = match list {
        // `= any (null)` is true for no row.
        Value::Null => return Some(vec![Value::Null]),
        Value::Json(json) => json.as_array()?,
        _ => return None,
    };
    // No row equals an item of an empty list: like NULL.
    let nothing = list.is_empty().then_some(Some(Value::Null));
    let item = |item: &Json| match (class, item) {
        (_, Json::Null) => Some(Value::Null),
        (ValueClass::Integer, Json::Number(number)) => number.as_i64().map(Value::Integer),
        (ValueClass::Text | ValueClass::Folded(_) | ValueClass::Uuid, Json::String(text))
            if !text.contains('\0') =>
        {
            Some(text.as_str().into())
        }
        (ValueClass::Boolean, Json::Bool(truth)) => Some(Value::Boolean(*truth)),
        // Lists in lists are arrays of several dimensions, of which all items count.
        _ => None,
    };
    list.iter().map(item).chain(nothing).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_number_of_rows_is_computed_as_the_databases_do() {
        let number = |integer: i64| Operand::Constant(integer.into());
        let of = |by, left, right| Operand::Computed(by, Box::new([left, right]));
        let before = of(Arithmetic::Minus, Operand::Parameter(0), number(1));
        let offset = of(Arithmetic::Times, before, number(20));
        let with = |params: &[Value]| offset.integer(params);
        assert_eq!(with(&[3.into()]), Some(40));
        assert_eq!(with(&[0.into()]), Some(-20));
        // PostgreSQL makes an error of it, SQLite a double.
        assert_eq!(with(&[i64::MIN.into()]), None);
        assert_eq!(with(&[(i64::MAX / 2).into()]), None);
        assert_eq!(with(&["3".into()]), None);
        assert_eq!(with(&[Value::Null]), None);
        assert_eq!(with(&[]), None);
        let more = of(Arithmetic::Plus, Operand::Parameter(0), number(1));
        assert_eq!(more.integer(&[20.into()]), Some(21));
    }

    #[test]
    fn a_list_has_the_values_of_its_items() {
        let list = |json: serde_json::Value| Value::from(json);
        assert_eq!(
            items(&list(json!([1, null])), ValueClass::Integer),
            Some(vec![Value::Integer(1), Value::Null])
        );
        assert_eq!(
            items(&list(json!([])), ValueClass::Text),
            Some(vec![Value::Null])
        );
        assert_eq!(items(&list(json!([1.5])), ValueClass::Integer), None);
        assert_eq!(items(&list(json!(["1"])), ValueClass::Integer), None);
        assert_eq!(items(&list(json!([[1]])), ValueClass::Integer), None);
        assert_eq!(items(&list(json!(["a\0b"])), ValueClass::Text), None);
        assert_eq!(items(&"{1}".into(), ValueClass::Integer), None);
    }
}
