//! A server's life: fresh, stopped, killed, frozen, several at once.

use std::fs;
use std::time::Duration;

use lab_pgtest::{Options, Postgres};
use postgres::{Client, NoTls};

fn connect(url: &str) -> Client {
    Client::connect(url, NoTls).unwrap_or_else(|error| panic!("{url}: {error}"))
}

fn setting(client: &mut Client, name: &str) -> String {
    client
        .query_one(&format!("show {name}"), &[])
        .expect("a setting")
        .get(0)
}

#[test]
fn a_fresh_server_answers_over_tcp_and_over_its_socket() {
    let server = Postgres::start().unwrap();
    for url in [server.url(), server.socket_url()] {
        let mut client = connect(&url);
        assert_eq!(setting(&mut client, "fsync"), "off");
        assert_eq!(setting(&mut client, "server_encoding"), "UTF8");
        assert_eq!(setting(&mut client, "listen_addresses"), "127.0.0.1");
    }
    let (pid, data) = (server.pid().unwrap(), server.data_folder());
    assert!(data.join("PG_VERSION").exists());
    if rustix::process::geteuid().is_root() {
        let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
        let user = status.lines().find(|line| line.starts_with("Uid:"));
        assert!(user.is_some_and(|line| !line.starts_with("Uid:\t0\t")));
    }
    drop(server);
    assert!(!data.exists());
    assert!(fs::metadata(format!("/proc/{pid}")).is_err());
}

#[test]
fn options_hold_across_a_restart_and_data_across_a_crash() {
    let options = Options::new()
        .logical()
        .max_connections(7)
        .set("work_mem", "1MB");
    let mut server = options.start().unwrap();
    let port = server.port();
    connect(&server.url())
        .batch_execute("create table t (n int); insert into t values (42)")
        .unwrap();
    server.kill_hard();
    let refused = server.freeze().unwrap_err().to_string();
    assert!(server.pid().is_none() && refused.contains("is stopped"));
    assert!(Client::connect(&server.url(), NoTls).is_err());
    server.restart().unwrap();
    assert_eq!(server.port(), port);
    let mut client = connect(&server.url());
    assert_eq!(setting(&mut client, "wal_level"), "logical");
    assert_eq!(setting(&mut client, "max_connections"), "7");
    assert_eq!(setting(&mut client, "work_mem"), "1MB");
    let n: i32 = client.query_one("select n from t", &[]).unwrap().get(0);
    assert_eq!(n, 42);
    server.restart().unwrap();
    assert!(client.simple_query("select 1").is_err(), "disconnected");
}

#[test]
fn a_thawed_server_answers() {
    let server = Postgres::start().unwrap();
    let mut client = connect(&server.url());
    server.freeze().unwrap();
    // The driver waits for an answer as long as it takes.
    let (sender, answer) = std::sync::mpsc::channel();
    let asking = std::thread::spawn(move || {
        let _ = sender.send(client.simple_query("select 1").is_ok());
    });
    assert!(answer.recv_timeout(Duration::from_millis(200)).is_err());
    server.thaw().unwrap();
    assert!(answer.recv_timeout(Duration::from_secs(60)).unwrap());
    asking.join().unwrap();
    server.freeze().unwrap();
    // And a frozen one can be ended.
    drop(server);
}

#[test]
fn tests_share_a_server_and_not_a_database() {
    let server = Postgres::shared().unwrap();
    let (one, other) = (server.database().unwrap(), server.database().unwrap());
    assert_ne!(one.name(), other.name());
    let mut client = connect(&one.url());
    client.batch_execute("create table only_here ()").unwrap();
    let mut elsewhere = connect(&other.url());
    assert!(elsewhere.batch_execute("table only_here").is_err());
    let name = one.name().to_owned();
    drop(one);
    assert!(client.simple_query("select 1").is_err(), "dropped by force");
    let gone = elsewhere
        .query("select 1 from pg_database where datname = $1", &[&name])
        .unwrap();
    assert!(gone.is_empty());
}

#[test]
fn several_start_at_once() {
    let starting = [(); 3].map(|()| std::thread::spawn(Postgres::start));
    let servers = starting.map(|thread| thread.join().unwrap().unwrap());
    let mut ports: Vec<u16> = servers.iter().map(Postgres::port).collect();
    ports.dedup();
    assert_eq!(ports.len(), 3);
}

#[test]
fn the_error_quotes_the_server() {
    let error = Options::new()
        .set("work_mem", "plenty")
        .start()
        .unwrap_err();
    let text = error.to_string();
    assert!(
        text.contains("did not start") && text.contains("work_mem"),
        "{text}"
    );
}
