//! Access logs of web servers: lines in the common, combined and JSON formats, plain or compressed.
//!
//! It knows how servers write their logs, and counts frequent keys in bounded memory. It must not
//! know which program reads a log, or what is counted. A line allocates nothing, but for a
//! JSON line.

mod entry;
mod frequent;
mod input;
mod json;
mod stamp;

pub use entry::{LogEntry, LogParser};
pub use frequent::{Frequent, KeyCount};
pub use input::{LogBlock, LogInput};
pub use stamp::seconds_of;
