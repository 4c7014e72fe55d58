//! The access log on real files and pipes.

use std::fs::{self, OpenOptions};
use std::io::Read as _;
use std::net::Ipv4Addr;
use std::os::unix::fs::OpenOptionsExt as _;
use std::time::Duration;

use millpond_access_log::{AccessLog, LogFormat, LogLine};

const LONG: Duration = Duration::from_secs(60);

fn line(target: &[u8]) -> LogLine<'_> {
    LogLine {
        client: Ipv4Addr::LOCALHOST.into(),
        method: b"GET",
        target,
        version: "HTTP/1.1",
        status: 200,
        bytes: 5,
        referer: None,
        user_agent: None,
        received: None,
    }
}

/// A pipe in a new directory, with a reader that reads only on request.
fn pipe(dir: &tempfile::TempDir) -> (std::path::PathBuf, fs::File) {
    let path = dir.path().join("pipe");
    rustix::fs::mknodat(
        rustix::fs::CWD,
        &path,
        rustix::fs::FileType::Fifo,
        0o600.into(),
        0,
    )
    .unwrap();
    let reader = OpenOptions::new()
        .read(true)
        .custom_flags(rustix::fs::OFlags::NONBLOCK.bits() as i32)
        .open(&path)
        .unwrap();
    (path, reader)
}

#[test]
fn the_last_line_is_written_when_the_log_is_dropped() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("access.log");
    let log = AccessLog::open(&path, LogFormat::Combined).unwrap();
    let clone = log.clone();
    log.record(&line(b"/first"));
    drop(log);
    clone.record(&line(b"/last"));
    drop(clone);
    let text = fs::read_to_string(&path).unwrap();
    assert_eq!(text.lines().count(), 2);
    assert!(
        text.contains("\"GET /last HTTP/1.1\" 200 5 \"-\" \"-\"\n"),
        "{text}"
    );
}

#[test]
fn every_line_of_every_thread_arrives_whole() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("access.log");
    let log = AccessLog::open(&path, LogFormat::Combined).unwrap();
    std::thread::scope(|scope| {
        for thread in 0..8 {
            let log = &log;
            scope.spawn(move || {
                for n in 0..1000 {
                    log.record(&line(format!("/{thread}/{n}").as_bytes()));
                }
            });
        }
    });
    assert!(log.flush(LONG));
    let counts = log.counts();
    assert_eq!(counts.written + counts.dropped, 8000);
    let text = fs::read_to_string(&path).unwrap();
    let mut targets: Vec<&str> = text
        .lines()
        .map(|line| line.split(' ').nth(6).unwrap())
        .collect();
    targets.sort_unstable();
    targets.dedup();
    assert_eq!(targets.len() as u64, counts.written);
}

#[test]
fn lines_before_a_reopen_are_in_the_old_file_and_later_ones_in_the_new() {
    let dir = tempfile::tempdir().unwrap();
    let (path, old) = (
        dir.path().join("access.log"),
        dir.path().join("access.log.1"),
    );
    let log = AccessLog::open(&path, LogFormat::Combined).unwrap();
    log.record(&line(b"/before"));
    fs::rename(&path, &old).unwrap();
    log.reopen().unwrap();
    assert!(log.flush(LONG));
    log.record(&line(b"/after"));
    assert!(log.flush(LONG));
    let (before, after) = (
        fs::read_to_string(&old).unwrap(),
        fs::read_to_string(&path).unwrap(),
    );
    assert!(
        before.contains("/before") && !before.contains("/after"),
        "{before}"
    );
    assert!(
        after.contains("/after") && !after.contains("/before"),
        "{after}"
    );
}

#[test]
fn a_reopen_that_fails_keeps_the_old_file() {
    let dir = tempfile::tempdir().unwrap();
    let sub = dir.path().join("sub");
    fs::create_dir(&sub).unwrap();
    let log = AccessLog::open(sub.join("access.log"), LogFormat::Combined).unwrap();
    let moved = dir.path().join("moved");
    fs::rename(&sub, &moved).unwrap();
    assert!(log.reopen().is_err());
    log.record(&line(b"/still"));
    log.stop();
    assert!(
        fs::read_to_string(moved.join("access.log"))
            .unwrap()
            .contains("/still")
    );
}

#[test]
fn a_pipe_without_a_reader_is_an_error_at_once() {
    let dir = tempfile::tempdir().unwrap();
    let (path, reader) = pipe(&dir);
    drop(reader);
    assert!(AccessLog::open(&path, LogFormat::Combined).is_err());
}

#[test]
fn a_pipe_that_is_not_read_loses_lines_and_blocks_no_worker() {
    let dir = tempfile::tempdir().unwrap();
    let (path, mut reader) = pipe(&dir);
    let log = AccessLog::open(&path, LogFormat::Combined).unwrap();
    let target = vec![b'x'; 1000];
    // Far more than the pipe and all buffers hold: if a line waited for the sink, the loop would
    // never end.
    let total = 200_000;
    for _ in 0..total {
        log.record(&line(&target));
    }
    assert!(log.dropped() > 0);
    log.stop();
    // On a busy machine the writer needs longer to count its lines than `stop` waits.
    assert!(log.flush(LONG));
    let counts = log.counts();
    assert_eq!(counts.written + counts.dropped, total);
    let mut text = String::new();
    // The writer's end is closed: the read ends when the pipe is empty.
    drop(log);
    reader.read_to_string(&mut text).unwrap();
    assert_eq!(text.matches('\n').count() as u64, counts.written);
}

#[test]
fn a_blocked_pipe_is_left_for_a_reopened_file() {
    let dir = tempfile::tempdir().unwrap();
    let (path, _reader) = pipe(&dir);
    let log = AccessLog::open(&path, LogFormat::Combined).unwrap();
    for _ in 0..2000 {
        log.record(&line(&[b'x'; 100]));
    }
    fs::rename(&path, dir.path().join("old")).unwrap();
    log.reopen().unwrap();
    assert!(log.flush(LONG));
    log.record(&line(b"/after"));
    log.stop();
    assert!(fs::read_to_string(&path).unwrap().contains("/after"));
}

#[test]
fn a_full_disk_is_counted() {
    let log = AccessLog::open("/dev/full", LogFormat::Combined).unwrap();
    log.record(&line(b"/lost"));
    log.stop();
    let counts = log.counts();
    assert_eq!((counts.written, counts.dropped), (0, 1));
    assert!(counts.write_errors >= 1);
}

#[test]
fn lines_after_the_stop_are_counted_as_lost() {
    let dir = tempfile::tempdir().unwrap();
    let log = AccessLog::open(dir.path().join("access.log"), LogFormat::Combined).unwrap();
    log.stop();
    log.record(&line(b"/late"));
    assert_eq!((log.counts().written, log.dropped()), (0, 1));
}
