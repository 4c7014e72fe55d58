//! What a page is, once its files are understood.

pub mod bytes;
pub mod csv;
pub mod end;
pub mod guard;
pub mod language;
pub mod path;
pub mod redirect;
pub mod redirect_target;

use std::{
    fmt,
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use millpond_db as db;
use millpond_http::{Request, names_html};

use crate::{
    page_type::PageType,
    refusal::{faults::FormTexts, invalid::Invalid, values::FormFields},
};
use bytes::PageBytes;
use csv::CsvReader;
use end::Until;
use guard::Guard;
use millpond_site_format::{
    access::SessionRequirements,
    config::show_time,
    params::Param,
    route::{Pattern, Segment},
    script::{FileLine, Rows},
    write_method::{WriteMethod, allow},
};
use path::PagePath;
use redirect::PageRedirect;
use redirect_target::{ArgumentSource, RedirectPiece};

/// A path of the site, with what answers GET and what answers the methods that write.
#[derive(Debug)]
pub struct Endpoint {
    pub pattern: Pattern,
    pub page: Option<Arc<Page>>,
    /// At most one for each method.
    pub forms: Box<[Arc<Form>]>,
    /// The methods that it has, as `Allow` lists them.
    pub allow: String,
    /// The texts that each parameter of the path may be; any if there are none.
    pub choices: Box<[Vec<String>]>,
}

/// An endpoint is written out for at most this many values of its path.
const MAX_SHAPES: usize = 64;

impl Endpoint {
    pub fn new(pattern: Pattern, page: Option<Arc<Page>>, forms: Vec<Arc<Form>>) -> Self {
        let methods = forms.iter().map(|form| form.method);
        Self {
            allow: allow(page.is_some(), methods),
            choices: path_choices(&pattern, page.as_deref(), &forms),
            pattern,
            page,
            forms: forms.into(),
        }
    }

    /// Its pattern with the values of parameters that may have only some, one for each combination.
    pub fn shapes(&self) -> Vec<Pattern> {
        let mut shapes = vec![self.pattern.clone()];
        let places = self.pattern.segments.iter().enumerate();
        let places = places.filter(|(_, segment)| segment.param().is_some());
        for ((at, _), texts) in places.zip(&self.choices) {
            if texts.is_empty() || shapes.len() * texts.len() > MAX_SHAPES {
                continue;
            }
            let with = |shape: &Pattern, text: &String| {
                let mut shape = shape.clone();
                shape.segments[at] = Segment::Literal(text.clone());
                shape
            };
            let all = shapes.iter();
            let all = all.flat_map(|shape| texts.iter().map(move |text| with(shape, text)));
            shapes = all.collect();
        }
        shapes
    }

    /// Returns the form that answers a method that writes.
    pub fn form(&self, method: WriteMethod) -> Option<&Arc<Form>> {
        self.forms.iter().find(|form| form.method == method)
    }

    /// True if this client is answered as a program, because nothing at this address is for people:
    /// it is an API's.
    pub fn is_api_for(&self, request: &Request<'_>) -> bool {
        let page = self.page.iter().any(|page| !page.is_api_for(request));
        !page && !self.forms.iter().any(|form| form.is_for_people())
    }
}

/// The texts that each parameter of a path may be: those that any of the files of the address
/// takes. What one file leaves open is open for all, because they are one address.
fn path_choices(pattern: &Pattern, page: Option<&Page>, forms: &[Arc<Form>]) -> Box<[Vec<String>]> {
    let of_page = page.iter().map(|page| &page.params);
    let files: Vec<&Vec<Param>> = of_page
        .chain(forms.iter().map(|form| &form.params))
        .collect();
    let choices = (0..pattern.params().count()).map(|at| {
        let of_files = files.iter().map(|params| {
            let mut params = params.iter();
            let texts = params
                .find(|param| param.in_path == Some(at))
                .map(Param::texts);
            texts.unwrap_or_default()
        });
        let of_files: Vec<Vec<String>> = of_files.collect();
        match of_files.iter().any(Vec::is_empty) {
            true => Vec::new(),
            false => of_files.concat(),
        }
    });
    choices.collect()
}

/// Page, which answers GET.
#[derive(Debug)]
pub struct Page {
    /// Its place among the site's pages; part of its keys.
    pub index: u32,
    pub route: String,
    pub path: PagePath,
    pub params: Vec<Param>,
    pub queries: Vec<PageQuery>,
    /// The template's name; without one the queries are given as JSON, or as CSV.
    pub template: Option<String>,
    /// Address to which the page leads, instead of being shown.
    pub redirect: Option<PageRedirect>,
    /// The column that the page answers with, where it has no template.
    pub bytes: Option<PageBytes>,
    /// The query whose rows alone are the JSON.
    pub bare: Option<usize>,
    /// The query and its column that say how many rows there are in all, for `X-Total-Count`.
    pub total: Option<(usize, String)>,
    /// Program that reads the rows, if they are sent as CSV.
    pub csv_reader: CsvReader,
    /// True if those who look at it are told when it changes.
    pub is_live: bool,
    /// True if crawlers are asked to stay away.
    pub is_uncrawled: bool,
    /// Type that the page is sent as.
    pub page_type: &'static PageType,
    /// Lower-case names of the request fields that are part of the key.
    pub vary: Arc<[String]>,
    /// The place of the parameter that the visitor's browser chooses, if the address does not.
    pub language: Option<usize>,
    /// Requirements of the page on the visitor's session. The claims' values follow the parameters'
    /// values.
    pub needs: Arc<SessionRequirements>,
    /// The queries that say who may enter.
    pub guards: Box<[Guard]>,
    /// The moments at which it ends by itself.
    pub until: Box<[Until]>,
    /// The fields of the forms that lead back to the page, if there are any.
    pub forms: Option<Arc<FormFields>>,
    /// Set when a render has looked at more of the request than the key holds.
    pub private: AtomicBool,
    pub counters: Counters,
}

impl Page {
    /// True if requests decide how many pages there are of this one.
    pub fn has_many_keys(&self) -> bool {
        !self.params.is_empty()
    }

    /// True if a visitor without access may be redirected to the sign-in page: if the page has a
    /// template, leads elsewhere, or is a download.
    pub fn is_for_people(&self) -> bool {
        self.template.is_some() || self.redirect.is_some() || self.is_download()
    }

    /// True if the page gives a file, which people and programs ask for alike.
    fn is_download(&self) -> bool {
        self.template.is_none() && (self.bytes.is_some() || self.page_type.is_csv())
    }

    /// True if this client gets its errors as a program does: as JSON, and 401 in place of a
    /// redirect. A browser that is led to a download names HTML among what it takes.
    pub fn is_api_for(&self, request: &Request<'_>) -> bool {
        let is_shown = self.template.is_some() || self.redirect.is_some();
        !(is_shown || self.is_download() && names_html(request))
    }

    /// The query whose statement an error is about.
    pub fn query_of(&self, error: &db::Error) -> Option<&PageQuery> {
        let sql = error.sql()?;
        let has_sql = |query: &&PageQuery| {
            let mut statements = query.statements.iter();
            statements.any(|statement| statement.query.sql() == sql)
        };
        self.queries.iter().find(has_sql)
    }

    /// Returns the place at which the statement of an error is written.
    pub fn place_of(&self, error: &db::Error) -> Option<String> {
        let query = self.query_of(error)?;
        Some(format!("{}:{}", query.file.display(), query.line))
    }

    /// True if every visitor gets the same page, as far as its key says: no session and no cookie
    /// is part of it, and no query says who may enter.
    pub fn is_public(&self) -> bool {
        let personal = ["cookie", "authorization"];
        let is_personal = |field: &String| personal.contains(&field.as_str());
        self.needs.is_none()
            && self.guards.is_empty()
            && !self.vary.iter().any(is_personal)
            && !self.private.load(Ordering::Relaxed)
    }
}

/// One of a page's queries.
#[derive(Debug)]
pub struct PageQuery {
    pub name: String,
    pub rows: Rows,
    /// One, or one for each order that can be chosen.
    pub statements: Box<[PageStatement]>,
    /// The places of the parameters that choose among the statements.
    pub orders: Box<[usize]>,
    pub max_age: Option<Duration>,
    /// The moments of the page's `-- until:` lines, as they are written. The owner's word is that
    /// the clock changes the result at these only.
    pub until: Option<Arc<str>>,
    /// Tables that the owner declares as dependencies of the query, in addition to those that the
    /// database names.
    pub depends: Box<[String]>,
    pub file: PathBuf,
    /// The line of its name.
    pub line: usize,
}

/// A statement of a page.
#[derive(Debug)]
pub struct PageStatement {
    pub query: db::Query,
    /// For each of its parameters, the place among the page's.
    pub args: Box<[usize]>,
    /// For each of the query's orders, its name and the value for which this is the statement.
    pub chosen: Box<[(String, db::Value)]>,
}

impl PageStatement {
    /// The query's name, with what was chosen: `albums (sort = -title)`.
    pub fn name(&self, query: &PageQuery) -> String {
        let chosen = self.chosen.iter().map(|(name, value)| match value {
            db::Value::Text(text) => format!("{name} = {text}"),
            _ => name.clone(),
        });
        match chosen.collect::<Vec<_>>().join(", ") {
            chosen if chosen.is_empty() => query.name.clone(),
            chosen => format!("{} ({chosen})", query.name),
        }
    }
}

impl PageQuery {
    /// The statement for these values of the page's parameters.
    pub fn statement(&self, values: &[db::Value]) -> &PageStatement {
        let is_chosen = |statement: &&PageStatement| {
            let mut chosen = self.orders.iter().zip(&statement.chosen);
            chosen.all(|(&at, (_, value))| values[at] == *value)
        };
        let found = self.statements.iter().find(is_chosen);
        found.unwrap_or(&self.statements[0])
    }

    /// One line for each thing that a result of the statement depends on.
    pub fn describe(&self, statement: &PageStatement) -> Vec<String> {
        let end = self.owners_end(&statement.query);
        with_end(end.as_ref(), statement.query.describe(), |end, reason| {
            format!("kept {}: {reason}", end.kept)
        })
    }

    /// Lists the changes that end a result of the statement, in few words.
    pub fn ends(&self, statement: &PageStatement) -> Vec<String> {
        let end = self.owners_end(&statement.query);
        let mut ends = with_end(end.as_ref(), statement.query.ends(), |end, _| {
            end.cause.clone()
        });
        let until = end.filter(|_| self.until.is_some());
        ends.extend(
            until
                .map(|end| end.cause)
                .filter(|cause| !ends.contains(cause)),
        );
        ends
    }

    fn owners_end(&self, query: &db::Query) -> Option<OwnersEnd> {
        if let Some(until) = self.until.as_ref().filter(|_| query.may_end_by_clock()) {
            return Some(OwnersEnd {
                kept: format!("until {until} (-- until)"),
                cause: format!("the moment of {until} (-- until)"),
            });
        }
        let age = show_time(self.max_age?);
        Some(OwnersEnd {
            kept: format!("for {age} (-- max-age)"),
            cause: format!("its age of {age} (-- max-age)"),
        })
    }
}

/// The end that the owner gives to results that could not be kept otherwise, in words.
struct OwnersEnd {
    kept: String,
    cause: String,
}

/// A result that would not be kept is, until the end that the owner gives.
fn with_end(
    end: Option<&OwnersEnd>,
    lines: Vec<String>,
    kept: impl Fn(&OwnersEnd, &str) -> String,
) -> Vec<String> {
    let Some(end) = end else {
        return lines;
    };
    let lines = lines.into_iter();
    lines
        .map(|line| match line.strip_prefix("not cacheable: ") {
            Some(reason) => kept(end, reason),
            None => line,
        })
        .collect()
}

/// Form, which answers POST, PUT, PATCH or DELETE.
#[derive(Debug)]
pub struct Form {
    pub method: WriteMethod,
    pub route: String,
    pub file: PathBuf,
    pub params: Vec<Param>,
    /// Requirements of the form on the visitor's session. The claims' values follow the parameters'
    /// values, and the hashes follow both.
    pub needs: SessionRequirements,
    /// The first steps of the transaction, which say who may enter.
    pub guards: Box<[Guard]>,
    pub signing: Signing,
    pub steps: Vec<FormStep>,
    pub answer: FormAnswer,
    /// The page that it leads back to if it is refused.
    pub invalid: Option<Invalid>,
    /// Sentences for when the form is refused.
    pub texts: FormTexts,
    /// The files that it takes.
    pub uploads: Vec<UploadField>,
    /// Steps with the column in whose rows the addresses of files are that are removed when it is
    /// done.
    pub deleted_files: Vec<(usize, String)>,
}

/// A file that a form takes.
#[derive(Debug)]
pub struct UploadField {
    pub line: FileLine,
    /// The place of its value among the form's parameters; further values follow it.
    pub place: usize,
}

/// Answer when all steps are done.
#[derive(Debug)]
pub enum FormAnswer {
    /// 303 to this address.
    Redirect(Vec<RedirectPiece>),
    /// Rows of the steps, for programs.
    Json {
        /// 201 with the address of what was created.
        created: Option<Vec<RedirectPiece>>,
        /// The step whose rows alone are the JSON.
        bare: Option<usize>,
    },
}

/// As the owner's log names it: `PUT /items/{id}`.
impl fmt::Display for Form {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.method.name(), self.route)
    }
}

