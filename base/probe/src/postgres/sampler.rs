//! The thread that samples, once a second, through lost connections too.

use std::collections::BTreeMap;
use std::sync::mpsc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use tokio::sync::oneshot;
use tokio::time::{MissedTickBehavior, interval, sleep};
use tokio_postgres::Config;

use super::PgError;
use super::model::{PgGap, PgProbe, PgSample};
use super::session::{PgSession, SampleFailure};

/// Time between two samples.
const INTERVAL: Duration = Duration::from_secs(1);
/// The first pause before a lost connection is tried again; each further one is twice as long…
const FIRST_PAUSE: Duration = Duration::from_millis(250);
/// …up to this.
const LONGEST_PAUSE: Duration = Duration::from_secs(2);

/// A running probe.
#[derive(Debug)]
pub struct PgProber {
    stop: oneshot::Sender<()>,
    thread: JoinHandle<PgProbe>,
}

impl PgProber {
    /// Connects to `url` (`postgres://user@host/database`, or libpq's `host=… user=…`) and samples
    /// from now on. Without a password in the URL, `PGPASSWORD` is used. The connection is not
    /// encrypted.
    ///
    /// # Errors
    /// The URL is invalid, or the server cannot be reached, refuses, or is too old: reported now,
    /// not after the measurement.
    pub fn start(url: &str) -> Result<Self, PgError> {
        let config = config(url)?;
        let (stop, stopped) = oneshot::channel();
        let (sender, connected) = mpsc::channel();
        let thread = thread::Builder::new()
            .name("probe-postgres".to_owned())
            .spawn(move || watch(&config, stopped, &sender))
            .map_err(PgError::thread)?;
        match connected.recv() {
            Ok(Ok(())) => Ok(Self { stop, thread }),
            Ok(Err(error)) => Err(error),
            Err(_) => Err(PgError::connect("the probe ended at once")),
        }
    }

    /// Takes a last sample, which an unresponsive server may delay for some seconds, and returns
    /// all samples. Times count from `origin`, a moment of the monotonic clock in nanoseconds.
    pub fn finish(self, origin: u64) -> PgProbe {
        // The join reports an ended thread.
        let _ = self.stop.send(());
        let probe = self.thread.join().unwrap_or_else(|_| PgProbe {
            unavailable: BTreeMap::from([("everything".to_owned(), "the probe failed".to_owned())]),
            ..PgProbe::default()
        });
        probe.since(seconds(origin))
    }
}

fn config(url: &str) -> Result<Config, PgError> {
    let bad = |error: &dyn std::error::Error| {
        let cause = error.source().map(|source| format!(": {source}"));
        PgError::url(format!("{error}{}", cause.unwrap_or_default()))
    };
    let mut config: Config = url
        .parse()
        .map_err(|error: tokio_postgres::Error| bad(&error))?;
    if config.get_hosts().is_empty() && config.get_hostaddrs().is_empty() {
        return Err(PgError::url("it names no host"));
    }
    if config.get_ssl_mode() == tokio_postgres::config::SslMode::Require {
        return Err(PgError::url(
            "sslmode=require asks for an encrypted connection, which the probe has not",
        ));
    }
    if config.get_password().is_none()
        && let Ok(password) = std::env::var("PGPASSWORD")
    {
        config.password(password);
    }
    config
        .application_name("millpond-probe")
        .connect_timeout(Duration::from_secs(5));
    Ok(config)
}

/// The body of the thread.
fn watch(
    config: &Config,
    stopped: oneshot::Receiver<()>,
    connected: &mpsc::Sender<Result<(), PgError>>,
) -> PgProbe {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    let runtime = match runtime {
        Ok(runtime) => runtime,
        Err(error) => {
            let _ = connected.send(Err(PgError::thread(error)));
            return PgProbe::default();
        }
    };
    runtime.block_on(async {
        let mut probe = PgProbe::default();
        let session = match PgSession::open(config, &mut probe.unavailable).await {
            Ok(session) => session,
            Err(error) => {
                let _ = connected.send(Err(error));
                return probe;
            }
        };
        probe.server = session.server.clone();
        let mut watcher = Watcher {
            probe,
            session: Some(session),
            connection: 0,
            gap: None,
        };
        watcher.sample().await;
        let _ = connected.send(Ok(()));
        watcher.go_on(config, stopped).await;
        watcher.probe
    })
}

/// State of the watching thread.
struct Watcher {
    probe: PgProbe,
    session: Option<PgSession>,
    connection: u64,
    /// Since when the server does not answer, and why.
    gap: Option<(f64, String)>,
}

impl Watcher {
    /// Samples until it is stopped.
    async fn go_on(&mut self, config: &Config, mut stopped: oneshot::Receiver<()>) {
        let mut tick = interval(INTERVAL);
        tick.set_missed_tick_behavior(MissedTickBehavior::Skip);
        tick.tick().await;
        loop {
            tokio::select! {
                biased;
                _ = &mut stopped => break,
                () = self.next(config, &mut tick) => {}
            }
        }
        // The last one ends the last interval; without a connection there is none.
        self.sample().await;
        if let Some((from_s, reason)) = self.gap.take() {
            self.close_gap(from_s, reason);
        }
    }

    /// The next sample in its time, or a new connection.
    async fn next(&mut self, config: &Config, tick: &mut tokio::time::Interval) {
        if self.session.is_some() {
            tick.tick().await;
            self.sample().await;
            return;
        }
        let mut pause = FIRST_PAUSE;
        loop {
            sleep(pause).await;
            if let Ok(session) = PgSession::open(config, &mut self.probe.unavailable).await {
                self.session = Some(session);
                self.connection += 1;
                self.sample().await;
                return;
            }
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }

    /// One sample now; or the beginning of a gap.
    async fn sample(&mut self) {
        let Some(session) = &self.session else { return };
        let asked = base_clock::now();
        match session.sample(&mut self.probe.unavailable).await {
            Ok(sample) => {
                // The server's moment lies between question and answer.
                let moment = asked + (base_clock::now() - asked) / 2;
                if let Some((from_s, reason)) = self.gap.take() {
                    self.close_gap(from_s, reason);
                }
                self.probe.samples.push(PgSample {
                    at_s: seconds(moment),
                    connection: self.connection,
                    ..sample
                });
            }
            Err(SampleFailure::Refused(reason)) => self.open_gap(asked, reason),
            Err(SampleFailure::Lost(reason)) => {
                self.session = None;
                self.open_gap(asked, reason);
            }
        }
    }

    fn open_gap(&mut self, at: u64, reason: String) {
        let from = self.probe.samples.last().map(|sample| sample.at_s);
        self.gap
            .get_or_insert((from.unwrap_or(seconds(at)), reason));
    }

    fn close_gap(&mut self, from_s: f64, reason: String) {
        self.probe.gaps.push(PgGap {
            from_s,
            to_s: seconds(base_clock::now()),
            reason,
        });
    }
}

fn seconds(nanoseconds: u64) -> f64 {
    nanoseconds as f64 / 1e9
}

#[cfg(test)]
mod tests {
    use super::config;

    #[test]
    fn a_bad_address_is_named() {
        for (url, word) in [
            ("mysql://h/", "postgres://user@host"),
            ("postgres://h:port/", "port"),
            ("postgres://h/?sslmode=require", "encrypted"),
            ("user=me", "no host"),
            ("", "no host"),
        ] {
            let error = config(url).expect_err(url).to_string();
            assert!(error.contains(word), "{url}: {error}");
        }
        assert!(config("host=localhost user=me").is_ok());
        assert!(config("postgres://me:secret@[::1]:5433/db").is_ok());
    }
}
