//! How lives of the feed begin and end.

use super::*;

const SCHEMA: &str = "create table article (id int primary key, title text)";

fn epochs(feed: &Feed, seen: usize) -> usize {
    let events = feed.sink.since(seen);
    events
        .iter()
        .filter(|event| matches!(event, SinkEvent::NewEpoch(_)))
        .count()
}

/// The feed begins again, and what is written after that is delivered.
fn lives_again(feed: &Feed, seen: usize, url: &str, id: i32) {
    feed.sink.wait_for_epoch(seen, "the feed starts");
    feed.sink.settle();
    let before = feed.sink.len();
    let mut client = connect(url);
    client
        .batch_execute(&format!("insert into article values ({id}, 'a')"))
        .unwrap();
    feed.sink.wait_for("a change", before, |event| {
        matches!(event, SinkEvent::Apply(..))
    });
}

#[test]
fn earlier_changes_are_not_delivered_and_heartbeats_ascend() {
    let mut fixture = FeedFixture::new(shared(), SCHEMA);
    fixture.run("insert into article values (1, 'a')");
    fixture.feed.sink.settle();
    let events = fixture.feed.sink.since(0);
    let mut last = (Boottime::default(), 0);
    let mut applied = 0;
    for event in &events {
        match event {
            SinkEvent::Heartbeat(sent, position) => {
                assert!(last < (*sent, *position));
                assert!(*position >= applied);
                last = (*sent, *position);
            }
            SinkEvent::Apply(mark, _) => {
                assert!(mark.at > applied);
                applied = mark.at;
            }
            SinkEvent::Visible(_) | SinkEvent::NewEpoch(_) => {}
        }
    }
    let applies = events
        .iter()
        .filter(|event| matches!(event, SinkEvent::Apply(..)));
    assert_eq!(applies.count(), 1);
}

#[test]
fn a_write_that_had_no_feed_to_wait_for_begins_an_epoch() {
    let fixture = FeedFixture::new(shared(), SCHEMA);
    let seen = fixture.feed.sink.len();
    fixture.feed.link.committed_unawaited();
    assert_eq!(epochs(&fixture.feed, seen), 1);
    fixture.feed.handle.stop();
    let seen = fixture.feed.sink.len();
    fixture.feed.link.committed_unawaited();
    assert_eq!(epochs(&fixture.feed, seen), 1, "what was kept before");
}

#[test]
fn a_change_of_the_schema_begins_an_epoch() {
    let mut fixture = FeedFixture::new(
        shared(),
        &format!("{SCHEMA}; insert into article values (1, 'a')"),
    );
    for change in [
        "alter table article add column author int",
        "create table other (id int primary key)",
        "create view titles as select title from article",
        "create or replace view titles as select title from article where id > 0",
        "create function one() returns int language sql immutable as 'select 1'",
        "alter table article enable row level security",
        "create policy mine on article using (id > 0)",
        "alter table article replica identity full",
        "alter table article alter column author type int using 7",
        "alter publication millpond set (publish_via_partition_root = true)",
    ] {
        fixture.feed.sink.settle();
        let schema = fixture.feed.link.schema();
        let seen = fixture.feed.sink.len();
        fixture.run(change);
        // The next heartbeat that counts was sent after the change, so the epoch has begun before
        // it.
        fixture.feed.sink.settle();
        assert!(epochs(&fixture.feed, seen) > 0, "{change}");
        assert!(fixture.feed.link.schema() > schema, "{change}");
    }
    let seen = fixture.feed.sink.len();
    fixture.run("insert into article values (2, 'b'); analyze article");
    fixture.feed.sink.settle();
    assert_eq!(epochs(&fixture.feed, seen), 0);
}

#[test]
fn a_table_that_is_made_and_filled_at_once_begins_an_epoch() {
    let mut fixture = FeedFixture::new(shared(), SCHEMA);
    let seen = fixture.feed.sink.len();
    fixture.run("begin; create table new (id int primary key); insert into new values (1); commit");
    // A heartbeat may find the table before its change arrives; then that is the reason.
    let reasons = ["was not there before", "the schema has changed"];
    fixture.feed.sink.wait_for("an epoch", seen, |event| {
        matches!(event, SinkEvent::NewEpoch(said) if reasons.iter().any(|reason| said.contains(reason)))
    });
    fixture.feed.sink.settle();
    let table = broad(fixture.oid("new"));
    let touched = fixture.touches("insert into new values (2)");
    assert_eq!(touched, HashSet::from([table]));
}

