//! Several sites at one address, selected by the host of each request (RFC 9110 section 7.2).

use std::{
    collections::HashMap,
    path::{Path, PathBuf},
    sync::{Arc, OnceLock},
    time::Duration,
};

use base_clock::Boottime;
use millpond_http::{BodyHandling, Reply, Request, Response, Service};

use crate::{
    ExplainedVisitor, Site, SiteOptions, SiteService, SiteStats,
    dev::{DevDoor, DevState, Waiting},
    labels::{RouteName, site_of},
};
use millpond_site_format::{
    Config, Problem,
    config::{Host, HostName, MAX_NAME},
    problem::below,
};

/// The sites of one server: one site, or several that the host of the request selects.
pub struct Sites {
    /// Empty while they cannot be opened, which is so only with [`SiteOptions::dev`].
    sites: Arc<OnceLock<Vec<NamedSite>>>,
    /// `None` for a single site, which responds to every name.
    names: Option<Arc<SiteNames>>,
    /// Sites that could not be opened at the start.
    waiting: Option<Waiting>,
    /// Present with [`SiteOptions::dev`].
    door: Option<DevDoor>,
}

struct NamedSite {
    site: Arc<Site>,
    /// Its folder, from that of the server; empty where it is the same.
    shown: PathBuf,
}

impl Sites {
    /// Opens the site in `dir`, or all sites that its configuration names. With
    /// [`SiteOptions::dev`] sites that cannot be opened are no error: it is tried again when a file
    /// changes.
    ///
    /// # Errors
    /// All faults of the first site that cannot be opened.
    pub fn open(dir: &Path, config: &Config, options: SiteOptions) -> Result<Self, Vec<Problem>> {
        let door = options.dev.then(|| DevDoor::new(dir, options.log));
        let mut opened = Self {
            sites: Arc::default(),
            names: config
                .has_hosts()
                .then(|| SiteNames::new(&config.hosts).into()),
            waiting: None,
            door: door.transpose().map_err(|problem| vec![problem])?,
        };
        match open_all(dir, config, options) {
            Ok(sites) => drop(opened.sites.set(sites)),
            Err(problems) if options.dev => {
                let waiting = opened.wait(dir, config, options, problems);
                opened.waiting = Some(waiting.map_err(|problem| vec![problem])?);
            }
            Err(problems) => return Err(problems),
        }
        Ok(opened)
    }

    /// Opens the sites when their files have changed.
    fn wait(
        &self,
        dir: &Path,
        config: &Config,
        options: SiteOptions,
        problems: Vec<Problem>,
    ) -> Result<Waiting, Problem> {
        let mut told = Vec::new();
        let mut tell = move |problems: &[Problem]| {
            if *problems != told[..] {
                (options.log)(
                    "the site cannot be opened; the browser shows why, and a change of a file tries again:",
                );
                problems
                    .iter()
                    .for_each(|problem| (options.log)(&problem.to_string()));
                told = problems.to_vec();
            }
        };
        tell(&problems);
        let mut folders = vec![dir.to_owned()];
        folders.extend(config.hosts.iter().map(|host| host.site.clone()));
        let (from, config, sites) = (dir.to_owned(), config.clone(), self.sites.clone());
        let options = SiteOptions {
            start_timeout: Duration::ZERO,
            ..options
        };
        Waiting::start(dir, &folders, problems, move || {
            let opened = open_all(&from, &config, options).inspect_err(|all| tell(all))?;
            (options.log)("the site is open");
            let _ = sites.set(opened);
            Ok(())
        })
    }

    fn all(&self) -> &[NamedSite] {
        self.sites.get().map_or(&[], Vec::as_slice)
    }

    /// True unless the sites could not be opened yet.
    #[must_use]
    pub fn is_open(&self) -> bool {
        self.sites.get().is_some()
    }

