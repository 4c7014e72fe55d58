//! The history as a report, read while a server writes it.

use lab_testkit::fast_dir;
use millpond_console::HistoryReport;
use serde_json::Value;

use crate::support::{DAY, TestConsole, history_of};

const NEXT: u64 = DAY + 86_400;

/// Two days: 300 requests on the first, of which 200 before noon; 150 on the morning of the next.
fn two_days() -> TestConsole {
    let mut test = TestConsole::new();
    test.sample(DAY);
    for (at, hits, made, errors) in [
        (DAY + 9 * 3600, 180, 20, 0),
        (DAY + 15 * 3600, 90, 10, 1),
        (NEXT + 9 * 3600, 135, 15, 2),
        (NEXT + 11 * 3600, 0, 0, 0),
    ] {
        test.ask(hits, made);
        test.ask_route("/articles/{slug}", hits, made);
        test.ask_route("/rare", 0, u64::from(at == DAY + 15 * 3600));
        {
            let totals = &mut test.figures.0.lock().unwrap().totals;
            let failed = totals.counts.server_errors.unwrap_or(0) + errors;
            totals.counts.server_errors = Some(failed);
            totals.counts.crawlers = Some(totals.counts.crawlers.unwrap_or(0) + hits / 10);
            let asked = totals.counts.requests;
            totals.durations = vec![(100, asked * 9 / 10), (2_000, asked / 10)];
        }
        test.sample_all(at);
    }
    test
}

fn read(test: &TestConsole, from: u64, till: u64) -> Option<HistoryReport> {
    let period = (from as i64, till as i64);
    HistoryReport::read(&history_of(&test.dir), period, 10).unwrap()
}

#[track_caller]
fn check(row: &Value, expected: &[(&str, Value)]) {
    for (name, value) in expected {
        assert_eq!(&row[name], value, "{name} in {row}");
    }
}

#[test]
fn days_hours_routes_and_times_stand_beside_the_day_before() {
    let test = two_days();
    let report = read(&test, 0, u64::MAX >> 1).unwrap();
    let figures = report.json();
    check(
        &figures["totals"],
        &[
            ("first_day", "2026-11-29".into()),
            ("last_day", "2026-11-30".into()),
            ("requests", 450.into()),
            ("hits", 405.into()),
            ("made", 45.into()),
            ("5xx", 3.into()),
            ("2xx", Value::Null),
        ],
    );
    let days = figures["days"].as_array().unwrap();
    assert_eq!(days.len(), 2, "{figures}");
    check(
        &days[0],
        &[("requests", 300.into()), ("requests_before", Value::Null)],
    );
    // Until eleven o'clock the day before had 200.
    check(
        &days[1],
        &[
            ("day", "2026-11-30".into()),
            ("requests", 150.into()),
            ("requests_before", 200.into()),
            ("p50_us", 100.into()),
            ("p99_us", 2_000.into()),
        ],
    );
    let hours = figures["hours"].as_array().unwrap();
    assert_eq!(hours.len(), 24);
    check(
        &hours[9],
        &[
            ("requests", 150.into()),
            ("requests_before", 200.into()),
            ("errors", 2.into()),
        ],
    );
    check(
        &hours[15],
        &[("requests", Value::Null), ("requests_before", 100.into())],
    );
    let routes = figures["routes"].as_array().unwrap();
    check(
        &routes[0],
        &[
            ("route", "/articles/{slug}".into()),
            ("requests", 450.into()),
            ("requests_of_last_day", 150.into()),
            ("requests_before", 200.into()),
        ],
    );
    check(
        &routes[1],
        &[("route", "/rare".into()), ("requests", 1.into())],
    );
    let text = report.report().to_text().replace('\u{a0}', " ");
    for shown in [
        "2026-11-29 to 2026-11-30",
        "2026-11-30  ",
        "/articles/{slug}  ",
        "−25 %",
        "90.0 %",
    ] {
        assert!(text.contains(shown), "{shown}: {text}");
    }
    let html = report.report().to_html();
    assert!(html.contains("Errors of the server an hour") && html.contains("/articles/{slug}"));
    assert!(!html.contains("<script"));
    // It is written on.
    drop(test.close());
}

#[test]
fn a_time_of_ones_own_has_only_what_is_in_it() {
    let test = two_days();
    let report = read(&test, NEXT, NEXT + 86_400).unwrap();
    let figures = report.json();
    check(
        &figures["totals"],
        &[("requests", 150.into()), ("first_day", "2026-11-30".into())],
    );
    assert_eq!(figures["days"].as_array().unwrap().len(), 1);
    check(&figures["days"][0], &[("requests_before", 200.into())]);
    check(
        &figures["routes"][0],
        &[("requests", 150.into()), ("requests_before", 200.into())],
    );
    assert_eq!(figures["routes"].as_array().unwrap().len(), 1, "{figures}");
    assert!(read(&test, NEXT + 86_400, NEXT + 2 * 86_400).is_none());
    assert!(read(&test, 0, DAY).is_none());
}

#[test]
fn what_is_no_history_is_an_error() {
    let dir = fast_dir();
    let file = history_of(&dir);
    let problem = || HistoryReport::read(&file, (0, 1), 1).err().unwrap();
    assert!(problem().contains("h.db"));
    std::fs::write(
        &file,
        "this is no database, and longer than a head of one".repeat(9),
    )
    .unwrap();
    assert!(problem().contains("not a database"), "{}", problem());
    assert!(!file.with_extension("db-wal").exists());
}