impl Form {
    /// True if a browser sends it and follows the redirect.
    pub fn is_for_people(&self) -> bool {
        matches!(self.answer, FormAnswer::Redirect(_))
    }

    /// Returns the place at which the statement of an error is written.
    pub fn place_of(&self, error: &db::Error) -> Option<String> {
        let sql = error.sql()?;
        let step = self.steps.iter().find(|step| step.query.sql() == sql)?;
        Some(format!("{}:{}", self.file.display(), step.line))
    }
}

/// Actions of a form on passwords and the session.
#[derive(Debug, Default)]
pub struct Signing {
    /// The number of leading steps that only read, before the password is verified.
    pub lookups: usize,
    pub verify: Option<Verify>,
    /// For each hash, the place of its password among the values.
    pub hashes: Vec<usize>,
    /// The session that begins.
    pub claims: Vec<(String, ArgumentSource)>,
    /// True if the session ends.
    pub is_logout: bool,
    /// The parameter or column that says where to go, if it is a path of this site.
    pub next: Option<ArgumentSource>,
}

/// A `-- verify:` line.
#[derive(Debug)]
pub struct Verify {
    /// The lookup that finds the account, and its column with the hash.
    pub step: usize,
    pub column: String,
    /// The place of the password among the values.
    pub password: usize,
    /// Address for a visitor whose password is wrong.
    pub otherwise: Option<Vec<RedirectPiece>>,
}

