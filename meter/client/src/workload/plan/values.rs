//! Sources of values: tables of CSV files, and choices.

use std::fs;
use std::path::Path;

use super::section::{Field, Section};
use super::text::RESERVED;
use super::{Names, PlanError};
use crate::workload::alias::Alias;
use crate::workload::choice::{Choice, Skew, Values};
use crate::workload::table::Table;
use crate::workload::template::Encoding;
use crate::workload::zipf::Zipf;

/// Rows of a table, and values of a choice, at most.
const MOST: usize = 10_000_000;

/// The tables in `[data.NAME]`.
pub(super) fn tables(
    written: Option<Field<'_>>,
    dir: &Path,
    names: &mut Names,
) -> Result<Vec<Table>, PlanError> {
    let mut tables = Vec::new();
    for (name, field) in named(written, "data")? {
        let mut section = field.section(format!("[data.{name}]"))?;
        let csv = section.need("csv")?;
        let pick = section.find("pick");
        section.finish()?;
        let (columns, rows) = read_csv(csv, dir)?;
        let pick = match pick {
            None => None,
            Some(field) => match field.text()? {
                "sequence" => None,
                "random" => Some(Skew::Uniform),
                text => Some(zipf(text, rows.len() as u64).ok_or_else(|| {
                    field.error(format!(
                        "{text:?} is none of \"sequence\", \"random\" and \"zipf:0.9\""
                    ))
                })?),
            },
        };
        names.tables.push((name.to_owned(), columns));
        tables.push(Table::new(rows, pick));
    }
    Ok(tables)
}

/// Columns and rows of a file.
fn read_csv(
    field: Field<'_>,
    dir: &Path,
) -> Result<(Vec<String>, Vec<csv::ByteRecord>), PlanError> {
    let path = dir.join(field.text()?);
    let wrong = |why: String| field.error(format!("cannot use {}: {why}", path.display()));
    let mut reader = csv::Reader::from_path(&path).map_err(|error| wrong(error.to_string()))?;
    let columns: Vec<String> = match reader.headers() {
        Ok(header) => header.iter().map(|name| name.trim().to_owned()).collect(),
        Err(error) => return Err(wrong(error.to_string())),
    };
    if let Some((at, name)) = columns
        .iter()
        .enumerate()
        .find(|(at, name)| columns[..*at].contains(name))
    {
        return Err(wrong(format!(
            "column {} has the name of another one, {name:?}",
            at + 1
        )));
    }
    let mut rows = Vec::new();
    for row in reader.byte_records() {
        rows.push(row.map_err(|error| wrong(error.to_string()))?);
        if rows.len() > MOST {
            return Err(wrong(format!("it has more than {MOST} rows")));
        }
    }
    if rows.is_empty() {
        return Err(wrong("it has no row after the header".to_owned()));
    }
    Ok((columns, rows))
}

/// The choices in `[choice.NAME]`.
pub(super) fn choices(
    written: Option<Field<'_>>,
    dir: &Path,
    names: &mut Names,
) -> Result<Vec<Choice>, PlanError> {
    let mut choices = Vec::new();
    for (name, field) in named(written, "choice")? {
        let mut section = field.section(format!("[choice.{name}]"))?;
        let (key, from) = section.one_of(&["values", "range", "files"])?;
        let values = match key {
            "values" => Values::List(list(from)?),
            "range" => range(from)?,
            _ => Values::List(files(from, dir)?),
        };
        let spread = spread(&mut section, values.count())?;
        section.finish()?;
        let are_paths = key == "files";
        names.choices.push((name.to_owned(), are_paths));
        choices.push(Choice { values, spread });
    }
    Ok(choices)
}

/// The named tables below `written`, in the order of the file.
fn named<'t>(
    written: Option<Field<'t>>,
    title: &str,
) -> Result<Vec<(&'t str, Field<'t>)>, PlanError> {
    let Some(field) = written else {
        return Ok(Vec::new());
    };
    let mut all = Vec::new();
    for (name, _, field) in field.section(title)?.entries() {
        check_name(name, &field)?;
        all.push((name, field));
    }
    Ok(all)
}

