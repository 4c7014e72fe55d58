//! `millpond serve`: a site on the network, until a signal stops it.

mod running;

use std::fs;
use std::io::{self, IsTerminal as _};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use millpond_http::{BACKLOG, ListenAddress, Listener, backlog_clamp};
use millpond_process::{
    Inherited, Notifier, Successor,
    descriptors::{self, DescriptorBudget},
    worker_count,
};
use millpond_site::{Config, SiteOptions, Sites, ip_address, listen_address};

use super::database_option::DatabaseOption;
use crate::access::AccessSlot;
use crate::admin::{self, Readiness};
use crate::console;
use crate::events::Events;
use crate::failure::{CommandFailure, CommandResult};
use crate::https::Https;
use crate::nightly::NightlyReports;
use crate::otlp::OtlpExport;
use crate::output::{self, note};
use crate::rights;
use crate::server::start_sites;
use crate::sockets::Sockets;
use running::{RunningServer, Upgrade};

/// Serve a site
#[derive(Args)]
pub(crate) struct ServeArgs {
    /// The site's folder
    #[arg(default_value = ".")]
    site: PathBuf,
    /// Answer on this address instead of server.listen; port 0 is any free one, unix:PATH a unix
    /// socket
    #[arg(long, value_name = "ADDR", value_parser = listen_address)]
    listen: Option<ListenAddress>,
    /// Serve this name by https, with a certificate that is got and renewed by itself; may be
    /// repeated, and stands in place of tls.domains. localhost is for development
    #[arg(long, value_name = "NAME")]
    domain: Vec<String>,
    /// Answer https on this address instead of tls.listen
    #[arg(long, value_name = "ADDR", value_parser = ip_address)]
    tls_listen: Option<SocketAddr>,
    /// Answer explain, counters, live and ready on this address instead of admin.listen
    #[arg(long, value_name = "ADDR", value_parser = ip_address)]
    admin_listen: Option<SocketAddr>,
    /// Threads that serve, instead of server.workers; 0 is one for each core
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(0..=1024))]
    workers: Option<u16>,
    /// Become this user instead of server.user, if root starts the server
    #[arg(long, value_name = "USER")]
    user: Option<String>,
    /// Write a report of each day into this folder in the night after it, from the history of
    /// figures
    #[arg(long, value_name = "DIR")]
    every_night: Option<PathBuf>,
    /// Keep nothing in memory: every request goes to the database
    #[arg(long)]
    no_cache: bool,
    /// Show errors in the browser, and reload pages when a file changes; only on loopback. The
    /// default on a terminal
    #[arg(long, conflicts_with = "no_dev")]
    dev: bool,
    /// Serve on a terminal as a server in production does
    #[arg(long)]
    no_dev: bool,
    #[command(flatten)]
    database: DatabaseOption,
}

/// How long the start waits for a database server: both may have been started together.
const DATABASE_START_TIMEOUT: Duration = Duration::from_secs(30);
/// How long a process that takes the place of another makes pages that were hot before it serves.
const WARM_TIMEOUT: Duration = Duration::from_secs(5);

impl ServeArgs {
    pub(crate) fn run(self) -> CommandResult {
        let mut inherited = Inherited::take().map_err(CommandFailure::new)?;
        let mut config = self.config()?;
        output::write_json(config.log_format == "json");
        rights::keep_sandbox(&mut config, &inherited);
        descriptors::raise();
        let workers = worker_count(self.workers.map_or(config.workers, usize::from));
        let sockets = Sockets::open(&config, workers, &mut inherited)?;
        let workers = sockets.site.len();
        let dev = self.is_dev(&config, sockets.outside())?;
        // From here on as another user; then the successor is forked, and the sandbox entered, by
        // the one thread that there is.
        rights::become_user(&self.site, &config)?;
        let successor = Successor::prepare(&sockets.named(), config.sandbox);
        let notifier = Notifier::connect();
        let reports = self.reports(&config)?;
        rights::confine(&self.site, &config, self.every_night.as_deref(), dev)?;
        let events = Events::listen()?;
        let log = open_log(&config)?;
        let mut https = Https::open(&self.site, &config)?;
        let cache = config.cache && !self.no_cache;
        let is_timed = config.timing == "on" || config.timing == "dev" && dev;
        let options = SiteOptions {
            is_timed,
            ..options(cache, workers, dev)
        };
        let sites = Arc::new(Sites::open(&self.site, &config, options)?);
        if let Some(https) = &mut https {
            https.show_stored();
        }
        let mut limits = config.limits.clone();
        let budget = DescriptorBudget::now(limits.connections, workers);
        limits.connections = budget.connections();
        print_differences(cache, &budget);
        if inherited.is_successor() {
            // The old process serves meanwhile.
            sites.wait_until_warm(WARM_TIMEOUT);
        }
        let listeners = match &https {
            Some(https) => https.secure(sockets.site, &config),
            None => sockets.site.into_iter().map(Listener::from).collect(),
        };
        let server = start_sites(&sites, listeners, &limits, (&log, is_timed), &events.sender)
            .map_err(|error| CommandFailure::new(format!("cannot start the workers: {error}")))?;
        let redirect = match (&https, sockets.redirect) {
            (Some(https), Some(plain)) => {
                let port = server.address().ip().map_or(443, |address| address.port());
                Some(https.redirect(plain, port, &limits, &events.sender)?)
            }
            _ => None,
        };
        let readiness = Arc::new(Readiness {
            max_feed_age: config.max_feed_age,
            ..Readiness::default()
        });
        let mut console = None;
        let admin = sockets.admin.map(|admin| {
            let served = server.group();
            let states = https.as_ref().map(Https::state);
            console = console::start(&self.site, &config, &sites, (served, &log), states);
            let shown = (&sites, console.as_ref());
            admin::start(admin, &readiness, shown, served, &events.sender)
        });
        let admin = admin.transpose()?;
        if console.is_none() && !config.alerts.is_empty() {
            note("warning: no [[alert]] is looked at, because there is no console");
        }
        let reports = NightlyReports::start(reports.filter(|_| console.is_some()))?;
        let otlp = OtlpExport::start(&config, &sites, server.group())?;
        let mut running = RunningServer {
            upgrade: Upgrade::new(successor, &events.sender),
            notifier: notifier.unwrap_or_else(|error| {
                note(format_args!(
                    "note: systemd cannot be told anything (NOTIFY_SOCKET): {error}"
                ));
                Notifier::default()
            }),
            readiness,
            https,
            redirect,
            domain: self.domain,
            admin,
            console,
            reports,
            _otlp: otlp,
            dir: self.site,
            database: self.database,
            config,
            sites,
            log,
            server,
        };
        running.begin(&mut inherited)?;
        let end = running.until_stopped(&events);
        running.stop(end, &events)
    }
}

