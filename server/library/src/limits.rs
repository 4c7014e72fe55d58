//! What a program may hold of the server, and a client of a program.

use std::time::Duration;

/// Threads on which handlers may block, unless the program says another number.
pub(crate) const BLOCKING_THREADS: usize = 32;
/// Requests that may wait for such a thread, unless the program says another number.
pub(crate) const BLOCKING_QUEUE: usize = 256;
/// How long a page may wait until it is made.
pub(crate) const PAGE_DEADLINE: Duration = Duration::from_secs(1);
/// Bytes of a body that are there before a handler that reads it begins, unless the body is
/// shorter.
pub(crate) const BODY_BEGIN: usize = 16 << 10;
/// Bytes that a client may be ahead of such a handler.
pub(crate) const BODY_AHEAD: usize = 256 << 10;
/// Bytes that a function which writes a response may be ahead of its client.
pub(crate) const WRITER_AHEAD: usize = 64 << 10;
/// Times that a page is made while the rows change that it has read.
pub(crate) const PAGE_ATTEMPTS: usize = 4;
/// Reads of a page, one after the other; each repeats those before it.
pub(crate) const PAGE_READS: usize = 16;
/// Things of one kind on which a page may depend one by one. A page with more depends on the kind.
pub(crate) const PAGE_IDS: usize = 1024;
