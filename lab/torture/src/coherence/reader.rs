//! Readers, and those who write through the nodes and look at once.

use std::io;
use std::time::Duration;

use crate::Choices;

use crate::coherence::client::NodeClient;
use crate::coherence::context::Context;
use crate::coherence::judge::{Circumstances, judge};
use crate::coherence::page::{Ask, PageRows};
use crate::coherence::report::ScenarioReport;
use crate::coherence::schema::{ACCOUNTS, PUBLISHERS, SONGS, Thing, ThingKind};
use crate::coherence::shop::ShopStep;
use base_clock::Boottime;

/// Pause after an error: the node may be down, and a thousand requests a second do not help.
const AFTER_ERROR: Duration = Duration::from_millis(50);
/// The most requests for the same page in a row, as for a popular page.
const POPULAR: usize = 16;
/// How often a page is watched before another, at most: for some seconds.
const WATCHED: usize = 500;
/// From one look at a watched page to the next.
const WATCH_PACE: Duration = Duration::from_millis(10);
/// From one form to the next.
const FORM_PACE: Duration = Duration::from_millis(400);

/// Asks any node for any page, again and again, until the span is over.
pub(crate) fn read(context: &Context, mut choices: Choices<'_>) -> ScenarioReport {
    let mut visitor = Visitor::new(context);
    while !context.span.is_over() {
        let node = choices.below(context.nodes.len());
        let ask = Ask::any(&mut choices);
        for _ in 0..=choices.below(POPULAR) {
            if context.span.is_over() || !visitor.request(node, &ask) {
                break;
            }
        }
    }
    visitor.report
}

/// Watches one page of one node for a while, then another page. Other requests wait for answers
/// while a node cannot reach its database; a reader of a page in memory would see that page grow
/// old.
pub(crate) fn watch(context: &Context, node: usize, mut choices: Choices<'_>) -> ScenarioReport {
    let mut visitor = Visitor::new(context);
    while !context.span.is_over() {
        let ask = Ask::popular(&mut choices);
        for _ in 0..choices.below(WATCHED) {
            if context.span.pass(WATCH_PACE) || !visitor.request(node, &ask) {
                break;
            }
        }
    }
    visitor.report
}

/// Sends forms to the nodes. After each form it requests a page with the written row: from any node
/// with the form's cookie, and from the same node without the cookie.
pub(crate) fn write(context: &Context, mut choices: Choices<'_>) -> ScenarioReport {
    let mut visitor = Visitor::new(context);
    while !context.span.pass(FORM_PACE) {
        let node = choices.below(context.nodes.len());
        if choices.chance(60) {
            visitor.write_in_shop(node, &mut choices);
            continue;
        }
        let id = u32::try_from(choices.below(ACCOUNTS as usize)).unwrap_or_default() + 1;
        if let Some(own) = visitor.raise(node, id) {
            let asks = [Ask::Account(id), Ask::Pair(id), Ask::View(id), Ask::Total];
            let ask = choices.pick(&asks).unwrap_or(&Ask::Top);
            // A balancer sends him anywhere.
            visitor.request_and_judge(choices.below(context.nodes.len()), ask, Some(&own));
            visitor.request(node, ask);
        }
    }
    visitor.report
}

/// Write of a visitor through a node, and the cookie that says so.
pub(crate) struct OwnWrite {
    thing: Thing,
    version: u64,
    cookie: String,
}

/// A page that a node has given.
pub(crate) struct SeenPage {
    is_hit: bool,
    pub(crate) tag: String,
    pub(crate) rows: PageRows,
}

/// A client of all nodes, with a connection to each.
pub(crate) struct Visitor<'f> {
    context: &'f Context,
    connections: Vec<Option<NodeClient>>,
    pub(crate) report: ScenarioReport,
}

impl<'f> Visitor<'f> {
    pub(crate) fn new(context: &'f Context) -> Self {
        Self {
            context,
            connections: context.nodes.iter().map(|_| None).collect(),
            report: ScenarioReport::default(),
        }
    }

    /// Asks for a page and judges it; false if there was none.
    pub(crate) fn request(&mut self, node: usize, ask: &Ask) -> bool {
        self.request_and_judge(node, ask, None).is_some()
    }

