//! What stands beside the main times of an open loop, for each class and over time.

use millrace_client::Errors;
use millrace_report::{Section, run_csv, run_sections};
use millrace_runs::{ClassFigures, Loop, Run};
use millrace_stats::{Latencies, Latency, Point, Quantile, Timeline};

fn latency(p99: f64) -> Option<Latency> {
    Some(Latency {
        count: 1000,
        mean: p99 / 2.0,
        p50: Some(p99 / 2.0),
        p99: Some(p99),
        max: p99,
        ..Latency::default()
    })
}

fn errors(timeout: u64, reset: u64) -> Errors {
    let by_kind = [("timeout".to_owned(), timeout), ("reset".to_owned(), reset)];
    Errors {
        by_kind: by_kind.into(),
    }
}

fn class(name: &str, p99: f64, errors: Errors) -> ClassFigures {
    ClassFigures {
        name: name.to_owned(),
        issued: 1000,
        good: 1000 - errors.total(),
        errors,
        response_us: latency(p99),
        service_us: latency(p99 - 77.0),
        send_lag_us: latency(77.0),
        ..ClassFigures::default()
    }
}

/// An open loop whose requests waited to be sent.
fn open() -> Run {
    let point = |n: u32| Point {
        at_s: f64::from(n),
        requests: 100,
        p50_us: Some(400.0),
        p99_us: Some(900.0),
        max_us: Some(1_000.0),
        service_p50_us: Some(200.0),
        service_p99_us: Some(823.0),
        send_lag_p99_us: Some(77.0),
        ..Point::default()
    };
    Run {
        kind: Loop::Open,
        duration_s: 10.0,
        errors: errors(9, 2),
        classes: vec![
            class("reader", 900.0, errors(3, 0)),
            class("writer", 5_000.0, errors(6, 2)),
        ],
        latency_us: Latencies {
            response: latency(900.0),
            service: latency(823.0),
            ..Latencies::default()
        },
        series: Timeline {
            interval_s: 1.0,
            points: (0..10).map(point).collect(),
            ..Timeline::default()
        },
        percentiles: vec![Quantile { q: 0.5, us: 400.0 }],
        ..Run::default()
    }
}

fn table(run: &Run, caption: &str) -> Vec<Vec<String>> {
    let tables = run_sections(run)
        .into_iter()
        .filter_map(|section| match section {
            Section::Table(table) if table.caption == caption => Some(table),
            _ => None,
        });
    let mut tables: Vec<_> = tables.collect();
    let table = tables.remove(0);
    let titles = table.columns.iter().map(|column| column.title.clone());
    std::iter::once(titles.collect())
        .chain(table.rows)
        .collect()
}

#[test]
fn classes_have_what_a_response_time_consists_of() {
    let rows = table(&open(), "Classes");
    assert_eq!(rows[0][9..], ["longest", "99 % service", "99 % send lag"]);
    assert_eq!(rows[1][10..], ["823\u{a0}µs", "77.0\u{a0}µs"]);
    let closed = Run {
        classes: vec![ClassFigures {
            response_us: None,
            send_lag_us: None,
            ..class("reader", 900.0, errors(0, 0))
        }],
        ..open()
    };
    let rows = table(&closed, "Classes");
    assert_eq!((rows[0].len(), rows[1].len()), (10, 10));
}

#[test]
fn the_median_of_each_class_is_drawn_over_time() {
    let charts = |run: &Run| -> Vec<(String, Vec<String>)> {
        let lines = run_sections(run)
            .into_iter()
            .filter_map(|section| match section {
                Section::Lines(chart) if chart.title.contains("each class") => Some(chart),
                _ => None,
            });
        let names = |chart: millrace_report::LineChart| {
            let names = chart.lines.into_iter().map(|line| line.name);
            (chart.note, names.collect())
        };
        lines.map(names).collect()
    };
    let one = |run: &Run| charts(run).remove(0);
    // Results of an older version.
    assert_eq!(charts(&open()), []);
    let mut run = open();
    run.classes[0].series = Timeline {
        interval_s: 2.0,
        points: run.series.points.iter().take(5).cloned().collect(),
        ..Timeline::default()
    };
    // Its one median is no line.
    run.classes[1].series = Timeline {
        interval_s: 2.0,
        points: run.series.points[..1].to_vec(),
        ..Timeline::default()
    };
    let (note, names) = one(&run);
    assert_eq!(names, ["reader"]);
    assert_eq!(
        note,
        "In the middle of intervals of up to 2.00\u{a0}s. Drawn: 1 of 2 classes, those with most good answers that have medians."
    );
    for n in 0..10 {
        let mut class = run.classes[0].clone();
        (class.name, class.good) = (format!("{n}"), 2_000 + n);
        run.classes.push(class);
    }
    assert_eq!(one(&run).1, ["9", "8", "7", "6", "5", "4", "3", "2"]);
}

#[test]
fn errors_name_the_classes_that_have_most_of_them() {
    let rows = table(&open(), "Errors");
    assert_eq!(rows[0][3], "of the classes");
    let timeouts = rows.iter().find(|row| row[1] == "9").unwrap();
    assert_eq!(timeouts[3], "writer 6, reader 3");
    // An older version stored no errors of classes.
    let mut old = open();
    old.classes
        .iter_mut()
        .for_each(|class| class.errors = Errors::default());
    assert!(table(&old, "Errors").iter().all(|row| row.len() == 3));
}

#[test]
fn service_times_stand_beside_response_times_over_time() {
    let names = |run: &Run| {
        let mut charts = run_sections(run)
            .into_iter()
            .filter_map(|section| match section {
                Section::Lines(chart) if chart.title.ends_with("over time") => Some(chart),
                _ => None,
            });
        let chart = charts.next_back().unwrap();
        let names = chart.lines.iter().map(|line| line.name.clone());
        (names.collect::<Vec<_>>(), chart.note)
    };
    let (lines, note) = names(&open());
    assert_eq!(lines.len(), 5, "{lines:?}");
    assert!(lines[3].contains("service") && note.contains("actual send"));
    let mut closed = open();
    for point in &mut closed.series.points {
        (point.service_p50_us, point.service_p99_us) = (None, None);
    }
    let (lines, note) = names(&closed);
    assert!(lines.len() == 3 && note.is_empty(), "{lines:?}");
    let rows = run_csv(&open());
    assert!(rows.ends_with("823.000,77.000\n"), "{rows}");
}
