//! All results of a page: from the store if they make one state, else from one snapshot
//! (coherence.md, rule 4).

use std::{sync::Arc, time::Duration};

use base_clock::Boottime;
use millpond_db::{Call, DatabaseFeed, ReadResult, ReadTerms, Snapshot};
use millpond_pages::Turn;
use millpond_store::{Class, Feed, Fill, Permit, Tag};

use super::cached::{Cached, PageFailure, object_key};
use crate::answer::Ask;
use millpond_site_compile::{
    object::QueryResult,
    page::{
        Page,
        end::{NextEnd, Present, end_of_today},
    },
};
use millpond_site_format::script::Rows;

/// All results of a page, as they were read or put together.
pub(crate) struct Gathered {
    pub(crate) objects: Vec<Arc<QueryResult>>,
    pub(crate) tags: Vec<Tag>,
    pub(crate) snapshot: Snapshot,
    pub(crate) position: u64,
    pub(crate) expires: Option<Boottime>,
    pub(crate) uncacheable: bool,
    pub(crate) database: Duration,
}

impl Ask {
    /// All results of the page, with the moment at which the page ends by itself.
    pub(crate) async fn gather(
        &self,
        permit: Option<&Permit<Cached, DatabaseFeed>>,
        turn: Option<&Turn>,
    ) -> Result<Gathered, PageFailure> {
        // Before the queries are asked, so no clock that they read is behind it.
        let present = Present::now();
        let mut gathered = self.results(permit, turn).await?;
        let midnight = end_of_today(&self.page.params, &self.values, present);
        let mut ends = Vec::from_iter(midnight);
        for until in &self.page.until {
            match until.next_end(&gathered.objects[until.query], present) {
                NextEnd::None => {}
                NextEnd::At(end) => ends.push(end),
                NextEnd::Unknown => gathered.uncacheable = true,
            }
        }
        let end = ends.into_iter().min();
        // Who has asked after that moment gets no page from before it.
        gathered.uncacheable |= end.is_some_and(|end| end <= Boottime::now());
        gathered.expires = [gathered.expires, end].into_iter().flatten().min();
        Ok(gathered)
    }

    /// All results of the page: from the store if they make one state, else from one snapshot (rule
    /// 4). Each result that is read is stored under the leader's permit.
    async fn results(
        &self,
        permit: Option<&Permit<Cached, DatabaseFeed>>,
        turn: Option<&Turn>,
    ) -> Result<Gathered, PageFailure> {
        let now = Boottime::now();
        let keys: Vec<Vec<u8>> = match permit {
            Some(_) => self
                .page
                .queries
                .iter()
                .map(|query| object_key(self.generation.number, query, &self.values))
                .collect(),
            None => Vec::new(),
        };
        if permit.is_some()
            && !keys.is_empty()
            && let Some(combined) = self.combine(&keys, now)
        {
            return Ok(combined);
        }
        if self.page.queries.is_empty() {
            // Nothing is read, so nothing can be stale: only a new generation of the site ends the
            // page.
            let snapshot = DatabaseFeed::snapshot_at(u64::MAX);
            return Ok(Gathered {
                objects: Vec::new(),
                tags: Vec::new(),
                snapshot,
                position: 0,
                expires: None,
                uncacheable: false,
                database: Duration::ZERO,
            });
        }
        let calls = self.page.queries.iter().map(|query| {
            let statement = query.statement(&self.values);
            let args = statement.args.iter();
            Call {
                query: statement.query.clone(),
                params: args.map(|&at| self.values[at].clone()).collect(),
            }
        });
        let terms = ReadTerms {
            // A read without a permit may wait for a write that the feed has not passed yet (rule
            // 19), which only the primary has.
            is_spread: permit.is_some(),
            held: turn.map(Turn::held),
        };
        let read = self.core.database.read_with(calls.collect(), terms).await;
        let read = read.map_err(|error| {
            self.report_read(&error);
            let Page { route, params, .. } = &*self.page;
            let place = self.page.place_of(&error);
            self.core.failure(route, params, place.as_deref(), &error)
        })?;
        Ok(self.sort(read, permit, &keys, now))
    }

