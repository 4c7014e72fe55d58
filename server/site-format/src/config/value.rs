//! Converts a value of the file to a field of [`Config`].

use std::{
    net::SocketAddr,
    path::{Path, PathBuf},
    time::Duration,
};

use millpond_db::{FeedKind, PostgresOptions};
use millpond_http::{ListenAddress, Network};
use toml::{Spanned, de::DeValue};

use super::{
    Config, DatabaseUrl, KeptFile,
    keys::{Key, SettingKind},
    list, session, tls,
};
use crate::{
    duration,
    locale::{self, Currency, Locale},
    rules::{PathPattern, Scope},
    time_zone::SiteZone,
};

/// Sets `key` to `value`. Paths are taken from `dir`.
///
/// # Errors
/// A message about the error in the value.
pub(super) fn set(
    config: &mut Config,
    key: &Key,
    value: &DeValue<'_>,
    dir: &Path,
) -> Result<(), String> {
    match key.kind {
        SettingKind::Flag(field) => {
            let flag = value.as_bool();
            *field(config) = flag.ok_or_else(|| expected("true or false", value))?;
        }
        SettingKind::Count(field, least, most) => {
            *field(config) = within(count(value)?, &least, &most, &usize::to_string)?;
        }
        SettingKind::Size(field, least, most) => {
            *field(config) = within(size(value)?, &least, &most, &|bytes| show_size(*bytes))?;
        }
        SettingKind::Time(field, least, most) => {
            *field(config) = within(time(value)?, &least, &most, &|time| show_time(*time))?;
        }
        SettingKind::Address(field) => {
            *field(config) = match listen_address(text(value)?)? {
                ListenAddress::Unix(path) => ListenAddress::Unix(dir.join(path)),
                address => address,
            }
        }
        SettingKind::SomeAddress(field) => *field(config) = Some(ip_address(text(value)?)?),
        SettingKind::Database(field) => *field(config) = DatabaseUrl::parse(text(value)?, dir)?,
        SettingKind::Feed(field) => *field(config) = feed(text(value)?)?,
        SettingKind::Replicas(field) => *field(config) = replicas(value)?,
        SettingKind::Publication(field) => *field(config) = publication(text(value)?)?,
        SettingKind::KeptFile(field, ending) => {
            *field(config) = KeptFile::parse(value, dir, ending)?;
        }
        SettingKind::File(field) => *field(config) = Some(file(text(value)?, dir)?),
        SettingKind::Word(field, words) => *field(config) = word(text(value)?, words)?,
        SettingKind::Text(field) => *field(config) = Some(words(text(value)?)?),
        SettingKind::Networks(field) => *field(config) = networks(value)?,
        SettingKind::Domains(field) => *field(config) = tls::domains(value)?,
        SettingKind::Log(field) => *field(config) = Some(log(text(value)?, dir)?),
        SettingKind::Locale(field) => *field(config) = locale(text(value)?)?,
        SettingKind::Currency(field) => *field(config) = Some(currency(text(value)?)?),
        SettingKind::Zone(field) => *field(config) = SiteZone::find(text(value)?)?,
        SettingKind::Secret(field) => *field(&mut config.session) = session::secret(value)?,
        SettingKind::Cookie(field) => *field(&mut config.session) = session::cookie(value)?,
        SettingKind::Names(field) => *field(&mut config.files) = names(value)?,
        SettingKind::Scope(field) => *field(&mut config.files) = scope(value)?,
    }
    Ok(())
}

/// Sets `key` to its default.
pub(super) fn set_default(config: &mut Config, key: &Key, dir: &Path) -> Result<(), String> {
    match key.default {
        Some(default) => {
            let value = DeValue::parse(default)
                .map(Spanned::into_inner)
                .map_err(|error| error.to_string())?;
            set(config, key, &value, dir)
        }
        None => Ok(()),
    }
}

