//! Which events matter.

use std::ffi::OsStr;
use std::path::Path;

use notify::event::{EventKind, ModifyKind};
use notify::{Event, Result};

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

/// None for what changes nothing that is served: above all reading, or a reload would lead to the
/// next.
pub(super) fn meaning(event: &Result<Event>, root: &Path) -> Option<Meaning> {
    let Ok(event) = event else {
        return Some(Meaning::Lost);
    };
    if event.need_rescan() {
        return Some(Meaning::Lost);
    }
    let meaning = match event.kind {
        EventKind::Access(_) => return None,
        EventKind::Modify(ModifyKind::Data(_)) => Meaning::Data,
        _ => Meaning::Names,
    };
    let matters = |path: &Path| path == root || !is_ignored(path, root);
    let matters = event.paths.is_empty() || event.paths.iter().any(|path| matters(path));
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
    use notify::event::{
        AccessKind, AccessMode, CreateKind, DataChange, Flag, MetadataKind, RemoveKind, RenameMode,
    };

    use super::*;

    const ROOT: &str = "/srv/.site";

    fn of(kind: EventKind, path: &str) -> Option<Meaning> {
        meaning(&Ok(Event::new(kind).add_path(path.into())), Path::new(ROOT))
    }

    #[test]
    fn kinds() {
        let path = "/srv/.site/pages/index.html";
        for (kind, expected) in [
            (EventKind::Access(AccessKind::Open(AccessMode::Any)), None),
            (EventKind::Access(AccessKind::Close(AccessMode::Read)), None),
            // The write was reported as Modify.
            (
                EventKind::Access(AccessKind::Close(AccessMode::Write)),
                None,
            ),
            (
                EventKind::Modify(ModifyKind::Data(DataChange::Any)),
                Some(Meaning::Data),
            ),
            (
                EventKind::Modify(ModifyKind::Metadata(MetadataKind::Any)),
                Some(Meaning::Names),
            ),
            (
                EventKind::Modify(ModifyKind::Name(RenameMode::To)),
                Some(Meaning::Names),
            ),
            (EventKind::Create(CreateKind::File), Some(Meaning::Names)),
            (EventKind::Remove(RemoveKind::Folder), Some(Meaning::Names)),
            (EventKind::Any, Some(Meaning::Names)),
        ] {
            assert_eq!(of(kind, path), expected, "{kind:?}");
        }
    }

    #[test]
    fn names() {
        let written = EventKind::Modify(ModifyKind::Data(DataChange::Any));
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
        let outside = meaning(
            &Ok(Event::new(written).add_path("/srv/.hidden.log".into())),
            Path::new(ROOT),
        );
        assert_eq!(outside, Some(Meaning::Data));
        assert_eq!(
            of(written, ROOT),
            Some(Meaning::Data),
            "the folder itself may have any name"
        );
    }

    #[test]
    fn a_save_that_ends_with_an_ignored_name_still_counts() {
        let kind = EventKind::Modify(ModifyKind::Name(RenameMode::Both));
        let renamed = Event::new(kind)
            .add_path(format!("{ROOT}/.tmp").into())
            .add_path(format!("{ROOT}/style.css").into());
        assert_eq!(meaning(&Ok(renamed), Path::new(ROOT)), Some(Meaning::Names));
    }

    #[test]
    fn lost_events() {
        let overflow = Event::new(EventKind::Other).set_flag(Flag::Rescan);
        assert_eq!(meaning(&Ok(overflow), Path::new(ROOT)), Some(Meaning::Lost));
        let error = notify::Error::generic("an error");
        assert_eq!(meaning(&Err(error), Path::new(ROOT)), Some(Meaning::Lost));
    }
}
