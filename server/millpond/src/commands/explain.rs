//! `millpond explain`: asks a running server why it answers an address as it does.

use std::fmt::Write as _;
use std::net::SocketAddr;

use clap::Args;
use serde_json::Value;

use super::admin_option::{AdminOption, get};
use crate::admin::EXPLAIN;
use crate::failure::{CommandFailure, CommandResult};
use crate::output::{say, write_out};
use base_chart::number;

/// Ask a running server why it answers an address as it does: hit or miss, what it depends on, what
/// ended it
#[derive(Args)]
pub(crate) struct ExplainArgs {
    /// The address: http://host/path?query, or only the path
    url: String,
    #[command(flatten)]
    admin: AdminOption,
    /// For a visitor with these claims, as in 'user=7,role=editor': a number, true or false is one,
    /// what stands in single quotes is text
    #[arg(long = "as", value_name = "CLAIMS", conflicts_with = "cookie")]
    claims: Option<String>,
    /// For the visitor whose browser sends this: NAME=VALUE
    #[arg(long, value_name = "COOKIE")]
    cookie: Option<String>,
    /// Write what the server says as JSON
    #[arg(long)]
    json: bool,
}

impl ExplainArgs {
    pub(crate) fn run(self) -> CommandResult {
        let (host, target) = split(&self.url)?;
        let address = self.admin.address()?;
        let body = self.ask(address, host, target)?;
        if self.json {
            return write_out(body.trim_end());
        }
        let explanation: Value = serde_json::from_str(&body).map_err(|error| {
            CommandFailure::new(format!(
                "{address} does not speak as Millpond does: {error}"
            ))
        })?;
        say(text(&explanation).trim_end());
        Ok(())
    }

    fn ask(&self, address: SocketAddr, host: Option<&str>, target: &str) -> CommandResult<String> {
        let mut query = form_urlencoded::Serializer::new(String::new());
        query.append_pair("target", target);
        if let Some(host) = host {
            query.append_pair("host", host);
        }
        if let Some(claims) = &self.claims {
            query.append_pair("as", claims);
        }
        // Not in the target, which tools and proxies like to write down.
        let cookie = match &self.cookie {
            None => String::new(),
            Some(cookie) if cookie.contains('=') && !cookie.contains(char::is_control) => {
                query.append_pair("by", "cookie");
                format!("Cookie: {cookie}\r\n")
            }
            Some(_) => {
                return Err(CommandFailure::new("--cookie is no cookie")
                    .hint("give NAME=VALUE as the browser's developer tools show it"));
            }
        };
        get(address, &format!("{EXPLAIN}?{}", query.finish()), &cookie)
    }
}

/// The host, if there is one, and the rest.
fn split(url: &str) -> CommandResult<(Option<&str>, &str)> {
    if url.starts_with('/') {
        return Ok((None, url));
    }
    let rest = url
        .strip_prefix("http://")
        .or_else(|| url.strip_prefix("https://"))
        .ok_or_else(|| {
            CommandFailure::new(format!("{url:?} is no address"))
                .hint("for example: http://127.0.0.1:8080/read?id=1, or /read?id=1")
        })?;
    let at = rest.find(['/', '?']).unwrap_or(rest.len());
    let (host, target) = rest.split_at(at);
    let target = target.split_once('#').map_or(target, |(target, _)| target);
    Ok((Some(host), if target.is_empty() { "/" } else { target }))
}

fn text(explanation: &Value) -> String {
    let mut text = String::new();
    let name = word(&explanation["target"]);
    let _ = match explanation["kind"].as_str() {
        Some("page") => writeln!(text, "{name} is the page {}", word(&explanation["route"])),
        Some("form") => writeln!(
            text,
            "{name} takes a form ({}): nothing is kept of it",
            word(&explanation["methods"])
        ),
        Some("file") => writeln!(
            text,
            "{name} is a file: it is kept until the folder changes"
        ),
        Some("unreadable") => writeln!(text, "{name} cannot be read: the answer is 400"),
        _ => writeln!(text, "{name} is nothing of this site: the answer is 404"),
    };
    if let Some(to) = explanation["rewritten_to"].as_str() {
        let _ = writeln!(text, "a rule answers it as {to}; ask about that");
    }
    let rules = &explanation["rules"];
    if let Some(wanted) = rules["want"].as_array() {
        let wanted: Vec<&str> = wanted.iter().map(word).collect();
        let met = if rules["met"] == true {
            "may"
        } else {
            "may not"
        };
        let _ = writeln!(
            text,
            "[[require]] in millpond.toml wants {}: this visitor {met} enter",
            wanted.join(" and ")
        );
    }
    if let Some(sentence) = explanation["refused"].as_str() {
        let _ = writeln!(text, "the answer is 400: {sentence}");
    }
    if explanation["kind"] == "page" && explanation["refused"].is_null() {
        page(&mut text, explanation);
    }
    feed(&mut text, &explanation["feed"]);
    text
}

