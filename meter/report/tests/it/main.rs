//! A whole report: what is in it, and that nothing handed in becomes markup.

mod classes;
mod collection;
mod compare;

use millrace_report::{
    Axis, BarChart, Bars, Column, Figure, Line, LineChart, Report, Scale, Section, Table, Unit,
    run_report, run_sections, run_table, text_table,
};
use millrace_runs::{ClientFigures, Connections, Host, Run};
use millrace_stats::{Accounting, Latencies, Latency, Little, Point, Quantile, Timeline, Verdict};

const HOSTILE: &str = "<script>alert(1)</script>\"'&\u{1b}";

/// A run as a client would store it.
fn run() -> Run {
    let latency = Latency {
        count: 412_345,
        mean: 243.1,
        p50: Some(221.0),
        p90: Some(310.0),
        p95: Some(402.0),
        p99: Some(1_240.0),
        p999: Some(4_410.0),
        max: 21_800.0,
    };
    let wave = |n: f64| 1.0 + 0.08 * (n / 3.0).sin() + 0.03 * (n * 1.7).cos();
    let point = |n: u32| {
        let n = f64::from(n);
        let load = if (20.0..23.0).contains(&n) {
            0.4
        } else {
            wave(n)
        };
        Point {
            at_s: n * 0.2,
            requests: (8_200.0 * load) as u64,
            errors: if n == 21.0 { 92 } else { 0 },
            p50_us: Some(221.0 / load),
            p99_us: Some(1_240.0 / load / load),
            max_us: Some(4_000.0 * wave(n * 2.3) / load),
            ..Point::default()
        }
    };
    let quantile = |n: i32| {
        let q = 1.0 - 2_f64.powf(-f64::from(n) / 10.0);
        Quantile {
            q,
            us: 180.0 + 40.0 * f64::from(n).sqrt() + (f64::from(n) / 15.0).exp(),
        }
    };
    Run {
        verdict: Verdict::Suspect,
        reasons: vec![
            "a client thread used 93 % of a core: the client may be what was measured".to_owned(),
        ],
        url: "http://127.0.0.1:8080/read?id=17".to_owned(),
        duration_s: 10.0,
        warmup_s: 1.0,
        requests: 412_437,
        accounting: Accounting {
            issued: 412_437,
            answered: 412_437,
            good: 412_345,
            ..Accounting::default()
        },
        achieved_rate: 41_243.7,
        good_rate: 41_234.5,
        bytes: 3_412_000_000,
        errors: millrace_client::Errors {
            by_kind: [("status_5xx".to_owned(), 92), ("timeout".to_owned(), 0)].into(),
        },
        error_examples: [("status_5xx".to_owned(), HOSTILE.to_owned())].into(),
        latency_us: Latencies {
            service: Some(latency),
            connect: Some(Latency {
                count: 10,
                mean: 61.0,
                max: 88.0,
                ..Latency::default()
            }),
            ..Latencies::default()
        },
        connections: Connections {
            asked: 10,
            established: 10,
            opened: 10,
            keep_alive: true,
            depth: 1,
            conforming: None,
        },
        client: ClientFigures {
            cpu_us_per_request: Some(11.4),
            busiest_thread: 0.93,
            threads: 1,
            ..ClientFigures::default()
        },
        little: Some(Little {
            expected: 10.0,
            found: 9.98,
            tolerance: 0.5,
            windows: 48,
        }),
        host: Host {
            cpu: "A processor".to_owned(),
            cores: 2,
            kernel: "Linux 6.1".to_owned(),
            machine: "x86_64".to_owned(),
        },
        command: "millrace load 'http://127.0.0.1:8080/read?id=17' --connections 10".to_owned(),
        series: Timeline {
            interval_s: 0.2,
            points: (0..50).map(point).collect(),
            ..Timeline::default()
        },
        percentiles: (0..130).map(quantile).collect(),
        ..Run::default()
    }
}

