//! Probes of real processes: this test program, and children of it.

use std::process::{Child, Command, Stdio};
use std::time::Duration;

use base_probe::{Moment, Probe, Prober, ProberOptions};

fn options(pids: Vec<i32>) -> ProberOptions {
    ProberOptions {
        interval: Duration::from_millis(100),
        pids,
        required: true,
        ..ProberOptions::default()
    }
}

/// A shell that does `script` after a line on its standard input.
fn shell(script: &str) -> Child {
    Command::new("sh")
        .args(["-c", &format!("read _; {script}; read _")])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap()
}

/// Lets the shell begin, and waits for its word that it is done.
fn release(child: &mut Child) {
    use std::io::{BufRead as _, BufReader, Write as _};
    child.stdin.as_mut().unwrap().write_all(b"\n").unwrap();
    let output = BufReader::new(child.stdout.as_mut().unwrap());
    assert_eq!(output.lines().next().unwrap().unwrap(), "done");
}

fn whole(probe: &Probe) -> base_probe::Summary {
    probe
        .within(Moment::Monotonic(0), Moment::Monotonic(u64::MAX))
        .unwrap()
}

#[test]
fn counters_only_rise_and_missing_ones_have_a_reason() {
    let me = std::process::id().cast_signed();
    let prober = Prober::start(options(vec![me])).unwrap();
    let mut n = 0_u64;
    let begun = std::time::Instant::now();
    while begun.elapsed() < Duration::from_millis(350) {
        n = std::hint::black_box(n.wrapping_mul(31).wrapping_add(7));
    }
    let probe = prober.stop();
    assert!(probe.samples.len() > 1);
    for pair in probe.samples.windows(2) {
        assert!(pair[0].mono_ns < pair[1].mono_ns);
        let (earlier, later) = (pair[0].server.unwrap(), pair[1].server.unwrap());
        assert!(earlier.run_ns <= later.run_ns && earlier.wait_ns <= later.wait_ns);
        assert!(earlier.user <= later.user && earlier.voluntary <= later.voluntary);
    }
    let summary = whole(&probe);
    let server = summary.server.unwrap();
    // It spun all the time, but for what the machine gave to others.
    assert!(server.cpu_s + server.run_delay_s >= 0.25, "{server:?}");
    assert!(!summary.cores.is_empty() && summary.memory.unwrap().total > 0);
    assert!(probe.cost.cpu_ms > 0.0 && probe.cost.core_share < 0.5);
    assert!(probe.unavailable.values().all(|why| !why.is_empty()));
    let json = serde_json::to_string(&probe).unwrap();
    assert_eq!(serde_json::from_str::<Probe>(&json).unwrap(), probe);
}

#[test]
fn short_lived_children_are_counted() {
    // Each of the inner shells counts to a hundred thousand and ends; none lives for two samples.
    let count = "i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done";
    let mut child = shell(&format!(
        "for n in 1 2 3 4; do sh -c '{count}'; done; echo done"
    ));
    let prober = Prober::start(options(vec![child.id().cast_signed()])).unwrap();
    release(&mut child);
    let probe = prober.stop();
    let server = whole(&probe).server.unwrap();
    drop(child.stdin.take());
    child.wait().unwrap();
    // The clock gives any positive time, and at most one core's.
    let span = whole(&probe).span_s;
    assert!(server.cpu_s > 0.02, "{server:?} in {span} s");
    assert!(server.cpu_s <= span + 0.1, "{server:?} in {span} s");
}

#[test]
fn the_end_of_a_process_is_noted_and_its_time_stays() {
    let mut child = shell("i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done; echo done");
    let pid = child.id().cast_signed();
    let prober = Prober::start(options(vec![pid])).unwrap();
    release(&mut child);
    std::thread::park_timeout(Duration::from_millis(250));
    child.kill().unwrap();
    child.wait().unwrap();
    let probe = prober.stop();
    assert!(probe.processes[0].ended_ns.is_some(), "{probe:?}");
    assert!(
        probe.notes.join(" ").contains(&pid.to_string()),
        "{:?}",
        probe.notes
    );
    assert!(probe.samples.last().unwrap().server.is_none());
    assert!(whole(&probe).server.unwrap().cpu_s > 0.0);
}

#[test]
fn a_port_without_listeners_is_refused() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    drop(listener);
    let closed = ProberOptions {
        ports: vec![port],
        ..options(Vec::new())
    };
    let why = Prober::start(closed.clone()).unwrap_err().to_string();
    assert!(why.contains(&format!("port {port}")), "{why}");
    // Not asked for by name it is only a remark, and the machine is sampled all the same.
    let probe = Prober::start(ProberOptions {
        required: false,
        ..closed
    })
    .unwrap()
    .stop();
    assert!(probe.unavailable["processes"].contains(&port.to_string()));
    assert!(whole(&probe).server.is_none());
}
