//! `[[host]]`: several sites at one address.

use std::path::{Path, PathBuf};

use toml::de::DeValue;

use super::{
    Config,
    tables::{ConfigEntry, EntryKind},
    value::{file, text, texts},
};
use crate::Problem;

/// The longest name that a host can have (RFC 1035 section 2.3.4, without the dot at the end).
pub const MAX_NAME: usize = 253;

/// A site and the names to which it responds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Host {
    pub names: Vec<HostName>,
    /// The folder of the site, as an absolute path.
    pub site: PathBuf,
    /// The folder as it is written in the file.
    pub shown: PathBuf,
    /// PEM files with the certificate of the names, and with its key.
    pub certificate: Option<(PathBuf, PathBuf)>,
}

/// A host name that a client may request, in lower case.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum HostName {
    /// `www.example.org`, or an address.
    Exact(String),
    /// `*.example.org`: every name with this suffix, stored without the asterisk and its dot.
    Below(String),
    /// `*`: every name that matches no other entry.
    Any,
}

pub(super) const HOST: EntryKind = EntryKind {
    name: "host",
    keys: &[
        ("names", "[\"example.org\", \"*.example.org\"]"),
        ("site", "\"example\""),
        ("certificate", "\"tls/example.org.pem\""),
        ("key", "\"tls/example.org.key\""),
    ],
    read: host,
};

fn host(config: &mut Config, entry: &ConfigEntry<'_>, dir: &Path) -> Result<(), Problem> {
    let names = entry.need("names", |value| names(value, &config.hosts))?;
    let shown = entry.need("site", |value| match text(value)? {
        "" | "." | "./" => Err("it must be another folder than this one".to_owned()),
        path if path.contains('\0') => Err(format!("`{path}` is no folder")),
        path => Ok(PathBuf::from(path)),
    })?;
    let certificate = certificate(entry, dir)?;
    config.hosts.push(Host {
        names,
        site: dir.join(&shown),
        shown,
        certificate,
    });
    Ok(())
}

/// The files of the certificate and of its key, which belong together.
fn certificate(entry: &ConfigEntry<'_>, dir: &Path) -> Result<Option<(PathBuf, PathBuf)>, Problem> {
    if entry.find("certificate").is_none() && entry.find("key").is_none() {
        return Ok(None);
    }
    let path = |value: &DeValue<'_>| file(text(value)?, dir);
    Ok(Some((
        entry.need("certificate", path)?,
        entry.need("key", path)?,
    )))
}

fn names(value: &DeValue<'_>, before: &[Host]) -> Result<Vec<HostName>, String> {
    let mut names = Vec::new();
    for text in texts(value, "a list of names in quotes")? {
        let name = HostName::parse(text)?;
        let taken = before.iter().any(|host| host.names.contains(&name));
        if taken || names.contains(&name) {
            return Err(format!("`{text}` is the name of two sites, or named twice"));
        }
        names.push(name);
    }
    match names.is_empty() {
        true => Err("a site that no name leads to".to_owned()),
        false => Ok(names),
    }
}

impl HostName {
    fn parse(text: &str) -> Result<Self, String> {
        if text == "*" {
            return Ok(Self::Any);
        }
        let lower = text.to_ascii_lowercase();
        let (name, below) = match lower.strip_prefix("*.") {
            Some(name) => (name, true),
            None => (lower.as_str(), false),
        };
        if !name.is_ascii() {
            return Err(format!(
                "`{text}` has letters beyond ASCII; browsers send such a name in the form that begins with xn--"
            ));
        }
        let is_address = name.starts_with('[') && name.ends_with(']') && !below;
        let good = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
        let is_name = name.len() <= MAX_NAME
            && name
                .split('.')
                .all(|part| !part.is_empty() && part.chars().all(good));
        if !is_name && !is_address {
            return Err(format!(
                "`{text}` is no name of a host: it has neither scheme nor port nor path, and a `*` only as its first part"
            ));
        }
        Ok(if below {
            Self::Below(name.to_owned())
        } else {
            Self::Exact(name.to_owned())
        })
    }
}

impl Host {
    /// Reads the configuration of one of several sites.
    pub fn read(&self) -> Result<Config, Problem> {
        let config = Config::read(&self.site)?;
        if config.has_hosts() {
            let problem = Problem::new(
                crate::problem::SETTINGS,
                "a site among several has sites of its own",
            );
            return Err(problem.hint("name all of them in the file of the folder that is served"));
        }
        Ok(config)
    }
}
