//! A site folder to routes, pages, forms and static files: requests in, responses out.
//!
//! This crate knows the folder's format (`docs/reference/site.md`), templates, and how a page is
//! made of queries. It connects the store, the database and HTTP. It must not know sockets, signals
//! or the command line.
//!
//! - `folder`, `script`, `route`, `template`, `compile`: the folder's texts to pages, with every
//!   fault named;
//! - `dialect`: the version of a file for the database in use;
//! - `filters`, `locale`: what templates write values with; `page_type`: what a page is sent as;
//! - `page_bytes`: pages that answer with the bytes of a column;
//! - `service`: the hit; `answer`, `gather`: the fill (the rules of the store's flights); `submit`:
//!   the form;
//! - `ahead`: hot pages that are made again before a request, after a change and after a restart;
//! - `statics`, `watch`, `compress`: files, the watch over their changes, and codings in the
//!   background;
//! - `admission`: who is given an answer at all;
//! - `rules`, `addresses`, `listing`: redirects, rewrites and fields; short addresses and lists of
//!   files;
//! - `session`, `sign`: the identity of a visitor, and the forms that sign in and out;
//! - `uploads`: files that visitors send; `data`: files as tables;
//! - `report`, `log`: lines for the owner about the state of the database;
//! - `hosts`: several sites behind one address;
//! - `dev`: errors in the browser, and pages that reload, while a site is made;
//! - `config`: `millpond.toml`.

mod ahead;
mod answer;
mod check;
mod core;
mod data;
mod dev;
mod explain;
mod form;
#[cfg(test)]
mod fuzz;
mod hosts;
mod log;
mod opening;
mod service;
mod session;
mod site;
mod site_options;
mod statics;
mod uploads;
mod watch;

pub use check::{
    CheckReport, QueryReport, ReachReport, check, missing_tables, repair, write_migrations,
};
pub use data::Pin;
pub use dev::{DEV_ENTRY, DevService};
pub use explain::ExplainedVisitor;
pub use hosts::{Sites, SitesService};
pub use millpond_site_format::{
    Config, DatabaseUrl, PostgresUrl, Problem, StaticOptions, TlsSettings, listen_address,
};
pub use service::SiteService;
pub use site::{RouteStats, Site, SiteStats};
pub use site_options::SiteOptions;
