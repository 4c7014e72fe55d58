//! A page from the store, and how it is made.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use base_clock::Boottime;
use bytes::Bytes;
use millpond_http::{OwnedRequest, Parts, Prepared, Reply, is_compressible};
use millpond_pages::{
    Arrival, CacheStatus, JoinOutcome, Priority, ProgramFeed, SeenChanges, Turn, need,
    repeat::{self, HitCheck},
    request_coding,
};
use millpond_store::{Class, Fill, FillOutcome, Hit, MissReason, Permit};

use crate::failure::Failure;
use crate::handler::PageJob;
use crate::limits::PAGE_ATTEMPTS;
use crate::page::Page;
use crate::response::{Response, ResponseContent};
use crate::service::Shared;
use crate::slot::slot;
use crate::store::{Store, StoredPage};

type PagePermit = Permit<StoredPage, ProgramFeed>;

/// Fields that [`Prepared`] writes by itself.
const PREPARED_FIELDS: [&str; 3] = ["etag", "last-modified", "accept-ranges"];

/// Makes the response of a hit for a request.
pub(crate) fn answer_hit(
    shared: &Arc<Shared>,
    store: &Store,
    key: &[u8],
    hit: &Hit<StoredPage, ProgramFeed>,
    request: &millpond_http::Request<'_>,
) -> Reply {
    let status = store.said(CacheStatus::Hit);
    let prepared = match &**hit {
        StoredPage::Page(prepared) => prepared,
        StoredPage::Failed(failure) => return show(shared, failure, request, status).into(),
    };
    if let Some(coding) = prepared.wanted(request) {
        let (compressor, pages) = (&shared.compressor, store.pages());
        request_coding(compressor, pages, (key, hit.value()), (prepared, coding));
    }
    // Before the response is made: the check compares which codings there were.
    let check = || HitCheck(hit.clone());
    let validity = request
        .wants_validity
        .then(|| repeat::validity(prepared, request, check()));
    let extra = status.map_or_else(Bytes::new, CacheStatus::line);
    Reply::reusable(prepared.respond(request, extra), validity.flatten())
}

/// A request for a page that is not in the store.
pub(crate) struct PageRequest {
    pub(crate) shared: Arc<Shared>,
    pub(crate) store: Store,
    pub(crate) key: Vec<u8>,
    pub(crate) request: OwnedRequest,
    pub(crate) job: PageJob,
    /// Why it is not there.
    pub(crate) why: MissReason,
}

/// Page that a leader has made.
enum MadePage {
    Shared(Arc<StoredPage>, Option<FillOutcome>),
    /// With a cookie in it: for this request alone.
    Alone(Response),
}

impl PageRequest {
    /// Waits for the page, or makes it.
    pub(crate) async fn answer(self) -> millpond_http::Response {
        let pages = self.store.pages();
        let mut arrival = self.arrival();
        let admitted = self.shared.admission.arrive(&mut arrival);
        if admitted.is_err() && !pages.has_flight(&self.key) {
            self.shared.admission.count_refused();
            return self.busy();
        }
        let asked = millpond_pages::FillRequest {
            store: pages,
            admission: &self.shared.admission,
            key: &self.key,
            arrival,
        };
        let (permit, turn) = match asked.join(need(pages), true, || ()).await {
            JoinOutcome::Found(page) => return self.respond(&page, CacheStatus::Hit),
            JoinOutcome::Shared(page) => return self.respond(&page, CacheStatus::Collapsed),
            JoinOutcome::Lead(mut permit) => match asked.begin(&mut permit).await {
                Ok(turn) => (Some(permit), turn),
                Err(_) => {
                    permit.fail(Arc::new(StoredPage::Failed(Failure::busy())));
                    return self.busy();
                }
            },
            JoinOutcome::Alone => match self.shared.admission.turn(None, arrival).await {
                Ok(turn) => (None, turn),
                Err(_) => return self.busy(),
            },
            JoinOutcome::Refused => return self.busy(),
        };
        self.lead(permit, turn).await
    }

    fn arrival(&self) -> Arrival {
        let client = self.request.as_request().client();
        Arrival {
            priority: Priority::Document,
            client: client.network(),
            is_exempt: client.is_local(),
            at: Boottime::now(),
            cost: Duration::ZERO,
        }
    }

    fn busy(&self) -> millpond_http::Response {
        self.render(Response::failed(Failure::busy()))
    }

    fn render(&self, response: Response) -> millpond_http::Response {
        self.shared.render(response, &self.request.as_request())
    }

    fn respond(&self, page: &StoredPage, status: CacheStatus) -> millpond_http::Response {
        let request = self.request.as_request();
        let status = self.store.said(status);
        match page {
            StoredPage::Page(prepared) => {
                prepared.respond(&request, status.map_or_else(Bytes::new, CacheStatus::line))
            }
            StoredPage::Failed(failure) => show(&self.shared, failure, &request, status),
        }
    }

