//! A whole run of the studies as a page in Markdown: where Millpond is behind, and every figure.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use serde_json::Value;

use super::page::{NONE, cell, level, list, text, verdict};

/// A study, and its experiments in their order.
struct Study {
    study: Value,
    parts: Vec<Value>,
}

/// The page of the run in `folder`, as `millrace lab run --all --out` has written it on `date`.
pub(super) fn page(date: &str, folder: &Path) -> Result<String, String> {
    let studies = read(folder)?;
    Ok(text_of(date, &studies))
}

fn text_of(date: &str, studies: &[Study]) -> String {
    let mut page = "# A whole run of the studies\n\n\
        Each study repeats figures of a write-up on the machine at hand. `millrace lab report` makes pages with graphs \
        of them, with the original figures and with what each study shows.\n\n"
        .to_owned();
    let parts = || studies.iter().flat_map(|study| &study.parts);
    let took: f64 = parts().filter_map(|part| part["took_s"].as_f64()).sum();
    let first = parts().next().unwrap_or(&Value::Null);
    let host = &first["host"];
    let _ = write!(
        page,
        "| | |\n|---|---|\n| date | {date} |\n| machine | {}, {} cores, {}, {} |\n| experiments | {}, in {:.0} minutes |\n\
         | command | `{}` |\n\n",
        text(&host["cpu"]),
        host["cores"],
        text(&host["kernel"]),
        text(&host["machine"]),
        parts().count(),
        took / 60.0,
        text(&first["command"])
    );
    behind(&mut page, studies);
    for study in studies {
        let words = &study.study["text"];
        let _ = write!(
            page,
            "\n## {}\n\n{}\n",
            text(&words["title"]),
            text(&words["sentence"])
        );
        for part in &study.parts {
            experiment(&mut page, part);
        }
    }
    page
}

/// The studies in the order of their names.
fn read(folder: &Path) -> Result<Vec<Study>, String> {
    let entries = fs::read_dir(folder).map_err(|error| error.to_string())?;
    let mut folders: Vec<_> = entries.flatten().map(|entry| entry.path()).collect();
    folders.sort();
    let mut studies = Vec::new();
    for folder in folders.iter().filter(|path| path.is_dir()) {
        let study = json(&folder.join("study.json"))?;
        let results = list(&study["parts"]).iter();
        let results = results.filter_map(|part| part["result"].as_str());
        let parts: Result<_, _> = results.map(|name| json(&folder.join(name))).collect();
        studies.push(Study {
            parts: parts?,
            study,
        });
    }
    match studies.is_empty() {
        true => Err("holds no study".to_owned()),
        false => Ok(studies),
    }
}

fn json(file: &Path) -> Result<Value, String> {
    let name = file.file_name().unwrap_or_default().display();
    let text = fs::read_to_string(file).map_err(|error| format!("{name}: {error}"))?;
    serde_json::from_str(&text).map_err(|error| format!("{name}: {error}"))
}

/// Lists the figures in which another server does better than Millpond by more than a hundredth.
fn behind(page: &mut String, studies: &[Study]) {
    page.push_str(
        "## Where Millpond is behind\n\nBy more than a hundredth: in the CPU of a request; in answers a second, where no rate is \
         given; at a rate in the share without a good answer and in the mean time.\n\n\
         | experiment | at | figure | Millpond | ahead |\n|---|---|---|---|---|\n",
    );
    let mut rows = 0;
    for part in studies.iter().flat_map(|study| &study.parts) {
        let findings = list(&part["findings"]).iter();
        for own in findings.filter(|finding| finding["server"] == "millpond") {
            let is_open = own["level"]["rate"].is_number() || !part["replay"].is_null();
            let metrics: &[&str] = match is_open {
                true => &["failed", "mean", "cpu"],
                false => &["throughput", "cpu"],
            };
            for metric in metrics {
                let ahead = ahead(part, own, metric);
                if ahead.is_empty() {
                    continue;
                }
                rows += 1;
                let _ = writeln!(
                    page,
                    "| {} | {} | {} | {} | {} |",
                    text(&part["title"]),
                    place(part, own),
                    heading(metric),
                    median(own, metric),
                    ahead.join(", ")
                );
            }
        }
    }
    if rows == 0 {
        page.push_str("| none | | | | |\n");
    }
}

/// The servers that are ahead of `own` in a figure at its level. A server that fails more often
/// does less for a request, so its time and CPU do not count.
fn ahead(part: &Value, own: &Value, metric: &str) -> Vec<String> {
    let Some(mine) = value(own, metric) else {
        return Vec::new();
    };
    let failed = |finding: &Value| value(finding, "failed").unwrap_or(0.0);
    let is_ahead = |other: &&Value| {
        let is_beside = other["level"] == own["level"] && other["server"] != own["server"];
        is_beside
            && value(other, metric).is_some_and(|theirs| match metric {
                "throughput" => theirs > mine * 1.01,
                "failed" => theirs + 0.01 < mine,
                _ => theirs * 1.01 < mine && failed(other) < failed(own) + 0.01,
            })
    };
    let found = list(&part["findings"]).iter().filter(is_ahead);
    let found = found.map(|other| format!("{} {}", text(&other["server"]), median(other, metric)));
    found.collect()
}

