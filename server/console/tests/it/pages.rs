//! The pages: what they show, to whom, and when they change.

use std::io::{BufRead as _, BufReader, Write as _};
use std::sync::atomic::Ordering;
use std::time::Duration;

use crate::support::{DAY, TestConsole};

const ALL: [&str; 8] = [
    "/",
    "/routes",
    "/requests?status=4xx&who=people",
    "/why",
    "/now",
    "/purge",
    "/?range=quarter",
    "/routes?sort=useless",
];

#[test]
fn pages_say_what_will_appear_and_then_show_it() {
    let mut test = TestConsole::new();
    assert!(
        test.page("/")
            .contains("The first appear here by themselves")
    );
    assert!(test.page("/routes").contains("No page was asked for"));
    assert!(test.page("/now").contains("Nothing is known yet"));
    test.sample(DAY);
    for n in 1..=6 {
        test.ask(90, 10);
        test.ask_route("/articles/{slug}", 90, 10);
        test.sample_all(DAY + n * 10);
    }
    let overview = test.page("/");
    // A hundred in ten seconds are 600 a minute.
    assert!(
        overview.contains("<dd class=\"value\">600</dd>"),
        "{overview}"
    );
    assert!(
        overview.contains("<dd class=\"value\">90.0\u{a0}%</dd>"),
        "{overview}"
    );
    assert!(
        overview.contains("<svg class=\"panel\"") && overview.contains("<svg class=\"narrow\"")
    );
    let routes = test.page("/routes");
    assert!(routes.contains("/articles/{slug}") && !routes.contains("Useless cache"));
    assert!(test.page("/routes/1").contains("Time to make one"));
    assert_eq!(test.get("/routes/999").status, 404);
    assert!(test.page("/now").contains("Since the start"));
    for target in ALL {
        test.page(target);
    }
}

#[test]
fn a_useless_cache_is_called_so() {
    let mut test = TestConsole::new();
    test.sample(DAY);
    test.ask(4, 196);
    test.ask_route("/search", 4, 196);
    test.ask_route("/good", 190, 10);
    test.sample_all(DAY + 10);
    let routes = test.page("/routes?sort=useless");
    let at = |text: &str| {
        routes
            .find(text)
            .unwrap_or_else(|| panic!("{text}: {routes}"))
    };
    assert!(at("hit rate 0.02") < at("/good"), "the worst first");
    assert!(test.page("/").contains("1 route</a>"));
    let link = routes.split("href=\"/routes/").nth(1).unwrap();
    let route = test.page(&format!("/routes/{}", link.split('"').next().unwrap()));
    assert!(route.contains("a hit rate of 0.02"), "{route}");
}

#[test]
fn a_time_is_shown_beside_the_one_before() {
    let mut test = TestConsole::new();
    test.sample(DAY);
    test.ask(100, 0);
    test.sample(DAY + 10);
    for n in 0..2 {
        test.ask(150, 0);
        test.sample(DAY + 3600 + n * 10);
    }
    let overview = test.page("/");
    assert!(overview.contains("+50 % on the hour before"), "{overview}");
    assert!(!test.page("/?beside=none").contains("on the hour before"));
    let own = test.page("/?since=2026-11-28&till=2026-11-29");
    assert!(own.contains("<svg"), "{own}");
    assert!(
        test.page("/?since=2026-01-01&till=2026-01-02")
            .contains("No figures of this time")
    );
    assert_eq!(test.get("/?since=yesterday").status, 400);
}

#[test]
fn durations_and_crawlers_are_shown_where_they_are_counted() {
    let mut test = TestConsole::new();
    test.sample(DAY);
    test.ask(100, 0);
    assert!(!test.page("/").contains("People and crawlers"));
    {
        let totals = &mut test.figures.0.lock().unwrap().totals;
        totals.counts.crawlers = Some(30);
        totals.counts.server_errors = Some(2);
        totals.durations = vec![(100, 90), (1_000, 8), (2_000_000, 2)];
    }
    test.sample(DAY + 10);
    let overview = test.page("/");
    for shown in [
        "People and crawlers",
        "Time to answer",
        "Errors of the server",
        "2.00\u{a0}s",
        "100\u{a0}µs",
    ] {
        assert!(overview.contains(shown), "{shown}: {overview}");
    }
}

