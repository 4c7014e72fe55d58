//! Whether tables are in the files in which the snapshot of a read knows them.
//!
//! TRUNCATE, and whatever writes a table anew, obeys no snapshot: ✗ *a read has its snapshot, waits for the lock that an
//! `alter table … type` holds, and finds the table empty beside others as they were* (PostgreSQL's manual, "Caveats" of
//! concurrency control). All of these give the table another file. So behind the statements of a read, whose locks keep
//! the files as they are, the server is asked which they are, and a read that may have found another is done again.
//!
//! A connection remembers the files that a snapshot and the catalog of that very moment agreed on. If they are the same
//! after a read that began later, no file was another in between: numbers of files do not come again. That is one short statement.
//! Each connection has its own memory: ✗ *what was seen on the primary is what a standby that is behind comes to only while it
//! is read.*

use std::collections::HashMap;
use std::fmt::Write as _;
use std::sync::{Arc, LazyLock};

use foldhash::fast::RandomState;
use tokio_postgres::types::Type;

use super::analysis::Analysis;
use super::shape::Shape;
use super::wire::Item;
use crate::Value;

/// Up to so many tables are named one by one, which costs the server least.
const FEW: usize = 16;
/// Tables whose files a connection remembers.
const MAX_KNOWN: usize = 65_536;

/// Which files the snapshot knows, and which there are. What has no file of its own (a view, a partitioned table) has none to change.
static WHICH: LazyLock<Shape> = LazyLock::new(|| {
    let sql = "select c.oid::text as relation, c.relfilenode::text as known, \
               pg_catalog.pg_relation_filenode(c.oid)::text as present \
               from pg_catalog.pg_class c where c.oid = any ($1::oid[])";
    Shape::own(sql, vec![Type::TEXT], &["relation", "known", "present"])
});

/// Whether the files are these, for each number of tables up to [`FEW`].
static SAME: LazyLock<Vec<Shape>> = LazyLock::new(|| (1..=FEW).map(same).collect());

/// The same for any number.
static SAME_OF_MANY: LazyLock<Shape> = LazyLock::new(|| {
    let sql = "select (count(*) = 0)::text as same \
               from pg_catalog.unnest($1::oid[], $2::oid[]) as file (relation, known) \
               where pg_catalog.pg_relation_filenode(relation) is distinct from known";
    Shape::own(sql, vec![Type::TEXT; 2], &["same"])
});

fn same(tables: usize) -> Shape {
    let mut sql = String::from("select (");
    for table in 0..tables {
        let and = if table == 0 { "" } else { " and " };
        let (relation, file) = (2 * table + 1, 2 * table + 2);
        // Writing to a string does not fail.
        let _ = write!(
            sql,
            "{and}pg_catalog.pg_relation_filenode(${relation}) = ${file}"
        );
    }
    sql.push_str(")::text as same");
    Shape::own(&sql, vec![Type::OID; 2 * tables], &["same"])
}

/// The files of tables, as a connection has seen them.
#[derive(Default)]
pub(super) struct Files(HashMap<u32, u32, RandomState>);

/// What is asked behind the statements of a read.
pub(super) struct Question {
    tables: Vec<u32>,
    shape: &'static Shape,
    params: Vec<Value>,
    /// Whether all files are known, and it is only asked whether they are the same.
    is_short: bool,
}

impl Question {
    pub(super) fn item(&self) -> Item<'_> {
        Item {
            shape: self.shape,
            params: &self.params,
        }
    }
}

