//! What the value of a parameter must be besides being of its kind: a text of a certain form, not
//! below the least and not above the greatest.

use std::{borrow::Cow, cmp::Ordering};

use millpond_db::Value;

use crate::{decimal, text_format::TextFormat, time_zone::SiteZone};

/// The rules of one parameter; most have none.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ValueRules {
    pub format: Option<TextFormat>,
    /// Zone of moments without an offset.
    pub zone: SiteZone,
    /// The least value, or the least number of characters.
    pub least: Option<Value>,
    pub greatest: Option<Value>,
    /// True if the range is that of a text's length.
    pub is_length: bool,
    /// True if a list keeps the order and the repeats of what was sent.
    pub is_as_sent: bool,
}

impl ValueRules {
    /// None if nothing is asked for.
    pub fn some(self) -> Option<Box<Self>> {
        (self != Self::default()).then(|| Box::new(self))
    }

    /// The one spelling of a text. The error says what it must be.
    pub fn read<'t>(&self, text: &'t str) -> Result<Cow<'t, str>, &'static str> {
        match self.format {
            None => Ok(Cow::Borrowed(text)),
            Some(format) => format.read(text, self.zone).ok_or_else(|| format.wanted()),
        }
    }

    pub fn has_range(&self) -> bool {
        self.least.is_some() || self.greatest.is_some()
    }

    /// True if a value lies between the least and the greatest.
    pub fn is_in_range(&self, value: &Value) -> bool {
        let is_above = |least: &Value| self.order(value, least).is_none_or(Ordering::is_ge);
        let is_below = |greatest: &Value| self.order(value, greatest).is_none_or(Ordering::is_le);
        self.least.as_ref().is_none_or(is_above) && self.greatest.as_ref().is_none_or(is_below)
    }

    /// True if a request may give the value.
    pub fn allow(&self, value: &Value) -> bool {
        let is_of_format = match (self.format, value) {
            (Some(format), Value::Text(text)) => {
                format.read(text, self.zone).as_deref() == Some(&**text)
            }
            _ => true,
        };
        is_of_format && self.is_in_range(value)
    }

    /// The range, to stand behind "must be"; none if there is none.
    pub fn range(&self) -> Option<String> {
        let range = match (&self.least, &self.greatest) {
            (Some(least), Some(greatest)) => {
                format!("from {} to {}", shown(least), shown(greatest))
            }
            (Some(least), None) => format!("at least {}", shown(least)),
            (None, Some(greatest)) => format!("at most {}", shown(greatest)),
            (None, None) => return None,
        };
        Some(match self.is_length {
            true => format!("{range} characters long"),
            false => range,
        })
    }

    /// The order of a value and the end of a range, or of two ends. Dates and times stand in the
    /// order of their texts. Of a text's length, blanks around it do not count.
    pub fn order(&self, one: &Value, other: &Value) -> Option<Ordering> {
        match (one, other) {
            (Value::Text(text), Value::Integer(_)) if self.is_length => {
                let length = text.trim().chars().count();
                let length = i64::try_from(length).unwrap_or(i64::MAX);
                order(&Value::Integer(length), other)
            }
            (Value::Text(one), Value::Text(other)) if self.format == Some(TextFormat::Decimal) => {
                Some(decimal::order(one, other))
            }
            _ => order(one, other),
        }
    }
}

fn order(one: &Value, other: &Value) -> Option<Ordering> {
    match (one, other) {
        (Value::Integer(one), Value::Integer(other)) => Some(one.cmp(other)),
        (Value::Real(one), Value::Real(other)) => one.partial_cmp(other),
        (Value::Text(one), Value::Text(other)) => Some(one.cmp(other)),
        _ => None,
    }
}

fn shown(value: &Value) -> String {
    match value {
        Value::Integer(integer) => integer.to_string(),
        Value::Real(real) => real.to_string(),
        Value::Text(text) => text.to_string(),
        _ => String::new(),
    }
}
