//! A GET that found no hit: join the flight, or lead it (coherence.md, rules 1 to 5).

pub(crate) mod arrival;
pub(crate) mod cached;
pub(crate) mod gather;
pub(crate) mod own_write;
pub(crate) mod render;
pub(crate) mod validity;
pub(crate) mod visitor;

use std::{
    sync::{Arc, OnceLock, atomic::Ordering},
    time::Duration,
};

use base_clock::Boottime;
use bytes::Bytes;
use millpond_db::{DatabaseFeed, Position, Value};
use millpond_http::{OwnedRequest, Prepared, Response};
use millpond_pages::{
    Arrival, CacheStatus, JoinOutcome, Priority, Refused, Timing, Turn, need, stale,
};
use millpond_store::{FillOutcome, MissReason, Need, Permit};

use crate::{
    ahead::remake,
    core::{Core, Generation},
    dev::{Report, failures, refusals},
    labels::AnswerKind,
};
use cached::{Cached, PageFailure, bundle_key};
use millpond_site_compile::{object::QueryResult, page::Page, refusal::flash::Flash};
use render::{Rendered, render};
use visitor::Visitor;

/// Why a request is not answered from the store at once.
pub(crate) enum MissOrBypass {
    /// The store has no valid answer.
    Miss(MissReason),
    /// This node's feed may not have applied these writes of the visitor yet.
    UnseenWrites(Vec<Position>),
    /// The visitor is led back to a form with this.
    RefusedForm(Flash),
    /// The server runs without the store (`--no-cache`).
    CacheOff,
}

/// A request for a page, ready to be answered.
pub(crate) struct Ask {
    pub(crate) core: Arc<Core>,
    pub(crate) generation: Arc<Generation>,
    pub(crate) page: Arc<Page>,
    pub(crate) values: Vec<Value>,
    pub(crate) key: Vec<u8>,
    pub(crate) visitor: Arc<Visitor>,
    /// For admission.
    pub(crate) arrival: Arrival,
    /// Why it failed, for the developer.
    pub(crate) report: OnceLock<Arc<Report>>,
}

/// Result of making a page before a request asks for it.
pub(crate) enum MadeAhead {
    /// For all, with what became of it in the store; no outcome where it cannot be kept.
    Made(Arc<Cached>, Option<FillOutcome>),
    /// Admission has refused it: it is tried again.
    Refused,
    /// It could not be made, or is no page for all.
    Nothing,
}

/// Value that a flight has made.
enum MadePage {
    /// Everyone's, and what became of it in the store; none where it cannot be kept.
    Shared(Arc<Cached>, Option<FillOutcome>),
    /// The visitor's own.
    Private(Arc<Prepared>),
    /// Nothing: the template failed.
    Failed,
}

/// Result of joining flights of the site.
type FlightOutcome = JoinOutcome<Cached, DatabaseFeed>;

/// A request for something of the site's store.
type Asked<'a> = millpond_pages::FillRequest<'a, Cached, DatabaseFeed>;

/// Kind of the flights that a request joins.
#[derive(Clone, Copy, PartialEq, Eq)]
enum FlightKind {
    /// The page, for all visitors.
    Page,
    /// All results of the page.
    Results,
    /// All results of the page, for a visitor whose write this node may not have: no stored value
    /// will do.
    FreshResults,
}

impl Ask {
    /// Answers; `why` is why there was no hit.
    pub(crate) async fn answer(self, why: MissReason) -> Response {
        if self.page.private.load(Ordering::Relaxed) {
            return self.answer_privately().await;
        }
        match self
            .join_flights(FlightKind::Page, &self.key, need(&self.core.store))
            .await
        {
            JoinOutcome::Found(value) | JoinOutcome::Shared(value) => match &*value {
                Cached::Failed(failure) => {
                    if *failure == PageFailure::Away {
                        self.core.outcomes.also_failed();
                    }
                    self.fail(failure)
                }
                _ => {
                    let timing = self.timing(Duration::ZERO, Duration::ZERO);
                    let lines = self.lines(CacheStatus::Collapsed, timing);
                    AnswerKind::Waited.of(self.respond(&value, lines))
                }
            },
            JoinOutcome::Lead(mut permit) => {
                if why == MissReason::Absent && self.may_never_be_asked_for() {
                    permit.unproven();
                }
                self.lead(permit, why).await
            }
            JoinOutcome::Alone => self.answer_privately().await,
            JoinOutcome::Refused => self.fail(&PageFailure::BUSY),
        }
    }

