//! The database, the store, fills and requests, one step at a time.

mod ahead;
mod promise;

use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    task::Poll,
    time::Duration,
};

use base_clock::Boottime;
use millpond_store::{
    Change, Class, Config, Fill, FlightEnd, FlightWaiter, Hit, Joined, Need, Permit, Sink, Store,
    Tag, Value,
};
use proptest::{prelude::*, test_runner::TestCaseResult};

use super::{
    Landing, Step,
    database::{CELLS, Cells, Database, Source, cell_tag, table_tag},
};
use crate::support::poll_once;

const MAX_STALENESS: u64 = 300;
const MEMORY: usize = 6000;
const HEAVY: usize = 2500;
const MAX_AHEAD: usize = 3;
/// Copies of each object under other keys, so that the memory does not suffice for all.
const COPIES: usize = 4;
/// The cells that each object reads, and whether it depends on their tables or on themselves.
const OBJECTS: [(u8, bool); 6] = [
    (0b0001, false),
    (0b0010, false),
    (0b0011, false),
    (0b0110, false),
    (0b1100, true),
    (0b1111, true),
];
/// A page is made of two objects.
const PAGES: [[usize; 2]; 3] = [[0, 1], [2, 4], [3, 5]];

/// Cells that were read, and how they must be looked at.
struct Read {
    /// Of the cells outside of `reads` nothing is said.
    cells: Cells,
    reads: u8,
    expires: Option<Boottime>,
    weight: usize,
    alive: Arc<AtomicUsize>,
}

impl Value for Read {
    fn weight(&self) -> usize {
        self.weight
    }
}

impl Drop for Read {
    fn drop(&mut self) {
        self.alive.fetch_sub(1, Ordering::Relaxed);
    }
}

struct Flying<S: Source> {
    permit: Permit<Read, S>,
    object: usize,
    departed: bool,
    read: Option<(Cells, S::Snapshot, u64)>,
}

struct Asking {
    waiting: FlightWaiter<Read>,
    /// The commits that the answer has to reflect.
    owed: Vec<u64>,
}

pub(super) struct World<S: Source> {
    database: Database,
    store: Arc<Store<Read, S>>,
    now: u64,
    flying: Vec<Flying<S>>,
    asking: Vec<Asking>,
    alive: Arc<AtomicUsize>,
    /// Hits under each key, for requests that are repeated.
    repeated: BTreeMap<[u8; 2], Hit<Read, S>>,
    pub(super) hits: usize,
    pub(super) landed: usize,
    pub(super) combined: usize,
    pub(super) offered: usize,
}

fn moment(now: u64) -> Boottime {
    Boottime::from_nanos(now)
}

fn key(n: usize) -> [u8; 2] {
    [
        (n % OBJECTS.len()) as u8,
        (n / OBJECTS.len() % COPIES) as u8,
    ]
}

fn page_key(page: usize) -> [u8; 3] {
    [b'p', b'p', page as u8]
}

fn tags(object: usize) -> Vec<Tag> {
    let (reads, wide) = OBJECTS[object];
    let tag = if wide { table_tag } else { cell_tag };
    (0..CELLS)
        .filter(|cell| reads >> cell & 1 == 1)
        .map(tag)
        .collect()
}

impl<S: Source> World<S> {
    pub(super) fn new() -> Self {
        let config = Config {
            memory: MEMORY,
            negative_percent: 20,
            max_staleness: Duration::from_nanos(MAX_STALENESS),
            logged_changes: 6,
            logged_tags: 24,
            flights: 6,
            waiters: 6,
            ahead: MAX_AHEAD,
        };
        Self {
            database: Database::default(),
            store: Store::new(config),
            now: 1000,
            flying: Vec::new(),
            asking: Vec::new(),
            alive: Arc::default(),
            repeated: BTreeMap::new(),
            hits: 0,
            landed: 0,
            combined: 0,
            offered: 0,
        }
    }

    pub(super) fn take(&mut self, step: &Step) -> TestCaseResult {
        // Two things that happen one after the other happen at different times.
        self.now += 1;
        match *step {
            Step::Wait(time) => self.now += u64::from(time),
            Step::Begin(writes) => self.database.begin(writes),
            Step::Flush(n) => self.flush(n),
            Step::Show(n) => self.show(n),
            Step::Bring => self.bring(),
            Step::Tell => self.store.visible(&S::snapshot(&self.database)),
            Step::Beat(early) => {
                let sent = self
                    .database
                    .heard(self.now)
                    .saturating_sub(u64::from(early));
                self.store.heartbeat(moment(sent), self.database.brought);
            }
            Step::Lose => self.lose(),
            Step::Renew => self.store.new_epoch("nothing was lost"),
            Step::Get(n) => return self.get(n),
            Step::Join(n, strict) => self.join(n, strict),
            Step::Depart(n) => self.depart(n)?,
            Step::Read(n) => self.read(n),
            Step::Also(n, object) => self.also(n, object),
            Step::Land(n, landing) => self.land(n, landing),
            Step::Ahead => return self.take_ahead(),
            Step::Warm(n) => return self.warm(n),
            Step::Fold => self.store.fold_heat(),
            Step::Fill(n) => return self.make(n),
            Step::Combine(n) => return self.combine(n),
            Step::Poll(n) => return self.poll(n),
            Step::GiveUp(n) => drop(pick(&mut self.asking, n)),
            Step::Grow(n, bytes) => {
                if let Ok(value) = self.store.get(&key(n), moment(self.now)) {
                    self.store.grow(&key(n), value.value(), bytes.into());
                }
            }
        }
        Ok(())
    }

