//! Brings the tables to what the files say.

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    fs::File,
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, UNIX_EPOCH},
};

use base_clock::Boottime;
use millpond_data::{DataError, FilePlace};
use millpond_db::{
    AppliedFile, Database, Error, FileChange, FileContent, FileOutcome, FileState, RowCounts,
};
use parking_lot::Mutex;

use super::{
    DataSources, FOLDER, Inbox,
    columns::{PATH_COLUMN, TargetTable},
    rows::{FileRows, RowsEnd},
    scan::{DataFile, FileStamp, FolderScan, scan},
    survey::{Survey, problem, survey},
    writers::{Writers, writers},
};
use crate::{Problem, time_zone::SiteZone};

/// The pause before a file is tried again that may be good at any moment.
pub(super) const SOON: Duration = Duration::from_millis(250);
/// The pause before a file is tried again where that may take long.
const SLOWLY: Duration = Duration::from_secs(10);

/// A file that was changed this short a while ago may still be written, where no event says that it
/// was closed.
const SETTLED: Duration = Duration::from_millis(250);

/// What is known of the files between two looks.
pub(super) struct Sync {
    sources: DataSources,
    database: Database,
    inbox: Arc<Inbox>,
    /// The zone of moments without an offset.
    zone: SiteZone,
    /// The files as they were when they were looked at last, and what came of it.
    known: BTreeMap<String, KnownFile>,
    /// Files with rows that were missing at the last look, and since when.
    missing: BTreeMap<String, Boottime>,
    /// Counts what was applied and what may have changed the tables.
    changes: u64,
    /// False until the folder was looked at once.
    has_looked: bool,
    /// True if the last look left something to be tried again.
    is_unfinished: bool,
    /// True if there was a folder.
    was_there: bool,
    /// What was wrong with the names of files.
    scan_problems: Vec<Problem>,
    /// What is wrong, for `check` and the developer's page.
    pub(super) problems: Vec<Problem>,
    /// What is to be done, such as a table that is missing; for the log.
    pub(super) notes: Vec<Problem>,
}

struct KnownFile {
    stamp: FileStamp,
    /// The signature of its table.
    table: String,
    /// What was wrong with it, or is to be done.
    fault: Option<Problem>,
    note: Option<Problem>,
    retry: Retry,
}

/// When a file is tried again that has not changed.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Retry {
    Never,
    /// Once there are other rows than after this number of changes.
    After(u64),
    /// At each look: it could not be read, or the database was away.
    EachLook,
}

/// What a look came to.
#[derive(Default)]
pub(super) struct LookOutcome {
    /// Lines for the owner's log.
    pub(super) lines: Vec<String>,
    /// True if rows were changed.
    pub(super) has_changed: bool,
    /// When to look again, if no event comes before.
    pub(super) retry: Option<Duration>,
}

impl LookOutcome {
    fn retry_after(&mut self, pause: Duration) {
        self.retry = Some(self.retry.map_or(pause, |known| known.min(pause)));
    }

    /// True if the error may be over soon.
    fn retry_passing(&mut self, error: &Error) -> bool {
        let is_passing = is_passing(error);
        if is_passing {
            self.retry_after(SOON);
        }
        is_passing
    }
}

/// How old a file must be in milliseconds before it is read: by then the event of its last change
/// has arrived.
const EVENT_DELAY: i64 = 10;

/// How long a file must not have been changed, in milliseconds, where neither an event nor the
/// kernel says whether a program is writing it.
const QUIET: i64 = 2_000;

impl DataFile {
    /// How long ago it was changed, in milliseconds; none for a time in the future.
    fn age(&self) -> Option<i64> {
        let now = base_clock::wall().duration_since(UNIX_EPOCH).ok()?;
        let now = i64::try_from(now.as_millis()).ok()?;
        Some(now - self.stamp.version()).filter(|age| *age >= 0)
    }
}

impl Sync {
    pub(super) fn new(
        sources: DataSources,
        database: &Database,
        inbox: Arc<Inbox>,
        zone: SiteZone,
    ) -> Self {
        Self {
            zone,
            sources,
            database: database.clone(),
            inbox,
            known: BTreeMap::new(),
            missing: BTreeMap::new(),
            changes: 0,
            has_looked: false,
            is_unfinished: false,
            was_there: false,
            scan_problems: Vec::new(),
            problems: Vec::new(),
            notes: Vec::new(),
        }
    }