    /// Makes the page on a thread, with a permit for all who wait. The thread stores it, so it is
    /// there for them even if this client goes away.
    async fn lead(mut self, permit: Option<PagePermit>, turn: Turn) -> millpond_http::Response {
        let (sender, made) = slot();
        let store = self.store.clone();
        let job = std::mem::replace(&mut self.job, Box::new(|_| Response::empty(500)));
        let submitted = self.shared.pool.submit(Box::new(move || {
            let made = make(&store, &job, permit);
            drop(turn);
            sender.send(made);
        }));
        if submitted.is_err() {
            return self.busy();
        }
        match made.await {
            Some(MadePage::Shared(page, outcome)) => {
                self.respond(&page, CacheStatus::Made(self.why, outcome))
            }
            Some(MadePage::Alone(response)) => {
                let status = self.store.said(CacheStatus::Made(self.why, None));
                self.render(match status {
                    Some(status) => response.with_field("Cache-Status", status.value()),
                    None => response,
                })
            }
            None => self.busy(),
        }
    }
}

/// A failure, as the client of this request sees it, with the status of the store.
fn show(
    shared: &Shared,
    failure: &Failure,
    request: &millpond_http::Request<'_>,
    status: Option<CacheStatus>,
) -> millpond_http::Response {
    let mut failure = failure.clone();
    if !failure.has_field("cache-control") {
        // Browsers ask each time, as for a page.
        failure = failure.with_field("Cache-Control", "no-cache");
    }
    if let Some(status) = status {
        failure = failure.with_field("Cache-Status", status.value());
    }
    shared.render(Response::failed(failure), request)
}

/// A page, made.
struct Made {
    page: Page,
    response: Response,
    began: Boottime,
    seen: SeenChanges,
}

/// Calls the program's function, again if the rows that it had read changed while it read on.
fn call(store: &Store, job: &PageJob) -> Result<Made, Failure> {
    for _ in 0..PAGE_ATTEMPTS {
        let began = Boottime::now();
        let program = store.snapshot();
        let mut page = Page::of(store);
        let called = catch_unwind(AssertUnwindSafe(|| job(&mut page)));
        let response = called.map_err(|_| Failure::new(500, "internal server error"))?;
        if page.reads.is_torn() {
            continue;
        }
        let seen = SeenChanges {
            program,
            database: page.reads.snapshot(),
        };
        return Ok(Made {
            page,
            response,
            began,
            seen,
        });
    }
    Err(Failure::busy())
}

/// Makes a page, and gives it to the store and to those who wait.
fn make(store: &Store, job: &PageJob, permit: Option<PagePermit>) -> MadePage {
    let fail = |failure: Failure, permit: Option<PagePermit>| {
        let value = Arc::new(StoredPage::Failed(failure));
        if let Some(permit) = permit {
            permit.fail(value.clone());
        }
        MadePage::Shared(value, None)
    };
    store.count_made();
    let made = match call(store, job) {
        Ok(made) => made,
        Err(failure) => return fail(failure, permit),
    };
    let response = made.response;
    if response.has_field("set-cookie") {
        // It is meant for one visitor.
        if let Some(permit) = permit {
            permit.alone();
        }
        return MadePage::Alone(response);
    }
    let class = match response.status {
        404 | 410 => Class::Negative,
        _ => Class::Normal,
    };
    let value = match prepare(response) {
        Ok(prepared) => StoredPage::Page(Arc::new(prepared)),
        Err(failure) if failure.status() < 500 => StoredPage::Failed(failure),
        Err(failure) => return fail(failure, permit),
    };
    let value = Arc::new(value);
    let Some(permit) = permit else {
        return MadePage::Shared(value, None);
    };
    let (page, began) = (made.page, made.began);
    if !page.may_be_kept() {
        permit.give(value.clone());
        return MadePage::Shared(value, None);
    }
    let outcome = permit.complete(Fill {
        value: value.clone(),
        tags: store.tags(&page),
        snapshot: made.seen,
        position: (),
        expires: page.max_age.map(|age| began.plus(age)),
        class,
        cost: Boottime::now().since(began),
    });
    MadePage::Shared(value, Some(outcome))
}

/// The response with its heads made once; a failure has none, as it is written for each client.
fn prepare(response: Response) -> Result<Prepared, Failure> {
    let body = match response.content {
        ResponseContent::Bytes(bytes) => bytes,
        ResponseContent::Empty => Bytes::new(),
        ResponseContent::Stream(_) => {
            return Err(Failure::new(500, "a page of the store cannot be a stream"));
        }
        ResponseContent::Failure(failure) => return Err(failure),
    };
    let mut fields: Vec<(&str, &str)> = response
        .fields
        .iter()
        .map(|(name, value)| (&**name, &**value))
        .filter(|(name, _)| {
            !PREPARED_FIELDS
                .iter()
                .any(|own| name.eq_ignore_ascii_case(own))
        })
        .collect();
    let mut names = fields.iter().map(|(name, _)| name);
    if !names.any(|name| name.eq_ignore_ascii_case("cache-control")) {
        // Browsers ask each time, and get a 304 as long as nothing has changed.
        fields.push(("Cache-Control", "no-cache"));
    }
    let media_type = response.media_type.as_deref();
    let media_type = media_type.unwrap_or("text/plain; charset=utf-8");
    Ok(Prepared::new(Parts {
        status: response.status,
        media_type,
        fields: &fields,
        body,
        last_modified: None,
        compressible: is_compressible(media_type),
    }))
}
