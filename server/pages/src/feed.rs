//! The two feeds of a store: what the program says, and what its database reports.

use base_clock::Boottime;
use millpond_db::DatabaseFeed;
use millpond_store::{Change, Feed, Sink, Store, Value};
use parking_lot::Mutex;
use std::sync::Arc;
use std::time::Duration;

/// Changes of the program by number, and those of a database as it reports them.
pub struct ProgramFeed;

/// The name of one change.
#[derive(Clone, Copy, Debug)]
pub enum ChangeMark {
    /// The number of a change of the program.
    Program(u64),
    /// Mark of a change of the database.
    Database(millpond_db::Mark),
}

/// Changes that a page could see. The changes of a source that it did not read are not among them.
#[derive(Clone, Debug, Default)]
pub struct SeenChanges {
    /// The program's changes up to this number.
    pub program: u64,
    /// Snapshot of the page's queries.
    pub database: Option<millpond_db::Snapshot>,
}

impl Feed for ProgramFeed {
    type Mark = ChangeMark;
    type Snapshot = SeenChanges;
    /// Pages are not put together from others, so none is needed.
    type Position = ();

    fn sees(seen: &SeenChanges, mark: ChangeMark) -> bool {
        match mark {
            ChangeMark::Program(number) => number <= seen.program,
            ChangeMark::Database(mark) => {
                let seen = seen.database.as_ref();
                seen.is_some_and(|snapshot| DatabaseFeed::sees(snapshot, mark))
            }
        }
    }

    fn snapshot_at((): ()) -> SeenChanges {
        SeenChanges::default()
    }
}

/// Until when each source of a store vouches for its pages; none before it was heard first.
#[derive(Clone, Copy, Debug)]
struct VouchedUntil {
    program: Option<Boottime>,
    database: Option<Boottime>,
}

/// Notes what is heard of the sources, and tells the store the earlier of both.
pub struct Heard<V: Value> {
    store: Arc<Store<V, ProgramFeed>>,
    until: Mutex<VouchedUntil>,
}

impl<V: Value> Heard<V> {
    /// Begins to hear. Of a store without a database, or whose program tells its changes when it
    /// makes them, that source is always the newest.
    #[must_use]
    pub fn new(store: Arc<Store<V, ProgramFeed>>, is_watched: bool, has_database: bool) -> Self {
        let always = |is_always: bool| is_always.then_some(Boottime::NEVER);
        let heard = Self {
            store,
            until: Mutex::new(VouchedUntil {
                program: always(!is_watched),
                database: always(!has_database),
            }),
        };
        heard.note(|_| ());
        heard
    }

    /// Notes until when the program vouches for its source.
    pub fn program(&self, until: Boottime) {
        self.note(|vouched| vouched.program = Some(until));
    }

    fn database(&self, until: Boottime) {
        self.note(|vouched| vouched.database = Some(until));
    }

    /// The store adds no bound of its own: the moment is the end.
    fn note(&self, note: impl FnOnce(&mut VouchedUntil)) {
        let mut until = self.until.lock();
        note(&mut until);
        if let (Some(program), Some(database)) = (until.program, until.database) {
            self.store.heartbeat(program.min(database), ());
        }
    }
}

/// Sink that a database notifies. It does not hold the database.
pub struct DatabaseSink<V: Value> {
    /// The store of the pages.
    pub store: Arc<Store<V, ProgramFeed>>,
    /// State of the page's sources.
    pub heard: Arc<Heard<V>>,
    /// The bound of the database.
    pub max_staleness: Duration,
}

impl<V: Value> Sink<DatabaseFeed> for DatabaseSink<V> {
    fn apply(&self, change: Change<DatabaseFeed>) {
        let mark = ChangeMark::Database(change.mark);
        let tags = change.tags;
        self.store.apply(Change { mark, tags });
    }

    fn visible(&self, snapshot: &millpond_db::Snapshot) {
        self.store.visible(&SeenChanges {
            program: 0,
            database: Some(snapshot.clone()),
        });
    }

    fn heartbeat(&self, sent: Boottime, _: u64) {
        self.heard.database(sent.plus(self.max_staleness));
    }

    fn new_epoch(&self, reason: &str) {
        self.store.new_epoch(reason);
    }
}
