//! `[[data]]`: folders elsewhere whose files are the rows of a table.

use std::path::{Path, PathBuf};

use millpond_data::{Format, NameParts, table_name};
use toml::de::DeValue;

use super::{
    Config,
    tables::{ConfigEntry, EntryKind},
    value::{text, texts},
};
use crate::Problem;

/// A folder whose files are the rows of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DataFolder {
    pub table: String,
    /// From where the program runs.
    pub folder: PathBuf,
    /// As it is written in the file.
    pub shown: PathBuf,
    /// The endings of the names that count; empty for all formats.
    pub endings: Vec<String>,
    /// Parts of the names of files beside the slug.
    pub names: NameParts,
    /// The element of XML that is a row.
    pub element: Option<String>,
}

impl DataFolder {
    /// True if the folder is that of the table in `data/`.
    pub fn is_own(&self) -> bool {
        self.shown == own_folder(&self.table)
    }
}

/// The folder of a table where no other is named.
fn own_folder(table: &str) -> PathBuf {
    Path::new("data").join(table)
}

pub(super) const DATA: EntryKind = EntryKind {
    name: "data",
    keys: &[
        ("table", "\"docs\""),
        ("folder", "\"../docs\""),
        ("endings", "[\"md\"]"),
        ("names", "[\"date\", \"folder\"]"),
        ("element", "\"entry\""),
    ],
    read: data,
};

fn data(config: &mut Config, entry: &ConfigEntry<'_>, dir: &Path) -> Result<(), Problem> {
    let table = entry.need("table", |value| {
        let table = text(value)?;
        let is_named = config.data.iter().any(|folder| folder.table == table);
        match table_name(table) {
            Ok(_) if is_named => Err(format!("another entry names the table `{table}`")),
            Ok(table) => Ok(table.to_owned()),
            Err((problem, better)) => Err(format!("{problem}; `{better}` would do")),
        }
    })?;
    let shown = match entry.find("folder") {
        None => own_folder(&table),
        Some(_) => entry.need("folder", |value| folder(value, dir))?,
    };
    let endings = match entry.find("endings") {
        None => Vec::new(),
        Some(_) => entry.need("endings", endings)?,
    };
    let names = match entry.find("names") {
        None => NameParts::default(),
        Some(_) => entry.need("names", names)?,
    };
    let element = match entry.find("element") {
        None => None,
        Some(_) => Some(entry.need("element", |value| text(value).map(str::to_owned))?),
    };
    config.data.push(DataFolder {
        table,
        folder: dir.join(&shown),
        shown,
        endings,
        names,
        element,
    });
    Ok(())
}

fn folder(value: &DeValue<'_>, dir: &Path) -> Result<PathBuf, String> {
    let written = text(value)?;
    if written.is_empty() || written.contains('\0') {
        return Err(format!("`{written}` is no folder"));
    }
    // A folder that is not there yet is a fault of the data, not of the settings.
    let found = dir.join(written).canonicalize().ok();
    let site = dir.canonicalize().ok();
    if let (Some(found), Some(site)) = (found, site) {
        if site.starts_with(&found) {
            return Err(format!("`{written}` holds the site itself"));
        }
        if found.starts_with(site.join("data")) {
            return Err(format!(
                "`{written}` is in `data/`, whose files are tables already"
            ));
        }
    }
    Ok(PathBuf::from(written))
}

fn names(value: &DeValue<'_>) -> Result<NameParts, String> {
    let mut parts = NameParts::default();
    for part in texts(value, "a list of \"date\", \"folder\" and \"address\"")? {
        match part {
            "date" => parts.date = true,
            "folder" => parts.folder = true,
            "address" => parts.address = true,
            other => {
                return Err(format!(
                    "`{other}` is no part of a name: \"date\" takes date and slug from 2014-05-06-hello.md, \
                     \"folder\" the slug from hello/index.md, \"address\" the date from a line such as path: 2014/05/06/hello"
                ));
            }
        }
    }
    Ok(parts)
}

fn endings(value: &DeValue<'_>) -> Result<Vec<String>, String> {
    let written = texts(value, "a list of endings in quotes")?;
    if written.is_empty() {
        return Err("no ending is named; leave the key out for all formats".to_owned());
    }
    let one = |ending: &str| match Format::of_named(&format!("file.{ending}")) {
        Some(_) if !ending.contains('.') => Ok(ending.to_owned()),
        _ => Err(format!(
            "`{ending}` is no ending of a table; the endings are {}, and .mdx, .html, .htm, .txt",
            Format::endings()
        )),
    };
    written.into_iter().map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str, dir: &Path) -> Result<Vec<DataFolder>, String> {
        std::fs::write(dir.join("millpond.toml"), text).unwrap();
        let read = Config::read(dir).map(|config| config.data);
        read.map_err(|problem| problem.to_string())
    }

    #[test]
    fn a_folder_may_be_anywhere_but_around_the_site() {
        let temporary = lab_testkit::fast_dir();
        let dir = temporary.path().join("site");
        std::fs::create_dir_all(dir.join("data/posts")).unwrap();
        let good =
            "[[data]]\ntable = \"docs\"\nfolder = \"../docs\"\nendings = [\"md\", \"csv\"]\n";
        let folders = read(good, &dir).unwrap();
        assert_eq!(folders[0].folder, dir.join("../docs"));
        assert_eq!(folders[0].endings, ["md", "csv"]);
        assert!(!folders[0].is_own());
        let own = "[[data]]\ntable = \"posts\"\nnames = [\"date\"]\n";
        let folders = read(own, &dir).unwrap();
        assert_eq!(folders[0].folder, dir.join("data/posts"));
        assert!(folders[0].is_own() && folders[0].names.date && !folders[0].names.folder);
        for (text, expected) in [
            (
                "table = \"Docs\"\nfolder = \"a\"",
                "2:9: data.table: a table's name has lower-case letters, digits and _, and begins with a letter; `docs` would do",
            ),
            (
                "table = \"docs\"\nnames = [\"title\"]",
                "`title` is no part of a name",
            ),
            (
                "table = \"docs\"\nfolder = \"..\"",
                "`..` holds the site itself",
            ),
            (
                "table = \"docs\"\nfolder = \".\"",
                "`.` holds the site itself",
            ),
            (
                "table = \"docs\"\nfolder = \"data/posts\"",
                "`data/posts` is in `data/`, whose files are tables already",
            ),
            ("table = \"docs\"\nfolder = \"\"", "`` is no folder"),
            (
                "table = \"docs\"\nfolder = \"a\"\nendings = [\"exe\"]",
                "`exe` is no ending of a table; the endings are .csv",
            ),
            (
                "table = \"docs\"\nfolder = \"a\"\nendings = []",
                "no ending is named",
            ),
            ("table = \"docs\"\nfoldr = \"a\"", "did you mean `folder`?"),
        ] {
            let said = read(&format!("[[data]]\n{text}\n"), &dir).unwrap_err();
            assert!(said.contains(expected), "{expected} is not in: {said}");
        }
        let said = read(&format!("{good}{good}"), &dir).unwrap_err();
        assert!(
            said.contains("another entry names the table `docs`"),
            "{said}"
        );
    }
}