#[test]
fn certificates_say_their_end_and_why_the_last_try_failed() {
    let mut test = TestConsole::new();
    test.certify("a.example", "the authority <did> not answer");
    test.sample(DAY);
    let now = test.page("/now");
    for shown in ["5 days left", "&lt;did&gt; not answer", "none yet"] {
        assert!(now.contains(shown), "{shown}: {now}");
    }
    test.figures.0.lock().unwrap().certificates.clear();
    test.sample(DAY + 10);
    assert!(!test.page("/now").contains("a.example"));
}

#[test]
fn an_explanation_is_a_page() {
    let test = TestConsole::new();
    let ask = |form: &str| test.connection().post("/ask", form);
    assert_eq!(test.get("/ask?target=/").status, 404, "only a form asks");
    let asked = ask("target=/read%3Fid%3D1");
    assert_eq!(
        (asked.status, asked.field("location")),
        (303, Some("/why/1"))
    );
    let why = test.page("/why/1");
    for shown in [
        "/read?id=1",
        "a change has touched",
        "&lt;nothing&gt; has changed",
        "article with id = :id",
    ] {
        assert!(why.contains(shown), "{shown}: {why}");
    }
    assert!(test.page("/why").contains("/why/1"));
    for (target, leads) in [
        ("", "/why?wrong=target"),
        ("target=read", "/why?wrong=target"),
        ("target=/&host=other.example", "/why?wrong=host"),
        ("target=http://other.example/a", "/why?wrong=host"),
        ("target=http://own.example", "/why/2"),
    ] {
        assert_eq!(ask(target).field("location"), Some(leads), "{target}");
    }
    for _ in 0..60 {
        ask("target=/a");
    }
    assert_eq!(test.value("select count(*) from explained"), 50);
    assert_eq!(test.get("/why/1").status, 404);
}

#[test]
fn one_address_is_ended_after_a_question() {
    let test = TestConsole::new();
    let page = test.page("/purge?target=/read%3Fid%3D1&host=own.example");
    assert!(page.contains("own.example/read?id=1"), "{page}");
    let purged = || test.asked.1.lock().unwrap().clone();
    assert!(purged().is_empty(), "to look is not to do");
    for (form, leads) in [
        ("target=/read%3Fid%3D1&host=", "/purge?ended=2"),
        ("target=http://own.example/a", "/purge?ended=2"),
        ("target=read", "/purge?wrong=1"),
        ("target=/&host=other.example", "/purge?wrong=1"),
    ] {
        let answer = test.connection().post("/purge", form);
        let led = (answer.status, answer.field("location"));
        assert_eq!(led, (303, Some(leads)), "{form}");
        test.page(leads);
    }
    assert_eq!(purged(), ["/read?id=1", "own.example/a"]);
    assert_eq!(test.asked.0.load(Ordering::Relaxed), 0, "the others stay");
}

#[test]
fn other_sites_change_nothing_and_read_nothing() {
    let test = TestConsole::new();
    let purged = || test.asked.0.load(Ordering::Relaxed);
    let post = |fields: &str| {
        let mut connection = test.connection();
        connection.send(format!(
            "POST /purge HTTP/1.1\r\nHost: localhost\r\n{fields}Content-Length: 0\r\n\r\n"
        ));
        connection.receive().status
    };
    for fields in [
        "Sec-Fetch-Site: cross-site\r\n",
        "Sec-Fetch-Site: same-site\r\n",
        "Origin: http://evil.example\r\n",
        "Origin: null\r\n",
    ] {
        assert_eq!(post(fields), 403, "{fields}");
    }
    assert_eq!(purged(), 0);
    assert_eq!(
        post("Sec-Fetch-Site: same-origin\r\nOrigin: http://localhost\r\n"),
        303
    );
    assert_eq!(purged(), 1);
    assert!(
        test.get("/purge").status == 200 && purged() == 1,
        "to look is not to do"
    );
    let mut foreign = test.connection();
    foreign.send(
        "POST /ask HTTP/1.1\r\nHost: localhost\r\nOrigin: http://evil.example\r\nContent-Length: 8\r\n\r\ntarget=/",
    );
    assert_eq!(foreign.receive().status, 403);
    assert_eq!(test.value("select count(*) from explained"), 0);
    let mut connection = test.connection();
    connection.send("GET / HTTP/1.1\r\nHost: evil.example\r\n\r\n");
    assert_eq!(connection.receive().status, 421);
    for target in ["/", "/404", "/console.css"] {
        let response = test.get(target);
        let policy = response
            .field("content-security-policy")
            .unwrap_or_default();
        assert!(
            policy.starts_with("default-src 'none'") && !policy.contains("unsafe"),
            "{target}"
        );
    }
}

