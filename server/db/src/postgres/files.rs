//! Whether tables are in the files in which the snapshot of a read knows them.
//!
//! TRUNCATE, and every statement that writes a table anew, obeys no snapshot. Counterexample: *a
//! read has its snapshot, waits for the lock that an `alter table … type` holds, and finds the
//! table empty beside others as they were* (PostgreSQL's manual, "Caveats" of concurrency control).
//! All of these give the table another file. So behind the statements of a read, whose locks keep
//! the files as they are, the server is asked which they are ([`super::seen`]), and a read that may
//! have found another is done again.
//!
//! A connection remembers the files that a snapshot and the catalog of that very moment agreed on.
//! If they are the same after a read that began later, no file was another in between: numbers of
//! files do not come again. That is a short question. Each connection has its own memory.
//! Counterexample: *what was seen on the primary is what a standby that is behind comes to only
//! while it is read.*
//!
//! Where the tables that a statement reads are unknown, or where there are many, the locks of the
//! transaction say it.

use std::collections::HashMap;
use std::sync::Arc;

use foldhash::fast::RandomState;
use tokio_postgres::types::Type;

use super::analysis::Analysis;
use crate::Value;

/// Up to this number, tables are named one by one, which costs the server least.
const FEW: usize = 16;
/// Tables whose files a connection remembers.
const MAX_KNOWN: usize = 65_536;

/// Question about the files of the tables of a read: an expression that gives text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// There are no tables.
    Nothing,
    /// Asks if the files of this number of tables are unchanged.
    Same(usize),
    /// Asks which files the snapshot knows, and which there are.
    Which,
    /// Asks if the files are unchanged for all that the transaction has locked. It looks at the
    /// locks of all sessions.
    Locked,
}

impl Form {
    /// All of them, each in the place of its number.
    pub(super) fn all() -> impl Iterator<Item = Self> {
        let same = (1..=FEW).map(Self::Same);
        let others = [Self::Which, Self::Locked];
        [Self::Nothing].into_iter().chain(same).chain(others)
    }

    /// Its place among all.
    pub(super) const fn number(self) -> usize {
        match self {
            Self::Nothing => 0,
            Self::Same(tables) => tables,
            Self::Which => FEW + 1,
            Self::Locked => FEW + 2,
        }
    }

    /// Returns the expression of the question.
    pub(super) fn expression(self) -> String {
        match self {
            Self::Nothing => "'true'".to_owned(),
            Self::Same(tables) => {
                let same = |table| {
                    let (relation, file) = (2 * table + 1, 2 * table + 2);
                    format!("pg_catalog.pg_relation_filenode(${relation}) = ${file}")
                };
                let all: Vec<String> = (0..tables).map(same).collect();
                format!("({})::text", all.join(" and "))
            }
            // What has no file of its own (a view, a partitioned table) has none to change.
            Self::Which => "(select pg_catalog.string_agg(c.oid || ' ' || c.relfilenode || ' ' \
                 || coalesce(pg_catalog.pg_relation_filenode(c.oid)::text, '-'), ',') \
                 from pg_catalog.pg_class c where c.oid = any ($1::oid[]))"
                .to_owned(),
            // A locked table that the snapshot does not show was created after the snapshot.
            Self::Locked => "(select pg_catalog.bool_and(c.oid is not null and (c.relkind not in ('r', 'm') \
                 or c.relfilenode is not distinct from pg_catalog.pg_relation_filenode(c.oid)))::text \
                 from pg_catalog.pg_locks l left join pg_catalog.pg_class c on c.oid = l.relation \
                 where l.pid = pg_catalog.pg_backend_pid() and l.locktype = 'relation' and l.relation >= 16384)"
                .to_owned(),
        }
    }

    /// The types of its parameters.
    pub(super) fn params(self) -> Vec<Type> {
        match self {
            Self::Nothing | Self::Locked => Vec::new(),
            Self::Same(tables) => vec![Type::OID; 2 * tables],
            Self::Which => vec![Type::TEXT],
        }
    }
}

/// Answer to a question.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FileComparison {
    /// All tables were found as the snapshot knows them.
    Same,
    /// Some of the files that the statements were found to read are not there any more: others
    /// stand in their place.
    Gone,
    /// One was emptied or written anew, or may have been: what was remembered is not so any more.
    Unsure,
    /// One was emptied or written anew since the snapshot.
    Changed,
}

/// The files of tables, as a connection has seen them.
#[derive(Default)]
pub(super) struct KnownFiles(HashMap<u32, u32, RandomState>);

/// Question behind the statements of a read.
pub(super) struct FileQuery {
    tables: Vec<u32>,
    pub(super) form: Form,
    pub(super) params: Vec<Value>,
}

impl FileQuery {
    fn of(form: Form) -> Self {
        Self {
            tables: Vec::new(),
            form,
            params: Vec::new(),
        }
    }
}

