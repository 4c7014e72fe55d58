//! Alerts: when they begin and end, where they are shown, and what is posted of them.

use std::sync::atomic::Ordering;
use std::time::Duration;

use lab_testkit::fast_dir;
use millpond_console::CertificateState;
use serde_json::Value;

use crate::support::{DAY, TestConsole};

const PATIENCE: Duration = Duration::from_secs(60);

fn rule(of: &str, limit: &str, lasts: &str, more: &str) -> String {
    format!("[[alert]]\nof = \"{of}\"\nlimit = \"{limit}\"\nfor = \"{lasts}\"\n{more}")
}

const HOOK: &str = "webhook = \"https://hooks.example/secret\"\n";

/// Takes a sample in which each answer is an error, or none.
fn answer(test: &mut TestConsole, at: &mut u64, errors: bool) {
    test.ask(10, 0);
    {
        let counts = &mut test.figures.0.lock().unwrap().totals.counts;
        let add = |count: &mut Option<u64>, more| *count = Some(count.unwrap_or(0) + more);
        add(&mut counts.server_errors, u64::from(errors) * 10);
        add(&mut counts.successes, u64::from(!errors) * 10);
        add(&mut counts.redirects, 0);
        add(&mut counts.client_errors, 0);
    }
    *at += 10;
    test.sample(*at);
}

fn is_on(test: &TestConsole) -> bool {
    test.value("select is_on from alert") == 1
}

fn posted(test: &TestConsole) -> (String, Value) {
    let posted = test.asked.2.posted.lock().unwrap();
    posted.recv_timeout(PATIENCE).unwrap()
}

#[test]
fn an_alert_lasts_before_it_begins_and_before_it_ends() {
    let settings = rule("errors", "20%", "1min", HOOK);
    let mut test = TestConsole::with_rules(fast_dir(), &settings);
    let mut at = DAY;
    answer(&mut test, &mut at, false);
    assert!(test.page("/now").contains("errors above 20% for 1min"));
    assert!(test.page("/now").contains("quiet"));
    // One of six samples is 17 %; two are a third.
    for samples in [1, 6] {
        for _ in 0..samples {
            answer(&mut test, &mut at, true);
            assert!(!is_on(&test), "{at}");
        }
        for _ in 0..7 * u64::from(samples == 1) {
            answer(&mut test, &mut at, false);
        }
    }
    answer(&mut test, &mut at, true);
    answer(&mut test, &mut at, true);
    assert!(is_on(&test));
    let (url, begun) = posted(&test);
    assert_eq!(url, "https://hooks.example/secret");
    assert_eq!(
        (&begun["state"], &begun["alert"], &begun["figure"]),
        (
            &"begun".into(),
            &"errors above 20% for 1min".into(),
            &"errors".into()
        )
    );
    assert!(begun["value"].as_f64().unwrap() > 0.2 && begun["at"].as_u64() > Some(DAY));
    let text = begun["text"].as_str().unwrap();
    assert!(text.starts_with("alert begun: errors above 20%"), "{text}");
    assert!(test.page("/").contains("has been an alert since"));
    // A restart neither begins it again nor ends it.
    let mut test = TestConsole::with_rules(test.close(), &settings);
    test.sample(at);
    assert!(is_on(&test));
    for _ in 0..3 {
        // Within the limit, but not for long enough.
        at += 60;
        answer(&mut test, &mut at, false);
        assert!(is_on(&test));
        answer(&mut test, &mut at, true);
    }
    at += 60;
    for _ in 0..7 {
        answer(&mut test, &mut at, false);
    }
    assert!(!is_on(&test));
    let (_, over) = posted(&test);
    assert_eq!(over["state"], "over");
    assert!(!test.page("/").contains("has been an alert since"));
}

#[test]
fn each_figure_has_its_limit() {
    let settings = [
        rule("hit_rate", "50%", "0s", ""),
        rule("p99", "1s", "0s", ""),
        rule("feed_age", "2s", "0s", ""),
        rule("errors", "1%", "0s", ""),
        rule("refused", "1%", "0s", ""),
        rule("cores", "90%", "0s", ""),
        rule("certificate", "7d", "0s", ""),
    ];
    let mut test = TestConsole::with_rules(fast_dir(), &settings.concat());
    let on =
        "select group_concat(place, '') from (select place from alert where is_on order by place)";
    let begun = |test: &TestConsole| test.text(on);
    test.sample(DAY);
    assert_eq!(begun(&test), "", "nothing is known of any");
    let mut at = DAY;
    for round in 0..2 {
        {
            let known = &mut *test.figures.0.lock().unwrap();
            let totals = &mut known.totals;
            let is_bad = round == 1;
            totals.counts.requests += 100;
            totals.counts.pages += 100;
            totals.counts.hits += if is_bad { 10 } else { 90 };
            totals.counts.misses += if is_bad { 90 } else { 10 };
            totals.counts.shed += if is_bad { 30 } else { 0 };
            totals.counts.successes = Some(if is_bad { 150 } else { 100 });
            totals.counts.server_errors = Some(if is_bad { 50 } else { 0 });
            (totals.counts.redirects, totals.counts.client_errors) = (Some(0), Some(0));
            let cores = std::thread::available_parallelism().unwrap().get() as u64;
            totals.counts.cpu_ms = Some(if is_bad {
                11_000 * cores
            } else {
                1_000 * cores
            });
            totals.gauges.feed_age_ms = Some(if is_bad { 2_500 } else { 20 });
            totals.durations = vec![(100, 100), (2_000_000, u64::from(is_bad) * 9)];
            known.certificates = vec![CertificateState {
                names: "a.example".to_owned(),
                ends_at: Some(DAY + if is_bad { 6 } else { 30 } * 86_400),
                tried_at: None,
                failure: None,
            }];
        }
        at += 60;
        test.sample(at);
        assert_eq!(begun(&test), ["", "0123456"][round], "round {round}");
    }
    let now = test.page("/now");
    for shown in ["hit_rate below 50%", "10.00 %", "6 days", "2.500 s"] {
        assert!(now.contains(shown), "{shown}: {now}");
    }
    // A minute without requests has nothing to complain of; what is no count of requests stays.
    at += 200;
    test.sample(at);
    assert_eq!(begun(&test), "26");
    // Rules that are gone are not shown.
    let mut test = TestConsole::with_rules(test.close(), "");
    test.sample(at);
    assert_eq!(begun(&test), "");
    assert!(test.page("/now").contains("No rule is in the settings"));
}

#[test]
fn a_webhook_that_fails_is_tried_again_and_holds_up_no_sample() {
    let settings = rule("errors", "20%", "0s", HOOK);
    let mut test = TestConsole::with_rules(fast_dir(), &settings);
    test.asked.2.failures.store(1, Ordering::Relaxed);
    let mut at = DAY;
    answer(&mut test, &mut at, false);
    answer(&mut test, &mut at, true);
    at += 60;
    answer(&mut test, &mut at, false);
    assert!(!is_on(&test), "it was looked at meanwhile");
    // The end waits for the beginning.
    let states = [posted(&test).1, posted(&test).1].map(|posted| posted["state"].clone());
    assert_eq!(states, ["begun", "over"]);
    assert_eq!(test.asked.2.failures.load(Ordering::Relaxed), 0);
}
