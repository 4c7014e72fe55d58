//! The probe of PostgreSQL on private servers. The first and the last sample of a probe are taken
//! at once, so no test waits for a second to pass.

use std::cell::Cell;
use std::thread;
use std::time::{Duration, Instant};

use base_probe::postgres::{PgProber, PgSample, PgSummary};
use lab_pgtest::{Options, Postgres};
use postgres::{Client, NoTls};

fn connect(url: &str) -> Client {
    Client::connect(url, NoTls).unwrap_or_else(|error| panic!("{url}: {error}"))
}

/// Asks until the answer is not zero.
fn wait_for(client: &mut Client, count: &str) {
    let given_up = Instant::now() + Duration::from_secs(60);
    while client.query_one(count, &[]).unwrap().get::<_, i64>(0) == 0 {
        assert!(Instant::now() < given_up, "still none: {count}");
        thread::sleep(Duration::from_millis(5));
    }
}

/// Waits until the probe has taken a sample on its present connection: until it begins the next
/// one.
fn wait_for_a_sample(url: &str) {
    let mut observer = connect(url);
    let begun = "extract(epoch from query_start) * 1000000";
    let of_probe = "from pg_stat_activity where application_name = 'millpond-probe' and query like '%pg_locks%'";
    wait_for(&mut observer, &format!("select count(*) {of_probe}"));
    let first = format!("select coalesce(max({begun}), 0)::int8 {of_probe}");
    let first: i64 = observer.query_one(&first, &[]).unwrap().get(0);
    let next = format!("select count(*) {of_probe} and {begun} > {first} + 1");
    wait_for(&mut observer, &next);
}

/// Sums up the whole probe, with a hundred requests.
fn whole(samples: &[PgSample], probe: &base_probe::postgres::PgProbe) -> PgSummary {
    let end = samples.last().unwrap().at_s;
    // However many intervals a busy machine made of it.
    let requests = Cell::new(100.0);
    probe.summary(f64::NEG_INFINITY, end, |_, _| requests.take())
}

#[test]
fn a_session_that_waits_for_a_lock_is_seen_waiting() {
    let server = Postgres::shared().unwrap();
    let database = server.database().unwrap();
    let mut holder = connect(&database.url());
    // What comes in one message is one transaction.
    for message in [
        "create table t (n int); insert into t values (1)",
        "begin; update t set n = 2",
    ] {
        holder.batch_execute(message).unwrap();
    }
    let prober = PgProber::start(&database.url()).unwrap();
    let url = database.url();
    let waiter = thread::spawn(move || connect(&url).batch_execute("update t set n = 3"));
    let mut observer = connect(&database.url());
    wait_for(
        &mut observer,
        "select count(*) from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()",
    );
    let probe = prober.finish(0);
    holder.batch_execute("commit").unwrap();
    waiter.join().unwrap().unwrap();
    assert_eq!(probe.server.max_connections, 100);
    assert!(probe.gaps.is_empty() && !probe.server.is_standby);
    let last = probe.samples.last().unwrap();
    let waits = &last.sessions.waits;
    assert!(
        waits.keys().any(|event| event.starts_with("Lock:")),
        "{waits:?}"
    );
    assert!(last.sessions.by_state["idle in transaction"] >= 1);
    assert!(last.locks_waiting.unwrap() >= 1);
    assert!(last.sessions.longest_transaction_s.unwrap() > 0.0);
}

#[test]
fn cpu_and_wal_include_ended_processes() {
    let server = Postgres::start().unwrap();
    let prober = PgProber::start(&server.url()).unwrap();
    let mut client = connect(&server.url());
    client
        .batch_execute(
            "create table t as select i, repeat('x', 100) from generate_series(1, 20000) i",
        )
        .unwrap();
    let burnt: f64 = client
        .query_one(
            "select count(*)::float8 from generate_series(1, 1500000) i where sqrt(i) > 3",
            &[],
        )
        .unwrap()
        .get(0);
    assert!(burnt > 1e6);
    drop(client);
    // Only the observer is connected, so the process has ended: its time is its postmaster's now.
    let mut observer = connect(&server.url());
    wait_for(
        &mut observer,
        "select (count(*) = 1)::int::int8 from pg_stat_activity where backend_type = 'client backend' \
         and application_name <> 'millpond-probe'",
    );
    let probe = prober.finish(0);
    assert!(probe.unavailable.is_empty(), "{:?}", probe.unavailable);
    let summary = whole(&probe.samples, &probe);
    let each = summary.per_request.unwrap();
    // A hundred requests: at least 20,000 rows of a hundred bytes, and far more than a tick of CPU.
    assert!(each.wal_bytes.unwrap() > 20_000.0, "{each:?}");
    assert!(each.cpu_us.unwrap() > 500.0, "{each:?}");
    assert!(summary.cores.unwrap() > 0.0, "{summary:?}");
}

