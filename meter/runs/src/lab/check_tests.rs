//! Experiments with mistakes, and those of the project, which have none.

use std::fs;
use std::path::Path;

use crate::{Experiment, Fault};

/// The mistakes in an experiment, but for cores that the machine of the test does not have.
fn faults(text: &str) -> Vec<Fault> {
    let read = Experiment::read(text, &project().join("lab/experiments"));
    let mut faults = read.err().unwrap_or_default();
    faults.retain(|fault| !fault.message.contains("may not run on core"));
    faults
}

fn project() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
}

#[test]
fn the_example_of_the_manual_is_an_experiment() {
    let manual = fs::read_to_string(project().join("docs/reference/experiments.md")).unwrap();
    let (_, rest) = manual.split_once("```toml\n").unwrap();
    let (example, _) = rest.split_once("```").unwrap();
    assert_eq!(faults(example), []);
}

#[test]
fn the_experiments_of_the_project_are_in_order() {
    let folder = fs::read_dir(project().join("lab/experiments")).unwrap();
    let mut seen = 0;
    for entry in folder {
        let path = entry.unwrap().path();
        if path.is_dir() {
            continue;
        }
        let found = faults(&fs::read_to_string(&path).unwrap());
        assert_eq!(found, [], "{}", path.display());
        seen += 1;
    }
    assert!(seen >= 10);
}

#[test]
fn needed_servers_come_before_the_server() {
    let found = |with: &str| {
        let text = format!(
            "title = 'x'\n[workload]\n[[server]]\nname = 'database'\nstart = 'x'\n\
             [[server]]\nname = 'origin'\nwith = ['database']\nstart = 'x {{port.database}}'\n\
             [[server]]\nname = 'cache'\nwith = [{with}]\nstart = 'x {{port.origin}}'\n"
        );
        let faults = faults(&text);
        faults.into_iter().map(|fault| fault.message).collect()
    };
    let none: Vec<String> = found("'database', 'origin'");
    assert!(none.is_empty(), "{none:?}");
    let sentence = "\"origin\" needs others itself; name them here too, before it";
    for with in ["'origin'", "'origin', 'database'"] {
        let faults: Vec<String> = found(with);
        assert_eq!(faults, [sentence], "{with}");
    }
}

#[test]
fn hostile_files_give_mistakes_and_no_panic() {
    let server = "[workload]\n[[server]]\nname = 'a'\nstart = 'x'\n";
    let beside = |headers: &str| {
        let workload = format!("]\nheaders = [{headers}]\n[[");
        format!(
            "title = 'x'\ncross_check = 'wrk'\n{}",
            server.replace("]\n[[", &workload)
        )
    };
    for (text, sentence) in [
        ("".to_owned(), "missing field `title`"),
        ("title = 'x'\n[workload]\n".to_owned(), "no [[server]]"),
        (
            format!("title = 'x'\nrepeats = -1\n{server}"),
            "invalid value",
        ),
        (
            format!(
                "title = 'x'\n{server}{}",
                server.replacen("[workload]\n", "", 1)
            ),
            "a second server",
        ),
        (format!("title = 'x'\n{server}cores = [99999999]\n"), "core"),
        (
            format!("title = 'x'\n{server}cores = []\n"),
            "the list of cores is empty",
        ),
        (
            format!("title = 'x'\n{server}with = ['a']\n"),
            "behind itself",
        ),
        (
            format!("title = 'x'\n{server}stop = 'SIGSEGV'\n"),
            "SIGSEGV is no signal",
        ),
        (
            format!("title = 'x'\n{server}path = 'a'\n"),
            "a path begins with /",
        ),
        (
            format!("title = 'x'\n{server}needs = ['a; rm -rf']\n"),
            "PROGRAM:PACKAGE",
        ),
        (
            format!(
                "title = 'x'\ncross_check = 'wrk'\n{}",
                server.replace("]\n[[", "]\nrate = 5\n[[")
            ),
            "closed loop",
        ),
        (beside("'host: a'"), "does not go with one in headers"),
        (beside("'X-A: 1', 'x-a: 2'"), "a field of this name once"),
        (beside("'X-A: '"), "no field without a value"),
        (
            format!(
                "title = 'x'\n{}",
                server.replace("]\n[[", "]\nwarmup = '1e9s'\n[[")
            ),
            "is no time",
        ),
        (
            format!("title = 'x'\n{}", server.replace("'a'", "'../a'")),
            "no name for a server",
        ),
        (
            format!("title = 'x'\nladder = {{}}\n{server}"),
            "one of connections, rates",
        ),
    ] {
        let read = Experiment::read(&text, Path::new("/"));
        let found = read.err().unwrap_or_default();
        assert!(
            found.iter().any(|fault| fault.message.contains(sentence)),
            "{text}\n{found:?}"
        );
    }
}

