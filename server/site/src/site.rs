//! A running site: opened, read again when its folder changes, stopped.

use std::{
    num::NonZero,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    thread,
    time::Duration,
};

use arc_swap::ArcSwap;
use base_clock::Boottime;
use millpond_db::{Database, Health};
use millpond_http::Compressor;
use millpond_pages::{Admission, AdmissionStats, Capacity};
use millpond_store::{Sink, Stats, Store};
use parking_lot::Mutex;

use crate::{
    SiteService,
    ahead::{self, Ahead},
    core::{
        Core, Generation,
        outages::{Outcomes, Reporter},
    },
    data::{DataFiles, DataSources, Inbox},
    dev::DevState,
    labels::RouteNumbers,
    live::{
        board::{Board, LiveStats},
        watcher::Watcher,
    },
    log::Log,
    opening::{
        self,
        known_migrations::KnownMigrations,
        reading::{read, read_again},
    },
    session::{Attempts, Passwords},
    site_options::SiteOptions,
    uploads::Uploads,
    watch::Watch,
};
use millpond_site_format::{
    Config, Problem,
    config::{DatabaseUrl, UploadLimits},
    folder::SiteFolder,
};

/// A site that is being served.
pub struct Site {
    core: Arc<Core>,
    /// Held while the folder is read: one reading at a time.
    settings: Mutex<Settings>,
    watch: Mutex<Option<Watch>>,
    ahead: Mutex<Option<Ahead>>,
    reporter: Mutex<Option<Reporter>>,
    live: Mutex<Option<Watcher>>,
    data: Mutex<Option<DataFiles>>,
}

/// Configuration of a site: the one in use, and the fault of a newer one.
struct Settings {
    /// Configuration in use.
    config: Config,
    /// The file as it was at the start, without the options of the command.
    started: Option<Config>,
    /// Settings of which was said that they wait for a restart.
    waiting: Vec<String>,
    /// Fault of the file since then.
    fault: Option<Problem>,
    migrations: KnownMigrations,
}

impl Settings {
    /// The file as it is now; if it cannot be read, the configuration in use. A fault is reported
    /// once, not at every change of another file.
    fn latest(&mut self, core: &Core) -> Config {
        match Config::read(&core.dir) {
            Ok(config) => {
                self.fault = None;
                let started = self.started.get_or_insert_with(|| config.clone());
                let mut waiting = started.differences(&config);
                // SIGHUP is enough for these.
                waiting.retain(|path| !path.starts_with("log."));
                if !waiting.is_empty() && waiting != self.waiting {
                    core.log(&format!(
                        "changed, but not applied by saving the file: {}; a restart applies it",
                        waiting.join(", ")
                    ));
                }
                self.waiting = waiting;
                config
            }
            Err(problem) => {
                if self.fault.as_ref() != Some(&problem) {
                    core.log(&format!(
                        "the configuration has changed and has faults; the one in use stays:\n{problem}"
                    ));
                    self.fault = Some(problem);
                }
                self.config.clone()
            }
        }
    }
}

/// Counts of a site's requests.
#[derive(Clone, Debug, Default)]
pub struct SiteStats {
    /// Requests answered from the store.
    pub hits: u64,
    /// Requests that made their page for everyone.
    pub misses: u64,
    /// Requests that waited for another's fill.
    pub waits: u64,
    /// Requests past the store: private pages and `--no-cache`.
    pub bypassed: u64,
    /// Pages that were made and kept before a request asked for them.
    pub ahead: u64,
    /// The time for these pages and for looking for keys; `cache.refresh_ahead` bounds its share.
    pub ahead_time: Duration,
    /// Time that making pages took in all.
    pub fill_time: Duration,
    /// The database's part of it.
    pub database_time: Duration,
    /// The store's own counters.
    pub store: Stats,
    /// Requests that waited for their turn, and those that were refused.
    pub admission: AdmissionStats,
    /// Clients that look at live pages.
    pub live: LiveStats,
    /// State of the database.
    pub database: Health,
    /// Age of the newest heartbeat of the feed; none before the first.
    pub feed_age: Option<Duration>,
    /// The pages that have been asked for since the folder was last read.
    pub routes: Vec<RouteStats>,
}

