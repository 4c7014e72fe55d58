//! How lives begin and end, and that nothing is missed between.

use base_clock::Boottime;

use super::*;
use crate::Position;

const SCHEMA: &str = "create table article (id int primary key, title text)";

fn snapshot(client: &mut Client) -> Transactions {
    let row = client.query_one("select pg_current_snapshot()::text", &[]);
    Transactions::parse(row.unwrap().get(0)).unwrap()
}

/// The feed begins again, and what is written after that is delivered.
fn lives_again(feed: &Feed, seen: usize, url: &str, id: i32) {
    feed.sink.wait_for_epoch(seen, "the feed starts");
    feed.sink.settle();
    let before = feed.sink.len();
    let insert = format!("insert into article values ({id}, 'a')");
    connect(url).batch_execute(&insert).unwrap();
    feed.sink.wait_for("a change", before, is_apply);
}

#[test]
fn a_change_is_delivered_once_before_any_snapshot_that_sees_it() {
    let mut fixture = recorded(plain(), SCHEMA, &["article"]);
    std::thread::scope(|scope| {
        for writer in 0..4 {
            let url = fixture.url.clone();
            scope.spawn(move || {
                let mut client = connect(&url);
                for n in 0..50 {
                    let id = writer * 1_000 + n;
                    let end = if n % 5 == 0 { "rollback" } else { "commit" };
                    let sql = format!(
                        "begin; insert into article values ({id}, 'a'); savepoint s; update article set title = 'b' where id = {id}; {end}"
                    );
                    client.batch_execute(&sql).unwrap();
                }
            });
        }
    });
    fixture.feed.sink.settle();
    let events = fixture.feed.sink.since(0);
    let mut applied = HashSet::new();
    let mut seen: Vec<Arc<Transactions>> = Vec::new();
    let mut last = (Boottime::default(), 0);
    for event in &events {
        match event {
            SinkEvent::Apply(mark, _) => {
                assert_eq!(mark.at, mark.transaction + 1);
                assert!(applied.insert(mark.transaction), "{mark:?} twice");
                assert!(!seen.iter().any(|seen| seen.sees(mark.transaction)));
                assert!(mark.at > last.1, "the feed had passed it: {mark:?}");
            }
            SinkEvent::Visible(snapshot) => seen.push(Arc::clone(snapshot)),
            SinkEvent::Heartbeat(sent, position) => {
                assert!(last.0 <= *sent && last.1 <= *position);
                last = (*sent, *position);
            }
            SinkEvent::NewEpoch(_) => {}
        }
    }
    assert_eq!(applied.len(), 160);
    assert_eq!(fixture.count("article"), 160);
}

#[test]
fn a_transaction_from_before_the_feed_keeps_everything_out_until_it_ends_and_is_delivered() {
    // Of its own: others would have to wait for the open transaction.
    let server = Postgres::start().unwrap();
    let database = server.database().unwrap();
    let url = database.url();
    let mut client = connect(&url);
    client.batch_execute(&script(SCHEMA, &["article"])).unwrap();
    let mut early = connect(&url);
    early
        .batch_execute("begin; insert into article values (1, 'a')")
        .unwrap();
    let mut settings = settings(&url, "00000000000000aa");
    by_triggers(&mut settings);
    let feed = Feed::start(settings);
    feed.sink.settle();
    assert!(!feed.link.may_keep(&snapshot(&mut client)));
    let seen = feed.sink.len();
    early.batch_execute("commit").unwrap();
    feed.sink.wait_for("the change", seen, is_apply);
    feed.sink.settle();
    assert!(feed.link.may_keep(&snapshot(&mut client)));
    // One that begins to write later keeps nothing out, and is told when others see it; meanwhile
    // the feed passes no position behind it.
    let mut late = connect(&url);
    late.batch_execute("begin; insert into article values (2, 'a')")
        .unwrap();
    let open = snapshot(&mut client);
    assert!(feed.link.may_keep(&open));
    let seen = feed.sink.len();
    client
        .batch_execute("insert into article values (3, 'a')")
        .unwrap();
    let first = feed.sink.wait_for("the later change", seen, is_apply);
    feed.sink.settle();
    let passed = |event: &SinkEvent| matches!(event, SinkEvent::Heartbeat(_, position) if *position > open.xmin());
    assert!(!feed.sink.since(first).iter().any(passed));
    late.batch_execute("commit").unwrap();
    feed.sink
        .wait_for("the earlier change", first + 1, is_apply);
    feed.sink.wait_for("the position", first, passed);
    feed.handle.stop();
}

