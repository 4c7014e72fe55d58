//! `-- file:` and `-- delete-file:` lines.
//!
//! ```sql
//! -- file: picture into uploads/albums max 5MB types (image/png, image/jpeg)
//! -- file: scans[] into uploads/scans count 20 types (image/*, application/pdf) = null
//! -- file: portrait as bytes max 200KB types (image/*)
//! -- file: letters[] as bytes max 3MB count 5
//! -- delete-file: old.picture
//! ```

use millpond_db::{Value, ValueKind};

use super::Complaint;
use super::bytes::{ColumnName, column};
use super::declare::{Declaration, complain, name_of_parameter};
use crate::{
    config::{UPLOAD_FOLDER, in_units, parse_size},
    file_type::{FileType, types_named},
    suggest::closest,
    value_rules::ValueRules,
};

const EXAMPLE: &str =
    "for example: -- file: picture into uploads/albums max 5MB types (image/png, image/jpeg)";
const WORDS: [&str; 5] = ["into", "as", "max", "count", "types"];
/// Bytes of a file where the line does not say.
const IN_FOLDER: usize = 10_000_000;
const AS_BYTES: usize = 1_000_000;
/// The most that a line may allow, of all its files: what is bound to a statement is in memory.
const MOST_BYTES: usize = 16 << 20;
const COUNT: usize = 10;
const MOST_FILES: usize = 100;

/// Place to which a file goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FilePlace {
    /// Into a folder of the site, by its path from the site's folder.
    Folder(String),
    /// Into a statement; of a list in hexadecimal digits, as JSON has no bytes.
    Bytes,
}

/// A `-- file:` line.
#[derive(Clone, Debug, PartialEq)]
pub struct FileLine {
    pub name: String,
    /// True if it takes several files.
    pub is_list: bool,
    pub place: FilePlace,
    /// The most bytes of one file.
    pub max: usize,
    /// The most files.
    pub count: usize,
    /// The types that it takes; all that are not active, if there are none here.
    pub kinds: Vec<&'static FileType>,
    pub is_optional: bool,
    pub line: usize,
}

