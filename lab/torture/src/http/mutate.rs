//! Edits of seeds: what turns something valid into something nearly valid.

use crate::Choices;

/// Longest input in bytes. Large enough for every limit that a test sets, small enough for one
/// read.
pub const MAX_INPUT: usize = 12 << 10;

/// A seed after none to eight edits; empty if there is no seed.
pub fn mutate(choices: &mut Choices<'_>, seeds: &[Vec<u8>], words: &[&[u8]]) -> Vec<u8> {
    let mut input = choices.pick(seeds).cloned().unwrap_or_default();
    for _ in 0..choices.below(9) {
        edit(&mut input, choices, seeds, words);
        input.truncate(MAX_INPUT);
    }
    input
}

fn edit(input: &mut Vec<u8>, choices: &mut Choices<'_>, seeds: &[Vec<u8>], words: &[&[u8]]) {
    let at = choices.below(input.len() + 1);
    let len = choices.below(12).min(input.len() - at);
    match choices.below(10) {
        0 | 1 => {
            let word = choices.pick(words).copied().unwrap_or_default();
            input.splice(at..at, word.iter().copied());
        }
        2 => {
            let word = choices.pick(words).copied().unwrap_or_default();
            input.splice(at..at + len, word.iter().copied());
        }
        3 => {
            input.drain(at..at + len);
        }
        4 => {
            let byte = choices.byte();
            if let Some(old) = input.get_mut(at) {
                *old = byte;
            }
        }
        5 => repeat(input, at, len, choices),
        6 => {
            let other = choices.pick(seeds).map(Vec::as_slice).unwrap_or_default();
            let from = choices.below(other.len() + 1);
            input.truncate(at);
            input.extend_from_slice(&other[from..]);
        }
        7 => input.truncate(at),
        8 => swap_lines(input, choices),
        _ => change_number(input, at, choices),
    }
}

/// Says a piece again, sometimes very often: limits are met this way.
fn repeat(input: &mut Vec<u8>, at: usize, len: usize, choices: &mut Choices<'_>) {
    let times = if choices.chance(10) {
        choices.below(3000)
    } else {
        1 + choices.below(3)
    };
    let piece = input[at..at + len].to_vec();
    let room = MAX_INPUT.saturating_sub(input.len()) / piece.len().max(1);
    input.splice(at..at, piece.repeat(times.min(room)));
}

/// Swaps two lines, so fields stand before the request line and bodies before their heads.
fn swap_lines(input: &mut Vec<u8>, choices: &mut Choices<'_>) {
    let mut lines: Vec<Vec<u8>> = input
        .split_inclusive(|&b| b == b'\n')
        .map(<[u8]>::to_vec)
        .collect();
    if lines.is_empty() {
        return;
    }
    let (one, other) = (choices.below(lines.len()), choices.below(lines.len()));
    lines.swap(one, other);
    *input = lines.concat();
}

/// The first number at or after `at` becomes one that is nearly right, or far too large, or none.
fn change_number(input: &mut Vec<u8>, at: usize, choices: &mut Choices<'_>) {
    const NUMBERS: [&[u8]; 12] = [
        b"0",
        b"1",
        b"-1",
        b"+1",
        b"00",
        b"0x1",
        b"1e3",
        b" 1",
        b"4294967296",
        b"9223372036854775808",
        b"18446744073709551616",
        b"ffffffffffffffffff",
    ];
    let Some(start) = input[at..].iter().position(u8::is_ascii_digit) else {
        return;
    };
    let start = at + start;
    let len = input[start..]
        .iter()
        .take_while(|b| b.is_ascii_digit())
        .count();
    let number = choices.pick(&NUMBERS).copied().unwrap_or_default();
    input.splice(start..start + len, number.iter().copied());
}

#[cfg(test)]
mod tests {
    use super::{MAX_INPUT, mutate};
    use crate::{Choices, http::words};

    #[test]
    fn mutations_stay_bounded_and_differ() {
        let seeds = [
            b"GET / HTTP/1.1\r\nHost: a\r\n\r\n".to_vec(),
            b"POST /x HTTP/1.1\r\nContent-Length: 3\r\n\r\nabc".to_vec(),
        ];
        let mut seen: Vec<_> = (0..2000)
            .map(|seed| mutate(&mut Choices::seeded(seed), &seeds, &words::HTTP))
            .collect();
        assert!(seen.iter().all(|input| input.len() <= MAX_INPUT));
        seen.sort();
        seen.dedup();
        assert!(seen.len() > 1500, "{}", seen.len());
        assert!(mutate(&mut Choices::seeded(1), &[], &[]).is_empty());
    }
}
