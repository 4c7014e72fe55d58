//! Files of one table with the same columns, whose rows are put in together.

use std::collections::HashMap;

use crate::data_file::{
    FILE_COLUMN, FileChange, FileContent, FileDecision, FileState, KEY_COLUMN, RowCounts,
    RowSource, TableColumn, literal, quoted,
};

/// Files whose rows have the same columns of one table.
pub(crate) struct FileSet<'a> {
    pub(crate) table: &'a str,
    /// The columns that are filled.
    pub(crate) columns: &'a [TableColumn],
    /// Those that become what they are in a new row.
    pub(crate) reset: &'a [TableColumn],
    pub(crate) files: Vec<SetFile<'a>>,
}

/// One of the files.
pub(crate) struct SetFile<'a> {
    /// Its place among the changes that are applied together.
    pub(crate) place: usize,
    pub(crate) name: &'a str,
    pub(crate) source: &'a mut dyn RowSource,
}

/// The files of one table that have no rows any more, with their places.
pub(crate) struct EmptyFiles<'a> {
    pub(crate) table: &'a str,
    pub(crate) files: Vec<(usize, &'a str)>,
}

/// The statements that bring a table to what was gathered.
pub(crate) struct Statements {
    pub(crate) delete: String,
    /// None if no column of a row may change.
    pub(crate) update: Option<String>,
    pub(crate) insert: String,
}

/// What there is to do about the files that are applied together.
pub(crate) fn sort<'a>(
    changes: &'a mut [FileChange],
    decisions: &[FileDecision],
) -> (Vec<EmptyFiles<'a>>, Vec<FileSet<'a>>) {
    let (mut empty, mut sets) = (Vec::<EmptyFiles<'_>>::new(), Vec::<FileSet<'_>>::new());
    for (place, (change, decision)) in changes.iter_mut().zip(decisions).enumerate() {
        if !matches!(decision, FileDecision::Apply(_)) {
            continue;
        }
        let (table, name) = (&*change.table, &*change.file);
        match &mut change.state {
            // A file without rows may have no columns.
            FileState::Rows(content) if !content.columns.is_empty() => {
                let FileContent {
                    columns,
                    reset,
                    source,
                } = content;
                let (columns, reset): (&[TableColumn], &[TableColumn]) = (columns, reset);
                let source = &mut **source;
                let file = SetFile {
                    place,
                    name,
                    source,
                };
                match sets.iter_mut().find(|set| set.is_of(table, columns, reset)) {
                    Some(set) => set.files.push(file),
                    None => sets.push(FileSet {
                        table,
                        columns,
                        reset,
                        files: vec![file],
                    }),
                }
            }
            FileState::Rows(_) | FileState::Gone | FileState::Known => {
                match empty.iter_mut().find(|empty| empty.table == table) {
                    Some(empty) => empty.files.push((place, name)),
                    None => empty.push(EmptyFiles {
                        table,
                        files: vec![(place, name)],
                    }),
                }
            }
        }
    }
    (empty, sets)
}

impl<'a> EmptyFiles<'a> {
    pub(crate) fn names(&self) -> Vec<&'a str> {
        self.files.iter().map(|(_, name)| *name).collect()
    }

    /// The statement that removes their rows.
    pub(crate) fn delete(&self) -> String {
        let (table, file) = (quoted(self.table), quoted(FILE_COLUMN));
        let names = list(&self.names());
        format!("delete from {table} as t where t.{file} in ({names})")
    }
}

impl<'a> FileSet<'a> {
    /// The set of one file; none if it has no rows.
    pub(crate) fn of(change: &'a mut FileChange) -> Option<Self> {
        let FileState::Rows(content) = &mut change.state else {
            return None;
        };
        let FileContent {
            columns,
            reset,
            source,
        } = content;
        Some(Self {
            table: &change.table,
            columns,
            reset,
            files: vec![SetFile {
                place: 0,
                name: &change.file,
                source: &mut **source,
            }],
        })
    }

    fn is_of(&self, table: &str, columns: &[TableColumn], reset: &[TableColumn]) -> bool {
        self.table == table && self.columns == columns && self.reset == reset
    }