/// True if `key` has the same value in both.
pub(super) fn is_same(key: &Key, one: &Config, other: &Config) -> bool {
    // The table has one accessor for reading and writing, so that the two cannot name different
    // fields.
    fn both<T: PartialEq>(field: fn(&mut Config) -> &mut T, one: &Config, other: &Config) -> bool {
        *field(&mut one.clone()) == *field(&mut other.clone())
    }
    match key.kind {
        SettingKind::Flag(field) => both(field, one, other),
        SettingKind::Count(field, ..) | SettingKind::Size(field, ..) => both(field, one, other),
        SettingKind::Time(field, ..) => both(field, one, other),
        SettingKind::Address(field) => both(field, one, other),
        SettingKind::SomeAddress(field) => both(field, one, other),
        SettingKind::Database(field) => both(field, one, other),
        SettingKind::Feed(field) => both(field, one, other),
        SettingKind::Replicas(field) => both(field, one, other),
        SettingKind::Publication(field) => both(field, one, other),
        SettingKind::KeptFile(field, _) => both(field, one, other),
        SettingKind::File(field) | SettingKind::Log(field) => both(field, one, other),
        SettingKind::Text(field) => both(field, one, other),
        SettingKind::Word(field, _) => both(field, one, other),
        SettingKind::Networks(field) => both(field, one, other),
        SettingKind::Domains(field) => both(field, one, other),
        SettingKind::Locale(field) => both(field, one, other),
        SettingKind::Currency(field) => both(field, one, other),
        SettingKind::Zone(field) => both(field, one, other),
        SettingKind::Secret(_) | SettingKind::Cookie(_) => one.session == other.session,
        SettingKind::Names(_) | SettingKind::Scope(_) => one.files == other.files,
    }
}

pub(super) fn expected(what: &str, value: &DeValue<'_>) -> String {
    let found = match value {
        DeValue::String(_) => "text",
        DeValue::Integer(_) => "a whole number",
        DeValue::Float(_) => "a number with a decimal point",
        DeValue::Boolean(_) => "true or false",
        DeValue::Datetime(_) => "a date",
        DeValue::Array(_) => "a list",
        DeValue::Table(_) => "a table",
    };
    format!("this is {found}; {what} is expected")
}

pub(super) fn text<'v>(value: &'v DeValue<'_>) -> Result<&'v str, String> {
    value
        .as_str()
        .ok_or_else(|| expected("text in quotes", value))
}

pub(super) fn count(value: &DeValue<'_>) -> Result<usize, String> {
    let integer = value
        .as_integer()
        .ok_or_else(|| expected("a whole number", value))?;
    usize::from_str_radix(integer.as_str(), integer.radix()).map_err(|_| {
        match integer.as_str().starts_with('-') {
            true => "a number below zero makes no sense here".to_owned(),
            false => "this number is too large".to_owned(),
        }
    })
}

fn within<T: PartialOrd>(
    value: T,
    least: &T,
    most: &T,
    show: &dyn Fn(&T) -> String,
) -> Result<T, String> {
    if value < *least {
        Err(format!(
            "{} is too little, the least is {}",
            show(&value),
            show(least)
        ))
    } else if value > *most {
        Err(format!(
            "{} is too much, the most is {}",
            show(&value),
            show(most)
        ))
    } else {
        Ok(value)
    }
}

/// The units of sizes, the longest names first, so that `KiB` is not taken for `B`.
const UNITS: [(&str, usize); 7] = [
    ("KiB", 1 << 10),
    ("MiB", 1 << 20),
    ("GiB", 1 << 30),
    ("KB", 1_000),
    ("MB", 1_000_000),
    ("GB", 1_000_000_000),
    ("B", 1),
];

fn size(value: &DeValue<'_>) -> Result<usize, String> {
    if value.is_integer() {
        return count(value);
    }
    let whole = value
        .as_str()
        .ok_or_else(|| expected("a size such as \"64KiB\"", value))?;
    parse_size(whole)
}

/// A size such as `64KiB` in bytes.
pub fn parse_size(whole: &str) -> Result<usize, String> {
    let bad =
        || format!("`{whole}` is no size: a whole number and one of B, KB, MB, GB, KiB, MiB, GiB");
    let digits = whole.bytes().take_while(u8::is_ascii_digit).count();
    let unit = whole[digits..].trim();
    let found = UNITS
        .iter()
        .find(|(name, _)| unit.eq_ignore_ascii_case(name));
    let (Some((_, unit)), false) = (found, digits == 0) else {
        return Err(bad());
    };
    let number: Option<usize> = whole[..digits].parse().ok();
    number
        .and_then(|number| number.checked_mul(*unit))
        .ok_or_else(|| format!("`{whole}` is more than any machine has"))
}

