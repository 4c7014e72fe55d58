//! Whether tables are in the files in which the snapshot of a read knows them.
//!
//! TRUNCATE, and whatever writes a table anew, obeys no snapshot: ✗ *a read has its snapshot, waits for the lock that an
//! `alter table … type` holds, and finds the table empty beside others as they were* (PostgreSQL's manual, "Caveats" of
//! concurrency control). All of these give the table another file. So behind the statements of a read, whose locks keep
//! the files as they are, the server is asked which they are ([`super::seen`]), and a read that may have found another is done again.
//!
//! A connection remembers the files that a snapshot and the catalog of that very moment agreed on. If they are the same
//! after a read that began later, no file was another in between: numbers of files do not come again. That is a short question.
//! Each connection has its own memory: ✗ *what was seen on the primary is what a standby that is behind comes to only while it
//! is read.*

use std::collections::HashMap;
use std::sync::Arc;

use foldhash::fast::RandomState;
use tokio_postgres::types::Type;

use super::analysis::Analysis;
use crate::Value;

/// Up to so many tables are named one by one, which costs the server least.
const FEW: usize = 16;
/// Tables whose files a connection remembers.
const MAX_KNOWN: usize = 65_536;

/// What is asked about the files of the tables of a read: an expression that gives text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// There are no tables.
    Nothing,
    /// Whether the files of so many tables are these.
    Same(usize),
    /// The same for any number of them.
    SameOfMany,
    /// Which files the snapshot knows, and which there are.
    Which,
}

impl Form {
    /// All of them, each in the place of its number.
    pub(super) fn all() -> impl Iterator<Item = Self> {
        let same = (1..=FEW).map(Self::Same);
        [Self::Nothing]
            .into_iter()
            .chain(same)
            .chain([Self::SameOfMany, Self::Which])
    }

    /// Its place among all.
    pub(super) const fn number(self) -> usize {
        match self {
            Self::Nothing => 0,
            Self::Same(tables) => tables,
            Self::SameOfMany => FEW + 1,
            Self::Which => FEW + 2,
        }
    }

    /// What is asked.
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
            Self::SameOfMany => "(select (count(*) = 0)::text from pg_catalog.unnest($1::oid[], $2::oid[]) as file (relation, known) \
                 where pg_catalog.pg_relation_filenode(relation) is distinct from known)"
                .to_owned(),
            // What has no file of its own (a view, a partitioned table) has none to change.
            Self::Which => "(select pg_catalog.string_agg(c.oid || ' ' || c.relfilenode || ' ' \
                 || coalesce(pg_catalog.pg_relation_filenode(c.oid)::text, '-'), ',') \
                 from pg_catalog.pg_class c where c.oid = any ($1::oid[]))"
                .to_owned(),
        }
    }

    /// The types of its parameters.
    pub(super) fn params(self) -> Vec<Type> {
        match self {
            Self::Nothing => Vec::new(),
            Self::Same(tables) => vec![Type::OID; 2 * tables],
            Self::SameOfMany => vec![Type::TEXT; 2],
            Self::Which => vec![Type::TEXT],
        }
    }
}

/// The files of tables, as a connection has seen them.
#[derive(Default)]
pub(super) struct Files(HashMap<u32, u32, RandomState>);

/// What is asked behind the statements of a read.
pub(super) struct Question {
    tables: Vec<u32>,
    pub(super) form: Form,
    pub(super) params: Vec<Value>,
}

