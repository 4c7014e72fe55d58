//! `[[require]]`: who may enter a folder.

use std::path::Path;

use toml::de::DeValue;

use super::{
    Config,
    tables::{ConfigEntry, EntryKind},
    value::{text, texts},
};
use crate::{
    Problem,
    access::{Condition, Require, is_path},
    rules::{FolderPattern, RequireRule, RuleTarget},
    suggest::closest,
    write_method::KNOWN,
};

pub(super) const REQUIRE: EntryKind = EntryKind {
    name: "require",
    keys: &[
        ("path", "\"/editor/*\""),
        ("claims", "\"role in ('editor', 'admin')\""),
        ("else", "\"/login\""),
        ("except", "[\"/login\", \"/static/*\"]"),
        ("open", "[\"/:lang/team/*\"]"),
        ("methods", "[\"POST\", \"PUT\", \"PATCH\", \"DELETE\"]"),
    ],
    read: require,
};

fn folder(value: &DeValue<'_>) -> Result<FolderPattern, String> {
    FolderPattern::parse(text(value)?)
}

fn require(config: &mut Config, entry: &ConfigEntry<'_>, _dir: &Path) -> Result<(), Problem> {
    let path = entry.need("path", folder)?;
    let condition = entry.need("claims", |value| Condition::parse(text(value)?))?;
    let otherwise = match entry.find("else") {
        None => None,
        Some(_) => Some(entry.need("else", |value| own_path(value, &path))?),
    };
    let (otherwise, target) = otherwise.unzip();
    let methods = match entry.find("methods") {
        None => Vec::new(),
        Some(_) => entry.need("methods", methods)?,
    };
    config.rules.requires.push(RequireRule {
        path,
        require: Require {
            condition,
            otherwise,
        },
        target,
        except: folders(entry, "except")?,
        open: folders(entry, "open")?,
        methods,
        place: entry.place(),
    });
    Ok(())
}

fn folders(entry: &ConfigEntry<'_>, key: &'static str) -> Result<Vec<FolderPattern>, Problem> {
    let read = |value| {
        let paths = texts(value, "paths")?;
        paths.into_iter().map(FolderPattern::parse).collect()
    };
    let found = entry.find(key).map(|_| entry.need(key, read));
    found.unwrap_or_else(|| Ok(Vec::new()))
}

/// The path as it is written, and ready to be filled in.
fn own_path(value: &DeValue<'_>, from: &FolderPattern) -> Result<(String, RuleTarget), String> {
    let path = text(value)?;
    if !is_path(path) {
        return Err(format!("`{path}` is no path of this site"));
    }
    Ok((path.to_owned(), RuleTarget::parse(path, &from.pattern)?))
}

fn methods(value: &DeValue<'_>) -> Result<Vec<String>, String> {
    let named = texts(value, "methods")?;
    if named.is_empty() {
        return Err("no method is named; leave the key out for all of them".to_owned());
    }
    let one = |name: &str| match name {
        "HEAD" => Err("GET and HEAD go together; name GET".to_owned()),
        name if KNOWN.contains(&name) => Ok(name.to_owned()),
        name => Err(match closest(&name.to_uppercase(), KNOWN.iter().copied()) {
            Some(near) => format!("`{name}` is no method; did you mean `{near}`?"),
            None => format!("`{name}` is no method"),
        }),
    };
    named.into_iter().map(one).collect()
}
