//! `millpond stats`: of files, of standard input, of a site.

use std::fs;
use std::io::Write as _;
use std::process::Stdio;

use lab_testkit::fast_dir;
use serde_json::Value;

use crate::support::{
    Connection, fail, millpond, new_site, run, serve, serve_with, site_with, text, write,
};

const LINE: &str =
    "192.0.2.1 - - [29/Nov/2026:12:30:00 +0000] \"GET /a?b=1 HTTP/1.1\" 200 99 \"-\" \"curl/8\"\n";

#[test]
fn the_log_of_a_site_is_counted_with_what_was_rotated_from_it() {
    let site = site_with("[log]\naccess = \"logs/access.log\"\n");
    fs::create_dir(site.path().join("logs")).unwrap();
    let (_, said) = fail(site.path(), &["stats"]);
    assert!(said.contains("its access log is not there yet"), "{said}");
    let server = serve(site.path());
    let mut connection = Connection::open(server.address());
    assert_eq!(connection.get("/").status, 200);
    assert_eq!(connection.get("/nothing").status, 404);
    drop(connection);
    server.stop();
    write(site.path(), "logs/access.log.1", LINE);
    let packed = fs::File::create(site.path().join("logs/access.log-20261128.gz")).unwrap();
    let mut packed = flate2::write::GzEncoder::new(packed, flate2::Compression::fast());
    packed.write_all(LINE.as_bytes()).unwrap();
    packed.finish().unwrap();
    write(site.path(), "logs/other.log", LINE);
    let output = run(site.path(), &["stats", "--json"]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let figures: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(
        (&figures["requests"], &figures["damaged"]),
        (&4.into(), &0.into()),
        "{figures}"
    );
    assert_eq!(
        (&figures["statuses"]["404"], &figures["statuses"]["200"]),
        (&1.into(), &3.into())
    );
}

#[test]
fn logs_as_json_are_whole_lines_of_json_and_counted_as_others_are() {
    let settings = "[log]\naccess = \"access.log\"\nformat = \"json\"\n";
    let site = site_with(settings);
    let server = serve(site.path());
    let mut connection = Connection::open(server.address());
    assert_eq!(connection.get("/?q=1").status, 200);
    let hostile = ["Referer: \"},{\\u0022 \u{9b}1m", "User-Agent: \u{e9}\\\"x"];
    assert_eq!(connection.get_with("/nothing", &hostile).status, 404);
    connection.send("GET / HTTP/1.1\r\nHost: \"\r\n\r\n");
    assert_eq!(connection.receive().status, 400);
    drop(connection);
    // A fault of the folder, so that the server says something of an error.
    write(
        site.path(),
        "millpond.toml",
        &format!("{settings}[cache]\nmemory = 1\n"),
    );
    server.signal(rustix::process::Signal::HUP);
    server.wait_for("the configuration in use stays");
    let (status, said) = server.stop();
    assert!(status.success(), "{said}");
    let said: Vec<Value> = said
        .lines()
        .map(|line| serde_json::from_str(line).unwrap_or_else(|_| panic!("{line}")))
        .collect();
    let severity = |text: &str| {
        let has = |line: &&Value| line["body"].as_str().unwrap().contains(text);
        let line = said
            .iter()
            .find(has)
            .unwrap_or_else(|| panic!("{text}: {said:?}"));
        let time = line["timestamp"].as_str().unwrap();
        assert!(time.ends_with('Z') && time.contains('T'), "{line}");
        (
            line["severity_text"].clone(),
            line["severity_number"].clone(),
        )
    };
    assert_eq!(severity("cache.memory"), ("ERROR".into(), 17.into()));
    assert_eq!(severity("millpond served"), ("INFO".into(), 9.into()));
    let log = fs::read_to_string(site.path().join("access.log")).unwrap();
    assert!(log.is_ascii() && log.lines().count() == 3, "{log}");
    let lines: Vec<Value> = log
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(
        (&lines[0]["url.path"], &lines[0]["url.query"]),
        (&"/".into(), &"q=1".into())
    );
    assert_eq!(
        lines[1]["http.request.header.referer"],
        "\"},{\\u0022 \u{c2}\u{9b}1m"
    );
    // The bytes of UTF-8, each as a character.
    assert_eq!(lines[1]["user_agent.original"], "\u{c3}\u{a9}\\\"x");
    assert_eq!(lines[2]["http.response.status_code"], 400);
    assert!(!log.contains("server.address"), "no Host: {log}");
    write(site.path(), "millpond.toml", settings);
    let output = run(site.path(), &["stats", "--json", "--query"]);
    let figures: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(
        (&figures["requests"], &figures["damaged"]),
        (&3.into(), &0.into()),
        "{figures}"
    );
    assert_eq!(figures["addresses"][0]["requests"], 1);
    assert!(figures["response_micros"]["50"].is_number(), "{figures}");
    // The start and the reload may change it.
    write(
        site.path(),
        "millpond.toml",
        &settings.replace("json", "xml"),
    );
    let (status, said) = fail(site.path(), &["serve", "--listen", "127.0.0.1:0"]);
    assert!(
        status == 1 && said.contains("`xml` is none of `text` and `json`"),
        "{said}"
    );
}

#[test]
fn standard_input_filters_and_a_report() {
    let dir = fast_dir();
    let mut command = millpond(&[
        "stats",
        "--query",
        "--filter",
        "status=2xx",
        "--top",
        "3",
        "-",
    ]);
    command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut input = child.stdin.take().unwrap();
    input
        .write_all(
            [LINE, "damaged\n", &LINE.replace(" 200 ", " 404 ")]
                .concat()
                .as_bytes(),
        )
        .unwrap();
    drop(input);
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success());
    let (shown, said) = (text(&output.stdout), text(&output.stderr));
    assert!(
        shown.contains("/a?b=1") && shown.contains("2026-11-29"),
        "{shown}"
    );
    assert!(
        shown.contains("1 requests are outside of --from, --to and --filter"),
        "{shown}"
    );
    assert!(
        said.contains("note: 1 of 3 lines are no requests in a known format, the first is -:2"),
        "{said}"
    );
    write(dir.path(), "a.log", LINE);
    let output = run(dir.path(), &["stats", "a.log", "--report", "a.html"]);
    assert!(output.status.success() && output.stdout.is_empty());
    assert!(
        fs::read_to_string(dir.path().join("a.html"))
            .unwrap()
            .starts_with("<!doctype html>")
    );
}