#[test]
fn a_trigger_that_is_disabled_is_noticed_even_if_only_for_a_moment() {
    let mut fixture = recorded(plain(), SCHEMA, &["article"]);
    for change in [
        "alter table article disable trigger _millpond_update",
        "alter table article enable always trigger _millpond_update",
        "begin; alter table article disable trigger all; insert into article values (1, 'a'); \
         alter table article enable always trigger _millpond_insert; commit",
        "alter trigger _millpond_delete on article rename to mine",
        "drop trigger mine on article",
        "create or replace function _millpond_record() returns trigger language plpgsql as 'begin return null; end'",
    ] {
        fixture.feed.sink.settle();
        let schema = fixture.feed.link.schema();
        let seen = fixture.feed.sink.len();
        fixture.run(change);
        fixture.feed.sink.settle();
        let epoch = |event: &SinkEvent| matches!(event, SinkEvent::NewEpoch(_));
        assert!(fixture.feed.sink.since(seen).iter().any(epoch), "{change}");
        assert!(fixture.feed.link.schema() > schema, "{change}");
    }
}

#[test]
fn a_reader_that_is_ended_and_a_server_that_dies_are_followed_by_another_life() {
    let mut server = Postgres::start().unwrap();
    let url = server.url();
    connect(&url)
        .batch_execute(&script(SCHEMA, &["article"]))
        .unwrap();
    let mut settings = settings(&url, "00000000000000aa");
    by_triggers(&mut settings);
    let feed = Feed::start(settings);
    feed.sink.settle();
    let seen = feed.sink.len();
    let end = "select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'millpond_feed'";
    connect(&url).batch_execute(end).unwrap();
    feed.wait_for_failure("terminating connection");
    lives_again(&feed, seen, &url, 1);
    let seen = feed.sink.len();
    server.restart().unwrap();
    lives_again(&feed, seen, &url, 2);
    let seen = feed.sink.len();
    server.kill_hard();
    let killed = Boottime::now();
    while feed.link.pending.expect_transaction(7).is_some() {
        assert!(Boottime::now().since(killed) < PATIENCE);
        std::thread::sleep(Duration::from_millis(1));
    }
    server.restart().unwrap();
    lives_again(&feed, seen, &url, 3);
    feed.handle.stop();
}

#[test]
fn without_its_table_it_says_what_to_do_and_goes_on_when_that_is_done() {
    let database = plain().database().unwrap();
    let url = database.url();
    connect(&url).batch_execute(SCHEMA).unwrap();
    let mut settings = settings(&url, "00000000000000aa");
    settings.kind = FeedKind::Triggers;
    let feed = Feed::start(settings);
    let said = feed.wait_for_failure("_millpond_change");
    assert!(said.contains("millpond check --fix"), "{said}");
    let install = format!(
        "{}; {}",
        objects::install("public"),
        objects::watch("public", "article")
    );
    connect(&url).batch_execute(&install).unwrap();
    lives_again(&feed, 0, &url, 1);
    feed.handle.stop();
}

#[test]
fn a_role_that_may_not_read_the_table_is_reported() {
    let database = plain().database().unwrap();
    let url = database.url();
    let mut client = connect(&url);
    client.batch_execute(&script(SCHEMA, &["article"])).unwrap();
    client
        .batch_execute(
            "do $$ begin create role stranger login; exception when duplicate_object or unique_violation then null; end $$",
        )
        .unwrap();
    let mut settings = settings(&url, "00000000000000aa");
    by_triggers(&mut settings);
    settings.config.user("stranger");
    let feed = Feed::start(settings);
    feed.wait_for_failure("millpond check says which rights");
    client
        .batch_execute(&objects::grant("public", "stranger"))
        .unwrap();
    feed.sink.settle();
    feed.handle.stop();
}

#[test]
fn a_write_completes_when_a_poll_has_seen_it() {
    let mut fixture = recorded(plain(), SCHEMA, &["article"]);
    let sql = "insert into article values (1, 'a') returning pg_current_xact_id()::text";
    let id: String = fixture.client.query_one(sql, &[]).unwrap().get(0);
    let id: u64 = id.parse().unwrap();
    let seen = fixture.feed.sink.len();
    let (_, arrival) = fixture.feed.link.pending.expect_transaction(id).unwrap();
    fixture.feed.link.wake.call();
    let position = arrival.blocking_recv().unwrap();
    assert!(position.at() > id, "{position:?}");
    let events = fixture.feed.sink.since(0);
    assert!(
        events
            .iter()
            .any(|event| matches!(event, SinkEvent::Apply(mark, _) if mark.transaction == id))
    );
    // One that is under way is not answered by a look that does not see it.
    fixture.run("begin; insert into article values (2, 'a')");
    let open: String = fixture
        .client
        .query_one("select pg_current_xact_id()::text", &[])
        .unwrap()
        .get(0);
    let (_, mut arrival) = fixture
        .feed
        .link
        .pending
        .expect_transaction(open.parse().unwrap())
        .unwrap();
    fixture.feed.sink.settle();
    assert!(arrival.try_recv().is_err());
    fixture.run("commit");
    assert!(arrival.blocking_recv().is_ok());
    assert!(fixture.feed.sink.len() > seen);
}