    /// Looks at all files, and applies those that have changed. Those that are `closed` are whole;
    /// others are read once they have not been changed for a while.
    pub(super) fn look(&mut self, closed: &HashSet<PathBuf>) -> LookOutcome {
        let mut outcome = LookOutcome::default();
        let scan = scan(&self.sources);
        let is_first = !self.has_looked;
        if self.inbox.take_migrated() {
            self.changes += 1;
            self.is_unfinished = true;
        }
        if self.is_unchanged(&scan) {
            return outcome;
        }
        let applied = match self.database.applied_files() {
            Ok(applied) => applied,
            Err(error) => {
                outcome.retry_after(SOON);
                self.finish(
                    &scan,
                    vec![unapplied(Path::new(FOLDER), &error)],
                    &mut outcome,
                );
                return outcome;
            }
        };
        let mut faults = self.remove(&scan, &applied, is_first, &mut outcome);
        let by_name: HashMap<&str, &AppliedFile> =
            applied.iter().map(|file| (&*file.file, file)).collect();
        let mut tables = BTreeMap::new();
        let mut waiting: Vec<&DataFile> = scan.files.values().collect();
        // A file that was renamed: its rows are another file's until that one counts as gone.
        let is_owed = |file: &AppliedFile| self.missing.contains_key(&file.file);
        let owing: HashSet<&str> = applied
            .iter()
            .filter(|file| is_owed(file))
            .map(|file| &*file.table)
            .collect();
        // A row may refer to one of another file, so what is refused is tried again after others.
        loop {
            let before = self.changes;
            let mut refused = Vec::new();
            for file in waiting {
                if self.inbox.is_stopped() {
                    return outcome;
                }
                if self.differs(file) && !self.is_whole(file, closed) {
                    // Its end is news; but for a file that was written before it was watched.
                    let is_recent = file.age().is_some_and(|age| age < 2 * QUIET);
                    match self.inbox.is_open(&file.name) {
                        true => {}
                        false if is_recent => outcome.retry_after(SOON),
                        false => outcome.retry_after(SLOWLY),
                    }
                    continue;
                }
                let known = by_name.get(&*file.name).copied();
                if known.is_none_or(|known| known.hash.is_empty()) && owing.contains(&*file.table) {
                    continue;
                }
                if self.file(file, known, &mut tables, is_first, &mut outcome) {
                    refused.push(file);
                }
            }
            if refused.is_empty() || self.changes == before {
                break;
            }
            waiting = refused;
        }
        self.has_looked = true;
        faults.extend(self.known.values().filter_map(|known| known.fault.clone()));
        self.finish(&scan, faults, &mut outcome);
        outcome
    }

    /// True if there is nothing to do, by what was found at the last look.
    fn is_unchanged(&mut self, scan: &FolderScan) -> bool {
        if !self.has_looked
            && !scan.is_there
            && scan.files.is_empty()
            && scan.problems.is_empty()
            && self.sources.folders.is_empty()
        {
            self.has_looked = true;
            return true;
        }
        self.has_looked
            && !self.is_unfinished
            && self.was_there == scan.is_there
            && self.known.len() == scan.files.len()
            && !scan.files.values().any(|file| self.differs(file))
            && scan.problems == self.scan_problems
    }

    /// True if the file is not as it was when it was looked at last.
    fn differs(&self, file: &DataFile) -> bool {
        let known = self.known.get(&file.name);
        known.is_none_or(|known| known.stamp != file.stamp)
    }

    /// True if no program is writing the file. A look may come at any moment, also between the
    /// truncation of a file and its first byte.
    fn is_whole(&self, file: &DataFile, closed: &HashSet<PathBuf>) -> bool {
        let is_old = file
            .age()
            .is_none_or(|age| age >= SETTLED.as_millis() as i64);
        let is_closed = closed.contains(Path::new(&file.name));
        if !is_old && !is_closed {
            return false;
        }
        if let Some(age) = file.age().filter(|age| *age < EVENT_DELAY) {
            std::thread::sleep(Duration::from_millis((EVENT_DELAY - age).unsigned_abs()));
        }
        if self.inbox.is_open(&file.name) {
            return false;
        }
        // A program may have opened it before it was watched, and more than one may have.
        match File::open(&file.path).map(|file| writers(&file)) {
            Ok(Writers::None) => true,
            Ok(Writers::Some) => false,
            Ok(Writers::Unknown) => is_closed || file.age().is_none_or(|age| age >= QUIET),
            // That is said when it is read.
            Err(_) => true,
        }
    }

