//! `[live]`: how those who look at a page are told of its changes.

use std::time::Duration;

/// The settings of live pages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LiveSettings {
    /// True if every page with a template is live, as if it had a `-- live` line.
    pub everywhere: bool,
    /// The least time between two changes that are told of one page.
    pub interval: Duration,
    /// The most that look at once, in the whole process.
    pub streams: usize,
}
