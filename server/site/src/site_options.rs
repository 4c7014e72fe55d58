//! How a site is opened.

use std::time::Duration;

use millpond_site_format::folder::EmbeddedFiles;

/// How a site is opened, in addition to its configuration.
#[derive(Clone, Copy, Debug)]
pub struct SiteOptions {
    /// True if pages are stored; `false` is `--no-cache`.
    pub cache: bool,
    /// Connections that read, instead of the configuration's.
    pub readers: Option<usize>,
    /// Threads that serve, which share the connections to a PostgreSQL server; 0 is one for each
    /// core.
    pub workers: usize,
    /// How long to wait for a database server that is away.
    pub start_timeout: Duration,
    /// True for development: errors are shown in the browser, which reloads when a file changes.
    pub dev: bool,
    /// True if responses tell in `Server-Timing` how they were made. Those of hits tell it by
    /// [`TimedService`](crate::TimedService).
    pub is_timed: bool,
    /// Texts of the site in the program, instead of those in the folder. The folder is not looked
    /// at then, and need not be there.
    pub files: Option<EmbeddedFiles>,
    /// Function that writes lines for the owner; by default to standard error.
    pub log: fn(&str),
}

impl Default for SiteOptions {
    fn default() -> Self {
        Self {
            cache: true,
            readers: None,
            workers: 0,
            start_timeout: Duration::ZERO,
            dev: false,
            is_timed: false,
            files: None,
            log: |line| eprintln!("millpond: {line}"),
        }
    }
}
