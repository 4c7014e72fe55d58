//! Tables of a TOML file, read key by key. Keys that were not read are unknown; every error has a
//! position.

use std::borrow::Cow;
use std::ops::RangeInclusive;
use std::path::Path;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::PlanError;

/// A file's text and name, for errors.
#[derive(Clone, Copy)]
pub(super) struct PlanText<'t> {
    pub(super) file: &'t Path,
    pub(super) text: &'t str,
}

impl PlanText<'_> {
    /// A mistake at a byte of the text.
    pub(super) fn error(&self, offset: usize, message: impl Into<String>) -> PlanError {
        PlanError::at(self.file, self.text, offset, message)
    }
}

/// A table that is being read.
pub(super) struct Section<'t> {
    source: PlanText<'t>,
    title: String,
    table: &'t DeTable<'t>,
    at: usize,
    /// The keys that were asked for, which are the keys that there are.
    asked: Vec<&'static str>,
}

/// A value in a table, with its key.
#[derive(Clone, Copy)]
pub(super) struct Field<'t> {
    source: PlanText<'t>,
    value: &'t Spanned<DeValue<'t>>,
}

impl<'t> Section<'t> {
    /// The table of a whole file.
    pub(super) fn whole(source: PlanText<'t>, table: &'t DeTable<'t>) -> Self {
        Self {
            source,
            title: "the plan".to_owned(),
            table,
            at: 0,
            asked: Vec::new(),
        }
    }

