//! Studies: `millrace lab list`, `run` and `report`, with null servers.

use std::fs;
use std::path::Path;
use std::process::Stdio;
use std::time::Instant;

use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

use crate::support::{PATIENCE, fail, json, millrace, run, text, write};

const HEAD: &str = "sentence = 'Waiting takes time.'\nsource = 'A write-up, 2003'\n";

/// A null server of an experiment, with more arguments.
fn null(name: &str, arguments: &str, more: &str) -> String {
    format!(
        "[[server]]\nname = '{name}'\n{more}\nstart = ['{{millrace}}', 'null', '--listen', '127.0.0.1:{{port}}'{arguments}]\n"
    )
}

/// A folder with two studies: one of three experiments, and one that cannot be run anywhere.
fn studies() -> TempDir {
    let dir = lab_testkit::fast_dir();
    let study = format!(
        "title = 'Two <null> servers'\n{HEAD}experiments = ['closed.toml', 'rates.toml', 'delays.toml']\n\
         shows = '''\n**Bold** and <script>.\n'''\n[[original]]\ntitle = 'One'\ncolumns = ['n', 'plain']\n\
         rows = [[1, 10], [2, 20], [3, 30], [4, 31]]\nexperiment = 'closed.toml'\nnote = 'an old machine'\n\
         [[original]]\ntitle = 'Two'\ncolumns = ['page', 'ms']\nrows = [['cached', '3 ms']]\n\
         [[cannot]]\nwhat = 'a disk'\nwhy = 'none here'\n[quick]\nduration = '40ms'\nwarmup = '0s'\n\
         levels = {{ 'closed.toml' = '1,2', 'delays.toml' = [0, 3] }}\n"
    );
    write(dir.path(), "lab/studies/01-null/study.toml", &study);
    let closed = format!(
        "title = 'Connections'\nquestion = 'How many?'\ngraph = ['throughput', 'p90', 'failed', 'cores', 'idle']\n\
         probe = true\n[ladder]\nconnections = '1..6'\n[workload]\n{}{}{}",
        null("plain", "", "with = ['behind']"),
        null("behind", "", "measured = false\ncounted = false"),
        "[[server]]\nname = 'absent'\nneeds = ['no-such-program']\nstart = ['no-such-program']\n"
    );
    write(dir.path(), "lab/studies/01-null/closed.toml", &closed);
    let rates = format!(
        "title = 'Rates'\n[ladder]\nrates = '100,200'\n[workload]\nconnections = 4\nsession = 5\nper_connection = 5\n{}",
        null("plain", "", "")
    );
    write(dir.path(), "lab/studies/01-null/rates.toml", &rates);
    let delays = format!(
        "title = 'Delays'\n[ladder]\nvariable = 'delay'\nvalues = [0, 1, 3]\n[workload]\n{}",
        null("waiting", ", '--delay', '{delay}ms'", "")
    );
    write(dir.path(), "lab/studies/01-null/delays.toml", &delays);
    let gone = format!("title = 'Gone'\n{HEAD}experiments = ['gone.toml']\nshows = 'Nothing.'\n");
    write(dir.path(), "lab/studies/02-gone/study.toml", &gone);
    let gone = "title = 'Gone'\n[workload]\n[[server]]\nname = 'absent'\nneeds = ['no-such-program:nowhere']\n\
                start = ['no-such-program']\n";
    write(dir.path(), "lab/studies/02-gone/gone.toml", gone);
    dir
}

fn file(dir: &Path, name: &str) -> String {
    fs::read_to_string(dir.join(name)).unwrap()
}

