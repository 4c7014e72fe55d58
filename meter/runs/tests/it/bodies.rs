//! Checks of bodies.

use millrace_client::{Error, Plan};

use crate::stub::{HELLO, StubServer, counted, measure, serve};

const DIGEST: &str = "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824";

fn check(answer: &'static [u8], good: bool, word: &str, change: impl Fn(Plan) -> Plan) {
    let server = StubServer::fixed(answer);
    let run = measure(&change(counted(server.url("/"), 2, 20)));
    let expected = if good { (20, 0) } else { (0, 20) };
    assert_eq!(
        (run.accounting.good, run.errors.count("bad_body")),
        expected,
        "{run:?}"
    );
    if !good {
        assert!(
            run.error_examples["bad_body"].contains(word),
            "{:?}",
            run.error_examples
        );
        assert_eq!(run.accounting.answered, 20, "it is an answer all the same");
    }
}

fn expression(text: &str) -> impl Fn(Plan) -> Plan {
    move |plan| plan.with(|plan| plan.request.expect_body = Some(text.to_owned()))
}

fn digest(text: &str) -> impl Fn(Plan) -> Plan {
    move |plan| plan.with(|plan| plan.request.expect_sha256 = Some(text.to_owned()))
}

const CHUNKED: &[u8] =
    b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2;x=y\r\nhe\r\n3\r\nllo\r\n0\r\nT: v\r\n\r\n";

#[test]
fn a_body_must_be_what_was_expected() {
    check(HELLO, true, "", expression("^hel+o$"));
    check(HELLO, false, "does not match", expression("world"));
    check(HELLO, true, "", digest(&DIGEST.to_uppercase()));
    check(HELLO, false, "SHA-256", digest(&DIGEST.replace('2', "3")));
}

#[test]
fn the_framing_of_a_body_is_no_part_of_it() {
    check(CHUNKED, true, "", expression("^hello$"));
    check(CHUNKED, true, "", digest(DIGEST));
    check(CHUNKED, false, "does not match", expression("x=y"));
}

#[test]
fn a_body_until_the_end_of_the_connection_is_checked() {
    let server = StubServer::start(|stream| {
        serve(&stream, |number, _| {
            (number == 0).then(|| b"HTTP/1.0 200 OK\r\n\r\nhello".to_vec())
        });
    });
    for (text, good) in [("^hello$", 10), ("^hell$", 0)] {
        let plan = counted(server.url("/"), 2, 10).with(|plan| plan.request.keep_alive = false);
        let run = measure(&expression(text)(plan));
        assert_eq!(
            (run.accounting.good, run.errors.count("bad_body")),
            (good, 10 - good),
            "{run:?}"
        );
    }
}

#[test]
fn a_bad_status_counts_before_a_bad_body() {
    let server = StubServer::fixed(b"HTTP/1.1 404 Not Found\r\nContent-Length: 2\r\n\r\nno");
    let run = measure(&expression("yes")(counted(server.url("/"), 2, 10)));
    assert_eq!(run.errors.count("status_4xx"), 10, "{:?}", run.errors);
    assert_eq!(run.errors.count("bad_body"), 0, "{:?}", run.errors);
}

#[test]
fn pipelined_answers_are_checked_each_by_itself() {
    let server = StubServer::start(|stream| {
        serve(&stream, |number, _| {
            let word = if number % 2 == 0 { "hello" } else { "other" };
            Some(format!("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n{word}").into_bytes())
        });
    });
    let plan = counted(server.url("/"), 1, 100).with(|plan| plan.load.depth = 8);
    let run = measure(&digest(DIGEST)(plan));
    assert_eq!(
        (run.accounting.good, run.errors.count("bad_body")),
        (50, 50)
    );
}

#[test]
fn an_invalid_check_is_refused() {
    let plan = counted("http://127.0.0.1:1/".into(), 1, 1);
    let stop = std::sync::atomic::AtomicBool::new(false);
    for bad in [
        expression("(")(plan.clone()),
        digest("abc")(plan.clone()),
        expression("x")(plan).with(|plan| plan.request.method = "HEAD".into()),
    ] {
        let error = millrace_runs::run(&bad, None, &stop).unwrap_err();
        assert!(matches!(error, Error::Plan(_)), "{error}");
    }
}