    /// True if the page is hardly asked for again: a stranger asks, or those of its route do not
    /// repeat. A page that clients look at is.
    fn may_never_be_asked_for(&self) -> bool {
        let is_rare =
            self.arrival.priority >= Priority::Stranger || self.page.counters.is_useless();
        let live = &self.core.live;
        is_rare && !(live.is_live(&self.page) && live.find(&self.key).is_some())
    }

    /// The answer of a page that could not be made: an error, or where the owner allows it
    /// (`cache.stale_if_error`) what was in memory when the database went away.
    #[cold]
    fn fail(&self, failure: &PageFailure) -> Response {
        if *failure == PageFailure::Away
            && self.page.is_public()
            && !self.generation.may_be_guarded(self.visitor.path())
            && let Some(stale) = self.stale()
        {
            self.core.outcomes.given_stale();
            return stale;
        }
        self.respond(&Arc::new(Cached::Failed(failure.clone())), Bytes::new())
    }

    /// The page in memory, although the bound is over.
    fn stale(&self) -> Option<Response> {
        let stale = stale(&self.core.store, &self.key, self.core.stale_if_error)?;
        let (request, lines) = (self.request(), stale.lines.into());
        let response = self
            .generation
            .respond(&self.page, &stale.value, &request, lines);
        Some(AnswerKind::Stale.of(response))
    }

    fn asked<'a>(&'a self, key: &'a [u8]) -> Asked<'a> {
        Asked {
            store: &self.core.store,
            admission: &self.core.admission,
            key,
            arrival: self.arrival,
        }
    }

    /// Waits for the turn of work that is for this request alone.
    async fn turn(&self) -> Result<Turn, Refused> {
        self.core.admission.turn(None, self.arrival).await
    }

    /// Joins flights for `key` until one gives its value or is this request's to lead.
    async fn join_flights(&self, kind: FlightKind, key: &[u8], need: Need) -> FlightOutcome {
        let may_find = kind != FlightKind::FreshResults;
        let waits = || {
            if kind == FlightKind::Page {
                self.page.counters.waits.fetch_add(1, Ordering::Relaxed);
            }
        };
        self.asked(key).join(need, may_find, waits).await
    }

    /// Makes the page for all waiting requests, and answers the request that leads.
    async fn lead(&self, permit: Permit<Cached, DatabaseFeed>, why: MissReason) -> Response {
        let (made, timing) = match self.make(permit).await {
            Ok(made) => made,
            Err(failure) => return self.fail(&failure),
        };
        self.page.counters.miss();
        match made {
            MadePage::Shared(value, outcome) => {
                let made = |outcome| CacheStatus::Made(why, Some(outcome));
                let status = outcome.map_or(CacheStatus::Uncacheable, made);
                self.respond_timed(&value, status, timing)
            }
            MadePage::Private(prepared) => {
                let lines = self.lines(CacheStatus::FirstPrivate, timing);
                AnswerKind::Private.of(prepared.respond(&self.request(), lines))
            }
            MadePage::Failed => self.respond(
                &Arc::new(Cached::Failed(PageFailure::Internal)),
                Bytes::new(),
            ),
        }
    }

    /// Makes the page before a request asks for it.
    pub(crate) async fn make_ahead(&self, permit: Permit<Cached, DatabaseFeed>) -> MadeAhead {
        match self.make(permit).await {
            Ok((MadePage::Shared(value, outcome), _)) => {
                if outcome == Some(FillOutcome::Stored) {
                    self.page.counters.ahead.fetch_add(1, Ordering::Relaxed);
                }
                MadeAhead::Made(value, outcome)
            }
            Err(PageFailure::Busy(_)) => MadeAhead::Refused,
            _ => MadeAhead::Nothing,
        }
    }