#[test]
fn a_killed_and_restarted_server_leaves_a_gap() {
    let mut server = Postgres::start().unwrap();
    let prober = PgProber::start(&server.url()).unwrap();
    wait_for_a_sample(&server.url());
    server.kill_hard();
    server.restart().unwrap();
    wait_for_a_sample(&server.url());
    let probe = prober.finish(0);
    assert_eq!(probe.gaps.len(), 1, "{:?}", probe.gaps);
    assert!(probe.gaps[0].to_s > probe.gaps[0].from_s && !probe.gaps[0].reason.is_empty());
    let connections: Vec<u64> = probe
        .samples
        .iter()
        .map(|sample| sample.connection)
        .collect();
    assert!(connections.contains(&0) && connections.contains(&1));
}

#[test]
fn finish_does_not_wait_for_a_dead_or_frozen_server() {
    let mut server = Postgres::start().unwrap();
    let prober = PgProber::start(&server.url()).unwrap();
    server.freeze().unwrap();
    let probe = prober.finish(0);
    assert!(
        probe.gaps[0].reason.contains("no answer"),
        "{:?}",
        probe.gaps
    );
    server.thaw().unwrap();
    let prober = PgProber::start(&server.url()).unwrap();
    server.stop();
    let probe = prober.finish(0);
    assert_eq!((probe.samples.len(), probe.gaps.len()), (1, 1));
}

#[test]
fn invisible_values_are_reported() {
    let server = Postgres::start().unwrap();
    let mut client = connect(&server.url());
    client
        .batch_execute(
            "create role plain login; revoke execute on function pg_wal_lsn_diff from public",
        )
        .unwrap();
    let url = server.url().replace("postgres@", "plain@");
    let probe = PgProber::start(&url).unwrap().finish(0);
    let hidden = &probe.unavailable["sessions and waits of other accounts"];
    assert!(hidden.contains("grant pg_monitor to plain"), "{hidden}");
    assert!(probe.unavailable["WAL bytes"].contains("permission denied"));
    let sample = probe.samples.last().unwrap();
    assert_eq!(sample.sessions.by_state["not visible"], 1);
    assert_eq!(sample.counters.wal_bytes, None);
    assert!(sample.counters.commits.is_some());
}

#[test]
fn slots_that_keep_wal_are_named() {
    let server = Options::new().logical().start().unwrap();
    let mut client = connect(&server.url());
    client
        .batch_execute("create table t (n int); insert into t values (1)")
        .unwrap();
    client
        .simple_query("select pg_create_logical_replication_slot('feed', 'pgoutput')")
        .unwrap();
    let prober = PgProber::start(&server.url()).unwrap();
    client
        .batch_execute("insert into t select generate_series(1, 1000)")
        .unwrap();
    let probe = prober.finish(0);
    let kept = |sample: &PgSample| sample.slots["feed"];
    assert!(kept(probe.samples.last().unwrap()) > kept(&probe.samples[0]));
}

#[test]
fn an_absent_server_is_reported_before_the_measurement() {
    let mut server = Postgres::start().unwrap();
    server.stop();
    let error = PgProber::start(&server.url()).unwrap_err();
    assert!(error.to_string().starts_with("cannot watch PostgreSQL: "));
    assert!(error.to_string().contains("refused"), "{error}");
    server.restart().unwrap();
    let nowhere = server.url().replace("/postgres", "/nowhere");
    let error = PgProber::start(&nowhere).unwrap_err().to_string();
    assert!(error.contains("nowhere"), "{error}");
}