#[test]
fn mistakes_are_named_with_their_remedy() {
    let dir = fast_dir();
    let site = new_site();
    for (folder, args, status, words) in [
        (
            dir.path(),
            &["stats"][..],
            1,
            ".: no site, and no log was given",
        ),
        (dir.path(), &["stats"], 1, "hint: give the files: "),
        (
            dir.path(),
            &["stats", "nowhere.log"],
            1,
            "cannot read nowhere.log: No such file",
        ),
        (
            site.path(),
            &["stats"],
            1,
            "log.access in millpond.toml names no file",
        ),
        (
            dir.path(),
            &["stats", "--filter", "page=/", "-"],
            2,
            "there is no field \"page\"; there are path",
        ),
        (
            dir.path(),
            &["stats", "--filter", "page=/", "-"],
            2,
            "hint: for example",
        ),
        (
            dir.path(),
            &["stats", "--from", "today", "-"],
            2,
            "\"today\" is no time: write 2026-11-29",
        ),
        (
            dir.path(),
            &["stats", "--json", "--report", "a.html", "-"],
            2,
            "cannot be used with",
        ),
    ] {
        let (found, said) = fail(folder, args);
        assert!(
            found == status && said.contains(words),
            "{args:?}: {found} {said}"
        );
    }
}

#[test]
fn odd_names_and_letters_are_shown_and_a_log_is_never_overwritten() {
    use std::os::unix::ffi::OsStrExt as _;
    let dir = fast_dir();
    let odd = std::ffi::OsStr::from_bytes(b"\xff.log");
    fs::write(dir.path().join(odd), LINE.replace("/a?", "/\u{9b}31m?")).unwrap();
    let command = |args: &[&str]| {
        let mut command = millpond(args);
        command.current_dir(dir.path()).arg(odd).output().unwrap()
    };
    let output = command(&["stats", "--json"]);
    let shown = text(&output.stdout);
    assert!(
        output.status.success() && shown.contains("/\\u009b31m"),
        "{shown}"
    );
    assert!(!shown.contains('\u{9b}'), "{shown}");
    assert!(serde_json::from_str::<Value>(&shown).is_ok());

    write(dir.path(), "a.log", LINE);
    std::os::unix::fs::symlink("a.log", dir.path().join("link.html")).unwrap();
    let args = ["stats", "a.log", "--report", "link.html"];
    let (status, said) = fail(dir.path(), &args);
    assert!(
        status == 2 && said.contains("would overwrite a log"),
        "{said}"
    );
    assert_eq!(fs::read_to_string(dir.path().join("a.log")).unwrap(), LINE);
    write(dir.path(), "old.html", "old");
    let old = fs::File::open(dir.path().join("old.html")).unwrap();
    assert!(
        run(dir.path(), &["stats", "a.log", "--report", "old.html"])
            .status
            .success()
    );
    assert_eq!(
        std::io::read_to_string(old).unwrap(),
        "old",
        "not while it is read"
    );
    assert_eq!(
        fs::read_dir(dir.path()).unwrap().count(),
        4,
        "no draft is left"
    );
    fs::write(dir.path().join("cut.gz"), [0x1f, 0x8b, 8, 0]).unwrap();
    let (status, said) = fail(dir.path(), &["stats", "a.log", "cut.gz"]);
    assert!(
        status == 1 && said.contains("note: cut.gz breaks off"),
        "{said}"
    );

    let site = site_with("[log]\naccess = \"logs/access.log\"\n");
    write(site.path(), "logs", "a file");
    let (_, said) = fail(site.path(), &["stats"]);
    assert!(
        said.contains("cannot read ") && said.contains("Not a directory"),
        "{said}"
    );
}

