//! A client that spins has the same results, and does not count as busy.

use std::sync::atomic::AtomicBool;
use std::time::Duration;

use millrace_client::{Auto, Delay, NullPlan, NullServer, Plan, Schedule, Stop, Think};
use millrace_runs::{Compare, Run, calibrate, compare};
use millrace_stats::{Subject, Verdict};

use crate::stub::{HELLO, StubServer, counted, measure, once, serve};

fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

/// A plan of `count` requests by one thread that spins: a machine of two cores has one left.
fn spinning(url: String, connections: usize, count: u64) -> Plan {
    counted(url, connections, count).with(|plan| {
        plan.load.threads = 1;
        plan.load.spin = true;
    })
}

fn constant(rate: f64) -> Option<Schedule> {
    Some(Schedule::constant(rate))
}

#[test]
fn every_kind_of_loop_counts_the_same() {
    let server = StubServer::fixed(HELLO);
    let closed = spinning(server.url("/"), 4, 300);
    let shapes = [
        closed.clone(),
        closed
            .clone()
            .with(|plan| plan.load.schedule = constant(3_000.0)),
        closed.clone().with(|plan| {
            plan.load.pace = "1ms"
                .parse::<Think>()
                .map(millrace_client::Pace::Think)
                .unwrap()
        }),
        closed.clone().with(|plan| plan.request.keep_alive = false),
        closed.with(|plan| plan.target.throttle_down = Some("1M".parse().unwrap())),
    ];
    for plan in shapes {
        let spun = measure(&plan);
        let slept = measure(&plan.with(|plan| plan.load.spin = false));
        assert_eq!(spun.accounting, slept.accounting);
        assert_eq!(spun.errors, slept.errors);
        assert!(spun.client.spin && spun.client.spun_us.is_some());
        assert!(!slept.client.spin && slept.client.spun_us.is_none());
        let json = serde_json::to_value(&spun).unwrap();
        assert_eq!(json["client"]["spin"], true);
    }
}

#[test]
fn a_server_without_an_answer_is_given_up_after_the_timeout() {
    let server = StubServer::start(|stream| {
        serve(&stream, |_, _| {
            std::thread::park_timeout(Duration::from_secs(60));
            None
        });
    });
    let run = measure(&spinning(server.url("/"), 2, 4).with(|plan| plan.request.timeout = ms(50)));
    assert_eq!(run.errors.count("timeout"), 4, "{:?}", run.errors);
}

/// A run of 400 ms with little work for the client: two hundred requests a second, or responses
/// that take ten milliseconds.
fn idle(server: &NullServer, schedule: Option<Schedule>, spin: bool) -> Run {
    measure(&spinning(server.url(), 2, 1).with(|plan| {
        plan.length.stop = Stop::Duration(ms(400));
        plan.load.schedule = schedule;
        plan.load.spin = spin;
    }))
}

/// Microseconds for which its thread was on a core, or was ready and had none.
fn on_core(run: &Run) -> f64 {
    let finished = (run.accounting.answered + run.accounting.failed) as f64;
    let work = run.client.cpu_us_per_request.unwrap() * finished;
    let others = run.client.run_delay_us.unwrap_or(0) as f64;
    work + run.client.spun_us.unwrap_or(0) as f64 + others
}

#[test]
fn a_client_that_has_little_to_do_is_not_busy_though_its_core_is() {
    let server = NullServer::start(&NullPlan {
        delay: Delay::Fixed(ms(10)),
        ..NullPlan::default()
    })
    .unwrap();
    for schedule in [None, constant(100.0)] {
        assert!(once(|_| {
            let run = idle(&server, schedule.clone(), true);
            let whole = on_core(&run) / 1e6 / run.duration_s;
            let words = run.reasons.join("; ");
            whole > 0.8 && run.client.busiest_thread < 0.3 && !words.contains("of a core")
        }));
        // The same holds for a client that sleeps, whose core is also free.
        assert!(once(|_| {
            let run = idle(&server, schedule.clone(), false);
            run.client.busiest_thread < 0.3
        }));
    }
}

#[test]
fn the_verdict_is_of_the_same_kind() {
    let server = NullServer::start(&NullPlan {
        delay: Delay::Fixed(ms(1)),
        ..NullPlan::default()
    })
    .unwrap();
    // Both may be VALID. They are not where the machine has no core for the client when it asks.
    assert!(once(|_| {
        let [slept, spun] = [false, true].map(|spin| idle(&server, None, spin));
        let delay = slept.client.run_delay_us.unwrap_or(0) as f64;
        let has_no_core = delay > 1e6 * slept.duration_s / 20.0;
        slept.verdict == spun.verdict && (slept.verdict == Verdict::Valid || has_no_core)
    }));
}

#[test]
fn the_client_is_calibrated_as_it_will_measure() {
    let server = StubServer::fixed(HELLO);
    let plan = spinning(server.url("/"), 4, 1);
    let is_known = |attempt| {
        let length = ms(120) * (attempt as u32 + 1);
        let known = calibrate(&plan, length, &AtomicBool::new(false)).unwrap();
        known.is_some_and(|known| known.ceiling_per_s > 100.0 && known.floor_us > 0.0)
    };
    assert!(once(is_known));
}

#[test]
fn a_run_whose_length_is_decided_meanwhile_ends() {
    let server = StubServer::fixed(HELLO);
    let max = ms(2_000);
    let run = measure(&spinning(server.url("/"), 4, 1).with(|plan| {
        plan.length.stop = Stop::Duration(max);
        plan.length.auto = Some(Auto {
            precision: 0.5,
            max,
        });
        plan.load.schedule = constant(500.0);
    }));
    assert!(run.auto.unwrap().measured_s > 0.0 && run.client.busiest_thread < 0.9);
}

#[test]
fn two_servers_are_compared_by_clients_of_one_kind() {
    let server = NullServer::start(&NullPlan::default()).unwrap();
    let subject = |name: &str, pids: Vec<u32>| Subject {
        name: name.to_owned(),
        url: server.url(),
        pids,
    };
    let plan = spinning(server.url(), 1, 1).with(|plan| {
        plan.length.stop = Stop::Duration(ms(20));
        plan.length.warmup = Duration::ZERO;
    });
    let stop = AtomicBool::new(false);
    let both = |plan: Plan, pids: Vec<u32>| {
        let compared = Compare {
            blocks: 3,
            ..Compare::new(subject("a", pids.clone()), subject("b", pids), plan)
        };
        compare(&compared, None, &stop)
    };
    let found = both(plan.clone(), Vec::new()).unwrap();
    assert!(found.complete || found.verdict == Verdict::Invalid);
    // This process is the server, and may run only where the client would leave it nothing.
    let everywhere = plan.with(|plan| {
        plan.load.threads = 0;
        plan.load.connections = 1_000;
    });
    let refused = both(everywhere, vec![std::process::id()]).unwrap_err();
    assert!(refused.to_string().contains("other cores"), "{refused}");
}