    pub(crate) fn names(&self) -> Vec<&'a str> {
        self.files.iter().map(|file| file.name).collect()
    }

    /// True if what is gathered has to name the file of each row.
    pub(crate) fn is_several(&self) -> bool {
        self.files.len() > 1
    }

    /// The names of the columns, as SQL has them.
    pub(crate) fn column_list(&self) -> String {
        let names = self.columns.iter().map(|column| quoted(&column.name));
        names.collect::<Vec<_>>().join(", ")
    }

    /// The place of [`KEY_COLUMN`] among the columns.
    pub(crate) fn content_key(&self) -> Option<usize> {
        let mut columns = self.columns.iter();
        columns.position(|column| column.name == KEY_COLUMN)
    }

    /// True for a row `t` of the table that is one of these files.
    pub(crate) fn is_owner(&self) -> String {
        let file = quoted(FILE_COLUMN);
        format!("t.{file} in ({})", list(&self.names()))
    }

    /// The statements that bring the table to what the staging table has. Rows belong together if
    /// they are of one file, and their keys are equal by the rules of the table; `exact` makes of
    /// a column what shows each difference, such as that of upper and lower case.
    pub(crate) fn statements(
        &self,
        stage: &str,
        exact: fn(&TableColumn, &str) -> String,
    ) -> Statements {
        let table = quoted(self.table);
        let own = quoted(FILE_COLUMN);
        let file = match &*self.files {
            [file] => literal(file.name),
            _ => format!("s.{own}"),
        };
        let pair = |column: &TableColumn| {
            let name = quoted(&column.name);
            (format!("t.{name}"), format!("s.{name}"))
        };
        let keys = self.columns.iter().filter(|column| column.is_key);
        let keys = keys.map(pair).map(|(old, new)| format!("{old} = {new}"));
        let same: Vec<String> = keys.chain([format!("t.{own} = {file}")]).collect();
        let same = same.join(" and ");
        let given = self.columns.iter().filter(|column| column.may_change());
        let given = given.map(|column| (column, pair(column).1));
        let reset = self.reset.iter().map(|column| {
            let value = column.default.as_deref().unwrap_or("null");
            (column, format!("({value})"))
        });
        let (mut set, mut differs) = (Vec::new(), Vec::new());
        for (column, value) in given.chain(reset) {
            set.push(format!("{} = {value}", quoted(&column.name)));
            let (old, new) = (exact(column, &pair(column).0), exact(column, &value));
            differs.push(format!("{old} is distinct from {new}"));
        }
        let names = self.column_list();
        let owner = self.is_owner();
        Statements {
            delete: format!(
                "delete from {table} as t where {owner} \
                 and not exists (select 1 from {stage} as s where {same})"
            ),
            update: (!set.is_empty()).then(|| {
                format!(
                    "update {table} as t set {} from {stage} as s where {same} and ({})",
                    set.join(", "),
                    differs.join(" or ")
                )
            }),
            insert: format!(
                "insert into {table} as t ({names}, {own}) select {names}, {file} from {stage} as s \
                 where not exists (select 1 from {table} as t where {same})"
            ),
        }
    }
}

impl Statements {
    /// Runs them by `run`, which gives the number of changed rows of each file.
    pub(crate) fn exchange<E>(
        &self,
        mut run: impl FnMut(&str) -> Result<Vec<u64>, E>,
    ) -> Result<Vec<RowCounts>, E> {
        let deleted = run(&self.delete)?;
        let updated = self.update.as_deref().map(&mut run).transpose()?;
        let inserted = run(&self.insert)?;
        let counts = |file: usize| RowCounts {
            inserted: inserted[file],
            updated: updated.as_ref().map_or(0, |updated| updated[file]),
            deleted: deleted[file],
        };
        Ok((0..deleted.len()).map(counts).collect())
    }
}

/// Texts as a list of SQL.
fn list(texts: &[&str]) -> String {
    let texts: Vec<String> = texts.iter().map(|text| literal(text)).collect();
    texts.join(", ")
}

/// The number of rows of each file.
pub(crate) struct RowsOfFiles<'a> {
    places: HashMap<&'a str, usize>,
    pub(crate) counts: Vec<u64>,
}

impl<'a> RowsOfFiles<'a> {
    pub(crate) fn new(names: &[&'a str]) -> Self {
        let places = names.iter().enumerate().map(|(place, name)| (*name, place));
        Self {
            places: places.collect(),
            counts: vec![0; names.len()],
        }
    }

    pub(crate) fn add(&mut self, name: &str, rows: u64) {
        if let Some(place) = self.places.get(name) {
            self.counts[*place] += rows;
        }
    }
}
