//! `millrace lab` with servers of one's own: Millpond itself, twice.

use std::fs;
use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Instant;

use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

use crate::support::{PATIENCE, fail, millrace, run, text, write};

/// A small site, and an experiment in which two servers serve it.
fn experiment(head: &str, server: &str) -> TempDir {
    let dir = lab_testkit::fast_dir();
    write(dir.path(), "site/millpond.toml", "[server]\n");
    write(dir.path(), "site/pages/index.html", "front\n");
    write(dir.path(), "site/static/a.txt", "a text\n");
    let one = |name: &str| {
        format!(
            "[[server]]\nname = '{name}'\ncores = [{}]\nstart = ['{{millpond}}', 'serve', '{{here}}/site', '--listen', \
             '127.0.0.1:{{port}}', '--workers', '1']\n",
            core()
        )
    };
    let text = format!(
        "title = 'Two of a kind'\nquestion = 'Are they the same?'\nbaseline = 'one'\n{head}\n[workload]\npath = '/a.txt'\n\
         connections = 2\nwarmup = '20ms'\nduration = '100ms'\n{}{}{server}\n",
        one("one"),
        one("two")
    );
    write(dir.path(), "it.toml", &text);
    dir
}

/// A core that this process may use.
fn core() -> usize {
    let cores = rustix::thread::sched_getaffinity(None).unwrap();
    (0..).find(|&core| cores.is_set(core)).unwrap()
}

/// Processes whose command line has `mark` in it.
fn processes(mark: &Path) -> Vec<u32> {
    let mark = mark.to_str().unwrap();
    let own = std::process::id();
    fs::read_dir("/proc")
        .unwrap()
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .filter(|pid| *pid != own)
        .filter(|pid| {
            let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            text(&line).contains(mark)
        })
        .collect()
}

