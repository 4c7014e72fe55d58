//! `[[require]]`: who may enter a folder.

use std::path::Path;

use millpond_http::path;
use toml::de::DeValue;

use super::{
    Config,
    tables::{ConfigEntry, EntryKey, EntryKind},
    value::{text, texts},
};
use crate::{
    Problem,
    methods::KNOWN,
    rules::{FolderPattern, RequireRule},
    session::{Condition, Require, is_path},
    suggest::closest,
};

pub(super) const REQUIRE: EntryKind = EntryKind {
    name: "require",
    about: "Who may enter a folder: visitors whose session says this. It holds for all that answers at these paths: pages, forms, \
            files, lists of files, uploads, and addresses at which there is nothing. Several entries for one path, and the \
            `-- require:` lines of a page, all hold. The path is looked at in its one normal form, as it is asked for, and once more as a rewrite \
            makes it; a rule for one address of a file holds at its other addresses. `check` says what each entry reaches. \
            [site.md](site.md#who-may-enter-a-folder) has more.",
    keys: &[
        EntryKey {
            name: "path",
            about: "The paths, written as in `from` of a redirect. `/editor/*` is the folder itself as well.",
            example: "\"/editor/*\"",
            default: None,
        },
        EntryKey {
            name: "claims",
            about: "What the session must say, as in a `-- require:` line: a claim, or one with `=`, `!=`, `in (…)` or `not in (…)`.",
            example: "\"role in ('editor', 'admin')\"",
            default: None,
        },
        EntryKey {
            name: "else",
            about: "Where a person without the claim is led; the wanted address is added as `next=`. Absent, the answer is 403. \
                    A program without a session gets 401 either way.",
            example: "\"/login\"",
            default: Some("none"),
        },
        EntryKey {
            name: "except",
            about: "Paths at which the entry does not hold, such as the page where one signs in and its style sheet.",
            example: "[\"/login\", \"/static/*\"]",
            default: Some("[]"),
        },
        EntryKey {
            name: "methods",
            about: "The methods for which it holds, `GET` with `HEAD`. Absent, it holds for all.",
            example: "[\"POST\", \"PUT\", \"PATCH\", \"DELETE\"]",
            default: Some("all"),
        },
    ],
    example: "[[require]]\npath = \"/editor/*\"\nclaims = \"role in ('editor', 'admin')\"\nelse = \"/login\"\n\n\
              [[require]]\npath = \"/*\"\nclaims = \"user\"\nelse = \"/login\"\nexcept = [\"/login\", \"/style.css\"]",
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
        Some(_) => Some(entry.need("else", own_path)?),
    };
    let except = match entry.find("except") {
        None => Vec::new(),
        Some(_) => entry.need("except", |value| {
            let paths = texts(value, "paths")?;
            paths.into_iter().map(FolderPattern::parse).collect()
        })?,
    };
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
        except,
        methods,
        place: entry.place(),
    });
    Ok(())
}

fn own_path(value: &DeValue<'_>) -> Result<String, String> {
    let path = text(value)?;
    let bare = path.split(['?', '#']).next().unwrap_or_default();
    match is_path(path) && path::normalize(bare).is_ok() {
        true => Ok(path.to_owned()),
        false => Err(format!("`{path}` is no path of this site")),
    }
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