    /// Returns a reason why no visitors should be sent here: sites that are not open, or a feed
    /// whose newest heartbeat is older than `max_feed_age`, unless that is zero.
    #[must_use]
    pub fn unready(&self, max_feed_age: Duration) -> Option<String> {
        if !self.is_open() {
            return Some("the site cannot be opened yet".to_owned());
        }
        let ages = self.all().iter().map(|named| named.site.feed_age());
        let mut old = ages.filter(|age| age.is_none_or(|age| age > max_feed_age));
        match old.next().filter(|_| !max_feed_age.is_zero())? {
            Some(age) => Some(format!("the feed was heard {} ms ago", age.as_millis())),
            None => Some("the feed was not heard yet".to_owned()),
        }
    }

    /// Waits until all sites have made the pages that were hot before the start, for at most
    /// `timeout`.
    pub fn wait_until_warm(&self, timeout: Duration) {
        let until = Boottime::now().plus(timeout);
        for named in self.all() {
            named.site.wait_until_warm(until.since(Boottime::now()));
        }
    }

    /// Writes the lists of hot pages, for a process that makes them at its start.
    pub fn write_warm_lists(&self) {
        self.all()
            .iter()
            .for_each(|named| named.site.write_warm_list());
    }

    /// Returns the path, with its secret, that makes a browser the developer's. It is there with
    /// [`SiteOptions::dev`], where a [`DevService`](crate::DevService) is to serve the sites.
    #[must_use]
    pub fn dev_path(&self) -> Option<String> {
        self.door().map(DevDoor::path)
    }

    pub(crate) fn door(&self) -> Option<&DevDoor> {
        self.door.as_ref()
    }

    pub(crate) fn waiting(&self) -> Option<&Waiting> {
        self.waiting.as_ref()
    }

    /// Ends the streams of live pages, and answers the browsers that wait for a changed file, so
    /// that a server that stops need not wait for them.
    pub fn stop_waits(&self) {
        self.all().iter().for_each(|named| named.site.stop_live());
        let states = self
            .all()
            .iter()
            .filter_map(|named| named.site.core().dev.as_ref());
        states.for_each(|state| state.stop());
        if let Some(waiting) = &self.waiting {
            waiting.stop();
        }
    }

    /// Ends all pages and results that are kept in memory.
    pub fn purge(&self) {
        self.all().iter().for_each(|named| named.site.purge());
    }

    /// A service for one worker.
    #[must_use]
    pub fn service(&self) -> SitesService {
        let mut services = self.all().iter().map(|named| named.site.service());
        match (&self.names, services.next()) {
            (None, Some(only)) => SitesService(SitesServiceKind::One(only)),
            (names, first) => SitesService(SitesServiceKind::Many {
                names: names.clone().unwrap_or_default(),
                services: first.into_iter().chain(services).collect(),
            }),
        }
    }

    /// Reads all folders again, each for itself.
    ///
    /// # Errors
    /// All problems of all sites. A site with a problem keeps its state, except for its files.
    pub fn reload(&self) -> Result<(), Vec<Problem>> {
        let problems = self.all().iter().filter_map(|named| {
            let problems = named.site.reload().err()?;
            Some(below(&named.shown, problems))
        });
        let problems: Vec<_> = problems.flatten().collect();
        if problems.is_empty() {
            Ok(())
        } else {
            Err(problems)
        }
    }

    /// The request counters of each site.
    #[must_use]
    pub fn stats(&self) -> Vec<SiteStats> {
        self.all().iter().map(|named| named.site.stats()).collect()
    }

    /// Returns the meaning of the [label](millpond_http::Response::label) of a response.
    #[must_use]
    pub fn route_name(&self, label: u32) -> RouteName {
        let Some(named) = self.all().get(site_of(label)).filter(|_| label != 0) else {
            return RouteName::of(label);
        };
        let site = named.shown.to_string_lossy();
        RouteName {
            site: (!site.is_empty()).then(|| site.into()),
            ..named.site.core().routes.name(label)
        }
    }

    /// How a request for `target` at `host` is answered, and why; none if no site has that host.
    ///
    /// # Errors
    /// A sentence, if `visitor` does not describe a visitor.
    pub fn explain(
        &self,
        host: Option<&str>,
        target: &str,
        visitor: ExplainedVisitor<'_>,
    ) -> Result<Option<serde_json::Value>, String> {
        self.named(host)
            .map(|named| named.site.explain(target, visitor))
            .transpose()
    }