    /// The value of `key`, if it is there.
    pub(super) fn find(&mut self, key: &'static str) -> Option<Field<'t>> {
        self.asked.push(key);
        let value = self.table.get(key)?;
        Some(Field {
            source: self.source,
            value,
        })
    }

    /// The value of `key`, which must exist.
    pub(super) fn need(&mut self, key: &'static str) -> Result<Field<'t>, PlanError> {
        let title = self.title.clone();
        self.find(key)
            .ok_or_else(|| self.error(format!("{title} has no {key:?}")))
    }

    /// The one of `keys` that is there.
    pub(super) fn one_of(
        &mut self,
        keys: &[&'static str],
    ) -> Result<(&'static str, Field<'t>), PlanError> {
        let found: Vec<_> = keys
            .iter()
            .filter_map(|&key| self.find(key).map(|field| (key, field)))
            .collect();
        match found.as_slice() {
            [one] => Ok(*one),
            [] => Err(self.error(format!("{} needs one of {}", self.title, keys.join(", ")))),
            [_, second, ..] => Err(second.1.error(format!(
                "{} takes only one of {}",
                self.title,
                keys.join(", ")
            ))),
        }
    }

    /// Every entry, in the order of the file: for tables whose keys are names.
    pub(super) fn entries(&self) -> Vec<(&'t str, usize, Field<'t>)> {
        let source = self.source;
        let mut entries: Vec<_> = self
            .table
            .iter()
            .map(|(key, value)| {
                let name: &Cow<'t, str> = key.get_ref();
                (name.as_ref(), key.span().start, Field { source, value })
            })
            .collect();
        entries.sort_by_key(|(_, at, _)| *at);
        entries
    }

    /// A mistake of the table as a whole.
    pub(super) fn error(&self, message: impl Into<String>) -> PlanError {
        self.source.error(self.at, message)
    }

    /// Refuses keys that were not read.
    pub(super) fn finish(self) -> Result<(), PlanError> {
        let unknown = self
            .entries()
            .into_iter()
            .find(|(name, ..)| !self.asked.contains(name));
        let Some((name, at, _)) = unknown else {
            return Ok(());
        };
        let hint = did_you_mean(name, self.asked.iter().copied());
        Err(self
            .source
            .error(at, format!("unknown key {name:?} in {}{hint}", self.title)))
    }
}

impl<'t> Field<'t> {
    /// A mistake of this value.
    pub(super) fn error(&self, message: impl Into<String>) -> PlanError {
        self.source.error(self.value.span().start, message)
    }

    /// A mistake at the `nth` `{{` of a text.
    pub(super) fn error_at_brace(&self, nth: usize, message: impl Into<String>) -> PlanError {
        let span = self.value.span();
        let written = self.source.text.get(span.clone()).unwrap_or_default();
        // Escapes and line ends change the length of a text, but braces are written as they are.
        let at = written.match_indices("{{").nth(nth).map_or(0, |(at, _)| at);
        self.source.error(span.start + at, message)
    }

    fn wrong(&self, wanted: &str) -> PlanError {
        self.error(format!(
            "{wanted} is wanted here, not {}",
            kind(self.value.get_ref())
        ))
    }

    pub(super) fn text(&self) -> Result<&'t str, PlanError> {
        self.value
            .get_ref()
            .as_str()
            .ok_or_else(|| self.wrong("a text"))
    }

    pub(super) fn flag(&self) -> Result<bool, PlanError> {
        self.value
            .get_ref()
            .as_bool()
            .ok_or_else(|| self.wrong("true or false"))
    }

    pub(super) fn whole(&self, within: RangeInclusive<i64>) -> Result<i64, PlanError> {
        let integer = self
            .value
            .get_ref()
            .as_integer()
            .ok_or_else(|| self.wrong("a whole number"))?;
        i64::from_str_radix(integer.as_str(), integer.radix())
            .ok()
            .filter(|number| within.contains(number))
            .ok_or_else(|| {
                self.error(format!(
                    "{integer} is not from {} to {}",
                    within.start(),
                    within.end()
                ))
            })
    }

    /// A number that is finite and not negative.
    pub(super) fn number(&self) -> Result<f64, PlanError> {
        let number = match self.value.get_ref() {
            DeValue::Float(float) => float.as_str().parse().ok(),
            DeValue::Integer(integer) => i64::from_str_radix(integer.as_str(), integer.radix())
                .ok()
                .map(|whole| whole as f64),
            _ => return Err(self.wrong("a number")),
        };
        number
            .filter(|number: &f64| number.is_finite() && *number >= 0.0)
            .ok_or_else(|| self.error("the number must be finite and not negative"))
    }

    pub(super) fn is_list(&self) -> bool {
        self.value.get_ref().is_array()
    }

    pub(super) fn list(&self) -> Result<Vec<Field<'t>>, PlanError> {
        let array = self
            .value
            .get_ref()
            .as_array()
            .ok_or_else(|| self.wrong("a list"))?;
        let source = self.source;
        Ok(array.iter().map(|value| Field { source, value }).collect())
    }

    /// A text, or a number as it is written.
    pub(super) fn word(&self) -> Result<String, PlanError> {
        match self.value.get_ref() {
            DeValue::String(text) => Ok(text.clone().into_owned()),
            DeValue::Integer(integer) => Ok(integer.to_string()),
            DeValue::Float(float) => Ok(float.to_string()),
            _ => Err(self.wrong("a text or a number")),
        }
    }

    pub(super) fn section(&self, title: impl Into<String>) -> Result<Section<'t>, PlanError> {
        let table = self
            .value
            .get_ref()
            .as_table()
            .ok_or_else(|| self.wrong("a table"))?;
        Ok(Section {
            source: self.source,
            title: title.into(),
            table,
            at: self.value.span().start,
            asked: Vec::new(),
        })
    }
}

/// The end of a sentence about an unknown word.
pub(super) fn did_you_mean<'c>(word: &str, known: impl Iterator<Item = &'c str>) -> String {
    let nearest = known
        .map(|known| (strsim::jaro_winkler(word, known), known))
        .max_by(|(a, _), (b, _)| a.total_cmp(b));
    match nearest {
        Some((likeness, known)) if likeness > 0.7 => format!("; did you mean {known:?}?"),
        _ => String::new(),
    }
}

fn kind(value: &DeValue<'_>) -> &'static str {
    match value {
        DeValue::String(_) => "a text",
        DeValue::Integer(_) => "a whole number",
        DeValue::Float(_) => "a number",
        DeValue::Boolean(_) => "true or false",
        DeValue::Datetime(_) => "a date",
        DeValue::Array(_) => "a list",
        DeValue::Table(_) => "a table",
    }
}
