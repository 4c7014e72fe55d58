//! Fields become bytes of a header block (RFC 7541 section 6), without a dynamic table.

use super::{huffman, integer, static_table};

/// Tells the client's decoder that the dynamic table is not used (section 6.3).
pub(crate) const NO_DYNAMIC_TABLE: u8 = 0b0010_0000;

/// A literal that no table takes in (section 6.2.2).
const WITHOUT_INDEXING: u8 = 0b0000_0000;
/// A literal that no intermediary may put into a table either (section 6.2.3): its value could be
/// guessed piece by piece (section 7.1).
const NEVER_INDEXED: u8 = 0b0001_0000;

/// Appends the pseudo-field `:status`.
pub(crate) fn push_status(out: &mut Vec<u8>, status: u16) {
    push_field(
        out,
        b":status",
        itoa::Buffer::new().format(status).as_bytes(),
    );
}

/// Appends a field, whose name is in lower case.
pub(crate) fn push_field(out: &mut Vec<u8>, name: &[u8], value: &[u8]) {
    if let Some(index) = static_table::index_of_field(name, value) {
        return integer::push(out, 0b1000_0000, 7, index);
    }
    let pattern = if name == b"set-cookie" {
        NEVER_INDEXED
    } else {
        WITHOUT_INDEXING
    };
    match static_table::index_of_name(name) {
        Some(index) => integer::push(out, pattern, 4, index),
        None => {
            out.push(pattern);
            push_string(out, name);
        }
    }
    push_string(out, value);
}

/// In Huffman code where that is shorter (section 5.2).
fn push_string(out: &mut Vec<u8>, text: &[u8]) {
    let coded = huffman::encoded_len(text);
    if coded < text.len() {
        integer::push(out, 0x80, 7, coded);
        huffman::encode(text, out);
    } else {
        integer::push(out, 0, 7, text.len());
        out.extend_from_slice(text);
    }
}
