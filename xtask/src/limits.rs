//! `docs/reference/limits.md`: every limit, with the value that the code has.
//!
//! The values are read from the source text of the server, so a constant may stay private and xtask
//! does not link the server. The texts of the table are in `limits/rows.rs`.

mod rows;
mod value;

use std::fmt::Write as _;

use rows::{Place, ROWS, Row};

/// The page that is made.
pub(crate) const PAGE: &str = "docs/reference/limits.md";

/// A source file by its path in the workspace.
pub(crate) type Source<'a> = (&'a str, &'a str);

/// The page, or what is wrong with a row.
pub(crate) fn page(sources: &[Source<'_>]) -> Result<String, String> {
    let mut page = String::from(
        "# Limits\n\n\
         Everything that grows has a limit, and past the limit something simple happens. A limit that a site can set\n\
         names its setting: see [configuration](configuration.md).\n\n\
         The values come from the source code; the texts are in `xtask/src/limits/rows.rs`. `cargo xtask limits` writes\n\
         this page, and `cargo xtask tidy` compares the page with the code.\n\n\
         | what | how much | past the limit |\n|---|---|---|\n",
    );
    for row in ROWS {
        let amount = amount(row, sources)?;
        let _ = writeln!(page, "| {} | {amount} | {} |", row.what, row.past);
    }
    Ok(page)
}

/// The text of a row with each `{}` replaced by the value of its place.
fn amount(row: &Row, sources: &[Source<'_>]) -> Result<String, String> {
    let mut pieces = row.amount.split("{}");
    let mut text = pieces.next().unwrap_or("").to_owned();
    for (place, piece) in row.places.iter().zip(pieces.by_ref()) {
        text.push_str(&find(place, sources)?);
        text.push_str(piece);
    }
    let places = row.amount.matches("{}").count();
    if places == row.places.len() {
        Ok(text)
    } else {
        Err(format!(
            "the row \"{}\" has {places} gaps for {} values; make both equal",
            row.what,
            row.places.len()
        ))
    }
}

/// The value at a place. Several definitions are fine as long as they are equal.
fn find(place: &Place, sources: &[Source<'_>]) -> Result<String, String> {
    let Place {
        folder,
        after,
        name,
        unit,
    } = *place;
    let found = sources.iter().filter(|(path, _)| {
        let rest = path.strip_prefix(folder);
        let is_within = rest.is_some_and(|rest| rest.starts_with(['/', '.']));
        is_within && path.contains("/src/")
    });
    let mut values: Vec<String> = found
        .filter_map(|(_, source)| value::read(source, after, name))
        .map(|value| unit.show(value))
        .collect();
    values.sort();
    values.dedup();
    match values.as_slice() {
        [value] => Ok(value.clone()),
        [] => Err(format!(
            "{folder} has no {after} {name} with a plain value; name in xtask/src/limits/rows.rs what has the limit now"
        )),
        _ => Err(format!(
            "{folder} has several {after} {name}: {}; name the folder in xtask/src/limits/rows.rs more closely",
            values.join(", ")
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::rows::{Place, Row, Unit};
    use super::{amount, find};

    const PLACE: Place = Place {
        folder: "server/a",
        after: "const",
        name: "MOST",
        unit: Unit::Count,
    };

    #[test]
    fn a_value_is_found_in_its_folder() {
        let sources = [
            (
                "server/a/src/x.rs",
                "pub(crate) const MOST: usize = 1 << 12;\n",
            ),
            ("server/ab/src/x.rs", "const MOST: usize = 7;\n"),
            ("server/a/tests/it/x.rs", "const MOST: usize = 8;\n"),
        ];
        assert_eq!(find(&PLACE, &sources).as_deref(), Ok("4,096"));
        let row = Row {
            what: "things",
            amount: "{} each, {} in all",
            places: &[PLACE, PLACE],
            past: "refused",
        };
        assert_eq!(
            amount(&row, &sources).as_deref(),
            Ok("4,096 each, 4,096 in all")
        );
    }

    #[test]
    fn missing_and_different_values_are_errors() {
        let missing = find(&PLACE, &[]).expect_err("none");
        assert!(missing.contains("has no const MOST"), "{missing}");
        let sources = [
            ("server/a/src/x.rs", "const MOST: usize = 1;\n"),
            ("server/a/src/y.rs", "const MOST: usize = 2;\n"),
        ];
        let different = find(&PLACE, &sources).expect_err("two");
        assert!(
            different.contains("several const MOST: 1, 2"),
            "{different}"
        );
        let row = Row {
            what: "things",
            amount: "{} and {}",
            places: &[PLACE],
            past: "refused",
        };
        assert!(amount(&row, &sources[..1]).is_err());
    }
}