#[test]
fn an_experiment_runs_from_start_to_report() {
    let dir = experiment("repeats = 3", "");
    let output = run(
        dir.path(),
        &[
            "lab", "run", "it.toml", "--json", "it.json", "--report", "it.html",
        ],
    );
    let said = text(&output.stdout) + &text(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{said}");
    assert!(
        said.contains("Answers, 2 connections") && said.contains("× one"),
        "{said}"
    );
    let found = crate::support::json(&dir.path().join("it.json"));
    assert_eq!(found["complete"], true);
    let runs = found["runs"].as_array().unwrap();
    let order: Vec<&str> = runs
        .iter()
        .map(|run| run["server"].as_str().unwrap())
        .collect();
    assert_eq!(order, ["one", "two", "two", "one", "one", "two"]);
    assert!(runs.iter().all(|run| run["requests"].as_u64() > Some(0)));
    let two = &found["findings"][1];
    let ratio = two["cpu_ratio"]["ratio"].as_f64().unwrap();
    // The same program: generous, for a busy machine.
    assert!((0.1..10.0).contains(&ratio), "{two}");
    assert!(found["findings"][0]["cpu_ratio"].is_null());
    // What differs from machine to machine is not in the record.
    let command = found["servers"][0]["command"].as_str().unwrap();
    assert!(
        command.starts_with("millpond serve {here}/site --listen 127.0.0.1:"),
        "{command}"
    );
    let html = fs::read_to_string(dir.path().join("it.html")).unwrap();
    assert!(html.contains("as a multiple of one") && html.contains("<summary>one"));
    assert!(processes(dir.path()).is_empty());
}

#[test]
fn a_ladder_has_a_line_for_each_server() {
    let dir = experiment("repeats = 1\nladder = { connections = '1,2' }", "");
    let output = run(
        dir.path(),
        &[
            "lab",
            "run",
            "it.toml",
            "--duration",
            "150ms",
            "--json",
            "-",
            "--report",
            "it.html",
        ],
    );
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let found: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(found["findings"].as_array().unwrap().len(), 4);
    let html = fs::read_to_string(dir.path().join("it.html")).unwrap();
    assert!(html.contains("99th percentile of the response time"));
}

/// The two servers over TLS, asked as `workload` says.
fn over_tls(head: &str, workload: &str, server: &str) -> TempDir {
    let dir = experiment(head, server);
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    write(dir.path(), "certificate.pem", &made.cert.pem());
    write(dir.path(), "key.pem", &made.signing_key.serialize_pem());
    let path = dir.path().join("it.toml");
    let text = fs::read_to_string(&path).unwrap();
    let text = text
        .replace("'/a.txt'", &format!("'/a.txt'\n{workload}"))
        .replace(
            "'--listen', '127.0.0.1:{port}'",
            "'--listen', '127.0.0.1:0', '--tls-listen', '127.0.0.1:{port}'",
        );
    write(dir.path(), "it.toml", &text);
    let settings = "[tls]\ncertificate = \"../certificate.pem\"\nkey = \"../key.pem\"\n";
    write(dir.path(), "site/millpond.toml", settings);
    dir
}

#[test]
fn experiments_over_tls_speak_what_they_say() {
    for (workload, protocol) in [
        ("https = true", "HTTP/1.1 over TLS"),
        ("https = true\nhttp2 = true\ndepth = 4", "HTTP/2 over TLS"),
        (
            "https = true\nfull_handshakes = true\nper_connection = 1",
            "HTTP/1.1 over TLS",
        ),
    ] {
        let dir = over_tls("repeats = 1", workload, "");
        let output = run(dir.path(), &["lab", "run", "it.toml", "--json", "-"]);
        assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
        let found: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(found["protocol"], protocol);
        for run in found["runs"].as_array().unwrap() {
            assert!(
                run["requests"].as_u64() > Some(0) && run["errors"] == 0,
                "{run}"
            );
        }
    }
}

#[test]
fn idle_connections_may_be_over_tls() {
    let dir = over_tls("repeats = 1", "https = true", "idle = 20");
    let output = run(dir.path(), &["lab", "run", "it.toml", "--json", "-"]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let found: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let [one, two] = [0, 1].map(|n| &found["findings"][n]["idle_bytes"]);
    assert!(one.is_null() && two["median"].is_f64(), "{one} {two}");
}

/// Millpond twice in blocks, with a hundred files and two limits.
fn blocks() -> TempDir {
    let server = "idle = 20\n[[file]]\npath = 'made/{n}.txt'\ncount = 100\nbytes = 50\n[[prepare]]\nrun = 'cp {work}/made/* {here}/site/static/'\n\
                  [[limit]]\nserver = 'two'\nagainst = 'one'\nmetric = 'throughput'\nat = [2]\nat_least = 0.001\n\
                  [[limit]]\nserver = 'two'\nagainst = 'one'\nmetric = 'cpu'\nat = [1]\nat_most = 0.001\n";
    let head = "repeats = 3\norder = 'blocks'\nladder = { connections = '1,2' }";
    let dir = experiment(head, server);
    let path = dir.path().join("it.toml");
    let text = fs::read_to_string(&path).unwrap();
    let text = text
        .replace("'/a.txt'", "'/{n}.txt'\ncount = 100")
        .replace("'100ms'", "'20ms'");
    write(dir.path(), "it.toml", &text);
    dir
}

#[test]
fn a_limit_that_is_missed_is_status_3() {
    let dir = blocks();
    let args = [
        "lab", "run", "it.toml", "--json", "it.json", "--report", "it.html",
    ];
    let output = run(dir.path(), &args);
    let said = text(&output.stdout) + &text(&output.stderr);
    assert_eq!(output.status.code(), Some(3), "{said}");
    assert!(said.contains("CPU of two ≤ 0.00 × one"), "{said}");
    let found = crate::support::json(&dir.path().join("it.json"));
    // Runs of a busy machine may decide nothing; that it holds is out of the question.
    assert_eq!(found["limits"].as_array().unwrap().len(), 2);
    assert_ne!(found["limits"][1]["outcome"], "holds");
    let runs = found["runs"].as_array().unwrap();
    assert_eq!(runs.len(), 3 * 2 * 4 * 2);
    let order = |run: &serde_json::Value| {
        let server = run["server"].as_str().unwrap();
        format!("{server}{}", run["pass"])
    };
    let block: Vec<String> = runs[..8].iter().map(order).collect();
    assert_eq!(
        block,
        [
            "one1", "two1", "two2", "one2", "one3", "two3", "two4", "one4"
        ]
    );
    for run in runs {
        assert_eq!(run["errors"], 0, "{run}");
        assert_eq!(run["idle_bytes"].is_f64(), run["server"] == "two", "{run}");
    }
    let html = fs::read_to_string(dir.path().join("it.html")).unwrap();
    assert!(html.contains("Limits") && html.contains("100 files of 50 bytes"));
    assert!(processes(dir.path()).is_empty());
}

#[test]
fn a_part_of_an_experiment_asks_about_its_own_limits() {
    let dir = blocks();
    let args = ["lab", "run", "it.toml", "--connections", "2", "--json", "-"];
    let output = run(dir.path(), &args);
    // 0, or 3 where the machine was too busy to decide even this one.
    assert_ne!(output.status.code(), Some(1), "{}", text(&output.stderr));
    let found: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(found["limits"].as_array().unwrap().len(), 1);
    let args = [
        "lab",
        "run",
        "it.toml",
        "--only",
        "one",
        "--repeats",
        "1",
        "--json",
        "-",
    ];
    let output = run(dir.path(), &args);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let found: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(found["limits"], serde_json::json!([]));
}

/// `lab run` in `dir` until its first server is there; its temporary folder is below `dir/tmp`.
fn start(dir: &Path) -> Child {
    fs::create_dir(dir.join("tmp")).unwrap();
    let child = millrace(&[
        "lab",
        "run",
        "it.toml",
        "--duration",
        "1min",
        "--json",
        "it.json",
    ])
    .current_dir(dir)
    .env("TMPDIR", dir.join("tmp"))
    .stdout(Stdio::null())
    .stderr(Stdio::piped())
    .spawn()
    .unwrap();
    let deadline = Instant::now() + PATIENCE;
    // Its server is the one other process that knows the folder.
    while processes(dir).is_empty() {
        assert!(Instant::now() < deadline);
        thread::yield_now();
    }
    child
}

fn nothing_is_left(dir: &Path) -> bool {
    processes(dir).is_empty() && fs::read_dir(dir.join("tmp")).unwrap().next().is_none()
}

fn wait_until_nothing_is_left(dir: &Path) {
    let deadline = Instant::now() + PATIENCE;
    while !nothing_is_left(dir) {
        assert!(Instant::now() < deadline, "{:?}", processes(dir));
        thread::yield_now();
    }
}

#[test]
fn ctrl_c_stops_the_servers() {
    let dir = experiment("repeats = 3", "");
    let child = start(dir.path());
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(nothing_is_left(dir.path()));
}

#[test]
fn a_killed_lab_leaves_no_server() {
    let dir = experiment("repeats = 3", "");
    let mut child = start(dir.path());
    child.kill().unwrap();
    child.wait().unwrap();
    wait_until_nothing_is_left(dir.path());
}

#[test]
fn a_mistake_is_named_with_its_place() {
    for (head, sentence) in [
        ("repeats = 0", "it.toml:4:11: repeats must be from 1"),
        ("repeets = 2", "it.toml:4:1: unknown field `repeets`"),
        ("baselines = ", "it.toml:4:13: string values must be quoted"),
        (
            "ladder = { rates = '5..1' }",
            "it.toml:4:20: the levels \"5..1\"",
        ),
        (
            "[[file]]\npath = '../x'\ncontent = ''",
            "it.toml:5:8: a file's path stays within its folder",
        ),
        (
            "[[prepare]]\nrun = 'echo {prot}'",
            "it.toml:5:7: {prot} is not known here",
        ),
        (
            "[[prepare]]\nrun = 'x'\nwith = ['nobody']",
            "it.toml:6:9: there is no server \"nobody\"",
        ),
    ] {
        let dir = experiment(head, "");
        for command in ["check", "run"] {
            let (status, said) = fail(dir.path(), &["lab", command, "it.toml"]);
            assert_eq!(status, 1);
            assert!(said.contains(sentence), "{said}");
        }
    }
    let dir = experiment("", "needs = ['no-such-program:its-package']");
    let (status, said) = fail(dir.path(), &["lab", "check", "it.toml"]);
    assert_eq!(status, 1);
    assert!(
        said.contains("not installed: no-such-program")
            && said.contains("sudo apt-get install its-package"),
        "{said}"
    );
    let (_, said) = fail(dir.path(), &["lab", "run", "it.toml", "--only", "three"]);
    assert!(said.contains("the servers are one, two"), "{said}");
}

#[test]
fn a_server_that_fails_is_named_with_its_last_words() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port();
    let cases = [
        (
            "start = 'echo no such luck >&2; exit 7'\n".to_owned(),
            "server bad: it ended before it was ready (exit status: 7); it wrote at last:\n    no such luck",
        ),
        (
            "start = 'echo waiting; sleep 1000'\nready_log = 'up'\nready_timeout = '1500ms'\n"
                .to_owned(),
            "server bad: it is not ready after 1.5 s: it has not written \"up\"; it wrote at last:\n    waiting",
        ),
        (
            "start = 'sleep 1000'\nready_timeout = '100ms'\n".to_owned(),
            "gives no good answer (connect_refused); it wrote nothing",
        ),
        (
            format!("start = 'sleep 1000'\nport = {port}\n"),
            "is taken by another program",
        ),
        (
            "start = ['no-such-program']\n".to_owned(),
            "server bad: there is no program no-such-program",
        ),
    ];
    for (server, sentence) in cases {
        let dir = experiment(
            "repeats = 1",
            &format!("[[server]]\nname = 'bad'\n{server}"),
        );
        let (status, said) = fail(dir.path(), &["lab", "run", "it.toml", "--only", "bad"]);
        assert_eq!(status, 1);
        assert!(said.contains(sentence), "{said}");
    }
}

#[test]
fn a_server_that_dies_ends_the_experiment_and_leaves_the_runs_before() {
    let server = "[[server]]\nname = 'dying'\nready_log = 'up'\nstart = '{here}/serve {millpond} {here}/site {port}'\n";
    let dir = experiment("repeats = 1", server);
    // It serves until there is a word in the pipe, and says that word.
    let script = "#!/bin/sh\n$1 serve $2 --listen 127.0.0.1:$3 --workers 1 &\nread line < $2/../pipe\necho $line\nkill -9 $!\nwait\n\
                  exit 9\n";
    write(dir.path(), "serve", script);
    let made = Command::new("sh")
        .args(["-c", "chmod +x serve && mkfifo pipe"])
        .current_dir(dir.path())
        .status()
        .unwrap();
    assert!(made.success());
    let child = millrace(&["lab", "run", "it.toml", "--json", "it.json"])
        .current_dir(dir.path())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // Opening waits for the reader; the server is ready with this word, and dies of it.
    fs::write(dir.path().join("pipe"), "up\n").unwrap();
    let output = child.wait_with_output().unwrap();
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(1));
    assert!(said.contains("server dying: it ended"), "{said}");
    let found = crate::support::json(&dir.path().join("it.json"));
    assert_eq!(found["complete"], false);
    assert_eq!(found["runs"].as_array().unwrap().len(), 2);
    assert!(found["failure"].as_str().unwrap().contains("dying"));
    assert!(processes(dir.path()).is_empty());
}

