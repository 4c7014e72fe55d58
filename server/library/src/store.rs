//! The store of a program: pages with dependencies that the program names, and the program's own
//! feed of changes.

use std::fmt::Display;
use std::hash::BuildHasher as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use base_clock::Boottime;
use millpond_http::Prepared;
use millpond_pages::{CacheStatus, ChangeMark, DatabaseSink, Heard, ProgramFeed, SeenChanges};
use millpond_store::{Change, Config, Sink as _, Tag};
use parking_lot::Mutex;

use crate::failure::Failure;
use crate::page::Page;

/// Pages in memory, each until something changes on which it depends.
///
/// The program names the things: a *kind* and an *id*, such as `"address"` and `17`. A page says
/// what it [depends on](Page::depends_on) while it is made; the program says what has
/// [changed](Store::changed). Cheap to clone; clones are one store.
///
/// # The order that matters
/// Change the source of truth first, then call [`changed`](Store::changed). When that has returned,
/// no page that depends on it is given any more, and no page is kept that was being made meanwhile:
/// it may have read what was before.
///
/// ```
/// use millpond::{Page, Routes, Store, stored};
///
/// let store = Store::new();
/// let mut routes = Routes::new();
/// routes.get("/addresses/{id}", stored(&store, |page: &mut Page, id: u64| {
///     page.depends_on("address", id);
///     format!("the address {id}")
/// }));
/// // Later, wherever an address is changed:
/// store.changed("address", 17);
/// ```
#[derive(Clone)]
pub struct Store {
    inner: Arc<StoreInner>,
}

pub(crate) type PageStore = millpond_store::Store<StoredPage, ProgramFeed>;

struct StoreInner {
    pages: Arc<PageStore>,
    hasher: foldhash::quality::RandomState,
    /// The number of the last change. Advanced before the change is applied: a page that is begun
    /// afterwards sees what was changed, because that was done before.
    number: AtomicU64,
    /// Held while a change is applied, so that they are applied in the order of their numbers.
    applying: Mutex<()>,
    heard: Arc<Heard<StoredPage>>,
    /// The bound of the program's looks at its source.
    max_staleness: Option<Duration>,
    /// Pages that were made.
    made: AtomicU64,
    cache_status: bool,
    start_check: Mutex<Option<StartCheck>>,
}

/// Says what is wrong with a store when a server begins to serve it.
pub(crate) type StartCheck = Box<dyn FnOnce() -> Option<&'static str> + Send>;

/// Settings of a [`Store`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoreSettings {
    /// Bytes that pages may take, their overhead included; beyond them those go that are asked for
    /// least. Default 256 MiB.
    pub memory: usize,
    /// For a source of truth that others change too, and that the program looks at now and then:
    /// the longest time since the beginning of the last [look](Store::look) with which pages are
    /// given from memory. Beyond it every page is made anew. Default none: every change is known to
    /// the program when it is made.
    pub max_staleness: Option<Duration>,
    /// Pages that may be made at the same time; beyond them 503. Default 4,096.
    pub fills: usize,
    /// Requests that may wait for pages; beyond them 503. Default 65,536.
    pub waiters: usize,
    /// True if responses say by `Cache-Status` (RFC 9211) where a page came from, such as
    /// `millpond; hit`, as `millpond serve` does. Default true.
    pub cache_status: bool,
}

impl Default for StoreSettings {
    fn default() -> Self {
        let config = Config::default();
        Self {
            memory: config.memory,
            max_staleness: None,
            fills: config.flights,
            waiters: config.waiters,
            cache_status: true,
        }
    }
}

/// Contents and counts of a [`Store`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct StoreStats {
    /// Pages in memory.
    pub pages: usize,
    /// Their bytes.
    pub bytes: usize,
    /// Pages that were made, also those that were not kept.
    pub made: u64,
    /// Changes that were told.
    pub changes: u64,
    /// Requests that waited for a page that another request had begun.
    pub waited: u64,
    /// Pages that were not kept, because something changed while they were made.
    pub fenced: u64,
}

/// Page that is kept.
pub(crate) enum StoredPage {
    Page(Arc<Prepared>),
    /// Written for each client, as what it looks like may depend on the request.
    Failed(Failure),
}

