//! Applies the files that have changed.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap, HashSet},
    path::PathBuf,
    rc::Rc,
    sync::Arc,
};

use millpond_db::{AppliedFile, Error, FileChange, FileOutcome, GoneFile, RefusedRow, RowCounts};

use super::{
    batch::{Applier, ReadyFile, apply_all},
    columns::{TargetTable, applied_hash},
    messages::{is_passing, refused, rows, unapplied, unknown_columns},
    scan::{DataFile, FolderScan},
    survey::{Survey, is_as_found, survey},
    sync::{FolderSync, LookOutcome, QUIET, Retry, SLOWLY, SOON},
    twins::Twins,
};
use crate::statics::Stamp;
use millpond_site_format::Problem;

/// Files of one table that were applied together have a line each in the log, up to this number.
pub(super) const MAX_LINES: usize = 3;

/// Findings of a look.
pub(super) struct Look<'a> {
    pub(super) scan: &'a FolderScan,
    /// Files that were applied before, by name.
    pub(super) applied: HashMap<&'a str, &'a AppliedFile>,
    /// Files that are gone, whose rows others may take over.
    pub(super) gone: &'a Arc<[GoneFile]>,
    /// Files that are whole.
    pub(super) closed: &'a HashSet<PathBuf>,
    pub(super) is_first: bool,
    /// The files that may have changed, if only these were looked at.
    pub(super) saved: Option<BTreeSet<String>>,
}

impl Look<'_> {
    /// True if the file had rows in the table.
    pub(super) fn has_rows(&self, file: &DataFile) -> bool {
        let known = self.applied.get(&*file.name);
        known.is_some_and(|known| !known.hash.is_empty())
    }
}

/// The files of one look that may have changed.
struct ChangedFiles<'a, 'l> {
    sync: &'l mut FolderSync,
    look: &'l Look<'a>,
    /// Tables with rows of a file that may be gone: it may have been renamed.
    owing: HashSet<&'a str>,
    /// The tables that were asked for; none for one that is not there.
    tables: BTreeMap<String, Option<Rc<TargetTable>>>,
    twins: Twins<'a>,
    /// True if a file was refused that was not before.
    has_refused: bool,
    outcome: &'l mut LookOutcome,
}

impl FolderSync {
    /// Applies the files that have changed. A row may refer to one of another file, so what was
    /// refused is tried again after others.
    pub(super) fn apply_changed(&mut self, look: &Look<'_>, outcome: &mut LookOutcome) {
        let scan = look.scan;
        let missing = self.missing.keys();
        let owing = missing.filter_map(|name| look.applied.get(&**name));
        let owing = owing.map(|file| &*file.table);
        let mut files = ChangedFiles {
            owing: owing.collect(),
            sync: self,
            look,
            tables: BTreeMap::new(),
            twins: Twins::new(&scan.files),
            has_refused: false,
            outcome,
        };
        let mut waiting: Vec<&DataFile> = match &look.saved {
            Some(saved) => saved
                .iter()
                .filter_map(|name| scan.files.get(name))
                .collect(),
            None => scan.files.values().collect(),
        };
        loop {
            let before = files.sync.changes;
            apply_all(waiting, &mut files);
            if std::mem::take(&mut files.has_refused) {
                // Files that have exchanged their names are only good together.
                files.sync.changes += 1;
            }
            if files.sync.changes == before {
                return;
            }
            let was_refused = |file: &&DataFile| files.sync.was_refused_before(file);
            waiting = scan.files.values().filter(was_refused).collect();
        }
    }

    pub(super) fn table(&self, name: &str) -> Result<Option<TargetTable>, Error> {
        let columns = self.database.table_columns(name)?;
        Ok((!columns.is_empty()).then(|| TargetTable {
            name: name.to_owned(),
            columns,
            zone: self.zone,
            names: self.sources.row_settings(name),
        }))
    }
}

