//! wrk, which needs a Lua script for some settings.

use super::other_client::{OtherLoad, OtherResult};
use super::work_folder::WorkFolder;

pub(super) fn command_line(
    work_folder: &WorkFolder<'_>,
    asked: &OtherLoad<'_>,
) -> Result<Vec<String>, String> {
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
        let path = work_folder.write_beside("wrk.lua", &script)?;
        words.extend(["-s".to_owned(), path.to_string_lossy().into_owned()]);
    }
    words.push(plan.target.url.clone());
    Ok(words)
}

/// A Lua script for wrk's missing options: targets to choose from, and requests that are sent
/// together. wrk pipelines in batches: each is sent after all responses to the one before.
fn script(targets: &[String], depth: usize) -> Option<String> {
    if targets.is_empty() && depth == 1 {
        return None;
    }
    let mut list = String::new();
    for target in targets {
        // Within quotes, only these two characters have a meaning in Lua.
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
pub(super) fn read(text: &str) -> Option<OtherResult> {
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
    Some(OtherResult {
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
    fn the_output_of_wrk_is_parsed() {
        let text = "Running 2s test @ http://127.0.0.1:1/\n  1 threads and 32 connections\n  Thread Stats   Avg\n    \
                    Latency     1.33ms\n  58563 requests in 2.00s, 3.00MB read\n  Socket errors: connect 1, read 2, \
                    write 0, timeout 3\n  Non-2xx or 3xx responses: 4\nRequests/sec:  29281.10\nTransfer/sec:      1.5MB\n";
        assert_eq!(
            read(text),
            Some(OtherResult {
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
