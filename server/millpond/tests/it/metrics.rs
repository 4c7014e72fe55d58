//! `/metrics`: in both formats by the rules of Prometheus and OpenMetrics, and with the figures
//! that the requests must have left.

use std::collections::{BTreeMap, BTreeSet};

use crate::support::{Connection, Server, admin, serve, write};

/// Samples by name and labels, as they are written.
pub(crate) type Samples = BTreeMap<String, f64>;

pub(crate) fn site() -> tempfile::TempDir {
    let dir = lab_testkit::fast_dir();
    for (name, contents) in [
        (
            "millpond.toml",
            "[admin]\nlisten = \"127.0.0.1:0\"\n[cache]\nrefresh_ahead = 0\n\
             [[redirect]]\nfrom = \"/old\"\nto = \"/read/1\"\n",
        ),
        (
            "migrations/0001_start.sql",
            "create table article (id integer primary key, title text not null) strict;\n\
             insert into article values (1, 'first'), (2, 'second');\n",
        ),
        (
            "pages/read/[id].sql",
            "-- param: id integer\n-- name: article :one\nselect title from article where id = :id;\n",
        ),
        ("pages/read/[id].html", "{{ article.title }}"),
        ("static/a.txt", "a"),
    ] {
        write(dir.path(), name, contents);
    }
    dir
}

/// Asks for the metrics in a format.
pub(crate) fn metrics(server: &Server, accept: &str) -> (String, String) {
    let admin = admin(server);
    let address = admin.trim_start_matches("http://").trim_end_matches('/');
    let mut connection = Connection::open(address.parse().unwrap());
    let answer = connection.get_with("/metrics", &[&format!("Accept: {accept}")]);
    assert_eq!(answer.status, 200);
    let media_type = answer.field("content-type").unwrap().to_owned();
    (media_type, answer.text())
}

/// Family of a sample in a format: its name without what the kind adds.
fn family_of<'n>(name: &'n str, kinds: &BTreeMap<String, String>, is_open: bool) -> &'n str {
    let ends = ["_bucket", "_sum", "_count", "_total", "_info"];
    let of_end = ends.iter().filter_map(|end| name.strip_suffix(end));
    let mut found = of_end.filter(|family| kinds.contains_key(*family));
    match found.next() {
        Some(family) if is_open || kinds[family] == "histogram" => family,
        _ => name,
    }
}

/// The labels of a sample, in pairs.
pub(crate) fn labels_of(text: &str) -> Vec<(String, String)> {
    let mut labels = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        let (name, behind) = rest.split_once("=\"").unwrap();
        let mut value = String::new();
        let mut chars = behind.char_indices();
        let end = loop {
            match chars.next().unwrap() {
                (at, '"') => break at,
                (_, '\\') => value.push(chars.next().unwrap().1),
                (_, char) => value.push(char),
            }
        };
        assert!(
            name.chars().all(|c| c == '_' || c.is_ascii_lowercase()),
            "{text}"
        );
        labels.push((name.to_owned(), value));
        rest = behind[end + 1..].trim_start_matches(',');
    }
    labels
}

