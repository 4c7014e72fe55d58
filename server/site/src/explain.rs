//! Why an address is answered as it is, for `millpond explain`.
//!
//! The key of the page is made as for a request. The store reports what it knows of the key, and of
//! the results from which the page is rendered. An explanation changes no counter and stores
//! nothing.

mod visitor_kind;

use std::{collections::BTreeSet, sync::atomic::Ordering, time::Duration};

use base_clock::Boottime;
use millpond_db::{DatabaseFeed, Mark};
use millpond_http::path;
use millpond_store::{Cause, Explanation, FeedState, MissReason, Tag};
use serde_json::{Value, json};

use crate::{
    Site,
    answer::cached::{Cached, bundle_key, object_key, page_key},
    core::Generation,
    session::Session,
};
use millpond_site_compile::{
    compile::sign_in,
    page::{Counters, Page, PageQuery},
};
use millpond_site_format::{
    access::{Gate, gate},
    params::Given,
    route::{Match, Pattern},
};

pub use visitor_kind::ExplainedVisitor;

type StoredExplanation = Explanation<Cached, DatabaseFeed>;

/// The tables that a page reads, with what every change to them touches.
type Sources = [(String, Tag)];

/// A page with its request, visitor and time.
struct ExplainedPage<'a> {
    query: Option<&'a str>,
    session: Option<&'a Session>,
    now: Boottime,
}

impl Site {
    /// How `target` (a path, with or without a query string) is answered, and why. Request fields
    /// by which a page varies count as absent.
    ///
    /// # Errors
    /// A sentence, if `visitor` does not describe a visitor.
    pub fn explain(&self, target: &str, visitor: ExplainedVisitor<'_>) -> Result<Value, String> {
        let now = Boottime::now();
        let generation = self.core().current.load_full();
        let session = visitor.session(&generation.sessions)?;
        let (raw, query) = match target.split_once('?') {
            Some((raw, query)) => (raw, Some(query)),
            None => (target, None),
        };
        let mut explanation =
            json!({ "target": target, "feed": self.feed(&self.core().store.feed(now)) });
        let Ok(path) = path::normalize(raw) else {
            explanation["kind"] = "unreadable".into();
            return Ok(explanation);
        };
        if let Some(to) = generation
            .rules
            .as_ref()
            .and_then(|rules| rules.rewrite(&path, query))
        {
            explanation["rewritten_to"] = to.into();
        }
        rules(&mut explanation, &generation, &path, session.as_ref());
        match generation.pages.router.find(&path) {
            Some(found) => {
                let request = ExplainedPage {
                    query,
                    session: session.as_ref(),
                    now,
                };
                self.endpoint(&mut explanation, &generation, &found, &request);
            }
            None if generation.statics.find(&path).is_some() => explanation["kind"] = "file".into(),
            None => explanation["kind"] = "nothing".into(),
        }
        Ok(explanation)
    }

    fn endpoint(
        &self,
        explanation: &mut Value,
        generation: &Generation,
        found: &Match<'_>,
        &ExplainedPage {
            query,
            session,
            now,
        }: &ExplainedPage<'_>,
    ) {
        let endpoint = &generation.pages.endpoints[found.page];
        explanation["methods"] = endpoint.allow.as_str().into();
        let Some(page) = &endpoint.page else {
            explanation["kind"] = "form".into();
            return;
        };
        explanation["kind"] = "page".into();
        explanation["route"] = page.route.as_str().into();
        explanation["template"] = json!(page.template);
        explanation["route_so_far"] = route_counters(&page.counters);
        let path = (&endpoint.pattern, &*found.values);
        visitor(explanation, page, path, session);
        explanation["guards"] = guards(page, path);
        let chosen = page.with_language(query, "");
        let given = Given {
            path: &found.values,
            form: &[],
            query: chosen.as_deref().or(query),
        };
        let mut key = Vec::new();
        let values = page_key(&mut key, generation.number, page, &given, session, |_| None)
            .and_then(|()| given.values(&page.params));
        let values = match values {
            Ok(mut values) => {
                values.extend(page.needs.values(session.map(Session::claims)));
                values
            }
            Err(bad) => {
                explanation["refused"] = bad.sentence.into();
                return;
            }
        };
        let store = &self.core().store;
        let private = page.private.load(Ordering::Relaxed);
        if private {
            key = bundle_key(generation.number, page, &values);
        }
        explanation["shared"] = (!private).into();
        explanation["cached"] = self.core().cache.into();
        explanation["parameters"] = page
            .params
            .iter()
            .zip(&values)
            .map(|(param, value)| {
                (
                    param.name.clone(),
                    millpond_site_compile::object::json(value),
                )
            })
            .collect::<serde_json::Map<_, _>>()
            .into();
        explanation["key"] = shown(generation, page, &explanation["parameters"], session);
        let statements = page.queries.iter().map(|query| query.statement(&values));
        let sources = statements.flat_map(|statement| statement.query.sources());
        let sources: Vec<(String, Tag)> = sources.collect();
        explanation["page"] = self.entry(&store.explain(&key, now), &sources, now);
        explanation["queries"] = page
            .queries
            .iter()
            .map(|query| {
                let key = object_key(generation.number, query, &values);
                let stored = store.explain(&key, now);
                let mut explanation = self.query(query, &stored, &sources, now);
                explanation["depends"] = query.describe(query.statement(&values)).into();
                explanation
            })
            .collect();
    }