fn page(text: &mut String, explanation: &Value) {
    if explanation["cached"] == false {
        let _ = writeln!(text, "the cache is off: every request goes to the database");
    }
    if explanation["shared"] == false {
        let _ = writeln!(
            text,
            "it shows more of the request than its parameters, so only its results are kept"
        );
    }
    visitor(text, explanation);
    key(text, &explanation["key"]);
    entry(text, "", &explanation["page"]);
    route(text, &explanation["route_so_far"]);
    for query in explanation["queries"].as_array().into_iter().flatten() {
        let _ = writeln!(
            text,
            "\n{} in {}",
            word(&query["name"]),
            word(&query["file"])
        );
        entry(text, "  ", query);
        for line in query["depends"].as_array().into_iter().flatten() {
            let line = word(line);
            let is_source = !["not cacheable: ", "not kept where ", "kept for "]
                .iter()
                .any(|start| line.starts_with(start));
            let verb = if is_source { "depends on " } else { "" };
            let _ = writeln!(text, "  {verb}{line}");
        }
    }
    text.push('\n');
}

/// Writes the key, which tells the page from others in memory.
fn key(text: &mut String, key: &Value) {
    let mut parts = vec![word(&key["route"]).to_owned()];
    for (kind, before) in [
        ("parameters", ""),
        ("claims", "claims."),
        ("fields", "field "),
    ] {
        let values = key[kind].as_object().into_iter().flatten();
        parts.extend(values.map(|(name, value)| match value {
            Value::Null => format!("{before}{name} absent"),
            value => format!("{before}{name} = {value}"),
        }));
    }
    let _ = writeln!(
        text,
        "its key is {}, in reading {} of the folder",
        parts.join(", "),
        key["reading"]
    );
}

/// The figures are counted by route: one for each page would cost every hit.
fn route(text: &mut String, route: &Value) {
    let _ = writeln!(
        text,
        "all pages of this route so far: {} from memory, {} made, {} waited, {} past it; {} saved",
        number::count(route["hits"].as_u64().unwrap_or(0)),
        number::count(route["misses"].as_u64().unwrap_or(0)),
        number::count(route["waits"].as_u64().unwrap_or(0)),
        number::count(route["bypassed"].as_u64().unwrap_or(0)),
        seconds(&route["saved_s"]),
    );
    if let (Some(made), Some(database)) =
        (route["made_in_ms"].as_f64(), route["database_ms"].as_f64())
    {
        let _ = writeln!(
            text,
            "one of them is made in {} on average, {} of it the database's",
            number::seconds(made / 1e3),
            number::seconds(database / 1e3)
        );
    }
}

