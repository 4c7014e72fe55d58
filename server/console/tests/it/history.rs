//! The history: every request once, at the right time, in a bounded file.

use std::fs;

use lab_testkit::fast_dir;

use crate::support::{DAY, TestConsole, history_of, value};

#[test]
fn every_request_is_in_each_length_of_time_once() {
    let mut test = TestConsole::new();
    test.sample(DAY + 5);
    for at in [15, 25, 65, 75] {
        test.ask(90, 10);
        test.sample(DAY + at);
    }
    let sum = |grain: u32| format!("select sum(requests) from sample where grain = {grain}");
    for grain in [10, 60, 3600] {
        assert_eq!(test.value(&sum(grain)), 400, "{grain}");
    }
    let rows = "select group_concat(grain || ':' || n) = '10:4,60:2,3600:1' from \
         (select grain, count(*) as n from sample group by grain)";
    assert_eq!(test.value(rows), 1);
    assert_eq!(
        test.value("select sum(span_ms) from sample where grain = 3600"),
        40_000
    );
}

#[test]
fn a_clock_that_is_set_back_loses_nothing_and_doubles_nothing() {
    let mut test = TestConsole::new();
    test.sample(DAY + 3600);
    for at in [3610, 3620, 10, 20, 3630] {
        test.ask(7, 0);
        test.sample(DAY + at);
    }
    for grain in [10, 60, 3600] {
        let sum =
            format!("select sum(hits) * 1000000 + sum(span_ms) from sample where grain = {grain}");
        assert_eq!(test.value(&sum), 35_050_000, "{grain}");
    }
}

#[test]
fn counts_that_begin_anew_are_a_new_beginning() {
    let mut test = TestConsole::new();
    test.ask(1_000, 0);
    test.sample(DAY);
    test.ask_route("/a", 50, 0);
    test.ask(5, 0);
    test.sample_all(DAY + 10);
    {
        let known = &mut *test.figures.0.lock().unwrap();
        known.totals.counts = crate::support::fresh().0;
        known.routes.clear();
    }
    test.ask(3, 0);
    test.ask_route("/a", 2, 0);
    test.sample_all(DAY + 20);
    assert_eq!(
        test.value("select sum(requests) from sample where grain = 60"),
        8
    );
    assert_eq!(
        test.value("select sum(requests) from route_sample where grain = 60"),
        52
    );
}

#[test]
fn a_restart_goes_on_where_it_was() {
    let mut test = TestConsole::new();
    test.sample(DAY);
    test.ask(5, 0);
    test.sample(DAY + 10);
    let mut test = TestConsole::in_folder(test.close());
    test.ask(4, 0);
    test.sample(DAY + 20);
    test.ask(4, 0);
    test.sample(DAY + 30);
    // What the new process had before its first sample is not added.
    assert_eq!(
        test.value("select requests from sample where grain = 60"),
        9
    );
}

#[test]
fn a_period_has_at_most_a_hundred_routes_of_its_own() {
    let mut test = TestConsole::new();
    test.sample(DAY);
    for route in 0..150_u64 {
        test.ask_route(&format!("/{route}"), route, 1);
    }
    test.sample_all(DAY + 10);
    // Later the others are asked for more, in the same minute.
    for route in 0..50 {
        test.ask_route(&format!("/{route}"), 1_000, 0);
    }
    test.sample_all(DAY + 20);
    let all: u64 = (0..150).sum::<u64>() + 150 + 50_000;
    for grain in [60, 3600, 86400] {
        let rows = format!("select count(*) from route_sample where grain = {grain}");
        assert_eq!(test.value(&rows), 101, "{grain}");
        let sum = format!("select sum(requests) from route_sample where grain = {grain}");
        assert_eq!(test.value(&sum), i64::try_from(all).unwrap(), "{grain}");
        let least =
            format!("select sum(requests) from route_sample where grain = {grain} and route = 0");
        assert_eq!(
            test.value(&least),
            (0..50).sum::<i64>() + 50 + 50_000,
            "{grain}"
        );
    }
}

#[test]
fn old_figures_go_and_those_of_the_day_stay() {
    let mut test = TestConsole::new();
    test.sample(DAY);
    test.ask(1, 0);
    test.ask_route("/a", 1, 0);
    test.sample_all(DAY + 10);
    for days in [2, 89, 91, 93] {
        test.pass(86_400);
        test.ask(1, 0);
        test.ask_route("/a", 1, 0);
        test.sample_all(DAY + days * 86_400);
    }
    let days =
        |grain: u32, table: &str| format!("select count(*) from {table} where grain = {grain}");
    assert_eq!(test.value(&days(10, "sample")), 1, "a day");
    assert_eq!(test.value(&days(60, "sample")), 3);
    assert_eq!(test.value(&days(3600, "sample")), 3);
    assert_eq!(test.value(&days(86400, "route_sample")), 3);
}

#[test]
fn a_clock_that_jumps_ahead_takes_little_of_the_history() {
    let mut test = TestConsole::new();
    test.sample(DAY);
    for n in 1..=80 {
        test.ask(1, 0);
        test.sample(DAY + n * 3_600);
    }
    let kept = "select count(*) from sample where grain = 3600 and at < 1803000000";
    assert_eq!(test.value(kept), 80);
    // Ten years ahead for a minute, and back.
    for n in 1..=6 {
        test.ask(1, 0);
        test.sample(DAY + 10 * 31_536_000 + n * 10);
    }
    test.ask(1, 0);
    test.sample(DAY + 81 * 3_600);
    assert_eq!(test.value(kept), 81, "all hours");
    assert!(test.value("select count(*) from sample where grain = 10") > 20);
    // So does a start with such a clock.
    let mut test = TestConsole::in_folder(test.close());
    for n in 1..=6 {
        test.ask(1, 0);
        test.sample(DAY + 10 * 31_536_000 + n * 10);
    }
    assert_eq!(test.value(kept), 81, "all hours");
}

#[test]
fn a_damaged_file_is_set_aside() {
    for damage in [
        &b"no database at all, but a text of some length"[..],
        &[0xff; 4096],
    ] {
        let dir = fast_dir();
        fs::write(history_of(&dir), damage).unwrap();
        let mut test = TestConsole::in_folder(dir);
        test.sample(DAY);
        test.ask(1, 0);
        test.sample(DAY + 10);
        assert_eq!(
            test.value("select sum(hits) from sample where grain = 60"),
            1
        );
        let aside = test.dir.path().join("h.damaged.db");
        assert_eq!(fs::read(aside).unwrap(), damage);
    }
}

#[test]
fn damage_in_the_middle_is_found_at_the_start() {
    let mut test = TestConsole::new();
    test.sample(DAY);
    for n in 1..2_000 {
        test.ask(1, 0);
        test.sample(DAY + n * 10);
    }
    let dir = test.close();
    let file = history_of(&dir);
    value(&file, "pragma wal_checkpoint(truncate)");
    let root = value(
        &file,
        "select rootpage from sqlite_schema where name = 'sample'",
    );
    let mut bytes = fs::read(&file).unwrap();
    let page = usize::try_from(root - 1).unwrap() * 4096;
    bytes[page..page + 2_000].fill(0xa5);
    fs::write(&file, bytes).unwrap();
    let mut test = TestConsole::in_folder(dir);
    test.sample(DAY);
    assert!(test.dir.path().join("h.damaged.db").exists());
    assert!(test.page("/").contains("No figures"));
}
