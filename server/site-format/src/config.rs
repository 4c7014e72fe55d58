//! `millpond.toml`: the settings of a site, each checked at its position in the file.
//!
//! One table (`keys::KEYS`) has every setting with its kind, default and bounds. The parser and the
//! hints of [`Problem`]s use it; a test compares the reference manual
//! (`docs/reference/configuration.md`), which has the meaning of each, with it. This module opens
//! neither sockets nor databases.

mod alerts;
mod data;
mod database;
mod files;
mod hosts;
mod kept_file;
mod keys;
mod live;
mod read;
mod require;
mod rules;
mod session;
mod statics;
mod tables;
mod tls;
mod uploads;
mod value;

#[cfg(test)]
mod manual;
#[cfg(test)]
mod rules_tests;
#[cfg(test)]
mod tests;

use std::{
    fs, io,
    net::{Ipv4Addr, SocketAddr},
    path::{Path, PathBuf},
    time::Duration,
};

use millpond_db::FeedKind;
use millpond_http::{Limits, ListenAddress};

use crate::{Problem, locale::Formats, problem::SETTINGS, rules::RuleSet};
pub use alerts::AlertRule;
pub use data::DataFolder;
pub use database::{DatabaseUrl, PostgresUrl};
pub use files::{FileSettings, KEEP};
pub use hosts::{Host, HostName, MAX_NAME};
pub use kept_file::{DAMAGED, KeptFile};
pub use live::LiveSettings;
pub use session::{SHORTEST_KEY, Secret, SessionSettings};
pub use statics::StaticOptions;
pub use tls::TlsSettings;
pub use uploads::{UPLOAD_FOLDER, UploadLimits};
pub use value::{in_units, parse_size, show_time};
pub use value::{ip_address, listen_address};

/// The settings of a site.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// The address on which the server listens (`server.listen`).
    pub listen: ListenAddress,
    /// https (`[tls]`).
    pub tls: TlsSettings,
    /// Worker threads; 0 is one for each core that the process may use (`server.workers`).
    pub workers: usize,
    /// True if a server on a terminal and on loopback is for development (`server.dev`).
    pub dev: bool,
    /// Servers that say in `Server-Timing` how an answer was made (`server.timing`): `off`, `dev`
    /// or `on`.
    pub timing: &'static str,
    /// How long a server that is to end still accepts connections (`server.drain_delay`).
    pub drain_delay: Duration,
    /// The user that a server becomes which root has started (`server.user`).
    pub user: Option<String>,
    /// True if the process gives up what it does not need (`server.sandbox`).
    pub sandbox: bool,
    /// The database (`database.url`).
    pub database: DatabaseUrl,
    /// The number of connections for reads (`database.pool`).
    pub pool: usize,
    /// The number of reads and of writes that may wait for a connection (`database.queue`).
    pub queue: usize,
    /// How long one statement may run (`database.statement_timeout`).
    pub statement_timeout: Duration,
    /// How PostgreSQL reports changes (`database.feed`).
    pub feed: FeedKind,
    /// Standbys that may be read beside the primary, on PostgreSQL (`database.replicas`).
    pub replicas: Vec<String>,
    /// The publication that reports changes, on PostgreSQL (`database.publication`).
    pub publication: String,
    /// True if responses are cached (`cache.enabled`).
    pub cache: bool,
    /// The largest size in bytes of cached responses and results (`cache.memory`).
    pub memory: usize,
    /// How much older than the database a response may be (`cache.max_staleness`).
    pub max_staleness: Duration,
    /// How long beyond that a page may be given if the database is away (`cache.stale_if_error`).
    pub stale_if_error: Duration,
    /// The share of the time, in per cent, in which pages may be rendered before they are requested
    /// (`cache.refresh_ahead`).
    pub refresh_ahead: usize,
    /// The file with the list of hot pages (`cache.warm_list`).
    pub warm_list: KeptFile,
    /// How those who look at a page are told of its changes (`[live]`).
    pub live: LiveSettings,
    /// The access log as an absolute path, or `-` for standard output; none is off (`log.access`).
    pub access_log: Option<PathBuf>,
    /// Format of both logs (`log.format`): `text` or `json`.
    pub log_format: &'static str,
    /// True if only networks of clients are written down (`log.cut_addresses`).
    pub cut_addresses: bool,
    /// How static files are kept and sent (`[static]`).
    pub statics: StaticOptions,
    /// The address of the admin interface (`admin.listen`); `None` disables it.
    pub admin: Option<SocketAddr>,
    /// The file with the history of figures (`admin.history`).
    pub history: KeptFile,
    /// The URL to which figures are sent (`admin.otlp`).
    pub otlp: Option<String>,
    /// The time between two times at which figures are sent (`admin.otlp_interval`).
    pub otlp_interval: Duration,
    /// The age of the feed from which the server is not ready; zero is none (`admin.max_feed_age`).
    pub max_feed_age: Duration,
    /// How long a request may wait for its turn (`limits.deadline`).
    pub deadline: Duration,
    /// The limits of a connection (`[limits]`).
    pub limits: Limits,
    /// The limits of uploads (`[limits]`).
    pub uploads: UploadLimits,
    /// How files are served (`[static]`).
    pub files: FileSettings,
    /// How visitors stay signed in (`[session]`).
    pub session: SessionSettings,
    /// How templates write values (`[site]`).
    pub formats: Formats,
    /// Rules by which figures alert the owner (`[[alert]]`).
    pub alerts: Vec<AlertRule>,
    /// Redirects, rewrites and fields.
    pub rules: RuleSet,
    /// Folders other than `data/` whose files are tables.
    pub data: Vec<DataFolder>,
    /// The sites that the host of the request selects; empty if the folder itself is the site.
    pub hosts: Vec<Host>,
}

