//! Damaged, foreign, compressed and cut logs.

use std::io::Write as _;

use lab_testkit::Random;
use millpond_statistics::Options;

use crate::{json, line, statistics};

fn good() -> String {
    line(1, 0, "192.0.2.1", "/", "\"-\" \"curl/8\"")
}

#[test]
fn damaged_lines_are_counted_and_the_first_is_named() {
    let long = format!("{}\n", "x".repeat(3 << 20));
    let truncated = good()[..60].to_owned() + "\n";
    let quotes = good().replace('"', "'");
    for damage in [
        "\n",
        "\0\0\0\0\n",
        "#Fields: date time cs-method\n",
        "2026-11-01 00:00:00 GET / - 200\n",
        "{\"level\":\"info\",\"msg\":\"started\"}\n",
        "{\"ts\":1,\n",
        &long,
        &truncated,
        &quotes,
    ] {
        let log = [&good(), damage, &good(), damage].concat();
        let shown = &damage[..damage.len().min(60)];
        let found = statistics(&[good().as_bytes(), log.as_bytes()], &Options::default());
        let figures = found.json(10);
        assert_eq!(
            (&figures["requests"], &figures["damaged"]),
            (&3.into(), &2.into()),
            "{shown}"
        );
        let said = found.damage().unwrap();
        assert!(
            said.starts_with("2 of 5 lines") && said.ends_with("1.log:2"),
            "{said}"
        );
    }
}

#[test]
fn no_bytes_are_fatal() {
    for seed in 0..40 {
        let mut random = Random::new(seed);
        let mut log = good().repeat(200).into_bytes();
        for _ in 0..random.below(500) {
            let at = random.index(log.len());
            log[at] = random.byte();
        }
        let figures = statistics(&[&log], &Options::default()).json(10);
        // A CR ends a line too, unless an LF or nothing follows.
        let ends = log
            .windows(2)
            .filter(|pair| pair[0] == b'\r' && pair[1] != b'\n');
        let lines = log.split(|byte| *byte == b'\n').count() + ends.count();
        let lines = lines as u64 - u64::from(log.ends_with(b"\n"));
        let counted = figures["requests"].as_u64().unwrap() + figures["damaged"].as_u64().unwrap();
        assert_eq!(counted, lines, "seed {seed}");
        let noise: Vec<u8> = (0..100_000).map(|_| random.byte()).collect();
        assert_eq!(
            statistics(&[&noise], &Options::default()).json(10)["requests"],
            0
        );
    }
}

#[test]
fn the_first_and_the_last_times_are_shown() {
    let at = |time: &str| format!("{{\"time\":\"{time}\",\"status\":200}}\n");
    let mut log = at("0000-01-01T00:00:00+23:59") + &at("9999-12-31T23:59:60-23:59");
    for time in ["0", "99999999999", "253402300799", "1e300"] {
        log += &format!("{{\"ts\":{time},\"status\":200}}\n");
    }
    let found = statistics(&[log.as_bytes()], &Options::default());
    assert_eq!(found.json(10)["requests"], 5);
    let report = found.report(10);
    assert!(report.to_text().contains("0000-01-01") && report.to_html().contains("1970-01-01"));
}

#[test]
fn compressed_logs_are_the_same_and_cut_ones_are_counted_up_to_there() {
    let mut random = Random::new(1);
    let lines = (0..20_000).map(|_| line(1, random.below(1440) as u32, "192.0.2.1", "/", ""));
    let log = lines.collect::<String>();
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gzip.write_all(log.as_bytes()).unwrap();
    let plain = json(&log, &Options::default());
    for packed in [
        gzip.finish().unwrap(),
        zstd::encode_all(log.as_bytes(), 1).unwrap(),
    ] {
        let mut figures = statistics(&[&packed], &Options::default()).json(usize::MAX);
        figures["logs"] = plain["logs"].clone();
        assert_eq!(figures, plain);
        let cut = statistics(
            &[&packed[..packed.len() / 2], good().as_bytes()],
            &Options::default(),
        );
        let requests = cut.json(0)["requests"].as_u64().unwrap();
        assert!((5000..19_000).contains(&requests), "{requests}");
        let problem = &cut.problems[0];
        assert!(problem.contains("0.log breaks off: "), "{problem}");
        assert!(cut.json(10)["damaged"] == 0 && !cut.is_whole);
    }
}