impl<'a> Applier<'a> for ChangedFiles<'a, '_> {
    fn prepare(&mut self, file: &'a DataFile) -> Option<ReadyFile<'a>> {
        if self.sync.inbox.is_stopped() || !self.is_ready(file) {
            return None;
        }
        let table = self.table_to_fill(file)?;
        self.read(file, &table)
    }

    fn apply(&mut self, batch: Vec<ReadyFile<'a>>) -> bool {
        if self.sync.inbox.is_stopped() {
            return false;
        }
        let count = batch.len();
        let batch = batch.into_iter().filter(|ready| is_as_found(ready.file));
        let batch: Vec<_> = batch.collect();
        if batch.len() < count {
            self.outcome.retry_after(SOON);
        }
        if batch.is_empty() {
            return false;
        }
        let is_single = batch.len() == 1;
        let (files, changes): (Vec<_>, Vec<_>) = batch.into_iter().map(AppliedNow::of).unzip();
        let gone = Arc::clone(self.look.gone);
        match self.sync.database.apply_files(changes, gone) {
            Ok(outcomes) => self.note_applied(files, &outcomes),
            Err(error) if !is_single && !is_passing(&error) => return true,
            Err(error) => {
                for file in files {
                    self.note_refused(file, &error);
                }
            }
        }
        false
    }
}

/// Record of a file that was applied now.
struct AppliedNow<'a> {
    file: &'a DataFile,
    signature: String,
    note: Option<Problem>,
    is_known: bool,
    refused: RefusedRow,
}

impl<'a> AppliedNow<'a> {
    fn of(ready: ReadyFile<'a>) -> (Self, FileChange) {
        let is_known = ready.is_known();
        let file = Self {
            file: ready.file,
            signature: ready.signature,
            note: ready.note,
            is_known,
            refused: ready.refused,
        };
        (file, ready.change)
    }
}

