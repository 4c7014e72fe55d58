//! Plans and logs against a server: requests arrive, and responses are judged and used.

use std::path::Path;
use std::sync::{Arc, Mutex};

use millrace_client::{Learned, Plan, Replay, Schedule, Stop, Workload};
use millrace_runs::Run;

use crate::stub::{StubServer, counted, measure, serve};

/// A server that keeps the first line and the cookies of each request, and answers by its path.
fn recording(
    answer: impl Fn(&str) -> String + Send + Sync + Clone + 'static,
) -> (StubServer, Arc<Mutex<Vec<String>>>) {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let log = Arc::clone(&seen);
    let server = StubServer::start(move |stream| {
        serve(&stream, |_, head| {
            let line = head.lines().next().unwrap_or_default().to_owned();
            let cookie = head.lines().find(|line| line.starts_with("Cookie: "));
            let path = line.split(' ').nth(1).unwrap_or_default().to_owned();
            log.lock()
                .unwrap()
                .push(line + " " + cookie.unwrap_or_default());
            Some(answer(&path).into_bytes())
        });
    });
    (server, seen)
}

fn ok(fields: &str, body: &str) -> String {
    format!(
        "HTTP/1.1 200 OK\r\nContent-Length: {}\r\n{fields}\r\n{body}",
        body.len()
    )
}

fn with(plan: Plan, text: &str) -> Run {
    let workload = Workload::parse(text, Path::new("plan.toml"), &plan).unwrap();
    measure(&plan.with(|plan| plan.request.workload = Some(Arc::new(workload))))
}

const LOGIN: &str = r#"
[[class]]
name = "login"
cookies = true
[[class.step]]
target = "/form"
extract = { token = { regex = 't=(\w+)' } }
[[class.step]]
target = "/api?t={{token}}"
check = { contains = "items" }
extract = { id = { pointer = "/items/0/id" } }
[[class.step]]
target = "/item/{{id}}"
"#;

fn shop(path: &str) -> String {
    match path {
        "/form" => ok("Set-Cookie: s=42\r\n", "t=abc"),
        "/api?t=abc" => ok("", "{\"items\": [{\"id\": 7}]}"),
        "/item/7" => ok("", "seven"),
        _ => "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n".to_owned(),
    }
}

#[test]
fn values_and_cookies_go_from_answer_to_request() {
    let (server, seen) = recording(shop);
    let run = with(counted(server.url("/"), 2, 60), LOGIN);
    assert_eq!((run.accounting.good, run.errors.total()), (60, 0));
    let seen = seen.lock().unwrap();
    for (line, expected) in [
        ("GET /form HTTP/1.1 ", 20),
        ("GET /api?t=abc HTTP/1.1 Cookie: s=42", 20),
        ("GET /item/7 HTTP/1.1 Cookie: s=42", 20),
    ] {
        let count = seen.iter().filter(|seen| *seen == line).count();
        // Two connections may end in the middle of a session.
        assert!(
            (expected - 2..=expected + 2).contains(&count),
            "{line}: {count}"
        );
    }
}

#[test]
fn a_wrong_answer_is_counted_by_its_kind_and_ends_the_session() {
    for (answer, kind) in [
        (ok("", "no token"), "no_match"),
        (ok("", "t=other"), "status_4xx"),
    ] {
        let (server, seen) = recording(move |path| {
            if path == "/form" {
                answer.clone()
            } else {
                shop(path)
            }
        });
        let run = with(counted(server.url("/"), 1, 12), LOGIN);
        assert!(
            run.errors.count(kind) > 0 && run.errors.count(kind) == run.errors.total(),
            "{kind}: {:?}",
            run.errors
        );
        assert!(
            !seen
                .lock()
                .unwrap()
                .iter()
                .any(|line| line.contains("/item/"))
        );
    }
    let (server, _) = recording(|path| {
        if path == "/form" {
            ok("", "t=abc")
        } else {
            ok("", "{}")
        }
    });
    let run = with(counted(server.url("/"), 1, 12), LOGIN);
    assert_eq!((run.errors.count("bad_body"), run.accounting.good), (6, 6));
}

#[test]
fn classes_share_the_requests_by_their_weights() {
    let (server, _) = recording(|_| ok("", ""));
    let text =
        "[[class]]\nname = 'a'\nweight = 3\ntarget = '/a'\n[[class]]\nname = 'b'\ntarget = '/b'";
    let run = with(counted(server.url("/"), 2, 400), text);
    assert_eq!(run.accounting.good, 400);
    let shares: Vec<_> = run
        .classes
        .iter()
        .map(|class| class.name.as_str())
        .collect();
    assert_eq!(shares, ["a", "b"]);
}

/// A log of three seconds.
fn log(dir: &Path) -> std::path::PathBuf {
    let line = |second: u32, request: &str, status: u16| {
        format!("h - - [10/Oct/2000:13:55:{second:02} -0700] \"{request} HTTP/1.1\" {status} 1\n")
    };
    let mut text = String::new();
    for n in 0..30 {
        text += &line(
            n / 15,
            ["GET /a", "HEAD /b", "GET /gone"][n as usize % 3],
            [200, 200, 404][n as usize % 3],
        );
    }
    let path = dir.join("access.log");
    std::fs::write(&path, text).unwrap();
    path
}

fn by_path(path: &str) -> String {
    match path {
        "/a" => ok("", "a"),
        "/b" => "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n".to_owned(),
        _ => "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n".to_owned(),
    }
}

#[test]
fn a_replay_sends_the_log_in_its_order_and_ends_with_it() {
    let dir = tempfile::tempdir().unwrap();
    let (server, seen) = recording(by_path);
    let base = counted(server.url("/"), 1, 1)
        .with(|plan| plan.length.stop = Stop::Duration(std::time::Duration::MAX));
    let (workload, times) = Replay::from_log(&log(dir.path()), false)
        .unwrap()
        .workload(&base)
        .unwrap();
    let schedule = Schedule::recorded(&times, 20.0).unwrap();
    let plan = base.with(|plan| {
        plan.request.workload = Some(Arc::new(workload));
        plan.load.schedule = Some(schedule);
        plan.load.threads = 1;
    });
    let run = measure(&plan);
    assert_eq!(
        (run.accounting.issued, run.accounting.good),
        (30, 30),
        "404 as in the log is good: {:?}",
        run.errors
    );
    let seen = seen.lock().unwrap();
    let expected = [
        "GET /a HTTP/1.1 ",
        "HEAD /b HTTP/1.1 ",
        "GET /gone HTTP/1.1 ",
    ];
    assert!(
        seen.iter()
            .enumerate()
            .all(|(n, line)| line == expected[n % 3]),
        "{seen:?}"
    );
}

#[test]
fn a_learned_workload_asks_for_what_was_there() {
    let dir = tempfile::tempdir().unwrap();
    let (server, _) = recording(by_path);
    let plan = counted(server.url("/"), 2, 50);
    let workload = Learned::from_log(&log(dir.path()))
        .unwrap()
        .workload(&plan, 1)
        .unwrap();
    let run = measure(&plan.with(|plan| plan.request.workload = Some(Arc::new(workload))));
    assert_eq!(run.accounting.good, 50);
}
