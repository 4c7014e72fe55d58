//! Strings in Huffman code (RFC 7541 section 5.2).

use super::CompressionError;
use super::huffman_codes::{CODE, END, LENGTHS, LONGEST};

/// Codes of up to this many bits are found in one step. All usual characters have one.
const QUICK: usize = 8;

/// For the next [`QUICK`] bits: the symbol that they begin with and the length of its code; a
/// length of 0 if the code is longer.
static QUICK_CODES: [(u8, u8); 1 << QUICK] = quick_codes();

// A symbol with a short code is a byte.
#[allow(clippy::cast_possible_truncation)]
const fn quick_codes() -> [(u8, u8); 1 << QUICK] {
    let mut table = [(0, 0); 1 << QUICK];
    let mut symbol = 0;
    while symbol < END {
        let len = LENGTHS[symbol] as usize;
        if len <= QUICK {
            let first = (CODE_OF[symbol] as usize) << (QUICK - len);
            let mut at = first;
            while at < first + (1 << (QUICK - len)) {
                table[at] = (symbol as u8, len as u8);
                at += 1;
            }
        }
        symbol += 1;
    }
    table
}

const CODE_OF: [u32; END + 1] = super::huffman_codes::canonical().codes;

/// Bytes of `text` in Huffman code.
pub(super) fn encoded_len(text: &[u8]) -> usize {
    let bits: usize = text
        .iter()
        .map(|&byte| usize::from(LENGTHS[usize::from(byte)]))
        .sum();
    bits.div_ceil(8)
}

/// Appends `text` in Huffman code.
pub(super) fn encode(text: &[u8], out: &mut Vec<u8>) {
    // The lowest `count` bits wait to be written.
    let (mut bits, mut count) = (0_u64, 0_u32);
    for &byte in text {
        let len = u32::from(LENGTHS[usize::from(byte)]);
        bits = bits << len | u64::from(CODE.codes[usize::from(byte)]);
        count += len;
        while count >= 8 {
            count -= 8;
            // Its lowest byte is meant.
            #[allow(clippy::cast_possible_truncation)]
            out.push((bits >> count) as u8);
        }
    }
    if count > 0 {
        // Padded with the beginning of the end symbol: ones.
        #[allow(clippy::cast_possible_truncation)]
        out.push((bits << (8 - count)) as u8 | (0xff >> count));
    }
}

/// Appends the text whose Huffman code `input` is. It has at most 8/5 of the length.
pub(super) fn decode(input: &[u8], out: &mut Vec<u8>) -> Result<(), CompressionError> {
    out.reserve(input.len() + input.len() / 2);
    let mut input = input;
    // The highest `count` bits are there; those below are zero.
    let (mut bits, mut count) = (0_u64, 0_u32);
    loop {
        // No code is longer than 30 bits.
        if count < 32 {
            if let Some((&word, rest)) = input.split_first_chunk() {
                bits |= u64::from(u32::from_be_bytes(word)) << (32 - count);
                count += 32;
                input = rest;
            } else {
                for &byte in std::mem::take(&mut input) {
                    bits |= u64::from(byte) << (56 - count);
                    count += 8;
                }
            }
        }
        let (mut symbol, mut len) = QUICK_CODES[(bits >> (64 - QUICK)) as usize];
        if len == 0 {
            let (long, long_len) = long_code((bits >> 32) as u32);
            len = long_len;
            match u8::try_from(long) {
                Ok(byte) => symbol = byte,
                // The end symbol is an error, also as far as it is padding: that is too long.
                Err(_) if u32::from(len) <= count => return Err(CompressionError),
                Err(_) => {}
            }
        }
        if u32::from(len) > count {
            // The rest is padding: less than a byte, all ones.
            let ones = count < 8 && bits.leading_ones() >= count;
            return if ones { Ok(()) } else { Err(CompressionError) };
        }
        out.push(symbol);
        bits <<= len;
        count -= u32::from(len);
    }
}

/// The symbol that `window` begins with, and the length of its code, which is longer than
/// [`QUICK`].
fn long_code(window: u32) -> (u16, u8) {
    let mut len = QUICK + 1;
    while len < LONGEST && window >= CODE.limit[len] {
        len += 1;
    }
    let place = (window >> (32 - len)) - CODE.first[len];
    let at = usize::from(CODE.offset[len]) + place as usize;
    // The codes of the greatest length reach to the end, so the place exists; lengths are small.
    #[allow(clippy::cast_possible_truncation)]
    (CODE.symbols[at.min(END)], len as u8)
}