/// Everything that a report can hold.
fn everything() -> Report {
    let mut report = Report::new(
        "The same article, a thousand times",
        "What a page costs when it is made anew, and what it costs from memory",
    );
    report.push(Section::Figures(vec![
        Figure::new("from memory", "87.2\u{a0}µs").with_note("median of 1\u{202f}000"),
        Figure::new("made anew", "3.40\u{a0}ms"),
        Figure::new("faster", "39.0\u{a0}×"),
        Figure::new("database time", "2.91\u{a0}ms").with_note("86\u{a0}% of the total"),
    ]));
    report.push(Section::Text(
        "Five articles were read, each a thousand times, over one connection. The page has its author, its comments and \
         the articles that are related to it; the database is asked four times."
            .to_owned(),
    ));
    let articles = [
        "serde: a framework for serializing and deserializing data structures",
        "tokio",
        "rustix",
        "minijinja",
        "a very long title that goes on and on, longer than a phone is wide, longer than any page",
    ];
    report.push(Section::Bars(BarChart {
        title: "Time for one request".to_owned(),
        note: "Medians. The axis is logarithmic.".to_owned(),
        unit: Unit::Micros,
        scale: Scale::Log,
        groups: articles.map(str::to_owned).to_vec(),
        series: vec![
            Bars {
                name: "database".to_owned(),
                values: vec![Some(2910.0), Some(1200.0), Some(940.0), Some(410.0), None],
            },
            Bars {
                name: "made anew".to_owned(),
                values: vec![
                    Some(3400.0),
                    Some(1500.0),
                    Some(1204.0),
                    Some(700.0),
                    Some(900.0),
                ],
            },
            Bars {
                name: "from memory".to_owned(),
                values: vec![Some(87.2), Some(80.0), Some(79.1), Some(77.0), Some(80.0)],
            },
        ],
    }));
    report.push(Section::Table(Table {
        caption: "Requests for one article".to_owned(),
        columns: Column::all("page|#connections|#made anew|#from memory|#ratio"),
        rows: vec![
            vec![
                "serde".into(),
                "1".into(),
                "294\u{a0}/s".into(),
                "11.4\u{a0}k/s".into(),
                "38.8\u{a0}×".into(),
            ],
            vec![
                "serde".into(),
                "10".into(),
                "512\u{a0}/s".into(),
                "31.9\u{a0}k/s".into(),
                "62.3\u{a0}×".into(),
            ],
            vec![
                "small page".into(),
                "10".into(),
                "560\u{a0}/s".into(),
                "32.0\u{a0}k/s".into(),
                "57.1\u{a0}×".into(),
            ],
        ],
        note: "One server core, one client core.".to_owned(),
    }));
    report.push(Section::Bars(BarChart {
        title: "Requests per second".to_owned(),
        note: String::new(),
        unit: Unit::Rate,
        scale: Scale::Linear,
        groups: vec!["1 connection".to_owned(), "10 connections".to_owned()],
        series: vec![
            Bars {
                name: "made anew".to_owned(),
                values: vec![Some(294.0), Some(512.0)],
            },
            Bars {
                name: "from memory".to_owned(),
                values: vec![Some(11_400.0), Some(31_900.0)],
            },
        ],
    }));
    report.push(Section::Heading("The run in detail".to_owned()));
    report.sections.extend(run_sections(&run()));
    report
}

#[test]
fn a_report_has_everything_and_needs_nothing() {
    let html = everything().to_html();
    // To be looked at in a browser.
    if let Some(path) = std::env::var_os("MILLPOND_REPORT_SAMPLE") {
        std::fs::write(path, &html).unwrap();
    }
    for needed in [
        "<title>The same article",
        "role=\"img\"",
        "SUSPECT",
        "status 5xx",
        "Service time by percentile",
        "<caption>Latency</caption>",
        "prefers-color-scheme",
    ] {
        assert!(html.contains(needed), "{needed}");
    }
    for unwanted in [
        "<script",
        "http://www",
        "https://",
        "url(",
        "@import",
        "NaN",
        "inf\"",
        "\u{1b}",
    ] {
        assert!(!html.contains(unwanted), "{unwanted}");
    }
    // Each graph, for both widths, has its table.
    assert_eq!(html.matches("<svg class=\"wide\"").count(), 5);
    assert_eq!(html.matches("<svg class=\"narrow\"").count(), 5);
    assert_eq!(html.matches("<details>").count(), 5);
}