impl FileLine {
    /// Endings of the names of a file's further values, with their kinds.
    pub const FURTHER: [(&'static str, ValueKind); 3] = [
        ("_name", ValueKind::Text),
        ("_type", ValueKind::Text),
        ("_size", ValueKind::Integer),
    ];

    /// The parameters that it gives: first that of its own name.
    pub fn declarations(&self) -> Vec<Declaration> {
        let declare = |name: String, kind| Declaration {
            name,
            kind,
            is_list: false,
            choices: Vec::new(),
            rules: ValueRules::default(),
            // What a request says in a text field of this name is not used.
            default: Some(Value::Null),
            line: self.line,
        };
        let own = match &self.place {
            _ if self.is_list => ValueKind::Other,
            FilePlace::Folder(_) => ValueKind::Text,
            FilePlace::Bytes => ValueKind::Blob,
        };
        let mut all = vec![declare(self.name.clone(), own)];
        if !self.is_list {
            let further = Self::FURTHER.iter();
            all.extend(further.map(|(end, kind)| declare(format!("{}{end}", self.name), *kind)));
        }
        all
    }

    /// True if a parameter is one of its further values, which need not be used.
    pub fn gives_also(&self, param: &str) -> bool {
        let end = param.strip_prefix(&*self.name);
        end.is_some_and(|end| Self::FURTHER.iter().any(|(further, _)| *further == end))
    }
}

/// Reads what stands behind `-- file:`.
pub(super) fn file(rest: &str, line: usize) -> Result<FileLine, Complaint> {
    let (name, rest) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
    let (name, is_list) = match name.strip_suffix("[]") {
        Some(name) => (name, true),
        None => (name, false),
    };
    name_of_parameter(name, EXAMPLE)?;
    let mut read = Parts::default();
    let mut rest = rest.trim();
    while !rest.is_empty() {
        rest = read.next(rest)?.trim_start();
    }
    let Some(place) = read.place else {
        return complain("the line does not say where the file goes", EXAMPLE);
    };
    if !is_list && read.count.is_some() {
        return complain(
            format!("`{name}` is one file, and has no count"),
            format!("for several files: -- file: {name}[] …"),
        );
    }
    let (usual, most) = match place {
        FilePlace::Folder(_) => (IN_FOLDER, usize::MAX),
        FilePlace::Bytes => (AS_BYTES, MOST_BYTES),
    };
    let max = read.max.unwrap_or(usual);
    if max == 0 || max > most {
        return complain(
            format!(
                "`{name}` must have a `max` above 0, and of at most {} MiB with `as bytes`",
                MOST_BYTES >> 20
            ),
            "let a large file go into a folder: -- file: name into uploads/…",
        );
    }
    let count = match is_list {
        true => read.count.unwrap_or(COUNT),
        false => 1,
    };
    if place == FilePlace::Bytes && count.saturating_mul(max) > MOST_BYTES {
        return complain(
            format!(
                "{count} files of {} in `{name}` are more than {} MiB, the most with `as bytes`",
                in_units(max),
                MOST_BYTES >> 20
            ),
            format!(
                "say less, for example: -- file: {name}[] as bytes max 3MB count 5; what may be read by all who have its address can go into a folder"
            ),
        );
    }
    Ok(FileLine {
        name: name.to_owned(),
        is_list,
        place,
        max,
        count,
        kinds: read.kinds.unwrap_or_default(),
        is_optional: read.is_optional,
        line,
    })
}

/// Parts that were read of a line.
#[derive(Default)]
struct Parts {
    place: Option<FilePlace>,
    max: Option<usize>,
    count: Option<usize>,
    kinds: Option<Vec<&'static FileType>>,
    is_optional: bool,
}

impl Parts {
    /// Reads one word with its value; what stands behind them.
    fn next<'l>(&mut self, text: &'l str) -> Result<&'l str, Complaint> {
        if let Some(default) = text.strip_prefix('=') {
            if !default.trim().eq_ignore_ascii_case("null") {
                return complain(
                    format!("`{}` is no default for a file", default.trim()),
                    "a file that may be left out ends with: = null",
                );
            }
            self.is_optional = true;
            return Ok("");
        }
        let (word, rest) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
        let rest = rest.trim_start();
        if word == "types" {
            let (kinds, rest) = types(rest)?;
            once(word, self.kinds.replace(kinds).is_some())?;
            return Ok(rest);
        }
        let (value, behind) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
        match word {
            "into" => {
                let folder = FilePlace::Folder(folder(value)?);
                once("a place", self.place.replace(folder).is_some())?;
            }
            "as" if value == "bytes" => {
                once("a place", self.place.replace(FilePlace::Bytes).is_some())?;
            }
            "as" => {
                return complain(
                    format!("`as {value}` is no place"),
                    "write `as bytes`, or `into uploads/…`",
                );
            }
            "max" => {
                let size = parse_size(value).map_err(|why| (why, Some(EXAMPLE.to_owned())))?;
                once(word, self.max.replace(size).is_some())?;
            }
            "count" => match value.parse() {
                Ok(count @ 1..=MOST_FILES) => once(word, self.count.replace(count).is_some())?,
                _ => {
                    return complain(
                        format!("`{value}` is no count: 1 to {MOST_FILES}"),
                        "for example: count 20",
                    );
                }
            },
            _ => {
                let hint = match closest(word, WORDS) {
                    Some(near) => format!("did you mean `{near}`?"),
                    None => EXAMPLE.to_owned(),
                };
                return complain(format!("`{word}` says nothing about a file"), hint);
            }
        }
        Ok(behind)
    }
}

fn once(word: &str, is_second: bool) -> Result<(), Complaint> {
    match is_second {
        true => complain(format!("the line has {word} twice"), "keep one of them"),
        false => Ok(()),
    }
}

/// A folder below `uploads`, with names that are safe everywhere.
fn folder(text: &str) -> Result<String, Complaint> {
    let text = text.trim_end_matches('/');
    let is_safe = |part: &str| {
        let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
        !part.is_empty() && part.chars().all(is_plain)
    };
    let mut parts = text.split('/');
    if parts.next() == Some(UPLOAD_FOLDER) && parts.all(is_safe) {
        return Ok(text.to_owned());
    }
    complain(
        format!(
            "`{text}` is no folder for files: it is `{UPLOAD_FOLDER}`, or in it, with letters, digits, `_` and `-` in its name"
        ),
        EXAMPLE,
    )
}

