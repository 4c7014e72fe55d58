//! What must hold of every answer, of the store's bounds, and when all is over.

use std::{
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use millpond_store::{Class, Fill, FillOutcome, Joined, Need, Sink};
use proptest::{prelude::*, test_runner::TestCaseResult};

use super::{CELLS, Cells, MAX_STALENESS, MEMORY, Read, Source, World, moment};
use crate::support::poll_once;

impl<S: Source> World<S> {
    /// The commits that an answer to a request of this moment must reflect.
    pub(super) fn owed(&self, hit: bool) -> Vec<u64> {
        let old = |at: u64| at + MAX_STALENESS < self.now;
        let owed = self
            .database
            .transactions
            .iter()
            .filter(|it| match it.visible_at {
                Some(at) => it.applied || old(at),
                None => hit && it.applied,
            });
        owed.map(|it| it.commit).collect()
    }

    pub(super) fn check(&self, value: &Read, owed: &[u64]) -> TestCaseResult {
        for it in self
            .database
            .transactions
            .iter()
            .filter(|it| owed.contains(&it.commit))
        {
            for cell in (0..CELLS).filter(|&cell| it.touches(cell) && value.reads >> cell & 1 == 1)
            {
                prop_assert!(
                    value.cells[cell] >= it.commit,
                    "{:?} of {:04b} lacks {it:?}",
                    value.cells,
                    value.reads
                );
            }
        }
        Ok(())
    }

    /// Checks that the values are of one state that the database has had, in the order of commits.
    pub(super) fn check_one_state(&self, values: &[Arc<Read>]) -> TestCaseResult {
        let is_of = |state: Cells, value: &Read| {
            (0..CELLS)
                .filter(|cell| value.reads >> cell & 1 == 1)
                .all(|cell| state[cell] == value.cells[cell])
        };
        let one = (0..=self.database.commits).any(|commits| {
            let state = self.database.state_after(commits);
            values.iter().all(|value| is_of(state, value))
        });
        let seen: Vec<_> = values
            .iter()
            .map(|value| (value.reads, value.cells))
            .collect();
        prop_assert!(one, "a page that never was: {:?}", seen);
        Ok(())
    }

    pub(in crate::model) fn check_bounds(&self) -> TestCaseResult {
        let stats = self.store.stats();
        prop_assert!(stats.bytes <= MEMORY, "{stats:?}");
        prop_assert!(stats.logged_tags <= 24, "{stats:?}");
        prop_assert_eq!(
            (stats.flights, stats.waiting),
            (self.flying.len(), self.asking.len())
        );
        Ok(())
    }

    /// Ends all requests and flights and makes everything visible. Then one entry of each class
    /// fills the memory, and nothing else must be left.
    pub(in crate::model) fn end(mut self) -> TestCaseResult {
        self.flying.clear();
        for n in (0..self.asking.len()).rev() {
            self.poll(n)?;
        }
        prop_assert!(
            self.asking.is_empty(),
            "a flight that is over leaves nobody waiting"
        );
        for at in self.database.unseen() {
            self.database.show(at, self.now);
        }
        for at in self.database.which(|it| it.commit == 0) {
            self.database.flush(at, self.now);
            self.database.show(at, self.now);
        }
        self.store.visible(&S::snapshot(&self.database));
        for (class, budget, name) in [
            (Class::Normal, MEMORY / 5 * 4, b"n"),
            (Class::Negative, MEMORY / 5, b"m"),
        ] {
            let Joined::Lead(mut permit) = self.store.join(name, Need::Any) else {
                panic!("nobody else asks")
            };
            assert!(poll_once(permit.begin()).is_ready());
            // No entry takes less than its overhead of 256 bytes, so no other entry fits beside
            // this one.
            let value = self.value([0; CELLS], 0, None, budget - 500);
            let snapshot = S::snapshot(&self.database);
            let cost = Duration::ZERO;
            let outcome = permit.complete(Fill {
                value,
                tags: Vec::new(),
                snapshot,
                position: 0,
                expires: None,
                class,
                cost,
            });
            prop_assert_eq!(outcome, FillOutcome::Stored);
        }
        // No hit whose entry was evicted is valid.
        let now = moment(self.now);
        prop_assert!(!self.repeated.values().any(|hit| hit.is_valid(now)));
        self.repeated.clear();
        let stats = self.store.stats();
        prop_assert_eq!(
            (stats.entries, stats.tags, stats.flights, stats.waiting),
            (2, 0, 0, 0)
        );
        prop_assert_eq!((stats.logged, stats.logged_tags), (0, 0));
        prop_assert_eq!(self.alive.load(Ordering::Relaxed), 2);
        drop(self.store);
        prop_assert_eq!(self.alive.load(Ordering::Relaxed), 0);
        Ok(())
    }
}