#[test]
fn a_spinning_client_is_named() {
    let mut run = run();
    let said = |run: &Run| text_table(&run_table(run)) + &run_report(run).to_html();
    assert!(!said(&run).contains("spinning"));
    (run.client.spin, run.client.spun_us) = (true, Some(4_200_000));
    let said = said(&run);
    assert!(said.contains("spinning left out"), "{said}");
    assert!(said.contains("its threads never slept; 4.2"), "{said}");
}

#[test]
fn tags_are_balanced() {
    let html = run_report(&run()).to_html();
    for tag in [
        "main", "figure", "table", "thead", "tbody", "tr", "th", "td", "svg", "text", "div", "dl",
        "ul", "li", "details", "pre", "p",
    ] {
        let opened =
            html.matches(&format!("<{tag}>")).count() + html.matches(&format!("<{tag} ")).count();
        assert_eq!(opened, html.matches(&format!("</{tag}>")).count(), "{tag}");
    }
}

#[test]
fn no_text_becomes_markup() {
    let text = || HOSTILE.to_owned();
    let mut report = Report::new(text(), text());
    report.push(Section::Heading(text()));
    report.push(Section::Text(text()));
    report.push(Section::Code {
        caption: text(),
        text: text(),
    });
    report.push(Section::Figures(vec![
        Figure::new(text(), text()).with_note(text()),
    ]));
    report.push(Section::Table(Table {
        caption: text(),
        columns: vec![Column::text(text())],
        rows: vec![vec![text()]],
        note: text(),
    }));
    report.push(Section::Bars(BarChart {
        title: text(),
        note: text(),
        unit: Unit::Plain,
        scale: Scale::Linear,
        groups: vec![text()],
        series: vec![
            Bars {
                name: text(),
                values: vec![Some(1.0)],
            },
            Bars {
                name: text(),
                values: vec![],
            },
        ],
    }));
    report.push(Section::Lines(LineChart {
        title: text(),
        note: text(),
        x: Axis::linear(text(), Unit::Plain),
        y: Axis::log(text(), Unit::Plain),
        lines: vec![
            Line {
                name: text(),
                points: vec![(1.0, Some(1.0))],
            },
            Line {
                name: text(),
                points: vec![],
            },
        ],
    }));
    let html = report.to_html();
    assert!(!html.contains("<script") && !html.contains('\u{1b}'));
    assert!(html.matches("&lt;script&gt;").count() >= 20);
}

#[test]
fn graphs_without_values_are_drawn_empty() {
    for scale in [Scale::Linear, Scale::Log, Scale::Percentile] {
        let mut report = Report::new("empty", "");
        let values = vec![
            None,
            Some(f64::NAN),
            Some(f64::INFINITY),
            Some(-1.0),
            Some(0.0),
        ];
        report.push(Section::Bars(BarChart {
            title: "bars".into(),
            note: String::new(),
            unit: Unit::Micros,
            scale,
            groups: vec!["a".into(); 6],
            series: vec![Bars {
                name: "x".into(),
                values: values.clone(),
            }],
        }));
        let axis = || Axis {
            title: "t".into(),
            unit: Unit::Micros,
            scale,
        };
        for points in [
            vec![],
            values
                .into_iter()
                .map(|value| (value.unwrap_or(0.5), value))
                .collect(),
        ] {
            report.push(Section::Lines(LineChart {
                title: "lines".into(),
                note: String::new(),
                x: axis(),
                y: axis(),
                lines: vec![Line {
                    name: "x".into(),
                    points,
                }],
            }));
        }
        let html = report.to_html();
        assert!(!html.contains("NaN") && !html.contains("inf"), "{scale:?}");
    }
}

#[test]
fn a_run_fits_a_terminal() {
    let text = text_table(&run_table(&run()));
    expect_test::expect![[r#"
        Closed loop, 10 connections, 10.0 s
        verdict                 SUSPECT
        requests                412 437
        rate                    41.2 k/s
        bytes                   3.41 GB
        errors                  92
          status 5xx            92
        mean                    243 µs
        median                  221 µs
        90 %                    310 µs
        99 %                    1.24 ms
        99.9 %                  4.41 ms
        longest                 21.8 ms
        client CPU per request  11.4 µs
        status 5xx: <script>alert(1)</script>"'&�
        SUSPECT: a client thread used 93 % of a core: the client may be what was measured
    "#]]
    .assert_eq(&text);
}
