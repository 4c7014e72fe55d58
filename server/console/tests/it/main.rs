//! The console over sockets, and its history.

mod history;
mod pages;
mod support;
mod volume;
