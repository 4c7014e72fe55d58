//! From events to committed transactions, whether they come as a whole or are streamed while they
//! run (coherence.md, rule 20).
//!
//! Streamed transactions are interleaved, in blocks. What a part that was rolled back has touched
//! stays counted: too much is invalidated then, never too little.

use std::collections::HashMap;
use std::sync::Arc;

use millpond_store::Tag;

use super::messages::{self, Note};
use super::pgoutput::{Event, OldRow, StreamRelation, Tuple};
use super::relations::{FeedView, TablePlan};
use super::touched::TouchedTags;

/// Transactions that are being streamed at a time.
const MAX_STREAMED: usize = 4_096;
/// Tags of all of them together; who exceeds it counts as a change to everything.
const MAX_STREAMED_TAGS: usize = 262_144;
/// Notes of ours in one transaction: a write leaves one.
const MAX_NOTES: usize = 64;

/// A transaction that was committed.
pub(crate) struct Committed {
    /// The lower half of its id.
    pub(crate) transaction: u32,
    /// The end of its commit record.
    pub(crate) end: u64,
    pub(crate) tags: Vec<Tag>,
    /// Why the tags are not all.
    pub(crate) anything: Option<&'static str>,
    /// View that the tags were made from.
    pub(crate) view: FeedView,
    pub(crate) notes: Vec<Note>,
    /// True if it is a write of a node; what it touches does not matter.
    pub(crate) has_write: bool,
}

/// Why the stream makes no sense.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct MalformedTransaction(pub(crate) &'static str);

struct Transaction {
    id: u32,
    view: FeedView,
    touched: TouchedTags,
    /// `None` for a table that was not there when the feed last looked.
    plans: HashMap<u32, Option<Arc<TablePlan>>>,
    /// As tables are within this transaction, while it is streamed.
    relations: HashMap<u32, StreamRelation>,
    notes: Vec<Note>,
    has_write: bool,
}

/// All transactions that are under way.
#[derive(Default)]
pub(crate) struct Transactions {
    node: String,
    whole: Option<Transaction>,
    streamed: HashMap<u32, Transaction>,
    /// The transaction of the stream block that is open.
    block: Option<u32>,
    streamed_tags: usize,
    relations: HashMap<u32, StreamRelation>,
}

impl Transactions {
    pub(crate) fn new(node: &str) -> Self {
        Self {
            node: node.to_owned(),
            ..Self::default()
        }
    }

    /// True if a transaction or a block of one is only half there.
    pub(crate) fn is_amid(&self) -> bool {
        self.whole.is_some() || self.block.is_some()
    }

    /// Takes the next event; the transaction, if it is committed by it. `view` is asked for at the
    /// beginning of each.
    pub(crate) fn take(
        &mut self,
        event: Event<'_>,
        view: impl FnOnce() -> FeedView,
    ) -> Result<Option<Committed>, MalformedTransaction> {
        match event {
            Event::Begin { transaction } => {
                if self.is_amid() {
                    return Err(MalformedTransaction("a transaction begins within another"));
                }
                self.whole = Some(Transaction::new(transaction, view()));
            }
            Event::Commit { end } => {
                let whole = self.whole.take();
                let whole = whole.ok_or(MalformedTransaction("a commit of no transaction"))?;
                return Ok(Some(whole.commit(end)));
            }
            Event::StreamStart { transaction } => self.open_block(transaction, view)?,
            Event::StreamStop => {
                self.block
                    .take()
                    .ok_or(MalformedTransaction("the end of no stream block"))?;
            }
            Event::StreamCommit { transaction, end } => {
                let mut streamed = self
                    .forget(transaction)
                    .ok_or(MalformedTransaction("a commit of no streamed transaction"))?;
                self.relations.extend(streamed.relations.drain());
                return Ok(Some(streamed.commit(end)));
            }
            Event::StreamAbort { transaction, part } => {
                if transaction == part {
                    self.forget(transaction);
                }
            }
            Event::Relation(table, relation) => self.describe(table, relation),
            Event::Insert { relation, new } => self.row(relation, None, Some(&new))?,
            Event::Update { relation, old, new } => self.row(relation, Some(&old), Some(&new))?,
            Event::Delete { relation, old } => self.row(relation, Some(&old), None)?,
            Event::Truncate { relations } => {
                for table in relations {
                    self.change(table, |touched, plan| touched.all_rows(plan))?;
                }
            }
            Event::Message {
                transactional,
                prefix,
                content,
            } => self.note(transactional, prefix, content),
            Event::Other => {}
        }
        Ok(None)
    }

