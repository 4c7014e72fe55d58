//! All settings. What each means is in `docs/reference/configuration.md`.

use std::{net::SocketAddr, path::PathBuf, time::Duration};

use millpond_db::FeedKind;
use millpond_http::{ListenAddress, Network};

use super::{
    Config, DatabaseUrl, KeptFile,
    files::FileSettings,
    kept_file,
    session::{Secret, SessionSettings},
};
use crate::{
    locale::{Currency, Locale},
    rules::Scope,
    time_zone::SiteZone,
};

use SettingKind::{
    Address, Cookie, Count, Database, Domains, Feed, File, Flag, Log, Names, Networks, Publication,
    Replicas, Size, SomeAddress, Text, Time, Word, Zone,
};

/// The sections, in the order of the manual; true where a change takes effect without a restart, as
/// a change of a page does.
pub(super) const SECTIONS: [(&str, bool); 12] = [
    ("server", false),
    ("tls", false),
    ("database", false),
    ("cache", false),
    ("live", false),
    ("site", true),
    ("session", true),
    ("static", true),
    ("admin", false),
    ("log", false),
    ("proxies", false),
    ("limits", false),
];

/// One setting. Its meaning is in the manual.
pub(super) struct Key {
    /// Its section and name, as in `server.listen`.
    pub(super) path: &'static str,
    /// The values that it accepts, and the field of [`Config`] that holds them.
    pub(super) kind: SettingKind,
    /// Its default in the notation of the file; `None` if it is absent.
    pub(super) default: Option<&'static str>,
    /// An example in the notation of the file, for hints.
    example: &'static str,
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
    /// An IP address with a port, or the path of a unix socket.
    Address(fn(&mut Config) -> &mut ListenAddress),
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
    /// `true`, `false`, or a path with this ending.
    KeptFile(fn(&mut Config) -> &mut KeptFile, &'static str),
    /// A path.
    File(fn(&mut Config) -> &mut Option<PathBuf>),
    /// One of these words.
    Word(
        fn(&mut Config) -> &mut &'static str,
        &'static [&'static str],
    ),
    /// Any text.
    Text(fn(&mut Config) -> &mut Option<String>),
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
    /// Addresses and networks in CIDR notation.
    Networks(fn(&mut Config) -> &mut Vec<Network>),
    /// Names of files.
    Names(fn(&mut FileSettings) -> &mut Vec<String>),
    /// `true`, `false`, or a list of paths.
    Scope(fn(&mut FileSettings) -> &mut Scope),
}

/// A setting whose default is also its example.
const fn key(path: &'static str, kind: SettingKind, default: &'static str) -> Key {
    Key {
        path,
        kind,
        default: Some(default),
        example: default,
    }
}

/// A setting without a default.
const fn absent(path: &'static str, kind: SettingKind, example: &'static str) -> Key {
    Key {
        default: None,
        ..key(path, kind, example)
    }
}

impl Key {
    const fn example(self, example: &'static str) -> Self {
        Self { example, ..self }
    }

    /// Section and name.
    pub(super) fn parts(&self) -> (&'static str, &'static str) {
        self.path.split_once('.').unwrap_or((self.path, ""))
    }

    /// True if a change takes effect without a restart.
    pub(super) fn is_live(&self) -> bool {
        // The watch over the folder begins with this one.
        SECTIONS.contains(&(self.parts().0, true)) && self.path != "static.follow_links"
    }

    /// A correct line for the file.
    pub(super) fn line(&self) -> String {
        format!("{} = {}", self.parts().1, self.example)
    }
}

const MILLISECOND: Duration = Duration::from_millis(1);
const DAY: Duration = Duration::from_secs(86_400);

