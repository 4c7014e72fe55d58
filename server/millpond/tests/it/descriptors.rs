//! The limit of file descriptors: raised as far as possible, with a warning if that is not enough.

use std::fs::{self, File};
use std::process::Command;
use std::time::{Duration, Instant};

use rustix::process::{Resource, getrlimit};

use crate::support::{Connection, Server, new_site};

/// `millpond serve` in a shell that has run `ulimit ARGUMENTS` before.
fn start(site: &std::path::Path, ulimit: &str) -> Server {
    let mut command = Command::new("sh");
    command
        .args(["-c", &format!("ulimit {ulimit} && exec \"$@\""), "sh"])
        .arg(env!("CARGO_BIN_EXE_millpond"))
        .args(["serve", "--listen", "127.0.0.1:0", "--workers", "1"])
        .arg(site);
    Server::spawn(command)
}

#[test]
fn the_soft_limit_is_raised_before_files_are_opened() {
    let site = new_site();
    // Each is too large for memory and stays open.
    for number in 0..80 {
        let file = File::create(site.path().join(format!("static/{number}.bin"))).unwrap();
        file.set_len(2 << 20).unwrap();
    }
    let server = start(site.path(), "-S -n 64");
    let limits = fs::read_to_string(format!("/proc/{}/limits", server.pid())).unwrap();
    let line = limits
        .lines()
        .find(|line| line.starts_with("Max open files"));
    let words: Vec<_> = line.unwrap().split_whitespace().collect();
    assert_eq!(words[3], words[4], "{limits}");
    if let Some(hard) = getrlimit(Resource::Nofile).maximum {
        assert_eq!(words[4], hard.to_string());
    }
    let file = server.get("/79.bin");
    assert_eq!((file.status, file.body.len()), (200, 2 << 20));
}

#[test]
fn a_shortage_is_reported_and_the_connections_that_fit_are_served() {
    let site = new_site();
    let server = start(site.path(), "-n 160");
    let notes = server.wait_for("makes room for all");
    assert!(notes.contains("of the 160 file descriptors"), "{notes}");
    let (_, rest) = notes.split_once("but only ").unwrap();
    let fitting: usize = rest.split(' ').next().unwrap().parse().unwrap();
    assert!((1..160).contains(&fitting), "{notes}");

    let mut open: Vec<_> = (0..fitting)
        .map(|_| Connection::open(server.address()))
        .collect();
    for connection in &mut open {
        assert_eq!(connection.get("/").status, 200);
    }
    let mut refused = Connection::open(server.address());
    assert_eq!(refused.get("/").status, 503);
    assert!(refused.is_closed());
    // None of them was taken from the files: a page that was never asked for is still made.
    assert_eq!(open[0].get("/notes/1").status, 200);
}

/// The time from the connection of a newcomer to its 503, while many others were refused before it.
fn time_of_a_refusal() -> Duration {
    let site = new_site();
    let server = start(site.path(), "-n 200");
    assert_eq!(server.get("/").status, 200);
    let _silent: Vec<_> = (0..400)
        .map(|_| Connection::open(server.address()))
        .collect();
    let start = Instant::now();
    let mut newcomer = Connection::open(server.address());
    assert_eq!(newcomer.get("/").status, 503);
    start.elapsed()
}

#[test]
fn a_refusal_does_not_wait_for_descriptors_of_earlier_refusals() {
    // A machine may hold up the server for longer; each refusal used to wait for seven seconds.
    let is_prompt = (0..5).any(|_| time_of_a_refusal() < Duration::from_secs(1));
    assert!(is_prompt);
}
