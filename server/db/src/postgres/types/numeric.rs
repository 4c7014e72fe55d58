//! `numeric`, digit by digit: a double would not hold it.

use std::fmt::Write as _;

/// Reads the binary form: counts of 16 bits, then groups of four decimal digits, the first worth
/// 10000^weight.
pub(super) fn read(bytes: &[u8]) -> Option<String> {
    let word = |index: usize| -> Option<u16> {
        let pair = bytes.get(2 * index..2 * index + 2)?;
        Some(u16::from_be_bytes(pair.try_into().ok()?))
    };
    let groups = word(0)?;
    let weight = i32::from(word(1)?.cast_signed());
    let scale = usize::from(word(3)?);
    let mut text = String::new();
    match word(2)? {
        0x0000 => {}
        0x4000 => text.push('-'),
        0xC000 => return Some("NaN".to_owned()),
        0xD000 => return Some("Infinity".to_owned()),
        0xF000 => return Some("-Infinity".to_owned()),
        _ => return None,
    }
    if bytes.len() != 8 + 2 * usize::from(groups) {
        return None;
    }
    let group = |place: i32| -> u16 {
        let index = weight - place;
        if (0..i32::from(groups)).contains(&index) {
            word(4 + usize::try_from(index).unwrap_or(0)).unwrap_or(0)
        } else {
            0
        }
    };
    // A String takes all that is written.
    let _ = write!(text, "{}", group(weight.max(0)));
    for place in (0..weight.max(0)).rev() {
        let _ = write!(text, "{:04}", group(place));
    }
    if scale > 0 {
        text.push('.');
        let whole = text.len();
        for place in 1..=scale.div_ceil(4) {
            let _ = write!(text, "{:04}", group(-i32::try_from(place).ok()?));
        }
        text.truncate(whole + scale);
    }
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn binary(words: &[u16]) -> Vec<u8> {
        words.iter().flat_map(|word| word.to_be_bytes()).collect()
    }

    #[test]
    fn digits_keep_their_place() {
        for (words, text) in [
            (vec![0, 0, 0, 0], "0"),
            (vec![0, 0, 0, 3], "0.000"),
            (vec![1, 0, 0x4000, 0, 7], "-7"),
            (vec![2, 1, 0, 0, 1, 2], "10002"),
            (vec![1, 2, 0, 0, 5], "500000000"),
            (vec![1, 0xFFFF, 0, 2, 500], "0.05"),
            (vec![1, 0xFFFE, 0, 8, 1], "0.00000001"),
            (vec![2, 0, 0, 2, 12, 3400], "12.34"),
        ] {
            assert_eq!(read(&binary(&words)).as_deref(), Some(text));
        }
        assert_eq!(read(&binary(&[1, 0, 0, 0])), None);
        assert_eq!(read(&[0, 0, 0]), None);
    }
}