/// Counts of one page's requests.
#[derive(Clone, Debug, Default)]
pub struct RouteStats {
    /// The page's path.
    pub route: String,
    /// Requests answered from the store.
    pub hits: u64,
    /// Requests that made the page.
    pub misses: u64,
    /// Requests that waited for another's fill.
    pub waits: u64,
    /// Requests past the store.
    pub bypassed: u64,
    /// Pages that were made, of which the times are those that follow.
    pub made: u64,
    /// Time that making them took.
    pub fill_time: Duration,
    /// The database's part of it.
    pub database_time: Duration,
    /// Hits times the mean time that the page took to make.
    pub saved: Duration,
}

impl Site {
    /// Applies the migrations, reads the folder, and starts the feed and the watch over the folder.
    ///
    /// # Errors
    /// All faults of the folder, or the reason why the database cannot be opened.
    pub fn open(
        dir: &Path,
        config: &Config,
        options: SiteOptions,
    ) -> Result<Arc<Self>, Vec<Problem>> {
        let database = opening::open(dir, config, &options)?;
        let makes_ahead = options.cache && config.cache && config.refresh_ahead > 0;
        let core = core_of(dir, config, options, database, makes_ahead)?;
        core.database.start(core.store.clone());
        let site = Arc::new(Self {
            core,
            settings: Mutex::new(Settings {
                config: config.clone(),
                started: None,
                waiting: Vec::new(),
                fault: None,
                migrations: KnownMigrations::new(dir, config),
            }),
            watch: Mutex::new(None),
            ahead: Mutex::new(None),
            reporter: Mutex::new(None),
            live: Mutex::new(None),
            data: Mutex::new(None),
        });
        if options.files.is_none() {
            site.follow_folder(dir, config)?;
        }
        if makes_ahead {
            let settings = ahead::RefreshSettings {
                percent: config.refresh_ahead,
                list: config.warm_list(dir),
            };
            *site.ahead.lock() = Some(Ahead::start(&site.core, settings));
        }
        *site.reporter.lock() = Some(Reporter::start(&site.core, config.max_staleness));
        let live = Watcher::start(&site.core, config.max_staleness);
        *site.live.lock() = live
            .inspect_err(|error| {
                let note =
                    format!("there is no thread for live pages, so they do not change: {error}");
                site.core.log(&note);
            })
            .ok();
        Ok(site)
    }

    /// Follows the changes of the folder and of the files that are tables.
    fn follow_folder(self: &Arc<Self>, dir: &Path, config: &Config) -> Result<(), Vec<Problem>> {
        let inbox = Arc::new(Inbox::new(DataSources::new(dir, config)));
        let watch = self.watch_folder(dir, config, &inbox);
        *self.watch.lock() = Some(
            watch
                .map_err(|problem| vec![problem])
                .inspect_err(|_| self.core.database.stop())?,
        );
        self.follow_data(DataSources::new(dir, config), inbox)
            .inspect_err(|_| self.core.database.stop())
            .map_err(|problem| vec![problem])?;
        // What has changed while the watch was set up would otherwise be missed.
        self.reload()
    }

    /// Reads the folder again whenever a file in it changes.
    fn watch_folder(
        self: &Arc<Self>,
        dir: &Path,
        config: &Config,
        inbox: &Arc<Inbox>,
    ) -> Result<Watch, Problem> {
        let weak = Arc::downgrade(self);
        let was_faulty = AtomicBool::new(false);
        let links = config.statics.follow_links;
        Watch::start(dir, links, Arc::clone(inbox), move |_| {
            let Some(site) = weak.upgrade() else { return };
            let problems = site.reload().err().unwrap_or_default();
            let is_faulty = !problems.is_empty();
            let was_faulty = was_faulty.swap(is_faulty, Ordering::Relaxed);
            if is_faulty {
                site.core.log(
                    "the site folder has changed and has faults; the pages stay as they were:",
                );
            } else if was_faulty {
                site.core.log("the faults of the site folder are mended");
            }
            for problem in &problems {
                site.core.log(&problem.to_string());
            }
        })
    }

