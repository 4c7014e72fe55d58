//! A database in a temporary directory, with a sink that records its calls.

use std::collections::{HashMap, HashSet};
use std::future::Future;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use base_clock::Boottime;
use lab_testkit::fast_dir;
use millpond_db::{
    Bind, Call, Database, DatabaseFeed, Error, Expect, FeedKind, Mark, Migration, Query,
    ReadResult, ResultRows, Snapshot, SqliteOptions, Value, WriteResult, WriteStep,
};
use millpond_store::{Change, Feed, Sink, Tag};
use parking_lot::{Condvar, Mutex};
use tempfile::TempDir;

/// Far longer than any operation takes; it only ends a test that would wait forever.
const PATIENCE: Duration = Duration::from_secs(60);

/// One call of a sink.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum SinkCall {
    Apply(u64, Vec<Tag>),
    Visible(u64),
    Heartbeat(Boottime, u64),
    NewEpoch(String),
}

/// A cached result of the smallest store that follows the rules of coherence.
#[derive(Clone, Debug)]
pub(crate) struct CachedResult {
    pub rows: Vec<ResultRows>,
    tags: HashSet<Tag>,
}

#[derive(Default)]
struct SinkState {
    calls: Vec<SinkCall>,
    epoch: u64,
    /// Marks and tags of this epoch.
    log: Vec<(Mark, Vec<Tag>)>,
    cached: HashMap<String, CachedResult>,
    evicted: u64,
    /// The next `apply` panics.
    trap: bool,
}

/// Records its calls, and is a cache: a change evicts results that depend on its tags, an epoch
/// evicts all.
#[derive(Default)]
pub(crate) struct RecordingSink {
    state: Mutex<SinkState>,
    changed: Condvar,
}

/// The tick up to which an SQLite snapshot sees everything.
pub(crate) fn low(snapshot: &Snapshot) -> u64 {
    match snapshot {
        Snapshot::Applied(tick) => *tick,
        Snapshot::Transactions(_) => panic!("SQLite knows no transaction ids"),
    }
}

impl Sink<DatabaseFeed> for RecordingSink {
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
        state
            .calls
            .push(SinkCall::Apply(change.mark.at, change.tags));
        self.changed.notify_all();
    }

    fn visible(&self, snapshot: &Snapshot) {
        let seen = match snapshot {
            Snapshot::Applied(tick) => *tick,
            Snapshot::Transactions(transactions) => transactions.xmin(),
        };
        self.state.lock().calls.push(SinkCall::Visible(seen));
    }

    fn heartbeat(&self, sent: Boottime, position: u64) {
        self.state
            .lock()
            .calls
            .push(SinkCall::Heartbeat(sent, position));
        self.changed.notify_all();
    }

    fn new_epoch(&self, reason: &str) {
        let mut state = self.state.lock();
        state.epoch += 1;
        state.log.clear();
        state.cached.clear();
        state.calls.push(SinkCall::NewEpoch(reason.to_owned()));
        self.changed.notify_all();
    }
}

impl RecordingSink {
    pub(crate) fn calls(&self) -> Vec<SinkCall> {
        self.state.lock().calls.clone()
    }

    pub(crate) fn epoch(&self) -> u64 {
        self.state.lock().epoch
    }

    pub(crate) fn set_trap(&self) {
        self.state.lock().trap = true;
    }

    pub(crate) fn cached(&self, key: &str) -> Option<CachedResult> {
        self.state.lock().cached.get(key).cloned()
    }