/// Reads a text and checks it by the rules of its format.
#[track_caller]
pub(crate) fn read(text: &str, is_open: bool) -> Samples {
    let (mut kinds, mut helps) = (BTreeMap::new(), BTreeSet::new());
    let (mut samples, mut ended, mut family) = (Samples::new(), BTreeSet::new(), String::new());
    let mut lines = text.lines().collect::<Vec<_>>();
    if is_open {
        assert_eq!(lines.pop(), Some("# EOF"));
    }
    assert!(text.ends_with('\n') && !lines.contains(&"# EOF"));
    for line in lines {
        if let Some(rest) = line.strip_prefix("# HELP ") {
            let (name, help) = rest.split_once(' ').unwrap();
            assert!(
                !help.trim().is_empty() && helps.insert(name.to_owned()),
                "{line}"
            );
            continue;
        }
        if let Some(rest) = line.strip_prefix("# TYPE ") {
            let (name, kind) = rest.split_once(' ').unwrap();
            assert!(helps.contains(name), "HELP before TYPE: {line}");
            assert!(
                kinds.insert(name.to_owned(), kind.to_owned()).is_none(),
                "{line}"
            );
            let is_counter = kind == "counter";
            assert_eq!(name.ends_with("_total"), is_counter && !is_open, "{line}");
            continue;
        }
        if let Some(rest) = line.strip_prefix("# UNIT ") {
            let (name, unit) = rest.split_once(' ').unwrap();
            assert!(is_open && name.ends_with(&format!("_{unit}")), "{line}");
            continue;
        }
        let (series, value) = line.rsplit_once(' ').unwrap();
        let (name, labels) = match series.split_once('{') {
            Some((name, labels)) => (name, labels.strip_suffix('}').unwrap()),
            None => (series, ""),
        };
        let found = family_of(name, &kinds, is_open);
        assert!(kinds.contains_key(found), "{line}");
        if found != family {
            assert!(
                ended.insert(found.to_owned()),
                "families do not mix: {line}"
            );
            found.clone_into(&mut family);
        }
        let names: Vec<String> = labels_of(labels)
            .into_iter()
            .map(|(name, _)| name)
            .collect();
        let unique: BTreeSet<&String> = names.iter().collect();
        assert_eq!(unique.len(), names.len(), "{line}");
        assert!(!names.iter().any(|name| name == "job" || name == "instance"));
        if is_open && kinds[found] == "counter" {
            assert!(name.ends_with("_total"), "{line}");
        }
        let value = if value == "+Inf" {
            f64::INFINITY
        } else {
            value.parse().unwrap()
        };
        assert!(
            samples.insert(series.to_owned(), value).is_none(),
            "twice: {line}"
        );
    }
    for (name, kind) in kinds.iter().filter(|(_, kind)| *kind == "histogram") {
        check_histogram(name, kind, text, &samples);
    }
    samples
}

/// Checks that the buckets of each series grow up to `+Inf`, which is the count.
fn check_histogram(name: &str, kind: &str, text: &str, samples: &Samples) {
    let (mut before, mut edge) = (0.0, f64::NEG_INFINITY);
    for line in text
        .lines()
        .filter(|line| line.starts_with(&format!("{name}_bucket{{")))
    {
        let (series, value) = line.rsplit_once(' ').unwrap();
        let value: f64 = value.parse().unwrap();
        let (others, le) = series.rsplit_once("le=\"").unwrap();
        let le = le.trim_end_matches("\"}");
        let le: f64 = if le == "+Inf" {
            f64::INFINITY
        } else {
            le.parse().unwrap()
        };
        assert!(le > edge && value >= before, "{kind}: {line}");
        (before, edge) = (value, le);
        if le.is_infinite() {
            let others = others
                .trim_end_matches(',')
                .replacen("_bucket{", "_count{", 1);
            let others = if others.ends_with('{') {
                others.trim_end_matches('{').to_owned()
            } else {
                others + "}"
            };
            assert_eq!(samples[&others], value, "{others}");
            assert!(samples.contains_key(&others.replacen("_count", "_sum", 1)));
            (before, edge) = (0.0, f64::NEG_INFINITY);
        }
    }
}

const OPEN: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";
const PLAIN: &str = "text/plain; version=0.0.4; charset=utf-8";