    /// Brings the tables of files to what the files say, and keeps them so.
    fn follow_data(
        self: &Arc<Self>,
        sources: DataSources,
        inbox: Arc<Inbox>,
    ) -> Result<(), Problem> {
        let core = &self.core;
        let weak = Arc::downgrade(self);
        let zone = self.settings.lock().config.formats.zone;
        let data = DataFiles::start(sources, &core.database, inbox, &core.log, zone, move || {
            // A page under development shows what is wrong, and what is new.
            if let Some(site) = weak.upgrade().filter(|site| site.core.dev.is_some()) {
                // It is shown there and logged by the watch.
                let _ = site.reload();
            }
        })?;
        *self.data.lock() = Some(data);
        Ok(())
    }

    /// A service for one worker.
    #[must_use]
    pub fn service(self: &Arc<Self>) -> SiteService {
        SiteService::new(self.core.clone())
    }

    /// Reads the folder again, and the parts of its configuration that concern files and addresses.
    /// Stored pages go when a page, a query or a template has changed; a change of a static file or
    /// of a rule keeps them.
    ///
    /// # Errors
    /// All faults of the folder. Pages and rules stay as they were; the files are the new ones, if
    /// they could be read. A configuration that cannot be read is reported, and the old one stays
    /// in use.
    pub fn reload(&self) -> Result<(), Vec<Problem>> {
        let read = self.read_folder();
        if let Some(dev) = &self.core.dev {
            let mut problems: Vec<_> = self.settings.lock().fault.clone().into_iter().collect();
            problems.extend(read.as_ref().err().into_iter().flatten().cloned());
            problems.extend(self.data.lock().iter().flat_map(DataFiles::problems));
            dev.changed(problems);
        }
        read
    }

    fn read_pages(&self) -> Result<(), Vec<Problem>> {
        let mut settings = self.settings.lock();
        let core = &self.core;
        let mut config = settings.latest(core);
        // Another database needs a restart, and until then the files for this one.
        config.database.clone_from(&settings.config.database);
        config.statics.follow_links = core.follow_links;
        // The store keeps its bound until a restart, and so does the lifetime of own-write cookies.
        config.max_staleness = settings.config.max_staleness;
        let before = core.current.load_full();
        let (mut after, problems) = read_again(
            &core.dir,
            &mut config,
            &settings.config,
            &core.database,
            (&before, settings.migrations.are_pages_older),
        )?;
        report_unreadable_files(&core.log, &after, Some(&before));
        after.routes = core.routes.of_pages(&after.pages);
        settings.config = config;
        let changed = after.number != before.number;
        let edition = after.edition;
        core.current.store(Arc::new(after));
        core.edition.store(edition, Ordering::Release);
        if changed {
            // The new number in every key already hides the old pages; the epoch makes them the
            // first to be evicted.
            self.core.store.new_epoch("the site folder has changed");
        }
        if problems.is_empty() {
            settings.migrations.are_pages_older = false;
            Ok(())
        } else {
            Err(problems)
        }
    }

    /// Reads the folder, and says which migrations wait for the next start: a fault may be that
    /// one of them is missing in the database. In development they are applied first.
    fn read_folder(&self) -> Result<(), Vec<Problem>> {
        if self.core.dev.is_some() {
            let migrated = self.apply_migrations();
            let problems = [migrated, self.read_pages()].into_iter();
            let problems: Vec<Problem> = problems.filter_map(Result::err).flatten().collect();
            return match problems.is_empty() {
                true => Ok(()),
                false => Err(problems),
            };
        }
        let read = self.read_pages();
        let settings = &mut *self.settings.lock();
        let news = settings.migrations.news(&self.core.dir, &settings.config);
        for problem in &news {
            self.core.log(&problem.to_string());
        }
        read.map_err(|problems| problems.into_iter().chain(news).collect())
    }

