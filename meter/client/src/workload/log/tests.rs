//! Logs as a whole.

use std::fs;
use std::io::Write as _;
use std::path::PathBuf;

use super::*;
use crate::Plan;
use crate::workload::{ResponseVerdict, Workload};

/// A line in the given second of a day.
fn line(second: u32, request: &str, status: u16) -> String {
    let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
    format!(
        "10.0.0.1 - - [10/Oct/2023:{hour:02}:{minute:02}:{second:02} +0200] \"{request} HTTP/1.1\" {status} 99 \"-\" \"x\"\n"
    )
}

fn with<T>(text: &str, use_it: impl FnOnce(PathBuf) -> T) -> T {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("access.log");
    fs::write(&path, text).unwrap();
    use_it(path)
}

fn first(workload: &Workload, number: u64) -> String {
    let mut out = Vec::new();
    workload.session(number).render(workload, &mut out);
    String::from_utf8(out).unwrap()
}

fn sample() -> String {
    let mut text = String::new();
    for n in 0..600 {
        let target = match n % 10 {
            0..6 => "/read?id=1",
            6..8 => "/read?id=2",
            8 => "/static/a.css",
            _ => "/static/b.css?v=2",
        };
        text += &line(n / 2, &format!("GET {target}"), 200);
    }
    text += &line(300, "POST /new", 303);
    text += &line(300, "GET /gone", 404);
    text + "- no log line\n"
}

#[test]
fn mix_popularity_and_arrivals_are_learned() {
    let learned = with(&sample(), |path| Learned::from_log(&path)).unwrap();
    assert_eq!(
        (learned.used, learned.failed, learned.other_methods),
        (600, 1, 1)
    );
    assert_eq!(
        (
            learned.lines.all,
            learned.lines.damaged,
            learned.lines.first_damaged
        ),
        (603, 1, Some(603))
    );
    let classes: Vec<_> = learned
        .classes
        .iter()
        .map(|class| (class.name.as_str(), class.requests, class.targets()))
        .collect();
    assert_eq!(classes, [("/read", 480, 2), ("/static/*.css", 120, 2)]);
    assert_eq!(
        (learned.arrivals.seconds, learned.arrivals.peak_rate),
        (301, 2)
    );
    assert_eq!(learned.arrivals.kind, ArrivalKind::Even);
    let text = learned.to_string();
    assert!(
        text.contains("80.00%") && text.contains("/static/*.css") && text.contains("line 603"),
        "{text}"
    );
    let workload = learned.workload(&Plan::new("http://h/"), 1).unwrap();
    let all: Vec<String> = (0..3000).map(|number| first(&workload, number)).collect();
    let share = |text: &str| {
        all.iter()
            .filter(|request| request.starts_with(text))
            .count()
    };
    assert!(
        (1700..1900).contains(&share("GET /read?id=1 HTTP/1.1\r\nHost: h\r\n")),
        "{}",
        share("GET /read?id=1")
    );
    assert!((240..360).contains(&share("GET /static/b.css?v=2 ")));
}

#[test]
fn a_packed_log_is_the_same_and_a_cut_one_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("access.log.gz");
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    packed.write_all(sample().as_bytes()).unwrap();
    let bytes = packed.finish().unwrap();
    fs::write(&path, &bytes).unwrap();
    assert_eq!(Learned::from_log(&path).unwrap().used, 600);
    fs::write(&path, &bytes[..bytes.len() / 2]).unwrap();
    let error = Learned::from_log(&path).unwrap_err().to_string();
    assert!(error.starts_with("cannot read "), "{error}");
}

#[test]
fn a_file_that_is_no_log_is_refused_with_its_first_line() {
    let error = with(&format!("{}a\nb\n", line(0, "GET /", 200)), |path| {
        Learned::from_log(&path)
    })
    .unwrap_err();
    assert!(
        error
            .to_string()
            .contains("access.log:2: not in the common"),
        "{error}"
    );
    let error = with(&line(0, "POST /", 200), |path| Learned::from_log(&path)).unwrap_err();
    assert!(error.to_string().contains("has no GET"), "{error}");
    let error = with("", |path| Replay::from_log(&path, true)).unwrap_err();
    assert!(
        error.to_string().contains("no request to replay"),
        "{error}"
    );
    let error = Learned::from_log("/nowhere".as_ref()).unwrap_err();
    assert!(error.to_string().starts_with("cannot read /nowhere: "));
}

#[test]
fn a_replay_keeps_order_times_and_statuses() {
    let text = [
        line(10, "GET /a", 200),
        line(13, "HEAD /late", 200),
        line(10, "GET /b", 404),
        line(12, "POST /new", 303),
        line(10, "GET /a", 200),
        line(10, "GET /c\\x22", 200),
    ]
    .concat();
    let replay = with(&text, |path| Replay::from_log(&path, false)).unwrap();
    assert_eq!(replay.unsafe_methods, 1);
    let ms = |ms: u64| ms * 1_000_000;
    let (workload, times) = replay.workload(&Plan::new("http://h/")).unwrap();
    assert_eq!(times, [0, ms(250), ms(500), ms(750), ms(3000)]);
    let lines: Vec<String> = (0..6)
        .map(|n| first(&workload, n).lines().next().unwrap().to_owned())
        .collect();
    assert_eq!(
        lines,
        [
            "GET /a HTTP/1.1",
            "GET /b HTTP/1.1",
            "GET /a HTTP/1.1",
            "GET /c\" HTTP/1.1",
            "HEAD /late HTTP/1.1",
            "GET /a HTTP/1.1"
        ]
    );
    let judge = |number: u64, status: u16| {
        workload
            .session(number)
            .answered(&workload, status, b"", b"")
    };
    assert_eq!(judge(1, 404), ResponseVerdict::Good, "as in the log");
    assert_eq!(judge(1, 200), ResponseVerdict::Good);
    assert_eq!(judge(0, 404), ResponseVerdict::BadStatus);
    let all = with(&text, |path| Replay::from_log(&path, true)).unwrap();
    let (workload, times) = all.workload(&Plan::new("http://h/")).unwrap();
    assert_eq!(times.len(), 6);
    let post = first(&workload, 4);
    assert!(
        post.starts_with("POST /new ") && post.ends_with("Content-Length: 0\r\n\r\n"),
        "{post}"
    );
}
