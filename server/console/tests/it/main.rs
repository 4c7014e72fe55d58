//! The console over sockets, and its history.

mod browser;
mod history;
mod pages;
mod report;
mod support;
mod volume;