impl KnownFiles {
    /// Returns the question to ask behind these statements. To be called before their snapshot is
    /// taken.
    pub(super) fn question<'a>(
        &self,
        mut statements: impl Iterator<Item = &'a Analysis>,
    ) -> FileQuery {
        let mut tables: Vec<u32> = Vec::new();
        let all = statements.try_for_each(|analysis| {
            tables.extend(analysis.files.as_ref()?);
            Some(())
        });
        tables.sort_unstable();
        tables.dedup();
        if all.is_none() || tables.len() > FEW {
            return FileQuery::of(Form::Locked);
        }
        if tables.is_empty() {
            return FileQuery::of(Form::Nothing);
        }
        let known: Option<Vec<u32>> = tables.iter().map(|oid| self.0.get(oid).copied()).collect();
        let (form, params) = match known {
            None => (Form::Which, vec![array(&tables)]),
            Some(files) => {
                let pairs = tables.iter().zip(files);
                let numbers = pairs.flat_map(|(table, file)| [*table, file]);
                let params = numbers.map(|number| Value::Integer(number.into()));
                (Form::Same(tables.len()), params.collect())
            }
        };
        FileQuery {
            tables,
            form,
            params,
        }
    }

    /// Reads the answer to the question. Unless all files are unchanged, the next question is a
    /// longer one.
    pub(super) fn answer(&mut self, question: &FileQuery, reply: &Value) -> FileComparison {
        let text = match reply {
            Value::Text(text) => text,
            _ => "",
        };
        match question.form {
            Form::Nothing => FileComparison::Same,
            Form::Which => self.learn(text, question.tables.len()),
            // Nothing was locked: the statements read from no table.
            Form::Locked if text == "true" || *reply == Value::Null => FileComparison::Same,
            Form::Same(_) if text == "true" => FileComparison::Same,
            Form::Locked => FileComparison::Changed,
            Form::Same(_) => {
                for table in &question.tables {
                    self.0.remove(table);
                }
                FileComparison::Unsure
            }
        }
    }

    /// Remembers the files on which the snapshot and the catalog agree, and says whether these are
    /// all.
    fn learn(&mut self, files: &str, count: usize) -> FileComparison {
        if self.0.len() + count > MAX_KNOWN {
            self.0.clear();
        }
        let mut found = 0;
        for file in files.split(',').filter(|file| !file.is_empty()) {
            let mut numbers = file.split(' ').map(|number| number.parse::<u32>().ok());
            let mut next = || numbers.next().flatten();
            let (Some(relation), Some(known)) = (next(), next()) else {
                return FileComparison::Changed;
            };
            if next() != Some(known) {
                return FileComparison::Changed;
            }
            self.0.insert(relation, known);
            found += 1;
        }
        if found == count {
            FileComparison::Same
        } else {
            FileComparison::Gone
        }
    }
}

fn array(numbers: &[u32]) -> Value {
    let numbers: Vec<String> = numbers.iter().map(u32::to_string).collect();
    Value::Text(Arc::from(format!("{{{}}}", numbers.join(","))))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(text: &str) -> Value {
        Value::Text(text.into())
    }

    fn ask(known: &KnownFiles, tables: &[u32]) -> FileQuery {
        let analysis = Analysis::of_files(Some(tables.to_vec()));
        known.question([analysis].iter())
    }

    #[test]
    fn each_form_has_its_place() {
        let numbers: Vec<usize> = Form::all().map(Form::number).collect();
        assert_eq!(numbers, (0..FEW + 3).collect::<Vec<_>>());
    }

    #[test]
    fn what_is_known_is_asked_for_in_short_until_it_has_changed() {
        let mut known = KnownFiles::default();
        let nothing = ask(&known, &[]);
        assert_eq!(nothing.form, Form::Nothing);
        assert_eq!(known.answer(&nothing, &text("true")), FileComparison::Same);
        let long = ask(&known, &[2, 1, 2]);
        assert_eq!((&long.tables[..], long.form), (&[1, 2][..], Form::Which));
        assert_eq!(
            known.answer(&long, &text("1 11 11,2 12 12")),
            FileComparison::Same
        );
        let short = ask(&known, &[1, 2]);
        assert_eq!(short.form, Form::Same(2));
        assert_eq!(short.params, [1, 11, 2, 12].map(Value::Integer));
        assert_eq!(known.answer(&short, &text("true")), FileComparison::Same);
        for changed in [text("false"), Value::Null] {
            let short = ask(&known, &[1]);
            assert_eq!(known.answer(&short, &changed), FileComparison::Unsure);
            let long = ask(&known, &[1]);
            assert_eq!(long.form, Form::Which);
            assert_eq!(known.answer(&long, &text("1 13 13")), FileComparison::Same);
        }
        assert_eq!(
            ask(&known, &[2]).form,
            Form::Same(1),
            "others are as they were"
        );
    }

    #[test]
    fn another_file_than_the_snapshots_is_not_the_same_nor_remembered() {
        let mut known = KnownFiles::default();
        let question = ask(&known, &[1, 2, 3]);
        for changed in ["2 12 12,1 11 14", "3 13 -", "?"] {
            assert_eq!(
                known.answer(&question, &text(changed)),
                FileComparison::Changed
            );
        }
        assert_eq!(ask(&known, &[2]).form, Form::Same(1));
        let forms = [1, 3].map(|table| ask(&known, &[table]).form);
        assert_eq!(forms, [Form::Which; 2]);
        // It is not there any more, and was not for the snapshot.
        assert_eq!(
            known.answer(&ask(&known, &[3]), &Value::Null),
            FileComparison::Gone
        );
        assert_eq!(
            known.answer(&question, &text("1 11 11")),
            FileComparison::Gone
        );
    }

    #[test]
    fn many_or_unknown_tables_are_found_by_their_locks() {
        let mut known = KnownFiles::default();
        let many: Vec<u32> = (1..=17).collect();
        let unknown = [Analysis::of_files(Some(vec![1])), Analysis::of_files(None)];
        for question in [ask(&known, &many), known.question(unknown.iter())] {
            assert_eq!(question.form, Form::Locked);
            assert_eq!(known.answer(&question, &text("true")), FileComparison::Same);
            assert_eq!(
                known.answer(&question, &text("false")),
                FileComparison::Changed
            );
            assert_eq!(known.answer(&question, &Value::Null), FileComparison::Same);
        }
        assert_eq!(ask(&known, &many[1..]).form, Form::Which);
    }
}