/// An experiment's verdict, and its figures: a row for each server at each level.
fn experiment(page: &mut String, part: &Value) {
    let _ = write!(
        page,
        "\n### {}\n\n{}\n\n{}\n\n",
        text(&part["title"]),
        text(&part["question"]),
        short(part)
    );
    let metrics: Vec<&str> = list(&part["graph"])
        .iter()
        .filter_map(Value::as_str)
        .collect();
    let _ = write!(page, "| server | at |");
    for metric in &metrics {
        let _ = write!(page, " {} |", heading(metric));
    }
    let _ = writeln!(page, "\n|---|---|{}", "---|".repeat(metrics.len()));
    for finding in list(&part["findings"]) {
        let _ = write!(
            page,
            "| {} | {} |",
            text(&finding["server"]),
            place(part, finding)
        );
        for metric in &metrics {
            let _ = write!(page, " {} |", median(finding, metric));
        }
        page.push('\n');
    }
}

/// The verdict with the first reason alone, where there are several.
fn short(part: &Value) -> String {
    let reasons = list(&part["reasons"]);
    let mut shown = part.clone();
    shown["reasons"] = reasons.iter().take(1).cloned().collect();
    let sentence = verdict(&shown);
    match reasons.len() {
        0 | 1 => sentence,
        count => format!("{sentence} Reasons beside this one: {}.", count - 1),
    }
}

/// The level of a finding, with what the experiment varies.
fn place(part: &Value, finding: &Value) -> String {
    let at = level(&finding["level"]);
    match (
        part["variable"].as_str(),
        finding["level"]["value"].as_f64(),
    ) {
        (Some(variable), Some(value)) => format!("{at}, {} {value}", cell(variable)),
        _ => at,
    }
}

fn value(finding: &Value, metric: &str) -> Option<f64> {
    let of = match metric {
        "throughput" => &finding["throughput"],
        "p50" => &finding["p50_us"],
        "p99" => &finding["p99_us"],
        "cpu" => &finding["cpu_us"],
        other => &finding["figures"][other],
    };
    of["median"].as_f64()
}

/// The heading of a figure, with its unit.
fn heading(metric: &str) -> String {
    let name = match metric {
        "throughput" => "answers a second",
        "bytes" => "MB a second",
        "mean" => "mean, ms",
        "p50" => "median, ms",
        "p90" => "p90, ms",
        "p99" => "p99, ms",
        "max" => "longest, ms",
        "cpu" => "CPU, µs",
        "cores" => "cores used",
        "memory" => "memory, MB",
        "failed" => "no good answer, %",
        "timeouts" => "timed out, %",
        "idle" => "idle, %",
        "network" => "network, MB a second",
        "ipc" => "instructions in a cycle",
        "cache-misses" => "cache misses",
        "branch-misses" => "branch misses",
        other => return cell(other),
    };
    name.to_owned()
}

fn median(finding: &Value, metric: &str) -> String {
    let Some(median) = value(finding, metric) else {
        return NONE.to_owned();
    };
    match metric {
        "throughput" => format!("{median:.0}"),
        "bytes" | "memory" | "network" => format!("{:.1}", median / 1e6),
        "mean" | "p50" | "p90" | "p99" | "max" => format!("{:.3}", median / 1e3),
        "failed" | "timeouts" | "idle" => format!("{:.1}", median * 100.0),
        _ => format!("{median:.2}"),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{Study, text_of};

    #[test]
    fn a_page_has_every_figure_and_says_where_millpond_is_behind() {
        let finding = |server: &str, throughput: f64, rate: Option<f64>, mean: f64| {
            json!({
                "server": server, "level": {"connections": 1, "rate": rate}, "counted": 1,
                "throughput": {"median": throughput}, "figures": {"failed": {"median": 0.0}, "mean": {"median": mean}},
            })
        };
        let part = json!({
            "title": "A page", "question": "How fast?", "verdict": "SUSPECT", "reasons": ["too short", "too late"],
            "complete": true, "failure": null, "took_s": 120.0, "graph": ["throughput", "mean"],
            "findings": [
                finding("millpond", 900.0, None, 100.0),
                finding("other", 1000.0, None, 90.0),
                finding("millpond", 50.0, Some(50.0), 80.0),
                finding("other", 50.0, Some(50.0), 81.0),
            ],
            "host": {"cpu": "Some CPU", "cores": 2, "kernel": "Linux 6.1", "machine": "x86_64"},
            "command": "millrace lab run --all",
        });
        let study = json!({"text": {"title": "Pages", "sentence": "Pages are fast."}});
        let page = text_of(
            "2026-11-26",
            &[Study {
                study,
                parts: vec![part],
            }],
        );
        assert_eq!(page, PAGE);
    }

    const PAGE: &str = "\
# A whole run of the studies

Each study repeats figures of a write-up on the machine at hand. `millrace lab report` makes pages with graphs of them, \
with the original figures and with what each study shows.

| | |
|---|---|
| date | 2026-11-26 |
| machine | Some CPU, 2 cores, Linux 6.1, x86_64 |
| experiments | 1, in 2 minutes |
| command | `millrace lab run --all` |

## Where Millpond is behind

By more than a hundredth: in the CPU of a request; in answers a second, where no rate is given; at a rate in the share \
without a good answer and in the mean time.

| experiment | at | figure | Millpond | ahead |
|---|---|---|---|---|
| A page | 1 connection | answers a second | 900 | other 1000 |

## Pages

Pages are fast.

### A page

How fast?

**SUSPECT**: too short. Reasons beside this one: 1.

| server | at | answers a second | mean, ms |
|---|---|---|---|
| millpond | 1 connection | 900 | 0.100 |
| other | 1 connection | 1000 | 0.090 |
| millpond | 1 connection, 50 a second | 50 | 0.080 |
| other | 1 connection, 50 a second | 50 | 0.081 |
";
}
