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

mod access;
mod addresses;
mod admission;
mod ahead;
mod answer;
mod cached;
mod check;
mod compile;
mod config;
mod core;
mod csv_rows;
mod data;
mod dev;
mod dialect;
mod duration;
mod error_answer;
mod error_pages;
mod explain;
mod file_name;
mod file_type;
mod filters;
mod flash;
mod flash_kind;
mod folder;
mod form;
mod form_faults;
mod form_tags;
mod form_values;
#[cfg(test)]
mod fuzz;
mod gather;
mod guard;
mod hosts;
mod invalid;
mod json_body;
mod known_migrations;
mod languages;
mod listing;
mod locale;
mod log;
mod markup;
mod methods;
mod moment;
mod object;
mod open_addresses;
mod opening;
mod own_write;
mod page;
mod page_bytes;
mod page_end;
mod page_params;
mod page_path;
mod page_redirect;
mod page_type;
mod param_value;
mod parameter_names;
mod params;
mod problem;
mod problem_details;
mod reading;
mod redirect_target;
mod refused_form;
mod refused_form_page;
mod refused_form_redirect;
mod render;
mod report;
mod route;
mod rules;
mod script;
mod secret_names;
mod see_other;
mod service;
mod session;
mod sign;
mod site;
mod site_options;
mod slug;
mod statics;
mod submit;
mod suggest;
mod template;
mod text_format;
mod time_zone;
mod today;
mod upload_refusal;
mod uploads;
mod validity;
mod value_rules;
mod visitor;
mod watch;
mod write_answer;
mod write_body;
mod write_method;

pub use crate::config::StaticOptions;
pub use crate::site_options::SiteOptions;
pub use check::{
    CheckReport, QueryReport, ReachReport, check, missing_tables, repair, write_migrations,
};
pub use config::{Config, DatabaseUrl, PostgresUrl, TlsSettings, listen_address};
pub use data::Pin;
pub use dev::{DEV_ENTRY, DevService};
pub use explain::ExplainedVisitor;
pub use hosts::{Sites, SitesService};
pub use problem::Problem;
pub use service::SiteService;
pub use site::{RouteStats, Site, SiteStats};