#[test]
fn without_its_publication_it_says_what_to_do_and_goes_on_when_that_is_done() {
    let mut fixture = FeedFixture::new(shared(), SCHEMA);
    let seen = fixture.feed.sink.len();
    fixture.run("drop publication millpond; insert into article values (1, 'a')");
    fixture
        .feed
        .wait_for_failure("CREATE PUBLICATION \"millpond\"");
    fixture.run("create publication millpond for all tables with (publish = 'insert')");
    fixture
        .feed
        .wait_for_failure("ALTER PUBLICATION \"millpond\"");
    let seen = seen.max(fixture.feed.sink.len());
    fixture.run("alter publication millpond set (publish = 'insert, update, delete, truncate')");
    lives_again(&fixture.feed, seen, &fixture.url, 2);
}

#[test]
fn a_server_without_logical_decoding_is_reported() {
    let server = Postgres::start().unwrap();
    let feed = Feed::start(settings(&server.url(), "00000000000000aa"));
    let said = feed.wait_for_failure("wal_level");
    assert!(
        said.contains("ALTER SYSTEM SET wal_level = 'logical'"),
        "{said}"
    );
    let events = feed.sink.since(0);
    assert!(
        !events
            .iter()
            .any(|event| matches!(event, SinkEvent::Heartbeat(..)))
    );
}

#[test]
fn without_the_right_to_replicate_the_role_is_named() {
    let server = server(Options::new());
    let mut client = connect(&server.url());
    client
        .batch_execute("create role weak login; create publication millpond for all tables")
        .unwrap();
    let url = server.url().replace("postgres@", "weak@");
    let feed = Feed::start(settings(&url, "00000000000000aa"));
    feed.wait_for_failure("ALTER ROLE \"weak\" REPLICATION");
    client.batch_execute("alter role weak replication").unwrap();
    feed.sink.settle();
}

#[test]
fn of_several_hosts_the_one_that_answers_is_taken() {
    let server = server(Options::new());
    let mut client = connect(&server.url());
    client
        .batch_execute("create publication millpond for all tables")
        .unwrap();
    let url = format!(
        "postgres://postgres@127.0.0.1:1,127.0.0.1:{}/postgres",
        server.port()
    );
    Feed::start(settings(&url, "00000000000000aa"))
        .sink
        .settle();
    let socket = settings(&server.socket_url(), "00000000000000ab");
    Feed::start(socket).sink.settle();
}

#[test]
fn a_stream_that_the_server_ends_begins_again() {
    let mut fixture = FeedFixture::new(shared(), SCHEMA);
    let seen = fixture.feed.sink.len();
    fixture.run(
        "select pg_terminate_backend(active_pid) from pg_replication_slots where database = current_database()",
    );
    fixture.feed.wait_for_failure("terminating connection");
    lives_again(&fixture.feed, seen, &fixture.url, 1);
    let seen = fixture.feed.sink.len();
    fixture.run(
        "select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'millpond_feed' \
         and datname = current_database() and backend_type = 'client backend'",
    );
    lives_again(&fixture.feed, seen, &fixture.url, 2);
}

#[test]
fn a_server_that_is_started_again_or_killed_is_found_again() {
    let mut server = server(Options::new());
    let url = server.url();
    let schema = format!("{SCHEMA}; create publication millpond for all tables");
    connect(&url).batch_execute(&schema).unwrap();
    let feed = Feed::start(settings(&url, "00000000000000aa"));
    feed.sink.settle();
    let seen = feed.sink.len();
    server.restart().unwrap();
    lives_again(&feed, seen, &url, 1);
    let seen = feed.sink.len();
    server.kill_hard();
    // Among the last things that the end of a life does.
    let since = Boottime::now();
    while let Some((token, _)) = feed.link.pending.expect() {
        feed.link.pending.forget(token);
        assert!(Boottime::now().since(since) < PATIENCE);
        std::thread::yield_now();
    }
    // Between two lives nothing is kept, and what was kept stays what it was.
    assert!(
        !feed
            .link
            .may_keep(&Transactions::new(u64::MAX - 1, u64::MAX - 1, vec![]))
    );
    assert_eq!(epochs(&feed, seen), 0);
    server.restart().unwrap();
    lives_again(&feed, seen, &url, 2);
}

