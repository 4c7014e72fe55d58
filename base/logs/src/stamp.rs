//! Times as logs write them.

use time::{Date, Month};

const EPOCH_JULIAN_DAY: i64 = 2_440_588;
const DAY: i64 = 86_400;
/// Length of `10/Oct/2000:13:55:36 -0700`.
pub(crate) const COMMON: usize = 26;

/// A moment, and how far the clock that wrote it is ahead of UTC; both in seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Stamp {
    pub(crate) time: i64,
    pub(crate) offset: i32,
}

/// Seconds from 1970 to a date and a time of day; `None` if there is no such date.
pub fn seconds_of(date: [u32; 3], time: [u32; 3]) -> Option<i64> {
    let [year, month, day] = date;
    let [hour, minute, second] = time;
    let month = Month::try_from(u8::try_from(month).ok()?).ok()?;
    let date = Date::from_calendar_date(year as i32, month, u8::try_from(day).ok()?).ok()?;
    // A leap second has the number 60.
    let is_time = hour < 24 && minute < 60 && second <= 60;
    let days = i64::from(date.to_julian_day()) - EPOCH_JULIAN_DAY;
    is_time.then(|| days * DAY + i64::from(hour * 3600 + minute * 60 + second))
}

/// `10/Oct/2000:13:55:36 -0700`.
pub(crate) fn common(text: &[u8]) -> Option<Stamp> {
    const MONTHS: &[u8] = b"JanFebMarAprMayJunJulAugSepOctNovDec";
    let is_separated = [
        (2, b'/'),
        (6, b'/'),
        (11, b':'),
        (14, b':'),
        (17, b':'),
        (20, b' '),
    ];
    if text.len() != COMMON || is_separated.iter().any(|&(at, byte)| text[at] != byte) {
        return None;
    }
    let month = MONTHS.chunks(3).position(|name| name == &text[3..6])? as u32 + 1;
    let date = [number(&text[7..11])?, month, number(&text[..2])?];
    let time = [
        number(&text[12..14])?,
        number(&text[15..17])?,
        number(&text[18..20])?,
    ];
    ahead(seconds_of(date, time)?, offset(&text[21..])?)
}

/// `2000-10-10T13:55:36.5-07:00`; without an offset in UTC.
pub(crate) fn iso(text: &[u8]) -> Option<Stamp> {
    let (text, rest) = text.split_at_checked(19)?;
    let is_separated = [(4, b'-'), (7, b'-'), (13, b':'), (16, b':')];
    if is_separated.iter().any(|&(at, byte)| text[at] != byte) || !b"T ".contains(&text[10]) {
        return None;
    }
    let part = |at: usize| number(&text[at..at + 2]);
    let date = [number(&text[..4])?, part(5)?, part(8)?];
    let zone = rest.iter().position(|byte| b"+-".contains(byte));
    let offset = zone.map_or(Some(0), |at| offset(&rest[at..]))?;
    ahead(seconds_of(date, [part(11)?, part(14)?, part(17)?])?, offset)
}

/// Seconds, milliseconds, microseconds or nanoseconds since 1970, by their size.
pub(crate) fn epoch(value: f64) -> Option<Stamp> {
    let unit = [(1e17, 1e9), (1e14, 1e6), (1e11, 1e3), (0.0, 1.0)];
    let (_, unit) = unit.iter().find(|(from, _)| value >= *from)?;
    let time = (value / unit).floor() as i64;
    // The year 9999 is the last one with four digits.
    (time < 253_402_300_800).then_some(Stamp { time, offset: 0 })
}

fn ahead(local: i64, offset: i32) -> Option<Stamp> {
    let time = local - i64::from(offset);
    Some(Stamp { time, offset })
}

/// `+0200` or `+02:00` in seconds.
fn offset(text: &[u8]) -> Option<i32> {
    let (sign, rest) = text.split_first()?;
    let minutes = rest.get(2..)?;
    let minutes = number(minutes.strip_prefix(b":").unwrap_or(minutes))?;
    let seconds = (number(&rest[..2])? * 3600 + minutes * 60) as i32;
    match sign {
        b'+' if minutes < 60 => Some(seconds),
        b'-' if minutes < 60 => Some(-seconds),
        _ => None,
    }
}

/// A number of a few digits, and nothing else.
pub(crate) fn number(text: &[u8]) -> Option<u32> {
    let is_number = (1..=4).contains(&text.len()) && text.iter().all(u8::is_ascii_digit);
    let digits = || text.iter().map(|digit| u32::from(digit - b'0'));
    is_number.then(|| digits().fold(0, |sum, digit| 10 * sum + digit))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_moment_in_each_form() {
        let expected = Some(Stamp {
            time: 971_211_336,
            offset: -25_200,
        });
        assert_eq!(common(b"10/Oct/2000:13:55:36 -0700"), expected);
        assert_eq!(iso(b"2000-10-10T13:55:36-07:00"), expected);
        assert_eq!(iso(b"2000-10-10 13:55:36.123-0700"), expected);
        let utc = Some(Stamp {
            time: 971_211_336,
            offset: 0,
        });
        assert_eq!(iso(b"2000-10-10T20:55:36.5Z"), utc);
        for number in [
            971_211_336.0,
            971_211_336.75,
            971_211_336_750.0,
            971_211_336e6,
        ] {
            assert_eq!(epoch(number), utc, "{number}");
        }
    }

    #[test]
    fn no_time_is_no_time() {
        for text in [
            "32/Jan/1970:00:00:00 +0000",
            "29/Feb/2026:00:00:00 +0000",
            "10/Okt/2000:13:55:36 -0700",
            "10/Oct/2000:24:55:36 -0700",
            "10/Oct/2000:13:55:36 *0700",
            "10/Oct/2000:13:55:3x -0700",
            "10/Oct/2000 13:55:36 -0700",
        ] {
            assert_eq!(common(text.as_bytes()), None, "{text}");
        }
        for text in [
            "2000-10-10",
            "2000-13-10T20:55:36Z",
            "2000-10-10x20:55:36",
            "",
        ] {
            assert_eq!(iso(text.as_bytes()), None, "{text}");
        }
        assert_eq!([epoch(-1.0), epoch(f64::NAN), epoch(1e300)], [None; 3]);
    }
}
