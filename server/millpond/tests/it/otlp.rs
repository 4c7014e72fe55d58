//! Figures for a collector of OpenTelemetry, which the test is.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener};
use std::sync::mpsc::{Receiver, channel};
use std::thread;

use serde_json::{Value, json};

use crate::metrics::{metrics, site};
use crate::support::{PATIENCE, Server, fail, millpond, serve, write};

/// A request that a collector got: its head, and its body.
type Received = (String, Value);

/// Takes requests as a collector, and answers them with these statuses, then with 200.
fn collector(statuses: &'static [u16]) -> (SocketAddr, Receiver<Received>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let (sender, receiver) = channel();
    thread::spawn(move || {
        for status in statuses.iter().chain(std::iter::repeat(&200)) {
            let (mut stream, _) = listener.accept().unwrap();
            let mut reader = BufReader::new(stream.try_clone().unwrap());
            let mut head = String::new();
            while !head.ends_with("\r\n\r\n") {
                assert!(reader.read_line(&mut head).unwrap() > 0, "{head}");
            }
            let length = head
                .lines()
                .find_map(|line| line.strip_prefix("content-length: "));
            let mut body = vec![0; length.unwrap().parse().unwrap()];
            reader.read_exact(&mut body).unwrap();
            let answer = format!("HTTP/1.1 {status} X\r\nContent-Length: 2\r\n\r\n{{}}");
            stream.write_all(answer.as_bytes()).unwrap();
            let body = serde_json::from_slice(&body).unwrap();
            if sender.send((head, body)).is_err() {
                return;
            }
        }
    });
    (address, receiver)
}

/// The whole number that JSON has as a text.
#[track_caller]
fn whole(value: &Value) -> u64 {
    value
        .as_str()
        .unwrap_or_else(|| panic!("{value}"))
        .parse()
        .unwrap()
}

/// Checks the metrics of a request by the rules of OTLP, and returns them by their names.
#[track_caller]
fn read_otlp(body: &Value) -> BTreeMap<String, Value> {
    let resource = &body["resourceMetrics"][0];
    let of_program = &resource["resource"]["attributes"][0];
    assert_eq!(
        (&of_program["key"], &of_program["value"]["stringValue"]),
        (&"service.name".into(), &"millpond".into())
    );
    assert_eq!(
        resource["resource"]["attributes"][2]["key"],
        "service.instance.id"
    );
    let scope = &resource["scopeMetrics"][0];
    assert_eq!(scope["scope"]["name"], "millpond");
    let mut metrics = BTreeMap::new();
    for metric in scope["metrics"].as_array().unwrap() {
        let name = metric["name"].as_str().unwrap();
        let kinds = ["sum", "gauge", "histogram"].map(|kind| (kind, &metric[kind]));
        let mut kinds = kinds.into_iter().filter(|(_, data)| !data.is_null());
        let ((kind, data), None) = (kinds.next().unwrap(), kinds.next()) else {
            panic!("one kind: {metric}");
        };
        assert_eq!(
            data["aggregationTemporality"] == 2,
            kind != "gauge",
            "{metric}"
        );
        assert_eq!(data["isMonotonic"] == true, kind == "sum", "{metric}");
        let mut seen = BTreeSet::new();
        for point in data["dataPoints"].as_array().unwrap() {
            assert!(whole(&point["timeUnixNano"]) >= whole(&point["startTimeUnixNano"]));
            assert!(
                seen.insert(point["attributes"].to_string()),
                "twice: {point}"
            );
            if kind == "histogram" {
                let (bounds, counts) = (&point["explicitBounds"], &point["bucketCounts"]);
                let bounds: Vec<f64> = serde_json::from_value(bounds.clone()).unwrap();
                let counts: Vec<u64> = counts.as_array().unwrap().iter().map(whole).collect();
                assert!(
                    bounds.is_sorted() && counts.len() == bounds.len() + 1,
                    "{point}"
                );
                assert_eq!(counts.iter().sum::<u64>(), whole(&point["count"]));
                assert!(point["sum"].as_f64().unwrap() > 0.0);
            } else {
                assert!(
                    point["asDouble"].is_number() || point["asInt"].is_string(),
                    "{point}"
                );
            }
        }
        let before = metrics.insert(name.to_owned(), metric.clone());
        assert!(before.is_none(), "{name} is there twice");
    }
    metrics
}

