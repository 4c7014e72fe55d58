//! Connections on which nothing arrives any more, although they were not closed.

use std::future::{Future as _, poll_fn};
use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::Poll;
use std::thread;
use std::time::Duration;

use millpond_db::{Call, Database, Error, PostgresOptions};
use postgres::{Client, NoTls};

use super::{Fixture, prepare, server, try_read};
use crate::support::{int, wait};

/// A way to the server on which all packets can be lost; a connection that is made later is
/// not.
struct Relay {
    port: u16,
    made: Arc<AtomicUsize>,
    lost: Arc<AtomicUsize>,
}

impl Relay {
    fn start(to: u16) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let relay = Self {
            port: listener.local_addr().unwrap().port(),
            made: Arc::default(),
            lost: Arc::default(),
        };
        let (made, lost) = (Arc::clone(&relay.made), Arc::clone(&relay.lost));
        thread::spawn(move || {
            for client in listener.incoming().flatten() {
                let number = made.fetch_add(1, Ordering::SeqCst);
                let server = TcpStream::connect((Ipv4Addr::LOCALHOST, to)).unwrap();
                for (from, to) in [(&client, &server), (&server, &client)] {
                    let (from, to) = (from.try_clone().unwrap(), to.try_clone().unwrap());
                    let lost = Arc::clone(&lost);
                    thread::spawn(move || {
                        copy(&from, &to, || number < lost.load(Ordering::SeqCst))
                    });
                }
            }
        });
        relay
    }

    /// From now on nothing arrives on the connections that there are.
    fn lose(&self) {
        let made = self.made.load(Ordering::SeqCst);
        self.lost.store(made, Ordering::SeqCst);
    }
}

fn copy(mut from: &TcpStream, mut to: &TcpStream, is_lost: impl Fn() -> bool) {
    let mut buffer = [0; 4096];
    while let Ok(length @ 1..) = from.read(&mut buffer) {
        if !is_lost() && to.write_all(&buffer[..length]).is_err() {
            break;
        }
    }
    let _ = from.shutdown(Shutdown::Both);
    let _ = to.shutdown(Shutdown::Both);
}

#[test]
fn a_read_waits_for_one_deaf_connection_and_the_next_for_none() {
    const POOL: usize = 4;
    let scratch = server().database().unwrap();
    let relay = Relay::start(server().port());
    let [old, new] = [server().port(), relay.port].map(|port| format!("127.0.0.1:{port}"));
    let database = Database::connect(PostgresOptions {
        pool: POOL,
        workers: 1,
        statement_timeout: Duration::from_secs(5),
        ..PostgresOptions::new(scratch.url().replace(&old, &new))
    })
    .unwrap();
    // All reads run until the lock is released, so that each has a connection of its own.
    let mut foreign = Client::connect(&scratch.url(), NoTls).unwrap();
    foreign.batch_execute("select pg_advisory_lock(1)").unwrap();
    let query = prepare(&database, "select 1 from pg_advisory_xact_lock_shared(1)");
    let waiting = "select count(*) from pg_stat_activity \
                      where datname = current_database() and wait_event = 'advisory'";
    let mut reads: Vec<_> = (0..POOL)
        .map(|_| {
            let query = query.clone();
            let params = vec![];
            Box::pin(database.read(vec![Call { query, params }]))
        })
        .collect();
    wait(poll_fn(|cx| {
        reads.retain_mut(|read| read.as_mut().poll(cx).is_pending());
        Poll::Ready(())
    }));
    let running = |foreign: &mut Client| -> i64 { foreign.query_one(waiting, &[]).unwrap().get(0) };
    while running(&mut foreign) < POOL as i64 {
        thread::yield_now();
    }
    foreign
        .batch_execute("select pg_advisory_unlock(1)")
        .unwrap();
    wait(poll_fn(|cx| {
        reads.retain_mut(|read| read.as_mut().poll(cx).is_pending());
        if reads.is_empty() {
            Poll::Ready(())
        } else {
            Poll::Pending
        }
    }));
    assert!(relay.made.load(Ordering::SeqCst) >= POOL);
    relay.lose();
    assert!(matches!(
        try_read(&database, &query, vec![]),
        Err(Error::Timeout { .. })
    ));
    let read = try_read(&database, &query, vec![]).unwrap();
    assert_eq!(read.results[0].rows, [[int(1)]]);
    database.stop();
}

#[test]
fn the_servers_end_of_a_connection_asks_after_ours() {
    let names = ["idle", "interval", "count"];
    let settings = names.map(|name| format!("current_setting('tcp_keepalives_{name}')::integer"));
    let sql = format!("select {}", settings.join(", "));
    let found = Fixture::new("").rows(&sql, vec![]);
    assert_eq!(found, [[5, 2, 3].map(int)]);
}
