//! `[[redirect]]`, `[[rewrite]]` and `[[fields]]`.

use std::path::Path;

use toml::de::DeValue;

use super::{
    Config,
    tables::{ConfigEntry, EntryKey, EntryKind},
    value::{count, expected, text},
};
use crate::{
    Problem,
    rules::{FieldRule, PathPattern, Redirect, Rewrite, RuleTarget, check_field},
};

const FROM: EntryKey = EntryKey {
    name: "from",
    about: "The paths that it is for. A part `:name` stands for one part of the path, one `*` for anything, slashes and nothing \
            included. Paths are compared as they are after decoding, without their query.",
    example: "\"/old/*\"",
    default: None,
};

pub(super) const REDIRECT: EntryKind = EntryKind {
    name: "redirect",
    about: "Addresses that lead elsewhere. Redirects come before pages and files: first those for exactly one path, then the \
            others in the order of the file, and the first that matches counts. If neither a page nor a file is at a path, and a redirect \
            leads from the same path with or without a slash at its end to a page, a file or a rewrite, it is followed. The client's query is kept. A \
            circle is an error.",
    keys: &[
        FROM,
        EntryKey {
            name: "to",
            about: "A path of this site, or a URL with `http://` or `https://`. `:name` and `*` are replaced by what they stood for.",
            example: "\"/new/*\"",
            default: None,
        },
        EntryKey {
            name: "status",
            about: "301 or 308: it has moved. 302 or 307: it is elsewhere for now. With 307 and 308 a form is sent again to the new \
                    address. Clients ask each time (`Cache-Control: no-cache`), so a mistake does not last.",
            example: "308",
            default: Some("308"),
        },
    ],
    example: "[[redirect]]\nfrom = \"/blog/:year/:slug\"\nto = \"/articles/:slug\"\n\n[[redirect]]\nfrom = \"/shop/*\"\n\
              to = \"https://shop.example.org/*\"\nstatus = 302",
    read: redirect,
};

pub(super) const REWRITE: EntryKind = EntryKind {
    name: "rewrite",
    about: "Addresses that are answered as another path of the site is; the client does not see the other path. They come after redirects \
            and before pages and files, in the same order, and once: the new path is not rewritten again. \
            So a page or a file at a path that a rewrite takes does not answer there, and `from = \"/*\"` takes all of them. What is at the \
            new path answers itself: the client is led nowhere, not even to a shorter address (`static.clean_urls`) or to one with \
            a slash.",
    keys: &[
        FROM,
        EntryKey {
            name: "to",
            about: "A path of this site, with a query if a page wants one. `:name` and `*` are replaced by what they stood for; the \
                    client's query is added.",
            example: "\"/read?id=:id\"",
            default: None,
        },
    ],
    example: "[[rewrite]]\nfrom = \"/articles/:id\"\nto = \"/read?id=:id\"",
    read: rewrite,
};

pub(super) const FIELDS: EntryKind = EntryKind {
    name: "fields",
    about: "Fields that the responses at some addresses get: pages, files, redirects and errors. Where several entries match, all \
            apply. What the server says itself cannot be set: the fields of the connection, of the content and its coding, of \
            validators and of caches.",
    keys: &[
        EntryKey {
            name: "path",
            about: "The paths as the client asks for them, written as in `from` of a redirect.",
            example: "\"/fonts/*\"",
            default: None,
        },
        EntryKey {
            name: "set",
            about: "Names and values.",
            example: "{ \"Access-Control-Allow-Origin\" = \"*\" }",
            default: None,
        },
    ],
    example: "[[fields]]\npath = \"/*\"\nset = { \"X-Frame-Options\" = \"DENY\", \"Referrer-Policy\" = \"same-origin\" }",
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
