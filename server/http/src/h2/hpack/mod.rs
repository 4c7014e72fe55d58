//! HPACK: the compression of header lists (RFC 7541).
//!
//! The decoder keeps the dynamic table that the client fills. The encoder uses the static table
//! and literals that are never put into a table, so an encoded head does not depend on the
//! connection, and can be kept with its response.

mod decoder;
mod dynamic_table;
pub(crate) mod encoder;
mod huffman;
pub(crate) mod huffman_codes;
mod integer;
pub(crate) mod static_table;
#[cfg(test)]
mod tests;

use decoder::CompressionError;
pub(crate) use decoder::{BlockError, FieldSink, HpackDecoder};

/// Bytes that an entry counts beside its name and its value (section 4.1).
pub(crate) const ENTRY_OVERHEAD: usize = 32;
/// The most that the decoder's dynamic table may hold: the default of
/// SETTINGS_HEADER_TABLE_SIZE.
pub(crate) const TABLE_SIZE: usize = 4096;
