//! Commits that are in the log before they are visible (coherence.md, rules 2 and 7).
//!
//! A commit that waits for a synchronous standby hangs between the two. The standby here does not
//! exist.

use super::*;

const SCHEMA: &str =
    "create table article (id int primary key); create publication millpond for all tables";
const WAITS: &str =
    "exists (select from pg_stat_activity where wait_event = 'SyncRep' and query like 'insert%')";

/// A server whose commits wait for ever if their session wants to wait.
fn without_standby() -> Postgres {
    let server = server(Options::new().set("synchronous_commit", "local"));
    let mut client = connect(&server.url());
    // Not on the command line, which nothing can change while the server runs.
    standbys(&mut client, "nobody");
    server
}

fn standbys(client: &mut Client, names: &str) {
    client
        .batch_execute(&format!(
            "alter system set synchronous_standby_names = '{names}'"
        ))
        .unwrap();
    client.batch_execute("select pg_reload_conf()").unwrap();
    wait_until(
        client,
        &format!("current_setting('synchronous_standby_names') = '{names}'"),
    );
}

/// No commit waits any more.
fn release(client: &mut Client) {
    standbys(client, "");
}

fn snapshot(client: &mut Client) -> Transactions {
    let row = client.query_one("select pg_current_snapshot()::text", &[]);
    Transactions::parse(row.unwrap().get(0)).unwrap()
}

fn count(client: &mut Client) -> i64 {
    let row = client.query_one("select count(*) from article", &[]);
    row.unwrap().get(0)
}

/// Commits a row and hangs; gives the thread that waits for it.
fn hanging_commit(url: &str, id: i32) -> std::thread::JoinHandle<()> {
    let mut client = connect(url);
    std::thread::spawn(move || {
        client.batch_execute("set synchronous_commit = on").unwrap();
        client
            .batch_execute(&format!("insert into article values ({id})"))
            .unwrap();
    })
}

#[test]
fn a_commit_comes_before_it_is_visible_and_no_snapshot_is_said_to_see_it() {
    let server = without_standby();
    let mut fixture = FeedFixture::with(&server, SCHEMA, |_| {});
    let id = fixture.watch("article", "id", ValueClass::Integer);
    fixture.feed.sink.settle();
    let seen = fixture.feed.sink.len();
    let hanging = hanging_commit(&fixture.url, 1);
    wait_until(&mut fixture.client, WAITS);
    let at = fixture.feed.sink.wait_for(
        "the commit",
        seen,
        |event| matches!(event, SinkEvent::Apply(_, tags) if tags.contains(&int(id, 1))),
    );
    let SinkEvent::Apply(mark, _) = fixture.feed.sink.since(at)[0].clone() else {
        panic!();
    };
    let now = snapshot(&mut fixture.client);
    assert!(!now.sees(mark.transaction), "{now:?} {mark:?}");
    assert_eq!(count(&mut fixture.client), 0);
    // Heartbeats go on meanwhile, and none of their snapshots is said to see it. But the floor
    // stays below.
    fixture.feed.sink.settle();
    let sees = |event: &SinkEvent| matches!(event, SinkEvent::Visible(snapshot) if snapshot.sees(mark.transaction));
    assert!(!fixture.feed.sink.since(at).iter().any(sees));
    assert!(fixture.feed.link.may_keep(&now));
    release(&mut fixture.client);
    hanging.join().unwrap();
    assert!(snapshot(&mut fixture.client).sees(mark.transaction));
    assert_eq!(count(&mut fixture.client), 1);
    fixture
        .feed
        .sink
        .wait_for("a snapshot that sees it", at, sees);
}

#[test]
fn a_commit_from_before_the_feed_that_is_not_visible_yet_keeps_everything_out() {
    let server = without_standby();
    let database = server.database().unwrap();
    let url = database.url();
    let mut client = connect(&url);
    client.batch_execute(SCHEMA).unwrap();
    let opened = |id: i32| {
        let mut client = connect(&url);
        let write = format!("begin; insert into article values ({id})");
        client.batch_execute(&write).unwrap();
        client
    };
    let slot_waits = |client: &mut Client| {
        wait_until(
            client,
            "exists (select from pg_stat_activity where query like 'CREATE_REPLICATION_SLOT%' and wait_event = 'transactionid')",
        );
    };
    let waits_for = |client: &mut Client, holder: &mut Client| {
        let pid: i32 = holder
            .query_one("select pg_backend_pid()", &[])
            .unwrap()
            .get(0);
        wait_until(
            client,
            &format!(
                "exists (select from pg_stat_activity a where query like 'CREATE_REPLICATION_SLOT%' and {pid} = any (pg_blocking_pids(a.pid)))"
            ),
        );
    };
    // The slot waits first for one transaction, then for another that was open when the first
    // ended. What is committed between is before the slot's start, and not among what it waits for.
    let mut first = opened(101);
    let feed = Feed::start(settings(&url, "00000000000000aa"));
    slot_waits(&mut client);
    let mut second = opened(102);
    waits_for(&mut client, &mut first);
    first.batch_execute("rollback").unwrap();
    waits_for(&mut client, &mut second);
    let hanging = hanging_commit(&url, 1);
    wait_until(&mut client, WAITS);
    second.batch_execute("rollback").unwrap();
    feed.sink.settle();
    // It was never streamed, and a new snapshot does not see it.
    let events = feed.sink.since(0);
    assert!(
        !events
            .iter()
            .any(|event| matches!(event, SinkEvent::Apply(..)))
    );
    assert_eq!(count(&mut client), 0);
    let before = snapshot(&mut client);
    assert!(!feed.link.may_keep(&before), "{before:?}");
    release(&mut client);
    hanging.join().unwrap();
    assert_eq!(count(&mut client), 1);
    let after = snapshot(&mut client);
    assert!(feed.link.may_keep(&after), "{after:?}");
    feed.sink.settle();
    let events = feed.sink.since(0);
    assert!(
        !events
            .iter()
            .any(|event| matches!(event, SinkEvent::Apply(..)))
    );
    feed.handle.stop();
}

#[test]
fn while_the_slot_waits_it_is_said_and_nothing_is_kept() {
    let server = server(Options::new());
    let database = server.database().unwrap();
    let url = database.url();
    let mut client = connect(&url);
    client.batch_execute(SCHEMA).unwrap();
    client
        .batch_execute("begin; insert into article values (1)")
        .unwrap();
    let feed = Feed::start(settings(&url, "00000000000000aa"));
    let said = feed.wait_for_failure("were open when it began");
    let pid: i32 = client
        .query_one("select pg_backend_pid()", &[])
        .unwrap()
        .get(0);
    assert!(said.contains(&pid.to_string()), "{said}");
    assert!(!feed.link.may_keep(&snapshot(&mut connect(&url))));
    client.batch_execute("commit").unwrap();
    feed.sink.settle();
    assert!(feed.link.may_keep(&snapshot(&mut client)));
}

#[test]
fn a_feed_that_would_count_as_a_standby_is_refused() {
    let server = server(Options::new());
    let database = server.database().unwrap();
    let mut client = connect(&database.url());
    client.batch_execute(SCHEMA).unwrap();
    client
        .batch_execute("set synchronous_commit = local")
        .unwrap();
    standbys(&mut client, "*");
    let feed = Feed::start(settings(&database.url(), "00000000000000aa"));
    feed.wait_for_failure("synchronous_standby_names");
    feed.handle.stop();
    release(&mut client);
}
