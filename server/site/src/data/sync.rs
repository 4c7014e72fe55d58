//! Looks at the files, and keeps what is known of them between two looks.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap, HashSet},
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, UNIX_EPOCH},
};

use base_clock::Boottime;
use millpond_db::{AppliedFile, Database, Error};

use super::{
    DataSources, FOLDER, Inbox,
    apply::{Look, MAX_LINES},
    held::HeldFiles,
    inbox::Wake,
    messages::{brief, is_passing, unapplied},
    scan::{DataFile, FolderScan, scan},
    writers::{Writers, writers},
};
use crate::statics::Stamp;
use millpond_site_format::{Problem, time_zone::SiteZone};

/// The pause before a file is tried again that may be good at any moment.
pub(super) const SOON: Duration = Duration::from_millis(250);
/// The pause before a file is tried again where that may take long.
pub(super) const SLOWLY: Duration = Duration::from_secs(10);

/// A file that was changed this short a while ago may still be written, where no event says that it
/// was closed.
pub(super) const SETTLED: Duration = Duration::from_millis(250);

/// State of the files between two looks.
pub(super) struct FolderSync {
    pub(super) sources: DataSources,
    pub(super) database: Database,
    pub(super) inbox: Arc<Inbox>,
    /// The zone of moments without an offset.
    pub(super) zone: SiteZone,
    /// The files as they were when they were looked at last, and what came of it.
    pub(super) known: BTreeMap<String, KnownFile>,
    /// Files with rows that were missing at the last look, and since when they have been seen so.
    pub(super) missing: BTreeMap<String, Boottime>,
    /// Files that are gone whose rows were kept at the last look: for another file, or as the
    /// database did not let them go.
    pub(super) held: HeldFiles,
    pub(super) stuck: BTreeSet<String>,
    /// Files that were here since the start: only this node's own can be removed here.
    pub(super) seen: BTreeSet<String>,
    /// Files of other nodes, of which the log says so.
    pub(super) elsewhere: BTreeSet<String>,
    /// Counts what was applied and what may have changed the tables.
    pub(super) changes: u64,
    /// False until the folder was looked at once.
    pub(super) has_looked: bool,
    /// True if the last look left something to be tried again.
    pub(super) is_unfinished: bool,
    /// True if it left rows of files or folders that are gone.
    pub(super) has_gone: bool,
    /// Files that the last look found in the folders.
    pub(super) last: FolderScan,
    /// Faults, for `check` and the developer's page.
    pub(super) problems: Vec<Problem>,
    /// Actions that are to be taken, such as making a table that is missing; for the log.
    pub(super) notes: Vec<Problem>,
}

/// A file as it was when it was looked at last.
pub(super) struct KnownFile {
    pub(super) stamp: Stamp,
    /// The signature of its table.
    pub(super) table: String,
    /// Faults of the file, or actions that are to be taken.
    faults: Vec<Problem>,
    /// True if the log has the faults.
    are_told: bool,
    note: Option<Problem>,
    pub(super) retry: Retry,
}

/// When a file is tried again that has not changed.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Retry {
    Never,
    /// Once there are other rows than after this number of changes.
    After(u64),
    /// At each look: it could not be read, or the database was away.
    EachLook,
}