/// The list of types, and what stands behind it.
fn types(text: &str) -> Result<(Vec<&'static FileType>, &str), Complaint> {
    let list = text.strip_prefix('(').and_then(|list| list.split_once(')'));
    let Some((list, rest)) = list else {
        return complain("the types stand in brackets", EXAMPLE);
    };
    let mut kinds: Vec<&'static FileType> = Vec::new();
    for name in list.split(',').map(str::trim) {
        let named = types_named(name);
        if named.is_empty() {
            let all = FileType::all().map(|kind| kind.name);
            let hint = match closest(name, all) {
                Some(near) => format!("did you mean `{near}`?"),
                None => format!(
                    "known by their content are {}, and image/*, audio/*, video/*",
                    FileType::all()
                        .map(|kind| kind.name)
                        .collect::<Vec<_>>()
                        .join(", ")
                ),
            };
            return complain(
                format!("`{name}` is no type that is known by its content"),
                hint,
            );
        }
        kinds.extend(named);
    }
    Ok((kinds, rest))
}

/// Reads what stands behind `-- delete-file:`.
pub(super) fn deleted(rest: &str) -> Result<ColumnName, Complaint> {
    column(rest).map_or_else(
        || {
            complain(
                format!("`{rest}` names no column"),
                "for example: -- delete-file: old.picture, with the name of a query and a column of it",
            )
        },
        Ok,
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_says_where_a_file_goes_and_what_it_may_be() {
        let read = |text| file(text, 1).unwrap();
        let picture = read("picture into uploads/albums max 5MB types (image/png, image/jpeg)");
        assert_eq!(
            picture.place,
            FilePlace::Folder("uploads/albums".to_owned())
        );
        assert_eq!(
            (picture.max, picture.count, picture.is_list),
            (5_000_000, 1, false)
        );
        assert_eq!(
            picture
                .kinds
                .iter()
                .map(|kind| kind.name)
                .collect::<Vec<_>>(),
            ["image/png", "image/jpeg"]
        );
        let scans = read("scans[] types (image/*) count 20 into uploads/ = null");
        assert!(scans.is_list && scans.is_optional && scans.kinds.len() > 3);
        assert_eq!((scans.max, scans.count), (IN_FOLDER, 20));
        assert_eq!(scans.declarations().len(), 1);
        let letters = read("letters[] as bytes");
        assert_eq!((letters.max, letters.count), (AS_BYTES, COUNT));
        assert_eq!(letters.declarations().len(), 1);
        let portrait = read("portrait as bytes max 200KB");
        assert_eq!(
            (&portrait.place, portrait.max),
            (&FilePlace::Bytes, 200_000)
        );
        assert!(portrait.gives_also("portrait_size") && !portrait.gives_also("portrait"));
        for (text, expected) in [
            ("", "`` is no name"),
            ("a", "the line does not say where"),
            ("a into static", "`static` is no folder"),
            ("a into uploads/../pages", "`uploads/../pages` is no folder"),
            ("a into /uploads", "`/uploads` is no folder"),
            ("a into uploads//b", "`uploads//b` is no folder"),
            ("a into uploads into uploads", "the line has a place twice"),
            ("a as text", "`as text` is no place"),
            (
                "a[] as bytes max 2MB",
                "10 files of 2 MB in `a` are more than 16 MiB",
            ),
            ("a as bytes max 17MiB", "`a` must have a `max` above 0"),
            ("a into uploads max 0B", "`a` must have a `max` above 0"),
            ("a into uploads max lots", "`lots` is no size"),
            ("a into uploads count 3", "`a` is one file"),
            ("a[] into uploads count 1000", "`1000` is no count"),
            (
                "a into uploads types image/png",
                "the types stand in brackets",
            ),
            ("a into uploads types (image/pgn)", "`image/pgn` is no type"),
            ("a into uploads mx 3MB", "`mx` says nothing"),
            ("a into uploads = 'x'", "`'x'` is no default"),
        ] {
            let found = file(text, 1).unwrap_err().0;
            assert!(found.starts_with(expected), "{text}: {found}");
        }
        let hint = |text| file(text, 1).unwrap_err().1.unwrap();
        assert_eq!(
            hint("a into uploads types (image/pgn)"),
            "did you mean `image/png`?"
        );
        assert_eq!(hint("a into uploads maxx 3MB"), "did you mean `max`?");
    }

    #[test]
    fn a_deleted_file_is_named_by_a_column() {
        let found = deleted("old.picture").unwrap();
        assert_eq!((&*found.query, &*found.column), ("old", "picture"));
        for text in [
            "old",
            ":old",
            ":old.picture",
            "old.",
            "a b.c",
            "/uploads/x.png",
        ] {
            assert!(deleted(text).is_err(), "{text}");
        }
    }
}
