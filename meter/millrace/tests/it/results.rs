//! Results in every form: files of a run, stored runs on one page, merged runs, and the screen of a
//! terminal.

use std::fs;
use std::io::{Read as _, Write as _};
use std::os::fd::OwnedFd;
use std::path::Path;
use std::process::{Command, Stdio};

use lab_testkit::terminal;
use rustix::termios::{LocalModes, tcgetattr};

use crate::support::{fail, millrace, new_site, run, serve, text, write};

/// A stored run of 300 requests.
fn store(dir: &Path, url: &str, name: &str) {
    let args = ["load", url, "-n", "300", "-c", "2", "--json", name];
    assert!(run(dir, &args).status.success());
}

fn json(path: &Path) -> serde_json::Value {
    crate::support::json(path)
}

#[test]
fn a_run_leaves_rows_and_graphs() {
    let site = new_site();
    let server = serve(site.path());
    let url = format!("http://{}/", server.address());
    let args = ["load", &url, "-n", "300", "--csv", "-", "--svg", "graphs"];
    let output = run(site.path(), &args);
    let rows = text(&output.stdout);
    assert!(
        rows.starts_with("at_s,interval_s,requests,errors,p50_us,p99_us,max_us,service_p50_us,"),
        "{rows}"
    );
    let counts = rows
        .lines()
        .skip(1)
        .map(|row| row.split(',').nth(2).unwrap());
    assert_eq!(
        counts
            .map(|count| count.parse::<u64>().unwrap())
            .sum::<u64>(),
        300
    );
    assert!(text(&output.stderr).contains("requests"));
    let graph =
        fs::read_to_string(site.path().join("graphs/service-time-by-percentile.svg")).unwrap();
    assert!(graph.starts_with("<?xml") && graph.contains("<title id=\"title\">"));
    // What cannot be written is said before anything is measured.
    let both = ["load", &url, "--csv", "-", "--json", "-"];
    assert!(fail(site.path(), &both).1.contains("cannot both go"));
    let nowhere = ["load", &url, "--json", "no/folder/run.json"];
    assert!(
        fail(site.path(), &nowhere)
            .1
            .contains("there is no folder no/folder")
    );
}

#[test]
fn stored_results_become_one_page_or_one_run() {
    let site = new_site();
    let server = serve(site.path());
    let url = format!("http://{}/", server.address());
    let dir = site.path();
    store(dir, &url, "one.json");
    store(dir, &url, "two.json");
    let sweep = [
        "sweep",
        &url,
        "-c",
        "1,2",
        "--duration",
        "200ms",
        "--warmup",
        "0s",
        "--json",
        "up.json",
    ];
    assert!(run(dir, &sweep).status.success());
    let all = [
        "report", "one.json", "two.json", "up.json", "--report", "all.html", "--csv", "all.csv",
        "--svg", "svg",
    ];
    let output = run(dir, &all);
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert!(text(&output.stdout).contains("sweep"));
    let page = fs::read_to_string(dir.join("all.html")).unwrap();
    for part in ["<h2>one</h2>", "<h2>up</h2>", "Time by percentile"] {
        assert!(page.contains(part), "{part}");
    }
    let rows = fs::read_to_string(dir.join("all.csv")).unwrap();
    assert_eq!(rows.lines().count(), 1 + 2 + 2);
    let columns = |row: &str| row.split(',').count();
    let width = columns(rows.lines().next().unwrap());
    assert!(rows.lines().all(|row| columns(row) == width), "{rows}");
    assert!(dir.join("svg/throughput-of-each-run.svg").is_file());

    let merge = [
        "report",
        "--merge",
        "one.json",
        "two.json",
        "--json",
        "merged.json",
    ];
    assert!(run(dir, &merge).status.success());
    let merged = json(&dir.join("merged.json"));
    assert_eq!(merged["requests"], 600);
    assert_eq!(merged["merged_from"].as_array().unwrap().len(), 2);
    assert_eq!(merged["latency_us"]["service"]["count"], 600);
    assert!(
        merged["histograms"]["service"]
            .as_str()
            .unwrap()
            .starts_with("HISTE")
    );

    let (status, why) = fail(dir, &["report", "--merge", "one.json", "one.json"]);
    assert_eq!(status, 1);
    assert!(why.contains("the same run"), "{why}");
    let (_, why) = fail(dir, &["report", "--merge", "one.json", "up.json"]);
    assert!(why.contains("up.json is a sweep"), "{why}");
}

