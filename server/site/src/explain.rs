//! Why an address is answered as it is, for `millpond explain`.
//!
//! The key of the page is made as for a request. The store reports what it knows of the key, and of
//! the results from which the page is rendered. An explanation changes no counter and stores
//! nothing.

mod whom;

use std::{collections::BTreeSet, sync::atomic::Ordering, time::Duration};

use base_clock::Boottime;
use millpond_db::{DatabaseFeed, Mark};
use millpond_http::path;
use millpond_store::{Cause, Explanation, FeedState, Tag, Why};
use serde_json::{Value, json};

use crate::{
    Site,
    cached::{Cached, bundle_key, object_key, page_key},
    core::Generation,
    page::{Counters, Page, PageQuery},
    params::{BadParam, Given},
    route::Match,
    session::{Gate, Session},
};

pub use whom::Whom;

type Found = Explanation<Cached, DatabaseFeed>;

/// The tables that a page reads, with what every change to them touches.
type Sources = [(String, Tag)];

/// A page with its request, visitor and time.
struct Asked<'a> {
    query: Option<&'a str>,
    session: Option<&'a Session>,
    now: Boottime,
}

impl Site {
    /// How `target` (a path, with or without a query string) is answered, and why. Request fields
    /// by which a page varies count as absent.
    ///
    /// # Errors
    /// A sentence, if `whom` does not describe a visitor.
    pub fn explain(&self, target: &str, whom: Whom<'_>) -> Result<Value, String> {
        let now = Boottime::now();
        let generation = self.core().current.load_full();
        let session = whom.session(&generation.sessions)?;
        let (raw, query) = match target.split_once('?') {
            Some((raw, query)) => (raw, Some(query)),
            None => (target, None),
        };
        let mut told = json!({ "target": target, "feed": self.feed(&self.core().store.feed(now)) });
        let Ok(path) = path::normalize(raw) else {
            told["kind"] = "unreadable".into();
            return Ok(told);
        };
        if let Some(to) = generation
            .rules
            .as_ref()
            .and_then(|rules| rules.rewrite(&path, query))
        {
            told["rewritten_to"] = to.into();
        }
        match generation.pages.router.find(&path) {
            Some(found) => {
                let asked = Asked {
                    query,
                    session: session.as_ref(),
                    now,
                };
                self.endpoint(&mut told, &generation, &found, &asked);
            }
            None if generation.statics.find(&path).is_some() => told["kind"] = "file".into(),
            None => told["kind"] = "nothing".into(),
        }
        Ok(told)
    }

    fn endpoint(
        &self,
        told: &mut Value,
        generation: &Generation,
        found: &Match<'_>,
        &Asked {
            query,
            session,
            now,
        }: &Asked<'_>,
    ) {
        let endpoint = &generation.pages.endpoints[found.page];
        let Some(page) = &endpoint.page else {
            told["kind"] = "form".into();
            return;
        };
        told["kind"] = "page".into();
        told["route"] = page.route.as_str().into();
        told["template"] = json!(page.template);
        told["route_so_far"] = so_far(&page.counters);
        visitor(told, page, session);
        let given = Given {
            path: &found.values,
            form: &[],
            query,
        };
        let mut key = Vec::new();
        let values = page_key(&mut key, generation.number, page, &given, session, |_| None)
            .and_then(|()| given.values(&page.params));
        let values = match values {
            Ok(mut values) => {
                values.extend(page.needs.values(session));
                values
            }
            Err(BadParam(sentence)) => {
                told["refused"] = sentence.into();
                return;
            }
        };
        let store = &self.core().store;
        let private = page.private.load(Ordering::Relaxed);
        if private {
            key = bundle_key(generation.number, page, &values);
        }
        told["shared"] = (!private).into();
        told["cached"] = self.core().cache.into();
        told["parameters"] = page
            .params
            .iter()
            .zip(&values)
            .map(|(param, value)| (param.name.clone(), crate::object::json(value)))
            .collect::<serde_json::Map<_, _>>()
            .into();
        told["key"] = shown(generation, page, &told["parameters"], session);
        let sources = page.queries.iter().flat_map(|query| query.query.sources());
        let sources: Vec<(String, Tag)> = sources.collect();
        told["page"] = self.entry(&store.explain(&key, now), &sources, now);
        told["queries"] = page
            .queries
            .iter()
            .map(|query| {
                let key = object_key(generation.number, query, &values);
                self.query(query, &store.explain(&key, now), &sources, now)
            })
            .collect();
    }

