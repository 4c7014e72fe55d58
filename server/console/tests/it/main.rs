//! The console over sockets, and its history.

mod alerts;
mod browser;
mod history;
mod pages;
mod report;
mod support;
mod volume;