    /// Ends what is in memory of the page for `target` at `host`, and returns how many pages and
    /// results ended; `None` if no page is there.
    #[must_use]
    pub fn purge_address(&self, host: Option<&str>, target: &str) -> Option<usize> {
        self.named(host)?.site.purge_address(target)
    }

    /// Returns the site that has a host.
    fn named(&self, host: Option<&str>) -> Option<&NamedSite> {
        let at = match &self.names {
            Some(names) => names.find(host)?,
            None => 0,
        };
        self.all().get(at)
    }

    /// Stops all sites; blocks until all is done.
    pub fn stop(&self) {
        stop(self.all());
    }
}

fn stop(sites: &[NamedSite]) {
    sites.iter().for_each(|named| named.site.stop());
}

/// Opens the site in `dir`, or all that its configuration names.
fn open_all(
    dir: &Path,
    config: &Config,
    options: SiteOptions,
) -> Result<Vec<NamedSite>, Vec<Problem>> {
    if !config.has_hosts() {
        let site = Site::open(dir, config, options)?;
        let shown = PathBuf::new();
        return Ok(vec![NamedSite { site, shown }]);
    }
    let mut sites = Vec::new();
    for host in &config.hosts {
        let opened = host.read()
            .map_err(|problem| vec![problem])
            .and_then(|own| {
                let unused = own.of_the_server();
                let own = Config {
                    limits: config.limits.clone(),
                    uploads: config.uploads.clone(),
                    ..own
                };
                let site = Site::open(&host.site, &own, options)?;
                if !unused.is_empty() {
                    site.log(&format!(
                        "{}: {} do not count here; the folder that is served has them for all its sites",
                        host.shown.join(millpond_site_format::problem::SETTINGS).display(),
                        unused.join(", ")
                    ));
                }
                Ok(site)
            });
        match opened {
            Ok(site) => {
                site.core().routes.set_site(sites.len());
                sites.push(NamedSite {
                    site,
                    shown: host.shown.clone(),
                });
            }
            Err(problems) => {
                stop(&sites);
                return Err(below(&host.shown, problems));
            }
        }
    }
    Ok(sites)
}

impl From<Arc<Site>> for Sites {
    /// One site that answers to every name.
    fn from(site: Arc<Site>) -> Self {
        let shown = PathBuf::new();
        Self {
            door: None,
            sites: Arc::new(OnceLock::from(vec![NamedSite { site, shown }])),
            names: None,
            waiting: None,
        }
    }
}

/// The names of several sites, each with the place of its site among them.
#[derive(Debug, Default)]
struct SiteNames {
    exact: Map,
    /// By what follows the asterisk and its dot.
    below: Map,
    any: Option<usize>,
}

type Map = HashMap<String, usize, foldhash::fast::RandomState>;

impl SiteNames {
    fn new(hosts: &[Host]) -> Self {
        let mut names = Self::default();
        for (site, host) in hosts.iter().enumerate() {
            for name in &host.names {
                match name {
                    HostName::Exact(name) => drop(names.exact.insert(name.clone(), site)),
                    HostName::Below(name) => drop(names.below.insert(name.clone(), site)),
                    HostName::Any => names.any = Some(site),
                }
            }
        }
        names
    }

    /// The site for the host of a request, as the client wrote it. Allocates nothing.
    fn find(&self, host: Option<&str>) -> Option<usize> {
        host.and_then(|host| self.named(host)).or(self.any)
    }

    fn named(&self, host: &str) -> Option<usize> {
        let name = without_port(host);
        let mut buffer = [0; MAX_NAME];
        let lower = buffer.get_mut(..name.len())?;
        lower.copy_from_slice(name.as_bytes());
        lower.make_ascii_lowercase();
        let name = std::str::from_utf8(lower).ok()?;
        if let Some(&site) = self.exact.get(name) {
            return Some(site);
        }
        let mut rest = name;
        while let Some((label, above)) = rest.split_once('.') {
            // `.example.org` and `*.example.org` are no names below `example.org`.
            if label.is_empty() || label.contains('*') {
                return None;
            }
            if let Some(&site) = self.below.get(above) {
                return Some(site);
            }
            rest = above;
        }
        None
    }
}

