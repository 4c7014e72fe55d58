//! The budgets of a worker for requests that have not arrived whole, and where a body goes.
//!
//! A small body stays in memory, and is never refused once it is complete. A body of up to a
//! megabyte stays in memory as long as less than half of the memory is taken. A longer body goes to
//! a file without a name, and is mapped when it is complete. So a body in flight takes at most some
//! kilobytes of memory beyond these, and many large bodies take disk.

use base_clock::Boottime;
use bytes::Bytes;

use crate::body_file::MappedBody;
use crate::budget::{Budget, EndFirst};
use crate::event::{StreamToken, Token};
use crate::limits::{
    BODY_DISK, BODY_FILES, BODY_IN_MEMORY, CONNECTIONS_PER_BODY_FILE, Limits, REQUEST_MEMORY,
    SMALL_BODY,
};

/// Budget that is full.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Full {
    Memory,
    Disk,
}

/// See the [module](self).
#[derive(Debug)]
pub(crate) struct RequestBudgets {
    /// Heads, bodies and buffers in memory.
    pub(crate) memory: Budget,
    /// Bodies in files, complete ones included until they are dropped.
    pub(crate) disk: Budget,
    /// The most files at once.
    files: usize,
    longest_body: usize,
}

impl RequestBudgets {
    /// The budgets of one worker.
    pub(crate) fn new(limits: &Limits) -> Self {
        let files = limits.connections / CONNECTIONS_PER_BODY_FILE;
        Self {
            memory: Budget::new(REQUEST_MEMORY, EndFirst::Heaviest),
            disk: Budget::new(BODY_DISK.max(limits.body), EndFirst::Slowest),
            files: files.clamp(1, BODY_FILES),
            longest_body: limits.body,
        }
    }

    /// True if a body with `len` bytes in memory goes on in a file.
    pub(crate) fn wants_file(&self, len: usize) -> bool {
        len > SMALL_BODY && (len > BODY_IN_MEMORY || self.memory.is_half_full())
    }

    /// True if as many bodies are in files as may be.
    pub(crate) fn are_files_taken(&self) -> bool {
        self.disk.holders() >= self.files
    }

    /// No file can be had, so bodies stay in memory, of which one body may then take as much as a
    /// body may be long.
    pub(crate) fn do_without_files(&mut self) {
        self.memory
            .raise_to(self.longest_body.saturating_add(BODY_IN_MEMORY));
    }

    /// Returns the holders that must end so that a part of a budget is free again.
    pub(crate) fn victims(&mut self, full: Full, now: Boottime) -> Vec<StreamToken> {
        match full {
            Full::Memory => self.memory.victims(now),
            Full::Disk => self.disk.victims(now),
        }
    }

    /// Counts nothing for `holder` any more.
    pub(crate) fn release(&mut self, holder: StreamToken) {
        self.memory.release(holder);
        self.disk.release(holder);
    }

    /// Counts nothing for a connection any more. Looks at all holders.
    pub(crate) fn release_connection(&mut self, connection: Token) {
        self.memory.release_connection(connection);
        self.disk.release_connection(connection);
    }
}

#[derive(Debug)]
pub(crate) enum CompleteBody {
    Memory(Bytes),
    Mapped(MappedBody),
}

impl CompleteBody {
    /// Another reference to the bytes.
    pub(crate) fn bytes(&self) -> Bytes {
        match self {
            Self::Memory(bytes) => bytes.clone(),
            Self::Mapped(body) => body.bytes(),
        }
    }

    /// True if no other reference to the bytes is left.
    pub(crate) fn is_unused(&self) -> bool {
        match self {
            Self::Memory(bytes) => bytes.is_unique(),
            Self::Mapped(body) => body.is_unused(),
        }
    }
}