impl millpond_store::Value for StoredPage {
    fn weight(&self) -> usize {
        size_of::<Self>()
            + match self {
                Self::Page(prepared) => prepared.weight(),
                Self::Failed(failure) => failure.weight(),
            }
    }
}

/// A number for a route, which no other route of the process has.
pub(crate) fn next_route() -> u64 {
    static NUMBER: AtomicU64 = AtomicU64::new(0);
    NUMBER.fetch_add(1, Ordering::Relaxed)
}

/// Thing that a dependency is about.
#[derive(Hash)]
enum Named<'a> {
    /// One thing.
    One(&'a str, &'a str),
    /// Touched by every change of a kind.
    Any(&'a str),
    /// Touched by a change of a kind as a whole.
    Whole(&'a str),
}

impl Default for Store {
    fn default() -> Self {
        Self::new()
    }
}

impl Store {
    /// A store with the default settings.
    #[must_use]
    pub fn new() -> Self {
        Self::with(&StoreSettings::default())
    }

    /// A store with these settings.
    #[must_use]
    pub fn with(settings: &StoreSettings) -> Self {
        Self::of(settings, false)
    }

    /// Makes a store with these settings, for pages that show the rows of a database, which is
    /// added later.
    pub(crate) fn of(settings: &StoreSettings, has_database: bool) -> Self {
        let pages = PageStore::new(Config {
            memory: settings.memory,
            // It is in what is heard, as each source has its own.
            max_staleness: Duration::ZERO,
            flights: settings.fills,
            waiters: settings.waiters,
            ..Config::default()
        });
        let is_watched = settings.max_staleness.is_some();
        let heard = Heard::new(Arc::clone(&pages), is_watched, has_database);
        Self {
            inner: Arc::new(StoreInner {
                pages,
                hasher: foldhash::quality::RandomState::default(),
                number: AtomicU64::new(0),
                applying: Mutex::new(()),
                heard: Arc::new(heard),
                max_staleness: settings.max_staleness,
                made: AtomicU64::new(0),
                cache_status: settings.cache_status,
                start_check: Mutex::new(None),
            }),
        }
    }

    /// Returns the sink that a database of this store notifies.
    pub(crate) fn sink(&self, max_staleness: Duration) -> Arc<DatabaseSink<StoredPage>> {
        Arc::new(DatabaseSink {
            store: Arc::clone(&self.inner.pages),
            heard: Arc::clone(&self.inner.heard),
            max_staleness,
        })
    }

    /// Has `check` called when a server first begins to serve the store.
    pub(crate) fn check_at_start(&self, check: StartCheck) {
        *self.inner.start_check.lock() = Some(check);
    }

    /// A server begins to serve it: what is wrong, if something is, once.
    pub(crate) fn begin_serving(&self) -> Option<&'static str> {
        let check = self.inner.start_check.lock().take();
        check.and_then(|check| check())
    }

    /// True if both are one store.
    pub(crate) fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.inner, &other.inner)
    }

    /// The thing `id` of `kind` has changed, was added or removed. Pages that depend on it or on
    /// the whole kind end before this returns. Ids are compared by their text, so `17_u64`,
    /// `17_i32` and `"17"` are one.
    pub fn changed(&self, kind: &str, id: impl Display) {
        self.change(|changes| {
            changes.one(kind, id);
        });
    }

    /// Anything of `kind` may have changed.
    pub fn changed_all(&self, kind: &str) {
        self.change(|changes| {
            changes.all(kind);
        });
    }

    /// Several changes that were made together, such as by one transaction: all pages that depend
    /// on one of them end at the same moment.
    pub fn change(&self, name: impl FnOnce(&mut Changes<'_>)) {
        let mut changes = Changes {
            store: self,
            tags: Vec::new(),
        };
        name(&mut changes);
        let tags = changes.tags;
        let _applying = self.inner.applying.lock();
        let number = self.inner.number.load(Ordering::SeqCst) + 1;
        self.inner.number.store(number, Ordering::SeqCst);
        let mark = ChangeMark::Program(number);
        self.inner.pages.apply(Change { mark, tags });
        self.inner.pages.visible(&SeenChanges {
            program: number,
            database: None,
        });
    }

    /// Everything may have changed, such as after the source of truth was replaced. All pages end.
    pub fn changed_everything(&self) {
        let _applying = self.inner.applying.lock();
        self.inner
            .pages
            .new_epoch("the program says that everything may have changed");
    }

    /// Begins a look at the source of truth, of a program that gives
    /// [`max_staleness`](StoreSettings::max_staleness). Call it before the source is looked at, say
    /// what has changed, then call [`LookAtSource::done`].
    pub fn look(&self) -> LookAtSource {
        LookAtSource {
            store: self.clone(),
            began: Boottime::now(),
        }
    }

    /// Returns the contents and counts of the store.
    #[must_use]
    pub fn stats(&self) -> StoreStats {
        let stats = self.inner.pages.stats();
        StoreStats {
            pages: stats.entries,
            bytes: stats.bytes,
            made: self.inner.made.load(Ordering::Relaxed),
            changes: stats.changes,
            waited: stats.waited,
            fenced: stats.fenced,
        }
    }

    pub(crate) fn pages(&self) -> &Arc<PageStore> {
        &self.inner.pages
    }

    /// Counts a page that is made.
    pub(crate) fn count_made(&self) {
        self.inner.made.fetch_add(1, Ordering::Relaxed);
    }

    /// The status, if responses are to say it.
    pub(crate) fn said(&self, status: CacheStatus) -> Option<CacheStatus> {
        self.inner.cache_status.then_some(status)
    }

    /// Returns the number of the last change that a page that is begun now sees.
    pub(crate) fn snapshot(&self) -> u64 {
        self.inner.number.load(Ordering::SeqCst)
    }

    /// The tags of what a page depends on.
    pub(crate) fn tags(&self, page: &Page) -> Vec<Tag> {
        let mut tags = page.reads.tags();
        for (kind, ids) in page.dependencies() {
            match ids {
                Some(ids) => {
                    tags.push(self.broad(&Named::Whole(kind)));
                    let ids = ids.iter().map(|id| self.narrow(&Named::One(kind, id)));
                    tags.extend(ids);
                }
                None => tags.push(self.broad(&Named::Any(kind))),
            }
        }
        tags
    }

    fn narrow(&self, named: &Named<'_>) -> Tag {
        Tag::narrow(self.inner.hasher.hash_one(named))
    }

    fn broad(&self, named: &Named<'_>) -> Tag {
        Tag::broad(self.inner.hasher.hash_one(named))
    }
}