/// Result of a look.
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
    pub(super) fn retry_after(&mut self, pause: Duration) {
        self.retry = Some(self.retry.map_or(pause, |known| known.min(pause)));
    }

    /// True if the error may be over soon.
    pub(super) fn retry_passing(&mut self, error: &Error) -> bool {
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
pub(super) const QUIET: i64 = 2_000;

impl DataFile {
    /// How long ago it was changed, in milliseconds; none for a time in the future.
    pub(super) fn age(&self) -> Option<i64> {
        let now = base_clock::wall().duration_since(UNIX_EPOCH).ok()?;
        let now = i64::try_from(now.as_millis()).ok()?;
        Some(now - self.stamp.version()).filter(|age| *age >= 0)
    }
}

impl FolderSync {
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
            held: HeldFiles::new(),
            stuck: BTreeSet::new(),
            seen: BTreeSet::new(),
            elsewhere: BTreeSet::new(),
            changes: 0,
            has_looked: false,
            is_unfinished: false,
            has_gone: false,
            last: FolderScan::default(),
            problems: Vec::new(),
            notes: Vec::new(),
        }
    }

    /// Looks at the files, and applies those that have changed. Those that were closed are whole;
    /// others are read once they have not been changed for a while. If nothing else has changed
    /// than the contents of some files, only these are looked at.
    pub(super) fn look(&mut self, wake: &Wake) -> LookOutcome {
        let mut outcome = LookOutcome::default();
        if self.inbox.take_migrated() {
            self.changes += 1;
            self.is_unfinished = true;
        }
        let none = HashSet::new();
        let (closed, saved) = match wake {
            Wake::News(closed) => (closed, self.saved(closed)),
            Wake::Broad(closed) => (closed, None),
            Wake::Lost | Wake::Time | Wake::Stopped => (&none, None),
        };
        match saved {
            Some(saved) if saved.is_empty() => {}
            Some(saved) => self.look_at(saved, closed, &mut outcome),
            None => self.look_at_all(closed, &mut outcome),
        }
        outcome
    }

    fn look_at_all(&mut self, closed: &HashSet<PathBuf>, outcome: &mut LookOutcome) {
        let begun = Boottime::now();
        let scan = scan(&self.sources);
        if self.is_unchanged(&scan) {
            self.last = scan;
            return;
        }
        let applied = match self.database.applied_files() {
            Ok(applied) => applied,
            Err(error) => {
                outcome.retry_after(SOON);
                let fault = unapplied(Path::new(FOLDER), &error);
                self.finish(scan, vec![fault], outcome);
                return;
            }
        };
        let is_first = !self.has_looked;
        self.known.retain(|name, _| scan.files.contains_key(name));
        let (mut faults, at) = (Vec::new(), (!is_first).then_some(begun));
        let gone = self.gone(&scan, at, &applied, outcome, &mut faults);
        let new = scan.files.keys().filter(|name| !self.seen.contains(*name));
        let new: Vec<String> = new.cloned().collect();
        self.seen.extend(new);
        let look = Look {
            scan: &scan,
            applied: by_name(&applied),
            gone: &gone.into(),
            closed,
            is_first,
            saved: None,
        };
        faults.extend(self.apply_and_remove(&look, outcome));
        if self.inbox.is_stopped() {
            return;
        }
        self.has_looked = true;
        let is_all_there = self.missing.is_empty() && self.held.is_empty() && self.stuck.is_empty();
        self.has_gone = !is_all_there || !faults.is_empty();
        self.finish(scan, faults, outcome);
    }

    /// Applies what has changed, and removes what is gone. The files come first, and take over the
    /// rows of those that are gone by their keys: a file with another name keeps its row.
    fn apply_and_remove(&mut self, look: &Look<'_>, outcome: &mut LookOutcome) -> Vec<Problem> {
        if look.gone.is_empty() {
            self.held.clear();
            self.stuck.clear();
            self.apply_changed(look, outcome);
            return Vec::new();
        }
        // A file may have been refused because of a row that it can now take over.
        self.changes += 1;
        self.apply_changed(look, outcome);
        let before = self.changes;
        let mut faults = self.remove(look, outcome);
        if self.changes != before {
            // A row of theirs may have been in the way by more than its key.
            self.apply_changed(look, outcome);
            faults = self.remove(look, outcome);
        }
        faults
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
            && self.last.is_there == scan.is_there
            && self.known.len() == scan.files.len()
            && !scan.files.values().any(|file| self.differs(file))
            && scan.problems == self.last.problems
            && scan.notes == self.last.notes
            && scan.folders == self.last.folders
    }

    /// True if the file is as it was when it was applied.
    pub(super) fn is_applied(&self, file: &DataFile) -> bool {
        let known = self.known.get(&file.name);
        known.is_some_and(|known| known.stamp == file.stamp && known.faults.is_empty())
    }

    /// True if the file is not as it was when it was looked at last.
    pub(super) fn differs(&self, file: &DataFile) -> bool {
        let known = self.known.get(&file.name);
        known.is_none_or(|known| known.stamp != file.stamp)
    }

    /// True if no program is writing the file. A look may come at any moment, also between the
    /// truncation of a file and its first byte.
    pub(super) fn is_whole(&self, file: &DataFile, closed: &HashSet<PathBuf>) -> bool {
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
        match file.open().map(|file| writers(&file)) {
            Ok(Writers::None) => true,
            Ok(Writers::Some) => false,
            Ok(Writers::Unknown) => is_closed || file.age().is_none_or(|age| age >= QUIET),
            // That is said when it is read.
            Err(_) => true,
        }
    }

    /// Keeps what came of a file. Its faults are told once for each change of the file.
    pub(super) fn remember(
        &mut self,
        file: &DataFile,
        table: String,
        faults: impl IntoIterator<Item = Problem>,
        note: Option<Problem>,
    ) {
        let faults: Vec<Problem> = faults.into_iter().collect();
        let before = self.known.get(&file.name);
        let is_same = |before: &KnownFile| before.stamp == file.stamp && before.faults == faults;
        let are_told = before.is_some_and(|before| before.are_told && is_same(before));
        let known = KnownFile {
            stamp: file.stamp,
            table,
            faults,
            are_told,
            note,
            retry: Retry::Never,
        };
        self.known.insert(file.name.clone(), known);
    }

    /// Says when the file, which has a fault, is tried again though it has not changed.
    pub(super) fn retry(&mut self, file: &DataFile, retry: Retry) {
        if let Some(known) = self.known.get_mut(&file.name) {
            known.retry = retry;
        }
    }

    /// True if the file was refused, and rows have changed since.
    pub(super) fn was_refused_before(&self, file: &DataFile) -> bool {
        let retry = self.known.get(&file.name).map(|known| known.retry);
        matches!(retry, Some(Retry::After(changes)) if changes != self.changes)
    }

    /// True if a file that has not changed may have become good.
    pub(super) fn is_worth_trying(&self, file: &DataFile) -> bool {
        let retry = self.known.get(&file.name).map(|known| known.retry);
        retry == Some(Retry::EachLook) || self.was_refused_before(file)
    }

    /// Keeps what is wrong, and says what is new about it.
    pub(super) fn finish(
        &mut self,
        scan: FolderScan,
        mut faults: Vec<Problem>,
        outcome: &mut LookOutcome,
    ) {
        let is_finished = |file: &KnownFile| file.retry != Retry::EachLook && file.note.is_none();
        self.is_unfinished = outcome.retry.is_some() || !self.known.values().all(is_finished);
        faults.extend(scan.problems.iter().cloned());
        let mut news = new(&faults, &self.problems);
        for file in self.known.values_mut() {
            if !std::mem::replace(&mut file.are_told, true) {
                news.extend_from_slice(&file.faults);
            }
            faults.extend_from_slice(&file.faults);
        }
        let notes: Vec<Problem> = self
            .known
            .values()
            .filter_map(|known| known.note.clone())
            .chain(scan.notes.iter().cloned())
            .collect();
        news.extend(new(&notes, &self.notes));
        let lines = brief(&news).into_iter().map(|problem| problem.to_string());
        outcome.lines.extend(lines);
        let faulty: HashSet<&PathBuf> = faults.iter().map(|problem| &problem.file).collect();
        let before = self.problems.iter().map(|problem| &problem.file);
        // What is gone is not mended.
        let is_mended =
            |file: &&PathBuf| !faulty.contains(file) && self.sources.dir.join(file).exists();
        let mended: HashSet<&PathBuf> = before.filter(is_mended).collect();
        match mended.len() {
            ..=MAX_LINES => {
                let line = |file: &PathBuf| format!("{}: is mended", file.display());
                outcome.lines.extend(mended.into_iter().map(line));
            }
            many => outcome
                .lines
                .push(format!("{FOLDER}/: {many} files are mended")),
        }
        self.problems = faults;
        self.notes = notes;
        self.last = scan;
    }
}

pub(super) fn by_name(applied: &[AppliedFile]) -> HashMap<&str, &AppliedFile> {
    applied.iter().map(|file| (&*file.file, file)).collect()
}

/// The problems that were not there before, for the log.
fn new(now: &[Problem], before: &[Problem]) -> Vec<Problem> {
    let before: HashSet<&Problem> = before.iter().collect();
    let new = now.iter().filter(|problem| !before.contains(problem));
    new.cloned().collect()
}