/// A size in the largest unit that leaves no remainder.
pub(super) fn show_size(bytes: usize) -> String {
    let fits = |&&(name, unit): &&(&str, usize)| {
        bytes >= unit && bytes.is_multiple_of(unit) && name != "B"
    };
    match UNITS.iter().filter(fits).max_by_key(|(_, unit)| *unit) {
        Some((name, unit)) => format!("{}{name}", bytes / unit),
        None => format!("{bytes}B"),
    }
}

fn time(value: &DeValue<'_>) -> Result<Duration, String> {
    match value {
        DeValue::Integer(number) => Err(format!(
            "{number} of what? A span of time has a unit: ms, s, min, h or d"
        )),
        _ => duration::parse(
            value
                .as_str()
                .ok_or_else(|| expected("a span of time such as \"1s\"", value))?,
        ),
    }
}

/// A duration in the largest unit that leaves no remainder.
pub fn show_time(time: Duration) -> String {
    let units = [
        (86_400_000, "d"),
        (3_600_000, "h"),
        (60_000, "min"),
        (1_000, "s"),
    ];
    let milliseconds = time.as_millis();
    match units
        .iter()
        .find(|(unit, _)| milliseconds >= *unit && milliseconds.is_multiple_of(*unit))
    {
        Some((unit, name)) => format!("{}{name}", milliseconds / unit),
        None => format!("{milliseconds}ms"),
    }
}

/// The longest path of a unix socket (unix(7)), without the zero at its end.
const MAX_SOCKET_PATH: usize = 107;

/// The address to answer on that `text` writes, such as `127.0.0.1:8080` or `unix:/run/blog.sock`.
///
/// # Errors
/// As [`ip_address`]; a path that no socket can have.
pub fn listen_address(text: &str) -> Result<ListenAddress, String> {
    match text.strip_prefix("unix:") {
        None => ip_address(text).map(ListenAddress::Ip),
        Some(path) if path.is_empty() || path.len() > MAX_SOCKET_PATH || path.contains('\0') => {
            Err(format!(
                "`{text}` has no path of a unix socket, which has 1 to {MAX_SOCKET_PATH} bytes"
            ))
        }
        Some(path) => Ok(ListenAddress::Unix(path.into())),
    }
}

/// The IP address with a port that `text` writes.
///
/// # Errors
/// It is no IP address with a port. The sentence says what is missing, and what may be meant.
pub fn ip_address(text: &str) -> Result<SocketAddr, String> {
    text.parse().map_err(|_| {
        if text.parse::<u16>().is_ok() {
            return format!(
                "`{text}` is a port without an IP address; did you mean 127.0.0.1:{text}?"
            );
        }
        let host = text.rsplit_once(':').map_or(text, |(host, _)| host);
        match host {
            "localhost" => format!(
                "`{text}` has a name where an IP address is expected; localhost is 127.0.0.1"
            ),
            "" | "*" => {
                format!("`{text}` has no IP address; 0.0.0.0 is every IPv4 address of the machine")
            }
            _ => format!("`{text}` is no IP address with a port"),
        }
    })
}

/// How a server reports changes.
fn feed(name: &str) -> Result<FeedKind, String> {
    let found = FeedKind::ALL.iter().find(|(_, known)| *known == name);
    found.map(|(kind, _)| *kind).ok_or_else(|| {
        format!("`{name}` is no feed of changes; there are `logical` and `triggers`")
    })
}

/// Standbys: hosts in addition to the URL's.
fn replicas(value: &DeValue<'_>) -> Result<Vec<String>, String> {
    let hosts = texts(value, "a list of hosts in quotes")?;
    for (at, host) in hosts.iter().enumerate() {
        PostgresOptions::check_replica(host).map_err(|error| error.to_string())?;
        if hosts[..at].contains(host) {
            return Err(format!("`{host}` is there twice"));
        }
    }
    Ok(hosts.into_iter().map(str::to_owned).collect())
}