#[test]
fn programs_that_are_missing_can_be_left_out() {
    let dir = experiment(
        "repeats = 1",
        "needs = ['no-such-program']\n[[server]]\nname = 'behind'\nstart = 'sleep 1000'\nready_log = 'x'\nmeasured = false\n",
    );
    let output = run(
        dir.path(),
        &[
            "lab",
            "run",
            "it.toml",
            "--available",
            "--duration",
            "150ms",
        ],
    );
    let said = text(&output.stdout) + &text(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{said}");
    assert!(
        said.contains("two is left out, for no-such-program is not installed"),
        "{said}"
    );
}

#[test]
fn an_experiment_asks_for_a_plan_and_is_reported_again() {
    let dir = experiment("repeats = 1", "");
    let path = dir.path().join("it.toml");
    let text_of = fs::read_to_string(&path).unwrap();
    write(
        dir.path(),
        "it.toml",
        &text_of.replace("path = '/a.txt'", "plan = 'p.toml'"),
    );
    write(
        dir.path(),
        "p.toml",
        "[[class]]\nname = 'both'\n[[class.step]]\ntarget = '/'\ncheck = { contains = 'front' }\n[[class.step]]\n\
         target = '/a.txt'\ncheck = { contains = 'a text' }\n",
    );
    let args = ["lab", "run", "it.toml", "--json", "it.json"];
    let output = run(dir.path(), &args);
    let said = text(&output.stdout) + &text(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{said}");
    let found = crate::support::json(&dir.path().join("it.json"));
    assert_eq!(found["plan"]["path"], "p.toml");
    for run in found["runs"].as_array().unwrap() {
        assert!(
            run["requests"].as_u64().unwrap() > 1 && run["errors"] == 0,
            "{run}"
        );
    }
    let args = ["report", "it.json", "--report", "again.html", "--csv", "-"];
    let output = run(dir.path(), &args);
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert!(text(&output.stderr).contains("experiment"));
    assert_eq!(text(&output.stdout).lines().count(), 1 + 2);
    let page = fs::read_to_string(dir.path().join("again.html")).unwrap();
    assert!(page.contains("What was asked for: p.toml"));
}
