//! How a PostgreSQL database is reached, and within which limits.

use std::path::PathBuf;
use std::time::Duration;

use tokio_postgres::Config;
use tokio_postgres::config::{Host, SslMode};

use super::liveness;
use crate::{Error, FeedKind};

/// How a PostgreSQL database is opened.
#[derive(Clone)]
pub struct PostgresOptions {
    /// `postgres://user:password@host:port/database?sslmode=…`. Several hosts with commas between
    /// them: the first that answers is taken.
    pub url: String,
    /// Standbys that may be read beside the primary, as `host`, `host:port` or the folder of a unix
    /// socket; everything else is as in the URL.
    pub replicas: Vec<String>,
    /// Connections that read and write; to each replica there may be as many again.
    pub pool: usize,
    /// Reads and writes that may wait for a connection; one more is [`Error::Overloaded`].
    pub queue: usize,
    /// How long one statement may run, and how long a write may wait for its change in the feed.
    pub statement_timeout: Duration,
    /// The bound that the feed's heartbeat keeps pace with.
    pub max_staleness: Duration,
    /// How the server reports changes.
    pub feed: FeedKind,
    /// The publication of the tables that a feed by logical replication reports.
    pub publication: String,
    /// The caller's threads; there are no more threads for connections than that.
    pub workers: usize,
}

impl std::fmt::Debug for PostgresOptions {
    /// Without the URL, which may have a password in it.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PostgresOptions")
            .field("replicas", &self.replicas)
            .field("pool", &self.pool)
            .field("queue", &self.queue)
            .field("statement_timeout", &self.statement_timeout)
            .field("max_staleness", &self.max_staleness)
            .field("feed", &self.feed)
            .field("publication", &self.publication)
            .field("workers", &self.workers)
            .finish_non_exhaustive()
    }
}

impl PostgresOptions {
    /// The defaults: 8 connections, a queue of 1024, 5 s for statements, a bound of 1 s, logical
    /// replication by the publication `millpond`, and as many threads as there are processors.
    #[must_use]
    pub fn new(url: impl Into<String>) -> Self {
        Self {
            url: url.into(),
            replicas: Vec::new(),
            pool: 8,
            queue: 1_024,
            statement_timeout: Duration::from_secs(5),
            max_staleness: Duration::from_secs(1),
            feed: FeedKind::default(),
            publication: "millpond".to_owned(),
            workers: std::thread::available_parallelism().map_or(1, usize::from),
        }
    }

    /// Checks the URL, and returns what may be shown of it: hosts, ports and the database.
    ///
    /// # Errors
    /// [`Error::Usage`], without the password.
    pub fn place(&self) -> Result<String, Error> {
        let target = ConnectionTarget::parse(&self.url)?;
        let place = target.place();
        // Without a name the server takes that of the user.
        let database = target.config.get_dbname().or(target.config.get_user());
        Ok(match database {
            Some(database) => format!("{place}/{database}"),
            None => place,
        })
    }

    /// Checks that `host` may stand among the [replicas](Self::replicas).
    ///
    /// # Errors
    /// [`Error::Usage`] with what to write instead.
    pub fn check_replica(host: &str) -> Result<(), Error> {
        ConnectionTarget::replica("postgres://localhost/", host).map(drop)
    }
}

/// How the server proves who it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Trust {
    pub(crate) proof: Proof,
    /// `sslrootcert`: the certificates to trust, in PEM; without it those of the system.
    pub(crate) roots: Option<PathBuf>,
}

/// Proof that is asked of the server's certificate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Proof {
    /// Nothing: it keeps out who only listens (`prefer`, `require`).
    None,
    /// A trusted authority has signed it (`verify-ca`).
    Signed,
    /// And that it is for this host (`verify-full`).
    Host,
}

/// Address to connect to, and the trust in its server.
#[derive(Clone)]
pub(crate) struct ConnectionTarget {
    pub(crate) config: Config,
    pub(crate) trust: Trust,
    /// True if a standby may answer: what a replica says is held against the feed, what stands in
    /// the primary's place is not.
    pub(crate) is_replica: bool,
}

