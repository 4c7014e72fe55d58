//! Sites in temporary folders, asked in process; sockets are tested with the binary.

mod addresses;
mod articles;
mod errors;
mod explained;
mod folder;
mod forms;
mod fuzz;
mod pages;
mod postgres;
mod privacy;
mod rules;
mod sessions;
mod statics;
mod support;
mod tenants;