    /// Makes the page, and gives it to the waiting requests that may have it.
    async fn make(
        &self,
        mut permit: Permit<Cached, DatabaseFeed>,
    ) -> Result<(MadePage, Timing), PageFailure> {
        let begun = self.asked(&self.key).begin(&mut permit).await;
        let started = Boottime::now();
        let gathered = match &begun {
            Ok(turn) => self.gather(Some(&permit), Some(turn)).await,
            Err(refused) => Err(PageFailure::from(*refused)),
        };
        let mut gathered = match gathered {
            Ok(gathered) => gathered,
            Err(failure) => {
                permit.fail(Arc::new(Cached::Failed(failure.clone())));
                return Err(failure);
            }
        };
        let before_render = Boottime::now();
        let rendered = self.render(&gathered.objects, gathered.database);
        let now = Boottime::now();
        let timing = Timing {
            queue: started.since(self.arrival.at),
            database: gathered.database,
            render: now.since(before_render),
        };
        self.page
            .counters
            .filled(now.since(started), gathered.database);
        let value = match rendered {
            Rendered::Page(prepared, end) => {
                gathered.expires = [gathered.expires, end].into_iter().flatten().min();
                if remake::is_renewable(&self.page) {
                    permit.renewable();
                }
                Arc::new(Cached::Page(prepared))
            }
            Rendered::Missing(at) => Arc::new(Cached::Missing(at)),
            Rendered::Private(prepared) => {
                self.page.private.store(true, Ordering::Relaxed);
                permit.alone();
                return Ok((MadePage::Private(prepared), timing));
            }
            Rendered::Failed(_) => {
                if self.visitor.touched() {
                    // What made it fail may be this visitor's own.
                    self.page.private.store(true, Ordering::Relaxed);
                    permit.alone();
                } else {
                    permit.fail(Arc::new(Cached::Failed(PageFailure::Internal)));
                }
                return Ok((MadePage::Failed, timing));
            }
        };
        let outcome = if gathered.uncacheable {
            permit.give(value.clone());
            None
        } else {
            Some(permit.complete(gathered.fill(value.clone(), now.since(started))))
        };
        Ok((MadePage::Shared(value, outcome), timing))
    }

    /// Without the store, for `--no-cache`.
    pub(crate) async fn answer_uncached(self) -> Response {
        let turn = self.turn().await;
        let started = Boottime::now();
        let gathered = match &turn {
            Ok(turn) => self.gather(None, Some(turn)).await,
            Err(refused) => Err((*refused).into()),
        };
        let gathered = match gathered {
            Ok(gathered) => gathered,
            Err(failure) => return self.respond(&Arc::new(Cached::Failed(failure)), Bytes::new()),
        };
        let before_render = Boottime::now();
        let rendered = self.render(&gathered.objects, gathered.database);
        let now = Boottime::now();
        self.page.counters.bypassed.fetch_add(1, Ordering::Relaxed);
        self.page
            .counters
            .filled(now.since(started), gathered.database);
        let timing = self.timing(gathered.database, now.since(before_render));
        self.respond_rendered(rendered, CacheStatus::Off, timing)
    }

    /// For one visitor: the results are shared, the page is not.
    async fn answer_privately(self) -> Response {
        let need = need(&self.core.store);
        let status = CacheStatus::Private;
        let key = self.bundle_key();
        if need == Need::Any
            && let Ok(hit) = self.core.store.get(&key, Boottime::now())
        {
            return self.render_bundle(hit.value(), status).await;
        }
        let flown = self.join_flights(FlightKind::Results, &key, need).await;
        self.answer_flown(flown, status).await
    }

    /// For a visitor whose write this node may not have come to: from a flight that has not begun,
    /// which reads all results. The page is rendered for this request alone.
    pub(crate) async fn answer_afresh(self, status: CacheStatus) -> Response {
        let key = self.bundle_key();
        let flown = self
            .join_flights(FlightKind::FreshResults, &key, Need::Unbegun)
            .await;
        self.answer_flown(flown, status).await
    }

