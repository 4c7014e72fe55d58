//! `from … to …` behind the type of a `-- param:` line, and the words for the types.

use millpond_data::Moment;
use millpond_db::{Value, ValueKind};

use super::{
    Complaint,
    declare::{complain, literal},
};
use crate::{
    suggest::closest,
    text_format::{FORMATS, TextFormat},
    time_zone::SiteZone,
    value_rules::ValueRules,
};

const EXAMPLE: &str = "for example: -- param: page integer from 1 to 100 = 1";

const KINDS: [(&str, ValueKind); 4] = [
    ("integer", ValueKind::Integer),
    ("real", ValueKind::Real),
    ("text", ValueKind::Text),
    ("boolean", ValueKind::Boolean),
];

/// Type of a parameter by a word.
#[derive(Clone, Copy, Debug)]
pub(super) struct ParamType {
    pub(super) kind: ValueKind,
    pub(super) format: Option<TextFormat>,
    pub(super) is_list: bool,
}

/// Reads `integer` or `date`, or `integer[]` for a list.
pub(super) fn type_of(name: &str, word: &str) -> Result<ParamType, Complaint> {
    let (single, is_list) = match word.strip_suffix("[]") {
        Some(single) => (single, true),
        None => (word, false),
    };
    if let Some((_, kind)) = KINDS.iter().find(|(known, _)| *known == single) {
        return Ok(ParamType {
            kind: *kind,
            format: None,
            is_list,
        });
    }
    if let Some((_, format)) = FORMATS.iter().find(|(known, _)| *known == single) {
        let (kind, format) = (ValueKind::Text, Some(*format));
        return Ok(ParamType {
            kind,
            format,
            is_list,
        });
    }
    let known = || {
        let formats = FORMATS.iter().map(|(known, _)| *known);
        KINDS.iter().map(|(known, _)| *known).chain(formats)
    };
    let hint = match word.strip_suffix('?') {
        Some(single) => format!("if it may be left out: -- param: {name} {single} = null"),
        None => match closest(single, known()) {
            Some(near) => format!("did you mean `{near}`?"),
            None => {
                let known: Vec<&str> = known().collect();
                format!("one of {}; with `[]` behind it, a list", known.join(", "))
            }
        },
    };
    let message = format!("parameter `{name}` has the unknown type `{word}`");
    complain(message, hint)
}

/// Reads `as sent`, and the range if there is one; also gives what stands behind.
pub(super) fn range(of: ParamType, text: &str) -> Result<(ValueRules, &str), Complaint> {
    let (is_as_sent, rest) = behind(&["as", "sent"], text);
    if is_as_sent && !of.is_list {
        return complain(
            "`as sent` stands behind a type that is no list",
            "for example: -- param: name text[] as sent",
        );
    }
    let (is_length, rest) = behind(&["length"], rest);
    if is_length && (of.kind != ValueKind::Text || of.format.is_some()) {
        return complain(
            "`length` stands behind a type that is no plain text",
            "for example: -- param: title text length from 1 to 200",
        );
    }
    let mut rules = ValueRules {
        format: of.format,
        is_as_sent,
        is_length,
        ..ValueRules::default()
    };
    let mut rest = rest;
    let of = match is_length {
        true => ParamType {
            kind: ValueKind::Integer,
            ..of
        },
        false => of,
    };
    for (word, end) in [("from", &mut rules.least), ("to", &mut rules.greatest)] {
        if let Some((value, behind)) = end_of_range(of, word, rest)? {
            *end = Some(value);
            rest = behind;
        }
    }
    if let (Some(least), Some(greatest)) = (&rules.least, &rules.greatest)
        && rules
            .order(least, greatest)
            .is_some_and(std::cmp::Ordering::is_gt)
    {
        let range = rules.range().unwrap_or_default();
        return complain(
            format!("no value is {range}"),
            "the least comes first: from 1 to 100",
        );
    }
    if is_length && !rules.has_range() {
        return complain(
            "a length needs `from` or `to`",
            "for example: -- param: title text length from 1 to 200",
        );
    }
    Ok((rules, rest))
}

/// True if a text begins with these words; also gives what stands behind them, or all of it.
fn behind<'t>(words: &[&str], text: &'t str) -> (bool, &'t str) {
    let mut rest = text;
    for word in words {
        match rest.strip_prefix(word) {
            Some(behind) if !behind.starts_with(|c: char| c.is_alphanumeric()) => {
                rest = behind.trim_start();
            }
            _ => return (false, text),
        }
    }
    (true, rest)
}

/// `from 1` or `to 100`: the value, and what stands behind it.
fn end_of_range<'t>(
    of: ParamType,
    word: &str,
    text: &'t str,
) -> Result<Option<(Value, &'t str)>, Complaint> {
    let Some(behind) = text.strip_prefix(word) else {
        return Ok(None);
    };
    if !behind.starts_with(char::is_whitespace) {
        return Ok(None);
    }
    let has_order = match (of.kind, of.format) {
        (_, Some(format)) => format.is_ordered(),
        (kind, None) => matches!(kind, ValueKind::Integer | ValueKind::Real),
    };
    if !has_order {
        return complain(
            format!("`{word}` stands behind a type that has no range"),
            "numbers, dates and times have one; the length of a text is: text length from 1 to 200",
        );
    }
    let behind = behind.trim_start();
    let end = behind.find(|c: char| c.is_whitespace() || c == '=');
    let (value, rest) = behind.split_at(end.unwrap_or(behind.len()));
    let value = match of.format {
        Some(format) => formatted(format, value)?,
        None => literal(of.kind, value).or_else(|message| complain(message, EXAMPLE))?,
    };
    if value == Value::Null {
        return complain("`null` is no end of a range", EXAMPLE);
    }
    Ok(Some((value, rest.trim_start())))
}

/// A value of a format, which may stand in quotes.
pub(super) fn formatted(format: TextFormat, text: &str) -> Result<Value, Complaint> {
    let quoted = text
        .strip_prefix('\'')
        .and_then(|text| text.strip_suffix('\''));
    let bare = quoted.unwrap_or(text);
    if text.eq_ignore_ascii_case("null") {
        return Ok(Value::Null);
    }
    if bare.is_empty() && quoted.is_some() && format.may_be_empty() {
        return Ok(Value::from(""));
    }
    let moment = Moment::parse(bare).filter(|_| format == TextFormat::DateTime);
    if moment.is_some_and(|moment| moment.time.is_some_and(|time| time.offset.is_none())) {
        return complain(
            format!("`{text}` names no offset"),
            format!("write {bare}Z for UTC, or {bare}+01:00"),
        );
    }
    match format.read(bare, SiteZone::default()) {
        Some(value) => Ok(Value::from(&*value)),
        None => {
            let hint = match format.may_be_empty() {
                true => "if it may be left out: = null, or = ''",
                false => "if it may be left out: = null",
            };
            complain(format!("`{text}` is not {}", format.wanted()), hint)
        }
    }
}
