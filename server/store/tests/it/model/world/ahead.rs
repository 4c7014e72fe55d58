//! Values that are made ahead, beside all other steps.

use proptest::{prelude::*, test_runner::TestCaseResult};

use super::{Flying, MAX_AHEAD, OBJECTS, Source, World, key, moment};

impl<S: Source> World<S> {
    /// Begins what is offered next, as the attendant does.
    pub(super) fn take_ahead(&mut self) -> TestCaseResult {
        self.store.sweep(moment(self.now));
        prop_assert!(self.store.stats().ahead <= MAX_AHEAD);
        match self.store.next_ahead(moment(self.now)) {
            Some((key, _)) => {
                self.offered += 1;
                self.lead_ahead(&key)
            }
            None => Ok(()),
        }
    }

    /// Begins what was not offered, as after a restart.
    pub(super) fn warm(&mut self, n: usize) -> TestCaseResult {
        self.lead_ahead(&key(n))
    }

    fn lead_ahead(&mut self, key: &[u8]) -> TestCaseResult {
        let now = moment(self.now);
        let Some(mut permit) = self.store.lead_ahead(key, now) else {
            return Ok(());
        };
        prop_assert!(self.store.get(key, now).is_err(), "it was there already");
        permit.renewable();
        self.flying.push(Flying {
            permit,
            object: usize::from(key[0]) % OBJECTS.len(),
            departed: false,
            read: None,
        });
        Ok(())
    }
}
