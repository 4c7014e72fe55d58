//! Files of one table with the same columns, whose rows are put in together.

use std::collections::HashMap;

use crate::data_file::{
    AppliedFile, FILE_COLUMN, FileChange, FileContent, FileDecision, FileState, GoneFile,
    KEY_COLUMN, RowCounts, RowSource, TableColumn, literal, quoted,
};

/// Files whose rows have the same columns of one table.
pub(crate) struct FileSet<'a> {
    pub(crate) table: &'a str,
    /// The columns that are filled.
    pub(crate) columns: &'a [TableColumn],
    /// Columns that become what they are in a new row.
    reset: Vec<&'a TableColumn>,
    /// Files that are gone, whose rows these take over by their keys.
    leaving: Vec<LeavingFiles<'a>>,
    pub(crate) files: Vec<SetFile<'a>>,
}

/// Files that are gone and have filled the same of the columns which a set does not fill.
struct LeavingFiles<'a> {
    names: Vec<&'a str>,
    reset: Vec<&'a TableColumn>,
}

/// Records of files, by their names.
pub(crate) type Records = HashMap<String, AppliedFile>;

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

/// Function that chooses one of the numbers of rows.
type CountOf = fn(&mut RowCounts) -> &mut u64;

/// The statements that bring a table to what was gathered, in their order, each with what it
/// counts.
pub(crate) struct Statements {
    files: usize,
    steps: Vec<(CountOf, String)>,
}