    fn query(
        &self,
        query: &PageQuery,
        found: &StoredExplanation,
        sources: &Sources,
        now: Boottime,
    ) -> Value {
        let mut explanation = self.entry(found, sources, now);
        explanation["name"] = query.name.as_str().into();
        explanation["file"] = query.file.to_string_lossy().into();
        explanation["max_age_s"] = json!(query.max_age.map(|age| age.as_secs_f64()));
        explanation
    }

    /// Describes one key.
    fn entry(&self, found: &StoredExplanation, sources: &Sources, now: Boottime) -> Value {
        let cause = |cause: &Option<_>| cause.as_ref().map(|it| self.cause(it, sources, now));
        let seconds = |since: Boottime| now.since(since).as_secs_f64();
        let stored = found.entry.as_ref().map(|entry| {
            json!({
                "ago_s": seconds(entry.at),
                "position": self.core().database.show_position(entry.position),
                "bytes": entry.weight,
                "depends_on": entry.tags,
                "cost_of_mean": entry.cost,
                "missing": matches!(&*entry.value, Cached::Missing(_)),
                "ends_in_s": entry.expires.map(|end| end.since(now).as_secs_f64()),
            })
        });
        json!({
            "state": if found.state.is_ok() { "hit" } else { "miss" },
            "because": miss_sentence(found),
            "being_made": found.is_flying,
            "made_ahead": { "times": found.ahead.times, "in_vain": found.ahead.unused },
            "stored": stored,
            "ended_by": cause(&found.ended_by),
            "ended_before": cause(&found.ended_before),
        })
    }

    /// A transaction. Its tags are numbers, so only the tables that the page reads can be named;
    /// the page does not depend on the others.
    fn cause(&self, cause: &Cause<Mark>, sources: &Sources, now: Boottime) -> Value {
        let touched = sources.iter();
        let touched = touched.filter(|(_, tag)| cause.touched.binary_search(tag).is_ok());
        let tables: BTreeSet<&str> = touched.map(|(table, _)| table.as_str()).collect();
        json!({
            "tables": tables,
            "transaction": cause.mark.transaction,
            "position": self.core().database.show_position(cause.mark.at),
            "ago_s": now.since(cause.applied).as_secs_f64(),
            "certain": cause.is_certain,
        })
    }

    fn feed(&self, feed: &FeedState<DatabaseFeed>) -> Value {
        let bound = feed.bound;
        json!({
            "age_s": feed.age.map(|age| age.as_secs_f64()),
            "bound_s": bound.as_secs_f64(),
            "within_bound": feed.age.is_some_and(|age| age <= bound),
            "position": feed.position.map(|position| self.core().database.show_position(position)),
            "epoch": feed.epoch,
            "epoch_because": feed.epoch_reason,
            "epoch_age_s": feed.epoch_age.as_secs_f64(),
        })
    }
}

/// Lists the parts of the key of a page. Another reading of the folder gives every page another
/// one.
fn shown(
    generation: &Generation,
    page: &Page,
    parameters: &Value,
    session: Option<&Session>,
) -> Value {
    let claims = page
        .needs
        .claims
        .iter()
        .zip(page.needs.claims(session.map(Session::claims)));
    let claims = claims.map(|(used, claim)| {
        let claim = claim.map_or(Value::Null, millpond_site_compile::object::json);
        (used.name.clone(), claim)
    });
    // The results of a private page do not vary by them.
    let varies = !page.private.load(Ordering::Relaxed);
    let fields = page.vary.iter().filter(|_| varies);
    let fields = fields.map(|name| (name.clone(), Value::Null));
    json!({
        "route": page.route,
        "parameters": parameters,
        "claims": claims.collect::<serde_json::Map<_, _>>(),
        "fields": fields.collect::<serde_json::Map<_, _>>(),
        "reading": generation.number,
    })
}

