//! `[[require]]`: who may enter a folder.

use std::path::Path;

use toml::de::DeValue;

use super::{
    Config,
    tables::{ConfigEntry, EntryKey, EntryKind},
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
    about: "Who may enter a folder: visitors whose session says this. It holds for all that answers at these paths: pages, forms, \
            files, lists of files, uploads, and addresses at which there is nothing. Several entries for one path, and the \
            `-- require:` lines of a page, all hold. The path is looked at in its one normal form, as it is asked for, and once more as a rewrite \
            makes it; a rule for one address of a file holds at its other addresses. `check` says what each entry reaches. \
            [Who may enter a folder](site/access.md#who-may-enter-a-folder) has more.",
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
            about: "Where a person without the claim is led; the wanted address is added as `next=`. `:name` is replaced by what it \
                    stood for in `path`. Absent, the answer is 403. A program without a session gets 401 either way.",
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
            name: "open",
            about: "Addresses that stay open on purpose, although the entry closes the same page at other addresses: \
                    `/en/team/*` closes `pages/[lang]/team/plan.html` for one language. An entry that closes some addresses of a \
                    page, and does not name the others here, is an error. It opens nothing that another entry closes.",
            example: "[\"/:lang/team/*\"]",
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
