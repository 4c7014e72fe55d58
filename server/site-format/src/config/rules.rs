//! `[[redirect]]`, `[[rewrite]]` and `[[fields]]`.

use std::path::Path;

use toml::de::DeValue;

use super::{
    Config,
    tables::{ConfigEntry, EntryKind},
    value::{count, expected, text},
};
use crate::{
    Problem,
    rules::{FieldRule, PathPattern, Redirect, Rewrite, RuleTarget, check_field},
};

const FROM: (&str, &str) = ("from", "\"/old/*\"");

pub(super) const REDIRECT: EntryKind = EntryKind {
    name: "redirect",
    keys: &[FROM, ("to", "\"/new/*\""), ("status", "308")],
    read: redirect,
};

pub(super) const REWRITE: EntryKind = EntryKind {
    name: "rewrite",
    keys: &[FROM, ("to", "\"/read?id=:id\"")],
    read: rewrite,
};

pub(super) const FIELDS: EntryKind = EntryKind {
    name: "fields",
    keys: &[
        ("path", "\"/fonts/*\""),
        ("set", "{ \"Access-Control-Allow-Origin\" = \"*\" }"),
    ],
    read: fields,
};

fn pattern(value: &DeValue<'_>) -> Result<PathPattern, String> {
    PathPattern::parse(text(value)?)
}

fn redirect(config: &mut Config, entry: &ConfigEntry<'_>, _dir: &Path) -> Result<(), Problem> {
    let from = entry.need("from", pattern)?;
    let to = entry.need("to", |value| RuleTarget::parse(text(value)?, &from))?;
    let status = match entry.find("status") {
        None => 308,
        Some(_) => entry.need("status", status)?,
    };
    config.rules.redirects.push(Redirect {
        from,
        to,
        status,
        place: entry.place(),
    });
    Ok(())
}

fn status(value: &DeValue<'_>) -> Result<u16, String> {
    match count(value)? {
        301 => Ok(301),
        302 => Ok(302),
        307 => Ok(307),
        308 => Ok(308),
        other => Err(format!("{other} is none of 301, 302, 307 and 308")),
    }
}

fn rewrite(config: &mut Config, entry: &ConfigEntry<'_>, _dir: &Path) -> Result<(), Problem> {
    let from = entry.need("from", pattern)?;
    let to = entry.need("to", |value| {
        let to = RuleTarget::parse(text(value)?, &from)?;
        match to.is_path() {
            true => Ok(to),
            false => Err("a rewrite stays on this site, and a server sees no fragment".to_owned()),
        }
    })?;
    config.rules.rewrites.push(Rewrite {
        from,
        to,
        place: entry.place(),
    });
    Ok(())
}

fn fields(config: &mut Config, entry: &ConfigEntry<'_>, _dir: &Path) -> Result<(), Problem> {
    let path = entry.need("path", pattern)?;
    let table = entry.need("set", |value| {
        let table = value
            .as_table()
            .ok_or_else(|| expected("a table such as { \"X-Frame-Options\" = \"DENY\" }", value))?;
        match table.is_empty() {
            true => Err("no field is named".to_owned()),
            false => Ok(table),
        }
    })?;
    let mut named: Vec<_> = table.iter().collect();
    named.sort_by_key(|(name, _)| name.span().start);
    let mut set = Vec::new();
    for (name, value) in named {
        let plain =
            text(value.get_ref()).map_err(|message| entry.fault("set", value.span(), &message))?;
        check_field(name.get_ref(), plain)
            .map_err(|(message, advice)| entry.fault("set", name.span(), &message).hint(advice))?;
        set.push((name.get_ref().to_string(), plain.to_owned()));
    }
    config.rules.fields.push(FieldRule {
        path,
        set,
        place: entry.place(),
    });
    Ok(())
}