/// How long a connection may take to open where the URL says nothing.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

impl ConnectionTarget {
    /// Reads the URL. The parameters about certificates are libpq's, which the driver does not
    /// know.
    pub(crate) fn parse(url: &str) -> Result<Self, Error> {
        if !url.starts_with("postgres://") && !url.starts_with("postgresql://") {
            return Err(Error::usage(
                "the database URL does not begin with postgres://; write postgres://user:password@host/database",
            ));
        }
        let mut trust = Trust {
            proof: Proof::None,
            roots: None,
        };
        let mut required = false;
        let (base, query) = url.split_once('?').unwrap_or((url, ""));
        let mut left = Vec::new();
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            match pair.split_once('=') {
                Some(("sslmode", "verify-ca")) => (trust.proof, required) = (Proof::Signed, true),
                Some(("sslmode", "verify-full")) => (trust.proof, required) = (Proof::Host, true),
                Some(("sslrootcert", "system")) => trust.roots = None,
                Some(("sslrootcert", path)) => trust.roots = Some(decoded(path).into()),
                _ => left.push(pair),
            }
        }
        let rest = if left.is_empty() {
            base.to_owned()
        } else {
            format!("{base}?{}", left.join("&"))
        };
        let mut config: Config = rest.parse().map_err(|error| {
            Error::usage(format!(
                "the database URL is not right: {}",
                crate::postgres::failure::chain(&error)
            ))
        })?;
        if required {
            config.ssl_mode(SslMode::Require);
        }
        if config.get_hosts().is_empty() && config.get_hostaddrs().is_empty() {
            return Err(Error::usage(
                "the database URL names no host; write postgres://user:password@host/database",
            ));
        }
        if config.get_connect_timeout().is_none() {
            config.connect_timeout(CONNECT_TIMEOUT);
        }
        liveness::complete(&mut config, |name| {
            left.iter()
                .any(|pair| pair.split_once('=').is_some_and(|(key, _)| key == name))
        });
        config.application_name("millpond");
        Ok(Self {
            config,
            trust,
            is_replica: false,
        })
    }

    /// Reads the URL for the standby at `host`: who connects, to which database and how, is the
    /// URL's.
    pub(crate) fn replica(url: &str, host: &str) -> Result<Self, Error> {
        let wrong = || {
            Error::usage(format!(
                "`{host}` is no host of a replica; write host:port, or the folder of a unix socket"
            ))
        };
        let is_odd = |c: char| c.is_whitespace() || c.is_control() || "@?,#%".contains(c);
        if host.is_empty() || host.contains(is_odd) {
            return Err(wrong());
        }
        let (scheme, rest) = url.split_once("://").ok_or_else(wrong)?;
        let (base, query) = rest.split_once('?').unwrap_or((rest, ""));
        let (user, rest) = base.split_once('@').unwrap_or(("", base));
        let database = rest.split_once('/').map_or("", |(_, database)| database);
        // Where the primary is, and which kind of server is wanted there.
        let of_primary = ["host=", "hostaddr=", "port=", "target_session_attrs="];
        let stays = |pair: &&str| !of_primary.iter().any(|name| pair.starts_with(name));
        let query: Vec<&str> = query.split('&').filter(stays).collect();
        let at = if base.contains('@') { "@" } else { "" };
        let host = host.replace('/', "%2F");
        let url = format!("{scheme}://{user}{at}{host}/{database}?{}", query.join("&"));
        let target = Self::parse(&url).map_err(|_| wrong())?;
        Ok(Self {
            is_replica: true,
            ..target
        })
    }

    /// The hosts and ports, for messages; never the password.
    pub(crate) fn place(&self) -> String {
        let ports = self.config.get_ports();
        let port = |index: usize| *ports.get(index).or(ports.first()).unwrap_or(&5432);
        let hosts = self.config.get_hosts();
        let mut places: Vec<String> = hosts
            .iter()
            .enumerate()
            .map(|(index, host)| match host {
                Host::Tcp(host) => format!("{host}:{}", port(index)),
                Host::Unix(folder) => format!("{}/.s.PGSQL.{}", folder.display(), port(index)),
            })
            .collect();
        if hosts.is_empty() {
            let addresses = self.config.get_hostaddrs().iter().enumerate();
            places = addresses
                .map(|(index, address)| format!("{address}:{}", port(index)))
                .collect();
        }
        places.join(", ")
    }
}

