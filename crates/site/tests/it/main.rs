//! Sites in temporary folders, asked in process; sockets are tested with the binary.

mod addresses;
mod errors;
mod folder;
mod forms;
mod fuzz;
mod pages;
mod postgres;
mod privacy;
mod rules;
mod statics;
mod support;
