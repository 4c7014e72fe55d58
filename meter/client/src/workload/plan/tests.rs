//! Plans as they are written: the example of the manual, defaults from the command line, and
//! mistakes with their messages.

use std::fs;
use std::path::Path;

use super::PlanError;
use crate::Plan;
use crate::workload::tests::{first, parse_in, render};
use crate::workload::{ResponseVerdict, Workload};
use millrace_stats::random::Random;

/// The example of the manual.
fn example() -> &'static str {
    let document = include_str!("../../../../../docs/reference/plans.md");
    let example = document.split("```toml\n").nth(1).unwrap();
    example.split("```").next().unwrap()
}

#[track_caller]
fn refuse(text: &str, place: &str, word: &str) {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("u.csv"), "name\nann\n").unwrap();
    fs::write(dir.path().join("bad.csv"), "a,b\n1,2\n1\n").unwrap();
    fs::write(dir.path().join("empty.csv"), "a,b\n").unwrap();
    let error = parse_in(dir.path(), text).unwrap_err().to_string();
    let error = error.replace(&format!("{}/", dir.path().display()), "");
    assert!(
        error.starts_with(&format!("plan.toml:{place}: ")) && error.contains(word),
        "{error}"
    );
}

#[test]
fn mistakes_have_line_column_and_advice() {
    let class = |line: &str| format!("[[class]]\nname = 'c'\n{line}");
    refuse(
        &class("target = '/'\nwieght = 2"),
        "4:1",
        "unknown key \"wieght\" in [[class]]; did you mean \"weight\"?",
    );
    refuse(
        "sed = 1\n[[class]]\nname='c'\ntarget='/'",
        "1:1",
        "did you mean \"seed\"",
    );
    refuse("seed = \n", "1:8", "not TOML");
    refuse("seed = 1", "1:1", "has no \"class\"");
    refuse("class = []", "1:9", "classes");
    refuse(&class(""), "1:1", "has no \"target\"");
    refuse(
        &class("target = 3"),
        "3:10",
        "a text is wanted here, not a whole number",
    );
    refuse(&class("target = 'x'"), "3:10", "begins with /");
    refuse(&class("target = '/a b'"), "3:10", "no space");
    refuse(&class("target = '/{{}}'"), "3:12", "nothing in it");
    refuse(
        &class("target = '/{{cuonter}}'"),
        "3:12",
        "did you mean \"counter\"?",
    );
    refuse(
        &class("target = '/{{counter}}/{{nobody}}'"),
        "3:24",
        "unknown name \"nobody\"",
    );
    refuse(
        &class("target = '/{{\"{{\"}}/{{nobody}}'"),
        "3:21",
        "unknown name \"nobody\"",
    );
    refuse(&class("target = '/{{counter'"), "3:12", "without \"}}\"");
    refuse(&class("target = '/{{random 5 1}}'"), "3:12", "ends before");
    refuse(&class("target = '/{{hex 0}}'"), "3:12", "from 1 to");
    refuse(&class("target = '/{{json counter}}'"), "3:12", "for bodies");
    refuse(
        &class("target = '/{{data.u.name}}'"),
        "3:12",
        "there is no [data.u]",
    );
    refuse(
        "[data.u]\ncsv='u.csv'\n[[class]]\nname='c'\ntarget='/{{data.u.nam}}'",
        "5:10",
        "did you mean \"name\"?",
    );
    refuse("[data.u]\ncsv='no.csv'\n", "2:5", "no.csv");
    refuse("[data.u]\ncsv='bad.csv'\n", "2:5", "line: 3");
    refuse("[data.u]\ncsv='empty.csv'\n", "2:5", "no row");
    refuse(
        "[choice.n]\nrange=[2, 1]\n",
        "2:7",
        "least and the greatest",
    );
    refuse(
        "[choice.n]\nrange=[1, 2]\nvalues=[1]\n",
        "2:7",
        "only one of",
    );
    refuse(
        "[choice.n]\nvalues=[1]\ndistribution='zipf:x'\n",
        "3:14",
        "zipf:0.9",
    );
    refuse(
        "[choice.n]\nvalues=[1]\nweights=[1, 2]\n",
        "3:9",
        "2 weights for 1 values",
    );
    refuse("[choice.random]\nvalues=[1]\n", "1:1", "meaning of its own");
    refuse("[choice.n]\nfiles='nowhere'\n", "2:7", "nowhere");
    refuse(
        &class("target='/'\nheaders={Content-Length='3'}"),
        "4:25",
        "client's own",
    );
    refuse(
        &class("target='/'\nheaders={X=\"a\\r\\nY: b\"}"),
        "4:12",
        "control character",
    );
    refuse(
        &class("target='/'\ncookies=true\nheaders={Cookie='a=1'}"),
        "5:17",
        "leave one",
    );
    refuse(
        &class("target='/'\nmethod='G T'"),
        "4:8",
        "no request method",
    );
    refuse(
        &class("target='/'\nmethod='HEAD'\ncheck={contains='x'}"),
        "1:1",
        "no body",
    );
    refuse(
        &class("target='/'\ncheck={regex='('}"),
        "4:14",
        "unclosed group",
    );
    refuse(
        &class("target='/'\ncheck={sha256='12'}"),
        "4:15",
        "64 hexadecimal",
    );
    refuse(&class("target='/'\ncheck={}"), "4:7", "needs one of");
    refuse(
        &class("target='/'\nextract={a={pointer='x'}}"),
        "4:21",
        "begins with /",
    );
    refuse(
        &class("target='/'\nthink='gamma:1s'"),
        "4:7",
        "not understood",
    );
    refuse(&class("target='/'\nrepeat=0"), "4:8", "is not from 1");
    refuse(&class("target='/'\nrepeat=[3, 1]"), "4:8", "ends before");
    refuse(&class("target='/'\nexpect=[99]"), "4:9", "is not from 100");
    refuse(&class("target='/'\nweight=-1"), "4:8", "not negative");
    refuse(&class("target='/'\nweight=0"), "1:1", "weight 0");
    refuse(
        &class("target='/'\nbody='a'\nbody_file='b'"),
        "5:11",
        "not both",
    );
    refuse(
        &class("target='/'\nbody_file='/dev/zero'"),
        "4:11",
        "a body is a file",
    );
    refuse(
        &class("[[class.step]]\ntarget='/{{t}}'\nextract={t={regex='x'}}"),
        "4:10",
        "earlier step",
    );
    refuse(
        &format!("{}{}", class("target='/'\n"), class("target='/'\n")),
        "5:8",
        "another class",
    );
}

