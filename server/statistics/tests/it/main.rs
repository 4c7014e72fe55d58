//! Statistics of whole logs.

mod damage;
mod model;
mod spikes;

use std::fs;
use std::path::PathBuf;

use lab_testkit::fast_dir;
use millpond_statistics::{Filters, Options, Statistics, count};
use serde_json::Value;

/// Counts these logs.
fn statistics(logs: &[&[u8]], options: &Options) -> Statistics {
    let dir = fast_dir();
    let write = |(n, bytes): (usize, &&[u8])| -> PathBuf {
        let path = dir.path().join(format!("{n}.log"));
        fs::write(&path, bytes).unwrap();
        path
    };
    let paths: Vec<PathBuf> = logs.iter().enumerate().map(write).collect();
    count(&paths, options).unwrap_or_else(|(path, error)| panic!("{}: {error}", path.display()))
}

fn json(log: &str, options: &Options) -> Value {
    statistics(&[log.as_bytes()], options).json(usize::MAX)
}

fn filtered(filters: &[&str]) -> Options {
    let mut all = Filters::default();
    filters.iter().for_each(|filter| all.add(filter).unwrap());
    Options {
        filters: all,
        ..Options::default()
    }
}

/// A request of the minute `minute` of a day in the combined format.
fn line(day: u32, minute: u32, client: &str, target: &str, more: &str) -> String {
    format!(
        "{client} - - [{day:02}/Nov/2026:{:02}:{:02}:07 +0100] \"GET {target} HTTP/1.1\" 200 100 {more}\n",
        minute / 60,
        minute % 60
    )
}

#[test]
fn a_missing_log_is_named() {
    let Err((path, _)) = count(&["/nowhere/access.log".into()], &Options::default()) else {
        panic!("it is there")
    };
    assert_eq!(path, PathBuf::from("/nowhere/access.log"));
}

#[test]
fn filters_and_times_choose_the_requests() {
    let log = [
        line(1, 0, "192.0.2.1", "/a", "\"-\" \"curl/8\""),
        line(2, 60, "192.0.2.1", "/b?x=1", "\"-\" \"curl/8\""),
        line(3, 0, "192.0.2.2", "/b?x=2", "\"-\" \"Examplebot/1\""),
    ]
    .concat();
    let requests = |options: &Options| {
        let found = json(&log, options);
        assert_eq!(
            found["left_out"].as_u64().unwrap(),
            3 - found["requests"].as_u64().unwrap()
        );
        found["requests"].as_u64().unwrap()
    };
    assert_eq!(requests(&Options::default()), 3);
    assert_eq!(requests(&filtered(&["path=/b"])), 2);
    assert_eq!(requests(&filtered(&["class=!bots", "path=/b"])), 1);
    let period = |from: &str, to: &str| Options {
        period: millpond_statistics::Period::new(from.parse().ok(), to.parse().ok()),
        ..Options::default()
    };
    // By the clock of the log: in UTC the second line is of the first hour, and the first one is
    // of the day before.
    assert_eq!(requests(&period("2026-11-01", "2026-11-01")), 1);
    assert_eq!(requests(&period("2026-11-02T01:00", "")), 2);
    assert_eq!(requests(&period("", "2026-11-02T01:00")), 2);
    assert_eq!(requests(&period("2026-11-02T01:01", "2026-11-02")), 0);
    let with_query = Options {
        with_query: true,
        ..Options::default()
    };
    assert_eq!(json(&log, &with_query)["different_addresses"], 3);
    assert_eq!(json(&log, &Options::default())["different_addresses"], 2);
}

#[test]
fn the_text_fits_a_terminal_and_the_page_has_no_markup_of_clients() {
    let mut log = String::new();
    for day in 1..=5 {
        for n in 0..400 * day {
            let target = format!("/a-very-long-address-of-a-page/{n}/<script>alert(1)</script>");
            let agent = "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0";
            let minute = if n % 2 == 0 { n % 1440 } else { 725 };
            log += &line(
                day,
                minute,
                "2001:db8::1",
                &target,
                &format!("\"https://{n}.example.org/\" \"{agent}\" 0.0{n:03}"),
            );
        }
    }
    log += "no log\n";
    let found = statistics(&[log.as_bytes()], &Options::default());
    let report = found.report(10);
    let text = report.to_text();
    for line in text.lines() {
        assert!(line.chars().count() <= 80, "{line}");
    }
    for words in [
        "visitors a day",
        "2026-11-05     2 000   +25 %",
        "12:00  3 120  █",
        "<script>",
        "Spike of 2026-11-05 12:05: 1 000 requests",
        "2001:db8::/48",
        "99.9 %",
        "1 of 6 001 lines",
        "All figures",
    ] {
        assert!(text.contains(words), "{words}: {text}");
    }
    let html = report.to_html();
    assert!(!html.contains("<script"), "{html}");
    assert!(
        html.contains("&lt;script&gt;")
            && html.contains("<svg")
            && html.contains("prefers-color-scheme")
    );
    let empty = statistics(&[b""], &Options::default()).report(10);
    assert!(empty.to_text().contains("0 lines were read") && empty.to_html().contains("</html>"));
}