impl Config {
    /// Reads `millpond.toml` in the folder `dir`. Settings that it leaves out have their defaults;
    /// paths in it are taken from `dir`.
    ///
    /// # Errors
    /// The first error in the file, in the order of its lines.
    pub fn read(dir: &Path) -> Result<Self, Problem> {
        let bytes = fs::read(dir.join(SETTINGS)).map_err(|error| unreadable(dir, &error))?;
        let text = millpond_data::text(&*bytes);
        let text = text.map_err(|error| Problem::unread(SETTINGS, error))?;
        let dir = std::path::absolute(dir).map_err(|error| unreadable(dir, &error))?;
        Self::parse(&text, &dir)
    }

    /// Reads the settings in `text`; paths in it are taken from `dir`, which is absolute.
    ///
    /// # Errors
    /// The first error in the text, in the order of its lines.
    pub fn parse(text: &str, dir: &Path) -> Result<Self, Problem> {
        read::read(text, dir)
    }

    /// The settings of a site in `dir` (an absolute path) whose file is empty.
    fn defaults(dir: &Path) -> Self {
        let mut config = Self {
            listen: SocketAddr::from((Ipv4Addr::LOCALHOST, 0)).into(),
            tls: TlsSettings::default(),
            workers: 0,
            dev: false,
            timing: "",
            drain_delay: Duration::ZERO,
            user: None,
            sandbox: false,
            database: DatabaseUrl::Sqlite(PathBuf::new()),
            replicas: Vec::new(),
            pool: 0,
            queue: 0,
            statement_timeout: Duration::ZERO,
            feed: FeedKind::default(),
            publication: String::new(),
            cache: false,
            memory: 0,
            max_staleness: Duration::ZERO,
            stale_if_error: Duration::ZERO,
            refresh_ahead: 0,
            warm_list: KeptFile::default(),
            live: LiveSettings::default(),
            access_log: None,
            log_format: "",
            cut_addresses: false,
            admin: None,
            history: KeptFile::default(),
            otlp: None,
            otlp_interval: Duration::ZERO,
            max_feed_age: Duration::ZERO,
            statics: StaticOptions::default(),
            deadline: Duration::ZERO,
            limits: Limits::default(),
            uploads: UploadLimits::default(),
            files: FileSettings::default(),
            session: SessionSettings::default(),
            formats: Formats::default(),
            alerts: Vec::new(),
            rules: RuleSet::default(),
            data: Vec::new(),
            hosts: Vec::new(),
        };
        for key in &keys::KEYS {
            // A test checks that every default can be read; the fields above are only initial
            // values.
            let _ = value::set_default(&mut config, key, dir);
        }
        config
    }

    /// The keys, such as `server.listen`, in which `self` and `other` differ, without those that
    /// take effect whenever the folder is read.
    #[must_use]
    pub fn differences(&self, other: &Self) -> Vec<String> {
        let mut differences: Vec<_> = keys::KEYS
            .iter()
            .filter(|key| !key.is_live() && !value::is_same(key, self, other))
            .map(|key| key.path.to_owned())
            .collect();
        if self.data != other.data {
            differences.push("data".to_owned());
        }
        if self.alerts != other.alerts {
            differences.push("alert".to_owned());
        }
        if self.hosts != other.hosts {
            differences.push("host".to_owned());
        }
        differences
    }

    /// The keys that configure the server, not this site.
    pub fn of_the_server(&self) -> Vec<String> {
        let defaults = Self::defaults(Path::new("/"));
        let keys = keys::KEYS
            .iter()
            .filter(|key| read::SHARED.contains(&key.parts().0));
        keys.filter(|key| !value::is_same(key, self, &defaults))
            .map(|key| key.path.to_owned())
            .chain((!self.alerts.is_empty()).then(|| "alert".to_owned()))
            .collect()
    }

    /// True if the folder is not a site itself, but names several (`[[host]]`).
    #[must_use]
    pub fn has_hosts(&self) -> bool {
        !self.hosts.is_empty()
    }

    /// Parses a duration in the format of `max_staleness`: a whole number and one of `ms`, `s`,
    /// `min`, `h`, `d`.
    ///
    /// # Errors
    /// A message with the expected format.
    pub fn duration(text: &str) -> Result<Duration, String> {
        crate::duration::parse(text)
    }
}

/// `a, b and c`.
fn list(words: impl Iterator<Item = String>) -> String {
    let words: Vec<_> = words.collect();
    match words.split_last() {
        Some((last, rest)) if !rest.is_empty() => format!("{} and {last}", rest.join(", ")),
        Some((only, _)) => only.clone(),
        None => "nothing".to_owned(),
    }
}

/// Why there is no configuration in `dir`.
fn unreadable(dir: &Path, error: &io::Error) -> Problem {
    let shown = dir.display();
    match error.kind() {
        io::ErrorKind::NotFound if dir.is_dir() => {
            Problem::new(SETTINGS, format!("{shown} has no such file, so it is not a site"))
                .hint("`millpond new DIR` makes a small site to start from; name another folder if the site is elsewhere")
        }
        io::ErrorKind::NotFound => Problem::new(dir, "there is no such folder")
            .hint("name the folder of a site, or make one with `millpond new DIR`"),
        io::ErrorKind::NotADirectory => {
            Problem::new(dir, "is a file and not the folder of a site").hint(format!("name the folder that has {SETTINGS} in it"))
        }
        _ => Problem::new(SETTINGS, format!("cannot be read: {error}")),
    }
}
