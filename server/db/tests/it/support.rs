//! A database in a temporary directory, with a sink that writes down what it is told.

use std::collections::{HashMap, HashSet};
use std::future::Future;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use base_clock::Boottime;
use millpond_db::{
    Bind, Call, Database, DatabaseFeed, Error, Expect, Mark, Migration, Options, Query, Read, Rows,
    Snapshot, Step, Value, Written,
};
use millpond_store::{Change, Feed, Sink, Tag};
use parking_lot::{Condvar, Mutex};
use tempfile::TempDir;

/// Far longer than anything takes; it only ends a test that would wait for ever.
const PATIENCE: Duration = Duration::from_secs(60);

/// One call of a sink.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Told {
    Apply(u64, Vec<Tag>),
    Visible(u64),
    Heartbeat(Boottime, u64),
    NewEpoch(String),
}

/// A cached result of the smallest store that keeps the promise.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub rows: Vec<Rows>,
    tags: HashSet<Tag>,
}

#[derive(Default)]
struct State {
    told: Vec<Told>,
    epoch: u64,
    /// Marks and tags of this epoch.
    log: Vec<(Mark, Vec<Tag>)>,
    cached: HashMap<String, Entry>,
    evicted: u64,
    /// Panics at the next `apply`.
    trap: bool,
}

/// Writes down what it is told, and is a cache: changes evict what depends on their tags, epochs everything.
#[derive(Default)]
pub(crate) struct Witness {
    state: Mutex<State>,
    changed: Condvar,
}

/// The tick up to which an SQLite snapshot sees everything.
pub(crate) fn low(snapshot: &Snapshot) -> u64 {
    match snapshot {
        Snapshot::Applied(tick) => *tick,
        Snapshot::Transactions(_) => panic!("SQLite knows no transaction ids"),
    }
}

impl Sink<DatabaseFeed> for Witness {
    fn apply(&self, change: Change<DatabaseFeed>) {
        let mut state = self.state.lock();
        if std::mem::take(&mut state.trap) {
            drop(state);
            panic!("the trap in the test's sink");
        }
        let before = state.cached.len();
        state
            .cached
            .retain(|_, entry| !change.tags.iter().any(|tag| entry.tags.contains(tag)));
        state.evicted += (before - state.cached.len()) as u64;
        state.log.push((change.mark, change.tags.clone()));
        state.told.push(Told::Apply(change.mark.at, change.tags));
        self.changed.notify_all();
    }

    fn visible(&self, snapshot: &Snapshot) {
        let seen = match snapshot {
            Snapshot::Applied(tick) => *tick,
            Snapshot::Transactions(transactions) => transactions.xmin(),
        };
        self.state.lock().told.push(Told::Visible(seen));
    }

    fn heartbeat(&self, sent: Boottime, position: u64) {
        self.state.lock().told.push(Told::Heartbeat(sent, position));
        self.changed.notify_all();
    }

    fn new_epoch(&self, reason: &str) {
        let mut state = self.state.lock();
        state.epoch += 1;
        state.log.clear();
        state.cached.clear();
        state.told.push(Told::NewEpoch(reason.to_owned()));
        self.changed.notify_all();
    }
}

impl Witness {
    pub(crate) fn told(&self) -> Vec<Told> {
        self.state.lock().told.clone()
    }

    pub(crate) fn epoch(&self) -> u64 {
        self.state.lock().epoch
    }

    pub(crate) fn set_trap(&self) {
        self.state.lock().trap = true;
    }

    pub(crate) fn cached(&self, key: &str) -> Option<Entry> {
        self.state.lock().cached.get(key).cloned()
    }

    /// What is kept under `key`, and up to when nothing that was committed is missing from it.
    pub(crate) fn answer(&self, key: &str) -> Option<(Entry, Boottime)> {
        let state = self.state.lock();
        let sent = state.told.iter().rev().find_map(|told| {
            if let Told::Heartbeat(sent, _) = told {
                Some(*sent)
            } else {
                None
            }
        });
        Some((state.cached.get(key)?.clone(), sent?))
    }

    pub(crate) fn cached_len(&self) -> usize {
        self.state.lock().cached.len()
    }

    /// Keeps what was read, if the rules allow it; `epoch` was noted before the read began.
    pub(crate) fn store(&self, key: &str, epoch: u64, read: &Read) -> bool {
        let mut state = self.state.lock();
        let tags: HashSet<Tag> = read
            .deps
            .iter()
            .flat_map(|deps| deps.tags.iter().copied())
            .collect();
        let fenced = state.log.iter().any(|(mark, touched)| {
            !DatabaseFeed::sees(&read.snapshot, *mark)
                && touched.iter().any(|tag| tags.contains(tag))
        });
        let keep = state.epoch == epoch
            && !fenced
            && read.uncovered.is_none()
            && read.deps.iter().all(|deps| deps.uncacheable.is_none());
        if keep {
            state.cached.insert(
                key.to_owned(),
                Entry {
                    rows: read.results.clone(),
                    tags,
                },
            );
        }
        keep
    }

    /// Waits until `holds` of what was told.
    fn wait(&self, what: &str, mut holds: impl FnMut(&State) -> bool) {
        let mut state = self.state.lock();
        while !holds(&state) {
            assert!(
                !self.changed.wait_for(&mut state, PATIENCE).timed_out(),
                "waited in vain for {what}"
            );
        }
    }