impl Files {
    /// What is to be asked behind statements that read from these tables; nothing if they read from none. To be called
    /// before the snapshot is taken.
    pub(super) fn question<'a>(
        &self,
        statements: impl Iterator<Item = &'a Analysis>,
    ) -> Option<Question> {
        let mut tables: Vec<u32> = statements
            .flat_map(|analysis| analysis.files.iter().copied())
            .collect();
        tables.sort_unstable();
        tables.dedup();
        if tables.is_empty() {
            return None;
        }
        let known: Option<Vec<u32>> = tables.iter().map(|oid| self.0.get(oid).copied()).collect();
        let (shape, params): (&'static Shape, Vec<Value>) = match &known {
            None => (&WHICH, vec![array(&tables)]),
            Some(files) if tables.len() > FEW => {
                (&SAME_OF_MANY, vec![array(&tables), array(files)])
            }
            Some(files) => {
                let pairs = tables.iter().zip(files);
                let numbers = pairs.flat_map(|(table, file)| [*table, *file]);
                let params = numbers.map(|number| Value::Integer(number.into()));
                (&SAME[tables.len() - 1], params.collect())
            }
        };
        Some(Question {
            tables,
            shape,
            params,
            is_short: known.is_some(),
        })
    }

    /// Whether the read has found all tables as its snapshot knows them, by the rows that answer the question. If not, or
    /// if that is not certain, the next question is a longer one.
    pub(super) fn are_same(&mut self, question: &Question, rows: &[Vec<Value>]) -> bool {
        if question.is_short {
            let same = matches!(rows, [row] if matches!(&row[..], [Value::Text(said)] if &**said == "true"));
            if !same {
                question.tables.iter().for_each(|table| {
                    self.0.remove(table);
                });
            }
            return same;
        }
        if self.0.len() + question.tables.len() > MAX_KNOWN {
            self.0.clear();
        }
        let mut same = true;
        for row in rows {
            let [relation, known, present] = &row[..] else {
                return false;
            };
            match (number(relation), number(known), number(present)) {
                // What is not there any more was not there for the snapshot either: the statement has found what took its place.
                (Some(relation), Some(known), Some(present)) if known == present => {
                    self.0.insert(relation, present);
                }
                _ => same = false,
            }
        }
        same
    }
}

fn array(numbers: &[u32]) -> Value {
    let numbers: Vec<String> = numbers.iter().map(u32::to_string).collect();
    Value::Text(Arc::from(format!("{{{}}}", numbers.join(","))))
}

fn number(value: &Value) -> Option<u32> {
    match value {
        Value::Text(text) => text.parse().ok(),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(tables: &[u32]) -> Analysis {
        Analysis::of_files(tables.to_vec())
    }

    fn text(text: &str) -> Value {
        Value::Text(text.into())
    }

    fn row(relation: u32, known: &str, present: &str) -> Vec<Value> {
        vec![text(&relation.to_string()), text(known), text(present)]
    }

    fn ask(files: &Files, tables: &[u32]) -> Question {
        files.question([of(tables)].iter()).unwrap()
    }

    #[test]
    fn what_is_known_is_asked_for_in_short_until_it_has_changed() {
        let mut files = Files::default();
        assert!(files.question([of(&[])].iter()).is_none());
        let long = ask(&files, &[2, 1, 2]);
        assert_eq!((&long.tables[..], long.is_short), (&[1, 2][..], false));
        assert!(files.are_same(&long, &[row(1, "11", "11"), row(2, "12", "12")]));
        let short = ask(&files, &[1, 2]);
        assert!(short.is_short);
        assert_eq!(short.params, [1, 11, 2, 12].map(Value::Integer));
        assert!(files.are_same(&short, &[vec![text("true")]]));
        for changed in [text("false"), Value::Null] {
            let short = ask(&files, &[1]);
            assert!(!files.are_same(&short, &[vec![changed]]));
            let long = ask(&files, &[1]);
            assert!(!long.is_short);
            assert!(files.are_same(&long, &[row(1, "13", "13")]));
        }
        assert!(ask(&files, &[2]).is_short, "others are as they were");
    }

    #[test]
    fn another_file_than_the_snapshots_is_not_the_same_nor_remembered() {
        let mut files = Files::default();
        let question = ask(&files, &[1, 2, 3]);
        let gone = vec![text("3"), text("13"), Value::Null];
        let rows = [row(1, "11", "14"), row(2, "12", "12")];
        assert!(!files.are_same(&question, &rows));
        assert!(!files.are_same(&question, &[gone]));
        assert!(ask(&files, &[2]).is_short);
        assert!(!ask(&files, &[1]).is_short && !ask(&files, &[3]).is_short);
        // It is not there any more, and was not for the snapshot.
        assert!(files.are_same(&ask(&files, &[3]), &[]));
    }

    #[test]
    fn many_tables_are_asked_for_in_one_list() {
        let mut files = Files::default();
        let tables: Vec<u32> = (1..=17).collect();
        let long = ask(&files, &tables);
        let rows: Vec<Vec<Value>> = tables.iter().map(|table| row(*table, "5", "5")).collect();
        assert!(files.are_same(&long, &rows));
        let short = ask(&files, &tables);
        assert!(short.is_short && std::ptr::eq(short.shape, &*SAME_OF_MANY));
        assert_eq!(short.params.len(), 2);
        assert_eq!(ask(&files, &tables[1..]).params.len(), 2 * FEW);
    }
}
