//! The figures for a collector of OpenTelemetry (`admin.otlp`), sent by a thread of its own.

use std::env;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::Duration;

use millpond_certificates::WebClient;
use millpond_http::WorkerGroup;
use millpond_process::otlp;
use millpond_site::{Config, Sites};

use crate::admin::SiteFigures;
use crate::failure::{CommandFailure, CommandResult};
use crate::https::failure;
use crate::output::log;

/// Fields of each request, as OpenTelemetry's programs take them: `name=value,name=value`.
const FIELDS: &str = "OTEL_EXPORTER_OTLP_HEADERS";
/// Tries to send the figures of one time. Counts go on, so the next figures have what was not sent.
const TRIES: u32 = 3;
/// Pause before the second try; twice as long before each further one.
const PAUSE: Duration = Duration::from_secs(1);

/// The thread that sends figures, until this is dropped. A request that is under way then is not
/// waited for.
pub(crate) struct OtlpExport {
    _stop: Sender<()>,
}

/// The figures to send, and the way to the collector.
struct Exporter {
    client: WebClient,
    fields: Vec<(String, String)>,
    served: Arc<WorkerGroup>,
    figures: SiteFigures,
    /// When the counts began.
    started: u64,
    is_failing: bool,
}

impl OtlpExport {
    /// Starts to send the figures, if the settings want it.
    pub(crate) fn start(
        config: &Config,
        sites: &Arc<Sites>,
        served: &Arc<WorkerGroup>,
    ) -> CommandResult<Option<Self>> {
        let Some(url) = &config.otlp else {
            return Ok(None);
        };
        let mut exporter = Exporter {
            client: WebClient::new(url, "admin.otlp").map_err(failure)?,
            fields: fields(&env::var(FIELDS).unwrap_or_default()),
            served: Arc::clone(served),
            figures: SiteFigures::new(sites),
            started: base_clock::unix_nanos(),
            is_failing: false,
        };
        let (stop, stopped) = channel::<()>();
        let interval = config.otlp_interval;
        let run = move || while exporter.send(&stopped) && goes_on(&stopped, interval) {};
        let thread = thread::Builder::new().name("otlp".to_owned());
        thread.spawn(run).map_err(|error| {
            CommandFailure::new(format!("cannot start the thread for admin.otlp: {error}"))
        })?;
        Ok(Some(Self { _stop: stop }))
    }
}

impl Exporter {
    /// Sends the figures of now. False once the server ends.
    fn send(&mut self, stopped: &Receiver<()>) -> bool {
        let mut problem = String::new();
        for attempt in 0..TRIES {
            if attempt > 0 && !goes_on(stopped, PAUSE * (1 << (attempt - 1))) {
                return false;
            }
            let times = (self.started, base_clock::unix_nanos());
            let body = otlp(&self.served, &self.figures, times).to_string();
            match self.client.post(&self.fields, body.into_bytes()) {
                Ok(200..=299) => {
                    if std::mem::take(&mut self.is_failing) {
                        log("note: the collector (admin.otlp) takes figures again");
                    }
                    return true;
                }
                Ok(status) => {
                    problem = format!("it answers with {status}");
                    // Others are for good: the same figures would be refused again.
                    if ![429, 502, 503, 504].contains(&status) {
                        break;
                    }
                }
                Err(error) => problem = error,
            }
        }
        if !std::mem::replace(&mut self.is_failing, true) {
            log(format_args!(
                "warning: the collector (admin.otlp) does not take figures, and is asked again and again: {problem}"
            ));
        }
        true
    }
}

/// Waits; false once the server ends.
fn goes_on(stopped: &Receiver<()>, pause: Duration) -> bool {
    stopped.recv_timeout(pause) == Err(RecvTimeoutError::Timeout)
}

/// The fields of a request to a collector.
fn fields(given: &str) -> Vec<(String, String)> {
    let given = given.split(',').filter_map(|field| field.split_once('='));
    let own = ("content-type".to_owned(), "application/json".to_owned());
    let given = given.map(|(name, value)| (name.trim().to_owned(), value.trim().to_owned()));
    [own].into_iter().chain(given).collect()
}