/// Two servers in blocks at two levels, and what `more` says.
fn blocks(more: &str) -> String {
    format!(
        "title = 'x'\norder = 'blocks'\nbaseline = 'a'\nladder = {{ connections = '1,8' }}\n[workload]\n[[server]]\nname = 'a'\n\
         start = 'x'\n[[server]]\nname = 'b'\nstart = 'x'\nidle = 5\n{more}"
    )
}

#[test]
fn limits_that_cannot_be_decided_are_mistakes() {
    let good = "[[limit]]\nserver = 'b'\nagainst = 'a'\nmetric = 'cpu'\nat = [8]\nat_most = 1.1\n";
    assert_eq!(faults(&blocks(good)), []);
    for (from, to, sentence) in [
        (
            "'a'\nmetric",
            "'c'\nmetric",
            "\"c\" is no server that is measured; they are a, b",
        ),
        ("'a'\nmetric", "'b'\nmetric", "not held against itself"),
        (
            "'a'\nmetric",
            "'best'\nmetric",
            "no other server but the baseline",
        ),
        ("'b'", "'best'", "\"best\" is no server"),
        ("[8]", "[2]", "2 is no level; they are 1, 8"),
        ("at_most = 1.1", "", "one of `at_most`"),
        (
            "at_most = 1.1",
            "at_most = 1.1\nat_least = 1.0",
            "one of `at_most`",
        ),
        ("at_most = 1.1", "at_most = 0.0", "above 0"),
        ("at_most = 1.1", "at_most = 1.1\nmore = 1", "unknown field"),
        ("cpu", "memory", "both servers need `idle`"),
        ("cpu", "speed", "unknown variant"),
        (
            "'cpu'\nat = [8]\nat_most",
            "'throughput'\nmore_at_most_us",
            "goes with cpu",
        ),
    ] {
        let found = faults(&blocks(&good.replacen(from, to, 1)));
        let has = |fault: &Fault| fault.message.contains(sentence) && fault.line > 12;
        assert!(found.iter().any(has), "{to}: {found:?}");
    }
    let other = blocks(good).replace("order = 'blocks'\n", "");
    assert!(faults(&other)[0].message.contains("order = \"blocks\""));
}

#[test]
fn numbers_idle_connections_and_values_have_their_bounds() {
    let file = "[[file]]\npath = '{n}.txt'\nbytes = 1\ncount = 3\n";
    let values = "[values]\nnopush = 'on'\n";
    assert_eq!(faults(&blocks(&format!("{values}{file}"))), []);
    for (text, sentence) in [
        (blocks(&file.replace("{n}", "n")), "`count` goes with {n}"),
        (
            blocks(&file.replace("count = 3\n", "")),
            "`count` goes with {n}",
        ),
        (blocks(&file.replace('3', "0")), "`count` is from 1"),
        (
            blocks("").replace("[workload]", "[workload]\ncount = 5"),
            "`count` goes with {n}",
        ),
        (
            blocks("").replace("idle = 5", "path = '/{n}'"),
            "`count` goes with {n}",
        ),
        (
            blocks("").replace("idle = 5", "idle = 0"),
            "idle connections are from 1",
        ),
        (
            blocks(&values.replace("nopush", "port")),
            "no name for a value",
        ),
        (
            blocks("").replace("'x'\nidle", "'x {nopush}'\nidle"),
            "{nopush} is not known",
        ),
        (blocks("").replace("'b'", "'best'"), "is no name"),
    ] {
        let found = faults(&text);
        let has = |fault: &Fault| fault.message.contains(sentence);
        assert!(found.iter().any(has), "{text}\n{found:?}");
    }
}

