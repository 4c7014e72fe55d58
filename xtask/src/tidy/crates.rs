//! Every crate from outside has one line in `docs/reference/dependencies.md`, with the names of its
//! users.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use toml::{Table, Value};

use super::edges::{dependencies, is_ours};
use super::{Offence, files::File};

const PAGE: &str = "docs/reference/dependencies.md";

/// A line of the page's tables.
struct Row<'a> {
    /// Its line in the page.
    number: usize,
    name: &'a str,
    users: BTreeSet<&'a str>,
}

/// The page, held against the manifests.
pub(crate) fn check(files: &[File]) -> Vec<Offence> {
    let text_of = |path: &str| {
        let mut found = files.iter().filter(|file| file.path == Path::new(path));
        found.next().map_or("", |file| file.text.as_str())
    };
    let rows = rows(text_of(PAGE));
    let root = text_of("Cargo.toml").parse().unwrap_or_default();
    let mut offences = order(&rows);
    let mut users = users(files);
    for name in declared(&root) {
        let mut lines = rows.iter().filter(|row| row.name == name);
        let Some(row) = lines.next() else {
            let what = format!(
                "{name} has no line; say what it does here, why this one, what was rejected"
            );
            offences.push(offence(0, what));
            continue;
        };
        if let Some(again) = lines.next() {
            let what = format!("{name} has a line above already; make one of both");
            offences.push(offence(again.number, what));
        }
        let mut unnamed = users.remove(&name).unwrap_or_default();
        unnamed.retain(|user| !row.users.contains(user.as_str()));
        for user in unnamed {
            offences.push(offence(
                row.number,
                format!("{name} is also used by {user}"),
            ));
        }
    }
    let names: BTreeSet<String> = declared(&root).collect();
    for row in rows.iter().filter(|row| !names.contains(row.name)) {
        let what = format!("{} is in no manifest any more; remove its line", row.name);
        offences.push(offence(row.number, what));
    }
    offences
}

fn offence(line: usize, what: String) -> Offence {
    Offence {
        file: PAGE.into(),
        line,
        what,
    }
}

/// Lines such as "| `name`, with features | one, two | what for | why |".
fn rows(page: &str) -> Vec<Row<'_>> {
    (1..)
        .zip(page.lines())
        .filter_map(|(number, line)| {
            let (name, rest) = line.strip_prefix("| `")?.split_once('`')?;
            let users = rest.split('|').nth(1)?;
            Some(Row {
                number,
                name,
                users: users.split(',').map(str::trim).collect(),
            })
        })
        .collect()
}

/// Lines of one table, which stand one below the other, are sorted by name.
fn order(rows: &[Row<'_>]) -> Vec<Offence> {
    let pairs = rows.windows(2);
    pairs
        .filter(|pair| pair[0].number + 1 == pair[1].number && pair[0].name > pair[1].name)
        .map(|pair| {
            let what = format!(
                "{} stands after {}; sort by name",
                pair[1].name, pair[0].name
            );
            offence(pair[1].number, what)
        })
        .collect()
}

/// The crates from outside that the root manifest has.
fn declared(root: &Table) -> impl Iterator<Item = String> {
    let workspace = root.get("workspace").and_then(Value::as_table);
    let all = workspace.and_then(|table| table.get("dependencies")?.as_table());
    let names = all.into_iter().flat_map(Table::keys);
    names.filter(|name| !is_ours(name)).cloned()
}

/// By crate from outside the packages that use it outside of tests, by the names of their folders.
fn users(files: &[File]) -> BTreeMap<String, BTreeSet<String>> {
    let mut users = BTreeMap::<String, BTreeSet<String>>::new();
    for file in files {
        let (Some(user), Ok(manifest)) = (folder(&file.path), file.text.parse()) else {
            continue;
        };
        for used in dependencies(&manifest) {
            users.entry(used).or_default().insert(user.to_owned());
        }
    }
    users
}

/// `NAME` of `…/NAME/Cargo.toml`.
fn folder(manifest: &Path) -> Option<&str> {
    let is_manifest = manifest.file_name()? == "Cargo.toml";
    let folder = manifest.parent().filter(|_| is_manifest)?;
    folder.file_name()?.to_str()
}

#[cfg(test)]
mod tests {
    use super::check;
    use crate::tidy::files::File;

    /// Returns the offences of a page with these rows, where `a` uses `x` and `y`, and `z` is for
    /// tests.
    fn said(rows: &str) -> Vec<String> {
        let file = |path: &str, text: &str| File {
            path: path.into(),
            text: text.to_owned(),
        };
        let files = [
            file(
                "Cargo.toml",
                "[workspace.dependencies]\nx = '1'\ny = '1'\nz = '1'\nmillpond-a = '1'\n",
            ),
            file(
                "server/a/Cargo.toml",
                "[dependencies]\nx = '1'\ny = '1'\nmillpond-b = '1'\n[dev-dependencies]\nz = '1'\n",
            ),
            file("lab/bench/Cargo.toml", "[dependencies]\nx = '1'\n"),
            file("docs/reference/dependencies.md", rows),
        ];
        let offences = check(&files);
        offences
            .iter()
            .map(|offence| offence.what.clone())
            .collect()
    }

    #[test]
    fn each_crate_has_one_line_with_its_users() {
        let good = "| `x` | a, bench | | |\n| `y`, small | a | | |\n\n| `z` | tests | | |\n";
        assert!(said(good).is_empty(), "{:?}", said(good));
        for (rows, expected) in [
            ("| `x` | a, bench | |\n| `y` | a | |\n", "z has no line"),
            (
                "| `y` | a | |\n| `x` | a, bench | |\n\n| `z` | a | |\n",
                "x stands after y",
            ),
            (
                "| `x` | a | |\n| `y` | a | |\n| `z` | a | |\n",
                "x is also used by bench",
            ),
            (
                "| `x` | a, bench | |\n| `y` | a | |\n| `z` | a | |\n\n| `x` | a | |\n",
                "x has a line above",
            ),
            (
                "| `w` | a | |\n| `x` | a, bench | |\n| `y` | a | |\n| `z` | a | |\n",
                "w is in no manifest",
            ),
        ] {
            let said = said(rows);
            assert!(said.len() == 1 && said[0].starts_with(expected), "{said:?}");
        }
    }
}