    /// Removes the rows of files that are gone: a program that writes a file anew may remove it
    /// first, so a file counts as gone once it is missing at two looks with [`SETTLED`] in between.
    fn remove(
        &mut self,
        scan: &FolderScan,
        applied: &[AppliedFile],
        is_first: bool,
        outcome: &mut LookOutcome,
    ) -> Vec<Problem> {
        let mut faults = Vec::new();
        self.known.retain(|name, _| scan.files.contains_key(name));
        let now = Boottime::now();
        let gone = applied.iter().filter(|known| !known.hash.is_empty());
        let gone = gone.filter(|known| !scan.files.contains_key(&known.file));
        let before = std::mem::take(&mut self.missing);
        for file in gone.filter(|known| !scan.holds(&known.file)) {
            if !scan.is_there && !self.sources.is_elsewhere(&file.table) {
                if faults.is_empty() {
                    let message = format!("the folder is gone, and the rows of {} stay", file.file);
                    let hint = "restore the folder; to remove the rows, make an empty folder";
                    faults.push(Problem::new(FOLDER, message).hint(hint));
                }
                continue;
            }
            let since = before.get(&file.file).copied().unwrap_or(now);
            if !is_first && now.since(since) < SETTLED {
                self.missing.insert(file.file.clone(), since);
                outcome.retry_after(SOON);
                continue;
            }
            let change = FileChange {
                file: file.file.clone(),
                table: file.table.clone(),
                hash: String::new(),
                version: scan.version,
                is_news: !is_first,
                state: FileState::Gone,
            };
            let shown = self.sources.shown(&file.file);
            match self.database.apply_file(change) {
                Ok(FileOutcome::Applied(counts)) => {
                    self.changes += 1;
                    outcome.has_changed = true;
                    outcome
                        .lines
                        .push(format!("{}: is gone; {}", shown.display(), rows(counts)));
                }
                Ok(FileOutcome::Older) => outcome.lines.push(format!(
                    "{}: is not in this folder, and another node has applied it since; its rows stay",
                    shown.display()
                )),
                Ok(FileOutcome::Same) => {}
                Err(error) => {
                    outcome.retry_passing(&error);
                    faults.push(unapplied(&shown, &error));
                }
            }
        }
        faults
    }

    /// Looks at one file. True if its rows were refused, so that it is worth trying again after
    /// others.
    fn file(
        &mut self,
        file: &DataFile,
        applied: Option<&AppliedFile>,
        tables: &mut BTreeMap<String, Option<TargetTable>>,
        is_first: bool,
        outcome: &mut LookOutcome,
    ) -> bool {
        if !tables.contains_key(&file.table) {
            let table = match self.table(&file.table) {
                Ok(table) => table,
                Err(error) => {
                    outcome.retry_passing(&error);
                    let fault = unapplied(&file.shown, &error);
                    self.remember(file, String::new(), Some(fault), None);
                    self.retry(file, Retry::EachLook);
                    return false;
                }
            };
            tables.insert(file.table.clone(), table);
        }
        let table = tables.get(&file.table).and_then(Option::as_ref);
        let signature = table.map(TargetTable::signature).unwrap_or_default();
        let is_known = self
            .known
            .get(&file.name)
            .is_some_and(|known| known.stamp == file.stamp && known.table == signature);
        if is_known && !self.is_worth_trying(file) {
            return false;
        }
        let Some(table) = table else {
            let note = Problem::new(
                &file.shown,
                format!("there is no table {} yet", file.table),
            )
            .hint(
                "`millpond check --fix` writes a migration for it; it is applied at the next start",
            );
            self.remember(file, signature, None, Some(note));
            return false;
        };
        if let Some((message, hint)) = table.fault() {
            let fault = Problem::new(&file.shown, message).hint(hint);
            self.remember(file, signature, Some(fault), None);
            return false;
        }
        self.apply(file, table, applied, is_first, outcome)
    }

    fn table(&self, name: &str) -> Result<Option<TargetTable>, Error> {
        let columns = self.database.table_columns(name)?;
        Ok((!columns.is_empty()).then(|| TargetTable {
            name: name.to_owned(),
            columns,
            zone: self.zone,
        }))
    }

