//! Sessions of plans: what is sent, and what is judged.

use std::fs;
use std::path::Path;
use std::time::Duration;

use super::*;
use crate::Plan;

fn parse(text: &str) -> Workload {
    let dir = tempfile::tempdir().unwrap();
    parse_in(dir.path(), text).unwrap_or_else(|error| panic!("{error}"))
}

pub(super) fn parse_in(dir: &Path, text: &str) -> Result<Workload, PlanError> {
    Workload::parse(text, &dir.join("plan.toml"), &Plan::new("http://h:81/"))
}

pub(super) fn render(
    session: &mut VisitorSession,
    workload: &Workload,
) -> (String, RenderedRequest) {
    let mut out = Vec::new();
    let asked = session.render(workload, &mut out);
    (String::from_utf8(out).unwrap(), asked)
}

/// The first request of a session.
pub(super) fn first(workload: &Workload, number: u64) -> String {
    render(&mut workload.session(number), workload).0
}

fn target(request: &str) -> &str {
    request.split(' ').nth(1).unwrap()
}

#[test]
fn a_class_without_steps_is_one_request() {
    let workload = parse("[[class]]\nname = 'home'\ntarget = '/'");
    assert_eq!(workload.classes(), ["home"]);
    let mut session = workload.session(0);
    let (request, asked) = render(&mut session, &workload);
    assert!(
        request.starts_with("GET / HTTP/1.1\r\nHost: h:81\r\nUser-Agent: millrace/"),
        "{request}"
    );
    assert!(request.ends_with("\r\n\r\n"));
    let expected = RenderedRequest {
        class: 0,
        head: false,
        wants_body: false,
        wants_fields: false,
    };
    assert_eq!(asked, expected);
    assert_eq!(
        session.answered(&workload, 200, b"", b""),
        ResponseVerdict::Good
    );
    assert_eq!(
        session.answered(&workload, 404, b"", b""),
        ResponseVerdict::BadStatus
    );
    assert_eq!(session.advance(&workload), None);
}