/// The name in `name:80`, `[::1]:80` or `name.`.
pub(crate) fn without_port(host: &str) -> &str {
    if host.starts_with('[') {
        return host.find(']').map_or(host, |end| &host[..=end]);
    }
    let name = host.split_once(':').map_or(host, |(name, _)| name);
    // The dot of the root (RFC 3986 section 3.2.2): the same host.
    name.strip_suffix('.').unwrap_or(name)
}

/// Serves the sites on one worker.
pub struct SitesService(SitesServiceKind);

enum SitesServiceKind {
    One(SiteService),
    Many {
        names: Arc<SiteNames>,
        services: Vec<SiteService>,
    },
}

impl Service for SitesService {
    fn body_begins(&self, request: &Request<'_>) -> BodyHandling {
        match self.site_for(request) {
            Some(service) => service.body_begins(request),
            None => BodyHandling::Whole,
        }
    }

    fn wants_done(&self) -> bool {
        false
    }

    fn call(&self, request: &Request<'_>) -> Reply {
        match self.site_for(request) {
            Some(service) => service.call(request),
            None => no_such_host(),
        }
    }
}

impl SitesService {
    /// The folder and the state of the site of a request, if it is under development.
    pub(crate) fn dev(&self, request: &Request<'_>) -> Option<(&Path, &Arc<DevState>)> {
        self.site_for(request)?.dev()
    }

    fn site_for(&self, request: &Request<'_>) -> Option<&SiteService> {
        match &self.0 {
            SitesServiceKind::One(service) => Some(service),
            SitesServiceKind::Many { names, services } => services.get(names.find(request.host())?),
        }
    }
}

/// RFC 9110 section 15.5.20.
fn no_such_host() -> Reply {
    Response::text(421, "This server has no site of that name.\n").into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(any: bool) -> SiteNames {
        let host = |names: Vec<HostName>| Host {
            names,
            site: PathBuf::new(),
            shown: PathBuf::new(),
            certificate: None,
        };
        let exact = |name: &str| HostName::Exact(name.to_owned());
        let below = |name: &str| HostName::Below(name.to_owned());
        let mut hosts = vec![
            host(vec![exact("example.org"), below("example.org")]),
            host(vec![exact("blog.example.org"), below("a.example.org")]),
            host(vec![exact("[::1]"), exact("127.0.0.1")]),
        ];
        if any {
            hosts.push(host(vec![HostName::Any]));
        }
        SiteNames::new(&hosts)
    }

    #[test]
    fn the_narrowest_name_counts() {
        let names = names(false);
        for (host, site) in [
            ("example.org", Some(0)),
            ("EXAMPLE.org:8080", Some(0)),
            ("example.org.", Some(0)),
            ("example.org.:80", Some(0)),
            ("www.example.org", Some(0)),
            ("x.blog.example.org", Some(0)),
            ("Blog.Example.Org", Some(1)),
            ("a.example.org", Some(0)),
            ("b.a.example.org", Some(1)),
            ("c.b.a.example.org", Some(1)),
            ("[::1]:80", Some(2)),
            ("[::1]", Some(2)),
            ("127.0.0.1:80", Some(2)),
            ("notexample.org", None),
            (".example.org", None),
            ("*.example.org", None),
            ("a..example.org", None),
            ("a.*.example.org", None),
            ("org", None),
            ("", None),
            (".", None),
        ] {
            assert_eq!(names.find(Some(host)), site, "{host}");
        }
        assert_eq!(names.find(None), None);
        assert_eq!(names.find(Some(&"a.".repeat(4_000))), None);
    }

    #[test]
    fn a_site_for_every_other_name() {
        let names = names(true);
        assert_eq!(names.find(Some("example.org")), Some(0));
        for host in [Some("other.example"), Some(""), None] {
            assert_eq!(names.find(host), Some(3), "{host:?}");
        }
    }
}
