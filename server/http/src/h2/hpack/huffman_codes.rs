//! The Huffman code of HPACK (RFC 7541 appendix B).
//!
//! The code is canonical: codes of one length are consecutive numbers in the order of their
//! symbols, and shorter codes come first. So the lengths say all.

/// The symbol for the end of a string. It never stands in one.
pub(crate) const END: usize = 256;
/// The longest code.
pub(crate) const LONGEST: usize = 30;

/// Bits of the code of each symbol.
#[rustfmt::skip]
pub(crate) const LENGTHS: [u8; END + 1] = [
    13, 23, 28, 28, 28, 28, 28, 28, 28, 24, 30, 28, 28, 30, 28, 28,
    28, 28, 28, 28, 28, 28, 30, 28, 28, 28, 28, 28, 28, 28, 28, 28,
    6, 10, 10, 12, 13, 6, 8, 11, 10, 10, 8, 11, 8, 6, 6, 6,
    5, 5, 5, 6, 6, 6, 6, 6, 6, 6, 7, 8, 15, 6, 12, 10,
    13, 6, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7,
    7, 7, 7, 7, 7, 7, 7, 7, 8, 7, 8, 13, 19, 13, 14, 6,
    15, 5, 6, 5, 6, 5, 6, 6, 6, 5, 7, 7, 6, 6, 6, 5,
    6, 7, 6, 5, 5, 6, 7, 7, 7, 7, 7, 15, 11, 14, 13, 28,
    20, 22, 20, 20, 22, 22, 22, 23, 22, 23, 23, 23, 23, 23, 24, 23,
    24, 24, 22, 23, 24, 23, 23, 23, 23, 21, 22, 23, 22, 23, 23, 24,
    22, 21, 20, 22, 22, 23, 23, 21, 23, 22, 22, 24, 21, 22, 23, 23,
    21, 21, 22, 21, 23, 22, 23, 23, 20, 22, 22, 22, 23, 22, 22, 23,
    26, 26, 20, 19, 22, 23, 22, 25, 26, 26, 26, 27, 27, 26, 24, 25,
    19, 21, 26, 27, 27, 26, 27, 24, 21, 21, 26, 26, 28, 27, 27, 27,
    20, 24, 20, 21, 22, 21, 21, 23, 22, 22, 25, 25, 24, 24, 26, 23,
    26, 27, 26, 26, 27, 27, 27, 27, 27, 28, 27, 27, 27, 27, 27, 26,
    30,
];

/// Code that the lengths imply.
pub(crate) struct CanonicalCode {
    /// The code of each symbol, in its lowest bits.
    pub(crate) codes: [u32; END + 1],
    /// The symbols in the order of their codes.
    pub(crate) symbols: [u16; END + 1],
    /// For each length: its first code.
    pub(crate) first: [u32; LONGEST + 1],
    /// For each length: where its first symbol is in `symbols`.
    pub(crate) offset: [u16; LONGEST + 1],
    /// For each length: what follows its last code, moved to the top of 32 bits. Bits below it
    /// begin with a code of this length or a shorter one.
    pub(crate) limit: [u32; LONGEST + 1],
}

pub(crate) static CODE: CanonicalCode = canonical();

// Symbols and offsets are below 2^16.
#[allow(clippy::cast_possible_truncation)]
pub(crate) const fn canonical() -> CanonicalCode {
    let mut made = CanonicalCode {
        codes: [0; END + 1],
        symbols: [0; END + 1],
        first: [0; LONGEST + 1],
        offset: [0; LONGEST + 1],
        limit: [0; LONGEST + 1],
    };
    let (mut code, mut at, mut len) = (0_u64, 0, 1);
    while len <= LONGEST {
        code <<= 1;
        made.first[len] = code as u32;
        made.offset[len] = at as u16;
        let mut symbol = 0;
        while symbol <= END {
            if LENGTHS[symbol] as usize == len {
                made.codes[symbol] = code as u32;
                made.symbols[at] = symbol as u16;
                code += 1;
                at += 1;
            }
            symbol += 1;
        }
        let limit = code << (32 - len);
        // The end of the longest codes is 2^32. No 32 bits are below it that are not below this.
        made.limit[len] = if limit > u32::MAX as u64 {
            u32::MAX
        } else {
            limit as u32
        };
        len += 1;
    }
    assert!(at == END + 1 && code == 1 << LONGEST);
    made
}