/// Sorts the files that are applied together by what is to be done about each.
pub(crate) fn sort<'a>(
    changes: &'a mut [FileChange],
    decisions: &[FileDecision],
    gone: &'a [GoneFile],
    records: &Records,
    alone: bool,
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
                    others,
                    source,
                } = content;
                let (columns, others): (&[TableColumn], &[TableColumn]) = (columns, others);
                let record = records.get(name);
                let reset = record.map_or_else(Vec::new, |record| record.filled_of(others));
                let source = &mut **source;
                let file = SetFile {
                    place,
                    name,
                    source,
                };
                match sets
                    .iter_mut()
                    .find(|set| set.is_of(table, columns, &reset))
                {
                    Some(set) => set.files.push(file),
                    None => sets.push(FileSet {
                        table,
                        columns,
                        reset,
                        leaving: match takes_rows(columns) {
                            true => leaving(table, others, gone, records, alone),
                            false => Vec::new(),
                        },
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

/// True if a row is told from others by what its file says: not by a hash of its values.
fn takes_rows(columns: &[TableColumn]) -> bool {
    let mut keys = columns.iter().filter(|column| column.is_key).peekable();
    keys.peek().is_some() && keys.all(|key| key.name != KEY_COLUMN)
}

/// The files of a table that are gone, by what they have filled of some columns.
fn leaving<'a>(
    table: &str,
    others: &'a [TableColumn],
    gone: &'a [GoneFile],
    records: &Records,
    alone: bool,
) -> Vec<LeavingFiles<'a>> {
    let mut found = Vec::<LeavingFiles<'_>>::new();
    for file in gone.iter().filter(|file| file.table == table) {
        let Some(record) = records.get(&file.file) else {
            continue;
        };
        if !file.is_gone(Some(record), alone) {
            continue;
        }
        let reset = record.filled_of(others);
        match found.iter_mut().find(|known| known.reset == reset) {
            Some(known) => known.names.push(&file.file),
            None => found.push(LeavingFiles {
                names: vec![&file.file],
                reset,
            }),
        }
    }
    found
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
    fn is_of(&self, table: &str, columns: &[TableColumn], reset: &[&TableColumn]) -> bool {
        self.table == table && self.columns == columns && self.reset == reset
    }

    pub(crate) fn names(&self) -> Vec<&'a str> {
        self.files.iter().map(|file| file.name).collect()
    }

    /// The files that are gone, whose rows these may take over.
    pub(crate) fn leaving(&self) -> Vec<&'a str> {
        let files = self.leaving.iter();
        files
            .flat_map(|files| files.names.iter().copied())
            .collect()
    }

    /// The query for those of them that have a row with a key of the staging table.
    pub(crate) fn owners(&self, stage: &str) -> String {
        let own = quoted(FILE_COLUMN);
        format!(
            "select distinct t.{own} from {} as t join {stage} as s on {} where t.{own} in ({})",
            quoted(self.table),
            self.same_keys().join(" and "),
            list(&self.leaving())
        )
    }

    /// Leaves those alone that have none.
    pub(crate) fn retain_owners(&mut self, owners: &[String]) {
        for leaving in &mut self.leaving {
            leaving
                .names
                .retain(|name| owners.iter().any(|owner| owner == name));
        }
        self.leaving.retain(|leaving| !leaving.names.is_empty());
    }

    /// The conditions for a row `t` of the table and one `s` that was gathered to have one key.
    fn same_keys(&self) -> Vec<String> {
        let keys = self.columns.iter().filter(|column| column.is_key);
        let names = keys.map(|column| quoted(&column.name));
        names.map(|name| format!("t.{name} = s.{name}")).collect()
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
        exact: impl Fn(&TableColumn, &str) -> String,
    ) -> Statements {
        let table = quoted(self.table);
        let own = quoted(FILE_COLUMN);
        let file = match &*self.files {
            [file] => literal(file.name),
            _ => format!("s.{own}"),
        };
        let keys = self.same_keys();
        let of = |owner: String| [&keys[..], &[owner]].concat().join(" and ");
        let same = of(format!("t.{own} = {file}"));
        let update = |reset: &[&TableColumn]| {
            let given = self.columns.iter().filter(|column| column.may_change());
            let given = given.map(|column| (column, format!("s.{}", quoted(&column.name))));
            let reset = reset.iter().map(|column| (*column, new_value(column)));
            let (mut set, mut differs) = (Vec::new(), Vec::new());
            for (column, value) in given.chain(reset) {
                let name = quoted(&column.name);
                set.push(format!("{name} = {value}"));
                let (old, new) = (exact(column, &format!("t.{name}")), exact(column, &value));
                differs.push(format!("{old} is distinct from {new}"));
            }
            (!set.is_empty()).then(|| {
                format!(
                    "update {table} as t set {} from {stage} as s where {same} and ({})",
                    set.join(", "),
                    differs.join(" or ")
                )
            })
        };
        let names = self.column_list();
        let owner = self.is_owner();
        let take = |names: &[&str], reset: &[&TableColumn]| {
            let reset = reset.iter();
            let reset = reset.map(|it| format!("{} = {}", quoted(&it.name), new_value(it)));
            let set: Vec<String> = [format!("{own} = {file}")]
                .into_iter()
                .chain(reset)
                .collect();
            format!(
                "update {table} as t set {} from {stage} as s where {} and t.{own} <> {file}",
                set.join(", "),
                of(format!("t.{own} in ({})", list(names)))
            )
        };
        let taken: CountOf = |counts| &mut counts.taken;
        let updated: CountOf = |counts| &mut counts.updated;
        let mut steps = Vec::new();
        if self.is_several() && takes_rows(self.columns) {
            // They may have exchanged their names.
            steps.push((taken, take(&self.names(), &self.reset)));
        }
        let delete = format!(
            "delete from {table} as t where {owner} \
             and not exists (select 1 from {stage} as s where {same})"
        );
        steps.push((|counts| &mut counts.deleted, delete));
        steps.extend(update(&self.reset).map(|update| (updated, update)));
        // What the files have filled before says nothing of the rows that come now.
        for leaving in &self.leaving {
            steps.push((taken, take(&leaving.names, &leaving.reset)));
        }
        let of_taken = update(&[]).filter(|_| !self.leaving.is_empty());
        steps.extend(of_taken.map(|update| (updated, update)));
        let insert = format!(
            "insert into {table} as t ({names}, {own}) select {names}, {file} from {stage} as s \
             where not exists (select 1 from {table} as t where {same})"
        );
        steps.push((|counts| &mut counts.inserted, insert));
        Statements {
            files: self.files.len(),
            steps,
        }
    }
}

impl Statements {
    /// Runs them by `run`, which gives the number of changed rows of each file.
    pub(crate) fn run<E>(
        &self,
        mut run: impl FnMut(&str) -> Result<Vec<u64>, E>,
    ) -> Result<Vec<RowCounts>, E> {
        let mut counts = vec![RowCounts::default(); self.files];
        for (count, sql) in &self.steps {
            for (counts, rows) in counts.iter_mut().zip(run(sql)?) {
                *count(counts) += rows;
            }
        }
        Ok(counts)
    }
}

/// Returns the value of a column in a new row, as SQL.
fn new_value(column: &TableColumn) -> String {
    let value = column.default.as_deref().unwrap_or("null");
    format!("({value})")
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