    /// Applies the migrations that are new in the folder.
    fn apply_migrations(&self) -> Result<(), Vec<Problem>> {
        let core = &self.core;
        let settings = &mut *self.settings.lock();
        let known = &mut settings.migrations;
        let applied = known.apply(&core.dir, &settings.config, &core.database)?;
        for file in &applied {
            core.log(&format!("{file} is applied"));
        }
        if let Some(data) = self.data.lock().as_ref().filter(|_| !applied.is_empty()) {
            data.migrated();
        }
        Ok(())
    }

    /// Returns the site's database. What is written through it ends the pages that show it.
    #[must_use]
    pub fn database(&self) -> &Database {
        &self.core.database
    }

    pub(crate) fn core(&self) -> &Core {
        &self.core
    }

    /// Ends all pages and results that are kept in memory.
    pub fn purge(&self) {
        self.core
            .store
            .new_epoch("the owner has emptied the memory");
        self.log("the owner has emptied the memory: all pages are made anew");
    }

    /// Tells the owner.
    pub(crate) fn log(&self, message: &str) {
        self.core.log(message);
    }

    /// True if the feed was heard within the bound, so that there can be hits.
    #[must_use]
    pub fn healthy(&self) -> bool {
        self.core.store.healthy(Boottime::now())
    }

    /// Waits until the pages that were hot before the start are made, for at most `timeout`.
    pub fn wait_until_warm(&self, timeout: Duration) {
        if let Some(ahead) = self.ahead.lock().as_ref() {
            ahead.wait_until_warm(timeout);
        }
    }

    /// Writes the list of hot pages, for a process that makes them at its start.
    pub fn write_warm_list(&self) {
        if let Some(ahead) = self.ahead.lock().as_ref() {
            ahead.write_list();
        }
    }

    /// Returns the age of the newest heartbeat of the feed; `None` before the first.
    #[must_use]
    pub fn feed_age(&self) -> Option<Duration> {
        self.core.store.feed(Boottime::now()).age
    }

    /// Returns the counts of the requests.
    #[must_use]
    pub fn stats(&self) -> SiteStats {
        let mut stats = SiteStats {
            store: self.core.store.stats(),
            admission: self.core.admission.stats(),
            live: self.core.live.stats(),
            database: self.core.database.health(),
            feed_age: self.feed_age(),
            ahead_time: self
                .ahead
                .lock()
                .as_ref()
                .map_or(Duration::ZERO, Ahead::worked),
            ..SiteStats::default()
        };
        let generation = self.core.current.load_full();
        for page in generation
            .pages
            .endpoints
            .iter()
            .filter_map(|endpoint| endpoint.page.as_ref())
        {
            let counters = &page.counters;
            let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
            let (hits, misses, kind) = (
                counters.hits(),
                read(&counters.misses),
                read(&counters.kind),
            );
            let fill_nanos = read(&counters.fill_nanos);
            stats.hits += hits;
            stats.misses += misses;
            stats.ahead += read(&counters.ahead);
            stats.fill_time += Duration::from_nanos(fill_nanos);
            let (waits, bypassed) = (read(&counters.waits), read(&counters.bypassed));
            let database_nanos = read(&counters.database_nanos);
            stats.waits += waits;
            stats.bypassed += bypassed;
            stats.database_time += Duration::from_nanos(database_nanos);
            if hits + misses + waits + bypassed > 0 {
                let mean = fill_nanos.checked_div(kind).unwrap_or(0);
                stats.routes.push(RouteStats {
                    route: page.route.clone(),
                    hits,
                    misses,
                    waits,
                    bypassed,
                    made: kind,
                    fill_time: Duration::from_nanos(fill_nanos),
                    database_time: Duration::from_nanos(database_nanos),
                    saved: Duration::from_nanos(mean.saturating_mul(hits)),
                });
            }
        }
        stats
    }

