//! Requests to a site folder, answered: pages, forms and files.
//!
//! This crate runs what `site-compile` has made of the folder. It connects the store, by `pages`,
//! the database and HTTP. It must not know sockets, signals or the command line.
//!
//! - `core`: what all workers share, a reading of the folder, and the answers that are errors;
//! - `service`: a request to its answer, the hit; `hosts`: several sites behind one address;
//!   `timed`: what hits say of themselves where that is wanted;
//! - `answer`: the fill of a page (the rules of the store's flights); `ahead`: hot pages that are
//!   made again before a request, after a change and after a restart;
//! - `live`: those who look at a page are told when it changes;
//! - `form`: writes, and the way back of one that is refused; `uploads`: files that visitors send;
//! - `session`: the identity of a visitor, and passwords;
//! - `statics`, `watch`: files, and the watch over their changes; `data`: files as tables;
//! - `opening`: the start and each reading again; `check`, `explain`: what these commands find;
//!   `backup`: a copy of the folder and its database;
//! - `labels`: what requests are counted by; `log`: lines for the owner; `dev`: errors in the
//!   browser, and pages that reload.

mod ahead;
mod answer;
mod backup;
mod check;
mod core;
mod data;
mod dev;
mod explain;
mod form;
#[cfg(test)]
mod fuzz;
mod hosts;
mod inotify;
mod labels;
mod live;
mod log;
mod opening;
mod purge;
mod service;
mod session;
mod site;
mod site_options;
mod statics;
mod timed;
mod uploads;
mod watch;

pub use backup::{BackupReport, back_up};
pub use check::{
    CheckReport, QueryReport, ReachReport, check, missing_tables, repair, write_migrations,
};
pub use data::FilePin;
pub use dev::{DEV_ENTRY, DevService};
pub use explain::ExplainedVisitor;
pub use form::is_from_own_page;
pub use hosts::{Sites, SitesService};
pub use labels::RouteName;
pub use live::board::LiveStats;
pub use millpond_site_format::config::{AlertRule, DAMAGED};
pub use millpond_site_format::folder::EmbeddedFiles;
pub use millpond_site_format::{
    Config, DatabaseUrl, PostgresUrl, Problem, StaticOptions, TlsSettings, ip_address,
    listen_address,
};
pub use service::SiteService;
pub use site::{RouteStats, Site, SiteStats};
pub use site_options::SiteOptions;
pub use timed::TimedService;