#[test]
fn positions_are_of_one_server_and_timeline_and_where_that_is_hidden_of_one_run() {
    let mut fixture = recorded(plain(), SCHEMA, &["article"]);
    let passed = &fixture.feed.link.passed;
    let here = passed.position();
    assert!(
        here.source().ends_with(", timeline 1, transactions"),
        "{here:?}"
    );
    fixture.run("revoke execute on function pg_control_system() from public");
    let mut settings = settings(&fixture.url, "00000000000000ab");
    by_triggers(&mut settings);
    let other = Feed::start(settings);
    other.sink.settle();
    let hidden = other.link.passed.position();
    assert!(hidden.source().starts_with("started "), "{hidden:?}");
    assert!(hidden.at() > 0, "{hidden:?}");
    // The two cannot be compared.
    let early = |position: &Position| Position::new(position.source(), 1);
    let passed = &fixture.feed.link.passed;
    let now = Boottime::now();
    assert!(passed.has_passed(&early(&here), now) && !passed.has_passed(&early(&hidden), now));
    assert!(other.link.passed.has_passed(&early(&hidden), now));
    other.handle.stop();
}

#[test]
fn an_unrecorded_write_completes_after_the_epoch_that_drops_results_without_it() {
    let seldom = |settings: &mut FeedSettings| {
        by_triggers(settings);
        settings.heartbeat = Duration::from_secs(1);
    };
    let mut fixture = FeedFixture::with(plain(), &script(SCHEMA, &["article"]), seldom);
    // A catalog that takes its time is looked at seldom.
    fixture.run(
        "do $$ begin execute 'create type many as enum (' || (select string_agg(quote_literal(n), ', ') from generate_series(1, 30000) n) || ')'; end $$",
    );
    let mut other = connect(&fixture.url);
    for id in 1..=5 {
        fixture.feed.sink.settle();
        let seen = fixture.feed.sink.len();
        fixture.run("alter table article disable trigger all");
        let sql =
            format!("insert into article values ({id}, 'a') returning pg_current_xact_id()::text");
        let own: String = other.query_one(&sql, &[]).unwrap().get(0);
        let link = &fixture.feed.link;
        if let Some((_, arrival)) = link.pending.expect_transaction(own.parse().unwrap()) {
            link.wake.call();
            arrival.blocking_recv().unwrap();
        }
        let epoch = |event: &SinkEvent| matches!(event, SinkEvent::NewEpoch(_));
        assert!(fixture.feed.sink.since(seen).iter().any(epoch), "{id}");
        fixture.run(
            "alter table article enable always trigger _millpond_insert; alter table article enable always trigger _millpond_update; \
             alter table article enable always trigger _millpond_delete; alter table article enable always trigger _millpond_truncate",
        );
    }
}

#[test]
fn a_table_of_changes_that_another_session_empties_begins_an_epoch() {
    let mut fixture = recorded(plain(), SCHEMA, &["article"]);
    fixture.feed.sink.settle();
    let seen = fixture.feed.sink.len();
    fixture.run("begin; insert into article values (1, 'a'); truncate _millpond_change; commit");
    fixture
        .feed
        .sink
        .wait_for_epoch(seen, "the schema has changed");
    let events = fixture.feed.sink.since(seen);
    assert!(!events.iter().any(is_apply), "{events:?}");
}

#[test]
fn tidying_waits_for_no_session_and_continues_where_it_stopped() {
    let schema =
        "create table article (id int primary key); create table busy (id int primary key)";
    let database = plain().database().unwrap();
    let mut client = connect(&database.url());
    client
        .batch_execute(&script(schema, &["article", "busy"]))
        .unwrap();
    let mut reader = connect(&database.url());
    reader
        .batch_execute("begin; select count(*) from busy")
        .unwrap();
    let remove = objects::remove("public", &["article".to_owned(), "busy".to_owned()]);
    let hindered = client.batch_execute(&remove).unwrap_err();
    assert_eq!(
        hindered.code(),
        Some(&::postgres::error::SqlState::LOCK_NOT_AVAILABLE)
    );
    client.batch_execute("rollback").unwrap();
    let left = "select string_agg(distinct tgrelid::regclass::text, ', ') from pg_trigger where tgname like '_millpond_%'";
    let on: Option<String> = client.query_one(left, &[]).unwrap().get(0);
    assert_eq!(on.as_deref(), Some("busy"));
    reader.batch_execute("commit").unwrap();
    client.batch_execute(&remove).unwrap();
    let on: Option<String> = client.query_one(left, &[]).unwrap().get(0);
    assert_eq!(on, None);
}
