//! Sites in temporary folders, asked in process; sockets are tested with the binary.

#![allow(
    clippy::disallowed_methods,
    reason = "tests read the clock to give up waiting"
)]

mod accounts;
mod addressbook;
mod addresses;
mod ahead;
mod ahead_postgres;
mod api;
mod articles;
mod both;
mod bytes;
mod check_documents;
mod check_faults;
mod check_notes;
mod data;
mod data_again;
mod data_batches;
mod data_check;
mod data_exact;
mod data_nodes;
mod data_renamed;
mod data_taken;
mod data_told;
mod downloads;
mod error_pages;
mod errors;
mod explained;
mod folder;
mod folder_params;
mod form_errors;
mod form_faults;
mod form_sentences;
mod form_tags;
mod form_values;
mod forms;
mod fuzz;
mod generated;
mod guards;
mod languages;
mod languages_guide;
mod lists;
mod max_age;
mod nodes;
mod nodes_triggers;
mod open_addresses;
mod outages;
mod own_pages;
mod page_address;
mod page_end;
mod page_redirects;
mod pages;
mod parameters;
mod partials;
mod policies;
mod postgres;
mod pressure;
mod privacy;
mod query_guards;
mod recipes;
mod replicas;
mod roles;
mod rules;
mod sessions;
mod sqlite_triggers;
mod statics;
mod support;
mod templates;
mod texts;

mod tenants;
mod tokens;
mod undeclared;
mod upload_faults;
mod uploads;
mod useless;
mod values;
