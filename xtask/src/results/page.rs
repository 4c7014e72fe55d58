//! A stored experiment as a page in Markdown.

use std::fmt::Write as _;

use serde_json::Value;

/// Text for a missing figure.
pub(super) const NONE: &str = "–";

/// The page of an experiment that ran on `date`.
pub(super) fn page(date: &str, json: &str) -> Result<String, String> {
    let lab: Value = serde_json::from_str(json).map_err(|error| format!("is no JSON: {error}"))?;
    if lab["servers"].as_array().is_none() || lab["findings"].as_array().is_none() {
        return Err("is not what millrace lab run --json writes: servers or findings".to_owned());
    }
    let mut page = format!(
        "# {}\n\n{}\n\n",
        text(&lab["title"]),
        text(&lab["question"])
    );
    let _ = writeln!(page, "{}\n", verdict(&lab));
    let host = &lab["host"];
    let _ = write!(
        page,
        "| | |\n|---|---|\n| date | {date} |\n| machine | {}, {} cores, {}, {} |\n",
        text(&host["cpu"]),
        host["cores"],
        text(&host["kernel"]),
        text(&host["machine"])
    );
    let _ = write!(
        page,
        "| runs | {} repeats of {} s at each level, after {} s of warm-up |\n{}| command | `{}` |\n",
        lab["repeats"],
        lab["duration_s"],
        lab["warmup_s"],
        load(&lab),
        text(&lab["command"])
    );
    limits(&mut page, &lab);
    findings(&mut page, &lab);
    servers(&mut page, &lab);
    Ok(page)
}

/// Describes the protocol, and the number of requests in flight; nothing where a run was stored
/// without it.
fn load(lab: &Value) -> String {
    match (lab["protocol"].as_str(), lab["depth"].as_u64()) {
        (Some(protocol), Some(depth)) => {
            format!("| load | {protocol}, requests in flight on a connection: {depth} |\n")
        }
        _ => String::new(),
    }
}

/// Describes the verdict on the figures, and the reasons against them.
pub(super) fn verdict(lab: &Value) -> String {
    let mut sentence = format!("**{}**", text(&lab["verdict"]));
    if lab["complete"] == Value::Bool(false) {
        sentence.push_str(", not complete");
    }
    let reasons: Vec<String> = list(&lab["reasons"]).iter().map(text).collect();
    if !reasons.is_empty() {
        let _ = write!(sentence, ": {}", reasons.join("; "));
    }
    sentence.push('.');
    if !lab["failure"].is_null() {
        let _ = write!(sentence, " The run ended early: {}.", text(&lab["failure"]));
    }
    sentence
}

fn limits(page: &mut String, lab: &Value) {
    let limits = list(&lab["limits"]);
    if limits.is_empty() {
        return;
    }
    page.push_str(
        "\n## Limits\n\n| limit | at | found (95 %) | blocks | verdict |\n|---|---|---|---|---|\n",
    );
    for limit in limits {
        let found = &limit["found"];
        let _ = writeln!(
            page,
            "| {} | {} | {} | {} | {} |",
            demand(limit),
            level(&limit["level"]),
            interval(found),
            found
                .get("blocks")
                .map_or(NONE.to_owned(), Value::to_string),
            outcome(&text(&limit["outcome"]))
        );
    }
}

/// "CPU of millpond at most 0.67 × nginx".
fn demand(limit: &Value) -> String {
    let metric = text(&limit["metric"]);
    let figure = match metric.as_str() {
        "cpu" => "CPU of",
        "throughput" => "throughput of",
        "p50" => "median of",
        "p99" => "p99 of",
        "memory" => "memory of an idle connection of",
        "client-cpu" => "client CPU at",
        "client-throughput" => "client throughput at",
        other => other,
    };
    let (server, against) = (text(&limit["server"]), text(&limit["against"]));
    let bound = &limit["bound"];
    let number = |key: &str| bound.get(key).and_then(Value::as_f64);
    let bound = if let Some(most) = number("at_most") {
        format!("at most {most:.2} × {against}")
    } else if let Some(least) = number("at_least") {
        format!("at least {least:.2} × {against}")
    } else if let Some(more) = number("more_at_most_us") {
        format!("at most {against} and {more:.2} µs")
    } else {
        cell(&bound.to_string())
    };
    format!("{figure} {server} {bound}")
}

