//! `millpond serve`: a site on the network, until a signal stops it.

use std::io::{self, IsTerminal as _};
use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::RecvTimeoutError;
use std::time::Duration;

use clap::Args;
use millpond_http::{BACKLOG, Listener, backlog_clamp};
use millpond_process::{
    Workers,
    descriptors::{self, DescriptorBudget},
    worker_count,
};
use millpond_site::{Config, SiteOptions, Sites, listen_address};

use super::database_option::DatabaseOption;
use crate::access::AccessSlot;
use crate::admin;
use crate::events::{Event, Events};
use crate::failure::{CommandFailure, CommandResult};
use crate::https::{Https, bind_first};
use crate::output::{log, note, say};
use crate::server::{bind, start_sites};
use base_chart::number;

/// Serve a site
#[derive(Args)]
pub(crate) struct ServeArgs {
    /// The site's folder
    #[arg(default_value = ".")]
    site: PathBuf,
    /// Answer on this address instead of server.listen; port 0 is any free one
    #[arg(long, value_name = "ADDR", value_parser = listen_address)]
    listen: Option<SocketAddr>,
    /// Serve this name by https, with a certificate that is got and renewed by itself; may be
    /// repeated, and stands in place of tls.domains. localhost is for development
    #[arg(long, value_name = "NAME")]
    domain: Vec<String>,
    /// Answer https on this address instead of tls.listen
    #[arg(long, value_name = "ADDR", value_parser = listen_address)]
    tls_listen: Option<SocketAddr>,
    /// Answer explain and stats on this address instead of admin.listen
    #[arg(long, value_name = "ADDR", value_parser = listen_address)]
    admin_listen: Option<SocketAddr>,
    /// Threads that serve, instead of server.workers; 0 is one for each core
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(0..=1024))]
    workers: Option<u16>,
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
/// How often a server of https looks whether the operator is to be reminded of something.
const REMINDER_INTERVAL: Duration = Duration::from_secs(60 * 60);
/// The option with the address for http.
const LISTEN: &str = "--listen";

impl ServeArgs {
    pub(crate) fn run(self) -> CommandResult {
        let events = Events::listen()?;
        let config = self.config()?;
        descriptors::raise();
        let log = open_log(&config)?;
        let workers = worker_count(self.workers.map_or(config.workers, usize::from));
        let mut https = Https::open(&self.site, &config)?;
        let dev = self.is_dev(&config, https.is_some())?;
        let (listeners, plain) = listeners(&config, https.as_ref(), workers)?;
        let cache = config.cache && !self.no_cache;
        let options = SiteOptions {
            cache,
            workers,
            // In development the browser says what is awaited.
            start_timeout: if dev {
                Duration::ZERO
            } else {
                DATABASE_START_TIMEOUT
            },
            dev,
            log: |line| crate::output::log(format_args!("millpond: {line}")),
            ..SiteOptions::default()
        };
        let sites = Arc::new(Sites::open(&self.site, &config, options)?);
        if let Some(https) = &mut https {
            https.show_stored();
        }
        let mut limits = config.limits.clone();
        let budget = DescriptorBudget::now(limits.connections, workers);
        limits.connections = budget.connections();
        print_differences(cache, &budget);
        let server = start_sites(&sites, listeners, &limits, &log, &events.sender)
            .map_err(|error| CommandFailure::new(format!("cannot start the workers: {error}")))?;
        let redirect = match (&https, plain) {
            (Some(https), Some(plain)) => {
                Some(https.redirect(plain, server.address(), &limits, &events.sender)?)
            }
            _ => None,
        };
        let admin = config
            .admin
            .map(|address| admin::start(address, &sites, server.group(), &events.sender))
            .transpose()?;
        print_address(&self.site, https.as_ref(), &server, &sites);
        if let Some(https) = &mut https {
            https.print_trust(&self.site, server.address().port());
            https.begin_renewals()?;
        }
        if let Some(admin) = &admin {
            note(format_args!(
                "note: `millpond explain` is answered on {}",
                admin.address()
            ));
        }
        let mut running = RunningServer {
            https,
            redirect,
            domain: self.domain,
            admin,
            dir: self.site,
            database: self.database,
            config,
            sites,
            log,
            server,
        };
        let reason = running.until_stopped(&events);
        running.stop(reason)
    }
}

