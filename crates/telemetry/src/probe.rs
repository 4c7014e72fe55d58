//! Probes: what a machine and its services say about themselves while they are measured.

pub mod postgres;