/// How the page depends on the visitor.
fn visitor(text: &mut String, explanation: &Value) {
    if explanation["needs_session"] == true {
        let claims = match explanation["claims"].as_object() {
            None => "a visitor without a session".to_owned(),
            Some(claims) if claims.is_empty() => "a visitor without claims".to_owned(),
            Some(claims) => {
                let claims = claims
                    .iter()
                    .map(|(name, value)| format!("{name} = {value}"));
                format!("a visitor with {}", claims.collect::<Vec<_>>().join(", "))
            }
        };
        let _ = writeln!(
            text,
            "it depends on who is signed in; this is about {claims}"
        );
        if explanation["claims"].is_null() {
            let used = explanation["claims_used"].as_array().into_iter().flatten();
            let used: Vec<String> = used.map(|name| format!("{}=…", word(name))).collect();
            let _ = writeln!(
                text,
                "to ask for another: --as '{}', or --cookie NAME=VALUE with the cookie of the session",
                used.join(",")
            );
        }
    }
    if let Some(path) = explanation["led_to"].as_str() {
        let _ = writeln!(text, "who asks without what it requires is led to {path}");
    }
    if explanation["refused_without"] == true {
        let _ = writeln!(
            text,
            "a program that asks without what it requires is answered 401"
        );
    }
    if explanation["closed"] == true {
        let _ = writeln!(text, "it requires another claim: the answer is 403");
    }
    for guard in explanation["guards"].as_array().into_iter().flatten() {
        let query = word(&guard["query"]);
        let _ = match guard["led_to"].as_str() {
            Some(path) => writeln!(text, "who gets no row from `{query}` is led to {path}"),
            None => writeln!(text, "who gets no row from `{query}` has no access"),
        };
    }
}

fn entry(text: &mut String, indent: &str, entry: &Value) {
    let state = if entry["state"] == "hit" {
        "in memory"
    } else {
        "not in memory"
    };
    let _ = writeln!(text, "{indent}{state}: {}", word(&entry["because"]));
    let stored = &entry["stored"];
    if !stored.is_null() {
        let _ = writeln!(
            text,
            "{indent}stored {} ago at {}, {}, depends on {}",
            seconds(&stored["ago_s"]),
            word(&stored["position"]),
            number::bytes(stored["bytes"].as_f64().unwrap_or(0.0)),
            stored["depends_on"]
        );
    }
    let ahead = &entry["made_ahead"];
    if ahead["times"].as_u64().is_some_and(|times| times > 0) {
        let _ = writeln!(
            text,
            "{indent}kept fresh ahead: {} before a request, {} of them unused",
            ahead["times"], ahead["in_vain"]
        );
    }
    cause(text, &format!("{indent}ended by"), &entry["ended_by"]);
    let before = format!("{indent}the one before it was ended by");
    cause(text, &before, &entry["ended_before"]);
}

/// The transaction that ended something, if one did.
fn cause(text: &mut String, what: &str, cause: &Value) {
    if cause.is_null() {
        return;
    }
    let tables = cause["tables"].as_array().into_iter().flatten();
    let tables: Vec<&str> = tables.map(word).collect();
    let changed = if tables.is_empty() {
        String::new()
    } else {
        format!(", which changed {}", tables.join(", "))
    };
    let _ = writeln!(
        text,
        "{what} transaction {} at {}, {} ago{changed}{}",
        cause["transaction"],
        word(&cause["position"]),
        seconds(&cause["ago_s"]),
        if cause["certain"] == true {
            ""
        } else {
            " (it touched too much to be sure)"
        }
    );
}

fn feed(text: &mut String, feed: &Value) {
    let heard = match feed["age_s"].as_f64() {
        Some(age) => format!("heard of {} ago", number::seconds(age)),
        None => "not heard of yet".to_owned(),
    };
    let _ = writeln!(
        text,
        "the database was {heard}, at {}; the bound is {}{}",
        feed["position"].as_str().unwrap_or("no position yet"),
        seconds(&feed["bound_s"]),
        if feed["within_bound"] == true {
            ""
        } else {
            ": nothing is given from memory"
        },
    );
    let _ = writeln!(
        text,
        "epoch {} began {} ago: {}",
        feed["epoch"],
        seconds(&feed["epoch_age_s"]),
        word(&feed["epoch_because"])
    );
}

fn word(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

fn seconds(value: &Value) -> String {
    number::seconds(value.as_f64().unwrap_or(0.0))
}

#[cfg(test)]
mod tests {
    use super::split;

    #[test]
    fn an_address_is_a_url_or_a_path() {
        let split = |url| split(url).ok();
        assert_eq!(split("/a?b=c"), Some((None, "/a?b=c")));
        assert_eq!(split("http://h:1/a?b"), Some((Some("h:1"), "/a?b")));
        assert_eq!(split("https://h"), Some((Some("h"), "/")));
        assert_eq!(split("http://h/a#b"), Some((Some("h"), "/a")));
        assert_eq!(split("a"), None);
    }
}
