//! Certificates as clients and authorities see them.

mod acme;
mod acme_node;
mod acme_nodes;
mod files;
mod handshakes;
mod support;