#[test]
fn a_collector_gets_all_figures_of_the_metrics_and_may_fail() {
    let site = site();
    let (address, received) = collector(&[503]);
    let settings = format!(
        "[admin]\nlisten = \"127.0.0.1:0\"\notlp = \"http://{address}/v1/metrics\"\notlp_interval = \"1s\"\n"
    );
    write(site.path(), "millpond.toml", &settings);
    let mut command = millpond(&["serve", "--listen", "127.0.0.1:0"]);
    command.env("OTEL_EXPORTER_OTLP_HEADERS", "api-key=secret, x-of = a=b");
    command.arg(site.path());
    let server = Server::spawn(command);
    for _ in 0..3 {
        assert_eq!(server.get("/read/1").status, 200);
    }
    let (head, _) = received.recv_timeout(PATIENCE).unwrap();
    assert!(head.starts_with("POST /v1/metrics HTTP/1.1\r\n"), "{head}");
    for field in [
        "content-type: application/json",
        "api-key: secret",
        "x-of: a=b",
    ] {
        assert!(
            head.contains(&format!("\r\n{field}\r\n")),
            "{field}: {head}"
        );
    }
    // The first was refused with 503, so it was sent again; then one each second.
    let counted = loop {
        let (_, body) = received.recv_timeout(PATIENCE).unwrap();
        let metrics = read_otlp(&body);
        let points = &metrics["millpond_requests"]["sum"]["dataPoints"];
        let points = points.as_array().unwrap().iter();
        if points.map(|point| whole(&point["asInt"])).sum::<u64>() == 3 {
            break metrics;
        }
    };
    let http = &counted["http.server.request.duration"];
    let point = &http["histogram"]["dataPoints"][0];
    assert_eq!(
        (&http["unit"], &point["count"]),
        (&"s".into(), &"3".into()),
        "{http}"
    );
    assert_eq!(point["explicitBounds"].as_array().unwrap().len(), 14);
    let attribute = |name: &str| {
        let all = point["attributes"].as_array().unwrap();
        let found = all.iter().find(|attribute| attribute["key"] == name);
        found.unwrap_or_else(|| panic!("{name}: {point}"))["value"].clone()
    };
    assert_eq!(
        attribute("http.request.method"),
        json!({"stringValue": "GET"})
    );
    assert_eq!(
        attribute("http.response.status_code"),
        json!({"intValue": "200"})
    );
    assert_eq!(
        attribute("http.route"),
        json!({"stringValue": "/read/{id}"})
    );
    // All that Prometheus gets, under the name that a collector makes that one of.
    let (_, text) = metrics(&server, "*/*");
    for name in text.lines().filter_map(|line| line.strip_prefix("# TYPE ")) {
        let name = name.split(' ').next().unwrap();
        let base = name.trim_end_matches("_total");
        let base = base.trim_end_matches("_seconds").trim_end_matches("_bytes");
        let known = ["target_info", "http_server_request_duration_seconds"];
        assert!(
            known.contains(&name) || counted.contains_key(base),
            "{name}"
        );
    }
    let (status, said) = server.stop();
    assert!(status.success() && !said.contains("admin.otlp"), "{said}");
}

#[test]
fn a_collector_that_is_away_is_said_once_and_holds_up_nothing() {
    let site = site();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let settings = format!("[admin]\notlp = \"http://{address}/\"\notlp_interval = \"1s\"\n");
    write(site.path(), "millpond.toml", &settings);
    let server = serve(site.path());
    server.wait_for("the collector (admin.otlp) does not take figures");
    assert_eq!(server.get("/read/1").status, 200);
    let (status, said) = server.stop();
    assert!(status.success(), "{said}");
    assert_eq!(
        said.matches("admin.otlp").count(),
        2,
        "once, with the setting: {said}"
    );
    write(
        site.path(),
        "millpond.toml",
        "[admin]\notlp = \"ftp://a/\"\n",
    );
    let (status, said) = fail(site.path(), &["serve", "--listen", "127.0.0.1:0"]);
    assert!(
        status == 1 && said.contains("no http:// or https:// URL"),
        "{said}"
    );
}
