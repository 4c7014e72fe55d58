//! The file that lists the hot pages.

use std::path::{Component, Path, PathBuf};

use toml::de::DeValue;

use super::{DatabaseUrl, value};

/// The suffix of names that the watch over the folder ignores; no source of a page has it.
const ENDING: &str = ".warm";

/// `cache.warm_list`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum WarmList {
    /// Beside the database's file, or in the site's folder.
    #[default]
    Beside,
    Nowhere,
    At(PathBuf),
}

impl WarmList {
    pub(super) fn parse(value: &DeValue<'_>, dir: &Path) -> Result<Self, String> {
        let path = match value {
            DeValue::Boolean(true) => return Ok(Self::Beside),
            DeValue::Boolean(false) => return Ok(Self::Nowhere),
            DeValue::String(path) => dir.join(&**path),
            _ => return Err(value::expected("true, false or a path in quotes", value)),
        };
        let shown = value.as_str().unwrap_or_default();
        let name = path.file_name().unwrap_or_default().as_encoded_bytes();
        if !name.ends_with(ENDING.as_bytes()) || name.contains(&0) {
            return Err(format!(
                "`{shown}` does not end in {ENDING}, by which the watch over the folder knows it"
            ));
        }
        if without_dots(&path).starts_with(without_dots(&dir.join("static"))) {
            return Err(format!("`{shown}` would be served to everybody"));
        }
        Ok(Self::At(path))
    }

    /// The file for a site in `dir`; `None` if the list is not kept.
    pub fn path(&self, dir: &Path, database: &DatabaseUrl) -> Option<PathBuf> {
        match self {
            Self::Nowhere => None,
            Self::At(path) => Some(path.clone()),
            Self::Beside => Some(match database.file() {
                Some(file) => {
                    let mut path = file.as_os_str().to_owned();
                    path.push(ENDING);
                    path.into()
                }
                None => dir.join("millpond.warm"),
            }),
        }
    }
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
        let sqlite = DatabaseUrl::Sqlite("/data/a.db".into());
        let path = |list: &WarmList| list.path(dir, &sqlite);
        assert_eq!(path(&WarmList::Beside), Some("/data/a.db.warm".into()));
        assert_eq!(path(&WarmList::Nowhere), None);
        let parse = |text: &str| WarmList::parse(DeValue::parse(text).unwrap().get_ref(), dir);
        for (text, expected) in [
            ("\"w/x.warm\"", "/srv/site/w/x.warm"),
            ("\"/var/x.warm\"", "/var/x.warm"),
        ] {
            assert_eq!(parse(text), Ok(WarmList::At(expected.into())));
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
