//! The text of templates: `{{ }}` and its content.

use super::section::{Field, did_you_mean};
use super::{Names, PlanError};
use crate::workload::session::MOST_HEX;
use crate::workload::template::{Encoding, Template, TemplatePart, Value};

/// Words with a meaning of their own in `{{ }}`.
pub(super) const RESERVED: [&str; 8] = [
    "counter", "step", "random", "uuid", "hex", "data", "json", "raw",
];

/// Compiles the template in `field`. Values are written in `encoding` unless the template names
/// another one.
pub(super) fn compile(
    field: Field<'_>,
    encoding: Encoding,
    names: &Names,
) -> Result<Template, PlanError> {
    let mut rest = field.text()?;
    let mut template = Template::default();
    let mut braces = 0;
    while let Some((before, after)) = rest.split_once("{{") {
        template.push_text(before.as_bytes());
        let wrong = |message: String| field.error_at_brace(braces, message);
        if let Some((literal, after)) = quoted(after) {
            template.push_text(literal.as_bytes());
            braces += 1 + literal.matches("{{").count();
            rest = after;
            continue;
        }
        let (inside, after) = after.split_once("}}").ok_or_else(|| {
            wrong(
                "\"{{\" without \"}}\"; write {{\"{{\"}} for the characters themselves".to_owned(),
            )
        })?;
        template
            .parts
            .push(part(inside, encoding, names).map_err(wrong)?);
        braces += 1;
        rest = after;
    }
    template.push_text(rest.as_bytes());
    Ok(template)
}

/// The literal text in `"…"}}`, and what follows.
fn quoted(text: &str) -> Option<(&str, &str)> {
    let (literal, after) = text.trim_start().strip_prefix('"')?.split_once('"')?;
    Some((literal, after.trim_start().strip_prefix("}}")?))
}

fn part(inside: &str, encoding: Encoding, names: &Names) -> Result<TemplatePart, String> {
    let mut words: Vec<&str> = inside.split_whitespace().collect();
    let mut encoding = encoding;
    let told = match words.first() {
        Some(&"json") => {
            if encoding != Encoding::Raw {
                return Err("json is for bodies".to_owned());
            }
            Some(Encoding::Json)
        }
        Some(&"raw") => Some(match encoding {
            Encoding::Percent => Encoding::Target,
            other => other,
        }),
        _ => None,
    };
    if let Some(told) = told {
        words.remove(0);
        encoding = told;
    }
    let value = value(&words, names)?;
    if let (Value::Choice(choice), Encoding::Percent) = (value, encoding)
        && names.choices[choice].1
    {
        encoding = Encoding::Target;
    }
    Ok(TemplatePart::Value(value, encoding))
}

fn value(words: &[&str], names: &Names) -> Result<Value, String> {
    match *words {
        ["counter"] => Ok(Value::Counter),
        ["step"] => Ok(Value::Step),
        ["uuid"] => Ok(Value::Uuid),
        ["random", least, most] => random(least, most),
        ["random", ..] => {
            Err("random takes the least and the greatest number: {{random 1 100}}".to_owned())
        }
        ["hex", digits] => {
            let digits = digits
                .parse()
                .ok()
                .filter(|digits| (1..=MOST_HEX).contains(digits));
            digits
                .map(Value::Hex)
                .ok_or_else(|| format!("hex takes a number of digits from 1 to {MOST_HEX}"))
        }
        ["hex"] => Err("hex takes a number of digits: {{hex 16}}".to_owned()),
        [name] => named(name, names),
        [] => Err("{{ }} with nothing in it".to_owned()),
        _ => Err(format!(
            "{{{{{}}}}} is not understood: one name is wanted",
            words.join(" ")
        )),
    }
}

fn random(least: &str, most: &str) -> Result<Value, String> {
    let number = |text: &str| {
        text.parse::<i64>()
            .map_err(|_| format!("{text:?} is no whole number"))
    };
    let (least, most) = (number(least)?, number(most)?);
    if least > most {
        return Err(format!(
            "{{{{random {least} {most}}}}} ends before it begins"
        ));
    }
    let count = most.abs_diff(least).checked_add(1);
    let count = count.ok_or("the range of random is too wide")?;
    Ok(Value::Random(least, count))
}

fn named(name: &str, names: &Names) -> Result<Value, String> {
    if let Some(column) = name.strip_prefix("data.") {
        let (table, column) = column
            .split_once('.')
            .ok_or("a value of a table is written data.TABLE.COLUMN")?;
        let Some(at) = names.tables.iter().position(|(known, _)| known == table) else {
            let known = names.tables.iter().map(|(known, _)| known.as_str());
            return Err(format!(
                "there is no [data.{table}]{}",
                did_you_mean(table, known)
            ));
        };
        let columns = &names.tables[at].1;
        let found = columns.iter().position(|known| known == column);
        return found.map(|column| Value::Data(at, column)).ok_or_else(|| {
            let hint = did_you_mean(column, columns.iter().map(String::as_str));
            format!("[data.{table}] has no column {column:?}{hint}")
        });
    }
    // The last extraction of a name is the one that counts.
    if let Some(slot) = names.slots.iter().rposition(|known| known == name) {
        return Ok(Value::Slot(slot));
    }
    if let Some(choice) = names.choices.iter().position(|(known, _)| known == name) {
        return Ok(Value::Choice(choice));
    }
    let known = names
        .slots
        .iter()
        .chain(names.choices.iter().map(|(known, _)| known))
        .map(String::as_str);
    let hint = did_you_mean(name, known.chain(RESERVED));
    Err(format!(
        "unknown name {name:?}: neither a [choice], nor extracted by an earlier step{hint}"
    ))
}