/// Describes the requirements of the settings on a session at a path, and tells if the session
/// meets them.
fn rules(explanation: &mut Value, generation: &Generation, path: &str, session: Option<&Session>) {
    let wanted = generation.required_at("GET", path);
    if wanted.is_empty() {
        return;
    }
    let required = wanted.iter().map(|rule| &rule.require);
    let is_open = gate(required.clone(), session.map(Session::claims)) == Gate::Open;
    let wanted = required.map(|wanted| wanted.condition.to_string());
    explanation["rules"] = json!({ "want": wanted.collect::<Vec<_>>(), "met": is_open });
}

/// Describes the requirements of the page on a session, and the session.
fn visitor(
    explanation: &mut Value,
    page: &Page,
    (pattern, values): (&Pattern, &[&str]),
    session: Option<&Session>,
) {
    let needs = &page.needs;
    explanation["needs_session"] = (!needs.is_none()).into();
    let required = needs.require.iter().map(|wanted| &wanted.condition.claim);
    let mut used: Vec<&String> = required.collect();
    for claim in &needs.claims {
        if !used.contains(&&claim.name) {
            used.push(&claim.name);
        }
    }
    explanation["claims_used"] = json!(used);
    explanation["claims"] = session.map_or(Value::Null, |session| {
        let claims = session.claims.iter();
        claims
            .map(|(name, value)| (name.to_owned(), millpond_site_compile::object::json(value)))
            .collect::<serde_json::Map<_, _>>()
            .into()
    });
    match needs.gate(session.map(Session::claims)) {
        Gate::Open => {}
        Gate::SignIn(path) if page.is_for_people() => {
            explanation["led_to"] = sign_in::filled(path, pattern, values).into();
        }
        // A program cannot sign in: a session may help, but there is no redirect.
        Gate::SignIn(_) => explanation["refused_without"] = true.into(),
        Gate::Closed if session.is_none() && !page.is_for_people() => {
            explanation["refused_without"] = true.into();
        }
        Gate::Closed => explanation["closed"] = true.into(),
    }
}

/// The queries that say who may enter, each with where a visitor is led for whom it gives no row.
fn guards(page: &Page, (pattern, values): (&Pattern, &[&str])) -> Value {
    let guards = page.guards.iter().map(|guard| {
        let otherwise = guard.otherwise.as_deref();
        let otherwise = otherwise.filter(|_| page.is_for_people());
        let led_to = otherwise.map(|path| sign_in::filled(path, pattern, values));
        json!({ "query": page.queries[guard.query].name, "led_to": led_to })
    });
    guards.collect()
}

/// A sentence without its capital and its dot.
fn miss_sentence(found: &StoredExplanation) -> String {
    match found.state {
        Ok(()) => "nothing that it depends on has changed since it was stored".to_owned(),
        Err(MissReason::Absent) if found.is_flying => "it is being made just now".to_owned(),
        Err(MissReason::Absent) => {
            "it has not been asked for yet, was evicted, or cannot be kept".to_owned()
        }
        Err(MissReason::Invalidated) if found.ended_by.is_none() => {
            "a change that is no longer remembered has touched what it depends on, or the owner has ended it".to_owned()
        }
        Err(MissReason::Invalidated) => "a change has touched what it depends on".to_owned(),
        Err(MissReason::Epoch) => {
            format!("a new epoch has begun: {}", found.feed.epoch_reason)
        }
        Err(MissReason::Expired) => "its own max-age is over".to_owned(),
        Err(MissReason::FeedOld) => {
            "the database has not been heard of within the bound, so nothing is given from memory"
                .to_owned()
        }
    }
}

fn route_counters(counters: &Counters) -> Value {
    let read = |counter: &std::sync::atomic::AtomicU64| counter.load(Ordering::Relaxed);
    let (hits, kind) = (counters.hits(), read(&counters.kind));
    let mean = |nanos: u64| nanos.checked_div(kind).map(|nanos| nanos as f64 / 1e6);
    let saved = Duration::from_nanos(
        read(&counters.fill_nanos)
            .checked_div(kind)
            .unwrap_or(0)
            .saturating_mul(hits),
    );
    json!({
        "hits": hits,
        "misses": read(&counters.misses),
        "waits": read(&counters.waits),
        "bypassed": read(&counters.bypassed),
        "made_ahead": read(&counters.ahead),
        "made_in_ms": mean(read(&counters.fill_nanos)),
        "database_ms": mean(read(&counters.database_nanos)),
        "saved_s": saved.as_secs_f64(),
    })
}