impl<'a> ChangedFiles<'a, '_> {
    /// True if the file is whole, and its rows cannot be those of a file that may be gone.
    fn is_ready(&mut self, file: &DataFile) -> bool {
        if self.sync.differs(file) && !self.sync.is_whole(file, self.look.closed) {
            // Its end is news; but for a file that was written before it was watched.
            let is_recent = file.age().is_some_and(|age| age < 2 * QUIET);
            match self.sync.inbox.is_open(&file.name) {
                true => {}
                false if is_recent => self.outcome.retry_after(SOON),
                false => self.outcome.retry_after(SLOWLY),
            }
            return false;
        }
        !self.owing.contains(&*file.table)
    }

    /// The table of a file that is to be read.
    fn table_to_fill(&mut self, file: &DataFile) -> Option<Rc<TargetTable>> {
        if !self.tables.contains_key(&file.table) {
            match self.sync.table(&file.table) {
                Ok(table) => drop(self.tables.insert(file.table.clone(), table.map(Rc::new))),
                Err(error) => {
                    self.outcome.retry_passing(&error);
                    let fault = unapplied(&file.shown, &error);
                    self.sync.remember(file, String::new(), Some(fault), None);
                    self.sync.retry(file, Retry::EachLook);
                    return None;
                }
            }
        }
        let table = self.tables.get(&file.table).cloned().flatten();
        let signature = table.as_ref().map(|table| table.signature());
        let signature = signature.unwrap_or_default();
        let known = self.sync.known.get(&file.name);
        let is_known =
            known.is_some_and(|known| known.stamp == file.stamp && known.table == signature);
        if is_known && !self.sync.is_worth_trying(file) {
            return None;
        }
        let Some(table) = table else {
            let message = format!("there is no table {} yet", file.table);
            let note = Problem::new(&file.shown, message).hint(
                "`millpond check --fix` writes a migration for it; it is applied at the next start",
            );
            self.sync.remember(file, signature, None, Some(note));
            return None;
        };
        if let Some((message, hint)) = table.fault() {
            let fault = Problem::new(&file.shown, message).hint(hint);
            self.sync.remember(file, signature, Some(fault), None);
            return None;
        }
        Some(table)
    }

    fn read(&mut self, file: &'a DataFile, table: &TargetTable) -> Option<ReadyFile<'a>> {
        let signature = table.signature();
        if let Some(applied) = self.look.applied.get(&*file.name).copied()
            && !self.sync.known.contains_key(&file.name)
            && let Some(hash) = content_hash(file)
            && applied.hash == applied_hash(hash, &signature)
        {
            // What was applied before this process began: at most it is younger now.
            let is_younger = applied.version < file.stamp.version();
            if is_younger && self.sync.database.is_postgres() {
                return Some(ReadyFile::known(file, signature, applied.hash.clone()));
            }
            self.sync.remember(file, signature, None, None);
            return None;
        }
        let inbox = Arc::clone(&self.sync.inbox);
        let surveyed = match survey(file, table, &inbox.stopped()) {
            Survey::Good(surveyed) => *surveyed,
            Survey::Bad(faults) => {
                self.sync.remember(file, signature, faults, None);
                return None;
            }
            Survey::Unreadable(fault) => {
                self.outcome.retry_after(SLOWLY);
                self.sync.remember(file, signature, Some(fault), None);
                self.sync.retry(file, Retry::EachLook);
                return None;
            }
            Survey::Changed => {
                self.outcome.retry_after(SOON);
                return None;
            }
        };
        if inbox.is_open(&file.name) {
            return None;
        }
        let note = unknown_columns(file, table, &surveyed.filled.unknown);
        let others = table.others(&surveyed.filled.columns);
        let hash = applied_hash(surveyed.hash, &signature);
        let is_news = !self.look.is_first;
        let mut ready = ReadyFile::surveyed(file, surveyed, hash, others, is_news);
        (ready.signature, ready.note) = (signature, note);
        let applied = self.look.applied.get(&*file.name);
        ready.change.seen = applied.map(|applied| applied.version);
        Some(ready)
    }

    /// Says what has changed, and remembers the files.
    fn note_applied(&mut self, files: Vec<AppliedNow<'a>>, outcomes: &[FileOutcome]) {
        let mut changed: BTreeMap<&str, Vec<(&DataFile, RowCounts)>> = BTreeMap::new();
        for (done, outcome) in files.into_iter().zip(outcomes) {
            let file = done.file;
            match outcome {
                FileOutcome::Applied(counts) => {
                    self.sync.changes += 1;
                    self.outcome.has_changed = true;
                    changed.entry(&file.table).or_default().push((file, *counts));
                }
                FileOutcome::Older if !done.is_known => self.outcome.lines.push(format!(
                    "{}: another node has applied a newer file, whose rows stay; to apply this one, `touch` it",
                    file.shown.display()
                )),
                FileOutcome::Raced => {
                    self.outcome.retry_after(SOON);
                    continue;
                }
                FileOutcome::Older | FileOutcome::Same => {}
            }
            self.sync.remember(file, done.signature, None, done.note);
        }
        for (table, files) in changed {
            let lines = &mut self.outcome.lines;
            if files.len() > MAX_LINES {
                let folder = self.sync.sources.shown(table);
                let counts = files.iter().map(|(_, counts)| *counts);
                let counts = rows(counts.fold(RowCounts::default(), sum));
                let count = files.len();
                let folder = folder.display();
                lines.push(format!("{folder}/: {count} files, table {table}, {counts}"));
                continue;
            }
            for (file, counts) in files {
                let counts = rows(counts);
                lines.push(format!("{}: table {table}, {counts}", file.shown.display()));
            }
        }
    }

    /// Remembers a file whose rows were not taken, and when it is tried again.
    fn note_refused(&mut self, done: AppliedNow<'a>, error: &Error) {
        let file = done.file;
        let is_passing = self.outcome.retry_passing(error);
        self.has_refused |= self.sync.differs(file) || self.sync.is_applied(file);
        let twin = self.twins.same_key(file, error);
        let fault = twin.unwrap_or_else(|| refused(file, error, &done.refused));
        self.sync
            .remember(file, done.signature, Some(fault), done.note);
        let retry = match is_passing {
            true => Retry::EachLook,
            false => Retry::After(self.sync.changes),
        };
        self.sync.retry(file, retry);
    }
}

fn sum(a: RowCounts, b: RowCounts) -> RowCounts {
    RowCounts {
        inserted: a.inserted + b.inserted,
        updated: a.updated + b.updated,
        deleted: a.deleted + b.deleted,
        taken: a.taken + b.taken,
    }
}

/// The hash of the content, if the file is the one that was found.
fn content_hash(file: &DataFile) -> Option<u128> {
    let opened = file.open().ok()?;
    let hash = millpond_data::hash(&opened).ok()?;
    let stamp = Stamp::of(&opened.metadata().ok()?);
    (stamp == file.stamp).then_some(hash)
}
