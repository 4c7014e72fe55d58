//! The two feeds of a store: what the program says, and what its database reports.

use base_clock::Boottime;
use millpond_db::DatabaseFeed;
use millpond_store::{Change, Feed, Sink};
use parking_lot::Mutex;
use std::sync::Arc;
use std::time::Duration;

use crate::store::PageStore;

/// Changes of the program by number, and those of a database as it reports them.
pub(crate) struct ProgramFeed;

/// The name of one change.
#[derive(Clone, Copy, Debug)]
pub(crate) enum ChangeMark {
    Program(u64),
    Database(millpond_db::Mark),
}

/// What a page could see. What it did not read of, it does not see.
#[derive(Clone, Debug, Default)]
pub(crate) struct SeenChanges {
    /// The program's changes up to this number.
    pub(crate) program: u64,
    /// What the snapshot of its queries could see.
    pub(crate) database: Option<millpond_db::Snapshot>,
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
pub(crate) struct Heard {
    pages: Arc<PageStore>,
    until: Mutex<VouchedUntil>,
}

impl Heard {
    /// Of a store without a database, or whose program tells its changes when it makes them, that
    /// source is always the newest.
    pub(crate) fn new(pages: Arc<PageStore>, is_watched: bool, has_database: bool) -> Self {
        let always = |is_always: bool| is_always.then_some(Boottime::NEVER);
        let heard = Self {
            pages,
            until: Mutex::new(VouchedUntil {
                program: always(!is_watched),
                database: always(!has_database),
            }),
        };
        heard.note(|_| ());
        heard
    }

    pub(crate) fn program(&self, until: Boottime) {
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
            self.pages.heartbeat(program.min(database), ());
        }
    }
}

/// What a database notifies. It does not hold the database.
pub(crate) struct DatabaseSink {
    pub(crate) pages: Arc<PageStore>,
    pub(crate) heard: Arc<Heard>,
    pub(crate) max_staleness: Duration,
}

impl Sink<DatabaseFeed> for DatabaseSink {
    fn apply(&self, change: Change<DatabaseFeed>) {
        let mark = ChangeMark::Database(change.mark);
        let tags = change.tags;
        self.pages.apply(Change { mark, tags });
    }

    fn visible(&self, snapshot: &millpond_db::Snapshot) {
        self.pages.visible(&SeenChanges {
            program: 0,
            database: Some(snapshot.clone()),
        });
    }

    fn heartbeat(&self, sent: Boottime, _: u64) {
        self.heard.database(sent.plus(self.max_staleness));
    }

    fn new_epoch(&self, reason: &str) {
        self.pages.new_epoch(reason);
    }
}