    fn flush(&mut self, n: usize) {
        let running = self.database.which(|it| it.commit == 0);
        if let Some(&at) = running.get(n % running.len().max(1)) {
            self.database.flush(at, self.now);
        }
    }

    fn show(&mut self, n: usize) {
        let unseen = self.database.unseen();
        let n = if S::IN_ORDER {
            0
        } else {
            n % unseen.len().max(1)
        };
        if let Some(&at) = unseen.get(n) {
            self.database.show(at, self.now);
        }
    }

    fn bring(&mut self) {
        let next = self.database.brought + 1;
        if let Some(&at) = self.database.which(|it| it.commit == next).first() {
            let it = &mut self.database.transactions[at];
            it.applied = true;
            self.store.apply(Change {
                mark: S::mark(it),
                tags: it.tags(),
            });
            self.database.brought = next;
        }
    }

    /// A feed starts when what it will not bring is visible (coherence.md, rule 7).
    fn lose(&mut self) {
        let lost = self.database.brought + 1..;
        for at in self.database.unseen() {
            if S::IN_ORDER || lost.contains(&self.database.transactions[at].commit) {
                self.database.show(at, self.now);
            }
        }
        self.database.brought = self.database.commits;
        self.store.new_epoch("the feed was lost");
    }

    fn get(&mut self, n: usize) -> TestCaseResult {
        let owed = self.owed(true);
        let now = moment(self.now);
        // A hit that is still valid is what a look-up finds.
        let earlier = self.repeated.remove(&key(n));
        let earlier = earlier.filter(|hit| hit.is_valid(now));
        let found = self.store.get(&key(n), now);
        if let Some(earlier) = earlier {
            let is_found = found
                .as_ref()
                .map(|found| Arc::ptr_eq(found.value(), earlier.value()));
            prop_assert_eq!(is_found, Ok(true));
        }
        if let Ok(hit) = found {
            self.hits += 1;
            prop_assert!(hit.expires.is_none_or(|end| moment(self.now) < end));
            self.check(hit.value(), &owed)?;
            self.repeated.insert(key(n), hit);
        }
        let page = n % PAGES.len();
        if let Ok(hit) = self.store.get(&page_key(page), moment(self.now)) {
            self.check(hit.value(), &owed)?;
            self.check_one_state(&[hit.value().clone()])?;
        }
        Ok(())
    }

    fn join(&mut self, n: usize, strict: bool) {
        let strict = strict || !self.store.healthy(moment(self.now));
        let need = if strict { Need::Unbegun } else { Need::Any };
        let mut owed = self.owed(false);
        if strict {
            // The feed is too old to vouch for a flight: the answer is read after the request.
            owed = self
                .database
                .transactions
                .iter()
                .filter(|it| it.visible_at.is_some())
                .map(|it| it.commit)
                .collect();
        }
        match self.store.join(&key(n), need) {
            Joined::Lead(mut permit) => {
                permit.renewable();
                self.flying.push(Flying {
                    permit,
                    object: n % OBJECTS.len(),
                    departed: false,
                    read: None,
                });
            }
            Joined::Wait(waiting) => self.asking.push(Asking { waiting, owed }),
            Joined::Refused => {}
        }
    }

    fn depart(&mut self, n: usize) -> TestCaseResult {
        let Some(flying) = at(&mut self.flying, n) else {
            return Ok(());
        };
        let ready = poll_once(flying.permit.begin()).is_ready();
        prop_assert!(ready || !flying.departed);
        flying.departed = ready;
        Ok(())
    }

    fn read(&mut self, n: usize) {
        let Some(flying) = at(&mut self.flying, n).filter(|flying| flying.departed) else {
            return;
        };
        flying.read = Some((
            self.database.read(),
            S::snapshot(&self.database),
            self.database.commits,
        ));
    }

    fn fill(
        &self,
        object: usize,
        read: (Cells, S::Snapshot, u64),
        landing: Landing,
    ) -> Fill<Read, S> {
        let expires = match landing {
            Landing::MaxAge(age) => Some(moment(self.now + u64::from(age))),
            _ => None,
        };
        let weight = if matches!(landing, Landing::Heavy) {
            HEAVY
        } else {
            100 * object
        };
        let (cells, snapshot, position) = read;
        Fill {
            value: self.value(cells, OBJECTS[object].0, expires, weight),
            tags: tags(object),
            snapshot,
            position,
            expires,
            class: if matches!(landing, Landing::Negative) {
                Class::Negative
            } else {
                Class::Normal
            },
            cost: Duration::from_micros(1 << (object * 3)),
        }
    }