#[test]
fn a_stored_diagnosis_is_a_result() {
    let site = new_site();
    let server = serve(site.path());
    let url = format!("http://{}/", server.address());
    let dir = site.path();
    let args = [
        "load",
        &url,
        "--diagnose",
        "--duration",
        "1600ms",
        "--probe-interval",
        "100ms",
        "--no-perf",
        "--json",
        "why.json",
    ];
    let output = run(dir, &args);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let report = ["report", "why.json", "--report", "why.html", "--csv", "-"];
    let output = run(dir, &report);
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert!(text(&output.stderr).contains("diagnosis"));
    assert_eq!(text(&output.stdout).lines().count(), 1 + 4);
    let page = fs::read_to_string(dir.join("why.html")).unwrap();
    assert!(page.contains("What limits the server") && page.contains("Levels"));
}

#[test]
fn what_is_no_result_is_named_with_its_place() {
    let site = new_site();
    let dir = site.path();
    write(
        dir,
        "bad.json",
        "{\n  \"loop\": \"open\",\n  \"verdict\": \"MAYBE\"\n}",
    );
    write(dir, "other.json", "{\"name\": \"a package\"}");
    for (file, word) in [
        ("bad.json", "bad.json:3:20: unknown variant `MAYBE`"),
        ("other.json", "other.json:1:1: this is no result"),
        ("none.json", "cannot read none.json"),
        (".", "it is no file"),
    ] {
        let (status, why) = fail(dir, &["report", file]);
        assert_eq!(status, 1);
        assert!(why.contains(word), "{why}");
    }
}

/// Runs `command` with its standard error on `theirs` as its controlling terminal, types `typed`
/// once it has drawn something, and gives what it drew.
fn on_terminal(
    mut command: Command,
    ours: OwnedFd,
    mut theirs: &fs::File,
    mut typed: &'static [u8],
) -> String {
    let mut child = command
        .env("TERM", "xterm-256color")
        .stdin(theirs.try_clone().unwrap())
        .stdout(Stdio::null())
        .stderr(theirs.try_clone().unwrap())
        .spawn()
        .unwrap();
    drop(command);
    let reader = std::thread::spawn(move || {
        let (mut drawn, mut bytes) = (Vec::new(), [0; 4096]);
        let mut ours = fs::File::from(ours);
        // The end of the other side is an error on a terminal.
        while let Ok(count @ 1..) = ours.read(&mut bytes) {
            drawn.extend_from_slice(&bytes[..count]);
            if text(&drawn).contains("requests") {
                ours.write_all(std::mem::take(&mut typed)).unwrap();
            }
            if drawn.ends_with(b"END") {
                break;
            }
        }
        drawn
    });
    child.wait().unwrap();
    let modes = tcgetattr(theirs).unwrap().local_modes;
    assert!(
        modes.contains(LocalModes::ECHO | LocalModes::ICANON),
        "the terminal is as it was"
    );
    theirs.write_all(b"END").unwrap();
    text(&reader.join().unwrap())
}

#[test]
fn a_terminal_has_a_screen_and_gets_it_back() {
    let site = new_site();
    let server = serve(site.path());
    let url = format!("http://{}/", server.address());
    let measure = |more: &[&str], typed| {
        let (ours, theirs) = terminal();
        // `setsid --ctty` gives the program the terminal as its own, as a shell would.
        let mut command = Command::new("setsid");
        let millpond = millrace(&[]);
        command
            .args(["--ctty", "--wait"])
            .arg(millpond.get_program())
            .args(["load", &url, "-c", "2"])
            .args(more);
        on_terminal(command, ours, &theirs, typed)
    };
    let (enter, leave) = ("\u{1b}[?1049h", "\u{1b}[?1049l");
    // Ctrl-Z does nothing, Ctrl-C ends it.
    for typed in [b"\x1a\x03".as_slice(), b"\x03\x03"] {
        let screen = measure(&["--duration", "1min"], typed);
        assert!(
            screen.contains(enter) && screen.contains("millrace load"),
            "{screen:?}"
        );
        assert!(screen.rfind(leave) > screen.rfind(enter), "{screen:?}");
    }
    let line = measure(&["--duration", "700ms", "--plain"], b"");
    assert!(
        !line.contains(enter) && line.contains("measuring"),
        "{line:?}"
    );
    let nothing = measure(&["--duration", "300ms", "--quiet"], b"");
    assert_eq!(nothing, "END");
}
