//! wrk, which is told in Lua what its options cannot say.

use super::other::{Asked, Found};
use super::workshop::Workshop;

/// How it is started.
pub(super) fn words(shop: &Workshop<'_>, asked: &Asked<'_>) -> Result<Vec<String>, String> {
    let plan = asked.plan;
    let mut words = vec![
        "wrk".to_owned(),
        format!("-t{}", asked.threads),
        format!("-c{}", plan.load.connections),
        format!("-d{}s", asked.seconds),
        "--timeout".to_owned(),
        format!("{}s", asked.timeout_s),
    ];
    for field in &asked.fields {
        words.extend(["-H".to_owned(), field.clone()]);
    }
    if let Some(script) = script(&plan.request.urls, plan.load.depth) {
        let path = shop.write_beside("wrk.lua", &script)?;
        words.extend(["-s".to_owned(), path.to_string_lossy().into_owned()]);
    }
    words.push(plan.target.url.clone());
    Ok(words)
}

/// What wrk needs to be told in Lua: targets to choose from, and requests that go out together. Its pipelining is in
/// batches, each sent when all answers to the one before have come.
fn script(targets: &[String], depth: usize) -> Option<String> {
    if targets.is_empty() && depth == 1 {
        return None;
    }
    let mut list = String::new();
    for target in targets {
        // Within quotes Lua gives a meaning to these two alone.
        let target = target.replace('\\', r"\\").replace('"', "\\\"");
        list.push_str(&format!("  \"{target}\",\n"));
    }
    Some(format!(
        "local targets = {{\n{list}}}\nlocal requests = {{}}\nfunction init()\n\
         \x20 if #targets == 0 then requests[1] = wrk.format() end\n\
         \x20 for n, target in ipairs(targets) do requests[n] = wrk.format(\"GET\", target) end\nend\n\
         function request()\n\
         \x20 local batch = {{}}\n\
         \x20 for n = 1, {depth} do batch[n] = requests[math.random(#requests)] end\n\
         \x20 return table.concat(batch)\nend\n"
    ))
}

/// Reads what wrk 4 prints.
pub(super) fn read(text: &str) -> Option<Found> {
    let mut errors = 0;
    let (mut requests, mut throughput) = (None, None);
    for line in text.lines().map(str::trim) {
        if let Some(rest) = line.strip_prefix("Requests/sec:") {
            throughput = rest.trim().parse().ok();
        } else if let Some((count, _)) = line.split_once(" requests in ") {
            requests = count.parse().ok();
        } else if let Some(rest) = line.strip_prefix("Socket errors:") {
            let counts = rest.split(',').filter_map(|part| {
                let count = part.split_whitespace().last()?;
                count.parse::<u64>().ok()
            });
            errors += counts.sum::<u64>();
        } else if let Some(rest) = line.strip_prefix("Non-2xx or 3xx responses:") {
            errors += rest.trim().parse::<u64>().ok()?;
        }
    }
    Some(Found {
        requests: requests?,
        throughput: throughput?,
        errors,
        client: None,
        server_busy: None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn several_targets_and_pipelines_are_scripts() {
        assert_eq!(script(&[], 1), None);
        let batches = script(&[], 16).unwrap();
        assert!(batches.contains("for n = 1, 16 do"), "{batches}");
        let targets = ["/a".to_owned(), r#"/"\"#.to_owned()];
        let text = script(&targets, 1).unwrap();
        assert!(
            text.starts_with("local targets = {\n  \"/a\",\n  \"/\\\"\\\\\",\n}\n"),
            "{text}"
        );
    }

    #[test]
    fn what_wrk_prints_is_understood() {
        let text = "Running 2s test @ http://127.0.0.1:1/\n  1 threads and 32 connections\n  Thread Stats   Avg\n    \
                    Latency     1.33ms\n  58563 requests in 2.00s, 3.00MB read\n  Socket errors: connect 1, read 2, \
                    write 0, timeout 3\n  Non-2xx or 3xx responses: 4\nRequests/sec:  29281.10\nTransfer/sec:      1.5MB\n";
        assert_eq!(
            read(text),
            Some(Found {
                requests: 58563,
                throughput: 29281.10,
                errors: 10,
                client: None,
                server_busy: None,
            })
        );
        assert_eq!(
            read("unable to connect to 127.0.0.1:1 Connection refused\n"),
            None
        );
    }
}