#[test]
fn values_are_encoded_for_their_position() {
    let workload = parse(
        r#"
        [choice.word]
        values = ["a b/ü\r\nX: y"]
        [[class]]
        name = "c"
        target = "/{{word}}?{{raw word}}&n={{counter}}"
        headers = { X-Word = "{{word}}" }
        body = '{"w": {{json word}}, "r": "{{word}}", "b": "{{"{{"}}"}'
        "#,
    );
    let mut session = workload.session(7);
    let (request, _) = render(&mut session, &workload);
    assert_eq!(
        target(&request),
        "/a%20b%2F%C3%BC%0D%0AX%3A%20y?a%20b/%C3%BC%0D%0AX:%20y&n=7"
    );
    assert!(request.starts_with("POST "), "a body makes it a POST");
    assert!(
        request.contains("X-Word: a b/üX: y\r\n"),
        "no line is smuggled in"
    );
    let (head, body) = request.split_once("\r\n\r\n").unwrap();
    assert!(head.ends_with(&format!("Content-Length: {}", body.len())));
    assert!(
        body.starts_with(r#"{"w": "a b/ü\u000d\u000aX: y", "r": "a b/ü"#)
            && body.ends_with(r#""b": "{{"}"#)
    );
    assert!(
        matches!(session.answered(&workload, 200, b"", b""), ResponseVerdict::NoMatch(why) if why.contains("control")),
        "what was left out is said"
    );
}

#[test]
fn random_values_repeat_with_the_seed_and_stay_in_their_range() {
    let plan = |seed: u32| {
        format!(
            "seed = {seed}\n[[class]]\nname = 'c'\ntarget = '/{{{{random 1 6}}}}/{{{{hex 20}}}}/{{{{uuid}}}}/{{{{random -9223372036854775808 0}}}}'"
        )
    };
    let (one, other) = (parse(&plan(1)), parse(&plan(2)));
    let again = parse(&plan(2)).with_seed(1);
    for number in 0..200 {
        let request = first(&one, number);
        assert_eq!(request, first(&again, number));
        assert_ne!(request, first(&other, number));
        let parts: Vec<&str> = target(&request).split('/').collect();
        assert!((1..=6).contains(&parts[1].parse::<u32>().unwrap()));
        assert!(parts[2].len() == 20 && parts[2].bytes().all(|byte| byte.is_ascii_hexdigit()));
        let uuid = parts[3].as_bytes();
        assert!(
            uuid.len() == 36 && uuid[14] == b'4' && b"89ab".contains(&uuid[19]),
            "{}",
            parts[3]
        );
    }
}

#[test]
fn a_choice_is_one_value_in_a_request_and_another_in_the_next() {
    let workload = parse(
        "[choice.n]\nrange = [1, 1000000]\n[[class]]\nname = 'c'\ntarget = '/{{n}}/{{n}}'\nrepeat = 3",
    );
    let mut session = workload.session(0);
    let mut seen = Vec::new();
    loop {
        let (request, _) = render(&mut session, &workload);
        let parts: Vec<&str> = target(&request).split('/').collect();
        assert_eq!(parts[1], parts[2]);
        seen.push(parts[1].to_owned());
        if session.advance(&workload).is_none() {
            break;
        }
    }
    seen.dedup();
    assert_eq!(seen.len(), 3);
}

#[test]
fn classes_and_choices_have_their_shares() {
    let workload = parse(
        "[choice.w]\nvalues = ['x', 'y']\nweights = [3, 1]\n[choice.z]\nrange = [1, 10]\ndistribution = 'zipf:1'\n\
         [[class]]\nname = 'a'\nweight = 9\ntarget = '/a/{{w}}/{{z}}'\n[[class]]\nname = 'b'\ntarget = '/b/{{w}}/{{z}}'",
    );
    let all: Vec<String> = (0..4000).map(|number| first(&workload, number)).collect();
    let share = |text: &str| all.iter().filter(|request| request.contains(text)).count();
    assert!((3500..3700).contains(&share("/a/")), "{}", share("/a/"));
    assert!((2850..3150).contains(&share("/x/")), "{}", share("/x/"));
    // 1 of the sum of 1/k for k to 10, which is 2.93.
    assert!((1260..1470).contains(&share("/1 ")), "{}", share("/1 "));
}

#[test]
fn rows_go_round_and_stay_with_their_session() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("u.csv"), "name,pass\nann,\"a,1\"\nbob,b2\n").unwrap();
    let text = "[data.u]\ncsv = 'u.csv'\n[[class]]\nname = 'c'\ntarget = '/{{data.u.name}}/{{data.u.pass}}'\nrepeat = 2";
    let workload = parse_in(dir.path(), text).unwrap();
    assert_eq!(target(&first(&workload, 0)), "/ann/a%2C1");
    assert_eq!(target(&first(&workload, 3)), "/bob/b2");
    let mut session = workload.session(1);
    let before = render(&mut session, &workload).0;
    session.advance(&workload).unwrap();
    assert_eq!(before, render(&mut session, &workload).0);
    let random = text.replace("csv'", "csv'\npick = 'random'");
    let workload = parse_in(dir.path(), &random).unwrap();
    let anns = (0..1000)
        .filter(|&number| first(&workload, number).contains("ann"))
        .count();
    assert!((420..580).contains(&anns), "{anns}");
}

