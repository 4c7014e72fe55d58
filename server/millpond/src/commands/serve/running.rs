//! A server from its first request to its end, and what its signals do.

use std::path::{Path, PathBuf};
use std::process;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{RecvTimeoutError, Sender};
use std::time::Duration;
use std::{env, io};

use base_chart::number;
use base_clock::Boottime;
use millpond_console::Console;
use millpond_http::ListenAddress;
use millpond_process::{Inherited, Notifier, Successor, Workers};
use millpond_site::{Config, Sites};

use super::super::database_option::DatabaseOption;
use crate::access::AccessSlot;
use crate::admin::Readiness;
use crate::events::{Event, Events};
use crate::failure::{CommandFailure, CommandResult};
use crate::https::Https;
use crate::nightly::NightlyReports;
use crate::otlp::OtlpExport;
use crate::output::{self, log, note, say};

/// How often a server of https looks whether the operator is to be reminded of something.
const REMINDER_INTERVAL: Duration = Duration::from_secs(60 * 60);

/// Why a server ends.
pub(super) enum End {
    /// A signal.
    Stopped,
    /// Another process, of this number, serves with its sockets.
    Replaced(u32),
    /// A worker ended by itself, with a reason.
    Failed(String),
}

/// The way to another process that takes the place of this one.
pub(super) struct Upgrade {
    successor: io::Result<Successor>,
    /// True while a process is starting.
    is_under_way: bool,
}

impl Upgrade {
    /// Sends the answers of a successor to `events`.
    pub(super) fn new(successor: io::Result<Successor>, events: &Sender<Event>) -> Self {
        let events = events.clone();
        let successor = successor.and_then(|mut successor| {
            successor.listen(move |answer| {
                // The receiver may be gone; then the answer is not needed.
                let _ = events.send(Event::Successor(answer));
            })?;
            Ok(successor)
        });
        Self {
            successor,
            is_under_way: false,
        }
    }

    /// Lets the process that has taken the place of this one go on alone.
    fn release(&mut self) {
        if let Ok(successor) = &mut self.successor {
            successor.release();
        }
    }

    /// Ends the process that waits to start a successor, which holds the sockets.
    fn end(&mut self) {
        self.successor = Err(io::Error::other("the server is ending"));
    }

    /// Starts the program that is on disk.
    fn start(&mut self) -> Result<(), String> {
        if process::id() == 1 {
            return Err(
                "the first process of a container cannot be replaced; start another container"
                    .to_owned(),
            );
        }
        if self.is_under_way {
            return Err("another process is starting already".to_owned());
        }
        let started = match &mut self.successor {
            Ok(successor) => successor.start().map_err(|error| error.to_string()),
            Err(error) => Err(error.to_string()),
        };
        started.map_err(|error| {
            format!("the process that starts it is missing ({error}); a restart mends that")
        })?;
        self.is_under_way = true;
        Ok(())
    }
}

/// A server and what its signals act on.
pub(super) struct RunningServer {
    pub(super) upgrade: Upgrade,
    pub(super) notifier: Notifier,
    pub(super) readiness: Arc<Readiness>,
    pub(super) https: Option<Https>,
    /// Workers that answer by http while the site is served by https.
    pub(super) redirect: Option<Workers>,
    /// The names of the command line, which stand in place of those of the configuration.
    pub(super) domain: Vec<String>,
    pub(super) admin: Option<Workers>,
    /// The console on the owner's listener.
    pub(super) console: Option<Arc<Console>>,
    pub(super) reports: Option<NightlyReports>,
    pub(super) _otlp: Option<OtlpExport>,
    pub(super) dir: PathBuf,
    pub(super) database: DatabaseOption,
    /// The configuration in use: as read at the start, with the later changes that could be
    /// applied.
    pub(super) config: Config,
    pub(super) sites: Arc<Sites>,
    pub(super) log: Arc<AccessSlot>,
    pub(super) server: Workers,
}