    fn bundle_key(&self) -> Vec<u8> {
        bundle_key(self.generation.number, &self.page, &self.values)
    }

    /// Answers from all results of the page.
    async fn answer_flown(&self, flown: FlightOutcome, status: CacheStatus) -> Response {
        match flown {
            JoinOutcome::Found(value) | JoinOutcome::Shared(value) => {
                self.render_bundle(&value, status).await
            }
            JoinOutcome::Lead(permit) => self.lead_results(permit, status).await,
            // No flight of results is for one visitor alone.
            JoinOutcome::Alone | JoinOutcome::Refused => {
                self.respond(&Arc::new(Cached::Failed(PageFailure::BUSY)), Bytes::new())
            }
        }
    }

    /// All results of the page, from a flight that has not begun, with the time that they took. In
    /// place of results, what to answer with.
    pub(crate) async fn results_afresh(
        &self,
    ) -> Result<(Vec<Arc<QueryResult>>, Duration), Arc<Cached>> {
        if !self.core.cache {
            let gathered = self.gather(None, None).await;
            let gathered = gathered.map_err(|failure| Arc::new(Cached::Failed(failure)))?;
            return Ok((gathered.objects, gathered.database));
        }
        let key = self.bundle_key();
        let flown = self
            .join_flights(FlightKind::FreshResults, &key, Need::Unbegun)
            .await;
        let (value, database) = match flown {
            JoinOutcome::Found(value) | JoinOutcome::Shared(value) => (value, Duration::ZERO),
            JoinOutcome::Lead(permit) => {
                let (value, database, _) = self.make_results(permit).await;
                (value, database)
            }
            JoinOutcome::Alone | JoinOutcome::Refused => {
                (Arc::new(Cached::Failed(PageFailure::BUSY)), Duration::ZERO)
            }
        };
        match &*value {
            Cached::Bundle(objects) => Ok((objects.clone(), database)),
            _ => Err(value),
        }
    }

    /// Reads all results for all waiting requests, and answers the request that leads.
    async fn lead_results(
        &self,
        permit: Permit<Cached, DatabaseFeed>,
        status: CacheStatus,
    ) -> Response {
        let (value, database, _turn) = self.make_results(permit).await;
        self.respond_bundle(&value, status, database)
    }

    /// Answers from results that are there, when it is the request's turn to be rendered.
    async fn render_bundle(&self, value: &Arc<Cached>, status: CacheStatus) -> Response {
        match self.turn().await {
            Ok(_turn) => self.respond_bundle(value, status, Duration::ZERO),
            Err(refused) => {
                let failed = Cached::Failed(refused.into());
                self.respond(&Arc::new(failed), Bytes::new())
            }
        }
    }

    /// Reads all results for all waiting requests: a bundle or a failure.
    pub(crate) async fn make_results(
        &self,
        mut permit: Permit<Cached, DatabaseFeed>,
    ) -> (Arc<Cached>, Duration, Option<Turn>) {
        let key = self.bundle_key();
        let begun = self.asked(&key).begin(&mut permit).await;
        let started = Boottime::now();
        let gathered = match &begun {
            Ok(turn) => self.gather(None, Some(turn)).await,
            Err(refused) => Err(PageFailure::from(*refused)),
        };
        let gathered = match gathered {
            Ok(gathered) => gathered,
            Err(failure) => {
                let value = Arc::new(Cached::Failed(failure));
                permit.fail(value.clone());
                return (value, Duration::ZERO, None);
            }
        };
        let database = gathered.database;
        let value = Arc::new(Cached::Bundle(gathered.objects.clone()));
        // Of a page that is stored as a whole no request would look the results up.
        let is_stored = self.page.private.load(Ordering::Relaxed);
        if gathered.uncacheable || !is_stored {
            permit.give(value.clone());
        } else {
            permit.complete(gathered.fill(value.clone(), Boottime::now().since(started)));
        }
        (value, database, begun.ok())
    }