    fn open_block(
        &mut self,
        transaction: u32,
        view: impl FnOnce() -> FeedView,
    ) -> Result<(), MalformedTransaction> {
        if self.is_amid() {
            return Err(MalformedTransaction("a stream block begins within another"));
        }
        if self.streamed.len() >= MAX_STREAMED && !self.streamed.contains_key(&transaction) {
            return Err(MalformedTransaction(
                "too many large transactions at a time",
            ));
        }
        self.streamed
            .entry(transaction)
            .or_insert_with(|| Transaction::new(transaction, view()));
        self.block = Some(transaction);
        Ok(())
    }

    fn forget(&mut self, transaction: u32) -> Option<Transaction> {
        let streamed = self.streamed.remove(&transaction)?;
        self.streamed_tags -= streamed.touched.len();
        Some(streamed)
    }

    /// The transaction whose changes come now.
    fn present(&mut self) -> Option<&mut Transaction> {
        match self.block {
            Some(block) => self.streamed.get_mut(&block),
            None => self.whole.as_mut(),
        }
    }

    /// How a table's rows come from now on; within a stream block only in its transaction, which
    /// may yet be rolled back.
    fn describe(&mut self, table: u32, relation: StreamRelation) {
        let streams = self.block.is_some();
        let Some(present) = self.present() else {
            self.relations.insert(table, relation);
            return;
        };
        present.plans.remove(&table);
        if streams {
            present.relations.insert(table, relation);
        } else {
            self.relations.insert(table, relation);
        }
    }

    fn row(
        &mut self,
        table: u32,
        old: Option<&OldRow<'_>>,
        new: Option<&Tuple<'_>>,
    ) -> Result<(), MalformedTransaction> {
        self.change(table, |touched, plan| touched.row(plan, old, new))
    }

    fn change(
        &mut self,
        table: u32,
        change: impl FnOnce(&mut TouchedTags, &TablePlan),
    ) -> Result<(), MalformedTransaction> {
        let streams = self.block.is_some();
        let present = match self.block {
            Some(block) => self.streamed.get_mut(&block),
            None => self.whole.as_mut(),
        };
        let present = present.ok_or(MalformedTransaction("a change outside a transaction"))?;
        let before = present.touched.len();
        match present.plan(table, &self.relations)? {
            Some(plan) => change(&mut present.touched, &plan),
            None => present
                .touched
                .anything("a table has changed that was not there before"),
        }
        if streams {
            self.streamed_tags = self.streamed_tags + present.touched.len() - before;
            if self.streamed_tags > MAX_STREAMED_TAGS {
                self.streamed_tags -= present.touched.len();
                present
                    .touched
                    .anything("large transactions have touched more than can be listed");
            }
        }
        Ok(())
    }

    fn note(&mut self, transactional: bool, prefix: &str, content: &[u8]) {
        if !transactional {
            return;
        }
        let note = messages::read(&self.node, prefix, content);
        let is_write = messages::is_write(prefix, content);
        let Some(present) = self.present() else {
            return;
        };
        present.has_write |= is_write;
        if let Some(note) = note
            && present.notes.len() < MAX_NOTES
        {
            present.notes.push(note);
        }
    }
}

impl Transaction {
    fn new(id: u32, view: FeedView) -> Self {
        Self {
            id,
            view,
            touched: TouchedTags::default(),
            plans: HashMap::new(),
            relations: HashMap::new(),
            notes: Vec::new(),
            has_write: false,
        }
    }

    /// Returns the tags that a change in the table touches; `None` if the table was not there when
    /// the feed last looked.
    fn plan(
        &mut self,
        table: u32,
        relations: &HashMap<u32, StreamRelation>,
    ) -> Result<Option<Arc<TablePlan>>, MalformedTransaction> {
        if let Some(plan) = self.plans.get(&table) {
            return Ok(plan.clone());
        }
        let relation = self
            .relations
            .get(&table)
            .or_else(|| relations.get(&table))
            .ok_or(MalformedTransaction(
                "a change in a table that was not described",
            ))?;
        let plan = TablePlan::new(&self.view, table, relation).map(Arc::new);
        self.plans.insert(table, plan.clone());
        Ok(plan)
    }

    fn commit(self, end: u64) -> Committed {
        let (tags, anything) = self.touched.into_tags();
        Committed {
            transaction: self.id,
            end,
            tags,
            anything,
            view: self.view,
            notes: self.notes,
            has_write: self.has_write,
        }
    }
}

#[cfg(test)]
#[path = "transactions_tests.rs"]
mod tests;