/// Undoes the URL's `%41`.
fn decoded(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, tail @ ..] = rest {
        let code = tail
            .get(..2)
            .filter(|_| *first == b'%')
            .and_then(|code| std::str::from_utf8(code).ok())
            .and_then(|code| u8::from_str_radix(code, 16).ok());
        match code {
            Some(byte) => {
                bytes.push(byte);
                rest = &tail[2..];
            }
            None => {
                bytes.push(*first);
                rest = tail;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(url: &str) -> String {
        match ConnectionTarget::parse(url) {
            Ok(_) => panic!("{url} was taken"),
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn reads_the_trust_settings() {
        let target = ConnectionTarget::parse(
            "postgres://u:secret@a,b/db?sslmode=verify-full&sslrootcert=%2Fetc%2Fca.pem&target_session_attrs=read-write",
        )
        .unwrap();
        assert_eq!(target.trust.proof, Proof::Host);
        assert_eq!(target.trust.roots, Some("/etc/ca.pem".into()));
        assert_eq!(target.config.get_ssl_mode(), SslMode::Require);
        assert_eq!(target.place(), "a:5432, b:5432");
        let plain = ConnectionTarget::parse("postgresql://h:5433/db").unwrap();
        assert_eq!(plain.trust.proof, Proof::None);
        assert_eq!(plain.config.get_ssl_mode(), SslMode::Prefer);
        assert_eq!(plain.place(), "h:5433");
        let socket =
            ConnectionTarget::parse("postgres://u@%2Frun%2Fpg/db?sslmode=disable").unwrap();
        assert_eq!(socket.place(), "/run/pg/.s.PGSQL.5432");
    }

    #[test]
    fn a_replica_is_reached_as_the_primary_is() {
        let url = "postgres://u:secret@a,b:5433/db?sslmode=verify-full&port=1&target_session_attrs=read-write&application_name=x";
        let target = ConnectionTarget::replica(url, "c:5434").unwrap();
        assert_eq!(target.place(), "c:5434");
        assert_eq!(target.config.get_user(), Some("u"));
        assert_eq!(target.config.get_password(), Some(&b"secret"[..]));
        assert_eq!(target.config.get_dbname(), Some("db"));
        assert_eq!(target.trust.proof, Proof::Host);
        assert_eq!(
            target.config.get_target_session_attrs(),
            tokio_postgres::config::TargetSessionAttrs::Any
        );
        let socket = ConnectionTarget::replica("postgres://a/db", "/run/pg:5433").unwrap();
        assert_eq!(socket.place(), "/run/pg/.s.PGSQL.5433");
        for host in ["", "a,b", "u:p@a", "a b", "a:port", "a?x=1"] {
            let error = ConnectionTarget::replica(url, host)
                .err()
                .unwrap()
                .to_string();
            assert!(
                error.contains("replica") && !error.contains("secret"),
                "{error}"
            );
        }
    }

    #[test]
    fn says_what_is_wrong_without_the_password() {
        for url in [
            "mysql://u:secret@h/db",
            "postgres://u:secret@h:port/db",
            "postgres://u:secret@h/db?sslmode=maybe",
            "postgres://u:secret@h/db?nothing=1",
            "postgres:///db",
        ] {
            let message = refused(url);
            assert!(message.contains("URL"), "{message}");
            assert!(!message.contains("secret"), "{message}");
        }
        let options = PostgresOptions::new("postgres://u:secret@h/db");
        assert!(!format!("{options:?}").contains("secret"));
    }
}
