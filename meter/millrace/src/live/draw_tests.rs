//! What the screen shows, at usual and at absurd sizes.

use std::time::Duration;

use millrace_client::{LiveSnapshot, Phase};
use ratatui::Terminal;
use ratatui::backend::TestBackend;

use super::*;

fn view(with_steps: bool) -> View {
    let mut view = View::new("millrace load http://127.0.0.1:8080/\u{1b}[31m".to_owned());
    let latency = Latency {
        count: 10_000,
        mean: 900.0,
        p50: Some(812.0),
        p90: Some(1400.0),
        p99: Some(5300.0),
        p999: None,
        p95: Some(2100.0),
        max: 21_000.0,
    };
    if with_steps {
        let columns = ["rate", "achieved", "99 %", "verdict"].map(str::to_owned);
        view.steps = Steps::new(columns.to_vec(), ["demanded", "achieved"]);
        for n in 1..=12 {
            let row = vec![
                format!("{}00", n),
                format!("{}00 /s", n),
                "5.30 ms".to_owned(),
                "VALID".to_owned(),
            ];
            let at = f64::from(n) * 100.0;
            view.steps.push(row, Some((at, at)));
        }
    }
    for n in 0..300 {
        let run = Run {
            phase: Phase::Measuring,
            elapsed: Duration::from_secs(4),
            finished: 10_000,
            errors: 12,
            rate: 1000.0 + f64::from(n % 7) * 30.0,
            fraction: 0.42,
            remaining: Some(Duration::from_secs(6)),
            offered_rate: Some(1200.0),
            connections: 64,
            so_far: LiveSnapshot {
                response: Some(latency),
                service: Some(latency),
                connected: 63,
                errors: [Some(("timeout", 9)), Some(("status_5xx", 3)), None, None],
                busiest_thread: 0.34,
            },
        };
        let place = ViewPosition {
            part: if with_steps {
                "step 3 of 12, at 500 /s".to_owned()
            } else {
                String::new()
            },
            fraction: 0.42,
            remaining: run.remaining,
        };
        view.report(place, &run);
    }
    view
}

fn drawn(view: &View, width: u16, height: u16) -> String {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
    terminal.draw(|frame| draw(frame, view)).unwrap();
    let buffer = terminal.backend().buffer();
    let row = |y| {
        (0..width)
            .map(|x| buffer[(x, y)].symbol())
            .collect::<String>()
    };
    (0..height)
        .map(|y| row(y).trim_end().to_owned() + "\n")
        .collect()
}

#[test]
fn a_usual_terminal_shows_everything() {
    let text = drawn(&view(false), 80, 24);
    for part in [
        "millrace load http://127.0.0.1:8080/",
        "measuring, 6 s left, 42 %",
        "63 of 64 connections",
        "client 34.0",
        "12 errors  9 timeout, 3 status 5xx",
        "response",
        "5.30",
        "of 1.20\u{a0}k/s asked for",
        "█",
    ] {
        assert!(text.contains(part), "{part} is not in\n{text}");
    }
    assert!(!text.contains('\u{1b}'), "a terminal would obey it");
}

#[test]
fn steps_have_a_table_and_a_graph() {
    let text = drawn(&view(true), 100, 30);
    for part in ["step 3 of 12", "verdict", "1200 /s", "VALID", "demanded"] {
        assert!(text.contains(part), "{part} is not in\n{text}");
    }
    assert!(
        drawn(&view(true), 80, 24).contains("1200 /s"),
        "the last step"
    );
}

#[test]
fn a_tiny_terminal_shows_what_matters_most() {
    let text = drawn(&view(false), 20, 5);
    assert!(text.starts_with("millrace load http:/"), "{text}");
    assert!(text.contains("measuring"), "{text}");
}

#[test]
fn no_size_is_a_panic() {
    for with_steps in [false, true] {
        let view = view(with_steps);
        for width in [0, 1, 2, 3, 7, 20, 69, 70, 71, 300] {
            for height in [0, 1, 2, 3, 4, 5, 6, 8, 10, 13, 17, 24, 90] {
                drawn(&view, width, height);
            }
        }
    }
    drawn(&View::new(String::new()), 80, 24);
}