fn interval(found: &Value) -> String {
    let number = |key: &str| found[key].as_f64();
    match (number("mean"), number("low"), number("high")) {
        (Some(mean), Some(low), Some(high)) => format!("{mean:.3} ({low:.3} to {high:.3})"),
        _ => NONE.to_owned(),
    }
}

/// The verdict on a limit: this machine and these blocks may not decide it.
fn outcome(stored: &str) -> &'static str {
    match stored {
        "holds" => "holds",
        "missed" => "**missed**",
        _ => "not decided here",
    }
}

fn findings(page: &mut String, lab: &Value) {
    let baseline = match &lab["baseline"] {
        Value::String(name) => cell(name),
        _ => "baseline".to_owned(),
    };
    let _ = write!(
        page,
        "\n## Figures\n\nMedians of the runs that count, with the smallest and the largest.\n\n\
         | server | at | answers a second | median, µs | p99, µs | CPU, µs | CPU / {baseline} |\n\
         |---|---|---|---|---|---|---|\n"
    );
    for finding in list(&lab["findings"]) {
        let _ = writeln!(
            page,
            "| {} | {} | {} | {} | {} | {} | {} |",
            text(&finding["server"]),
            level(&finding["level"]),
            spread(&finding["throughput"], 0),
            spread(&finding["p50_us"], 1),
            spread(&finding["p99_us"], 1),
            spread(&finding["cpu_us"], 2),
            ratio(&finding["cpu_ratio"])
        );
    }
    idle_connections(page, list(&lab["findings"]));
}

/// The memory of connections that ask for nothing, of the servers that have some.
fn idle_connections(page: &mut String, findings: &[Value]) {
    let mut with_idle = findings
        .iter()
        .filter(|finding| !finding["idle_bytes"].is_null())
        .peekable();
    if with_idle.peek().is_some() {
        page.push_str("\n| server | bytes of an idle connection |\n|---|---|\n");
    }
    for finding in with_idle {
        let bytes = spread(&finding["idle_bytes"], 0);
        let _ = writeln!(page, "| {} | {bytes} |", text(&finding["server"]));
    }
}

fn spread(value: &Value, digits: usize) -> String {
    let number = |key: &str| value[key].as_f64();
    match (number("median"), number("min"), number("max")) {
        (Some(median), Some(min), Some(max)) => {
            format!("{median:.digits$} ({min:.digits$} to {max:.digits$})")
        }
        _ => NONE.to_owned(),
    }
}

fn ratio(value: &Value) -> String {
    let number = |key: &str| value[key].as_f64();
    match (number("ratio"), number("low"), number("high")) {
        (Some(ratio), Some(low), Some(high)) => format!("{ratio:.2} ({low:.2} to {high:.2})"),
        _ => NONE.to_owned(),
    }
}

fn servers(page: &mut String, lab: &Value) {
    page.push_str("\n## Servers\n\n| server | version | command |\n|---|---|---|\n");
    for server in list(&lab["servers"]) {
        let version = text(&server["version"]);
        let _ = writeln!(
            page,
            "| {} | {} | `{}` |",
            text(&server["name"]),
            if version.is_empty() { NONE } else { &version },
            text(&server["command"])
        );
    }
}

pub(super) fn level(level: &Value) -> String {
    let connections = &level["connections"];
    let word = if connections == 1 {
        "connection"
    } else {
        "connections"
    };
    match level["rate"].as_f64() {
        Some(rate) => format!("{connections} {word}, {rate} a second"),
        None => format!("{connections} {word}"),
    }
}

pub(super) fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

pub(super) fn text(value: &Value) -> String {
    cell(value.as_str().unwrap_or(""))
}

/// Text for a cell of a table: one line, no bar.
pub(super) fn cell(text: &str) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    words.join(" ").replace('|', "\\|")
}

