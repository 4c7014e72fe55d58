//! What hides a post elsewhere hides it here: the one place that knows the words of other programs
//! for what the column `draft` says, and for the moments between which a post is shown.
//!
//! A field counts only where the table has a column `draft` and none of the field's own name. A
//! moment needs a column, as the queries must ask for it; without one the file is refused.

use millpond_data::{DataError, FieldValue, FilePlace};
use millpond_db::TableColumn;

use super::{
    columns::TargetTable,
    convert::{Misfit, old_truth, shown},
    fields::place_of_field,
    scan::DataFile,
    survey::problem,
};
use millpond_site_format::Problem;

/// The column of a row that is not to be shown.
pub(super) const DRAFT: &str = "draft";

/// Meaning of a field.
#[derive(Clone, Copy, Debug)]
enum Says {
    /// True is a draft.
    Draft,
    /// False is a draft.
    Shown,
    /// Some words are drafts.
    Word,
}

/// A field of a file that says whether its row is a draft.
#[derive(Clone, Copy, Debug)]
pub(super) struct HidingField {
    /// The place among the names of the file.
    at: usize,
    name: &'static str,
    says: Says,
}

/// Fields of Jekyll, Hugo, WordPress and their like.
const FIELDS: [(&str, Says); 7] = [
    ("published", Says::Shown),
    ("publish", Says::Shown),
    ("isdraft", Says::Draft),
    ("is_draft", Says::Draft),
    ("unpublished", Says::Draft),
    ("status", Says::Word),
    ("post_status", Says::Word),
];

/// Words that say that a post is not to be shown.
const DRAFTS: &str = "draft private pending future unpublished hidden trash archived";

/// The columns with the moments between which a row is shown, and Hugo's other names for them.
const MOMENTS: [(&str, &[&str]); 2] = [
    ("publishdate", &["pubdate", "publish_date"]),
    ("expirydate", &["unpublishdate", "expiry_date"]),
];

/// The fields that say whether a row is a draft, by their places among the names.
pub(super) fn hiding(names: &[String], columns: &[TableColumn]) -> Vec<HidingField> {
    let has = |name: &str| columns.iter().any(|it| it.name.eq_ignore_ascii_case(name));
    if !has(DRAFT) {
        return Vec::new();
    }
    let fields = names.iter().enumerate().filter(|(_, name)| !has(name));
    let fields = fields.filter_map(|(at, name)| {
        let (name, says) = *FIELDS.iter().find(|(known, _)| *known == name)?;
        Some(HidingField { at, name, says })
    });
    fields.collect()
}

/// The place among the names of a file of the one that fills a column.
pub(super) fn position(names: &[String], column: &str, columns: &[TableColumn]) -> Option<usize> {
    let at = |wanted: &str| names.iter().position(|name| name == wanted);
    let has = |name: &str| columns.iter().any(|it| it.name.eq_ignore_ascii_case(name));
    let others = MOMENTS.iter().find(|(known, _)| *known == column);
    let mut others = others.into_iter().flat_map(|(_, others)| *others);
    at(column).or_else(|| others.find_map(|other| at(other).filter(|_| !has(other))))
}

/// True if a field, for which there is no column of its name, is read all the same.
pub(super) fn is_known(name: &str, columns: &[String]) -> bool {
    let has = |wanted: &str| columns.iter().any(|column| column == wanted);
    let hides = has(DRAFT) && FIELDS.iter().any(|(known, _)| *known == name);
    let is_moment = |(column, others): &(&str, &[&str])| has(column) && others.contains(&name);
    hides || MOMENTS.iter().any(is_moment)
}

/// True if one of the fields says that the row is a draft.
///
/// # Errors
/// A value that says neither.
pub(super) fn is_hidden(fields: &[HidingField], values: &[FieldValue<'_>]) -> Result<bool, Misfit> {
    let mut is_hidden = false;
    for HidingField { at, name, says } in fields {
        let Some(value) = values.get(*at).filter(|value| **value != FieldValue::Null) else {
            continue;
        };
        let truth = || {
            truth(value).ok_or_else(|| Misfit {
                column: (*name).to_owned(),
                message: format!("{name} is {}, not true or false", shown(value)),
            })
        };
        is_hidden |= match (says, value) {
            (Says::Draft, _) => truth()?,
            (Says::Shown, _) => !truth()?,
            (Says::Word, FieldValue::Text(text) | FieldValue::Plain(text)) => DRAFTS
                .split(' ')
                .any(|word| word.eq_ignore_ascii_case(text.trim())),
            (Says::Word, _) => false,
        };
    }
    Ok(is_hidden)
}

fn truth(value: &FieldValue<'_>) -> Option<bool> {
    match value {
        FieldValue::Boolean(truth) => Some(*truth),
        FieldValue::Integer(0) => Some(false),
        FieldValue::Integer(1) => Some(true),
        FieldValue::Text(text) | FieldValue::Plain(text) => old_truth(text.trim()),
        _ => None,
    }
}

/// Moments between which a file is to be shown, where the table has drafts and no column for them:
/// without one the row would be shown before or after.
pub(super) fn unheeded(file: &DataFile, table: &TargetTable, names: &[String]) -> Vec<Problem> {
    let columns: Vec<String> = table.lower_names().collect();
    let has = |name: &str| columns.iter().any(|column| column == name);
    let fault = |name: &String| {
        let mut moments = MOMENTS.iter();
        let (column, _) = moments.find(|(column, others)| {
            (*column == name || others.contains(&&**name)) && !has(column) && !has(name)
        })?;
        let place = place_of_field(file, FilePlace::line(1), name);
        let table = &table.name;
        let message =
            format!("{name} would not be heeded: the table {table} has no column {column}");
        let remedy = format!(
            "take the line out, or add a column {column} of type datetime (timestamptz on PostgreSQL) \
             in a migration, and ask for it where rows are shown"
        );
        Some(problem(
            file,
            &DataError::new(place, message).remedy(remedy),
        ))
    };
    match has(DRAFT) {
        true => names.iter().filter_map(fault).collect(),
        false => Vec::new(),
    }
}
