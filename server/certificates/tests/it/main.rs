//! Certificates as clients and authorities see them.

mod acme;
mod files;
mod handshakes;
mod support;