    /// The result under `key`, and the send time of the last heartbeat: no earlier commit is
    /// missing from the result.
    pub(crate) fn answer(&self, key: &str) -> Option<(CachedResult, Boottime)> {
        let state = self.state.lock();
        let sent = state.calls.iter().rev().find_map(|calls| {
            if let SinkCall::Heartbeat(sent, _) = calls {
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

    /// Stores a result if the rules allow it; `epoch` was read before the read began.
    pub(crate) fn store(&self, key: &str, epoch: u64, read: &ReadResult) -> bool {
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
                CachedResult {
                    rows: read.results.clone(),
                    tags,
                },
            );
        }
        keep
    }

    /// Waits until `holds` is true for the recorded calls.
    fn wait(&self, what: &str, mut holds: impl FnMut(&SinkState) -> bool) {
        let mut state = self.state.lock();
        while !holds(&state) {
            assert!(
                !self.changed.wait_for(&mut state, PATIENCE).timed_out(),
                "no call within the timeout: {what}"
            );
        }
    }

    /// Waits for an epoch with this reason after the first `seen` calls.
    pub(crate) fn wait_for_epoch(&self, seen: usize, reason: &str) {
        self.wait(reason, |state| {
            state
                .calls
                .iter()
                .skip(seen)
                .any(|calls| matches!(calls, SinkCall::NewEpoch(calls) if calls.contains(reason)))
        });
    }

    /// Waits until no commit from before now is missing.
    pub(crate) fn settle(&self) {
        self.settle_since(Boottime::now());
    }

    /// Waits for a heartbeat that was sent at `since` or later.
    pub(crate) fn settle_since(&self, since: Boottime) {
        self.wait("a heartbeat", |state| matches!(state.calls.iter().rfind(|calls| matches!(calls, SinkCall::Heartbeat(..))), Some(SinkCall::Heartbeat(sent, _)) if *sent >= since));
    }
}

/// A database with its directory.
pub(crate) struct SqliteFixture {
    pub database: Database,
    pub sink: Arc<RecordingSink>,
    pub directory: TempDir,
}

pub(crate) fn options(path: PathBuf) -> SqliteOptions {
    SqliteOptions {
        readers: 2,
        poll: Duration::from_millis(1),
        statement_timeout: PATIENCE,
        busy_timeout: PATIENCE,
        ..SqliteOptions::new(path)
    }
}

impl SqliteFixture {
    /// Creates a database with this schema, and starts the feed.
    pub(crate) fn new(schema: &str) -> Self {
        Self::with(schema, |_| {})
    }

    pub(crate) fn with(schema: &str, adjust: impl FnOnce(&mut SqliteOptions)) -> Self {
        Self::open(fast_dir(), schema, adjust)
    }

    /// With triggers that record the changes of other programs.
    pub(crate) fn recorded(schema: &str) -> Self {
        Self::recorded_with(schema, |_| {})
    }

    pub(crate) fn recorded_with(schema: &str, adjust: impl FnOnce(&mut SqliteOptions)) -> Self {
        let fixture = Self::with(schema, |options| {
            options.feed = FeedKind::Triggers;
            adjust(options);
        });
        fixture.add_triggers();
        fixture
    }

    /// Makes the database in a folder on disk.
    pub(crate) fn recorded_on_disk(schema: &str) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let fixture = Self::open(directory, schema, |options| {
            options.feed = FeedKind::Triggers;
        });
        fixture.add_triggers();
        fixture
    }

    /// Does what `millpond check --fix` does.
    pub(crate) fn add_triggers(&self) {
        for requirement in self.database.requirements(&[]).unwrap() {
            assert!(requirement.may_fix);
            self.database.repair(&requirement).unwrap();
        }
        assert_eq!(self.database.requirements(&[]).unwrap(), []);
        // A transaction that writes nothing looks for other programs' commits first.
        self.try_write("delete from _millpond_change", vec![])
            .unwrap();
    }

    /// Another server on the same file.
    pub(crate) fn neighbour(&self) -> Self {
        let mut options = options(self.path());
        options.feed = FeedKind::Triggers;
        Self::started(Database::open(options).unwrap(), fast_dir())
    }

    /// In a folder on disk, for tests that replace or move the file.
    pub(crate) fn on_disk(schema: &str) -> Self {
        Self::open(tempfile::tempdir().unwrap(), schema, |_| {})
    }

    fn open(directory: TempDir, schema: &str, adjust: impl FnOnce(&mut SqliteOptions)) -> Self {
        let mut options = options(directory.path().join("site.db"));
        adjust(&mut options);
        let database = Database::open(options).unwrap();
        database
            .migrate(&[Migration {
                name: "0001".into(),
                sql: schema.into(),
            }])
            .unwrap();
        Self::started(database, directory)
    }

    fn started(database: Database, directory: TempDir) -> Self {
        let sink = Arc::new(RecordingSink::default());
        // Taken before the start: the first poll may be the only one for an hour.
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

    /// A connection of another program to the same file.
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

    pub(crate) fn try_write(&self, sql: &str, params: Vec<Value>) -> Result<WriteResult, Error> {
        let bind = params.into_iter().map(Bind::Value).collect();
        let query = self.database.prepare(sql).map_err(|error| Error::Sql {
            message: error.to_string(),
            sql: sql.into(),
        })?;
        wait(self.database.write(vec![WriteStep {
            query,
            bind,
            expect: Expect::Many,
        }]))
    }

    pub(crate) fn write(&self, sql: &str, params: Vec<Value>) -> ResultRows {
        self.try_write(sql, params)
            .unwrap_or_else(|error| panic!("{error}, in: {sql}"))
            .results
            .remove(0)
    }

    pub(crate) fn read(&self, query: &Query, params: Vec<Value>) -> ReadResult {
        wait(self.database.read(vec![Call {
            query: query.clone(),
            params,
        }]))
        .unwrap_or_else(|error| panic!("{error}, in: {}", query.sql()))
    }

    /// Reads until a read ends within the statement timeout of a test that has a short one: a slow
    /// machine may need more than one attempt.
    pub(crate) fn rows_in_time(&self, query: &Query) -> Vec<Vec<Value>> {
        in_time(|| self.try_read(query, &[])).results.remove(0).rows
    }

    pub(crate) fn rows(&self, query: &Query, params: Vec<Value>) -> Vec<Vec<Value>> {
        self.read(query, params).results.remove(0).rows
    }

    pub(crate) fn try_read(&self, query: &Query, params: &[Value]) -> Result<ReadResult, Error> {
        wait(self.database.read(vec![Call {
            query: query.clone(),
            params: params.to_vec(),
        }]))
    }

    /// Reads, and stores the result under `key`.
    pub(crate) fn fill(&self, key: &str, query: &Query, params: &[Value]) {
        assert!(self.try_fill(key, query, params), "{}", query.sql());
    }

    /// Reads, and stores the result under `key` if the read succeeds.
    pub(crate) fn try_fill(&self, key: &str, query: &Query, params: &[Value]) -> bool {
        loop {
            let epoch = self.sink.epoch();
            let Ok(read) = self.try_read(query, params) else {
                return false;
            };
            assert_eq!(read.deps[0].uncacheable, None, "{}", query.sql());
            // A poll may have begun an epoch in between, for an earlier commit.
            if self.sink.store(key, epoch, &read) {
                return true;
            }
        }
    }

    /// True if a write evicts a cached result.
    pub(crate) fn evicts(&self, query: &Query, params: &[Value], write: &str) -> bool {
        let written = self.prepare(write);
        self.fill("probe", query, params);
        let before = self.sink.epoch();
        wait(self.database.write(vec![WriteStep {
            query: written,
            bind: Vec::new(),
            expect: Expect::Exec,
        }]))
        .unwrap();
        assert_eq!(
            self.sink.epoch(),
            before,
            "an epoch would hide what the tags do: {:?}",
            self.sink.calls().last()
        );
        self.sink.cached("probe").is_none()
    }
}

/// Describes the dependencies of each query, on a database with this schema.
pub(crate) fn descriptions(schema: &str, queries: &[&str]) -> String {
    let fixture = SqliteFixture::new(schema);
    let mut text = String::new();
    for sql in queries {
        text += &format!("{sql}\n");
        match fixture.database.prepare(sql) {
            Ok(query) => {
                for line in query.describe() {
                    text += &format!("    {line}\n");
                }
            }
            Err(error) => text += &format!("    error: {error} at {:?}\n", error.offset),
        }
    }
    text
}

/// The first result of `attempt` that is no timeout.
pub(crate) fn in_time<T>(mut attempt: impl FnMut() -> Result<T, Error>) -> T {
    let give_up = Boottime::now().plus(PATIENCE);
    loop {
        match attempt() {
            Err(Error::Timeout { .. }) => assert!(Boottime::now() < give_up, "never in time"),
            outcome => return outcome.unwrap(),
        }
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