#[test]
fn an_included_file_is_part_of_the_experiment_and_its_mistakes_have_both_places() {
    let dir = tempfile::tempdir().unwrap();
    let text =
        "title = 'x'\ninclude = ['more.toml']\n[workload]\n[[server]]\nname = 'a'\nstart = 'x'";
    let read = |more: &str| {
        fs::write(dir.path().join("more.toml"), more).unwrap();
        Experiment::read(text, dir.path())
    };
    let server = "[[server]]\nname = 'b'\nstart = 'x'\n";
    let experiment = read(server).unwrap();
    assert_eq!(experiment.names().collect::<Vec<_>>(), ["a", "b"]);
    for (more, sentence) in [
        (
            server.replace("'b'", "'a'"),
            "2:12: more.toml:2:8: a second server",
        ),
        (
            server.replace("start", "strat"),
            "2:12: more.toml:3:1: unknown field",
        ),
        ("x = [".to_owned(), "2:12: more.toml:1:"),
    ] {
        let [fault] = read(&more).unwrap_err().try_into().unwrap();
        assert!(fault.to_string().starts_with(sentence), "{fault}");
    }
    fs::remove_file(dir.path().join("more.toml")).unwrap();
    let [fault] = Experiment::read(text, dir.path())
        .unwrap_err()
        .try_into()
        .unwrap();
    assert!(
        fault.to_string().starts_with("2:12: cannot read"),
        "{fault}"
    );
}

#[test]
fn a_limit_on_the_client_refers_to_the_other_client() {
    let good = "[[limit]]\nserver = 'b'\nagainst = 'wrk'\nmetric = 'client-cpu'\nat_most = 1.1\n";
    let found = |limit: &str| {
        let text = blocks(limit).replacen("order", "cross_check = 'wrk'\norder", 1);
        let words = faults(&text).into_iter().map(|fault| fault.message);
        words.collect::<Vec<_>>().join("\n")
    };
    assert_eq!(found(good), "");
    let more = good.replace("at_most", "more_at_most_us");
    assert_eq!(found(&more), "");
    for (from, to, sentence) in [
        ("'wrk'", "'a'", "write against = \"wrk\""),
        ("'wrk'", "'best'", "write against = \"wrk\""),
        ("'b'", "'c'", "\"c\" is no server that is measured"),
        ("client-cpu", "cpu", "\"wrk\" is no server that is measured"),
    ] {
        let words = found(&good.replacen(from, to, 1));
        assert!(words.contains(sentence), "{words}");
    }
    let micros = found(&more.replace("cpu", "throughput"));
    assert!(micros.contains("client-cpu, which are in"), "{micros}");
    let alone = faults(&blocks(good));
    assert!(
        alone[0].message.contains("write cross_check = \"wrk\""),
        "{alone:?}"
    );
    let text = blocks(good).replacen("order", "cross_check = 'wrk'\norder", 1);
    let mut experiment = Experiment::read(&text, Path::new("/")).unwrap();
    experiment.retain(|name| name == "b");
    assert_eq!(
        experiment.limits.len(),
        1,
        "the other client is still there"
    );
    experiment.retain(|name| name == "a");
    assert_eq!(experiment.limits.len(), 0);
}

#[test]
fn removing_a_server_removes_its_limits() {
    let limit = |against: &str| {
        format!("[[limit]]\nserver = 'b'\nagainst = '{against}'\nmetric = 'cpu'\nat_most = 1.1\n")
    };
    let more = format!(
        "[[server]]\nname = 'c'\nstart = 'x'\n{}{}",
        limit("c"),
        limit("best")
    );
    let mut experiment = Experiment::read(&blocks(&more), Path::new("/")).unwrap();
    experiment.retain(|name| name != "c");
    assert_eq!(experiment.limits.len(), 1);
    assert_eq!(experiment.limits[0].get_ref().against.get_ref(), "best");
    experiment.set_connections("1,2".parse().unwrap()).unwrap();
    assert_eq!(experiment.levels().len(), 2);
    assert!(experiment.set_connections("1.5".parse().unwrap()).is_err());
}