    /// Waits for an epoch with this reason after the first `seen` calls.
    pub(crate) fn wait_for_epoch(&self, seen: usize, reason: &str) {
        self.wait(reason, |state| {
            state
                .told
                .iter()
                .skip(seen)
                .any(|told| matches!(told, Told::NewEpoch(told) if told.contains(reason)))
        });
    }

    /// Waits until nothing that was committed before now is missing.
    pub(crate) fn settle(&self) {
        self.settle_since(Boottime::now());
    }

    /// Waits for a heartbeat that was sent at `since` or later.
    pub(crate) fn settle_since(&self, since: Boottime) {
        self.wait("a heartbeat", |state| matches!(state.told.iter().rfind(|told| matches!(told, Told::Heartbeat(..))), Some(Told::Heartbeat(sent, _)) if *sent >= since));
    }
}

/// A database with its directory.
pub(crate) struct Fixture {
    pub database: Database,
    pub sink: Arc<Witness>,
    pub directory: TempDir,
}

pub(crate) fn options(path: PathBuf) -> Options {
    Options {
        readers: 2,
        poll: Duration::from_millis(1),
        statement_timeout: PATIENCE,
        busy_timeout: PATIENCE,
        ..Options::new(path)
    }
}

impl Fixture {
    /// With this schema, and the feed started.
    pub(crate) fn new(schema: &str) -> Self {
        Self::with(schema, |_| {})
    }

    pub(crate) fn with(schema: &str, adjust: impl FnOnce(&mut Options)) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let mut options = options(directory.path().join("site.db"));
        adjust(&mut options);
        let database = Database::open(options).unwrap();
        database
            .migrate(&[Migration {
                name: "0001".into(),
                sql: schema.into(),
            }])
            .unwrap();
        let sink = Arc::new(Witness::default());
        // From before the start: the first poll may be the only one for an hour.
        let before = Boottime::now();
        database.start(Arc::clone(&sink) as Arc<dyn Sink<DatabaseFeed>>);
        sink.settle_since(before);
        Self {
            database,
            sink,
            directory,
        }
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.directory.path().join("site.db")
    }

    /// Another program with the same file open.
    pub(crate) fn foreign(&self) -> rusqlite::Connection {
        let connection = rusqlite::Connection::open(self.path()).unwrap();
        connection.busy_timeout(PATIENCE).unwrap();
        connection
    }

    pub(crate) fn prepare(&self, sql: &str) -> Query {
        self.database
            .prepare(sql)
            .unwrap_or_else(|error| panic!("{error}, in: {sql}"))
    }

    pub(crate) fn try_write(&self, sql: &str, params: Vec<Value>) -> Result<Written, Error> {
        let bind = params.into_iter().map(Bind::Value).collect();
        let query = self.database.prepare(sql).map_err(|error| Error::Sql {
            message: error.to_string(),
            sql: sql.into(),
        })?;
        wait(self.database.write(vec![Step {
            query,
            bind,
            expect: Expect::Many,
        }]))
    }

    pub(crate) fn write(&self, sql: &str, params: Vec<Value>) -> Rows {
        self.try_write(sql, params)
            .unwrap_or_else(|error| panic!("{error}, in: {sql}"))
            .results
            .remove(0)
    }

    pub(crate) fn read(&self, query: &Query, params: Vec<Value>) -> Read {
        wait(self.database.read(vec![Call {
            query: query.clone(),
            params,
        }]))
        .unwrap_or_else(|error| panic!("{error}, in: {}", query.sql()))
    }

    pub(crate) fn rows(&self, query: &Query, params: Vec<Value>) -> Vec<Vec<Value>> {
        self.read(query, params).results.remove(0).rows
    }

    pub(crate) fn try_read(&self, query: &Query, params: &[Value]) -> Result<Read, Error> {
        wait(self.database.read(vec![Call {
            query: query.clone(),
            params: params.to_vec(),
        }]))
    }

    /// Reads and keeps the result under `key`.
    pub(crate) fn fill(&self, key: &str, query: &Query, params: &[Value]) {
        assert!(self.try_fill(key, query, params), "{}", query.sql());
    }

    /// The same, if there is a result.
    pub(crate) fn try_fill(&self, key: &str, query: &Query, params: &[Value]) -> bool {
        loop {
            let epoch = self.sink.epoch();
            let Ok(read) = self.try_read(query, params) else {
                return false;
            };
            assert_eq!(read.deps[0].uncacheable, None, "{}", query.sql());
            // A poll may have begun an epoch meanwhile, for a commit from before.
            if self.sink.store(key, epoch, &read) {
                return true;
            }
        }
    }

    /// Whether a write makes a cached result go.
    pub(crate) fn evicts(&self, query: &Query, params: &[Value], write: &str) -> bool {
        let written = self.prepare(write);
        self.fill("probe", query, params);
        let before = self.sink.epoch();
        wait(self.database.write(vec![Step {
            query: written,
            bind: Vec::new(),
            expect: Expect::Exec,
        }]))
        .unwrap();
        assert_eq!(
            self.sink.epoch(),
            before,
            "an epoch would hide what the tags do: {:?}",
            self.sink.told().last()
        );
        self.sink.cached("probe").is_none()
    }
}

pub(crate) fn wait<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap()
        .block_on(future)
}

pub(crate) fn int(integer: i64) -> Value {
    Value::Integer(integer)
}

pub(crate) fn text(text: &str) -> Value {
    text.into()
}
