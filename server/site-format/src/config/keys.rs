//! All settings.

use std::{net::SocketAddr, path::PathBuf, time::Duration};

use millpond_db::FeedKind;
use millpond_http::Network;

use super::{
    Config, DatabaseUrl, WarmList,
    files::FileSettings,
    session::{Secret, SessionSettings},
};
use crate::{
    locale::{Currency, Locale},
    rules::Scope,
    time_zone::SiteZone,
};

/// A section of the file.
pub(super) struct Section {
    /// Its name, as in `[server]`.
    pub(super) name: &'static str,
    /// The subject of the section, for the manual.
    pub(super) about: &'static str,
    /// True if a change takes effect without a restart, as a change of a page does.
    pub(super) is_live: bool,
}

/// The sections, in the order of the manual.
pub(super) const SECTIONS: [Section; 11] = [
    Section {
        name: "server",
        about: "Where the site is served, and by how many threads.",
        is_live: false,
    },
    Section {
        name: "tls",
        about: "https, which `tls.domains`, `tls.certificate` or `millpond serve --domain` turns on. Then the site is \
                served on `tls.listen`, and `server.listen` only redirects to it.",
        is_live: false,
    },
    Section {
        name: "database",
        about: "Where the data is.",
        is_live: false,
    },
    Section {
        name: "cache",
        about: "What is kept in memory, and how old it may be.",
        is_live: false,
    },
    Section {
        name: "site",
        about: "How templates write numbers, money and dates; [templates.md](templates.md) has the filters. A change takes effect by \
                itself.",
        is_live: true,
    },
    Section {
        name: "session",
        about: "How visitors stay signed in; [sessions](site/sessions.md) has the lines of queries and forms. A change takes effect by \
                itself.",
        is_live: true,
    },
    Section {
        name: "static",
        about: "How the files in `static/` are served, kept and sent. A change takes effect by itself.",
        is_live: true,
    },
    Section {
        name: "admin",
        about: "Answers for the owner of the running server.",
        is_live: false,
    },
    Section {
        name: "log",
        about: "What is written down.",
        is_live: false,
    },
    Section {
        name: "proxies",
        about: "Proxies before the server, by their addresses. What they say of a client is believed: its address is then that in the access log, \
                in the limits of clients and of attempts at passwords. What all others say is ignored. Name a proxy only where it sets what is \
                believed, and where no client can reach the server without it under the same address.",
        is_live: false,
    },
    Section {
        name: "limits",
        about: "What a client may ask of one connection, and how long it may take. Beyond a limit a request is answered with \
                the status named here, and the server serves on. The limits `client_…` are for all connections of one client: an address of IPv4, or \
                a network of 64 bits of IPv6; the clients in a network of 56 bits together may have four times as much. 0 is no limit. \
                They do not concern proxies of `[proxies]` and the addresses of `limits.client_exempt`. Where a proxy names the client in a field, \
                requests and writes count for that client.",
        is_live: false,
    },
];

/// One setting.
pub(super) struct Key {
    /// The section of the setting.
    pub(super) section: &'static str,
    /// Its name.
    pub(super) name: &'static str,
    /// The values that it accepts, and the field of [`Config`] that holds them.
    pub(super) kind: SettingKind,
    /// Its default in the notation of the file; `None` if it is absent.
    pub(super) default: Option<&'static str>,
    /// An example in the notation of the file, for hints.
    pub(super) example: &'static str,
    /// The meaning of the setting, for the manual.
    pub(super) about: &'static str,
}

