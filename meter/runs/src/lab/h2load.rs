//! h2load, which is told everything by its options: <https://nghttp2.org/documentation/h2load.1.html>.

use super::other::{Asked, Found};
use super::workshop::Workshop;

/// How it is started. It goes through several targets in their order, each connection from the first on.
pub(super) fn words(shop: &Workshop<'_>, asked: &Asked<'_>) -> Result<Vec<String>, String> {
    let plan = asked.plan;
    let mut words = vec![
        "h2load".to_owned(),
        // HTTP/1.1, which its word for requests in flight then is about.
        "--h1".to_owned(),
        format!("-t{}", asked.threads),
        format!("-c{}", plan.load.connections),
        format!("-m{}", plan.load.depth),
        format!("-D{}s", asked.seconds),
        format!("-N{}s", asked.timeout_s),
    ];
    for field in &asked.fields {
        words.extend(["-H".to_owned(), field.clone()]);
    }
    if plan.request.urls.is_empty() {
        words.push(plan.target.url.clone());
    } else {
        let path = shop.write_beside("h2load.uris", &(plan.request.urls.join("\n") + "\n"))?;
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

/// Reads what h2load 1 prints. A server that it does not reach is no failure to it, but nothing is done then.
pub(super) fn read(text: &str) -> Option<Found> {
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
            // A status of 400 or more, a broken connection and a timeout are all among the failed.
            counts = count("done").zip(count("failed"));
        }
    }
    let (requests, errors) = counts.filter(|(done, _)| *done > 0)?;
    Some(Found {
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

    /// What h2load 1.52 printed of two seconds with 32 connections, of a second of which every other target was missing, and of
    /// a port that nobody listened on; shortened.
    #[test]
    fn what_h2load_prints_is_understood() {
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
        let nobody = "finished in 1.00s, 0.00 req/s, 0B/s\n\
                      requests: 0 total, 0 started, 0 done, 0 succeeded, 0 failed, 0 errored, 0 timeout\n";
        assert_eq!(found(nobody), None);
        assert_eq!(found("-n: bad option value\n"), None);
    }
}
