//! The feed with real servers, from the outside: the calls to its sink.

mod changes;
mod large;
mod lives;
mod login;
mod processes;
mod triggers;
mod visibility;

use std::collections::HashSet;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use ::postgres::{Client, NoTls};
use base_clock::Boottime;
use lab_pgtest::{Database, Options, Postgres};
use millpond_store::{Change, Sink, Tag};
use parking_lot::{Condvar, Mutex};

use super::{FeedHandle, FeedSettings, start};
use crate::feed::{DatabaseFeed, Mark, Snapshot, Transactions};
use crate::postgres::interest::WatchedRows;
use crate::postgres::link::FeedLink;
use crate::postgres::tags::{ColumnName, broad};
use crate::precision::ValueClass;
use crate::{FeedKind, Value};

/// Far longer than anything takes; it only ends a test that would wait for ever.
const PATIENCE: Duration = Duration::from_secs(60);

/// One call of a sink.
#[derive(Clone, Debug)]
enum SinkEvent {
    Apply(Mark, Vec<Tag>),
    Visible(Arc<Transactions>),
    Heartbeat(Boottime, u64),
    NewEpoch(String),
}

/// Records every call.
#[derive(Default)]
struct Recorder {
    events: Mutex<Vec<SinkEvent>>,
    changed: Condvar,
}

impl Recorder {
    fn record(&self, event: SinkEvent) {
        self.events.lock().push(event);
        self.changed.notify_all();
    }

    fn len(&self) -> usize {
        self.events.lock().len()
    }

    /// Waits for a call after the first `seen` calls; returns its index.
    fn wait_for(&self, what: &str, seen: usize, mut is: impl FnMut(&SinkEvent) -> bool) -> usize {
        let give_up = Boottime::now().plus(PATIENCE);
        let mut events = self.events.lock();
        loop {
            if let Some(at) = events.iter().skip(seen).position(&mut is) {
                return seen + at;
            }
            let now = Boottime::now();
            assert!(now < give_up, "gave up waiting for {what}: {events:?}");
            self.changed.wait_for(&mut events, give_up.since(now));
        }
    }

    fn wait_for_epoch(&self, seen: usize, reason: &str) -> usize {
        self.wait_for(
            reason,
            seen,
            |event| matches!(event, SinkEvent::NewEpoch(said) if said.contains(reason)),
        )
    }

    /// Waits until nothing that was committed before now is missing.
    fn settle(&self) -> usize {
        let now = Boottime::now();
        self.wait_for(
            "a heartbeat",
            0,
            |event| matches!(event, SinkEvent::Heartbeat(sent, _) if *sent >= now),
        )
    }

    fn since(&self, seen: usize) -> Vec<SinkEvent> {
        self.events.lock()[seen..].to_vec()
    }
}

impl Sink<DatabaseFeed> for Recorder {
    fn apply(&self, change: Change<DatabaseFeed>) {
        self.record(SinkEvent::Apply(change.mark, change.tags));
    }

    fn visible(&self, snapshot: &Snapshot) {
        match snapshot {
            Snapshot::Transactions(seen) => self.record(SinkEvent::Visible(Arc::clone(seen))),
            Snapshot::Applied(_) => panic!("PostgreSQL knows transactions"),
        }
    }

    fn heartbeat(&self, sent: Boottime, position: u64) {
        self.record(SinkEvent::Heartbeat(sent, position));
    }

    fn new_epoch(&self, reason: &str) {
        self.record(SinkEvent::NewEpoch(reason.to_owned()));
    }
}

/// The server of all tests that leave no transaction open: one that is open holds up every slot
/// that is made.
fn shared() -> &'static Postgres {
    static SHARED: LazyLock<Postgres> = LazyLock::new(|| server(Options::new()));
    &SHARED
}

fn server(options: Options) -> Postgres {
    options
        .logical()
        .set("max_prepared_transactions", "10")
        .start()
        .unwrap()
}

/// Trusts no certificate; for connections without TLS.
fn no_trust() -> Arc<rustls::ClientConfig> {
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(rustls::RootCertStore::empty())
        .with_no_client_auth();
    Arc::new(config)
}

fn settings(url: &str, node: &str) -> FeedSettings {
    FeedSettings {
        config: url.parse().unwrap(),
        tls: no_trust(),
        node: node.to_owned(),
        kind: FeedKind::Logical,
        publication: "millpond".to_owned(),
        heartbeat: Duration::from_millis(5),
        wal_sender_timeout: PATIENCE,
    }
}