    fn value(
        &self,
        cells: Cells,
        reads: u8,
        expires: Option<Boottime>,
        weight: usize,
    ) -> Arc<Read> {
        self.alive.fetch_add(1, Ordering::Relaxed);
        Arc::new(Read {
            cells,
            reads,
            expires,
            weight,
            alive: self.alive.clone(),
        })
    }

    fn also(&mut self, n: usize, object: usize) {
        let Some((flying, read)) = at(&mut self.flying, n)
            .and_then(|it| Some((it.permit.key().to_owned(), it.read.clone()?)))
        else {
            return;
        };
        let fill = self.fill(object % OBJECTS.len(), read, Landing::Complete);
        let flying = self
            .flying
            .iter()
            .find(|it| it.permit.key() == flying && it.read.is_some());
        let _ = flying
            .expect("it was there")
            .permit
            .also(&key(object), fill);
    }

    fn land(&mut self, n: usize, landing: Landing) {
        let ready = at(&mut self.flying, n).is_some_and(|flying| flying.read.is_some());
        let gives = !matches!(landing, Landing::Fail | Landing::Alone | Landing::Drop);
        if gives && !ready {
            return;
        }
        let Some(flying) = pick(&mut self.flying, n) else {
            return;
        };
        // A failure says nothing of any cell.
        let failure = || self.value([0; CELLS], 0, None, 0);
        match landing {
            Landing::Fail => flying.permit.fail(failure()),
            Landing::Alone => flying.permit.alone(),
            Landing::Drop => drop(flying.permit),
            _ => {
                let fill = self.fill(flying.object, flying.read.expect("it has read"), landing);
                if matches!(landing, Landing::Give) {
                    flying.permit.give(fill.value);
                } else {
                    let _ = flying.permit.complete(fill);
                }
            }
        }
    }

    fn make(&mut self, n: usize) -> TestCaseResult {
        let before = self.flying.len();
        self.join(n, false);
        if self.flying.len() > before {
            self.depart(before)?;
            self.read(before);
            self.land(before, Landing::Complete);
        }
        Ok(())
    }

    fn combine(&mut self, n: usize) -> TestCaseResult {
        let page = n % PAGES.len();
        let Joined::Lead(mut permit) = self.store.join(&page_key(page), Need::Any) else {
            return Ok(());
        };
        assert!(
            poll_once(permit.begin()).is_ready(),
            "a page's flight is over at the end of the step"
        );
        // The first copy of one object and any copy of the other.
        let keys = [
            key(PAGES[page][0]),
            key(PAGES[page][1] + OBJECTS.len() * (n / PAGES.len() % COPIES)),
        ];
        let owed = self.owed(true);
        let keys = keys.each_ref().map(|key| &key[..]);
        let Some(combined) = self.store.combine(&keys, moment(self.now)) else {
            return Ok(());
        };
        self.combined += 1;
        for value in &combined.values {
            self.check(value, &owed)?;
            prop_assert!(value.expires.is_none_or(|end| moment(self.now) < end));
        }
        self.check_one_state(&combined.values)?;
        let mut cells = [0; CELLS];
        let reads = combined
            .values
            .iter()
            .fold(0, |all, value| all | value.reads);
        for value in &combined.values {
            for cell in (0..CELLS).filter(|cell| value.reads >> cell & 1 == 1) {
                cells[cell] = value.cells[cell];
            }
        }
        let fill = Fill {
            value: self.value(cells, reads, combined.expires, 300),
            tags: combined.tags,
            snapshot: S::snapshot_at(combined.position),
            position: combined.position,
            expires: combined.expires,
            class: Class::Normal,
            cost: Duration::from_millis(1),
        };
        let _ = permit.complete(fill);
        Ok(())
    }

    fn poll(&mut self, n: usize) -> TestCaseResult {
        let Some(asking) = at(&mut self.asking, n) else {
            return Ok(());
        };
        let Poll::Ready(landed) = poll_once(&mut asking.waiting) else {
            return Ok(());
        };
        let asking = pick(&mut self.asking, n).expect("it was there");
        if let FlightEnd::Value(value) = landed {
            self.landed += 1;
            self.check(&value, &asking.owed)?;
        }
        Ok(())
    }
}

fn at<T>(all: &mut [T], n: usize) -> Option<&mut T> {
    let len = all.len().max(1);
    all.get_mut(n % len)
}

fn pick<T>(all: &mut Vec<T>, n: usize) -> Option<T> {
    (!all.is_empty()).then(|| all.swap_remove(n % all.len()))
}