/// The kind of a setting. Numbers have the least and the greatest accepted value.
pub(super) enum SettingKind {
    /// `true` or `false`.
    Flag(fn(&mut Config) -> &mut bool),
    /// A whole number.
    Count(fn(&mut Config) -> &mut usize, usize, usize),
    /// Bytes: a number, or text such as `"256MB"`.
    Size(fn(&mut Config) -> &mut usize, usize, usize),
    /// A duration, such as `"1s"`.
    Time(fn(&mut Config) -> &mut Duration, Duration, Duration),
    /// An IP address with a port.
    Address(fn(&mut Config) -> &mut SocketAddr),
    /// An IP address with a port, or absent.
    SomeAddress(fn(&mut Config) -> &mut Option<SocketAddr>),
    /// The URL of a database.
    Database(fn(&mut Config) -> &mut DatabaseUrl),
    /// How a server reports changes.
    Feed(fn(&mut Config) -> &mut FeedKind),
    /// Hosts of replicas.
    Replicas(fn(&mut Config) -> &mut Vec<String>),
    /// The name of a publication.
    Publication(fn(&mut Config) -> &mut String),
    /// `true`, `false`, or a path.
    WarmList(fn(&mut Config) -> &mut WarmList),
    /// A path.
    File(fn(&mut Config) -> &mut Option<PathBuf>),
    /// Any text.
    Text(fn(&mut Config) -> &mut Option<String>),
    /// Addresses and networks in CIDR notation.
    Networks(fn(&mut Config) -> &mut Vec<Network>),
    /// Host names and addresses.
    Domains(fn(&mut Config) -> &mut Vec<String>),
    /// A path, or `-`.
    Log(fn(&mut Config) -> &mut Option<PathBuf>),
    /// A secret, or where it is.
    Secret(fn(&mut SessionSettings) -> &mut Secret),
    /// A locale, by its tag.
    Locale(fn(&mut Config) -> &mut &'static Locale),
    /// A currency, or absent.
    Currency(fn(&mut Config) -> &mut Option<Currency>),
    /// A time zone, by its name.
    Zone(fn(&mut Config) -> &mut SiteZone),
    /// The name of a cookie.
    Cookie(fn(&mut SessionSettings) -> &mut String),
    /// Names of files.
    Names(fn(&mut FileSettings) -> &mut Vec<String>),
    /// `true`, `false`, or a list of paths.
    Scope(fn(&mut FileSettings) -> &mut Scope),
}

impl Key {
    /// Section and name, as in `server.listen`.
    pub(super) fn path(&self) -> String {
        format!("{}.{}", self.section, self.name)
    }

    /// True if a change takes effect without a restart.
    pub(super) fn is_live(&self) -> bool {
        let section = SECTIONS.iter().find(|section| section.name == self.section);
        // The watch over the folder begins with this one.
        section.is_some_and(|section| section.is_live) && self.path() != "static.follow_links"
    }