    /// Ends the streams of live pages, whose clients come again after a moment: to another process,
    /// if one has taken the place of this one.
    pub(crate) fn stop_live(&self) {
        let live = self.live.lock().take();
        drop(live);
    }

    /// Stops the watch, the feed and the database; later requests get 503. Blocks until all of them
    /// have stopped.
    pub fn stop(&self) {
        drop(self.watch.lock().take());
        self.stop_data();
        // They read, so before the database.
        self.stop_live();
        drop(self.ahead.lock().take());
        let reporter = self.reporter.lock().take().map(Reporter::ending);
        self.core.database.stop();
        self.core.uploads.flush();
        // It may have waited for the database.
        drop(reporter);
    }
}

impl Site {
    /// Waits for the thread of the files without the lock: a reload on that thread takes it.
    fn stop_data(&self) {
        let data = self.data.lock().take();
        drop(data);
    }
}

impl Drop for Site {
    fn drop(&mut self) {
        self.stop_data();
        self.stop_live();
        drop(self.ahead.lock().take());
        let reporter = self.reporter.lock().take().map(Reporter::ending);
        self.core.database.stop();
        drop(reporter);
    }
}

/// Tells what of the files could not be read: once, and not at every change of something else.
fn report_unreadable_files(log: &Log, generation: &Generation, before: Option<&Generation>) {
    let news = generation
        .statics
        .news(before.map(|before| &*before.statics));
    news.for_each(|note| log.line(&note.to_string()));
}

/// Everything that a site has for its whole life, with a first reading of its folder.
fn core_of(
    dir: &Path,
    config: &Config,
    options: SiteOptions,
    database: Database,
    makes_ahead: bool,
) -> Result<Arc<Core>, Vec<Problem>> {
    let store = Store::new(millpond_store::Config {
        memory: config.memory,
        max_staleness: config.max_staleness,
        ahead: if makes_ahead { ahead::QUEUE } else { 0 },
        ..millpond_store::Config::default()
    });
    let files = options.files;
    let read = read(SiteFolder { dir, files }, config, &database, None);
    let mut generation = read.inspect_err(|_| database.stop())?;
    let dev: Option<Arc<DevState>> = options.dev.then(Arc::default);
    generation.is_dev = dev.is_some();
    let routes = RouteNumbers::default();
    generation.routes = routes.of_pages(&generation.pages);
    let log = Arc::new(Log::new(options.log));
    let limits = UploadLimits {
        text: config.limits.body,
        drain: config.limits.progress_timeout,
        ..config.uploads.clone()
    };
    let uploads = Uploads::new(dir, limits, log.clone());
    report_unreadable_files(&log, &generation, None);
    let readers = options.readers.unwrap_or(config.pool);
    let cores = || thread::available_parallelism().map_or(1, NonZero::get);
    let workers = match options.workers {
        0 => cores(),
        workers => workers,
    };
    let writers = match config.database {
        DatabaseUrl::Sqlite(_) => 1,
        DatabaseUrl::Postgres(_) => readers,
    };
    let capacity = Capacity {
        readers,
        writers,
        workers,
    };
    Ok(Arc::new(Core {
        dir: dir.to_owned(),
        admission: Admission::new(capacity, config.deadline),
        live: Arc::new(Board::new(config.live, options.cache && config.cache)),
        exempt: config.limits.client.exempt.clone(),
        database,
        store,
        compressor: Compressor::start(),
        passwords: Passwords::default(),
        attempts: Attempts::default(),
        has_told_of_http: AtomicBool::new(false),
        cache: options.cache && config.cache,
        is_timed: options.is_timed,
        stale_if_error: config.stale_if_error,
        statement_timeout: config.statement_timeout,
        log,
        uploads,
        routes,
        outcomes: Outcomes::default(),
        follow_links: config.statics.follow_links,
        current: ArcSwap::from_pointee(generation),
        edition: Arc::default(),
        dev,
    }))
}
