//! The addresses that posts had, and the redirects from there.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value as Json;

use super::super::quoted;
use super::{FrontFields, Origin, Post};

/// Redirects of the new site.
#[derive(Default)]
pub(super) struct Redirects {
    /// For many posts: from and to.
    rules: BTreeSet<(String, String)>,
    /// For one post.
    single: BTreeMap<String, String>,
    /// Posts whose old address is not known.
    unknown: usize,
}

impl Redirects {
    /// Adds those of a post.
    pub(super) fn add(&mut self, origin: &Origin, post: &Post) {
        let to = format!("/posts/{}", post.slug);
        let own = ["permalink", "url", "path"]
            .iter()
            .find_map(|name| text(&post.fields, name));
        let pattern = origin.address_of(&post.path);
        let old = match own {
            Some(own) => Some(format!("/{own}")),
            None => expanded(pattern, origin, post),
        };
        match old.map(|old| plain(&old)) {
            Some(old) => self.lead(&old, &to, post, pattern, own.is_some()),
            None => self.unknown += 1,
        }
        for name in ["aliases", "redirect_from", "redirects"] {
            let aliases = match post.fields.get(name) {
                Some(Json::Array(list)) => list.iter().filter_map(Json::as_str).collect(),
                Some(Json::String(one)) => vec![&**one],
                _ => Vec::new(),
            };
            for alias in aliases {
                self.lead_one(&plain(&format!("/{alias}")), &to);
            }
        }
    }

    /// Leads an old address to a post, by a rule for its like where there can be one.
    fn lead(&mut self, old: &str, to: &str, post: &Post, pattern: &str, is_own: bool) {
        let trimmed = old.trim_end_matches('/');
        let (folder, last) = trimmed.rsplit_once('/').unwrap_or(("", trimmed));
        let (stem, ending) = match last.strip_suffix(".html") {
            Some(stem) => (stem, ".html"),
            None => (last, &old[trimmed.len()..]),
        };
        let dated = ["/:year/:month/:day", "/:year/:month"];
        let dated = dated
            .iter()
            .find(|dated| pattern.contains(&format!("{dated}/:")));
        let dates = dated.map_or(0, |dated| dated.matches('/').count());
        let mut parts: Vec<&str> = folder.split('/').skip(1).collect();
        let fixed = parts.len().saturating_sub(dates);
        parts.truncate(fixed);
        let is_safe = match fixed {
            0 => dates > 1,
            _ => !["posts", "pages", "tags", "preview"].contains(&parts[0]),
        };
        if is_own || stem != post.slug || !is_safe {
            return self.lead_one(old, to);
        }
        let fixed: String = parts.iter().map(|part| format!("/{part}")).collect();
        let (name, target) = match ending {
            ".html" => ("*.html".to_owned(), "/posts/*"),
            ending => (format!(":slug{ending}"), "/posts/:slug"),
        };
        let from = format!("{fixed}{}/{name}", dated.unwrap_or(&""));
        self.rules.insert((from, target.to_owned()));
    }

    fn lead_one(&mut self, old: &str, to: &str) {
        let is_plain = |sign: char| sign.is_ascii_graphic() && !"?#*:{}\"\\%[]<>".contains(sign);
        let is_dots = |part: &str| matches!(part, "." | "..");
        if !old.chars().all(is_plain) || old.split('/').any(is_dots) {
            self.unknown += 1;
        } else if old.trim_end_matches('/') != to && old != "/" {
            self.single.insert(old.to_owned(), to.to_owned());
        }
    }

    /// The lines of the settings.
    pub(super) fn settings(&self) -> String {
        let mut text = String::new();
        // A rule that begins with a word is narrower.
        let mut rules: Vec<_> = self.rules.iter().map(|(from, to)| (from, to)).collect();
        rules.sort_by_key(|(from, _)| from.starts_with("/:"));
        for (from, to) in self.single.iter().chain(rules) {
            let (from, to) = (quoted(from), quoted(to));
            text.push_str(&format!("\n[[redirect]]\nfrom = {from}\nto = {to}\n"));
        }
        text
    }

    /// Describes them in one line.
    pub(super) fn summary(&self) -> String {
        let unknown = match self.unknown {
            0 => String::new(),
            some => format!(" ({some} posts have none that is known)"),
        };
        let (rules, single) = (self.rules.len(), self.single.len());
        format!("old addresses: {rules} rules and {single} single redirects{unknown}")
    }
}

/// A text of the front matter that is an address.
fn text<'f>(fields: &'f FrontFields, name: &str) -> Option<&'f str> {
    let text = fields.get(name)?.as_str()?;
    (!text.is_empty() && !text.contains(['{', ':'])).then_some(text)
}

/// A path without double slashes.
fn plain(path: &str) -> String {
    let mut plain = String::with_capacity(path.len());
    for sign in path.chars() {
        if sign != '/' || !plain.ends_with('/') {
            plain.push(sign);
        }
    }
    plain
}

/// The address of a post by a pattern; none if it lacks a part.
fn expanded(pattern: &str, origin: &Origin, post: &Post) -> Option<String> {
    let date = post
        .fields
        .get("date")
        .and_then(Json::as_str)
        .unwrap_or_default();
    let mut out = String::new();
    let mut rest = pattern;
    while let Some((before, behind)) = rest.split_once(':') {
        let end = behind.find(|sign: char| !sign.is_ascii_alphanumeric() && sign != '_');
        let (token, after) = behind.split_at(end.unwrap_or(behind.len()));
        out.push_str(before);
        let folder = post.path.rsplit_once('/').map_or("", |(folder, _)| folder);
        match token {
            "year" => out.push_str(date.get(..4)?),
            "month" => out.push_str(date.get(5..7)?),
            "day" => out.push_str(date.get(8..10)?),
            "categories" => out.push_str(&categories(&post.fields)),
            "title" | "slug" | "filename" | "contentbasename" | "name" => {
                out.push_str(&post.old_slug)
            }
            "section" => out.push_str(folder.split('/').next().unwrap_or_default()),
            "sections" => out.push_str(folder),
            "path" => {
                out.push_str(&origin.section);
                let is_index = post.path.ends_with("/index");
                let folder = match is_index {
                    true => folder.rsplit_once('/').map_or("", |(folder, _)| folder),
                    false => folder,
                };
                out.push_str(&format!("{folder}/{}", post.old_slug).to_lowercase());
            }
            _ => return None,
        }
        rest = after;
    }
    out.push_str(rest);
    Some(out)
}

/// Jekyll's categories of a post, as a path.
fn categories(fields: &FrontFields) -> String {
    let found = fields.get("categories").or_else(|| fields.get("category"));
    let names = match found {
        Some(Json::Array(list)) => list.iter().filter_map(Json::as_str).collect(),
        Some(Json::String(text)) => text.split_whitespace().collect(),
        _ => Vec::new(),
    };
    names.join("/").to_lowercase()
}