impl RunningServer {
    /// Says where the site is served, begins what needs a server that answers, and reports that
    /// this one does.
    pub(super) fn begin(&mut self, inherited: &mut Inherited) -> CommandResult {
        let url = self.print_address();
        if let Some(https) = &mut self.https {
            https.print_trust(
                &self.dir,
                self.server
                    .address()
                    .ip()
                    .map_or(443, |address| address.port()),
            );
            https.begin_renewals()?;
        }
        if let Some(admin) = &self.admin {
            note(format_args!(
                "note: `millpond explain` is answered on {}",
                admin.address()
            ));
            if self.console.is_some() {
                note(format_args!(
                    "note: the console shows what the server does: http://{}/",
                    admin.address()
                ));
            }
        }
        // The process whose place this one takes says so when it is certain that this one lasts.
        let main = match inherited.is_successor() {
            true => String::new(),
            false => format!("MAINPID={}\n", process::id()),
        };
        let ready = format!("READY=1\n{main}STATUS=serving on {url}");
        self.notifier.tell(&ready);
        inherited.answer();
        Ok(())
    }

    /// Prints where the site is served, and how a browser becomes the developer's.
    fn print_address(&self) -> String {
        let address = self.server.address();
        let url = match (&self.https, address) {
            (Some(https), _) => https.url(address),
            (None, ListenAddress::Ip(address)) => format!("http://{address}"),
            (None, path) => path.to_string(),
        };
        say(format_args!(
            "millpond serving {} on {url}",
            shown(&self.dir)
        ));
        if let Some(path) = self.sites.dev_path() {
            note(format_args!(
                "note: development: open {url}{path} once, and the browser shows errors and reloads pages when a \
                 file changes (--no-dev: not)"
            ));
        }
        url
    }

    /// Serves until a signal, another process, or the end of a worker.
    pub(super) fn until_stopped(&mut self, events: &Events) -> End {
        let reminder = self.https.is_some().then_some(REMINDER_INTERVAL);
        let waits = [reminder, self.notifier.watchdog()];
        let wait = waits.into_iter().flatten().min();
        loop {
            if let Some(https) = &mut self.https {
                https.remind();
            }
            if self.notifier.watchdog().is_some() {
                self.notifier.keep_alive();
            }
            let event = match wait {
                Some(wait) => events.receiver.recv_timeout(wait),
                None => events.receiver.recv().map_err(RecvTimeoutError::from),
            };
            match event {
                Ok(Event::Reload) => self.reload(),
                Ok(Event::Upgrade) => self.begin_upgrade(),
                Ok(Event::Successor(Ok(process))) => return End::Replaced(process),
                Ok(Event::Successor(Err(reason))) => self.go_on(&reason),
                Ok(Event::WorkerEnded(Some(reason))) => {
                    return End::Failed(format!("a worker ended: {reason}"));
                }
                Ok(Event::WorkerEnded(None)) | Err(RecvTimeoutError::Timeout) => {}
                Ok(Event::Stop) | Err(RecvTimeoutError::Disconnected) => return End::Stopped,
            }
        }
    }

    /// SIGUSR2: starts the program that is on disk now, with the sockets of this one.
    fn begin_upgrade(&mut self) {
        // The other process makes these pages before it serves.
        self.sites.write_warm_lists();
        match self.upgrade.start() {
            Ok(()) => log("note: another process is starting, to take the place of this one"),
            Err(reason) => log(format_args!(
                "error: no process takes the place of this one: {reason}"
            )),
        }
    }

    fn go_on(&mut self, reason: &str) {
        self.upgrade.is_under_way = false;
        self.notifier.tell(&format!("MAINPID={}", process::id()));
        log(format_args!(
            "error: no process takes the place of this one, which goes on: {reason}"
        ));
    }

    /// SIGHUP: reloads the configuration, the log and the folder independently; a faulty part stays
    /// as it was.
    fn reload(&mut self) {
        let now = base_clock::now() / 1000;
        self.notifier
            .tell(&format!("RELOADING=1\nMONOTONIC_USEC={now}"));
        self.read_again();
        self.notifier.tell("READY=1");
    }

