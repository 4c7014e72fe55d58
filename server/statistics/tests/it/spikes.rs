//! Where the requests of a spike came from.

use std::io::Write as _;

use crate::{filtered, line, statistics};

/// A quiet day, with a flood from one network at noon and visitors of one page in the evening.
fn log() -> String {
    let mut log = String::new();
    for minute in 0..1440 {
        for n in 0..5 {
            log += &line(
                1,
                minute,
                &format!("198.51.100.{n}"),
                "/",
                "\"-\" \"curl/8\"",
            );
        }
        if minute == 720 || minute == 721 {
            for n in 0..300 {
                let client = format!("203.0.113.{}", n % 250);
                log += &line(1, minute, &client, "/login?next=1", "\"-\" \"Flood/1\"");
            }
        }
        if minute == 1200 {
            for n in 0..100 {
                let client = format!("2001:db8:7:{n:x}::1");
                log += &line(
                    1,
                    minute,
                    &client,
                    "/news",
                    "\"https://news.example.org/item\" \"x\"",
                );
            }
        }
    }
    log
}

#[test]
fn a_spike_names_its_addresses_referrers_and_networks() {
    let log = log();
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gzip.write_all(log.as_bytes()).unwrap();
    for bytes in [log.as_bytes(), &gzip.finish().unwrap()] {
        let figures = statistics(&[b"", bytes], &filtered(&[])).json(2);
        let spikes = figures["spikes"].as_array().unwrap();
        assert_eq!(spikes.len(), 2, "{figures}");
        let (flood, news) = (&spikes[0], &spikes[1]);
        assert_eq!(
            (&flood["first"], &flood["last"]),
            (&"2026-11-01 12:00".into(), &"2026-11-01 12:01".into())
        );
        assert_eq!(
            (&flood["requests"], &flood["peak"], &flood["usual"]),
            (&610.into(), &305.into(), &5.into())
        );
        let first = |spike: &serde_json::Value, kind: &str| {
            let first = &spike["from"][kind][0];
            (
                first["name"].as_str().unwrap_or("none").to_owned(),
                first["requests"].as_u64(),
            )
        };
        assert_eq!(first(flood, "address"), ("/login".into(), Some(600)));
        assert_eq!(
            first(flood, "network"),
            ("203.0.113.0/24".into(), Some(600))
        );
        assert_eq!(first(flood, "referrer"), ("none".into(), None));
        assert_eq!(first(flood, "agent"), ("Flood/1".into(), Some(600)));
        assert_eq!(flood["agents"]["programs"], 610);
        assert_eq!(
            first(news, "referrer"),
            ("news.example.org".into(), Some(100))
        );
        assert_eq!(
            first(news, "network"),
            ("2001:db8:7::/48".into(), Some(100))
        );
    }
}

#[test]
fn a_pipe_is_read_once() {
    let dir = lab_testkit::fast_dir();
    let path = dir.path().join("pipe");
    let made = std::process::Command::new("mkfifo").arg(&path).status();
    assert!(made.unwrap().success());
    let writer = std::thread::spawn({
        let path = path.clone();
        move || std::fs::write(path, log())
    });
    let Ok(found) = millpond_statistics::count(&[path], &filtered(&[])) else {
        panic!("it is there")
    };
    writer.join().unwrap().unwrap();
    assert_eq!(found.json(1)["spikes"].as_array().unwrap().len(), 2);
    let said = found.problems.concat();
    assert!(
        said.ends_with("only a file that stays the same is read twice"),
        "{said}"
    );
    assert!(found.is_whole);
}

#[test]
fn spikes_are_those_of_the_requests_that_are_counted() {
    let figures = statistics(&[log().as_bytes()], &filtered(&["path=!/login"])).json(2);
    let spikes = figures["spikes"].as_array().unwrap();
    assert_eq!((spikes.len(), &spikes[0]["requests"]), (1, &105.into()));
}