/// The name of a publication, as PostgreSQL accepts it between quotes.
fn publication(name: &str) -> Result<String, String> {
    // NAMEDATALEN less one: PostgreSQL cuts what is longer, and would then not find it.
    const MAX: usize = 63;
    if name.is_empty() || name.len() > MAX || name.chars().any(char::is_control) {
        return Err(format!("`{name}` is no name of a publication"));
    }
    Ok(name.to_owned())
}

fn locale(tag: &str) -> Result<&'static Locale, String> {
    Locale::find(tag).map_err(|near| match near {
        Some(near) => format!("there is no locale `{tag}`; did you mean `{near}`?"),
        None => format!("there is no locale `{tag}`; there are {}", locale::tags()),
    })
}

fn currency(code: &str) -> Result<Currency, String> {
    Currency::parse(code).ok_or_else(|| {
        format!("`{code}` is no currency: three capital letters, such as EUR, are expected")
    })
}

fn log(path: &str, dir: &Path) -> Result<PathBuf, String> {
    match path {
        "-" => Ok(PathBuf::from("-")),
        _ => file(path, dir),
    }
}

/// One of some words.
fn word(text: &str, words: &'static [&'static str]) -> Result<&'static str, String> {
    let found = words.iter().copied().find(|word| *word == text);
    found.ok_or_else(|| {
        let words = words.iter().map(|word| format!("`{word}`"));
        format!("`{text}` is none of {}", list(words))
    })
}

/// A text on one line.
fn words(text: &str) -> Result<String, String> {
    if text.trim().is_empty() || text.chars().any(char::is_control) {
        return Err("a text on one line is expected, and not an empty one".to_owned());
    }
    Ok(text.to_owned())
}

pub(super) fn file(path: &str, dir: &Path) -> Result<PathBuf, String> {
    match path {
        _ if path.is_empty() || path.ends_with('/') || path.contains('\0') => {
            Err(format!("`{path}` names no file"))
        }
        _ => Ok(dir.join(path)),
    }
}

/// The texts of a list.
pub(super) fn texts<'v>(value: &'v DeValue<'_>, what: &str) -> Result<Vec<&'v str>, String> {
    let list = value.as_array().ok_or_else(|| expected(what, value))?;
    list.iter().map(|entry| text(entry.get_ref())).collect()
}

fn networks(value: &DeValue<'_>) -> Result<Vec<Network>, String> {
    let networks = texts(value, "a list of addresses and networks in quotes")?;
    networks.into_iter().map(str::parse).collect()
}

fn names(value: &DeValue<'_>) -> Result<Vec<String>, String> {
    let names = texts(value, "a list of names in quotes")?.into_iter();
    let name = |name: &str| {
        let is_file = !name.is_empty() && !name.starts_with('.');
        if !is_file || name.contains('/') || name.chars().any(char::is_control) {
            return Err(format!("`{name}` is no name of a file that is served"));
        }
        Ok(name.to_owned())
    };
    names.map(name).collect()
}

fn scope(value: &DeValue<'_>) -> Result<Scope, String> {
    match value {
        DeValue::Boolean(true) => Ok(Scope::Everywhere),
        DeValue::Boolean(false) => Ok(Scope::Nowhere),
        _ => texts(value, "true, false or a list of paths in quotes")?
            .into_iter()
            .map(PathPattern::parse)
            .collect::<Result<_, _>>()
            .map(Scope::Paths),
    }
}

/// Writes a size for a visitor, as it is.
pub fn in_units(bytes: usize) -> String {
    match bytes {
        _ if bytes.is_multiple_of(1_000_000) => format!("{} MB", bytes / 1_000_000),
        _ if bytes.is_multiple_of(1_000) => format!("{} KB", bytes / 1_000),
        _ if bytes.is_multiple_of(1 << 20) => format!("{} MiB", bytes >> 20),
        _ => format!("{bytes} bytes"),
    }
}