impl Files {
    /// What is to be asked behind these statements. To be called before their snapshot is taken.
    pub(super) fn question<'a>(&self, statements: impl Iterator<Item = &'a Analysis>) -> Question {
        let mut tables: Vec<u32> = statements
            .flat_map(|analysis| analysis.files.iter().copied())
            .collect();
        tables.sort_unstable();
        tables.dedup();
        let known: Option<Vec<u32>> = tables.iter().map(|oid| self.0.get(oid).copied()).collect();
        let (form, params) = match known {
            _ if tables.is_empty() => (Form::Nothing, Vec::new()),
            None => (Form::Which, vec![array(&tables)]),
            Some(files) if tables.len() > FEW => {
                (Form::SameOfMany, vec![array(&tables), array(&files)])
            }
            Some(files) => {
                let pairs = tables.iter().zip(files);
                let numbers = pairs.flat_map(|(table, file)| [*table, file]);
                let params = numbers.map(|number| Value::Integer(number.into()));
                (Form::Same(tables.len()), params.collect())
            }
        };
        Question {
            tables,
            form,
            params,
        }
    }

    /// Whether the read has found all tables as its snapshot knows them, by what was said to the question. If not, or
    /// if that is not certain, the next question is a longer one.
    pub(super) fn are_same(&mut self, question: &Question, said: &Value) -> bool {
        let text = match said {
            Value::Text(text) => text,
            // None of them is there any more.
            Value::Null if question.form == Form::Which => return true,
            _ => "",
        };
        if question.form == Form::Which {
            return self.learn(text, question.tables.len());
        }
        let same = text == "true";
        if !same {
            for table in &question.tables {
                self.0.remove(table);
            }
        }
        same
    }

    /// Remembers the files on which the snapshot and the catalog agree, and says whether these are all.
    fn learn(&mut self, files: &str, count: usize) -> bool {
        if self.0.len() + count > MAX_KNOWN {
            self.0.clear();
        }
        let mut same = true;
        for file in files.split(',') {
            let mut numbers = file.split(' ').map(|number| number.parse::<u32>().ok());
            let mut next = || numbers.next().flatten();
            match (next(), next(), next()) {
                (Some(relation), Some(known), Some(present)) if known == present => {
                    self.0.insert(relation, present);
                }
                _ => same = false,
            }
        }
        // What is not there any more was not there for the snapshot either: the statement has found what took its place.
        same
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

    fn ask(files: &Files, tables: &[u32]) -> Question {
        let analysis = Analysis::of_files(tables.to_vec());
        files.question([analysis].iter())
    }

    #[test]
    fn each_form_has_its_place() {
        let numbers: Vec<usize> = Form::all().map(Form::number).collect();
        assert_eq!(numbers, (0..FEW + 3).collect::<Vec<_>>());
    }

    #[test]
    fn what_is_known_is_asked_for_in_short_until_it_has_changed() {
        let mut files = Files::default();
        let nothing = ask(&files, &[]);
        assert_eq!(nothing.form, Form::Nothing);
        assert!(files.are_same(&nothing, &text("true")));
        let long = ask(&files, &[2, 1, 2]);
        assert_eq!((&long.tables[..], long.form), (&[1, 2][..], Form::Which));
        assert!(files.are_same(&long, &text("1 11 11,2 12 12")));
        let short = ask(&files, &[1, 2]);
        assert_eq!(short.form, Form::Same(2));
        assert_eq!(short.params, [1, 11, 2, 12].map(Value::Integer));
        assert!(files.are_same(&short, &text("true")));
        for changed in [text("false"), Value::Null] {
            let short = ask(&files, &[1]);
            assert!(!files.are_same(&short, &changed));
            let long = ask(&files, &[1]);
            assert_eq!(long.form, Form::Which);
            assert!(files.are_same(&long, &text("1 13 13")));
        }
        assert_eq!(
            ask(&files, &[2]).form,
            Form::Same(1),
            "others are as they were"
        );
    }

    #[test]
    fn another_file_than_the_snapshots_is_not_the_same_nor_remembered() {
        let mut files = Files::default();
        let question = ask(&files, &[1, 2, 3]);
        assert!(!files.are_same(&question, &text("1 11 14,2 12 12")));
        assert!(!files.are_same(&question, &text("3 13 -")));
        assert!(!files.are_same(&question, &text("?")));
        assert_eq!(ask(&files, &[2]).form, Form::Same(1));
        let forms = [1, 3].map(|table| ask(&files, &[table]).form);
        assert_eq!(forms, [Form::Which; 2]);
        // It is not there any more, and was not for the snapshot.
        assert!(files.are_same(&ask(&files, &[3]), &Value::Null));
    }

    #[test]
    fn many_tables_are_asked_for_in_one_list() {
        let mut files = Files::default();
        let tables: Vec<u32> = (1..=17).collect();
        let all: Vec<String> = tables.iter().map(|table| format!("{table} 5 5")).collect();
        assert!(files.are_same(&ask(&files, &tables), &text(&all.join(","))));
        let short = ask(&files, &tables);
        assert_eq!((short.form, short.params.len()), (Form::SameOfMany, 2));
        assert_eq!(ask(&files, &tables[1..]).params.len(), 2 * FEW);
    }
}