    /// A correct line for the file.
    pub(super) fn line(&self) -> String {
        format!("{} = {}", self.name, self.example)
    }
}

const MILLISECOND: Duration = Duration::from_millis(1);
const DAY: Duration = Duration::from_secs(86_400);

/// The settings, in the order of the manual.
pub(super) const KEYS: [Key; 65] = [
    Key {
        section: "server",
        name: "listen",
        kind: SettingKind::Address(|config| &mut config.listen),
        default: Some("\"127.0.0.1:8080\""),
        example: "\"127.0.0.1:8080\"",
        about: "The address and port to answer on. `0.0.0.0` is every IPv4 address of the machine, `[::]` every address, \
                port 0 any free port. `millpond serve --listen` overrides it. With `[tls]` this address \
                redirects to https and answers the challenges of certificate authorities; without the setting \
                it is then port 80 of every address, and for `localhost` still this one.",
    },
    Key {
        section: "server",
        name: "workers",
        kind: SettingKind::Count(|config| &mut config.workers, 0, 1024),
        default: Some("0"),
        example: "0",
        about: "Threads that serve, each with its own event loop. 0 is one for each core in the affinity mask \
                (`taskset`, cgroup cpusets). `millpond serve --workers` overrides it.",
    },
    Key {
        section: "server",
        name: "spin",
        kind: SettingKind::Flag(|config| &mut config.limits.spins),
        default: Some("true"),
        example: "true",
        about: "Whether a thread whose last answers, all from memory, went to at most four connections looks for their next requests for up to \
                50 µs before it sleeps. Sleeping and being woken takes CPU, and each side time: a client that asks again at once gets more \
                than twice as many answers, for a tenth more CPU. It goes on only while requests are found soon enough; where there are only \
                pauses it is tried now and then, which takes less than 1 % of a core. Not while a page is made, nor where another program \
                often wants the core. While clients ask without a pause the thread looks busy all the time: `false` is for measuring what an \
                answer costs at few connections, and for machines where an idle core is worth more.",
    },
    Key {
        section: "server",
        name: "dev",
        kind: SettingKind::Flag(|config| &mut config.dev),
        default: Some("true"),
        example: "false",
        about: "Whether `millpond serve` on a terminal shows errors in the browser and reloads pages when a file changes, as long as it \
                answers on loopback only; [Making a site](../guide/developing.md) has more. `millpond serve --dev` and `--no-dev` override it.",
    },
    Key {
        section: "tls",
        name: "listen",
        kind: SettingKind::SomeAddress(|config| &mut config.tls.listen),
        default: None,
        example: "\"0.0.0.0:443\"",
        about: "The address and port for https. Without it port 443 of every address of the machine, and for `localhost` alone `127.0.0.1:8443`. Ports below 1024 need a privilege: `setcap cap_net_bind_service=+ep millpond`, or `AmbientCapabilities` of systemd.",
    },
    Key {
        section: "tls",
        name: "domains",
        kind: SettingKind::Domains(|config| &mut config.tls.domains),
        default: Some("[]"),
        example: "[\"example.org\", \"www.example.org\"]",
        about: "Host names, or addresses, for which certificates are got and renewed by themselves (ACME, RFC 8555), one for each. `localhost` instead gets a certificate from an authority of this machine, for development. The names must lead to this server, and port 443 or 80 must reach it. `millpond serve --domain` overrides it.",
    },
    Key {
        section: "tls",
        name: "certificate",
        kind: SettingKind::File(|config| &mut config.tls.certificate),
        default: None,
        example: "\"tls/example.org.pem\"",
        about: "A PEM file with the certificate of the server, then those of the authorities between it and the root. SIGHUP reads it again; once two thirds of its lifetime are over, a warning is printed at the start and each day. Each `[[host]]` may have its own.",
    },
    Key {
        section: "tls",
        name: "key",
        kind: SettingKind::File(|config| &mut config.tls.key),
        default: None,
        example: "\"tls/example.org.key\"",
        about: "The PEM file with the private key of `tls.certificate`, without a password.",
    },
    Key {
        section: "tls",
        name: "storage",
        kind: SettingKind::File(|config| &mut config.tls.storage),
        default: None,
        example: "\"/var/lib/millpond/tls\"",
        about: "The folder for the certificates of `tls.domains`, their private keys and the account with the authority, from the folder of the site; only its owner may read it. Processes of one machine that serve the same names may share it, several machines may not: its lock goes by the clock of the machine. Without the setting and with a PostgreSQL database they are in the table `_millpond_certificate` of the database, so that all nodes of the site share them: one node asks, each answers the challenges. Only the role of `database.url` may read the table, but private keys are then in each dump and replica of the database too. With SQLite, and always for `localhost`, the folder is `tls` without the setting.",
    },
    Key {
        section: "tls",
        name: "acme_directory",
        kind: SettingKind::Text(|config| &mut config.tls.acme_directory),
        default: Some("\"https://acme-v02.api.letsencrypt.org/directory\""),
        example: "\"https://acme-staging-v02.api.letsencrypt.org/directory\"",
        about: "The URL of the directory of the certificate authority. For experiments use the staging directory of the same authority, which has no strict limits.",
    },
    Key {
        section: "tls",
        name: "acme_trust",
        kind: SettingKind::File(|config| &mut config.tls.acme_trust),
        default: None,
        example: "\"tls/authority.pem\"",
        about: "A PEM file with the root behind the certificate of the directory itself, for a private authority. Without it the roots of the system.",
    },
    Key {
        section: "tls",
        name: "acme_email",
        kind: SettingKind::Text(|config| &mut config.tls.acme_email),
        default: None,
        example: "\"you@example.org\"",
        about: "Where the authority may write to.",
    },
    Key {
        section: "tls",
        name: "profile",
        kind: SettingKind::Text(|config| &mut config.tls.profile),
        default: None,
        example: "\"shortlived\"",
        about: "The kind of certificate, among those that the authority offers. Without it the default of the authority; for an address `shortlived`, if there is one.",
    },
    Key {
        section: "tls",
        name: "client_authorities",
        kind: SettingKind::File(|config| &mut config.tls.client_authorities),
        default: None,
        example: "\"tls/clients.pem\"",
        about: "A PEM file with the authorities that sign certificates of clients. With it a client without such a certificate is refused.",
    },
    Key {
        section: "tls",
        name: "hsts",
        kind: SettingKind::Time(
            |config| &mut config.tls.hsts,
            Duration::ZERO,
            DAY.saturating_mul(730),
        ),
        default: Some("\"0s\""),
        example: "\"180d\"",
        about: "For how long browsers that were here may use https only (`Strict-Transport-Security`, RFC 6797). `0s` sends no such field. Begin with a short time: it cannot be taken back.",
    },
    Key {
        section: "database",
        name: "url",
        kind: SettingKind::Database(|config| &mut config.database),
        default: Some("\"sqlite:site.db\""),
        example: "\"sqlite:site.db\"",
        about: "`sqlite:` and the path of the file, from the site's folder; it is made if it is missing. Or \
                `postgres://user:password@host:port/database`, where several hosts with commas between them are tried in turn until one \
                is no standby, a unix socket's folder is a host with `%2F` for its slashes, and `sslmode` (`disable`, `prefer`, `require`, \
                `verify-full`) may follow a question mark. `env:NAME` takes either from the environment variable `NAME`: a password does not belong \
                into a file. `--database URL` of the commands that open a site overrides it.",
    },
    Key {
        section: "database",
        name: "replicas",
        kind: SettingKind::Replicas(|config| &mut config.replicas),
        default: Some("[]"),
        example: "[\"db2.example.com:5432\"]",
        about: "PostgreSQL with `feed = \"logical\"` only: hot standbys of the server, as \
                `host:port` or the folder of a unix socket. User, password, database and TLS are \
                those of the URL. A page that is not in memory is read from a replica that has \
                replayed everything this node knows of. Writes, sign-ins and all other reads use \
                the primary. [Replicas](site/databases.md#replicas) says what replicas need.",
    },
    Key {
        section: "database",
        name: "pool",
        kind: SettingKind::Count(|config| &mut config.pool, 1, 256),
        default: Some("8"),
        example: "8",
        about: "Connections that read. On SQLite writes have one more connection. On PostgreSQL \
                writes use the same connections, the feed has two more, and each replica may \
                have as many again.",
    },
    Key {
        section: "database",
        name: "queue",
        kind: SettingKind::Count(|config| &mut config.queue, 1, 65_536),
        default: Some("1024"),
        example: "1024",
        about: "How many reads, and how many writes, may wait for a connection. The next one is \
                answered 503 with Retry-After at once. On PostgreSQL reads and writes share the \
                queue. A waiting request takes memory, and an impatient client sends it again: \
                raise the number for bursts, not for a database that is too slow.",
    },
    Key {
        section: "database",
        name: "statement_timeout",
        kind: SettingKind::Time(
            |config| &mut config.statement_timeout,
            Duration::from_millis(100),
            Duration::from_secs(3600),
        ),
        default: Some("\"5s\""),
        example: "\"5s\"",
        about: "How long one statement may run. Then it is interrupted and rolled back, and the \
                request is answered 503. On PostgreSQL this is also how long a form waits until \
                its change returns through the feed, and how long a transaction may be idle. \
                Migrations have no such limit.",
    },
    Key {
        section: "database",
        name: "feed",
        kind: SettingKind::Feed(|config| &mut config.feed),
        default: Some("\"logical\""),
        example: "\"logical\"",
        about: "How the server is notified of changes by others. On PostgreSQL `logical` is \
                logical replication: it needs `wal_level = logical` and the right to \
                replicate, and costs writers nothing. `triggers` works without these: triggers on \
                each table record each change in a table of their own \
                ([PostgreSQL](site/databases.md#without-logical-replication)). On SQLite each commit of \
                another program ends all results with `logical`, and with `triggers` only those \
                that show its rows ([SQLite](site/databases.md#other-programs-on-sqlite)). These pages say \
                what that costs. `millpond check --fix` installs either.",
    },
    Key {
        section: "database",
        name: "publication",
        kind: SettingKind::Publication(|config| &mut config.publication),
        default: Some("\"millpond\""),
        example: "\"millpond\"",
        about: "PostgreSQL with `feed = \"logical\"` only: the publication of the tables whose \
                changes the server sees. Queries on other tables go to the database each time. \
                `create publication millpond for table …` makes it, once.",
    },
    Key {
        section: "cache",
        name: "enabled",
        kind: SettingKind::Flag(|config| &mut config.cache),
        default: Some("true"),
        example: "true",
        about: "Whether pages and query results are kept. When it is `false`, or with `millpond serve --no-cache`, every \
                request goes to the database.",
    },
    Key {
        section: "cache",
        name: "memory",
        kind: SettingKind::Size(
            |config| &mut config.memory,
            1 << 20,
            isize::MAX.unsigned_abs(),
        ),
        default: Some("\"256MB\""),
        example: "\"256MB\"",
        about: "Bytes that the stored pages and query results may take, with overhead. Beyond \
                this the least useful are dropped. Static files are not counted.",
    },
    Key {
        section: "cache",
        name: "max_staleness",
        kind: SettingKind::Time(
            |config| &mut config.max_staleness,
            Duration::from_millis(50),
            DAY,
        ),
        default: Some("\"1s\""),
        example: "\"1s\"",
        about: "The bound: a response contains every commit that was acknowledged to its writer \
                longer than this before the request was sent, from any writer. Commits of other \
                programs usually show within 100 ms. If the server cannot see them for this \
                long, it stops answering from memory.",
    },
    Key {
        section: "cache",
        name: "stale_if_error",
        kind: SettingKind::Time(|config| &mut config.stale_if_error, Duration::ZERO, DAY),
        default: Some("\"0s\""),
        example: "\"10min\"",
        about: "How long beyond `cache.max_staleness` a page in memory may be given if it cannot be \
                made because the database is away. **Such a page may be as old as both together**, \
                and nothing that was written meanwhile is on it. It says so: `Age`, and \
                `Cache-Status` with `fwd=stale`, a negative `ttl` and `detail=stale-if-error`. Only \
                pages that are the same for every visitor, and not for a visitor whose own write \
                might be missing. 0s is off: then it is a 503.",
    },
    Key {
        section: "cache",
        name: "refresh_ahead",
        kind: SettingKind::Count(|config| &mut config.refresh_ahead, 0, 100),
        default: Some("25"),
        example: "25",
        about: "The share of time, in per cent, for making pages before a visitor asks. A page \
                that was requested often lately and that a change has ended is made again at \
                once, the hottest first: one page at a time, for at most this share of one \
                database connection, and never while a visitor's read waits for a connection. \
                Only pages that are the same for every visitor. 0 is off: each page is made when \
                it is requested.",
    },
    Key {
        section: "cache",
        name: "warm_list",
        kind: SettingKind::WarmList(|config| &mut config.warm_list),
        default: Some("true"),
        example: "\"/var/lib/millpond/site.warm\"",
        about: "Where the list of hot pages is kept, so that they are made again after a \
                restart, within `cache.refresh_ahead`: a path from the site's folder that ends \
                in `.warm`. `true` is a file beside that of SQLite (`site.db.warm` for \
                `site.db`), and on PostgreSQL `millpond.warm` in the site's folder; `false` \
                keeps none. The list has up to 10,000 addresses and no content. Only its owner \
                may read it, because addresses may contain search words. If it cannot be \
                written, the log says so and the server goes on.",
    },
    Key {
        section: "site",
        name: "locale",
        kind: SettingKind::Locale(|config| &mut config.formats.locale),
        default: None,
        example: "\"de\"",
        about: "The language and country by whose customs `date`, `number`, `money`, `filesize` and `timeago` write. Absent, numbers are written \
                1 234.5, in groups with thin spaces, and dates in English.",
    },
    Key {
        section: "site",
        name: "currency",
        kind: SettingKind::Currency(|config| &mut config.formats.currency),
        default: None,
        example: "\"EUR\"",
        about: "The currency of `money` where the template names none: three letters (ISO 4217). Absent, such an amount is written with two decimals \
                and without a sign.",
    },
    Key {
        section: "site",
        name: "timezone",
        kind: SettingKind::Zone(|config| &mut config.formats.zone),
        default: None,
        example: "\"Europe/Vienna\"",
        about: "The time zone of the site, by its name in the IANA database: `date` and `datetime` write moments in it, and a parameter of type \
                `datetime` that names no offset is a time of day there. [templates.md](templates.md#time-zones) has more. The rules of all \
                zones are those of this version of Millpond, not of the machine. Absent, times are written as they stand, and are read as UTC.",
    },
    Key {
        section: "session",
        name: "secret",
        kind: SettingKind::Secret(|session| &mut session.secret),
        default: None,
        example: "\"env:SESSION_SECRET\"",
        about: "The key that sessions are signed with: 32 random characters or more, or `env:` and the name of a variable that has them. \
                Of several, between spaces or commas, the first signs and all are good: put a new one in front, and take the old one away \
                when `session.lifetime` has passed. Absent, a key is made at the first start and kept in `session.key` beside the SQLite file or else in \
                the site's folder, one key on each line, for its owner alone to read. Every server of one site needs the same; every site its own. \
                With it they also tell each other what a visitor has just written, so set it wherever a site has several servers.",
    },
    Key {
        section: "session",
        name: "lifetime",
        kind: SettingKind::Time(
            |config| &mut config.session.lifetime,
            Duration::from_secs(1),
            Duration::from_secs(400 * 86_400),
        ),
        default: Some("\"14d\""),
        example: "\"14d\"",
        about: "How long a session lasts after signing in; it is not prolonged.",
    },
    Key {
        section: "session",
        name: "cookie",
        kind: SettingKind::Cookie(|session| &mut session.cookie),
        default: Some("\"session\""),
        example: "\"session\"",
        about: "The name of the cookie. With `session.secure` it has `__Host-` in front.",
    },
    Key {
        section: "session",
        name: "secure",
        kind: SettingKind::Flag(|config| &mut config.session.secure),
        default: Some("true"),
        example: "true",
        about: "Whether browsers may keep the cookie and send it over https only. Leave it on \
                wherever others could listen to the connection or replace the cookie. Most \
                browsers also accept such a cookie from `http://localhost`. `false` is for plain \
                http in a network of your own.",
    },
    Key {
        section: "session",
        name: "bearer",
        kind: SettingKind::Flag(|config| &mut config.session.bearer),
        default: Some("false"),
        example: "true",
        about: "Whether a program may send the session's value as a token, `Authorization: Bearer …`, in \
                place of the cookie. A sign-in that answers with JSON then gives the token. \
                [Tokens for programs](site/access.md#tokens-for-programs) has the rules.",
    },
    Key {
        section: "static",
        name: "index",
        kind: SettingKind::Names(|files| &mut files.index),
        default: Some("[\"index.html\"]"),
        example: "[\"index.html\", \"index.htm\"]",
        about: "The names of files that answer for their folder; the first that is there. `[]` is none. The address of a folder \
                ends with a slash, and without it leads there (308).",
    },
    Key {
        section: "static",
        name: "listing",
        kind: SettingKind::Scope(|files| &mut files.listing),
        default: Some("false"),
        example: "[\"/downloads/*\"]",
        about: "Which folders without an index show what is in them: none, all, or those whose path is one of these, with \
                or without the slash at its end: `/downloads` is that folder alone, `/downloads/*` those in it as well. \
                Hidden files are not shown, and of more than 1,000 files those that come first.",
    },
    Key {
        section: "static",
        name: "clean_urls",
        kind: SettingKind::Flag(|config| &mut config.files.clean_urls),
        default: Some("false"),
        example: "true",
        about: "Whether `/about` is the address of `about.html`. `/about.html` and `/about/` then lead to `/about`, and an index's \
                own name to its folder (308). A file keeps its whole name where a page or another file has the short one.",
    },
    Key {
        section: "static",
        name: "immutable",
        kind: SettingKind::Scope(|files| &mut files.immutable),
        default: Some("false"),
        example: "true",
        about: "Which files never change under one name, so that browsers need not ask again for a year (`Cache-Control: public, \
                max-age=31536000, immutable`; others have `no-cache`). `true` is those with a hash in their name: a part of eight or more \
                hexadecimal digits, letters and digits among them, between dots, hyphens or underscores, as in `app.3f2a9c1b.js`. A list of \
                paths, such as `[\"/assets/*\"]`, is these and no others.",
    },
    Key {
        section: "static",
        name: "memory",
        kind: SettingKind::Size(
            |config| &mut config.statics.memory,
            0,
            isize::MAX.unsigned_abs(),
        ),
        default: Some("\"256MB\""),
        example: "\"256MB\"",
        about: "What copies of static files and their compressed forms may take, the smallest files first. What does not fit is \
                sent from disk, and compressed forms that do not fit are not made.",
    },
    Key {
        section: "static",
        name: "in_memory",
        kind: SettingKind::Size(|config| &mut config.statics.in_memory, 0, 64 << 20),
        default: Some("\"4MiB\""),
        example: "\"4MiB\"",
        about: "The largest file that is copied into memory. A copy is served without a look at the file until it changes. A larger \
                file is kept open and sent from disk; each response looks whether it is still the same.",
    },
    Key {
        section: "static",
        name: "sendfile_from",
        kind: SettingKind::Size(|config| &mut config.statics.sendfile_from, 0, 1 << 30),
        default: Some("\"64KiB\""),
        example: "\"64KiB\"",
        about: "Copies of at least this size are kept in files without a name, in `/var/tmp` if that is possible and else in memory, \
                and are sent by `sendfile`: that spares copying them once more, and costs a second system call and a file descriptor. \
                `lab/experiments/sendfile.toml` measures from which size on it is cheaper.",
    },
    Key {
        section: "static",
        name: "follow_links",
        kind: SettingKind::Flag(|config| &mut config.statics.follow_links),
        default: Some("false"),
        example: "true",
        about: "Whether symbolic links in `static/` may lead out of it. Links within it are always followed, to what is hidden \
                never. A change needs a restart.",
    },
    Key {
        section: "admin",
        name: "listen",
        kind: SettingKind::SomeAddress(|config| &mut config.admin),
        default: None,
        example: "\"127.0.0.1:9180\"",
        about: "The address and port that answer `millpond explain`: why an address is a hit or \
                a miss, what it depends on and what ended it; and `/counters`, what its connections have done \
                since the start. There is no password, so only the \
                owner should be able to reach it. Absent is off.",
    },
    Key {
        section: "log",
        name: "access",
        kind: SettingKind::Log(|config| &mut config.access_log),
        default: None,
        example: "\"access.log\"",
        about: "The access log in combined format: a path from the site's folder, or `\"-\"` for standard output. Absent is \
                off. Sending SIGHUP to the server opens the file anew, for log rotation.",
    },
    Key {
        section: "proxies",
        name: "protocol",
        kind: SettingKind::Networks(|config| &mut config.limits.proxies.protocol),
        default: Some("[]"),
        example: "[\"10.0.0.2\"]",
        about: "Proxies that begin each connection with a header of the PROXY protocol, version 1 or 2, before TLS. A connection of one \
                without a header, or with a broken one, is closed. Whether the fields of the client that the header names are believed, the other two lists say.",
    },
    Key {
        section: "proxies",
        name: "forwarded",
        kind: SettingKind::Networks(|config| &mut config.limits.proxies.forwarded),
        default: Some("[]"),
        example: "[\"10.0.0.0/24\"]",
        about: "Proxies whose `Forwarded` (RFC 7239) is believed: the last `for` that is none of these proxies is the client, and its `proto` the scheme.",
    },
    Key {
        section: "proxies",
        name: "x_forwarded",
        kind: SettingKind::Networks(|config| &mut config.limits.proxies.x_forwarded),
        default: Some("[\"127.0.0.0/8\", \"::1\"]"),
        example: "[\"127.0.0.0/8\", \"::1\", \"10.0.0.0/24\"]",
        about: "Proxies whose `X-Forwarded-For` is believed: its last address that is none of these proxies is the client. The scheme is the last in \
                `X-Forwarded-Proto`. Of a proxy that is in `proxies.forwarded` too, only `Forwarded` is read.",
    },
    Key {
        section: "limits",
        name: "target",
        kind: SettingKind::Size(|config| &mut config.limits.target, 64, 1 << 20),
        default: Some("\"8KiB\""),
        example: "\"8KiB\"",
        about: "The longest request target (path and query string); beyond it 414. At most `limits.head`.",
    },
    Key {
        section: "limits",
        name: "head",
        kind: SettingKind::Size(|config| &mut config.limits.head, 1 << 10, 1 << 20),
        default: Some("\"64KiB\""),
        example: "\"64KiB\"",
        about: "The longest head: request line and fields; beyond it 431.",
    },
    Key {
        section: "limits",
        name: "body",
        kind: SettingKind::Size(|config| &mut config.limits.body, 0, 1 << 30),
        default: Some("\"1MiB\""),
        example: "\"1MiB\"",
        about: "The longest request body, such as a form with its files; beyond it 413. A body of more than 1 MiB arrives in a file \
                without a name in `TMPDIR`, `/var/tmp` or `/tmp`. One value of SQLite has at most 64 MiB, and while it is \
                written it is in memory three times.",
    },
    Key {
        section: "limits",
        name: "uploads",
        kind: SettingKind::Count(|config| &mut config.uploads.at_once, 0, 100_000),
        default: Some("100"),
        example: "100",
        about: "Forms with [files](site/uploads.md) that are received at once; one more is answered with 503. Each has at most \
                a megabyte in memory.",
    },
    Key {
        section: "limits",
        name: "upload_disk",
        kind: SettingKind::Size(|config| &mut config.uploads.bytes, 0, 1 << 50),
        default: Some("\"4GiB\""),
        example: "\"4GiB\"",
        about: "Bytes of all forms with files that are being received, together; beyond them 503. What one form may have, \
                its `-- file:` lines say; beside its files it has at most `limits.body` of text.",
    },
    Key {
        section: "limits",
        name: "head_timeout",
        kind: SettingKind::Time(|config| &mut config.limits.head_timeout, MILLISECOND, DAY),
        default: Some("\"10s\""),
        example: "\"10s\"",
        about: "From the first byte of a head to its last; beyond it 408.",
    },
    Key {
        section: "limits",
        name: "progress_timeout",
        kind: SettingKind::Time(
            |config| &mut config.limits.progress_timeout,
            MILLISECOND,
            DAY,
        ),
        default: Some("\"30s\""),
        example: "\"30s\"",
        about: "How long a request body may stand still (then 408), or a response that the client does not read (then the \
                connection is closed). A form with a [file that is not taken](site/uploads.md) is read further for so long.",
    },
    Key {
        section: "limits",
        name: "idle_timeout",
        kind: SettingKind::Time(|config| &mut config.limits.idle_timeout, MILLISECOND, DAY),
        default: Some("\"60s\""),
        example: "\"60s\"",
        about: "How long a connection may be silent between requests; then it is closed.",
    },
    Key {
        section: "limits",
        name: "connections",
        kind: SettingKind::Count(|config| &mut config.limits.connections, 1, 1_000_000),
        default: Some("10000"),
        example: "10000",
        about: "Connections open at once; one more is answered with 503. The server raises its limit of file descriptors as \
                far as it may, and says at the start if that is not enough.",
    },
    Key {
        section: "limits",
        name: "client_connections",
        kind: SettingKind::Count(|config| &mut config.limits.client.connections, 0, 1_000_000),
        default: Some("1000"),
        example: "1000",
        about: "Connections that one client has open at once; one more is answered with 503.",
    },
    Key {
        section: "limits",
        name: "client_requests",
        kind: SettingKind::Count(|config| &mut config.limits.client.requests, 0, 1_000_000),
        default: Some("2000"),
        example: "2000",
        about: "Requests that one client makes in a second; beyond it 429 with Retry-After. Four times as many may come at once.",
    },
    Key {
        section: "limits",
        name: "client_writes",
        kind: SettingKind::Count(|config| &mut config.limits.client.writes, 0, 1_000_000),
        default: Some("100"),
        example: "100",
        about: "The same for requests by a method other than GET, HEAD, OPTIONS and TRACE.",
    },
    Key {
        section: "limits",
        name: "client_bytes",
        kind: SettingKind::Size(|config| &mut config.limits.client.bytes, 0, 1 << 40),
        default: Some("\"125MB\""),
        example: "\"125MB\"",
        about: "Bytes that one client receives and sends in a second. Four times as many may pass at once; then its connections pause. The default is a gigabit.",
    },
    Key {
        section: "limits",
        name: "client_exempt",
        kind: SettingKind::Networks(|config| &mut config.limits.client.exempt),
        default: Some("[\"127.0.0.0/8\", \"::1\"]"),
        example: "[\"127.0.0.0/8\", \"::1\", \"203.0.113.7\"]",
        about: "Addresses that have no limits as clients, such as those of a load test or of a monitor.",
    },
    Key {
        section: "limits",
        name: "deadline",
        kind: SettingKind::Time(
            |config| &mut config.deadline,
            Duration::from_millis(10),
            Duration::from_secs(3600),
        ),
        default: Some("\"1s\""),
        example: "\"1s\"",
        about: "How long a request that needs the database or a rendering may wait for its turn. What would wait for longer is answered \
                503 with Retry-After at once: the pages that nobody waits for any more would take the time of the others. Pages in memory \
                never wait. [Under pressure](../guide/production.md#under-pressure) says who goes first.",
    },
    Key {
        section: "limits",
        name: "drain_timeout",
        kind: SettingKind::Time(|config| &mut config.limits.drain_timeout, MILLISECOND, DAY),
        default: Some("\"10s\""),
        example: "\"10s\"",
        about: "How long requests in flight may take to finish after SIGTERM or SIGINT.",
    },
];