    fn query(&self, query: &PageQuery, found: &Found, sources: &Sources, now: Boottime) -> Value {
        let mut told = self.entry(found, sources, now);
        told["name"] = query.name.as_str().into();
        told["file"] = query.file.to_string_lossy().into();
        told["depends"] = query.query.describe().into();
        told["max_age_s"] = json!(query.max_age.map(|age| age.as_secs_f64()));
        told
    }

    /// What is known of one key.
    fn entry(&self, found: &Found, sources: &Sources, now: Boottime) -> Value {
        let cause = |cause: &Option<_>| cause.as_ref().map(|it| self.cause(it, sources, now));
        let seconds = |since: Boottime| now.since(since).as_secs_f64();
        let stored = found.entry.as_ref().map(|entry| {
            json!({
                "ago_s": seconds(entry.at),
                "position": self.core().database.show_position(entry.position),
                "bytes": entry.weight,
                "depends_on": entry.tags,
                "cost_of_mean": entry.cost,
                "missing": matches!(&*entry.value, Cached::Missing),
                "ends_in_s": entry.expires.map(|end| end.since(now).as_secs_f64()),
            })
        });
        json!({
            "state": if found.state.is_ok() { "hit" } else { "miss" },
            "because": because(found),
            "being_made": found.is_flying,
            "made_ahead": { "times": found.ahead.times, "in_vain": found.ahead.in_vain },
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

/// What the key of a page is made of. Another reading of the folder gives every page another one.
fn shown(
    generation: &Generation,
    page: &Page,
    parameters: &Value,
    session: Option<&Session>,
) -> Value {
    let claims = page.needs.claims.iter().zip(page.needs.claims(session));
    let claims = claims.map(|(used, claim)| {
        let claim = claim.map_or(Value::Null, crate::object::json);
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

/// What the page wants of a session, and what it finds.
fn visitor(told: &mut Value, page: &Page, session: Option<&Session>) {
    let needs = &page.needs;
    told["needs_session"] = (!needs.is_none()).into();
    let required = needs.require.iter().map(|wanted| &wanted.claim);
    let mut used: Vec<&String> = required.collect();
    for claim in &needs.claims {
        if !used.contains(&&claim.name) {
            used.push(&claim.name);
        }
    }
    told["claims_used"] = json!(used);
    told["claims"] = session.map_or(Value::Null, |session| {
        let claims = session.claims.iter();
        claims
            .map(|(name, value)| (name.to_owned(), crate::object::json(value)))
            .collect::<serde_json::Map<_, _>>()
            .into()
    });
    match needs.gate(session) {
        Gate::Open => {}
        Gate::SignIn(path) if page.is_for_people() => told["led_to"] = path.into(),
        // A program cannot sign in: a session may help, but there is no redirect.
        Gate::SignIn(_) => told["refused_without"] = true.into(),
        Gate::Closed => told["closed"] = true.into(),
    }
}

/// A sentence without its capital and its dot.
fn because(found: &Found) -> String {
    match found.state {
        Ok(()) => "nothing that it depends on has changed since it was stored".to_owned(),
        Err(Why::Absent) if found.is_flying => "it is being made just now".to_owned(),
        Err(Why::Absent) => {
            "it is not in memory: not asked for yet, evicted, or not kept".to_owned()
        }
        Err(Why::Invalidated) => "a change has touched what it depends on".to_owned(),
        Err(Why::Epoch) => format!("a new epoch has begun: {}", found.feed.epoch_reason),
        Err(Why::Expired) => "its own max-age is over".to_owned(),
        Err(Why::FeedOld) => {
            "the database has not been heard of within the bound, so nothing is given from memory"
                .to_owned()
        }
    }
}

fn so_far(counters: &Counters) -> Value {
    let read = |counter: &std::sync::atomic::AtomicU64| counter.load(Ordering::Relaxed);
    let (hits, fills) = (counters.hits(), read(&counters.fills));
    let mean = |nanos: u64| nanos.checked_div(fills).map(|nanos| nanos as f64 / 1e6);
    let saved = Duration::from_nanos(
        read(&counters.fill_nanos)
            .checked_div(fills)
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