#[test]
fn while_a_server_is_frozen_no_heartbeat_comes_and_then_the_life_ends() {
    let server = server(Options::new());
    let schema = format!("{SCHEMA}; create publication millpond for all tables");
    connect(&server.url()).batch_execute(&schema).unwrap();
    let patient = Feed::start(settings(&server.url(), "00000000000000aa"));
    let hasty = Feed::start(FeedSettings {
        wal_sender_timeout: Duration::from_millis(500),
        ..settings(&server.url(), "00000000000000ab")
    });
    patient.sink.settle();
    hasty.sink.settle();
    server.freeze().unwrap();
    let frozen = Boottime::now();
    let seen = hasty.sink.len();
    hasty.wait_for_failure("nothing arrived from the server");
    // Half a second later: all that the other has received was sent before.
    let late = |event: &SinkEvent| matches!(event, SinkEvent::Heartbeat(sent, _) if *sent > frozen);
    assert!(!patient.sink.since(0).iter().any(late));
    let epochs_before = epochs(&patient, 0);
    server.thaw().unwrap();
    patient.sink.settle();
    assert_eq!(epochs(&patient, 0), epochs_before);
    lives_again(&hasty, seen, &server.url(), 1);
}

#[test]
fn no_slot_is_left_behind() {
    let mut fixture = FeedFixture::new(shared(), SCHEMA);
    assert_eq!(fixture.slots(), 1);
    fixture.feed.handle.stop();
    wait_until(
        &mut fixture.client,
        "not exists (select from pg_replication_slots where database = current_database())",
    );
    let stopped = fixture.feed.sink.since(0);
    assert!(
        matches!(stopped.last(), Some(SinkEvent::NewEpoch(reason)) if reason.contains("stopped"))
    );
    // It may be stopped again.
    fixture.feed.handle.stop();
}

#[test]
fn the_log_is_acknowledged_also_where_nothing_is_published() {
    let mut fixture = FeedFixture::with(
        shared(),
        &format!(
            "{SCHEMA}; create table other (id int); create publication millpond for table article"
        ),
        |_| {},
    );
    fixture.run("insert into other select generate_series(1, 1000)");
    let row = fixture
        .client
        .query_one("select pg_current_wal_insert_lsn()::text", &[]);
    let reached: String = row.unwrap().get(0);
    wait_until(
        &mut fixture.client,
        &format!(
            "bool_and(confirmed_flush_lsn >= '{reached}') from pg_replication_slots where database = current_database()"
        ),
    );
}

#[test]
fn a_sink_that_panics_gets_an_epoch_and_the_feed_lives_on() {
    struct Trap(Recorder);
    impl Sink<DatabaseFeed> for Trap {
        fn apply(&self, change: Change<DatabaseFeed>) {
            let first = self
                .0
                .since(0)
                .iter()
                .all(|event| !matches!(event, SinkEvent::Apply(..)));
            self.0.apply(change);
            assert!(!first, "the trap in the test's sink");
        }
        fn visible(&self, snapshot: &Snapshot) {
            self.0.visible(snapshot);
        }
        fn heartbeat(&self, sent: Boottime, position: u64) {
            self.0.heartbeat(sent, position);
        }
        fn new_epoch(&self, reason: &str) {
            self.0.new_epoch(reason);
        }
    }
    let database = shared().database().unwrap();
    let mut client = connect(&database.url());
    let schema = format!("{SCHEMA}; create publication millpond for all tables");
    client.batch_execute(&schema).unwrap();
    let link = Arc::new(FeedLink::default());
    let sink = Arc::new(Trap(Recorder::default()));
    link.delivery
        .start(Arc::clone(&sink) as Arc<dyn Sink<DatabaseFeed>>);
    let settings = settings(&database.url(), "00000000000000aa");
    let handle = start(settings, Arc::clone(&link)).unwrap();
    sink.0.settle();
    let seen = sink.0.len();
    client
        .batch_execute("insert into article values (1, 'a')")
        .unwrap();
    let ended = sink.0.wait_for_epoch(seen, "a panic: the trap");
    sink.0.wait_for_epoch(ended, "the feed starts");
    sink.0.settle();
    handle.stop();
}