#[test]
fn metrics_follow_the_rules_and_count_the_requests() {
    let site = site();
    let server = serve(site.path());
    let mut connection = Connection::open(server.address());
    let crawler = ["User-Agent: x/1 (SomeBot)"];
    for (target, status) in [
        ("/read/1", 200),
        ("/read/1", 200),
        ("/read/1", 200),
        ("/read/1", 200),
        ("/read/3", 404),
        ("/a.txt", 200),
        ("/old", 308),
        ("/nothing/here?x=\"", 404),
    ] {
        assert_eq!(connection.get(target).status, status, "{target}");
    }
    assert_eq!(connection.get_with("/read/1", &crawler).status, 200);
    // A connection is read again after its last answer was counted.
    connection.send("OPTIONS /a.txt HTTP/1.1\r\nHost: a\r\n\r\n");
    assert_eq!(connection.receive().status, 204);
    let mut texts = Vec::new();
    for (accept, expected) in [
        ("*/*", PLAIN),
        ("text/plain", PLAIN),
        ("application/openmetrics-text", PLAIN),
        ("application/openmetrics-text; version=1.0.0", OPEN),
        (
            "application/openmetrics-text;version=1.0.0;q=0.5,application/openmetrics-text;version=0.0.1;q=0.4,\
             text/plain;version=0.0.4;q=0.3,*/*;q=0.2",
            OPEN,
        ),
        (
            "application/openmetrics-text;version=1.0.0;q=0.1, text/plain",
            PLAIN,
        ),
    ] {
        let (media_type, text) = metrics(&server, accept);
        assert_eq!(media_type, expected, "{accept}");
        texts.push((read(&text, expected == OPEN), text));
    }
    let (samples, text) = &texts[0];
    let route = "route=\"/read/{id}\"";
    for (result, crawler, requests) in [("miss", false, 2), ("hit", false, 3), ("hit", true, 1)] {
        let series =
            format!("millpond_requests_total{{{route},result=\"{result}\",crawler=\"{crawler}\"}}");
        assert_eq!(samples[&series], f64::from(requests), "{series} in\n{text}");
    }
    for (result, requests) in [("static", 1.0), ("redirect", 1.0), ("error", 1.0)] {
        let series = format!("millpond_requests_total{{result=\"{result}\",crawler=\"false\"}}");
        assert_eq!(samples[&series], requests, "{series} in\n{text}");
    }
    let http = "http_request_method=\"GET\",url_scheme=\"http\"";
    for (rest, requests) in [
        (
            "http_response_status_code=\"200\",http_route=\"/read/{id}\",",
            5.0,
        ),
        (
            "http_response_status_code=\"404\",http_route=\"/read/{id}\",",
            1.0,
        ),
        ("http_response_status_code=\"404\",", 1.0),
    ] {
        let series = format!(
            "http_server_request_duration_seconds_count{{{http},{rest}network_protocol_version=\"1.1\"}}"
        );
        assert_eq!(samples[&series], requests, "{series} in\n{text}");
    }
    assert!(!text.contains("/nothing"), "no path is a label");
    for name in [
        "process_resident_memory_bytes",
        "process_open_fds",
        "millpond_store_entries",
    ] {
        assert!(samples[name] > 0.0, "{name}");
    }
    assert!(samples.contains_key("process_cpu_seconds_total"));
    assert!(samples.contains_key("millpond_feed_age_seconds"));
}

#[test]
fn a_route_keeps_its_series_when_the_folder_is_read_again() {
    let site = site();
    let server = serve(site.path());
    let mut connection = Connection::open(server.address());
    assert_eq!(connection.get("/read/1").text(), "first");
    write(site.path(), "pages/a.html", "new");
    write(site.path(), "pages/read/[id].html", "{{ article.title }}!");
    let patience = base_clock::Deadline::after(crate::support::PATIENCE);
    while connection.get("/a").status != 200 || connection.get("/read/1").text() != "first!" {
        assert!(!patience.is_past());
        std::thread::yield_now();
    }
    let (_, text) = metrics(&server, "*/*");
    read(&text, false);
    let routes: BTreeSet<&str> = text
        .lines()
        .filter_map(|line| {
            line.strip_prefix("millpond_requests_total{route=\"")?
                .split('"')
                .next()
        })
        .collect();
    assert_eq!(routes, BTreeSet::from(["/a", "/read/{id}"]));
}