#[cfg(test)]
mod tests {
    use super::page;

    const STORED: &str = r#"{
        "verdict": "SUSPECT", "reasons": ["one run was disturbed"], "complete": true, "failure": null,
        "title": "A small file", "question": "What does each spend?", "baseline": "floor",
        "servers": [
            {"name": "it", "version": "it 1.0", "command": "it | serve"},
            {"name": "floor", "version": "", "command": "floor"}
        ],
        "repeats": 10, "duration_s": 5.0, "warmup_s": 1.0, "depth": 1, "protocol": "HTTP/1.1 over TLS",
        "findings": [{
            "server": "it", "level": {"connections": 32, "rate": null},
            "throughput": {"median": 98900.4, "min": 98000.0, "max": 99100.0},
            "p50_us": {"median": 310.25, "min": 309.0, "max": 315.0}, "p99_us": null,
            "cpu_us": {"median": 6.5, "min": 6.25, "max": 6.75},
            "cpu_ratio": {"ratio": 0.99, "low": 0.98, "high": 1.0},
            "idle_bytes": {"median": 281.8, "min": 281.5, "max": 282.2}
        }],
        "limits": [
            {"server": "it", "against": "floor", "metric": "cpu",
             "level": {"connections": 32, "rate": null}, "bound": {"at_most": 1.1},
             "found": {"mean": 0.99, "low": 0.98, "high": 1.0, "blocks": 10}, "outcome": "holds"},
            {"server": "it", "against": "floor", "metric": "throughput",
             "level": {"connections": 1, "rate": 100.0}, "bound": {"at_least": 0.97},
             "found": {"mean": 0.9, "low": 0.88, "high": 0.92, "blocks": 10}, "outcome": "missed"},
            {"server": "it", "against": "floor", "metric": "p99",
             "level": {"connections": 1, "rate": null}, "bound": {"more_at_most_us": 0.5},
             "found": null, "outcome": "not_decided"}
        ],
        "host": {"cpu": "Some CPU", "cores": 2, "kernel": "Linux 6.1", "machine": "x86_64"},
        "command": "millrace lab run a.toml"
    }"#;

    const PAGE: &str = "\
# A small file

What does each spend?

**SUSPECT**: one run was disturbed.

| | |
|---|---|
| date | 2026-11-24 |
| machine | Some CPU, 2 cores, Linux 6.1, x86_64 |
| runs | 10 repeats of 5.0 s at each level, after 1.0 s of warm-up |
| load | HTTP/1.1 over TLS, requests in flight on a connection: 1 |
| command | `millrace lab run a.toml` |

## Limits

| limit | at | found (95 %) | blocks | verdict |
|---|---|---|---|---|
| CPU of it at most 1.10 × floor | 32 connections | 0.990 (0.980 to 1.000) | 10 | holds |
| throughput of it at least 0.97 × floor | 1 connection, 100 a second | 0.900 (0.880 to 0.920) | 10 | **missed** |
| p99 of it at most floor and 0.50 µs | 1 connection | – | – | not decided here |

## Figures

Medians of the runs that count, with the smallest and the largest.

| server | at | answers a second | median, µs | p99, µs | CPU, µs | CPU / floor |
|---|---|---|---|---|---|---|
| it | 32 connections | 98900 (98000 to 99100) | 310.2 (309.0 to 315.0) | – | 6.50 (6.25 to 6.75) | 0.99 (0.98 to 1.00) |

| server | bytes of an idle connection |
|---|---|
| it | 282 (282 to 282) |

## Servers

| server | version | command |
|---|---|---|
| it | it 1.0 | `it \\| serve` |
| floor | – | `floor` |
";

    #[test]
    fn a_page_shows_what_is_stored() {
        assert_eq!(page("2026-11-24", STORED).as_deref(), Ok(PAGE));
    }

    #[test]
    fn other_json_is_an_error() {
        for json in ["", "{}", "[]", r#"{"servers": []}"#] {
            assert!(page("2026-11-24", json).is_err(), "{json}");
        }
    }
}
