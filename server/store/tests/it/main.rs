//! The store from outside: its promise against a plain model, single flight on real threads, its
//! memory by an allocator's count.

mod ahead;
mod counting;
mod explain;
mod flights;
mod memory;
mod model;
mod promise;
mod support;