/// One statement of a form.
#[derive(Debug)]
pub struct FormStep {
    pub name: String,
    pub rows: Rows,
    pub query: db::Query,
    pub bind: Vec<ArgumentSource>,
    pub expect: db::Expect,
    /// The status if a `:one` gives no row, in place of 404.
    pub otherwise: Option<u16>,
    /// The line of its name.
    pub line: usize,
}

/// Counters are kept apart by worker, so that a hit writes no memory that another core writes.
const SLOTS: usize = 8;

#[repr(align(128))]
#[derive(Debug, Default)]
struct HitSlot {
    hits: AtomicU64,
}

/// Fills by which the use of keeping a page is judged, again and again.
const JUDGED: u64 = 100;

/// Counts of a page's requests.
#[derive(Debug, Default)]
pub struct Counters {
    hits: [HitSlot; SLOTS],
    /// Hits at the last judgement, and the judgement.
    judged_hits: AtomicU64,
    is_useless: AtomicBool,
    pub misses: AtomicU64,
    pub waits: AtomicU64,
    pub bypassed: AtomicU64,
    /// Fills among them that were stored before a request.
    pub ahead: AtomicU64,
    pub kind: AtomicU64,
    pub fill_nanos: AtomicU64,
    pub database_nanos: AtomicU64,
}

