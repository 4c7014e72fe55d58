//! Which events matter.

use std::ffi::OsStr;
use std::path::Path;

use crate::inotify::{FileChange, FileEvent};
use crate::statics::WELL_KNOWN;
use millpond_site_format::{config::UPLOAD_FOLDER, file_name::is_passed_over};

/// Meaning of an event for the watch, the gravest last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Meaning {
    /// The content of a file.
    Data,
    /// Names or rights: there may be folders that are not watched yet.
    Names,
    /// Events were lost.
    Lost,
}

/// None for what changes nothing that is served.
pub(super) fn meaning(event: &FileEvent, root: &Path) -> Option<Meaning> {
    let meaning = match event.change {
        // Writing through a mapping (`mmap`) has no event but the one of closing.
        FileChange::Written | FileChange::Closed => Meaning::Data,
        _ => Meaning::Names,
    };
    let matters = event.path == root || !is_ignored(&event.path, root);
    matters.then_some(meaning)
}

/// Ignored are hidden files, as those of version control, and editors' copies. Also databases with
/// their journals, lists of hot pages, and logs, because the server itself writes them all the
/// time. They are not ignored where they are files to be served, as are watched files outside of
/// the folder. Nothing in the folder of uploads is watched for: a file there is looked for when it
/// is asked for.
fn is_ignored(path: &Path, root: &Path) -> bool {
    let Some(name) = path.file_name().filter(|_| path.starts_with(root)) else {
        return false;
    };
    if is_hidden(name) || path.starts_with(root.join(UPLOAD_FOLDER)) {
        return true;
    }
    if path.starts_with(root.join("static")) {
        return false;
    }
    let name = name.as_encoded_bytes();
    let ends = |end: &&str| name.ends_with(end.as_bytes());
    DATABASES.iter().any(ends)
        || name.ends_with(b".log")
        || name.windows(5).any(|part| part == b".log.")
}

/// True if nothing of this name is served, wherever it is.
pub(super) fn is_hidden(name: &OsStr) -> bool {
    is_passed_over(name.as_encoded_bytes()) && name != WELL_KNOWN
}

/// The endings of SQLite's files.
const DATABASES: [&str; 8] = [
    ".db", ".db3", ".sqlite", ".sqlite3", "-wal", "-shm", "-journal",
    // The list of hot pages, which may be in the same folder.
    ".warm",
];

#[cfg(test)]
mod tests {
    use super::*;

    const ROOT: &str = "/srv/.site";

    fn of(change: FileChange, path: &str) -> Option<Meaning> {
        let event = FileEvent {
            change,
            is_folder: false,
            path: path.into(),
        };
        meaning(&event, Path::new(ROOT))
    }

    #[test]
    fn kinds() {
        let path = "/srv/.site/pages/index.html";
        for (change, expected) in [
            (FileChange::Closed, Some(Meaning::Data)),
            (FileChange::Written, Some(Meaning::Data)),
            (FileChange::Attributes, Some(Meaning::Names)),
            (FileChange::Renamed, Some(Meaning::Names)),
            (FileChange::Made, Some(Meaning::Names)),
            (FileChange::Removed, Some(Meaning::Names)),
        ] {
            assert_eq!(of(change, path), expected, "{change:?}");
        }
    }

    #[test]
    fn names() {
        let written = FileChange::Written;
        for name in [
            "site.db",
            "site.db-wal",
            "site.db-shm",
            "site.db-journal",
            "x.sqlite",
            "x.sqlite3",
            "x.db3",
            "site.db.warm",
            ".site.db.warm.4711",
            "access.log",
            "access.log.1",
            ".git",
            ".index.html.swp",
            "static/.index.html.swp",
        ] {
            assert_eq!(of(written, &format!("{ROOT}/{name}")), None, "{name}");
        }
        for name in [
            "index.html",
            "logo.svg",
            "a.dbx",
            "catalog.html",
            "db",
            "journal.md",
            ".well-known",
            "static/dump.sqlite",
            "static/a.warm",
            "static/a/server.log",
        ] {
            assert_eq!(
                of(written, &format!("{ROOT}/{name}")),
                Some(Meaning::Data),
                "{name}"
            );
        }
        assert_eq!(of(written, "/srv/.hidden.log"), Some(Meaning::Data));
        assert_eq!(
            of(written, ROOT),
            Some(Meaning::Data),
            "the folder itself may have any name"
        );
    }
}