impl std::fmt::Debug for Store {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Store")
            .field("stats", &self.stats())
            .finish()
    }
}

/// Things that have changed, for [`Store::change`].
#[derive(Debug)]
pub struct Changes<'s> {
    store: &'s Store,
    tags: Vec<Tag>,
}

impl Changes<'_> {
    /// See [`Store::changed`].
    pub fn one(&mut self, kind: &str, id: impl Display) -> &mut Self {
        let id = id.to_string();
        self.tags.push(self.store.narrow(&Named::One(kind, &id)));
        self.tags.push(self.store.broad(&Named::Any(kind)));
        self
    }

    /// See [`Store::changed_all`].
    pub fn all(&mut self, kind: &str) -> &mut Self {
        self.tags.push(self.store.broad(&Named::Whole(kind)));
        self.tags.push(self.store.broad(&Named::Any(kind)));
        self
    }
}

/// A look at the source of truth that has begun.
#[derive(Debug)]
#[must_use = "a look that is not done vouches for nothing"]
pub struct LookAtSource {
    store: Store,
    began: Boottime,
}

impl LookAtSource {
    /// The look is over, and all changes that it has found were told. Pages may be given from
    /// memory until [`max_staleness`](StoreSettings::max_staleness) after the beginning of the
    /// look.
    pub fn done(self) {
        let _applying = self.store.inner.applying.lock();
        let inner = &self.store.inner;
        if let Some(bound) = inner.max_staleness {
            inner.heard.program(self.began.plus(bound));
        }
    }
}