#[test]
fn values_are_taken_from_answers_and_pauses_kept() {
    let workload = parse(
        r#"
        [[class]]
        name = "login"
        cookies = true
        think = "20ms"
        [[class.step]]
        target = "/form"
        check = { contains = "<form" }
        extract = { token = { regex = 'name="t" value="([^"]+)"' }, tag = { field = "etag" } }
        think = "10ms"
        [[class.step]]
        target = "/api"
        method = "PUT"
        headers = { If-Match = "{{tag}}" }
        extract = { id = { pointer = "/items/0/id" } }
        expect = [201]
        [[class.step]]
        target = "/item/{{id}}?t={{token}}&s={{step}}"
        repeat = [2, 2]
        "#,
    );
    let mut session = workload.session(0);
    let (_, asked) = render(&mut session, &workload);
    assert!(asked.wants_body && asked.wants_fields);
    let fields = b"ETag: \"x1\"\r\nSet-Cookie: s=42; Path=/\r\n";
    let body = b"<form><input name=\"t\" value=\"q&r\">";
    assert_eq!(
        session.answered(&workload, 200, fields, body),
        ResponseVerdict::Good
    );
    assert_eq!(session.advance(&workload), Some(Duration::from_millis(10)));
    let (request, _) = render(&mut session, &workload);
    assert!(request.starts_with("PUT /api ") && request.contains("\r\nIf-Match: \"x1\"\r\n"));
    assert!(request.ends_with("Cookie: s=42\r\nContent-Length: 0\r\n\r\n"));
    assert_eq!(
        session.answered(&workload, 200, b"", b"{}"),
        ResponseVerdict::BadStatus
    );
    assert!(matches!(
        session.answered(&workload, 201, b"", b"{}"),
        ResponseVerdict::NoMatch(_)
    ));
    assert!(matches!(
        session.answered(&workload, 201, b"", b"<"),
        ResponseVerdict::NoMatch(_)
    ));
    assert_eq!(
        session.answered(&workload, 201, b"", b"{\"items\": [{\"id\": 7}]}"),
        ResponseVerdict::Good
    );
    assert_eq!(session.advance(&workload), Some(Duration::from_millis(20)));
    assert_eq!(
        target(&render(&mut session, &workload).0),
        "/item/7?t=q%26r&s=2"
    );
    assert!(session.advance(&workload).is_some());
    assert_eq!(
        target(&render(&mut session, &workload).0),
        "/item/7?t=q%26r&s=3"
    );
    assert_eq!(session.rest(&workload), Duration::from_millis(20));
    assert_eq!(session.advance(&workload), None);
}

#[test]
fn bodies_are_checked() {
    let check = |check: &str, body: &[u8]| {
        let workload = parse(&format!(
            "[[class]]\nname = 'c'\ntarget = '/'\ncheck = {{ {check} }}"
        ));
        workload.session(0).answered(&workload, 200, b"", body)
    };
    let hello = "sha256 = '2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824'";
    assert_eq!(check(hello, b"hello"), ResponseVerdict::Good);
    assert!(matches!(
        check(hello, b"hallo"),
        ResponseVerdict::BadBody(_)
    ));
    assert_eq!(check("regex = '^h.l+o$'", b"hello"), ResponseVerdict::Good);
    assert!(matches!(
        check("regex = '^h.l+o$'", b"\xffhello"),
        ResponseVerdict::BadBody(_)
    ));
    assert!(matches!(
        check("contains = 'x'", b"hello"),
        ResponseVerdict::BadBody(_)
    ));
}

#[test]
fn a_value_that_is_a_link_can_be_followed() {
    let workload = parse(
        "[[class]]\nname = 'c'\n[[class.step]]\ntarget = '/'\nextract = { link = { regex = 'href=\"([^\"]*)' } }\n\
         [[class.step]]\ntarget = '{{raw link}}'",
    );
    for (link, expected) in [
        ("/read?id=3", "/read?id=3"),
        ("next page", "/next%20page"),
        ("", "/"),
        ("http://h:81/a#b", "/a"),
        ("http://h:81?q", "/?q"),
    ] {
        let mut session = workload.session(0);
        render(&mut session, &workload);
        let page = format!("<a href=\"{link}\">");
        assert_eq!(
            session.answered(&workload, 200, b"", page.as_bytes()),
            ResponseVerdict::Good
        );
        session.advance(&workload);
        assert_eq!(target(&render(&mut session, &workload).0), expected);
        assert_eq!(
            session.answered(&workload, 200, b"", b""),
            ResponseVerdict::Good
        );
    }
    for elsewhere in ["http://h:810/", "https://h:81/", "http://other/"] {
        let mut session = workload.session(0);
        let page = format!("<a href=\"{elsewhere}\">");
        session.answered(&workload, 200, b"", page.as_bytes());
        session.advance(&workload);
        render(&mut session, &workload);
        let judged = session.answered(&workload, 200, b"", b"");
        assert_eq!(
            judged,
            ResponseVerdict::NoMatch("a target is a link to another server")
        );
    }
}

#[test]
fn files_of_a_folder_are_paths() {
    let dir = tempfile::tempdir().unwrap();
    fs::create_dir_all(dir.path().join("s/a b")).unwrap();
    fs::write(dir.path().join("s/a b/x#.css"), "").unwrap();
    let text = "[choice.f]\nfiles = 's'\n[[class]]\nname = 'c'\ntarget = '/static/{{f}}'";
    assert_eq!(
        target(&first(&parse_in(dir.path(), text).unwrap(), 0)),
        "/static/a%20b/x%23.css"
    );
}
