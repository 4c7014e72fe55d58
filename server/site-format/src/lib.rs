//! The texts of a site folder, as what they say: settings, scripts, rules, and the values that a
//! request may give.
//!
//! This crate knows the format of the folder (`docs/reference/site/`), without its templates. It
//! opens no database and answers no request. Each fault has its place and a remedy ([`Problem`]).
//!
//! - `folder`, `dialect`: the files, and the version of a file for the database in use;
//! - `config`: `millpond.toml`; `rules`: its redirects, rewrites, fields and guards;
//! - `script`: the lines of `.sql` files; `access`: those that say who may enter;
//! - `route`: addresses of pages; `write_method`: methods with files of their own;
//! - `params`, `param_value`, `value_rules`, `text_format`, `decimal`: what a request gives, typed;
//! - `locale`, `time_zone`, `today`: how values are written, and when they are.

// Only the site uses this crate: docs stand where a name does not say it, as within one crate.
#![allow(missing_docs)]

pub mod access;
pub mod config;
pub mod decimal;
pub mod dialect;
pub mod duration;
pub mod file_name;
pub mod file_type;
pub mod folder;
pub mod locale;
pub mod param_value;
pub mod parameter_names;
pub mod params;
pub mod problem;
pub mod route;
pub mod rules;
pub mod script;
pub mod secret_names;
pub mod slug;
pub mod suggest;
pub mod text_format;
pub mod time_zone;
pub mod today;
pub mod value_rules;
pub mod write_method;

pub use config::{
    Config, DatabaseUrl, PostgresUrl, StaticOptions, TlsSettings, ip_address, listen_address,
};
pub use problem::Problem;
