//! A commit that the feed brings before it is visible (coherence.md, rule 2), for two caches that
//! are told of it alike: one that counts versions, and the store. PostgreSQL streams a commit once
//! its record is on disk; one that waits for a synchronous standby is visible only after that. The
//! standby here does not exist.

use std::collections::HashMap;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use base_clock::Boottime;
use lab_pgtest::{Options, Postgres};
use millpond_db::{Database, DatabaseFeed, Query, ReadResult, Snapshot, Value};
use millpond_store::{
    Change, Class, Config, Fill, FillOutcome, Joined, MissReason, Need, Sink, Store, Tag,
    Value as Stored,
};
use parking_lot::Mutex;
use postgres::{Client, NoTls};

use super::{PATIENCE, options, prepare, try_read};
use crate::support::{int, text, wait};

const SCHEMA: &str = "create table t (id integer primary key, word text);
insert into t values (1, 'old'); create publication millpond for all tables;";
const KEY: &str = "the word";
const HANGS: &str = "select exists (select from pg_stat_activity where wait_event = 'SyncRep' and query like 'update%')";

/// Waits for something that happens by itself.
fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let give_up = Boottime::now().plus(PATIENCE);
    while !holds() {
        assert!(Boottime::now() < give_up, "never: {what}");
        std::thread::sleep(Duration::from_millis(1));
    }
}

fn connect(server: &Postgres) -> Client {
    Client::connect(&server.url(), NoTls).unwrap()
}

/// Names the standbys for which commits wait.
fn standbys(client: &mut Client, names: &str) {
    let set = format!("alter system set synchronous_standby_names = '{names}'");
    client.batch_execute(&set).unwrap();
    client.batch_execute("select pg_reload_conf()").unwrap();
    until("the setting holds", || {
        let row = client.query_one("select current_setting('synchronous_standby_names')", &[]);
        row.unwrap().get::<_, &str>(0) == names
    });
}

/// Commits another word and hangs, after the commit is in the log; returns while it does.
fn hanging_commit(server: &Postgres, client: &mut Client) -> JoinHandle<()> {
    standbys(client, "nobody");
    let mut writer = connect(server);
    let hanging = std::thread::spawn(move || {
        writer.batch_execute("set synchronous_commit = on").unwrap();
        let update = "update t set word = 'new' where id = 1";
        writer.batch_execute(update).unwrap();
    });
    until("the commit hangs", || {
        client.query_one(HANGS, &[]).unwrap().get(0)
    });
    hanging
}

/// The versions of what results depend on; all of it moves with the epoch.
#[derive(Default)]
struct Versions {
    epoch: u64,
    counts: HashMap<Tag, u64>,
    heard: Option<Boottime>,
}

/// A result, with the counts from before it was read.
struct Kept {
    value: Value,
    tags: Vec<Tag>,
    counts: Vec<u64>,
}

/// Cache of a common kind: each change counts one up at its tags, and a result is kept with the
/// counts from before it was read. The result is given for as long as the counts are the same.
#[derive(Default)]
struct Counted {
    versions: Mutex<Versions>,
    kept: Mutex<Option<Kept>>,
}

impl Counted {
    fn counts(&self, tags: &[Tag]) -> Vec<u64> {
        let versions = self.versions.lock();
        let count = |tag| versions.counts.get(tag).copied().unwrap_or_default();
        let counts = tags.iter().map(count);
        counts.chain([versions.epoch]).collect()
    }

    /// Keeps a value that was read after `before` was noted.
    fn keep(&self, value: Value, tags: &[Tag], before: Vec<u64>) {
        *self.kept.lock() = Some(Kept {
            value,
            tags: tags.to_vec(),
            counts: before,
        });
    }

    fn get(&self) -> Option<Value> {
        let kept = self.kept.lock();
        let kept = kept.as_ref()?;
        (self.counts(&kept.tags) == kept.counts).then(|| kept.value.clone())
    }
}

impl Sink<DatabaseFeed> for Counted {
    fn apply(&self, change: Change<DatabaseFeed>) {
        let mut versions = self.versions.lock();
        for tag in change.tags {
            *versions.counts.entry(tag).or_default() += 1;
        }
    }

    fn visible(&self, _: &Snapshot) {}

    fn heartbeat(&self, sent: Boottime, _: u64) {
        self.versions.lock().heard = Some(sent);
    }

    fn new_epoch(&self, _: &str) {
        self.versions.lock().epoch += 1;
    }
}

struct Word(Value);

impl Stored for Word {
    fn weight(&self) -> usize {
        size_of::<Self>()
    }
}