#[test]
fn all_studies_run_and_become_a_site() {
    let dir = studies();
    let output = run(dir.path(), &["lab", "run", "--all", "--quick"]);
    let said = text(&output.stdout) + &text(&output.stderr);
    for expected in [
        "experiments: 4, about ",
        "not installed, and left out: no-such-program\n  sudo apt-get install no-such-program nowhere\n",
        "absent is left out, for no-such-program is not installed",
        "02-gone/gone: left out: not installed: no-such-program (sudo apt-get install nowhere)",
        "done, 4 of 4 experiments in ",
    ] {
        assert!(said.contains(expected), "{expected}: {said}");
    }
    let record = json(&dir.path().join("lab-results/01-null/study.json"));
    assert_eq!(record["parts"].as_array().unwrap().len(), 3);
    let closed = json(&dir.path().join("lab-results/01-null/closed.json"));
    // Two levels and one repeat.
    assert_eq!(closed["runs"].as_array().unwrap().len(), 2);
    assert!(closed["started_unix_s"].as_u64() > Some(0));
    let run_of = &closed["runs"][0];
    assert!(run_of["cores_of"]["behind"].is_number(), "{run_of}");
    assert!(run_of["figures"]["failed"].is_number(), "{run_of}");
    let rates = json(&dir.path().join("lab-results/01-null/rates.json"));
    assert_eq!(rates["levels"][1]["rate"], 200.0);
    let habits = rates["client_habits"].to_string();
    assert!(habits.contains("visitors make 5 requests each"), "{habits}");
    let delays = json(&dir.path().join("lab-results/01-null/delays.json"));
    let mean = delays["findings"][1]["figures"]["mean"]["median"].as_f64();
    assert!(mean >= Some(3000.0), "{mean:?}");

    let output = run(dir.path(), &["lab", "report", "--out", "pages"]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let index = file(dir.path(), "pages/static/index.html");
    assert!(index.contains("<a href=\"01-null.html\">Two &lt;null&gt; servers</a>"));
    assert!(index.contains("Waiting takes time."));
    let page = file(dir.path(), "pages/static/01-null.html");
    for expected in [
        "<p>Waiting takes time.</p>",
        "absent is left out",
        "The source’s figures: One",
        "The source’s figures: Two",
        "an old machine",
        "<strong>Bold</strong> and &lt;script&gt;.",
        "requests demanded a second",
        "behind behind plain",
        "href=\"01-null-closed.html\"",
        "a disk",
        "These are quick runs",
    ] {
        assert!(page.contains(expected), "{expected}");
    }
    assert!(!page.contains("<script"));
    assert!(file(dir.path(), "pages/static/01-null-closed.html").contains("href=\"01-null.html\""));
    assert!(
        file(dir.path(), "pages/static/02-gone.html").contains("ot installed: no-such-program")
    );
    // The site is written again, without pages of studies that are gone; other folders stay.
    fs::remove_dir_all(dir.path().join("lab-results/02-gone")).unwrap();
    let output = run(dir.path(), &["lab", "report", "--out", "pages"]);
    assert_eq!(output.status.code(), Some(0));
    assert!(!dir.path().join("pages/static/02-gone.html").exists());
    let (status, said) = fail(dir.path(), &["lab", "report", "--out", "lab"]);
    assert_eq!(status, 1);
    assert!(
        said.contains("lab is not empty, and no site of this command"),
        "{said}"
    );
}

#[test]
fn a_study_is_named_in_several_ways() {
    let dir = studies();
    let list = run(dir.path(), &["lab", "list"]);
    assert_eq!(list.status.code(), Some(0), "{}", text(&list.stderr));
    let said = text(&list.stdout);
    for expected in [
        "01-null  Two <null> servers  (about ",
        ")\n  closed  Connections  (not installed: no-such-program)\n  rates  Rates\n",
        "02-gone  Gone  (nothing of it is installed)\n",
        "\nall studies: about ",
        "for all of them: sudo apt-get install no-such-program nowhere",
    ] {
        assert!(said.contains(expected), "{said}");
    }
    for name in ["01-null/rates", "rates", "lab/studies/01-null/rates.toml"] {
        let output = run(dir.path(), &["lab", "check", name]);
        assert_eq!(
            output.status.code(),
            Some(0),
            "{name}: {}",
            text(&output.stderr)
        );
        assert!(text(&output.stdout).contains("Rates: 1 servers (plain)"));
    }
    for (name, expected) in [
        (
            "01-nul",
            "there is no study and no experiment \"01-nul\"; did you mean 01-null?",
        ),
        ("rate", "did you mean 01-null/rates?"),
        ("gone.toml", "cannot read gone.toml"),
    ] {
        let (status, said) = fail(dir.path(), &["lab", "run", name]);
        assert_eq!(status, 1);
        assert!(said.contains(expected), "{said}");
    }
    let (_, said) = fail(dir.path(), &["lab", "run", "01-null", "--json", "x.json"]);
    assert!(said.contains("are for a single file"), "{said}");
    let (_, said) = fail(dir.path(), &["lab", "report"]);
    assert!(said.contains("cannot read lab-results"), "{said}");
}

#[test]
fn mistakes_of_a_study_and_its_experiments_are_reported() {
    let dir = studies();
    let path = dir.path().join("lab/studies/01-null/rates.toml");
    let text = fs::read_to_string(&path).unwrap();
    fs::write(&path, text.replace("session", "sesion")).unwrap();
    let (status, said) = fail(dir.path(), &["lab", "check", "01-null"]);
    assert_eq!(status, 1);
    assert!(
        said.contains("rates.toml:6:1: unknown field `sesion`"),
        "{said}"
    );
    let (status, said) = fail(dir.path(), &["lab", "run", "01-null/rates"]);
    assert_eq!(status, 1);
    assert!(
        said.contains("no result: rates.toml:6:1: unknown field"),
        "{said}"
    );
    let path = dir.path().join("lab/studies/02-gone/study.toml");
    let text = fs::read_to_string(&path).unwrap();
    fs::write(&path, text.replace("sentence", "sentense")).unwrap();
    let (status, said) = fail(dir.path(), &["lab", "list"]);
    assert_eq!(status, 1);
    assert!(
        said.contains("study.toml:2:1: unknown field `sentense`"),
        "{said}"
    );
}

#[test]
fn a_stopped_study_leaves_what_was_done() {
    let dir = studies();
    let mut command = millrace(&["lab", "run", "01-null", "--quick", "--duration", "1s"]);
    let child = command
        .current_dir(dir.path())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let first = dir.path().join("lab-results/01-null/study.json");
    let deadline = Instant::now() + PATIENCE;
    while !first.exists() && Instant::now() < deadline {
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(
        text(&output.stdout).contains("stopped, "),
        "{}",
        text(&output.stdout)
    );
    let record = json(&first);
    assert_eq!(record["parts"][0]["file"], "closed.toml");
    assert_eq!(record["parts"][0]["result"], "closed.json");
    let output = run(dir.path(), &["lab", "report"]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
}

#[test]
fn a_replay_is_drawn_over_its_time() {
    let dir = lab_testkit::fast_dir();
    let line = |n: usize| {
        format!(
            "h - - [04/Dec/2002:09:00:{:02} +0000] \"GET /{n} HTTP/1.0\" 200 1\n",
            n / 10
        )
    };
    write(
        dir.path(),
        "day.log",
        &(0..200).map(line).collect::<String>(),
    );
    let day = format!(
        "title = 'A day'\nrepeats = 1\nover_time = ['throughput', 'cores']\n[workload]\nconnections = 4\n\
         warmup = '0s'\nreplay = '{{work}}/made.log'\nspeed = 10\n[[prepare]]\nrun = 'cp day.log {{work}}/made.log'\n{}{}",
        null("plain", "", "with = ['behind']"),
        null("behind", "", "measured = false")
    );
    write(dir.path(), "day.toml", &day);
    let arguments = [
        "lab", "run", "day.toml", "--json", "day.json", "--report", "day.html",
    ];
    let output = run(dir.path(), &arguments);
    let found = json(&dir.path().join("day.json"));
    let run_of = &found["runs"][0];
    assert_eq!(run_of["requests"], 200, "{}", text(&output.stderr));
    let moments = run_of["over_time"].as_array().unwrap();
    // Nearly two seconds in bins of half a second.
    assert!((3..=4).contains(&moments.len()), "{moments:?}");
    let throughput = moments[1]["figures"]["throughput"].as_f64().unwrap();
    assert!((20.0..500.0).contains(&throughput), "{throughput}");
    assert!(file(dir.path(), "day.html").contains("Good answers a second, over the run"));
}

#[test]
fn the_clients_of_a_server_find_it_at_several_addresses() {
    let dir = lab_testkit::fast_dir();
    let experiment = format!(
        "title = 'A name'\nrepeats = 1\n[workload]\nrequests = 40\nwarmup = '0s'\nkeep_alive = false\n{}{}{}{}",
        null("alone", "", ""),
        null("other", "", "measured = false"),
        null(
            "both",
            "",
            "with = ['other']\naddresses = ['127.0.0.1:{port}', '127.0.0.1:{port.other}']"
        ),
        null(
            "gone",
            "",
            "addresses = ['127.0.0.1:{port}', '127.0.0.1:1']"
        ),
    );
    write(dir.path(), "name.toml", &experiment);
    let arguments = [
        "lab",
        "run",
        "name.toml",
        "--json",
        "name.json",
        "--report",
        "name.html",
    ];
    let output = run(dir.path(), &arguments);
    assert!(
        dir.path().join("name.json").exists(),
        "{}",
        text(&output.stderr)
    );
    let found = json(&dir.path().join("name.json"));
    let runs = found["runs"].as_array().unwrap();
    let of = |name: &str| runs.iter().find(|run| run["server"] == name).unwrap();
    assert_eq!(of("alone")["errors"], 0);
    assert_eq!(of("both")["errors"], 0);
    // Every second connection goes to an address at which nothing listens.
    assert_eq!(of("gone")["errors"], 20, "{}", of("gone"));
    let page = file(dir.path(), "name.html");
    assert!(page.contains("# connections go in turn to: 127.0.0.1:"));
}