    /// Requests a page and judges it. With `own`, as the visitor who has written this.
    pub(crate) fn request_and_judge(
        &mut self,
        node: usize,
        ask: &Ask,
        own: Option<&OwnWrite>,
    ) -> Option<SeenPage> {
        let cookie = own.map_or("", |own| own.cookie.as_str());
        let target = ask.target();
        let context = self.context;
        let quiet_period = context.quiet_period.now();
        let mut sent = Boottime::now();
        let answer = self.on(node, |client| {
            sent = Boottime::now();
            client.get(&target, cookie)
        });
        let answer = answer?;
        if answer.status != 200 {
            self.refused(answer.status, "");
            return None;
        }
        let Some(rows) = ask.read(&answer.body) else {
            self.report.error("not such a page");
            return None;
        };
        let circumstances = Circumstances {
            sent,
            node,
            bound: context.nodes[node].bound(),
            own: own.map(|own| (own.thing, own.version)),
        };
        let verdict = judge(&context.log, ask, &rows, circumstances);
        context.tally.page(answer.hit, verdict.is_wrong());
        let what = || {
            let way = if answer.hit { "hit" } else { "no hit" };
            format!("{target} of node {node}, {way}: {rows:?}")
        };
        self.report.page(ask.page(), answer.hit, verdict, what);
        let bound = context.shortest_bound();
        if circumstances.bound > bound && context.quiet_period.covers(quiet_period, sent, bound) {
            let strict = Circumstances {
                bound,
                ..circumstances
            };
            let verdict = judge(&context.log, ask, &rows, strict);
            context.tally.quiet_page(answer.hit, verdict.late.is_some());
            self.report.in_quiet_period(answer.hit, verdict.late, what);
        }
        Some(SeenPage {
            is_hit: answer.hit,
            tag: answer.tag,
            rows,
        })
    }

    /// True if a page comes from memory.
    pub(crate) fn has_hit(&mut self, node: usize, ask: &Ask) -> bool {
        self.request_and_judge(node, ask, None)
            .is_some_and(|seen| seen.is_hit)
    }

    /// True if an account comes from memory with this version or a later one: the node was
    /// notified, has read the account, and keeps it.
    pub(crate) fn has_kept(&mut self, node: usize, id: u32, version: u64) -> bool {
        let seen = self.request_and_judge(node, &Ask::Account(id), None);
        seen.is_some_and(|seen| seen.is_hit && seen.rows[0][0][0] >= version)
    }

    /// Changes a row behind the joins, or a key of one, through a node; then requests pages with
    /// joins of this node, and as this visitor of another.
    fn write_in_shop(&mut self, node: usize, choices: &mut Choices<'_>) {
        let step = ShopStep::any(choices, self.context.forms_move);
        let (thing, place) = (step.thing, step.place);
        if place.is_some() {
            self.context.log.move_begins(thing);
        }
        let parameters = place.map_or_else(String::new, |place| format!("&place={place}"));
        let form = format!("id={}{parameters}", thing.1);
        let own = self.post(node, step.form, &form, thing, place);
        if place.is_some() {
            self.context.log.move_ended(thing, own.is_none());
        }
        let Some(own) = own else {
            return;
        };
        let mut number = |bound: u32| u32::try_from(choices.below(bound as usize)).unwrap_or(0) + 1;
        for ask in [
            Ask::Record(number(SONGS)),
            Ask::Releases(number(PUBLISHERS)),
        ] {
            self.request(node, &ask);
            let other = number(self.context.nodes.len() as u32) as usize - 1;
            self.request_and_judge(other, &ask, Some(&own));
        }
    }

    /// Raises an account's version through a node.
    fn raise(&mut self, node: usize, id: u32) -> Option<OwnWrite> {
        let thing = Thing(ThingKind::Account, id);
        self.post(node, "/raise", &format!("id={id}"), thing, None)
    }

    /// Sends a form that gives a thing another version, and perhaps a place.
    fn post(
        &mut self,
        node: usize,
        target: &str,
        form: &str,
        thing: Thing,
        place: Option<u32>,
    ) -> Option<OwnWrite> {
        let answer = self.on(node, |client| client.post(target, form))?;
        let version = answer.location.rsplit_once("version=");
        match version.and_then(|(_, version)| version.parse().ok()) {
            Some(version) if answer.status == 303 => {
                let place = place.map(|place| place.to_string());
                self.context.log.posted(node, thing, version, place);
                Some(OwnWrite {
                    thing,
                    version,
                    cookie: answer.cookie,
                })
            }
            _ => {
                self.refused(answer.status, "form: ");
                None
            }
        }
    }

    fn refused(&mut self, status: u16, what: &str) -> bool {
        self.report.error(format!("{what}{status}"));
        self.context.span.pass(AFTER_ERROR);
        false
    }

    /// Does something on the connection to a node, a new one if the last has ended.
    pub(crate) fn on<T>(
        &mut self,
        node: usize,
        act: impl FnOnce(&mut NodeClient) -> io::Result<T>,
    ) -> Option<T> {
        let address = self.context.nodes[node].address();
        let result = match self.connections[node].take() {
            Some(client) if client.address() == address => Ok(client),
            _ => NodeClient::open(address),
        };
        let result = result.and_then(|mut client| {
            let done = act(&mut client)?;
            self.connections[node] = Some(client);
            Ok(done)
        });
        result
            .map_err(|error| {
                self.report.error(error.kind().to_string());
                self.context.span.pass(AFTER_ERROR);
            })
            .ok()
    }
}
