//! What triggers record of a column: its values, and whether an update has left it as it was.

use super::{ANY, MAX_TEXT, OTHER, SAME};
use crate::ValueKind;
use crate::data_file::quoted;
use crate::precision::ValueClass;
use crate::sqlite::catalog::CatalogColumn;
use crate::sqlite::interest::ValueLocation;

/// A column of a recorded table, or its rowid.
pub(super) struct RecordedColumn {
    pub(super) at: ValueLocation,
    /// As it follows `old.` and `new.`.
    pub(super) name: String,
    form: Form,
}

/// The values that a column may have.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    /// Integers only.
    Rowid,
    /// INTEGER affinity.
    Integer,
    /// TEXT affinity, and equality by the bytes, or by these without their case.
    Text,
    /// TEXT affinity, and another equality.
    Collated,
    /// REAL affinity.
    Real,
    Any,
}

impl RecordedColumn {
    pub(super) fn rowid(name: &str) -> Self {
        Self {
            at: ValueLocation::Rowid,
            name: name.to_owned(),
            form: Form::Rowid,
        }
    }

    /// The column at place `index`, with the name that was declared.
    pub(super) fn of(index: usize, declared: &str, column: &CatalogColumn, is_rowid: bool) -> Self {
        let form = match (column.class, column.kind) {
            _ if is_rowid => Form::Rowid,
            (Some(ValueClass::Integer), _) => Form::Integer,
            (Some(ValueClass::Text | ValueClass::Folded(_)), _) => Form::Text,
            (None, Some(ValueKind::Text)) => Form::Collated,
            (None, Some(ValueKind::Real)) => Form::Real,
            _ => Form::Any,
        };
        Self {
            at: ValueLocation::Column(index),
            name: quoted(declared),
            form,
        }
    }

    /// True if a query may select by the column, so that its values are recorded.
    pub(super) fn has_values(&self) -> bool {
        matches!(self.form, Form::Rowid | Form::Integer | Form::Text)
    }

    /// The value in `row` as it is recorded. A long text is any value, and so is what does not
    /// belong into a column of integers. Of a blob in a column of texts its type is recorded.
    pub(super) fn value(&self, row: &str) -> String {
        let value = format!("{row}.{}", self.name);
        match self.form {
            Form::Rowid => value,
            // Numbers sort before texts, and texts before blobs. A call of `typeof` costs more.
            Form::Integer => {
                format!("CASE WHEN {value} >= '' COLLATE binary THEN {ANY} ELSE {value} END")
            }
            _ => format!(
                "CASE WHEN {value} < x'' THEN {} WHEN {value} IS NOT NULL THEN {OTHER} END",
                bounded(&value)
            ),
        }
    }

    /// The value after an update. Both recorded values of a number are compared when they are read;
    /// for a text that is too late, as a long text and a blob are not recorded.
    pub(super) fn new_value(&self) -> String {
        if self.form != Form::Text {
            return self.value("new");
        }
        let value = format!("new.{}", self.name);
        let (is_same, bounded) = (self.is_same(), bounded(&value));
        format!(
            "CASE WHEN {is_same} THEN {SAME} WHEN {value} < x'' THEN {bounded} WHEN {value} IS NOT NULL THEN {OTHER} END"
        )
    }

    /// A condition that holds only if an update leaves the type and the bytes of the value. It is
    /// never null, and asks for no collation that a program may not have.
    ///
    /// Counterexamples: `'a' IS 'A'` under NOCASE, `1 IS 1.0`, `0.0 IS -0.0`. An update stores no
    /// number in a column of TEXT affinity, and no integer in one of REAL affinity.
    pub(super) fn is_same(&self) -> String {
        let (new, old) = (format!("new.{}", self.name), format!("old.{}", self.name));
        let is_equal = format!("{new} IS {old} COLLATE binary");
        match self.form {
            Form::Rowid | Form::Text | Form::Collated => is_equal,
            Form::Real => format!("{is_equal} AND {new} IS NOT 0.0 COLLATE binary"),
            // Texts and blobs that are equal are of one type; numbers may not be.
            Form::Integer | Form::Any => format!(
                "{is_equal} AND ({new} >= '' COLLATE binary OR {new} IS NULL OR typeof({new}) = typeof({old}) AND ({new} <> 0 COLLATE binary OR typeof({new}) = 'integer'))"
            ),
        }
    }
}

fn bounded(text: &str) -> String {
    format!("CASE WHEN length(CAST({text} AS blob)) > {MAX_TEXT} THEN {ANY} ELSE {text} END")
}
