//! `[[alert]]`: figures that alert the owner.

use std::{path::Path, time::Duration};

use toml::de::DeValue;

use super::{
    Config, list,
    tables::{ConfigEntry, EntryKind},
    value::{show_time, text},
};
use crate::{Problem, duration};

/// Names of the figures, each with whether it is a share, and whether a low value is bad.
const FIGURES: [(&str, bool, bool); 7] = [
    ("hit_rate", true, true),
    ("p99", false, false),
    ("feed_age", false, false),
    ("errors", true, false),
    ("refused", true, false),
    ("cores", true, false),
    ("certificate", false, true),
];

/// A rule: a figure, its limit, and who is told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AlertRule {
    /// The rule in words, such as `errors above 1% for 5min`. No other rule has the same.
    pub name: String,
    /// The name of the figure.
    pub figure: &'static str,
    /// The limit: millionths of a share, or milliseconds.
    pub limit: u64,
    /// True if a figure below the limit is bad.
    pub is_low_bad: bool,
    /// How long the figure must be beyond the limit, and within it again.
    pub lasts: Duration,
    /// The URL to which its beginning and its end are posted.
    pub webhook: Option<String>,
}

pub(super) const ALERT: EntryKind = EntryKind {
    name: "alert",
    keys: &[
        ("of", "\"errors\""),
        ("limit", "\"1%\""),
        ("for", "\"5min\""),
        ("webhook", "\"https://hooks.example.org/millpond\""),
    ],
    read: alert,
};

const DAY: Duration = Duration::from_hours(24);

fn alert(config: &mut Config, entry: &ConfigEntry<'_>, _dir: &Path) -> Result<(), Problem> {
    let (figure, is_share, is_low_bad) = entry.need("of", named_figure)?;
    let lasts = match entry.find("for") {
        None => Duration::from_mins(5),
        Some(_) => entry.need("for", |value| time(text(value)?, Duration::ZERO, DAY))?,
    };
    let (limit, name) = entry.need("limit", |value| {
        let shown = text(value)?;
        let side = if is_low_bad { "below" } else { "above" };
        let lasts = (!lasts.is_zero()).then(|| format!(" for {}", show_time(lasts)));
        let name = format!("{figure} {side} {shown}{}", lasts.unwrap_or_default());
        if config.alerts.iter().any(|other| other.name == name) {
            return Err(format!("the rule `{name}` is there twice"));
        }
        match is_share {
            true => Ok((share(shown)?, name)),
            // No certificate is longer valid.
            false => {
                let limit = time(shown, Duration::from_millis(1), DAY * 398)?;
                Ok((u64::try_from(limit.as_millis()).unwrap_or(u64::MAX), name))
            }
        }
    })?;
    let webhook = match entry.find("webhook") {
        None => None,
        Some(_) => Some(entry.need("webhook", url)?),
    };
    config.alerts.push(AlertRule {
        name,
        figure,
        limit,
        is_low_bad,
        lasts,
        webhook,
    });
    Ok(())
}

fn named_figure(value: &DeValue<'_>) -> Result<(&'static str, bool, bool), String> {
    let name = text(value)?;
    let found = FIGURES.iter().find(|(known, ..)| *known == name);
    found.copied().ok_or_else(|| {
        let names = FIGURES.iter().map(|(name, ..)| format!("`{name}`"));
        format!("there is no figure `{name}`; there are {}", list(names))
    })
}

/// A share in millionths. One that every value, or none, is beyond would say nothing.
fn share(text: &str) -> Result<u64, String> {
    let percent = text.strip_suffix('%').map(str::trim);
    match percent.and_then(|percent| percent.parse::<f64>().ok()) {
        Some(percent) if (0.0001..100.0).contains(&percent) => Ok((percent * 1e4).round() as u64),
        _ => Err(format!(
            "`{text}` is no share from 0.0001% to less than 100%, such as 0.5%"
        )),
    }
}

fn time(text: &str, least: Duration, most: Duration) -> Result<Duration, String> {
    let time = duration::parse(text)?;
    match (least..=most).contains(&time) {
        true => Ok(time),
        false => Err(format!(
            "{text} is not within {} and {}",
            show_time(least),
            show_time(most)
        )),
    }
}

fn url(value: &DeValue<'_>) -> Result<String, String> {
    let url = text(value)?;
    let rest = url.strip_prefix("http://").or(url.strip_prefix("https://"));
    let host = rest.and_then(|rest| rest.split(['/', '?']).next());
    let is_plain = url.bytes().all(|byte| byte.is_ascii_graphic()) && !url.contains('#');
    match host.is_some_and(|host| !host.is_empty() && !host.contains('@')) && is_plain {
        true => Ok(url.to_owned()),
        false => Err(format!(
            "`{url}` is no address to post to; it begins with https:// or http:// and a host"
        )),
    }
}