    fn combine(&self, keys: &[Vec<u8>], now: Boottime) -> Option<Gathered> {
        let keys: Vec<&[u8]> = keys.iter().map(Vec::as_slice).collect();
        let combined = self.core.store.combine(&keys, now)?;
        let objects = combined.values.iter().map(|value| match &**value {
            Cached::Object(object) => Some(object.clone()),
            _ => None,
        });
        Some(Gathered {
            objects: objects.collect::<Option<_>>()?,
            tags: combined.tags,
            snapshot: DatabaseFeed::snapshot_at(combined.position),
            position: combined.position,
            expires: combined.expires,
            uncacheable: false,
            database: Duration::ZERO,
        })
    }

    /// Sorts what a read gave; `asked` is a moment before it began.
    fn sort(
        &self,
        read: ReadResult,
        permit: Option<&Permit<Cached, DatabaseFeed>>,
        keys: &[Vec<u8>],
        asked: Boottime,
    ) -> Gathered {
        let mut gathered = Gathered {
            objects: Vec::with_capacity(read.results.len()),
            tags: Vec::new(),
            snapshot: read.snapshot.clone(),
            position: read.position,
            expires: None,
            uncacheable: false,
            database: read.elapsed,
        };
        let missing = self.is_missing(&read);
        let share = read.elapsed / self.page.queries.len() as u32;
        for (at, ((query, rows), deps)) in self
            .page
            .queries
            .iter()
            .zip(read.results)
            .zip(read.deps)
            .enumerate()
        {
            let object = Arc::new(QueryResult {
                rows: query.rows,
                data: Arc::new(rows),
            });
            let expires = query.max_age.map(|age| asked.plus(age));
            // With `-- max-age:` the owner accepts changes that no feed reports of a query (rule
            // 14). It does not waive the position of the feed: a read that the feed does not cover
            // is not kept (rule 7), or a page would be combined from states that never existed.
            let waived = expires.is_some();
            let is_uncovered = read.uncovered.is_some();
            let uncacheable = is_uncovered || deps.uncacheable.is_some() && !waived;
            // Of a page that does not exist only the absence is kept, in the memory budget for
            // negative entries.
            // Bytes are in memory once: as the page.
            let is_page = self.page.bytes.is_some() && !object.is_missing();
            let kept = !uncacheable && !is_page && (!missing || object.is_missing());
            if let (Some(permit), true) = (permit, kept) {
                permit.also(
                    &keys[at],
                    Fill {
                        value: Arc::new(Cached::Object(object.clone())),
                        tags: deps.tags.clone(),
                        snapshot: read.snapshot.clone(),
                        position: read.position,
                        expires,
                        class: if object.is_missing() {
                            Class::Negative
                        } else {
                            Class::Normal
                        },
                        cost: share,
                    },
                );
            }
            // With `-- until:` it is the page that ends in time; the result alone has no end.
            let ends_in_time = query.until.is_some() && deps.reads_clock_alone;
            gathered.uncacheable |= is_uncovered || uncacheable && !ends_in_time;
            gathered.tags.extend(deps.tags);
            gathered.expires = [gathered.expires, expires].into_iter().flatten().min();
            gathered.objects.push(object);
        }
        gathered
    }

    /// True if a `:one` gave no row.
    fn is_missing(&self, read: &ReadResult) -> bool {
        let mut results = self.page.queries.iter().zip(&read.results);
        results.any(|(query, rows)| query.rows == Rows::One && rows.rows.is_empty())
    }
}

impl Gathered {
    /// The fill to store under the key of the page, or of all its results.
    pub(crate) fn fill(self, value: Arc<Cached>, cost: Duration) -> Fill<Cached, DatabaseFeed> {
        let missing = self.objects.iter().any(|object| object.is_missing());
        let class = if missing || matches!(*value, Cached::Missing(_)) {
            Class::Negative
        } else {
            Class::Normal
        };
        Fill {
            value,
            tags: self.tags,
            snapshot: self.snapshot,
            position: self.position,
            expires: self.expires,
            class,
            cost,
        }
    }
}