/// A feed and what it says.
struct Feed {
    link: Arc<FeedLink>,
    sink: Arc<Recorder>,
    handle: FeedHandle,
}

impl Feed {
    /// Starts it, without waiting for anything.
    fn start(settings: FeedSettings) -> Self {
        let link = Arc::new(FeedLink::default());
        let sink = Arc::new(Recorder::default());
        link.delivery
            .start(Arc::clone(&sink) as Arc<dyn Sink<DatabaseFeed>>);
        let handle = start(settings, Arc::clone(&link)).unwrap();
        Self { link, sink, handle }
    }

    /// Waits until it has failed with something that contains `words`.
    fn wait_for_failure(&self, words: &str) -> String {
        let give_up = Boottime::now().plus(PATIENCE);
        loop {
            let (_, last) = self.link.failures.known();
            if let Some(last) = last.filter(|last| last.contains(words)) {
                return last.to_string();
            }
            assert!(
                Boottime::now() < give_up,
                "gave up waiting for {words:?}: {:?}",
                self.link.failures.known()
            );
            // A counted failure sends no notification, so the counter is read; a loop without a
            // pause would take the server's core.
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

/// A database with a publication, a feed of it, and a client.
struct FeedFixture<'a> {
    feed: Feed,
    client: Client,
    url: String,
    // Dropped last: no client is connected then.
    _database: Database<'a>,
}

fn connect(url: &str) -> Client {
    Client::connect(url, NoTls).unwrap()
}

impl<'a> FeedFixture<'a> {
    /// With all tables of this schema published.
    fn new(server: &'a Postgres, schema: &str) -> Self {
        let publication = "create publication millpond for all tables";
        Self::with(server, &format!("{schema}; {publication}"), |_| {})
    }

    fn with(server: &'a Postgres, schema: &str, adjust: impl FnOnce(&mut FeedSettings)) -> Self {
        let database = server.database().unwrap();
        let url = database.url();
        let mut client = connect(&url);
        client.batch_execute(schema).unwrap();
        let mut settings = settings(&url, "00000000000000aa");
        adjust(&mut settings);
        let feed = Feed::start(settings);
        feed.sink.settle();
        Self {
            feed,
            client,
            url,
            _database: database,
        }
    }

    /// How many rows a table has.
    fn count(&mut self, table: &str) -> i64 {
        let count = format!("select count(*) from {table}");
        self.client.query_one(&count, &[]).unwrap().get(0)
    }

    fn run(&mut self, sql: &str) {
        self.client.batch_execute(sql).unwrap();
    }

    fn oid(&mut self, table: &str) -> u32 {
        let sql = format!("select '{table}'::regclass::oid");
        self.client.query_one(&sql, &[]).unwrap().get(0)
    }

    /// Watches a column; gives its name.
    fn watch(&mut self, table: &str, column: &str, class: ValueClass) -> ColumnName {
        let family = self.oid(table);
        let watched = WatchedRows::by(family, column, class);
        self.feed.link.take_interest([watched]);
        ColumnName::new(family, column, class)
    }

    /// All tags that a script touches; it must not begin an epoch.
    fn touches(&mut self, sql: &str) -> HashSet<Tag> {
        self.feed.sink.settle();
        let seen = self.feed.sink.len();
        self.run(sql);
        self.feed.sink.settle();
        let mut tags = HashSet::new();
        for event in self.feed.sink.since(seen) {
            match event {
                SinkEvent::Apply(_, touched) => tags.extend(touched),
                SinkEvent::NewEpoch(reason) => panic!("an epoch would hide the tags: {reason}"),
                SinkEvent::Visible(_) | SinkEvent::Heartbeat(..) => {}
            }
        }
        tags
    }

    fn slots(&mut self) -> i64 {
        let sql = "select count(*) from pg_replication_slots where database = current_database()";
        self.client.query_one(sql, &[]).unwrap().get(0)
    }
}

fn int(name: ColumnName, value: i64) -> Tag {
    name.equal_to(&Value::Integer(value)).unwrap()
}

/// Waits until the server says so.
fn wait_until(client: &mut Client, condition: &str) {
    let give_up = Boottime::now().plus(PATIENCE);
    while !client
        .query_one(&format!("select {condition}"), &[])
        .unwrap()
        .get::<_, bool>(0)
    {
        assert!(
            Boottime::now() < give_up,
            "gave up waiting until {condition}"
        );
        std::thread::sleep(Duration::from_millis(1));
    }
}
