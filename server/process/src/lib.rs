//! A serving process: its sockets, workers, signals, rights, successor and end, and the owner's
//! listener.
//!
//! This crate runs any [`Service`](millpond_http::Service). It must not know what one answers: a
//! site and a program use it alike. It writes nothing to the standard streams; what happens is
//! given to its user.

mod admin;
pub mod descriptors;
mod figures;
mod inherited;
mod metrics;
mod notify;
mod otlp;
mod own_figures;
pub mod privileges;
mod process_figures;
mod request_tables;
pub mod sandbox;
mod signals;
mod successor;
mod workers;

pub use admin::{Admin, json, only_get};
pub use figures::{Figure, FigureValue, Figures, RouteLabels};
pub use inherited::Inherited;
pub use notify::Notifier;
pub use otlp::otlp;
pub use process_figures::ProcessFigures;
pub use signals::{Signal, SignalListener};
pub use successor::Successor;
pub use workers::{WorkerEnd, Workers, worker_count};
