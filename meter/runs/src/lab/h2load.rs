//! h2load, which takes all settings as options: <https://nghttp2.org/documentation/h2load.1.html>.

use super::other_client::{OtherLoad, OtherResult};
use super::work_folder::WorkFolder;

/// Its command line. Each connection goes through several targets in order, starting with the
/// first.
pub(super) fn command_line(
    work_folder: &WorkFolder<'_>,
    asked: &OtherLoad<'_>,
) -> Result<Vec<String>, String> {
    let plan = asked.plan;
    let mut words = vec![
        "h2load".to_owned(),
        format!("-t{}", asked.threads),
        format!("-c{}", plan.load.connections),
        format!("-m{}", plan.load.depth),
        format!("-D{}s", asked.seconds),
        format!("-N{}s", asked.timeout_s),
    ];
    if !plan.target.http2 {
        // Without this, the option for requests in flight means streams.
        words.push("--h1".to_owned());
    }
    for field in &asked.fields {
        words.extend(["-H".to_owned(), field.clone()]);
    }
    if plan.request.urls.is_empty() {
        words.push(plan.target.url.clone());
    } else {
        let path =
            work_folder.write_beside("h2load.uris", &(plan.request.urls.join("\n") + "\n"))?;
        let path = path.to_string_lossy().into_owned();
        words.extend([
            "-i".to_owned(),
            path,
            "-B".to_owned(),
            plan.target.url.clone(),
        ]);
    }
    Ok(words)
}

/// Reads what h2load 1 prints. h2load does not report an unreachable server as a failure, but then
/// no request is done.
pub(super) fn read(text: &str) -> Option<OtherResult> {
    let (mut counts, mut throughput) = (None, None);
    for line in text.lines() {
        if let Some(rest) = line.strip_prefix("finished in ") {
            let rates = rest.split(", ").nth(1)?;
            throughput = rates.strip_suffix(" req/s")?.parse().ok();
        } else if let Some(rest) = line.strip_prefix("requests: ") {
            let count = |name: &str| {
                let mut parts = rest.split(", ");
                let number = parts.find_map(|part| part.strip_suffix(name))?;
                number.trim().parse::<u64>().ok()
            };
            // "failed" includes statuses from 400 on, broken connections and timeouts.
            counts = count("done").zip(count("failed"));
        }
    }
    let (requests, errors) = counts.filter(|(done, _)| *done > 0)?;
    Some(OtherResult {
        requests,
        throughput: throughput?,
        errors,
        client: None,
        server_busy: None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Output of h2load 1.52, shortened: two seconds with 32 connections, one second in which every
    /// other target was missing, and a port without a listener.
    #[test]
    fn the_output_of_h2load_is_parsed() {
        let found = |text| read(text).map(|found| (found.requests, found.throughput, found.errors));
        let good = "starting benchmark...\nApplication protocol: http/1.1\n\nfinished in 2.02s, 2538.50 req/s, 20.42MB/s\n\
                    requests: 5077 total, 5109 started, 5077 done, 5077 succeeded, 0 failed, 0 errored, 0 timeout\n\
                    status codes: 5077 2xx, 0 3xx, 0 4xx, 0 5xx\n";
        assert_eq!(found(good), Some((5077, 2538.5, 0)));
        let half = "finished in 1.00s, 9037.00 req/s, 37.67MB/s\n\
                    requests: 9037 total, 9053 started, 9037 done, 4519 succeeded, 4518 failed, 0 errored, 0 timeout\n\
                    status codes: 4519 2xx, 0 3xx, 4518 4xx, 0 5xx\n";
        assert_eq!(found(half), Some((9037, 9037.0, 4518)));
        let fast = "finished in 999.86ms, 31030.00 req/s, 249.55MB/s\n\
                    requests: 31030 total, 31062 started, 31030 done, 31030 succeeded, 0 failed, 0 errored, 0 timeout\n";
        assert_eq!(found(fast), Some((31030, 31030.0, 0)));
        let unreachable = "finished in 1.00s, 0.00 req/s, 0B/s\n\
                      requests: 0 total, 0 started, 0 done, 0 succeeded, 0 failed, 0 errored, 0 timeout\n";
        assert_eq!(found(unreachable), None);
        assert_eq!(found("-n: bad option value\n"), None);
    }
}
