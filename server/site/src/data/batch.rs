//! Files that are applied together: a transaction for each of many small files takes long.
//!
//! A batch is one transaction, and is refused as a whole. Then its halves are tried, behind all
//! other files, as a row of one file may refer to a row of another, until the file is alone whose
//! rows are refused. So each file is applied whole or not at all.

use std::collections::VecDeque;

use millpond_db::{FileChange, FileContent, FileState, RefusedRow, TableColumn};

use super::{scan::DataFile, survey::SurveyedFile};
use millpond_site_format::Problem;

/// The files of one batch, at most.
pub(super) const MAX_FILES: usize = 256;
/// The bytes of the values of one batch, at most; a file with more is a batch of its own, and its
/// rows wait on the disk.
pub(super) const MAX_BYTES: usize = 1 << 20;
/// The rows of one batch, at most, as for the bytes. A larger change of one table may count as a
/// change of all its rows, so files do not share more.
pub(super) const MAX_ROWS: usize = 512;

/// A file that is to be applied.
pub(super) struct ReadyFile<'a> {
    pub(super) file: &'a DataFile,
    /// The signature of its table.
    pub(super) signature: String,
    /// Action that is to be taken for the file.
    pub(super) note: Option<Problem>,
    /// The row that the database has refused.
    pub(super) refused: RefusedRow,
    pub(super) change: FileChange,
    size: BatchSize,
}

#[derive(Clone, Copy, Default)]
struct BatchSize {
    bytes: usize,
    rows: usize,
}

impl<'a> ReadyFile<'a> {
    /// A file whose rows the table has, by their hash.
    pub(super) fn known(file: &'a DataFile, signature: String, hash: String) -> Self {
        Self {
            file,
            signature,
            note: None,
            refused: RefusedRow::default(),
            change: change(file, hash, false, FileState::Known),
            size: BatchSize::default(),
        }
    }

    /// A file that was read. `others`: the columns of its table that it does not fill. `is_news`:
    /// it was seen to change.
    pub(super) fn surveyed(
        file: &'a DataFile,
        surveyed: SurveyedFile,
        hash: String,
        others: Vec<TableColumn>,
        is_news: bool,
    ) -> Self {
        let refused = surveyed.rows.refused();
        let (rows, bytes) = surveyed.rows.size();
        let state = FileState::Rows(FileContent {
            columns: surveyed.filled.columns,
            others,
            source: Box::new(surveyed.rows),
        });
        Self {
            file,
            signature: String::new(),
            note: None,
            refused,
            change: change(file, hash, is_news, state),
            size: BatchSize { bytes, rows },
        }
    }

    /// True if the table has its rows already.
    pub(super) fn is_known(&self) -> bool {
        matches!(self.change.state, FileState::Known)
    }
}

fn change(file: &DataFile, hash: String, is_news: bool, state: FileState) -> FileChange {
    FileChange {
        file: file.name.clone(),
        table: file.table.clone(),
        hash,
        version: file.stamp.version(),
        is_news,
        seen: None,
        state,
    }
}

/// Says which files are to be applied, and applies them.
pub(super) trait Applier<'a> {
    /// None for a file that is not applied now.
    fn prepare(&mut self, file: &'a DataFile) -> Option<ReadyFile<'a>>;

    /// Applies files in one transaction. True if they were refused, though some of them may be
    /// good: they are more than one.
    fn apply(&mut self, batch: Vec<ReadyFile<'a>>) -> bool;
}

/// Applies files, many small ones together.
pub(super) fn apply_all<'a>(files: Vec<&'a DataFile>, applier: &mut impl Applier<'a>) {
    let mut lists = VecDeque::from([files]);
    while let Some(files) = lists.pop_front() {
        let (mut batch, mut size) = (Vec::new(), BatchSize::default());
        for file in files {
            let Some(ready) = applier.prepare(file) else {
                continue;
            };
            let bytes = size.bytes + ready.size.bytes;
            let rows = size.rows + ready.size.rows;
            let has_room = batch.len() < MAX_FILES && bytes <= MAX_BYTES && rows <= MAX_ROWS;
            if !has_room {
                apply(std::mem::take(&mut batch), &mut lists, applier);
                size = BatchSize::default();
            }
            size.bytes += ready.size.bytes;
            size.rows += ready.size.rows;
            batch.push(ready);
        }
        apply(batch, &mut lists, applier);
    }
}

fn apply<'a>(
    batch: Vec<ReadyFile<'a>>,
    lists: &mut VecDeque<Vec<&'a DataFile>>,
    applier: &mut impl Applier<'a>,
) {
    if batch.is_empty() {
        return;
    }
    let files: Vec<&DataFile> = batch.iter().map(|ready| ready.file).collect();
    if applier.apply(batch) {
        lists.extend(halves(files));
    }
}

/// Both halves of a list.
pub(super) fn halves<T>(mut list: Vec<T>) -> [Vec<T>; 2] {
    let second = list.split_off(list.len() / 2);
    [list, second]
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::data::{DataSources, columns::FilledColumns, scan::scan, survey::stored};

    /// Refuses some files, and writes down how many files each batch has.
    struct RecordedBatches {
        bad: Vec<&'static str>,
        batches: Vec<usize>,
        applied: usize,
        refused: Vec<String>,
    }

    impl<'a> Applier<'a> for RecordedBatches {
        fn prepare(&mut self, file: &'a DataFile) -> Option<ReadyFile<'a>> {
            let surveyed = SurveyedFile {
                hash: 0,
                filled: FilledColumns::default(),
                rows: stored(&Arc::default()),
            };
            Some(ReadyFile::surveyed(
                file,
                surveyed,
                String::new(),
                Vec::new(),
                true,
            ))
        }

        fn apply(&mut self, batch: Vec<ReadyFile<'a>>) -> bool {
            self.batches.push(batch.len());
            let is_bad = |ready: &ReadyFile<'_>| self.bad.contains(&&*ready.file.name);
            match batch.iter().any(is_bad) {
                true if batch.len() > 1 => return true,
                true => self.refused.push(batch[0].file.name.clone()),
                false => self.applied += batch.len(),
            }
            false
        }
    }

    fn trial(files: usize, bad: &[&'static str]) -> RecordedBatches {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(dir.path().join("data/t")).unwrap();
        for number in 0..files {
            std::fs::write(dir.path().join(format!("data/t/{number:04}.md")), "").unwrap();
        }
        let sources = DataSources {
            dir: dir.path().to_owned(),
            folders: Vec::new(),
        };
        let scan = scan(&sources);
        let mut trial = RecordedBatches {
            bad: bad.to_vec(),
            batches: Vec::new(),
            applied: 0,
            refused: Vec::new(),
        };
        apply_all(scan.files.values().collect(), &mut trial);
        trial
    }

    #[test]
    fn thousands_of_files_are_a_few_transactions() {
        let all_good = trial(2_000, &[]);
        assert_eq!(all_good.applied, 2_000);
        assert_eq!(all_good.batches, [256, 256, 256, 256, 256, 256, 256, 208]);
    }

    #[test]
    fn a_file_that_is_refused_costs_its_halves_and_keeps_no_other_out() {
        let found = trial(2_000, &["t/0000.md", "t/1999.md"]);
        assert_eq!(found.applied, 1_998);
        assert_eq!(found.refused, ["t/0000.md", "t/1999.md"]);
        assert!(found.batches.len() <= 8 + 2 * 2 * 8, "{:?}", found.batches);
    }
}
