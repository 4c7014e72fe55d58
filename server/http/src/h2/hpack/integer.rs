//! Integers with a prefix of some bits (RFC 7541 section 5.1).

use super::CompressionError;

/// Bytes after the prefix at most: with 28 bits, longer than any header block may be.
const MORE_BYTES: usize = 4;

/// Takes the integer at the beginning of `input`, whose first byte has `prefix` bits of it.
pub(super) fn take(input: &mut &[u8], prefix: u32) -> Result<usize, CompressionError> {
    let (&first, mut rest) = input.split_first().ok_or(CompressionError)?;
    let most = (1_usize << prefix) - 1;
    let mut value = usize::from(first) & most;
    if value == most {
        for at in 0.. {
            let (&byte, behind) = rest.split_first().ok_or(CompressionError)?;
            if at == MORE_BYTES {
                return Err(CompressionError);
            }
            rest = behind;
            value += usize::from(byte & 0x7f) << (7 * at);
            if byte < 0x80 {
                break;
            }
        }
    }
    *input = rest;
    Ok(value)
}

/// Appends an integer. `pattern` is what the first byte has beside the prefix.
pub(super) fn push(out: &mut Vec<u8>, pattern: u8, prefix: u32, value: usize) {
    let most = (1_usize << prefix) - 1;
    // Each cast is of a number that was cut to the byte's bits.
    #[allow(clippy::cast_possible_truncation)]
    {
        if value < most {
            return out.push(pattern | value as u8);
        }
        out.push(pattern | most as u8);
        let mut left = value - most;
        while left >= 0x80 {
            out.push(0x80 | (left & 0x7f) as u8);
            left >>= 7;
        }
        out.push(left as u8);
    }
}