/// Refuses a name that a template could not use.
pub(super) fn check_name(name: &str, field: &Field<'_>) -> Result<(), PlanError> {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
    if name.is_empty() || !name.bytes().all(is_plain) {
        return Err(field.error(format!("{name:?} is no name: letters, digits, _ and - are")));
    }
    if RESERVED.contains(&name) {
        return Err(field.error(format!("{name:?} has a meaning of its own in templates")));
    }
    Ok(())
}

fn list(field: Field<'_>) -> Result<Vec<Box<[u8]>>, PlanError> {
    let fields = field.list()?;
    if fields.is_empty() {
        return Err(field.error("there is nothing to choose from"));
    }
    fields
        .iter()
        .map(|field| Ok(field.word()?.into_bytes().into()))
        .collect()
}

fn range(field: Field<'_>) -> Result<Values, PlanError> {
    match field.list()?.as_slice() {
        [first, last] => {
            let (first, end) = (
                first.whole(i64::MIN..=i64::MAX)?,
                last.whole(i64::MIN..=i64::MAX)?,
            );
            let count = end.abs_diff(first).checked_add(1).filter(|_| first <= end);
            let count = count.ok_or_else(|| {
                field.error("a range is the least and the greatest number: [1, 1000]")
            })?;
            Ok(Values::Range(first, count))
        }
        _ => Err(field.error("a range is the least and the greatest number: [1, 1000]")),
    }
}

/// The files below a folder, as paths for a target.
fn files(field: Field<'_>, dir: &Path) -> Result<Vec<Box<[u8]>>, PlanError> {
    let root = dir.join(field.text()?);
    let cannot =
        |path: &Path, why: String| field.error(format!("cannot list {}: {why}", path.display()));
    let mut found = Vec::new();
    let mut folders = vec![(root.clone(), Vec::new())];
    while let Some((folder, prefix)) = folders.pop() {
        let entries = fs::read_dir(&folder).map_err(|error| cannot(&folder, error.to_string()))?;
        for entry in entries {
            let entry = entry.map_err(|error| cannot(&folder, error.to_string()))?;
            let mut path = prefix.clone();
            Encoding::Percent.put(entry.file_name().as_encoded_bytes(), &mut path);
            // The type of the link itself: its target may lead back.
            let kind = entry
                .file_type()
                .map_err(|error| cannot(&entry.path(), error.to_string()))?;
            if kind.is_dir() {
                path.push(b'/');
                folders.push((entry.path(), path));
            } else if kind.is_file() {
                found.push(path.into_boxed_slice());
            }
            if found.len() + folders.len() > MOST {
                return Err(field.error(format!("{} holds more than {MOST} files", root.display())));
            }
        }
    }
    if found.is_empty() {
        return Err(field.error(format!("{} holds no file", root.display())));
    }
    found.sort_unstable();
    Ok(found)
}

fn spread(section: &mut Section<'_>, count: u64) -> Result<Skew, PlanError> {
    let (distribution, weights) = (section.find("distribution"), section.find("weights"));
    match (distribution, weights) {
        (Some(_), Some(weights)) => Err(weights.error("either distribution or weights, not both")),
        (None, None) => Ok(Skew::Uniform),
        (Some(field), None) => match field.text()? {
            "uniform" => Ok(Skew::Uniform),
            text => zipf(text, count).ok_or_else(|| {
                field.error(format!("{text:?} is neither \"uniform\" nor \"zipf:0.9\""))
            }),
        },
        (None, Some(field)) => {
            let weights: Vec<f64> = field
                .list()?
                .iter()
                .map(Field::number)
                .collect::<Result<_, _>>()?;
            if weights.len() as u64 != count {
                return Err(field.error(format!("{} weights for {count} values", weights.len())));
            }
            if weights.iter().all(|weight| *weight == 0.0) {
                return Err(field.error("every weight is 0: nothing would be chosen"));
            }
            Ok(Skew::Weighted(Alias::new(&weights)))
        }
    }
}

/// `zipf:S` over `count` ranks.
fn zipf(text: &str, count: u64) -> Option<Skew> {
    let s: f64 = text.strip_prefix("zipf:")?.trim().parse().ok()?;
    (s > 0.0 && s <= 20.0).then(|| Skew::Zipf(Zipf::new(count, s)))
}
