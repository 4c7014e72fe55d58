//! Plans of workloads against servers: sessions, what is taken from answers, classes.

use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use millrace_client::{Plan, Schedule, Stop, Workload};
use millrace_runs::{Loop, Run};

use crate::stub::{HELLO, StubServer, counted, measure, serve};

/// A visitor who gets a token and shows it, and one who only reads.
const SHOP: &str = r#"
[[class]]
name = "buyer"
weight = 1

[[class.step]]
target = "/token"
extract = { token = { regex = 'token=(\w+)' } }
think = "2ms"

[[class.step]]
method = "POST"
target = "/buy"
body = "token={{token}}"
check = { contains = "bought" }

[[class]]
name = "looker"
weight = 3

[[class.step]]
target = "/look?n={{counter}}"
"#;

fn with(text: &str, plan: Plan) -> Plan {
    let workload = Workload::parse(text, Path::new("plan.toml"), &plan).unwrap();
    plan.with(|plan| plan.request.workload = Some(Arc::new(workload)))
}

fn answer(body: &str) -> Option<Vec<u8>> {
    let length = body.len();
    Some(format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n{body}").into_bytes())
}

/// Sells to a client that shows a token; `sold_out` gives no token.
fn shop(sold_out: bool) -> StubServer {
    StubServer::start(move |stream| {
        serve(&stream, |_, head| match head.split(' ').nth(1) {
            Some("/token") if sold_out => answer("sold out"),
            Some("/token") => answer("token=abc123"),
            Some("/buy") => answer("bought"),
            _ => answer("look"),
        });
    })
}

fn open(rate: f64) -> Option<Schedule> {
    Some(Schedule::constant(rate))
}

/// The classes add up to the whole.
fn check_classes(run: &Run) {
    let sum = |of: fn(&millrace_runs::ClassFigures) -> u64| run.classes.iter().map(of).sum::<u64>();
    let all = &run.accounting;
    assert_eq!(sum(|c| c.requests), run.requests);
    assert_eq!(sum(|c| c.good), all.good);
    assert_eq!(sum(|c| c.failed), all.failed);
    assert_eq!(sum(|c| c.shed), all.shed);
    assert_eq!(sum(|c| c.bytes), run.bytes);
    assert_eq!(sum(|c| c.issued), all.issued - all.abandoned);
    let times = sum(|c| c.service_us.map_or(0, |time| time.count));
    assert_eq!(times, all.good);
    let is_open = run.kind == Loop::Open;
    let times = sum(|c| c.response_us.map_or(0, |time| time.count));
    assert_eq!(times, if is_open { all.good } else { 0 });
    let sent = run.latency_us.send_lag.map_or(0, |time| time.count);
    assert_eq!(sum(|c| c.send_lag_us.map_or(0, |time| time.count)), sent);
    assert_eq!(
        sum(|c| c.send_lag.as_ref().map_or(0, |times| times.samples())),
        sent
    );
    let over_time =
        |of: fn(&millrace_stats::Timeline) -> &Vec<Option<millrace_stats::Hdr>>| -> u64 {
            let classes = run.classes.iter();
            let times = classes.flat_map(|class| of(&class.series).iter().flatten());
            times.map(millrace_stats::Hdr::samples).sum()
        };
    assert_eq!(over_time(|series| &series.histograms), all.good);
    let served = over_time(|series| &series.service);
    assert_eq!(served, if is_open { all.good } else { 0 });
    assert_eq!(over_time(|series| &series.send_lag), sent);
    let asked = |(kind, _): &(&String, &u64)| *kind != "unsolicited";
    for (kind, count) in run.errors.by_kind.iter().filter(asked) {
        let of_classes = run.classes.iter().map(|class| class.errors.count(kind));
        assert_eq!(of_classes.sum::<u64>(), *count, "{kind}");
    }
}

#[test]
fn sessions_take_from_answers_what_they_send() {
    let server = shop(false);
    for threads in [1, 2] {
        let plan = counted(server.url("/"), 4, 400).with(|plan| plan.load.threads = threads);
        let run = measure(&with(SHOP, plan));
        assert_eq!(
            (run.accounting.good, run.errors.total()),
            (400, 0),
            "{:?}",
            run.errors
        );
        check_classes(&run);
        let [buyer, looker] = &run.classes[..] else {
            panic!("{:?}", run.classes)
        };
        assert_eq!(
            (buyer.name.as_str(), looker.name.as_str()),
            ("buyer", "looker")
        );
        // Buyers make two requests and lookers one, and there is one buyer to three lookers.
        assert!((100..=220).contains(&buyer.requests), "{buyer:?}");
        let sessions = run.sessions.unwrap();
        assert!(
            sessions.completed > 0 && sessions.broken_off == 0,
            "{sessions:?}"
        );
        assert_eq!(sessions.offered_rate, None);
    }
}

#[test]
fn without_the_value_a_session_is_over() {
    let server = shop(true);
    let run = measure(&with(SHOP, counted(server.url("/"), 4, 300)));
    check_classes(&run);
    let buyer = &run.classes[0];
    assert_eq!(
        (buyer.good, run.errors.count("no_match")),
        (0, buyer.requests)
    );
    assert_eq!(run.sessions.unwrap().broken_off, buyer.requests);
    assert_eq!(
        run.accounting.abandoned, 0,
        "nothing was promised by a schedule"
    );

    let plan = counted(server.url("/"), 8, 1).with(|plan| {
        plan.load.schedule = open(400.0);
        plan.length.stop = Stop::Duration(Duration::from_millis(500));
    });
    let run = measure(&with(SHOP, plan));
    check_classes(&run);
    let buyer = &run.classes[0];
    assert_eq!(run.sessions.unwrap().started, 200);
    assert_eq!(run.accounting.abandoned, buyer.requests);
    assert!(buyer.response_us.is_none() && run.classes[1].response_us.is_some());
}

#[test]
fn a_server_that_never_answers_sheds_and_abandons_by_class() {
    let server = StubServer::start(|stream| {
        serve(&stream, |_, _| {
            std::thread::park_timeout(Duration::from_secs(60));
            None
        });
    });
    let plan = counted(server.url("/"), 2, 1).with(|plan| {
        plan.load.schedule = open(200.0).map(|schedule| Schedule {
            deadline: Some(Duration::from_millis(30)),
            ..schedule
        });
        plan.request.timeout = Duration::from_millis(100);
        plan.length.stop = Stop::Duration(Duration::from_millis(300));
    });
    let run = measure(&with(SHOP, plan));
    check_classes(&run);
    let all = run.accounting;
    assert_eq!(
        (run.sessions.unwrap().started, all.good, all.in_flight),
        (60, 0, 0)
    );
    assert!(
        all.shed > 0 && all.failed > 0 && all.abandoned > 0,
        "{all:?}"
    );
}

#[test]
fn a_body_in_pieces_without_a_length_is_complete() {
    let server = StubServer::start(|stream| {
        use std::io::Write as _;
        serve(&stream, |_, head| {
            let body = if head.contains("/token") {
                "token=xyz"
            } else {
                "bought"
            };
            // The end of the body is the end of the connection.
            for piece in ["HTTP/1.1 200 OK\r\n", "\r\n", &body[..3], &body[3..]] {
                let _ = (&stream).write_all(piece.as_bytes());
            }
            None
        });
    });
    let plan = r#"
[[class]]
name = "buyer"
[[class.step]]
target = "/token"
extract = { token = { regex = 'token=(\w+)' } }
[[class.step]]
method = "POST"
target = "/buy"
body = "{{token}}"
check = { contains = "bought" }
"#;
    let run = measure(&with(plan, counted(server.url("/"), 3, 60)));
    assert_eq!(
        (run.accounting.good, run.errors.total()),
        (60, 0),
        "{:?}",
        run.errors
    );
    assert!(run.classes.is_empty(), "one class is the whole");
}

#[test]
fn bytes_after_an_answer_and_bodies_without_end_are_no_panic() {
    let trailing: &[u8] =
        b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhelloHTTP/1.1 200 OK\r\n\r\n";
    for answer in [trailing, &HELLO[..HELLO.len() - 1]] {
        let server = StubServer::fixed(answer);
        let run = measure(
            &with(SHOP, counted(server.url("/"), 2, 10))
                .with(|plan| plan.request.timeout = Duration::from_millis(100)),
        );
        check_classes(&run);
        assert!(run.errors.total() > 0, "{:?}", run.errors);
    }
}

#[test]
fn recorded_arrivals_begin_the_sessions_in_their_order() {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let log = Arc::clone(&seen);
    let server = StubServer::start(move |stream| {
        serve(&stream, |_, head| {
            let target = head.split(' ').nth(1).unwrap_or_default().to_owned();
            log.lock().unwrap().push(target);
            Some(HELLO.to_vec())
        });
    });
    let times: Vec<u64> = (0..20).map(|n| n * 10_000_000).collect();
    // With several connections a busy machine could change the order in which the server reads.
    let plan = counted(server.url("/"), 1, 1).with(|plan| {
        plan.load.schedule = Some(Schedule::recorded(&times, 1.0).unwrap());
        plan.length.stop = Stop::Duration(Duration::MAX);
        plan.load.threads = 1;
    });
    let text = "[[class]]\nname = \"all\"\n[[class.step]]\ntarget = \"/{{counter}}\"\n";
    let run = measure(&with(text, plan));
    assert_eq!(run.accounting.good, 20);
    let expected: Vec<String> = (0..20).map(|n| format!("/{n}")).collect();
    assert_eq!(*seen.lock().unwrap(), expected);
}

#[test]
fn a_workload_has_its_own_pauses_sessions_and_checks() {
    let base = counted("http://127.0.0.1:1/".to_owned(), 1, 1);
    let plan = with(SHOP, base);
    for bad in [
        plan.clone().with(|plan| {
            plan.load.session = Some(2);
            plan.load.schedule = open(1.0);
        }),
        plan.clone()
            .with(|plan| plan.request.expect_body = Some("x".to_owned())),
        plan.with(|plan| plan.load.depth = 2),
    ] {
        let stop = std::sync::atomic::AtomicBool::new(false);
        assert!(millrace_runs::run(&bad, None, &stop).is_err());
    }
}
