//! Certificates as clients and authorities see them.

mod acme;
mod acme_node;
mod acme_nodes;
mod acme_storage;
mod files;
mod handshakes;
mod memory_storage;
mod support;