impl ServeArgs {
    /// The configuration with what the command line changes.
    fn config(&self) -> CommandResult<Config> {
        let mut config = self.database.read(&self.site)?;
        config.listen = self.listen.clone().unwrap_or(config.listen);
        config.user = self.user.clone().or(config.user);
        config.tls.listen = self.tls_listen.or(config.tls.listen);
        config.admin = self.admin_listen.or(config.admin);
        if !self.domain.is_empty() {
            let set = config.set_domains(&self.domain);
            set.map_err(|message| CommandFailure::new(format!("--domain {message}")))?;
        }
        config.check_tls()?;
        Ok(config)
    }

    /// The history and the folder for the reports of each night, if they are wanted.
    fn reports(&self, config: &Config) -> CommandResult<Option<(PathBuf, PathBuf)>> {
        let Some(folder) = &self.every_night else {
            return Ok(None);
        };
        let history = config.admin.and_then(|_| config.history(&self.site));
        let history = history.ok_or_else(|| {
            CommandFailure::usage("--every-night has no history of figures to report")
                .hint("write [admin] and listen = \"127.0.0.1:9180\" into millpond.toml")
        })?;
        fs::create_dir_all(folder).map_err(|error| {
            CommandFailure::new(format!("--every-night {}: {error}", folder.display()))
        })?;
        Ok(Some((history, folder.clone())))
    }

    /// True if this server is for development: if that is asked for, and by default on a terminal.
    /// Never where others than this machine could reach it, which they can at `outside`.
    fn is_dev(&self, config: &Config, outside: Option<ListenAddress>) -> CommandResult<bool> {
        match outside {
            None if self.dev => Ok(true),
            None => Ok(config.dev && !self.no_dev && io::stdout().is_terminal()),
            Some(address) if self.dev => {
                let message = format!(
                    "--dev shows the inside of the site, and {address} is not this machine alone"
                );
                let remedy = "answer on loopback (--listen 127.0.0.1:8080, with https also --tls-listen 127.0.0.1:8443), or leave --dev out";
                Err(CommandFailure::usage(message).hint(remedy))
            }
            Some(_) => Ok(false),
        }
    }
}

fn options(cache: bool, workers: usize, dev: bool) -> SiteOptions {
    SiteOptions {
        cache,
        workers,
        // In development the browser says what is awaited.
        start_timeout: if dev {
            Duration::ZERO
        } else {
            DATABASE_START_TIMEOUT
        },
        dev,
        log: |line| output::log(format_args!("millpond: {line}")),
        ..SiteOptions::default()
    }
}

/// The log that the configuration names.
fn open_log(config: &Config) -> CommandResult<Arc<AccessSlot>> {
    let log = Arc::<AccessSlot>::default();
    log.cut_addresses(config.cut_addresses);
    log.open(config).map_err(|(path, error)| {
        CommandFailure::new(format!(
            "cannot write the access log {}: {error}",
            path.display()
        ))
        .hint("mend log.access in millpond.toml, or take it out")
    })?;
    Ok(log)
}

/// Prints what differs from the configuration, or would surprise a reader of measurements.
fn print_differences(cache: bool, budget: &DescriptorBudget) {
    if !cache {
        note("note: the cache is off, every request goes to the database");
    }
    if let Some(allowed) = backlog_clamp() {
        note(format_args!(
            "note: {BACKLOG} connections of each worker may wait to be accepted, but the kernel holds only {allowed}, and \
             one more tries again after a second; `sysctl -w net.core.somaxconn={BACKLOG}` before the start allows all"
        ));
    }
    if let Some(shortage) = budget.shortage() {
        note(format_args!("note: {shortage}"));
    }
}
