//! What a page reads of a database: one state, however often it reads.
//!
//! All queries of one read share a snapshot. A page that reads again, because the second query
//! follows from the rows of the first, would show parts of two states (coherence.md, rule 4). So a
//! read repeats those before it in its own snapshot. If their rows are the same, all that the page
//! has is of this snapshot; if not, the page is made again.

use millpond_db::{Call, ReadResult, ResultRows, Snapshot, Value};
use millpond_store::Tag;

use super::query::BoundQuery;
use super::rows::{self, SqlRows};
use super::{QueryError, SqlDatabase};
use crate::limits::PAGE_READS;
use crate::page::Page;

#[derive(Debug, Default)]
pub(crate) struct PageReads {
    calls: Vec<Call>,
    /// How many reads the calls are of.
    count: usize,
    /// Of the last read, with all calls.
    last: Option<ReadResult>,
    /// A read failed, and it is not known what its rows would have depended on.
    has_failed: bool,
    is_torn: bool,
}

impl Page {
    /// The rows of one query; the page ends when one of them changes, comes or goes. Blocks.
    ///
    /// Queries that do not follow from each other's rows are better given to
    /// [`queries`](Self::queries): each further read repeats those before it, so that the page
    /// shows one state.
    ///
    /// # Errors
    /// See [`QueryError`]. A page is not kept if a query of it has failed.
    pub fn query(&mut self, query: impl Into<BoundQuery>) -> Result<SqlRows, QueryError> {
        let [rows] = self.queries([query.into()])?;
        Ok(rows)
    }

    /// The rows of several queries, all in one snapshot. Blocks.
    ///
    /// # Errors
    /// Those of [`query`](Self::query).
    pub fn queries<const N: usize>(
        &mut self,
        queries: [BoundQuery; N],
    ) -> Result<[SqlRows; N], QueryError> {
        let Some(first) = queries.first() else {
            return Ok(rows::last(Vec::new()));
        };
        let database = first.database().clone();
        if !database.store().is(&self.store) {
            self.reads.has_failed = true;
            return Err(QueryError::usage(
                "the page is of another store than that of its database: give SqlDatabase::store to \
                 its route",
            ));
        }
        let calls = queries.into_iter().map(|query| query.call(&database));
        let calls = calls.collect::<Result<_, _>>();
        let read = calls.and_then(|calls| self.reads.read(&database, calls));
        self.reads.has_failed |= read.is_err();
        Ok(rows::last(read?))
    }
}

impl PageReads {
    /// The results of `calls`, in a snapshot in which all former calls of the page give the same.
    fn read(
        &mut self,
        database: &SqlDatabase,
        calls: Vec<Call>,
    ) -> Result<Vec<ResultRows>, QueryError> {
        if self.is_torn {
            return Err(QueryError::torn());
        }
        if self.count == PAGE_READS {
            return Err(QueryError::usage(format!(
                "a page reads at most {PAGE_READS} times: give several queries to one call of \
                 Page::queries"
            )));
        }
        self.count += 1;
        self.calls.extend(calls);
        let read = database.inner.read(self.calls.clone())?;
        let before = self.last.as_ref().map_or(&[][..], |last| &last.results);
        if !before.iter().zip(&read.results).all(|(a, b)| is_same(a, b)) {
            self.is_torn = true;
            return Err(QueryError::torn());
        }
        let new = read.results[before.len()..].to_vec();
        self.last = Some(read);
        Ok(new)
    }

    /// True if rows changed between two reads.
    pub(crate) fn is_torn(&self) -> bool {
        self.is_torn
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.last.is_none()
    }

    /// True if the feed ends the page when its rows change. An age that the program gives waives
    /// what no feed reports (coherence.md, rule 14), not the position of the feed (rule 7).
    pub(crate) fn may_be_kept(&self, has_age: bool) -> bool {
        !self.has_failed
            && self.last.as_ref().is_none_or(|last| {
                let is_reported = last.deps.iter().all(|deps| deps.uncacheable.is_none());
                last.uncovered.is_none() && (is_reported || has_age)
            })
    }

    pub(crate) fn snapshot(&self) -> Option<Snapshot> {
        self.last.as_ref().map(|last| last.snapshot.clone())
    }

    pub(crate) fn tags(&self) -> Vec<Tag> {
        let deps = self.last.iter().flat_map(|last| &last.deps);
        deps.flat_map(|deps| deps.tags.iter().copied()).collect()
    }
}

fn is_same(one: &ResultRows, other: &ResultRows) -> bool {
    let same = |(a, b): (&Value, &Value)| match (a, b) {
        // NaN is not equal to itself.
        (Value::Real(a), Value::Real(b)) => a.to_bits() == b.to_bits(),
        (a, b) => a == b,
    };
    let same = |(a, b): (&Vec<Value>, &Vec<Value>)| a.len() == b.len() && a.iter().zip(b).all(same);
    one.columns == other.columns
        && one.rows.len() == other.rows.len()
        && one.rows.iter().zip(&other.rows).all(same)
}