    fn respond_bundle(
        &self,
        value: &Arc<Cached>,
        status: CacheStatus,
        database: Duration,
    ) -> Response {
        let Cached::Bundle(objects) = &**value else {
            return self.respond(value, Bytes::new());
        };
        let before = Boottime::now();
        let rendered = self.render(objects, database);
        let timing = self.timing(database, Boottime::now().since(before));
        self.page.counters.bypassed.fetch_add(1, Ordering::Relaxed);
        self.respond_rendered(rendered, status, timing)
    }

    /// How long this request took so far: in the database, in the template, and else waiting.
    pub(crate) fn timing(&self, database: Duration, render: Duration) -> Timing {
        let taken = Boottime::now().since(self.arrival.at);
        Timing {
            queue: taken.saturating_sub(database).saturating_sub(render),
            database,
            render,
        }
    }

    /// Field lines on the source of a response, and on its times if they are to be told.
    pub(crate) fn lines(&self, status: CacheStatus, timing: Timing) -> Bytes {
        match self.core.is_timed {
            true => status.timed(timing),
            false => status.line(),
        }
    }

    /// Renders the page; `database` is the time that its results took.
    fn render(&self, objects: &[Arc<QueryResult>], database: Duration) -> Rendered {
        let rendered = render(
            &self.core,
            &self.generation,
            &self.page,
            &self.values,
            objects,
            &self.visitor,
        );
        if let (Some(_), Rendered::Failed(error)) = (&self.core.dev, &rendered) {
            let (page, values, visitor) = (&self.page, &self.values, &self.visitor);
            let report = failures::of_render(page, values, objects, database, visitor, error);
            let _ = self.report.set(report);
        }
        rendered
    }

    /// Notes why the queries failed, for the developer.
    #[cold]
    pub(crate) fn report_read(&self, error: &millpond_db::Error) {
        if self.core.dev.is_some() {
            let (page, values, visitor) = (&self.page, &self.values, &self.visitor);
            let report = failures::of_read(&self.core, page, values, visitor, error);
            let _ = self.report.set(report);
        }
    }

    fn request(&self) -> millpond_http::Request<'_> {
        self.visitor.request().as_request()
    }

    pub(crate) fn respond(&self, value: &Arc<Cached>, extra: Bytes) -> Response {
        let response = self
            .generation
            .respond(&self.page, value, &self.request(), extra);
        self.explained(value, response)
    }

    /// The response, with why for the developer if the page could not be made.
    fn explained(&self, value: &Cached, response: Response) -> Response {
        if self.core.dev.is_none() {
            return response;
        }
        let report = match (self.report.get(), value) {
            (Some(report), _) => report.clone(),
            (None, Cached::Missing(at)) => {
                let (page, values, visitor) = (&self.page, &self.values, &self.visitor);
                refusals::of_missing(&self.core, page, values, visitor, *at)
            }
            _ => return response,
        };
        response.with_note(report)
    }

    fn respond_timed(&self, value: &Arc<Cached>, status: CacheStatus, timing: Timing) -> Response {
        let extra = self.lines(status, timing);
        let response = self
            .generation
            .respond(&self.page, value, &self.request(), extra);
        self.explained(value, AnswerKind::from(status).of(response))
    }

    fn respond_rendered(
        &self,
        rendered: Rendered,
        status: CacheStatus,
        timing: Timing,
    ) -> Response {
        match rendered {
            Rendered::Page(prepared, _) | Rendered::Private(prepared) => {
                let response = prepared.respond(&self.request(), self.lines(status, timing));
                AnswerKind::from(status).of(response)
            }
            Rendered::Missing(at) => {
                self.respond_timed(&Arc::new(Cached::Missing(at)), status, timing)
            }
            Rendered::Failed(_) => self.respond(
                &Arc::new(Cached::Failed(PageFailure::Internal)),
                Bytes::new(),
            ),
        }
    }
}

/// Copies the request, because its bytes are gone when a flight lands.
pub(crate) fn owned(request: &millpond_http::Request<'_>) -> OwnedRequest {
    let mut owned = request.to_owned();
    owned = owned.body(Bytes::new());
    owned
}