const ADMIN: &str = "[admin]\nlisten = \"127.0.0.1:0\"\n";

#[test]
fn the_history_of_a_server_is_shown_without_a_log() {
    let site = site_with(ADMIN);
    let (_, said) = fail(site.path(), &["stats", "--history"]);
    assert!(said.contains("no history of figures yet"), "{said}");
    let server = serve(site.path());
    let mut connection = Connection::open(server.address());
    for _ in 0..5 {
        assert_eq!(connection.get("/").status, 200);
    }
    assert_eq!(connection.get("/nothing").status, 404);
    drop(connection);
    // The last sample is taken at the end.
    server.stop();
    let output = run(site.path(), &["stats", "--history", "--json"]);
    let figures: Value = serde_json::from_slice(&output.stdout).unwrap();
    for (name, count) in [
        ("requests", 6),
        ("hits", 4),
        ("made", 1),
        ("2xx", 5),
        ("4xx", 1),
    ] {
        assert_eq!(figures["totals"][name], count, "{name}: {figures}");
    }
    assert_eq!(figures["routes"][0]["route"], "/", "{figures}");
    let shown = text(&run(site.path(), &["stats", "--history"]).stdout);
    assert!(shown.contains("Each day beside the day before"), "{shown}");
    let (status, said) = fail(site.path(), &["stats", "--history", "--from", "2031-01-01"]);
    assert!(
        status == 1 && said.contains("no figures of that time"),
        "{said}"
    );
    let (status, _) = fail(site.path(), &["stats", "--history", "access.log"]);
    assert_eq!(status, 2);
}

#[test]
fn the_report_of_yesterday_is_written_whole_or_the_log_says_why_not() {
    let (status, said) = fail(new_site().path(), &["serve", "--every-night", "reports"]);
    assert!(
        status == 2 && said.contains("no history of figures"),
        "{said}"
    );
    let settings = format!("{ADMIN}[server]\nsandbox = false\n");
    let site = site_with(&settings);
    serve(site.path()).stop();
    let history = rusqlite::Connection::open(site.path().join("site.history.db")).unwrap();
    // Of today the report is written tomorrow.
    history
        .execute_batch(
            "insert into sample (grain, at, span_ms, requests, pages, hits, misses, waits, bypassed,
               made, fill_us, database_us, refused, shed, bytes_out)
             select 3600, unixepoch() / 3600 * 3600 - 86400, 3600000, 4711, 4000, 3000, 1000, 0, 0,
               1000, 1000, 900, 1, 2, 1000000",
        )
        .unwrap();
    let query = "select date('now', '-1 day')";
    let date: String = history.query_row(query, [], |row| row.get(0)).unwrap();
    let folder = site.path().join("reports");
    let flags = ["--every-night", folder.to_str().unwrap()];
    let server = serve_with(site.path(), &flags);
    server.wait_for(&format!("the report of {date} is in "));
    let file = folder.join(format!("{date}.html"));
    let report = fs::read_to_string(&file).unwrap();
    assert!(
        report.contains("4\u{202f}711") && report.trim_end().ends_with("</html>"),
        "{report}"
    );
    let files = || fs::read_dir(&folder).unwrap().count();
    assert_eq!(files(), 1);
    server.stop();
    // A disk that is full.
    fs::remove_file(&file).unwrap();
    std::os::unix::fs::symlink("/dev/full", &file).unwrap();
    let server = serve_with(site.path(), &flags);
    let said = server.wait_for_line("cannot be written", 1);
    assert!(
        said.contains("error: ") && said.contains("No space left"),
        "{said}"
    );
    assert_eq!(server.get("/").status, 200);
    assert!(server.stop().0.success());
    // In the sandbox the folder may be written, and what is there stays.
    fs::remove_file(&file).unwrap();
    write(site.path(), "millpond.toml", ADMIN);
    serve_with(site.path(), &flags).wait_for("the report of ");
    let written = fs::metadata(&file).unwrap().modified().unwrap();
    let server = serve_with(site.path(), &flags);
    assert_eq!(server.get("/").status, 200);
    let (_, said) = server.stop();
    assert!(!said.contains("the report of "), "{said}");
    assert_eq!(fs::metadata(&file).unwrap().modified().unwrap(), written);
}
