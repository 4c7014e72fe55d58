//! The figures that a server has of itself.

use serde::Serialize;
use serde_json::Value;

/// Gives the figures of a server. Counts are those since its start: what has been added between two
/// samples is found by the sampler, and a count that went down is a new beginning.
pub trait FigureSource: Send + 'static {
    /// Returns the figures of the server as a whole.
    fn totals(&self) -> Totals;

    /// True while the server finishes its requests and takes no others.
    fn is_ending(&self) -> bool {
        false
    }

    /// Returns the counts of each route that has been asked for.
    fn routes(&self) -> Vec<RouteTotals>;

    /// Returns the state of now, in the order in which it is shown.
    fn facts(&self) -> Vec<Fact>;

    /// Returns the certificates that are shown or awaited.
    fn certificates(&self) -> Vec<CertificateState>;

    /// Begins to hold the last requests, or ends it.
    fn watch_requests(&self, is_watched: bool);

    /// Takes the requests that were held since the last call, the oldest first: objects with the
    /// columns of the table `seen`.
    fn take_requests(&self) -> Vec<Value>;
}

/// Acts for the owner.
pub trait Controls: Send + Sync + 'static {
    /// Explains how an address of a host is answered, as `millpond explain` does; `None` if no site
    /// has the host.
    ///
    /// # Errors
    /// A sentence, if the address cannot be explained.
    fn explain(&self, host: Option<&str>, target: &str) -> Result<Option<Value>, String>;

    /// Ends all pages and results that are kept in memory.
    fn purge(&self);

    /// Ends those of one address of a host, and returns how many; `None` if no page is there.
    fn purge_address(&self, host: Option<&str>, target: &str) -> Option<usize>;

    /// Posts JSON to a URL. Blocks until it is answered, for some seconds at most.
    ///
    /// # Errors
    /// Why it was not delivered.
    fn post(&self, url: &str, json: &str) -> Result<(), String>;
}

/// Figures of a server as a whole.
#[derive(Clone, Debug, Default)]
pub struct Totals {
    /// Counts since the start.
    pub counts: Counts,
    /// The state of now.
    pub gauges: Gauges,
    /// How many requests were answered within this number of microseconds, and not within the next
    /// lower one; empty if that is not measured.
    pub durations: Vec<(u64, u64)>,
}

/// Counts since the start of a server; those that are `None` are not counted.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Counts {
    /// Requests that were given to the sites.
    pub requests: u64,
    /// Requests among them for pages of a site, and not for its files.
    pub pages: u64,
    /// Pages answered from memory.
    pub hits: u64,
    /// Pages that were made for the request.
    pub misses: u64,
    /// Requests that waited for the page of another request.
    pub waits: u64,
    /// Pages that are not kept.
    pub bypassed: u64,
    /// Pages that were made, of which the times are those that follow.
    pub made: u64,
    /// Microseconds that making them took.
    pub fill_us: u64,
    /// The database's part of it.
    pub database_us: u64,
    /// Requests that the protocol or a limit refused.
    pub refused: u64,
    /// Requests refused because there was too much to do.
    pub shed: u64,
    /// Bytes that were sent.
    pub bytes_out: u64,
    /// Answers with a status from 200 to 299.
    pub successes: Option<u64>,
    /// Answers with a status from 300 to 399.
    pub redirects: Option<u64>,
    /// Answers with a status from 400 to 499.
    pub client_errors: Option<u64>,
    /// Answers with a status from 500 on.
    pub server_errors: Option<u64>,
    /// Requests of crawlers.
    pub crawlers: Option<u64>,
    /// Milliseconds that the cores worked for this process.
    pub cpu_ms: Option<u64>,
    /// Milliseconds that the cores of the machine were busy.
    pub busy_ms: Option<u64>,
}

/// The state of a server at the moment of a sample. Of several samples the largest value is kept.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Gauges {
    /// Connections that are open.
    pub connections: Option<u64>,
    /// The age of the newest sign of life of the database's feed, in milliseconds.
    pub feed_age_ms: Option<u64>,
    /// Bytes of memory that the process has.
    pub resident: Option<u64>,
    /// Bytes of pages and results in memory.
    pub stored: Option<u64>,
    /// How many pages and results these are.
    pub entries: Option<u64>,
    /// Streams of live pages.
    pub streams: Option<u64>,
}

/// Counts of a route since the start.
#[derive(Clone, Debug, Default)]
pub struct RouteTotals {
    /// The route, such as `/articles/{slug}`; never the path of a request.
    pub route: String,
    /// Its counts.
    pub counts: RouteCounts,
}

/// Counts of one route since the start, as [`Counts`] has them.
#[derive(Clone, Debug, Default, Serialize)]
pub struct RouteCounts {
    /// All requests.
    pub requests: u64,
    /// Requests answered from memory.
    pub hits: u64,
    /// Requests for which the page was made.
    pub misses: u64,
    /// Requests that waited for another's page.
    pub waits: u64,
    /// Requests whose page is not kept.
    pub bypassed: u64,
    /// Pages that were made.
    pub made: u64,
    /// Microseconds that making them took.
    pub fill_us: u64,
    /// The database's part of it.
    pub database_us: u64,
    /// Answers with a status from 500 on, if they are counted.
    pub errors: Option<u64>,
    /// Requests of crawlers, if they are counted.
    pub crawlers: Option<u64>,
}

/// One line of the state of now.
#[derive(Clone, Debug)]
pub struct Fact {
    /// The heading that it stands under.
    pub topic: &'static str,
    /// Its name.
    pub name: String,
    /// The unit of a number, `count` or `seconds`; `text` for words.
    pub unit: &'static str,
    /// A number, or words.
    pub value: Value,
}

impl Fact {
    /// A line with a number of things.
    pub fn count(topic: &'static str, name: &str, value: u64) -> Self {
        Self::new(topic, name, "count", value.into())
    }

    /// A line with a time in seconds.
    pub fn seconds(topic: &'static str, name: &str, value: f64) -> Self {
        Self::new(topic, name, "seconds", value.into())
    }

    /// A line with words.
    pub fn text(topic: &'static str, name: &str, value: &str) -> Self {
        Self::new(topic, name, "text", value.into())
    }

    fn new(topic: &'static str, name: &str, unit: &'static str, value: Value) -> Self {
        Self {
            topic,
            name: name.to_owned(),
            unit,
            value,
        }
    }
}

/// A certificate, and how the last try to get another one ended.
#[derive(Clone, Debug, Serialize)]
pub struct CertificateState {
    /// The names for which it is.
    pub names: String,
    /// Its end, in seconds since 1970; `None` if there is no certificate yet.
    pub ends_at: Option<u64>,
    /// The last try that failed, in seconds since 1970.
    pub tried_at: Option<u64>,
    /// Why it failed.
    pub failure: Option<String>,
}
