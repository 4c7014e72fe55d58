//! The null server: it answers every request after the given delay, and logs its delays.

use std::io::{Read as _, Write as _};
use std::net::{Shutdown, TcpStream};
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

use lab_testkit::{PATIENCE, exchange};
use millrace_client::{Delay, NullPlan, NullServer, Process, Schedule, Stop};
use millrace_stats::Verdict;

use crate::stub::{counted, measure, once};

fn start(plan: &NullPlan) -> NullServer {
    NullServer::start(plan).unwrap()
}

#[test]
fn each_request_of_a_pipeline_is_answered_in_order() {
    let server = start(&NullPlan {
        body: 3,
        ..NullPlan::default()
    });
    let full = "HTTP/1.1 200 OK\r\nContent-Length: 3\r\nContent-Type: text/plain\r\n\r\nxxx";
    let head = &full[..full.len() - 3];
    let mut requests = "GET / HTTP/1.1\r\n\r\nHEAD / HTTP/1.1\r\n\r\n".repeat(1000);
    requests += "POST / HTTP/1.1\r\nContent-Length: 4\r\nConnection: close\r\n\r\n\r\n\r\n";
    let answer = exchange(server.address(), requests.as_bytes());
    let expected = format!("{full}{head}").repeat(1000) + full;
    assert!(answer == expected.as_bytes(), "{} bytes", answer.len());
}

#[test]
fn a_client_that_reads_late_gets_every_byte() {
    let server = start(&NullPlan {
        body: 1 << 20,
        log: 100,
        ..NullPlan::default()
    });
    let mut stream = TcpStream::connect(server.address()).unwrap();
    // Forty answers are more than the buffers of both sides hold.
    let requests = "GET / HTTP/1.1\r\n\r\n".repeat(39) + "GET / HTTP/1.0\r\n\r\n";
    stream.write_all(requests.as_bytes()).unwrap();
    // Another client is served meanwhile.
    let run = measure(&counted(server.url(), 1, 5));
    assert_eq!(run.accounting.good, 5);
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).unwrap();
    assert_eq!(answer.len() as u64, 40 * run.bytes / 5);
    assert_eq!(server.stop().unwrap().answers.len(), 45);
}

#[test]
fn hostile_bytes_close_their_own_connection_only() {
    let server = start(&NullPlan::default());
    assert!(exchange(server.address(), &[b'x'; 200_000][..65_537]).is_empty());
    let chunked = b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n";
    assert!(exchange(server.address(), chunked).is_empty());
    let gone = TcpStream::connect(server.address()).unwrap();
    gone.shutdown(Shutdown::Write).unwrap();
    assert_eq!(measure(&counted(server.url(), 3, 50)).accounting.good, 50);
}

#[test]
fn threads_share_the_connections_and_every_answer_is_logged() {
    let server = start(&NullPlan {
        threads: 3,
        log: 1_000,
        ..NullPlan::default()
    });
    let depth = |depth| counted(server.url(), 7, 300).with(|plan| plan.load.depth = depth);
    assert_eq!(measure(&depth(1)).accounting.good, 300);
    assert_eq!(measure(&depth(4)).accounting.good, 300);
    let each = counted(server.url(), 3, 40).with(|plan| plan.request.keep_alive = false);
    let run = measure(&each);
    assert_eq!((run.accounting.good, run.connections.opened), (40, 40));
    let log = server.stop().unwrap();
    assert_eq!((log.answers.len(), log.lost), (640, 0));
    assert!(log.answers.is_sorted());
}

#[test]
fn a_log_keeps_the_newest() {
    let server = start(&NullPlan {
        log: 10,
        ..NullPlan::default()
    });
    measure(&counted(server.url(), 1, 25));
    let log = server.stop().unwrap();
    assert_eq!((log.answers.len(), log.lost), (10, 15));
}

#[test]
fn the_delays_that_were_made_are_at_least_those_asked_for() {
    let list: Arc<[u64]> = (0..50).map(|n| n % 5 * 1_000_000).collect();
    for spin in [false, true] {
        let server = start(&NullPlan {
            delay: Delay::Listed(Arc::clone(&list)),
            spin,
            log: 100,
            ..NullPlan::default()
        });
        measure(&counted(server.url(), 1, 50));
        let log = server.stop().unwrap();
        let made = log
            .answers
            .iter()
            .map(|answer| answer.answered_ns - answer.arrived_ns);
        for (made, asked) in made.zip(&*list) {
            assert!(made >= *asked, "{made} {asked}");
        }
    }
}

#[test]
fn a_thread_works_for_one_answer_after_the_other() {
    let work = Duration::from_millis(2);
    let server = start(&NullPlan {
        work,
        log: 100,
        ..NullPlan::default()
    });
    let pipelined = counted(server.url(), 4, 40).with(|plan| plan.load.depth = 3);
    assert_eq!(measure(&pipelined).accounting.good, 40);
    let mut answered: Vec<u64> = server
        .stop()
        .unwrap()
        .answers
        .iter()
        .map(|answer| answer.answered_ns)
        .collect();
    answered.sort_unstable();
    assert_eq!(answered.len(), 40);
    for pair in answered.windows(2) {
        let between = pair[1] - pair[0];
        assert!(u128::from(between) >= work.as_nanos(), "{between}");
    }
}