    fn remember(
        &mut self,
        file: &DataFile,
        table: String,
        fault: Option<Problem>,
        note: Option<Problem>,
    ) {
        let known = KnownFile {
            stamp: file.stamp,
            table,
            fault,
            note,
            retry: Retry::Never,
        };
        self.known.insert(file.name.clone(), known);
    }

    /// Says when the file, which has a fault, is tried again though it has not changed.
    fn retry(&mut self, file: &DataFile, retry: Retry) {
        if let Some(known) = self.known.get_mut(&file.name) {
            known.retry = retry;
        }
    }

    /// True if a file that has not changed may have become good.
    fn is_worth_trying(&self, file: &DataFile) -> bool {
        match self.known.get(&file.name).map(|known| known.retry) {
            Some(Retry::After(changes)) => changes != self.changes,
            Some(Retry::EachLook) => true,
            Some(Retry::Never) | None => false,
        }
    }

    /// Applies a file whose table is there; true if its rows were refused.
    fn apply(
        &mut self,
        file: &DataFile,
        table: &TargetTable,
        applied: Option<&AppliedFile>,
        is_first: bool,
        outcome: &mut LookOutcome,
    ) -> bool {
        let signature = table.signature();
        if let Some(applied) = applied
            && let Some(hash) = content_hash(file)
            && applied.hash == full_hash(hash, &signature)
            && !self.known.contains_key(&file.name)
        {
            // What was applied before this process began: at most it is younger now.
            if !self.is_alone() && applied.version < file.stamp.version() {
                let state = FileState::Known;
                let change = self.change(file, full_hash(hash, &signature), false, state);
                if self.database.apply_file(change).is_err() {
                    outcome.retry_after(SOON);
                }
            }
            self.remember(file, signature, None, None);
            return false;
        }
        let surveyed = match survey(file, table, &|| self.inbox.is_stopped()) {
            Survey::Good(surveyed) => surveyed,
            Survey::Bad(fault) => {
                self.remember(file, signature, Some(fault), None);
                return false;
            }
            Survey::Unreadable(fault) => {
                outcome.retry_after(SLOWLY);
                self.remember(file, signature, Some(fault), None);
                self.retry(file, Retry::EachLook);
                return false;
            }
            Survey::Changed => {
                outcome.retry_after(SOON);
                return false;
            }
        };
        if self.inbox.is_open(&file.name) {
            return false;
        }
        let note = unknown_columns(file, table, &surveyed.filled.unknown);
        let end = Arc::new(Mutex::new(None));
        let columns = surveyed.filled.columns.clone();
        let content = FileContent {
            columns,
            source: Box::new(FileRows {
                file: file.clone(),
                filled: surveyed.filled,
                hash: surveyed.hash,
                inbox: Arc::clone(&self.inbox),
                end: Arc::clone(&end),
            }),
        };
        let hash = full_hash(surveyed.hash, &signature);
        let change = self.change(file, hash, !is_first, FileState::Rows(content));
        let result = self.database.apply_file(change);
        let end = end.lock().take();
        let shown = file.shown.clone();
        match (result, end) {
            (Ok(done), _) => {
                match done {
                    FileOutcome::Applied(counts) => {
                        self.changes += 1;
                        outcome.has_changed = true;
                        outcome.lines.push(format!(
                            "{}: table {}, {}",
                            shown.display(),
                            table.name,
                            rows(counts)
                        ));
                    }
                    FileOutcome::Older => outcome.lines.push(format!(
                        "{}: another node has applied a newer file, whose rows stay; to apply this one, `touch` it",
                        shown.display()
                    )),
                    FileOutcome::Same => {}
                }
                self.remember(file, signature, None, note);
                false
            }
            (Err(_), Some(RowsEnd::Changed | RowsEnd::Stopped)) => {
                outcome.retry_after(SOON);
                false
            }
            (Err(error), end) => {
                let is_passing = outcome.retry_passing(&error);
                let fault = refused(file, &error, end);
                self.remember(file, signature, Some(fault), note);
                self.retry(
                    file,
                    match is_passing {
                        true => Retry::EachLook,
                        false => Retry::After(self.changes),
                    },
                );
                !is_passing
            }
        }
    }

    fn is_alone(&self) -> bool {
        !self.database.is_postgres()
    }

    fn change(&self, file: &DataFile, hash: String, is_news: bool, state: FileState) -> FileChange {
        FileChange {
            file: file.name.clone(),
            table: file.table.clone(),
            hash,
            version: file.stamp.version(),
            is_news,
            state,
        }
    }

