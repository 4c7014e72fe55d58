//! A test that is killed leaves nothing behind.

use std::env;
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use lab_pgtest::Postgres;

/// Set for the process that is to be killed.
const VICTIM: &str = "MILLPOND_PGTEST_VICTIM";

/// No test: what `a_killed_test_ends_its_server` runs in another process.
#[test]
fn victim() {
    if env::var_os(VICTIM).is_none() {
        return;
    }
    let server = Postgres::start().unwrap();
    println!(
        "server {} {}",
        server.pid().unwrap(),
        server.data_folder().display()
    );
    if env::var_os(VICTIM).is_some_and(|how| how == "frozen") {
        server.freeze().unwrap();
    }
    println!("ready");
    loop {
        thread::park();
    }
}

fn check(how: &str) {
    let mut command = Command::new(env::current_exe().unwrap());
    command
        .args(["end::victim", "--exact", "--nocapture"])
        .env(VICTIM, how)
        .stdout(Stdio::piped())
        .stderr(Stdio::null());
    let mut victim = command.spawn().unwrap();
    let lines = BufReader::new(victim.stdout.take().unwrap()).lines();
    let said: Vec<String> = lines
        .map(Result::unwrap)
        .take_while(|line| line != "ready")
        .collect();
    let place = said
        .iter()
        .find_map(|line| line.split("server ").nth(1))
        .unwrap();
    let (pid, data) = place.split_once(' ').unwrap();
    assert!(Path::new(data).exists());
    // SIGKILL: nothing of the victim runs any more.
    victim.kill().unwrap();
    victim.wait().unwrap();
    let given_up = Instant::now() + Duration::from_secs(30);
    while is_running(pid) || Path::new(data).parent().unwrap().exists() {
        assert!(Instant::now() < given_up, "process {pid} or {data} is left");
        thread::sleep(Duration::from_millis(10));
    }
}

/// An ended process may stay in the process table until its parent asks for its status.
fn is_running(pid: &str) -> bool {
    std::fs::read_to_string(format!("/proc/{pid}/stat")).is_ok_and(|stat| !stat.contains(") Z "))
}

#[test]
fn a_killed_test_ends_its_server() {
    check("running");
}

#[test]
fn a_killed_test_ends_even_a_frozen_server() {
    check("frozen");
}