#[test]
fn an_answer_does_not_wait_for_the_work_of_the_next() {
    let work = Duration::from_millis(300);
    let server = start(&NullPlan {
        work,
        ..NullPlan::default()
    });
    let mut stream = TcpStream::connect(server.address()).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let begun = Instant::now();
    let requests =
        "GET / HTTP/1.1\r\n\r\n".repeat(3999) + "GET / HTTP/1.1\r\nConnection: close\r\n\r\n";
    stream.write_all(requests.as_bytes()).unwrap();
    // All of them are twenty minutes of work, and the first is there after its own.
    assert!(stream.read(&mut [0; 4096]).unwrap() > 0);
    assert!(begun.elapsed() >= work);
    // The server is in its second of work, or about to begin it, and does not continue when it has
    // to stop.
    let (ended, end) = mpsc::channel();
    std::thread::spawn(move || {
        drop(server);
        let _ = ended.send(());
    });
    end.recv_timeout(PATIENCE).unwrap();
}

#[test]
fn a_server_stops_with_answers_in_flight() {
    let server = start(&NullPlan {
        delay: Delay::Fixed(Duration::from_secs(3600)),
        ..NullPlan::default()
    });
    let mut stream = TcpStream::connect(server.address()).unwrap();
    stream.write_all(b"GET / HTTP/1.1\r\n\r\n").unwrap();
    drop(server);
    assert!(matches!(stream.read(&mut [0]), Ok(0) | Err(_)));
}

#[test]
fn a_plan_that_cannot_be_carried_out_says_why() {
    let taken = start(&NullPlan::default());
    for (plan, word) in [
        (
            NullPlan {
                threads: 0,
                ..NullPlan::default()
            },
            "threads",
        ),
        (
            NullPlan {
                body: 2 << 30,
                ..NullPlan::default()
            },
            "1 GiB",
        ),
        (
            NullPlan {
                delay: Delay::Listed(Arc::from([])),
                ..NullPlan::default()
            },
            "empty",
        ),
        (
            NullPlan {
                work: Duration::from_millis(1001),
                ..NullPlan::default()
            },
            "at most a second",
        ),
        (
            NullPlan {
                cores: vec![100_000],
                ..NullPlan::default()
            },
            "core 100000",
        ),
        (
            NullPlan {
                listen: taken.address(),
                ..NullPlan::default()
            },
            "cannot listen",
        ),
    ] {
        let error = NullServer::start(&plan).unwrap_err().to_string();
        assert!(error.contains(word), "{error}");
    }
}

/// The reported percentiles against the actual delays, rank by rank. A service time is a delay plus
/// the time for which the kernel carries the request and the response.
#[test]
fn percentiles_are_those_of_the_delays_that_were_made() {
    // A service time also has what a busy machine adds. A run that is not valid says so itself.
    assert!(once(|_| {
        let (most_added, verdict) = most_added();
        most_added <= 5_000.0 || verdict != Verdict::Valid
    }));
}

/// The most microseconds by which a percentile of a run of one second is above that of the actual
/// delays; none is below.
fn most_added() -> (f64, Verdict) {
    let server = start(&NullPlan {
        delay: Delay::Exponential {
            mean: Duration::from_millis(2),
            seed: 5,
        },
        log: 10_000,
        ..NullPlan::default()
    });
    let plan = counted(server.url(), 64, 1).with(|plan| {
        plan.load.threads = 1;
        plan.length.stop = Stop::Duration(Duration::from_secs(1));
        plan.load.schedule = Some(Schedule::new(2_000.0, Process::Poisson(9)));
    });
    let run = measure(&plan);
    let answers = server.stop().unwrap().answers;
    assert_eq!(answers.len() as u64, run.accounting.good);
    let mut delays: Vec<f64> = answers
        .iter()
        .map(|answer| (answer.answered_ns - answer.arrived_ns) as f64 / 1000.0)
        .collect();
    delays.sort_unstable_by(f64::total_cmp);
    let service = run.latency_us.service.unwrap();
    let mut most: f64 = 0.0;
    for (q, reported) in [
        (0.5, service.p50),
        (0.9, service.p90),
        (0.95, service.p95),
        (0.99, service.p99),
    ] {
        let reported = reported.unwrap();
        let rank = ((q * delays.len() as f64).ceil() as usize).max(1) - 1;
        let made = delays[rank];
        // Never less than was made, but for the third digit of the histogram.
        assert!(reported >= made * 0.999, "{q}: {reported} of {made}");
        most = most.max(reported - made * 1.001);
    }
    (most, run.verdict)
}