    fn read_again(&mut self) {
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
        new.listen.clone_from(&self.config.listen);
        new.user.clone_from(&self.config.user);
        new.tls.listen = self.config.tls.listen;
        if !self.domain.is_empty() {
            new.tls.domains.clone_from(&self.config.tls.domains);
        }
        let new = &new;
        self.log.cut_addresses(new.cut_addresses);
        self.config.cut_addresses = new.cut_addresses;
        let of_log = |config: &Config| (config.access_log.clone(), config.log_format);
        if of_log(new) != of_log(&self.config) {
            match self.log.open(new) {
                Ok(()) => {
                    (self.config.access_log, self.config.log_format) = of_log(new);
                    output::write_json(new.log_format == "json");
                }
                Err((path, error)) => {
                    let is_refused =
                        self.config.sandbox && error.kind() == io::ErrorKind::PermissionDenied;
                    log(format_args!(
                        "error: cannot write the access log {}: {error}\nnote: the log in use stays{}",
                        path.display(),
                        match is_refused {
                            true =>
                                "; the sandbox has only the folders that were named at the start, so an upgrade (SIGUSR2) \
                                 or a restart applies it",
                            false => "",
                        }
                    ));
                }
            }
        }
        let waiting = self.config.differences(new);
        let waiting: Vec<_> = waiting
            .iter()
            .filter(|key| !key.starts_with("log."))
            .map(String::as_str)
            .collect();
        if !waiting.is_empty() {
            log(format_args!(
                "note: changed, but only a restart applies it: {}",
                waiting.join(", ")
            ));
        }
    }

    /// Goes on for `server.drain_delay` while `/ready` says that the server is ending.
    fn delay(&self, events: &Events) {
        let until = Boottime::now().plus(self.config.drain_delay);
        loop {
            let left = until.since(Boottime::now());
            match events.receiver.recv_timeout(left) {
                Ok(Event::WorkerEnded(Some(_))) | Err(_) => return,
                Ok(_) => {}
            }
        }
    }

    /// Lets requests finish, then the site and the log.
    pub(super) fn stop(mut self, end: End, events: &Events) -> CommandResult {
        self.readiness.is_ending.store(true, Ordering::Release);
        match end {
            End::Replaced(process) => {
                self.upgrade.release();
                self.notifier.tell(&format!("MAINPID={process}"));
                log(format_args!(
                    "note: process {process} has taken the place of this one"
                ));
                // It answers the owner on the same socket.
                if let Some(admin) = &self.admin {
                    admin.group().shutdown();
                }
            }
            _ => self.notifier.tell("STOPPING=1\nSTATUS=draining"),
        }
        if matches!(end, End::Stopped) {
            self.delay(events);
        }
        if let Some(https) = &mut self.https {
            https.stop_renewals();
        }
        self.upgrade.end();
        if let Some(redirect) = &self.redirect {
            redirect.group().shutdown();
        }
        self.sites.stop_waits();
        if let Some(console) = &self.console {
            console.stop_waits();
        }
        let (stuck, _) = self.server.stop();
        for workers in [&mut self.redirect, &mut self.admin].into_iter().flatten() {
            let _ = workers.stop();
        }
        drop(self.reports.take());
        if let Some(console) = &self.console {
            console.stop();
        }
        self.sites.stop();
        let lost = self.log.close();
        note(self.summary());
        if lost > 0 {
            note(format_args!(
                "note: {lost} lines of the access log were lost, its disk was too slow"
            ));
        }
        match end {
            End::Failed(reason) => Err(CommandFailure::new(reason)),
            _ if stuck > 0 => Err(CommandFailure::new(format!(
                "{stuck} workers did not end in time and were cut off"
            ))),
            _ => Ok(()),
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

/// The folder as the first line shows it.
fn shown(dir: &Path) -> String {
    if dir == Path::new(".")
        && let Ok(here) = env::current_dir()
    {
        return here.display().to_string();
    }
    dir.display().to_string()
}
