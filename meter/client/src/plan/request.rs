//! What a run sends, and which responses are good.

use std::sync::Arc;
use std::time::Duration;

use crate::{Error, Workload};

/// The requests of a run, and what a good response to them is.
#[derive(Clone, Debug)]
pub struct RequestPlan {
    /// Targets to choose from: paths, or URLs on the same server. Empty: only the URL of the
    /// server.
    pub urls: Vec<String>,
    /// How a target is chosen from `urls`.
    pub order: Order,
    /// The request method.
    pub method: String,
    /// Further request fields. `Host` and `User-Agent` replace the client's own.
    pub headers: Vec<(String, String)>,
    /// The request body. Empty: no body.
    pub body: Vec<u8>,
    /// True if a connection serves more than one request.
    pub keep_alive: bool,
    /// Requests that a connection serves before a new connection takes its place. None: no limit.
    pub per_connection: Option<u64>,
    /// Longest wait for a connection, and for a complete response.
    pub timeout: Duration,
    /// Statuses that count as good. Empty: 200 to 399.
    pub expect: Vec<u16>,
    /// A regular expression that must match in the body of a good response. A body may have 16 MiB,
    /// with many connections less.
    pub expect_body: Option<String>,
    /// The SHA-256 digest that the body of a good response must have, in hexadecimal.
    pub expect_sha256: Option<String>,
    /// Requests and their order, instead of `urls`, `method`, `headers`, `body` and `expect`. In a
    /// closed loop each connection makes one session after the other; with a schedule the schedule
    /// begins the sessions.
    pub workload: Option<Arc<Workload>>,
}

/// How a target is chosen for a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// Uniformly at random; the same seed chooses the same targets.
    Random(u64),
    /// One after the other, from the beginning again after the last.
    Sequence,
}

impl Default for RequestPlan {
    /// A GET on connections that stay open, with five seconds for the response.
    fn default() -> Self {
        Self {
            urls: Vec::new(),
            order: Order::Sequence,
            method: "GET".to_owned(),
            headers: Vec::new(),
            body: Vec::new(),
            keep_alive: true,
            per_connection: None,
            timeout: Duration::from_secs(5),
            expect: Vec::new(),
            expect_body: None,
            expect_sha256: None,
            workload: None,
        }
    }
}

impl RequestPlan {
    /// The lines of a file of URLs. Empty lines, and lines that begin with `#`, are left out.
    pub fn urls_from(text: &str) -> Vec<String> {
        let lines = text.lines().map(str::trim);
        lines
            .filter(|line| !line.is_empty() && !line.starts_with('#'))
            .map(str::to_owned)
            .collect()
    }

    pub(super) fn check(&self) -> Result<(), Error> {
        let refuse = |sentence: &str| Err(Error::Plan(sentence.to_owned()));
        if self.per_connection == Some(0) {
            return refuse("a connection must serve at least one request");
        }
        if self.per_connection.is_some() && !self.keep_alive {
            return refuse("a number of requests for each connection needs keep-alive");
        }
        if self.timeout < Duration::from_millis(1) {
            return refuse("the timeout must be at least 1 ms");
        }
        if self.workload.is_some() && (self.expect_body.is_some() || self.expect_sha256.is_some()) {
            return refuse("a workload has its own checks of bodies");
        }
        Ok(())
    }

    /// True if `status` counts as good.
    pub(crate) fn is_good(&self, status: u16) -> bool {
        if self.expect.is_empty() {
            (200..400).contains(&status)
        } else {
            self.expect.contains(&status)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_of_urls_may_have_comments() {
        assert_eq!(
            RequestPlan::urls_from("# all\n/a\r\n\n  /b \n"),
            ["/a", "/b"]
        );
    }

    #[test]
    fn expected_statuses_replace_the_usual_ones() {
        let mut request = RequestPlan::default();
        assert!(request.is_good(200) && request.is_good(304));
        assert!(!request.is_good(404) && !request.is_good(199));
        request.expect = vec![404];
        assert!(request.is_good(404) && !request.is_good(200));
    }

    #[test]
    fn requests_that_cannot_be_made_are_refused() {
        assert!(RequestPlan::default().check().is_ok());
        for (keep_alive, per_connection, timeout_ms) in
            [(true, Some(0), 1), (false, Some(2), 1), (true, None, 0)]
        {
            let bad = RequestPlan {
                keep_alive,
                per_connection,
                timeout: Duration::from_millis(timeout_ms),
                ..RequestPlan::default()
            };
            assert!(bad.check().is_err(), "{bad:?}");
        }
    }
}
