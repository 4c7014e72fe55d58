//! Files that the server keeps for itself: the list of hot pages and the history.

use std::path::{Component, Path, PathBuf};

use toml::de::DeValue;

use super::{Config, DatabaseUrl, value};

/// The ending of a list of hot pages, and of the history of figures. The watch over the folder
/// ignores both; no source of a page has them.
pub(super) const WARM: &str = ".warm";
pub(super) const HISTORY: &str = ".db";

/// The ending of a damaged history, in place of `.db`.
pub const DAMAGED: &str = "damaged.db";

/// Place of a file that the server keeps, `cache.warm_list` or `admin.history`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum KeptFile {
    /// Beside the database's file, or in the site's folder.
    #[default]
    Beside,
    Nowhere,
    At(PathBuf),
}

impl KeptFile {
    pub(super) fn parse(value: &DeValue<'_>, dir: &Path, ending: &str) -> Result<Self, String> {
        let path = match value {
            DeValue::Boolean(true) => return Ok(Self::Beside),
            DeValue::Boolean(false) => return Ok(Self::Nowhere),
            DeValue::String(path) => dir.join(&**path),
            _ => return Err(value::expected("true, false or a path in quotes", value)),
        };
        let shown = value.as_str().unwrap_or_default();
        let name = path.file_name().unwrap_or_default().as_encoded_bytes();
        if !name.ends_with(ending.as_bytes()) || name.contains(&0) {
            return Err(format!(
                "`{shown}` does not end in {ending}, by which the watch over the folder knows it"
            ));
        }
        if without_dots(&path).starts_with(without_dots(&dir.join("static"))) {
            return Err(format!("`{shown}` would be served to everybody"));
        }
        Ok(Self::At(path))
    }

    /// Returns the file; `None` if it is not kept. `beside` names it after the database's file.
    fn path(&self, beside: impl FnOnce() -> PathBuf) -> Option<PathBuf> {
        match self {
            Self::Nowhere => None,
            Self::At(path) => Some(path.clone()),
            Self::Beside => Some(beside()),
        }
    }
}

impl Config {
    /// Returns the list of hot pages for a site in `dir`; `None` if the list is not kept.
    #[must_use]
    pub fn warm_list(&self, dir: &Path) -> Option<PathBuf> {
        self.warm_list.path(|| {
            let mut path = named(dir, &self.database).into_os_string();
            path.push(WARM);
            path.into()
        })
    }

    /// Returns the file of the history for a server of the site in `dir`; `None` if none is kept.
    #[must_use]
    pub fn history(&self, dir: &Path) -> Option<PathBuf> {
        let beside = || named(dir, &self.database).with_extension("history.db");
        self.history.path(beside)
    }
}

/// The name that others are made from: the database's file, or one in the site's folder.
fn named(dir: &Path, database: &DatabaseUrl) -> PathBuf {
    let file = database.file().map(Path::to_owned);
    file.unwrap_or_else(|| dir.join("millpond"))
}

/// The path without `.` and `..`, as far as its text alone determines it.
fn without_dots(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir if plain.file_name().is_some() => {
                plain.pop();
            }
            part => plain.push(part),
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_beside_the_database_unless_it_is_said_where() {
        let dir = Path::new("/srv/site");
        let mut config = Config::defaults(dir);
        config.database = DatabaseUrl::Sqlite("/data/a.db".into());
        assert_eq!(config.warm_list(dir), Some("/data/a.db.warm".into()));
        assert_eq!(config.history(dir), Some("/data/a.history.db".into()));
        config.warm_list = KeptFile::Nowhere;
        config.history = KeptFile::At("/x.db".into());
        assert_eq!(config.warm_list(dir), None);
        assert_eq!(config.history(dir), Some("/x.db".into()));
        let parse =
            |text: &str| KeptFile::parse(DeValue::parse(text).unwrap().get_ref(), dir, WARM);
        for (text, expected) in [
            ("\"w/x.warm\"", "/srv/site/w/x.warm"),
            ("\"/var/x.warm\"", "/var/x.warm"),
        ] {
            assert_eq!(parse(text), Ok(KeptFile::At(expected.into())));
        }
        for text in [
            "1",
            "\"\"",
            "\"x\"",
            "\"millpond.toml\"",
            "\"static/x.warm\"",
            "\"pages/../static/x.warm\"",
            "\"x.warm/\\u0000\"",
        ] {
            assert!(parse(text).is_err(), "{text}");
        }
    }
}