/// Prints where the site is served, and how a browser becomes the developer's.
fn print_address(site: &Path, https: Option<&Https>, server: &Workers, sites: &Sites) {
    let url = match https {
        Some(https) => https.url(server.address()),
        None => format!("http://{}", server.address()),
    };
    say(format_args!("millpond serving {} on {url}", shown(site)));
    if let Some(path) = sites.dev_path() {
        note(format_args!(
            "note: development: open {url}{path} once, and the browser shows errors and reloads pages when a \
             file changes (--no-dev: not)"
        ));
    }
}

impl ServeArgs {
    /// The configuration with what the command line changes.
    fn config(&self) -> CommandResult<Config> {
        let mut config = self.database.read(&self.site)?;
        config.listen = self.listen.unwrap_or(config.listen);
        config.tls.listen = self.tls_listen.or(config.tls.listen);
        config.admin = self.admin_listen.or(config.admin);
        if !self.domain.is_empty() {
            let set = config.set_domains(&self.domain);
            set.map_err(|message| CommandFailure::new(format!("--domain {message}")))?;
        }
        config.check_tls()?;
        Ok(config)
    }

    /// True if this server is for development: if that is asked for, and by default on a terminal.
    /// Never where others than this machine could reach it.
    fn is_dev(&self, config: &Config, is_https: bool) -> CommandResult<bool> {
        let addresses = match is_https {
            true => config.https_addresses().concat(),
            false => vec![config.listen],
        };
        let mut outside = addresses
            .iter()
            .filter(|address| !address.ip().is_loopback());
        match outside.next() {
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

/// Opens the listeners of the workers, and with https also that of the redirect. A port of http
/// that was not asked for may be taken: https does not need it.
fn listeners(
    config: &Config,
    https: Option<&Https>,
    workers: usize,
) -> CommandResult<(Vec<Listener>, Option<Vec<TcpListener>>)> {
    let Some(https) = https else {
        let listeners = bind(config.listen, workers, LISTEN)?;
        return Ok((listeners.into_iter().map(Listener::from).collect(), None));
    };
    let [secure, plain] = config.https_addresses();
    let secure = https.secure(bind_first(&secure, workers, "--tls-listen")?, config);
    match bind_first(&plain, 1, LISTEN) {
        Ok(plain) => Ok((secure, Some(plain))),
        Err(failure) if config.is_listen_given() => Err(failure),
        Err(failure) => {
            failure.print();
            note(
                "note: the site is served by https only: http is not redirected, and an authority can check \
                 its names on the port of https only",
            );
            Ok((secure, None))
        }
    }
}

/// The log that the configuration names.
fn open_log(config: &Config) -> CommandResult<Arc<AccessSlot>> {
    let log = Arc::<AccessSlot>::default();
    log.open(config.access_log.as_deref())
        .map_err(|(path, error)| {
            CommandFailure::new(format!(
                "cannot write the access log {}: {error}",
                path.display()
            ))
            .hint("mend log.access in millpond.toml, or take it out")
        })?;
    Ok(log)
}

/// The folder as the first line shows it.
fn shown(dir: &Path) -> String {
    if dir == Path::new(".")
        && let Ok(here) = std::env::current_dir()
    {
        return here.display().to_string();
    }
    dir.display().to_string()
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

/// A server and what its signals act on.
struct RunningServer {
    https: Option<Https>,
    /// Workers that answer by http while the site is served by https.
    redirect: Option<Workers>,
    /// The names of the command line, which stand in place of those of the configuration.
    domain: Vec<String>,
    admin: Option<Workers>,
    dir: PathBuf,
    database: DatabaseOption,
    /// The configuration in use: as read at the start, with the later changes that could be
    /// applied.
    config: Config,
    sites: Arc<Sites>,
    log: Arc<AccessSlot>,
    server: Workers,
}

impl RunningServer {
    /// Serves until a signal, or until a worker dies, which gives the reason.
    fn until_stopped(&mut self, events: &Events) -> Option<String> {
        loop {
            let event = match &mut self.https {
                Some(https) => {
                    https.remind();
                    events.receiver.recv_timeout(REMINDER_INTERVAL)
                }
                None => events.receiver.recv().map_err(RecvTimeoutError::from),
            };
            match event {
                Ok(Event::Reload) => self.reload(),
                Ok(Event::WorkerEnded(Some(reason))) => {
                    return Some(format!("a worker ended: {reason}"));
                }
                Ok(Event::WorkerEnded(None)) | Err(RecvTimeoutError::Timeout) => {}
                Ok(Event::Stop) | Err(RecvTimeoutError::Disconnected) => return None,
            }
        }
    }

    /// SIGHUP: reloads the configuration, the log and the folder independently; a faulty part stays
    /// as it was.
    fn reload(&mut self) {
        match self.database.read(&self.dir) {
            Ok(config) => self.apply(&config),
            Err(failure) => {
                failure.log();
                log("note: the configuration in use stays");
            }
        }
        if let Some(https) = &self.https {
            https.reload();
        }
        if let Err(error) = self.log.reopen() {
            log(format_args!(
                "error: the access log cannot be opened again: {error}"
            ));
        }
        match self.sites.reload() {
            Ok(()) => log("note: the site was read again"),
            Err(problems) => {
                CommandFailure::Problems(problems).log();
                log("note: the site as it was stays");
            }
        }
    }

    fn apply(&mut self, new: &Config) {
        // What the command line sets does not change.
        let mut new = new.clone();
        new.listen = self.config.listen;
        new.tls.listen = self.config.tls.listen;
        if !self.domain.is_empty() {
            new.tls.domains.clone_from(&self.config.tls.domains);
        }
        let new = &new;
        if new.access_log != self.config.access_log {
            match self.log.open(new.access_log.as_deref()) {
                Ok(()) => self.config.access_log = new.access_log.clone(),
                Err((path, error)) => log(format_args!(
                    "error: cannot write the access log {}: {error}\nnote: the log in use stays",
                    path.display()
                )),
            }
        }
        let waiting = self.config.differences(new);
        let waiting: Vec<_> = waiting
            .iter()
            .filter(|key| *key != "log.access")
            .map(String::as_str)
            .collect();
        if !waiting.is_empty() {
            log(format_args!(
                "note: changed, but only a restart applies it: {}",
                waiting.join(", ")
            ));
        }
    }

    /// Lets requests finish, then the site and the log.
    fn stop(mut self, reason: Option<String>) -> CommandResult {
        if let Some(https) = &mut self.https {
            https.stop_renewals();
        }
        for server in [&mut self.admin, &mut self.redirect].into_iter().flatten() {
            let _ = server.stop();
        }
        self.sites.stop_dev();
        let (stuck, _) = self.server.stop();
        self.sites.stop();
        let lost = self.log.close();
        note(self.summary());
        if lost > 0 {
            note(format_args!(
                "note: {lost} lines of the access log were lost, its disk was too slow"
            ));
        }
        match reason {
            Some(reason) => Err(CommandFailure::new(reason)),
            None if stuck > 0 => Err(CommandFailure::new(format!(
                "{stuck} workers did not end in time and were cut off"
            ))),
            None => Ok(()),
        }
    }

    fn summary(&self) -> String {
        let (http, sites) = (self.server.group().stats(), self.sites.stats());
        let hits: u64 = sites.iter().map(|site| site.hits).sum();
        let others = sites
            .iter()
            .map(|site| site.misses + site.waits + site.bypassed);
        let asked = hits + others.sum::<u64>();
        let share = if asked == 0 {
            "no page was asked for".to_owned()
        } else {
            format!(
                "{} of {} page{} from memory",
                number::percent(hits as f64 / asked as f64),
                number::count(asked),
                if asked == 1 { "" } else { "s" }
            )
        };
        let refused = sites
            .iter()
            .map(|site| site.admission.refused + site.admission.expired);
        let refused = match refused.sum() {
            0 => String::new(),
            refused => format!(
                ", {} refused because there was too much to do",
                number::count(refused)
            ),
        };
        let saved: f64 = sites
            .iter()
            .flat_map(|site| &site.routes)
            .map(|route| route.saved.as_secs_f64())
            .sum();
        format!(
            "millpond served {} request{}: {share}, {} saved{refused}",
            number::count(http.requests),
            if http.requests == 1 { "" } else { "s" },
            number::seconds(saved)
        )
        .replace(['\u{202f}', '\u{a0}'], " ")
    }
}