#[test]
fn a_plan_may_name_its_server_and_a_command_another() {
    let text = "url = 'http://own:8080/'\n[[class]]\nname = 'c'\ntarget = '/'";
    let parse =
        |text: &str, base: &str| Workload::parse(text, Path::new("p.toml"), &Plan::new(base));
    assert_eq!(parse(text, "").unwrap().url(), "http://own:8080/");
    assert_eq!(parse(text, "http://h/").unwrap().url(), "http://h/");
    let error = parse("[[class]]\nname = 'c'\ntarget = '/'", "").unwrap_err();
    assert!(error.to_string().contains("no server"));
    assert!(
        parse(&text.replace("http:", "ftp:"), "")
            .unwrap_err()
            .to_string()
            .starts_with("p.toml:1:7: ")
    );
}

#[test]
fn fields_of_the_command_are_defaults_for_the_plan() {
    let base = Plan::new("http://h/").with(|plan| {
        plan.request.headers = vec![("X-A".into(), "1".into()), ("x-b".into(), "2".into())];
        plan.request.keep_alive = false;
        plan.request.expect = vec![418];
    });
    let text = "[[class]]\nname = 'c'\ntarget = '/'\nheaders = { X-B = 'b', User-Agent = 'u' }";
    let workload = Workload::parse(text, Path::new("p.toml"), &base).unwrap();
    let request = first(&workload, 0);
    assert_eq!(
        request,
        "GET / HTTP/1.1\r\nHost: h\r\nX-B: b\r\nUser-Agent: u\r\nX-A: 1\r\nConnection: close\r\n\r\n"
    );
    assert_eq!(
        workload.session(0).answered(&workload, 418, b"", b""),
        ResponseVerdict::Good
    );
}

/// The example of the manual is read from the manual, so it is complete.
#[test]
fn the_example_of_the_manual_is_a_plan() {
    let example = example();
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("users.csv"), "name\nann\n").unwrap();
    let workload = Workload::parse(example, &dir.path().join("shop.toml"), &Plan::new("")).unwrap();
    assert_eq!(workload.classes(), ["reader", "writer", "api"]);
    assert_eq!(workload.url(), "http://127.0.0.1:8080/");
    for number in 0..100 {
        let mut session = workload.session(number);
        let (request, asked) = render(&mut session, &workload);
        match asked.class {
            0 => assert!(request.starts_with("GET /read?id=")),
            1 => assert!(request.contains("\r\nAccept-Language: en\r\n") && asked.wants_body),
            _ => assert!(request.starts_with("GET /api/search?q=") && asked.wants_fields),
        }
    }
}

/// Plans damaged at random are read or refused, and a plan that is read makes requests with one
/// head each.
#[test]
fn a_damaged_plan_causes_no_panic() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("users.csv"), "name\n\"a\r\nb\"\n").unwrap();
    let scraps = [
        "{{",
        "}}",
        "\"",
        "'",
        "[[class]]\n",
        "= ",
        "\\r\\n",
        "-1",
        "{{counter}}",
        "\n",
        "ü",
        "0",
        "",
    ];
    let mut random = Random::new(6);
    let mut read = 0;
    for _ in 0..300 {
        let mut text = example().to_owned();
        for _ in 0..=random.below(2) {
            let (from, length) = (random.below(text.len()), random.below(6));
            let to = (from + length).min(text.len());
            if text.is_char_boundary(from) && text.is_char_boundary(to) {
                text.replace_range(from..to, scraps[random.below(scraps.len())]);
            }
        }
        match parse_in(dir.path(), &text) {
            Err(error) => assert!(error.to_string().contains("plan.toml:"), "{error}"),
            Ok(workload) => {
                read += 1;
                for number in 0..5 {
                    let (request, _) = render(&mut workload.session(number), &workload);
                    let (head, _) = request.split_once("\r\n\r\n").unwrap();
                    let line = head.lines().next().unwrap();
                    assert!(
                        line.split(' ').count() == 3 && line.ends_with(" HTTP/1.1"),
                        "{request}"
                    );
                    assert!(
                        !head.replace("\r\n", "").contains(['\r', '\n']),
                        "{request}"
                    );
                }
            }
        }
    }
    assert!(read > 30, "{read} of 300 were read");
}

#[test]
fn a_field_of_the_command_that_cannot_be_sent_is_refused() {
    let base = Plan::new("http://h/")
        .with(|plan| plan.request.headers = vec![("A\r\nB".into(), "1".into())]);
    let text = "[[class]]\nname = 'c'\ntarget = '/'";
    let error: PlanError = Workload::parse(text, Path::new("p.toml"), &base).unwrap_err();
    assert!(
        error
            .to_string()
            .starts_with("p.toml: a field of the command: "),
        "{error}"
    );
}