/// Both caches, told the same.
struct Both {
    counted: Counted,
    store: Arc<Store<Word, DatabaseFeed>>,
}

impl Sink<DatabaseFeed> for Both {
    fn apply(&self, change: Change<DatabaseFeed>) {
        let (mark, tags) = (change.mark, change.tags.clone());
        self.store.apply(Change { mark, tags });
        self.counted.apply(change);
    }

    fn visible(&self, snapshot: &Snapshot) {
        self.store.visible(snapshot);
    }

    fn heartbeat(&self, sent: Boottime, position: u64) {
        self.store.heartbeat(sent, position);
        self.counted.heartbeat(sent, position);
    }

    fn new_epoch(&self, reason: &str) {
        self.store.new_epoch(reason);
        self.counted.new_epoch(reason);
    }
}

impl Both {
    fn new() -> Arc<Self> {
        let store = Store::new(Config {
            max_staleness: Duration::from_secs(600),
            ..Config::default()
        });
        let counted = Counted::default();
        Arc::new(Self { counted, store })
    }

    /// Waits for a heartbeat that is sent from now on, and for the next: then the one before was
    /// taken note of everywhere.
    fn settle(&self) {
        for _ in 0..2 {
            let now = Boottime::now();
            until("a heartbeat", || {
                self.counted.versions.lock().heard >= Some(now)
            });
        }
    }

    /// One read for both of them; each keeps of it what its rules allow.
    fn fill(&self, database: &Database, query: &Query) -> (Value, FillOutcome) {
        let read = || -> ReadResult { try_read(database, query, vec![int(1)]).unwrap() };
        let tags = read().deps.remove(0).tags;
        let Joined::Lead(mut permit) = self.store.join(KEY.as_bytes(), Need::Any) else {
            panic!("nobody else asks");
        };
        let before = self.counted.counts(&tags);
        wait(permit.begin());
        let mut read = read();
        let (deps, cost) = (read.deps.remove(0), read.elapsed);
        assert_eq!(deps.uncacheable, None);
        let word = read.results[0].rows[0][0].clone();
        self.counted.keep(word.clone(), &deps.tags, before);
        let outcome = permit.complete(Fill {
            value: Arc::new(Word(word.clone())),
            tags: deps.tags,
            snapshot: read.snapshot,
            position: read.position,
            expires: None,
            class: Class::Normal,
            cost,
        });
        (word, outcome)
    }

    fn stored(&self) -> Result<Value, MissReason> {
        let found = self.store.get(KEY.as_bytes(), Boottime::now());
        found.map(|word| word.0.clone())
    }
}

#[test]
fn a_version_counter_keeps_what_was_read_before_a_commit_is_visible_and_the_fence_does_not() {
    let server = Options::new().set("synchronous_commit", "local");
    let server = server.logical().start().unwrap();
    let mut client = connect(&server);
    client.batch_execute(SCHEMA).unwrap();
    let database = Database::connect(options(server.url())).unwrap();
    let both = Both::new();
    database.start(Arc::clone(&both) as Arc<dyn Sink<DatabaseFeed>>);
    both.settle();
    let query = prepare(&database, "select word from t where id = :id");
    // While all is well, both keep the same.
    until("it is kept", || {
        both.fill(&database, &query).1 == FillOutcome::Stored
    });
    assert_eq!(both.counted.get(), Some(text("old")));
    assert_eq!(both.stored(), Ok(text("old")));
    let epoch = both.store.stats().epoch;

    let hanging = hanging_commit(&server, &mut client);
    until("the feed brings it", || both.stored().is_err());
    assert_eq!(both.counted.get(), None);
    // However long that was ago.
    both.settle();
    let (word, outcome) = both.fill(&database, &query);
    assert_eq!((word, outcome), (text("old"), FillOutcome::Fenced));
    assert_eq!(both.counted.get(), Some(text("old")));
    assert!(both.stored().is_err());

    standbys(&mut client, "");
    hanging.join().unwrap();
    both.settle();
    let read = try_read(&database, &query, vec![int(1)]).unwrap();
    assert_eq!(read.results[0].rows, [[text("new")]]);
    // Acknowledged, visible, and nothing more will come: this is the counterexample.
    assert_eq!(both.counted.get(), Some(text("old")));
    assert!(both.stored().is_err());
    let filled = both.fill(&database, &query);
    assert_eq!(filled, (text("new"), FillOutcome::Stored));
    assert_eq!(both.stored(), Ok(text("new")));
    // No epoch has hidden what the fence does.
    assert_eq!(both.store.stats().epoch, epoch);
    database.stop();
}