#[test]
fn a_plan_is_read_and_its_mistakes_have_both_places() {
    let dir = tempfile::tempdir().unwrap();
    let text = |head: &str, workload: &str| {
        format!(
            "title = 'x'\n{head}[workload]\nplan = 'p.toml'\n{workload}[[server]]\nname = 'a'\nstart = 'x'\n"
        )
    };
    let found = |head: &str, workload: &str| {
        let read = Experiment::read(&text(head, workload), dir.path());
        let faults = read.err().unwrap_or_default();
        faults
            .iter()
            .map(Fault::to_string)
            .collect::<Vec<_>>()
            .join("\n")
    };
    assert!(
        found("", "").contains("3:8: cannot read"),
        "{}",
        found("", "")
    );
    let plan = "[[class]]\nname = 'c'\ntarget = '/'\n";
    fs::write(dir.path().join("p.toml"), plan).unwrap();
    assert_eq!(found("", ""), "");
    assert_eq!(found("", "rate = 10\n"), "");
    assert!(found("", "depth = 2\n").contains("no pipelining"));
    assert!(found("cross_check = 'wrk'\n", "").contains("does not go with a plan"));
    fs::write(dir.path().join("p.toml"), plan.replace("target", "tagret")).unwrap();
    let mistake = found("", "");
    assert!(
        mistake.starts_with("3:8: ") && mistake.contains("p.toml:1:1: "),
        "{mistake}"
    );
}

#[test]
fn settings_of_tls_and_http2_fit_each_other() {
    let found = |workload: &str, more: &str| {
        let text = format!(
            "title = 'x'\n{more}\n[workload]\n{workload}\n[[server]]\nname = 'a'\nstart = 'x'\n"
        );
        let faults = faults(&text);
        faults.into_iter().map(|fault| fault.message).collect()
    };
    for (workload, more) in [
        (
            "https = true\nfull_handshakes = true\nper_connection = 1",
            "",
        ),
        ("http2 = true\ndepth = 100", "cross_check = 'h2load'"),
        ("https = true", "cross_check = 'wrk'"),
    ] {
        let none: [String; 0] = [];
        assert_eq!(found(workload, more), none, "{workload}");
    }
    for (workload, more, sentence) in [
        ("full_handshakes = true", "", "for an https:// URL only"),
        ("per_connection = 0", "", "at least one request"),
        ("http2 = true", "cross_check = 'wrk'", "wrk knows no HTTP/2"),
        (
            "per_connection = 1",
            "cross_check = 'h2load'",
            "keeps its connections",
        ),
    ] {
        let [mistake]: [String; 1] = Vec::try_into(found(workload, more)).unwrap();
        assert!(mistake.contains(sentence), "{workload}: {mistake}");
    }
    let idle = blocks("").replace("[workload]", "[workload]\nhttp2 = true");
    assert!(faults(&idle)[0].message.contains("by HTTP/1.1 first"));
}

#[test]
fn a_spinning_client_needs_cores_without_a_server() {
    let found = |workload: &str, server: &str| {
        let text = format!(
            "title = 'x'\n[workload]\n{workload}\n[[server]]\nname = 'a'\nstart = 'x'\n{server}\n[[server]]\nname = 'b'\n\
             start = 'x'\nmeasured = false\n"
        );
        let faults = faults(&text);
        faults.into_iter().map(|fault| fault.message).collect()
    };
    let none: [String; 0] = [];
    let check = |workload: &str, server: &str, words: &[&str]| {
        let said: Vec<String> = found(workload, server);
        assert_eq!(said.len(), words.len(), "{workload} {server}: {said:?}");
        for (sentence, word) in said.iter().zip(words) {
            assert!(sentence.contains(word), "{sentence}");
        }
    };
    assert_eq!(found("spin = true\ncores = [1]", "cores = [0]"), none);
    assert_eq!(found("spin = false", ""), none);
    check("spin = true", "cores = [0]", &["`spin` goes with `cores`"]);
    check("spin = true\ncores = [1]", "", &["give a `cores`"]);
    check(
        "spin = true\ncores = [1]",
        "cores = [0, 1]",
        &["core 1 is the client’s"],
    );
    check(
        "spin = true\nconnections = 2\ncores = [1, 1]",
        "cores = [0]",
        &["2 threads would share 1"],
    );
    check("spin = 1", "", &["invalid type"]);
}
