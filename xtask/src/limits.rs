//! `docs/reference/limits.md`: every limit, with the value that the code has.
//!
//! The values are read from the source text of the server, so a constant may stay private and xtask
//! does not link the server. The rows are in `limits/rows.md`, with a gap for each value:
//! `{unit folder NAME}` is a constant, `{unit folder name in TEXT}` the first field `name` after
//! `TEXT`. The unit is `bytes`, `count`, or `time` where the source has a `Duration`; the folder is
//! a crate, or a folder or a file in it without its ending.

mod value;

use value::Unit;

/// The page that is made.
pub(crate) const PAGE: &str = "docs/reference/limits.md";

const ROWS: &str = include_str!("limits/rows.md");

/// A source file by its path in the workspace.
pub(crate) type Source<'a> = (&'a str, &'a str);

/// The page, or what is wrong with a row.
pub(crate) fn page(sources: &[Source<'_>]) -> Result<String, String> {
    let page = "# Limits\n\n\
         Everything that grows has a limit, and past the limit something simple happens. A limit that a site can set\n\
         names its setting: see [configuration](configuration.md).\n\n\
         The values come from the source code; the texts are in `xtask/src/limits/rows.md`. `cargo xtask limits` writes\n\
         this page, and `cargo xtask tidy` compares the page with the code.\n\n\
         | what | how much | past the limit |\n|---|---|---|\n";
    Ok(page.to_owned() + &fill(ROWS, sources)?)
}

/// The text with each gap replaced by the value of its place.
fn fill(text: &str, sources: &[Source<'_>]) -> Result<String, String> {
    let mut pieces = text.split('{');
    let mut filled = pieces.next().unwrap_or("").to_owned();
    for piece in pieces {
        let (gap, rest) = piece.split_once('}').unwrap_or((piece, ""));
        filled.push_str(&find(gap, sources)?);
        filled.push_str(rest);
    }
    Ok(filled)
}

/// The value of a gap. Several definitions are fine as long as they are equal.
fn find(gap: &str, sources: &[Source<'_>]) -> Result<String, String> {
    let (place, after) = gap.split_once(" in ").unwrap_or((gap, "const"));
    let &[unit, folder, name] = place.split(' ').collect::<Vec<_>>().as_slice() else {
        return Err(format!(
            "{{{gap}}} in xtask/src/limits/rows.md is no gap; write {{unit folder NAME}}"
        ));
    };
    let unit = Unit::named(unit)
        .ok_or_else(|| format!("the unit of {{{gap}}} is none of bytes, count and time"))?;
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
            "{folder} has no {after} {name} with a plain value; name in xtask/src/limits/rows.md what has the limit now"
        )),
        _ => Err(format!(
            "{folder} has several {after} {name}: {}; name the folder in xtask/src/limits/rows.md more closely",
            values.join(", ")
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::fill;

    const GAP: &str = "{count server/a MOST}";

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
        assert_eq!(
            fill(&format!("{GAP} each, {GAP} in all"), &sources).as_deref(),
            Ok("4,096 each, 4,096 in all")
        );
    }

    #[test]
    fn missing_and_different_values_are_errors() {
        let missing = fill(GAP, &[]).expect_err("none");
        assert!(missing.contains("has no const MOST"), "{missing}");
        let sources = [
            ("server/a/src/x.rs", "const MOST: usize = 1;\n"),
            ("server/a/src/y.rs", "const MOST: usize = 2;\n"),
        ];
        let different = fill(GAP, &sources).expect_err("two");
        assert!(
            different.contains("several const MOST: 1, 2"),
            "{different}"
        );
        for gap in ["{}", "{count MOST}", "{miles server/a MOST}"] {
            assert!(fill(gap, &sources[..1]).is_err(), "{gap}");
        }
    }
}
