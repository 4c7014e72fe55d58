//! A generator that is held up by its own machine must say so: its figures are INVALID.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::support::{PATIENCE, Server, millrace};

fn null() -> Server {
    Server::spawn(millrace(&["null"]))
}

/// `millrace load` at 5,000/s in an open loop, its result on standard output.
fn arguments(server: &Server) -> Vec<String> {
    let url = format!("http://{}/", server.address());
    let rest = "--rate 5000 -c 16 --threads 1 --duration 1500ms --json -";
    let words = ["load", &url].into_iter().chain(rest.split(' '));
    words.map(str::to_owned).collect()
}

fn start(mut command: Command) -> Child {
    let command = command.stdout(Stdio::piped()).stderr(Stdio::null());
    command.spawn().unwrap()
}

/// The run of a generator that must not have said VALID.
fn not_valid(child: Child) -> Value {
    let output = child.wait_with_output().unwrap();
    let run: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_ne!(run["verdict"], "VALID");
    let is_invalid = run["verdict"] == "INVALID";
    assert_eq!(output.status.code(), Some(i32::from(is_invalid)));
    run
}

/// Runs the generator until it says INVALID for `reason`, and that only itself is at fault. A busy
/// machine also holds up the server: the generator is then late for a smaller part of the time, and
/// SUSPECT.
fn until_invalid(reason: &str, measure: impl Fn() -> Value) {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let run = measure();
        let (verdict, reasons) = (&run["verdict"], run["reasons"].to_string());
        if verdict == "INVALID" && run["client_at_fault"] == true && reasons.contains(reason) {
            return;
        }
        assert!(Instant::now() < deadline, "{verdict}: {reasons}");
    }
}

#[test]
fn a_generator_that_is_stopped_half_of_the_time_is_invalid() {
    let server = null();
    until_invalid("the client itself was late", || {
        stopped_half_of_the_time(&server)
    });
}

/// The run of a generator that is stopped half of the time.
fn stopped_half_of_the_time(server: &Server) -> Value {
    let arguments = arguments(server);
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let child = start(millrace(&arguments));
    let (pid, ended) = (Pid::from_child(&child), AtomicBool::new(false));
    thread::scope(|scope| {
        scope.spawn(|| {
            while !ended.load(Ordering::Relaxed) {
                // The pulses are what is tested; nothing is waited for.
                // A process that has ended and was not waited for can still be signalled.
                let _ = kill_process(pid, Signal::STOP);
                thread::sleep(Duration::from_millis(40));
                let _ = kill_process(pid, Signal::CONT);
                thread::sleep(Duration::from_millis(40));
            }
        });
        let ends = StopsPulses(&ended);
        let run = not_valid(child);
        drop(ends);
        run
    })
}

/// Ends the pulses also when the test fails.
struct StopsPulses<'a>(&'a AtomicBool);

impl Drop for StopsPulses<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// A cgroup with a CPU quota of 2 ms in every 50; it is removed when its processes have ended.
struct Quota(PathBuf);

impl Quota {
    /// In the first hierarchy that may be written; none for most users.
    fn make() -> Option<Self> {
        let name = format!("millpond-test-{}", std::process::id());
        let hierarchies = [
            ("/sys/fs/cgroup", "cpu.max", "2000 50000"),
            ("/sys/fs/cgroup/unified", "cpu.max", "2000 50000"),
            ("/sys/fs/cgroup/cpu", "cpu.cfs_quota_us", "2000"),
        ];
        hierarchies.iter().find_map(|(root, file, quota)| {
            let folder = Path::new(root).join(&name);
            fs::create_dir(&folder).ok()?;
            let made = Self(folder);
            // A folder on any other file system has no such file.
            fs::metadata(made.0.join(file)).ok()?;
            if file.starts_with("cpu.cfs") {
                fs::write(made.0.join("cpu.cfs_period_us"), "50000").ok()?;
            }
            fs::write(made.0.join(file), quota).ok()?;
            Some(made)
        })
    }
}

impl Drop for Quota {
    fn drop(&mut self) {
        let _ = fs::remove_dir(&self.0);
    }
}

#[test]
fn a_generator_with_a_cpu_quota_is_invalid_and_names_it() {
    let Some(quota) = Quota::make() else {
        eprintln!("no cgroup with a CPU quota can be made here: not tested");
        return;
    };
    let server = null();
    until_invalid("CPU quota", || {
        let mut command = Command::new("sh");
        // The generator is in the cgroup before it begins.
        command
            .args(["-c", r#"echo $$ > "$0"/cgroup.procs && exec "$@""#])
            .arg(&quota.0)
            .arg(env!("CARGO_BIN_EXE_millrace"))
            .args(arguments(&server));
        let run = not_valid(start(command));
        let client = &run["client"];
        assert!(client["throttled_us"].as_u64() > Some(0), "{client}");
        run
    });
}

#[test]
fn a_null_server_writes_what_it_did() {
    let here = tempfile::tempdir().unwrap();
    let file = here.path().join("log.csv");
    let mut command = millrace(&[
        "null",
        "--size",
        "1KB",
        "--delay",
        "exp:1ms",
        "--threads",
        "2",
        "--log",
    ]);
    command.arg(&file);
    let server = Server::spawn(command);
    let response = server.get("/anything");
    assert_eq!((response.status, response.body.len()), (200, 1_000));
    let (status, said) = server.stop();
    assert!(status.success(), "{said}");
    let text = fs::read_to_string(file).unwrap();
    let mut lines = text.lines();
    assert_eq!(lines.next(), Some("arrived_ns,answered_ns,received_ns"));
    let times: Vec<u64> = lines
        .next()
        .unwrap()
        .split(',')
        // The kernel may not have begun to stamp what comes.
        .filter(|time| !time.is_empty())
        .map(|n| n.parse().unwrap())
        .collect();
    assert!(times[0] < times[1] && times.get(2).is_none_or(|&received| received <= times[0]));
    assert!(lines.next().is_none());
}