#[test]
fn requests_are_held_while_their_page_is_looked_at() {
    let mut test = TestConsole::new();
    let (soon, a_minute_later) = (Duration::from_secs(1), Duration::from_secs(62));
    let is_watched = |test: &TestConsole| test.figures.0.lock().unwrap().is_watched;
    test.page("/");
    test.see("/before", 200, "hit", false);
    test.show_requests(soon);
    assert!(!is_watched(&test) && test.value("select count(*) from seen") == 0);
    test.figures.0.lock().unwrap().seen.clear();
    assert!(test.page("/requests").contains("Waiting for requests"));
    test.show_requests(soon);
    assert!(is_watched(&test));
    test.see("/articles/<one>", 200, "hit", false);
    test.see("/articles/two?page=2", 404, "error", true);
    test.show_requests(soon);
    let page = test.page("/requests");
    let at = |text: &str| page.find(text).unwrap_or_else(|| panic!("{text}: {page}"));
    assert!(
        at("/articles/two?page=2") < at("/articles/&lt;one&gt;"),
        "the newest first"
    );
    for (query, one, two) in [
        ("path=ONE", true, false),
        ("status=4xx", false, true),
        ("outcome=hit", true, false),
        ("route=/articles/%7Bslug%7D", true, true),
        ("route=/other", false, false),
        ("who=people", true, false),
        ("who=crawlers&status=4xx", false, true),
    ] {
        let page = test.page(&format!("/requests?{query}"));
        let shown = (
            page.contains("/articles/&lt;one"),
            page.contains("two?page=2"),
        );
        assert_eq!(shown, (one, two), "{query}");
    }
    test.show_requests(a_minute_later);
    assert!(!is_watched(&test) && test.value("select count(*) from seen") == 0);
    let foreign = ["Sec-Fetch-Site: cross-site"];
    test.connection().get_with("/requests", &foreign);
    test.show_requests(a_minute_later);
    assert!(!is_watched(&test), "other sites do not look");
}

#[test]
fn at_most_five_thousand_requests_are_shown() {
    let mut test = TestConsole::new();
    test.page("/requests");
    for round in 0..6 {
        for number in 0..1_000 {
            test.see(&format!("/{round}/{number}"), 200, "hit", false);
        }
        test.show_requests(Duration::ZERO);
    }
    assert_eq!(test.value("select count(*) from seen"), 5_000);
    assert_eq!(test.value("select min(target) = '/1/0' from seen"), 1);
    let page = test.page("/requests");
    assert!(
        page.contains("the newest 200") && page.contains("/5/999") && !page.contains("/5/799<")
    );
    // One that was killed has left them.
    let mut test = TestConsole::in_folder(test.close());
    test.show_requests(Duration::ZERO);
    assert_eq!(test.value("select count(*) from seen"), 0);
}

/// Each sample is shown to those who look, without being asked for.
#[test]
fn a_page_that_is_looked_at_changes_with_each_sample() {
    let mut test = TestConsole::new();
    test.sample(DAY);
    let page = test.page("/");
    let script = page.split("/.millpond/live.").nth(1).unwrap();
    let tag = script.split("data-tag=\"").nth(1).unwrap();
    let tag = tag.split('"').next().unwrap().to_owned();
    let mut stream = test.connection().stream().try_clone().unwrap();
    let target = format!("/.millpond/live?page=/&seen={tag}");
    write!(stream, "GET {target} HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
    let mut lines = BufReader::new(stream).lines().map(Result::unwrap);
    assert!(lines.next().unwrap().contains(" 200 "));
    test.ask(10, 0);
    test.sample(DAY + 10);
    let told = lines.find(|line| line.starts_with("id: ")).unwrap();
    assert_ne!(told, format!("id: {tag}"));
    assert!(test.page("/").contains("<dd class=\"value\">60.0</dd>"));
}