/// The settings, in the order of the manual.
pub(super) const KEYS: [Key; 78] = [
    key(
        "server.listen",
        Address(|config| &mut config.listen),
        "\"127.0.0.1:8080\"",
    ),
    key(
        "server.workers",
        Count(|config| &mut config.workers, 0, 1024),
        "0",
    ),
    key(
        "server.spin",
        Flag(|config| &mut config.limits.spins),
        "true",
    ),
    key("server.dev", Flag(|config| &mut config.dev), "true").example("false"),
    key(
        "server.timing",
        Word(|config| &mut config.timing, &["off", "dev", "on"]),
        "\"dev\"",
    )
    .example("\"on\""),
    key(
        "server.drain_delay",
        Time(
            |config| &mut config.drain_delay,
            Duration::ZERO,
            Duration::from_secs(600),
        ),
        "\"0s\"",
    )
    .example("\"10s\""),
    absent("server.user", Text(|config| &mut config.user), "\"blog\""),
    key("server.sandbox", Flag(|config| &mut config.sandbox), "true"),
    absent(
        "tls.listen",
        SomeAddress(|config| &mut config.tls.listen),
        "\"0.0.0.0:443\"",
    ),
    key(
        "tls.domains",
        Domains(|config| &mut config.tls.domains),
        "[]",
    )
    .example("[\"example.org\", \"www.example.org\"]"),
    absent(
        "tls.certificate",
        File(|config| &mut config.tls.certificate),
        "\"tls/example.org.pem\"",
    ),
    absent(
        "tls.key",
        File(|config| &mut config.tls.key),
        "\"tls/example.org.key\"",
    ),
    absent(
        "tls.storage",
        File(|config| &mut config.tls.storage),
        "\"/var/lib/millpond/tls\"",
    ),
    key(
        "tls.acme_directory",
        Text(|config| &mut config.tls.acme_directory),
        "\"https://acme-v02.api.letsencrypt.org/directory\"",
    )
    .example("\"https://acme-staging-v02.api.letsencrypt.org/directory\""),
    absent(
        "tls.acme_trust",
        File(|config| &mut config.tls.acme_trust),
        "\"tls/authority.pem\"",
    ),
    absent(
        "tls.acme_email",
        Text(|config| &mut config.tls.acme_email),
        "\"you@example.org\"",
    ),
    absent(
        "tls.profile",
        Text(|config| &mut config.tls.profile),
        "\"shortlived\"",
    ),
    absent(
        "tls.client_authorities",
        File(|config| &mut config.tls.client_authorities),
        "\"tls/clients.pem\"",
    ),
    key(
        "tls.hsts",
        Time(
            |config| &mut config.tls.hsts,
            Duration::ZERO,
            DAY.saturating_mul(730),
        ),
        "\"0s\"",
    )
    .example("\"180d\""),
    key(
        "database.url",
        Database(|config| &mut config.database),
        "\"sqlite:site.db\"",
    ),
    key(
        "database.replicas",
        Replicas(|config| &mut config.replicas),
        "[]",
    )
    .example("[\"db2.example.com:5432\"]"),
    key(
        "database.pool",
        Count(|config| &mut config.pool, 1, 256),
        "8",
    ),
    key(
        "database.queue",
        Count(|config| &mut config.queue, 1, 65_536),
        "1024",
    ),
    key(
        "database.statement_timeout",
        Time(
            |config| &mut config.statement_timeout,
            Duration::from_millis(100),
            Duration::from_secs(3600),
        ),
        "\"5s\"",
    ),
    key(
        "database.feed",
        Feed(|config| &mut config.feed),
        "\"logical\"",
    ),
    key(
        "database.publication",
        Publication(|config| &mut config.publication),
        "\"millpond\"",
    ),
    key("cache.enabled", Flag(|config| &mut config.cache), "true"),
    key(
        "cache.memory",
        Size(
            |config| &mut config.memory,
            1 << 20,
            isize::MAX.unsigned_abs(),
        ),
        "\"256MB\"",
    ),
    key(
        "cache.max_staleness",
        Time(
            |config| &mut config.max_staleness,
            Duration::from_millis(50),
            DAY,
        ),
        "\"1s\"",
    ),
    key(
        "cache.stale_if_error",
        Time(|config| &mut config.stale_if_error, Duration::ZERO, DAY),
        "\"0s\"",
    )
    .example("\"10min\""),
    key(
        "cache.refresh_ahead",
        Count(|config| &mut config.refresh_ahead, 0, 100),
        "25",
    ),
    key(
        "cache.warm_list",
        SettingKind::KeptFile(|config| &mut config.warm_list, kept_file::WARM),
        "true",
    )
    .example("\"/var/lib/millpond/site.warm\""),
    key(
        "live.everywhere",
        Flag(|config| &mut config.live.everywhere),
        "false",
    ),
    key(
        "live.interval",
        Time(
            |config| &mut config.live.interval,
            Duration::from_millis(10),
            DAY,
        ),
        "\"100ms\"",
    ),
    key(
        "live.streams",
        Count(|config| &mut config.live.streams, 0, 10_000_000),
        "100000",
    ),
    absent(
        "site.locale",
        SettingKind::Locale(|config| &mut config.formats.locale),
        "\"de\"",
    ),
    absent(
        "site.currency",
        SettingKind::Currency(|config| &mut config.formats.currency),
        "\"EUR\"",
    ),
    absent(
        "site.timezone",
        Zone(|config| &mut config.formats.zone),
        "\"Europe/Vienna\"",
    ),
    absent(
        "session.secret",
        SettingKind::Secret(|session| &mut session.secret),
        "\"env:SESSION_SECRET\"",
    ),
    key(
        "session.lifetime",
        Time(
            |config| &mut config.session.lifetime,
            Duration::from_secs(1),
            Duration::from_secs(400 * 86_400),
        ),
        "\"14d\"",
    ),
    key(
        "session.cookie",
        Cookie(|session| &mut session.cookie),
        "\"session\"",
    ),
    key(
        "session.secure",
        Flag(|config| &mut config.session.secure),
        "true",
    ),
    key(
        "session.bearer",
        Flag(|config| &mut config.session.bearer),
        "false",
    )
    .example("true"),
    key(
        "static.index",
        Names(|files| &mut files.index),
        "[\"index.html\"]",
    )
    .example("[\"index.html\", \"index.htm\"]"),
    key(
        "static.listing",
        SettingKind::Scope(|files| &mut files.listing),
        "false",
    )
    .example("[\"/downloads/*\"]"),
    key(
        "static.clean_urls",
        Flag(|config| &mut config.files.clean_urls),
        "false",
    )
    .example("true"),
    key(
        "static.immutable",
        SettingKind::Scope(|files| &mut files.immutable),
        "false",
    )
    .example("true"),
    key(
        "static.memory",
        Size(
            |config| &mut config.statics.memory,
            0,
            isize::MAX.unsigned_abs(),
        ),
        "\"256MB\"",
    ),
    key(
        "static.in_memory",
        Size(|config| &mut config.statics.in_memory, 0, 64 << 20),
        "\"4MiB\"",
    ),
    key(
        "static.sendfile_from",
        Size(|config| &mut config.statics.sendfile_from, 0, 1 << 30),
        "\"64KiB\"",
    ),
    key(
        "static.follow_links",
        Flag(|config| &mut config.statics.follow_links),
        "false",
    )
    .example("true"),
    absent(
        "admin.listen",
        SomeAddress(|config| &mut config.admin),
        "\"127.0.0.1:9180\"",
    ),
    key(
        "admin.max_feed_age",
        Time(|config| &mut config.max_feed_age, Duration::ZERO, DAY),
        "\"0s\"",
    )
    .example("\"30s\""),
    key(
        "admin.history",
        SettingKind::KeptFile(|config| &mut config.history, kept_file::HISTORY),
        "true",
    )
    .example("\"/var/lib/millpond/history.db\""),
    absent(
        "admin.otlp",
        Text(|config| &mut config.otlp),
        "\"http://127.0.0.1:4318/v1/metrics\"",
    ),
    key(
        "admin.otlp_interval",
        Time(
            |config| &mut config.otlp_interval,
            Duration::from_secs(1),
            DAY,
        ),
        "\"60s\"",
    ),
    absent(
        "log.access",
        Log(|config| &mut config.access_log),
        "\"access.log\"",
    ),
    key(
        "log.format",
        Word(|config| &mut config.log_format, &["text", "json"]),
        "\"text\"",
    )
    .example("\"json\""),
    key(
        "log.cut_addresses",
        Flag(|config| &mut config.cut_addresses),
        "false",
    )
    .example("true"),
    key(
        "proxies.protocol",
        Networks(|config| &mut config.limits.proxies.protocol),
        "[]",
    )
    .example("[\"10.0.0.2\"]"),
    key(
        "proxies.forwarded",
        Networks(|config| &mut config.limits.proxies.forwarded),
        "[]",
    )
    .example("[\"10.0.0.0/24\"]"),
    key(
        "proxies.x_forwarded",
        Networks(|config| &mut config.limits.proxies.x_forwarded),
        "[\"127.0.0.0/8\", \"::1\"]",
    )
    .example("[\"127.0.0.0/8\", \"::1\", \"10.0.0.0/24\"]"),
    key(
        "limits.target",
        Size(|config| &mut config.limits.target, 64, 1 << 20),
        "\"8KiB\"",
    ),
    key(
        "limits.head",
        Size(|config| &mut config.limits.head, 1 << 10, 1 << 20),
        "\"64KiB\"",
    ),
    key(
        "limits.body",
        Size(|config| &mut config.limits.body, 0, 1 << 30),
        "\"1MiB\"",
    ),
    key(
        "limits.uploads",
        Count(|config| &mut config.uploads.at_once, 0, 100_000),
        "100",
    ),
    key(
        "limits.upload_disk",
        Size(|config| &mut config.uploads.bytes, 0, 1 << 50),
        "\"4GiB\"",
    ),
    key(
        "limits.head_timeout",
        Time(|config| &mut config.limits.head_timeout, MILLISECOND, DAY),
        "\"10s\"",
    ),
    key(
        "limits.progress_timeout",
        Time(
            |config| &mut config.limits.progress_timeout,
            MILLISECOND,
            DAY,
        ),
        "\"30s\"",
    ),
    key(
        "limits.idle_timeout",
        Time(|config| &mut config.limits.idle_timeout, MILLISECOND, DAY),
        "\"60s\"",
    ),
    key(
        "limits.connections",
        Count(|config| &mut config.limits.connections, 1, 1_000_000),
        "10000",
    ),
    key(
        "limits.client_connections",
        Count(|config| &mut config.limits.client.connections, 0, 1_000_000),
        "1000",
    ),
    key(
        "limits.client_requests",
        Count(|config| &mut config.limits.client.requests, 0, 1_000_000),
        "2000",
    ),
    key(
        "limits.client_writes",
        Count(|config| &mut config.limits.client.writes, 0, 1_000_000),
        "100",
    ),
    key(
        "limits.client_bytes",
        Size(|config| &mut config.limits.client.bytes, 0, 1 << 40),
        "\"125MB\"",
    ),
    key(
        "limits.client_exempt",
        Networks(|config| &mut config.limits.client.exempt),
        "[\"127.0.0.0/8\", \"::1\"]",
    )
    .example("[\"127.0.0.0/8\", \"::1\", \"203.0.113.7\"]"),
    key(
        "limits.deadline",
        Time(
            |config| &mut config.deadline,
            Duration::from_millis(10),
            Duration::from_secs(3600),
        ),
        "\"1s\"",
    ),
    key(
        "limits.drain_timeout",
        Time(|config| &mut config.limits.drain_timeout, MILLISECOND, DAY),
        "\"10s\"",
    ),
];