    /// Keeps what is wrong, and says what is new about it.
    fn finish(&mut self, scan: &FolderScan, mut faults: Vec<Problem>, outcome: &mut LookOutcome) {
        let is_finished = |file: &KnownFile| file.retry != Retry::EachLook && file.note.is_none();
        self.is_unfinished = outcome.retry.is_some() || !self.known.values().all(is_finished);
        self.was_there = scan.is_there;
        self.scan_problems.clone_from(&scan.problems);
        faults.extend(scan.problems.iter().cloned());
        let notes: Vec<Problem> = self
            .known
            .values()
            .filter_map(|known| known.note.clone())
            .collect();
        let new = |now: &[Problem], before: &[Problem]| -> Vec<String> {
            let before: HashSet<&Problem> = before.iter().collect();
            let new = now.iter().filter(|problem| !before.contains(problem));
            new.map(Problem::to_string).collect()
        };
        outcome.lines.extend(new(&faults, &self.problems));
        outcome.lines.extend(new(&notes, &self.notes));
        let faulty: HashSet<&PathBuf> = faults.iter().map(|problem| &problem.file).collect();
        let before = self.problems.iter().map(|problem| &problem.file);
        let mended: HashSet<&PathBuf> = before.filter(|file| !faulty.contains(file)).collect();
        let mended = mended
            .into_iter()
            .map(|file| format!("{}: is mended", file.display()));
        outcome.lines.extend(mended);
        self.problems = faults;
        self.notes = notes;
    }
}

/// The hash of the content, if the file is the one that was found.
fn content_hash(file: &DataFile) -> Option<u128> {
    let opened = File::open(&file.path).ok()?;
    let hash = millpond_data::hash(&opened).ok()?;
    let stamp = FileStamp::of(&opened.metadata().ok()?);
    (stamp == file.stamp).then_some(hash)
}

/// What is applied follows from the content and from the columns of the table.
fn full_hash(content: u128, table: &str) -> String {
    format!("{content:032x}-{table}")
}

/// True if trying again may help, without a change of the file.
fn is_passing(error: &Error) -> bool {
    matches!(
        error,
        Error::Unavailable { .. }
            | Error::Overloaded
            | Error::Timeout { .. }
            | Error::Locked { .. }
            | Error::Login { .. }
    )
}

/// A file that the database could not take.
fn unapplied(shown: &Path, error: &Error) -> Problem {
    Problem::new(shown, format!("the rows stay as they were: {error}"))
        .hint("it is tried again by itself")
}

/// A file whose rows the database refused.
pub(super) fn refused(file: &DataFile, error: &Error, end: Option<RowsEnd>) -> Problem {
    if is_passing(error) {
        return unapplied(&file.shown, error);
    }
    let place = match end {
        Some(RowsEnd::Refused(place)) => place,
        _ => FilePlace::default(),
    };
    let message = format!("the rows stay as they were: {error}");
    let fault = DataError::new(place, message)
        .remedy("correct the file, or what the table demands in a new migration");
    problem(file, &fault)
}

/// Columns of the file for which the table has none.
fn unknown_columns(file: &DataFile, table: &TargetTable, unknown: &[String]) -> Option<Problem> {
    // The folders may be the owner's order alone.
    let is_left_out = |name: &&String| **name == PATH_COLUMN && file.is_nested();
    let unknown: Vec<String> = unknown
        .iter()
        .filter(|name| !is_left_out(name))
        .cloned()
        .collect();
    let (first, rest) = unknown.split_first()?;
    let names = match rest {
        [] => format!("column {first}"),
        _ => format!("columns {}", unknown.join(", ")),
    };
    let message = format!(
        "the table {} has no {names}, so that is left out",
        table.name
    );
    Some(
        Problem::new(&file.shown, message).hint(
            "`millpond check --fix` writes a migration for it; it is applied at the next start",
        ),
    )
}

/// What has changed, for the log.
fn rows(counts: RowCounts) -> String {
    let RowCounts {
        inserted,
        updated,
        deleted,
    } = counts;
    let parts = [
        (inserted, "new"),
        (updated, "changed"),
        (deleted, "removed"),
    ];
    let parts: Vec<String> = parts
        .into_iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, what)| format!("{count} {what}"))
        .collect();
    match parts.is_empty() {
        true => "no row has changed".to_owned(),
        false => format!("rows: {}", parts.join(", ")),
    }
}