impl Counters {
    pub fn hit(&self, worker: usize) {
        self.hits[worker % SLOTS]
            .hits
            .fetch_add(1, Ordering::Relaxed);
    }

    pub fn hits(&self) -> u64 {
        self.hits
            .iter()
            .map(|slot| slot.hits.load(Ordering::Relaxed))
            .sum()
    }

    /// Counts a request that made the page.
    pub fn miss(&self) {
        let misses = self.misses.fetch_add(1, Ordering::Relaxed) + 1;
        if misses.is_multiple_of(JUDGED) {
            let hits = self.hits();
            let since = hits.saturating_sub(self.judged_hits.swap(hits, Ordering::Relaxed));
            let is_useless = since * 10 < since + JUDGED;
            self.is_useless.store(is_useless, Ordering::Relaxed);
        }
    }

    /// True if fewer than a tenth of the requests around the last hundred fills were hits: the
    /// addresses of the route hardly repeat, or do not stay in memory until they do.
    pub fn is_useless(&self) -> bool {
        self.is_useless.load(Ordering::Relaxed)
    }

    /// Returns how long a fill takes on average; none before the first.
    pub fn mean_fill(&self) -> Duration {
        let fills = self.kind.load(Ordering::Relaxed).max(1);
        Duration::from_nanos(self.fill_nanos.load(Ordering::Relaxed) / fills)
    }

    pub fn filled(&self, total: Duration, database: Duration) {
        self.kind.fetch_add(1, Ordering::Relaxed);
        self.fill_nanos
            .fetch_add(total.as_nanos() as u64, Ordering::Relaxed);
        self.database_nanos
            .fetch_add(database.as_nanos() as u64, Ordering::Relaxed);
    }
}
