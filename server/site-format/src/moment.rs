//! Dates and times as the databases write them.

use time::{Date, Month, OffsetDateTime};

use crate::time_zone::SiteZone;

/// A day, with a time if there is one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Moment {
    pub date: Date,
    pub time: Option<Clock>,
}

/// A time of day.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Clock {
    pub hour: u8,
    pub minute: u8,
    pub second: u8,
    /// Nanoseconds.
    pub fraction: u32,
    /// Seconds east of UTC; none of a time that is the site's own, as browsers send it.
    pub offset: Option<i32>,
}

impl Moment {
    /// Returns the moment of seconds since 1970, in UTC; none if no calendar has it.
    pub fn of_unix(seconds: i64) -> Option<Self> {
        let moment = OffsetDateTime::from_unix_timestamp(seconds).ok()?;
        let (hour, minute, second) = moment.time().as_hms();
        Some(Self {
            date: moment.date(),
            time: Some(Clock {
                hour,
                minute,
                second,
                fraction: 0,
                offset: Some(0),
            }),
        })
    }

    /// Returns true for a date of PostgreSQL that no calendar here has: before the year 1, after
    /// 9999, or without an end.
    pub fn is_beyond(text: &str) -> bool {
        let year = text.bytes().take_while(u8::is_ascii_digit).count();
        matches!(text, "infinity" | "-infinity")
            || text.ends_with(" BC")
            || year > 4 && text[year..].starts_with('-')
    }

    /// Reads a text such as `2026-03-03`, `2026-03-03 14:05:06.5+01` or `2026-03-03T14:05Z`.
    pub fn parse(text: &str) -> Option<Self> {
        let (day, rest) = text.split_at_checked(10)?;
        let bytes = day.as_bytes();
        if bytes[4] != b'-' || bytes[7] != b'-' {
            return None;
        }
        let year: i32 = digits(&day[..4])?.try_into().ok()?;
        let month = Month::try_from(u8::try_from(digits(&day[5..7])?).ok()?).ok()?;
        let of_month = u8::try_from(digits(&day[8..])?).ok()?;
        let date = Date::from_calendar_date(year, month, of_month).ok()?;
        let mut time = match rest.strip_prefix([' ', 'T', 't']) {
            Some(time) => Some(Clock::parse(time)?),
            None if rest.is_empty() => None,
            None => return None,
        };
        // So databases write what is of UTC.
        if let (Some(clock), true) = (&mut time, rest.starts_with(' ')) {
            clock.offset = clock.offset.or(Some(0));
        }
        Some(Self { date, time })
    }

    /// Moves the moment to the date, the time and the offset of a zone. A day without a time is the
    /// same day everywhere; without a zone every moment stays as it is.
    pub fn in_zone(self, zone: SiteZone) -> Self {
        let Some(clock) = self.time else {
            return self;
        };
        let unix = self.unix();
        if clock.offset.is_none() {
            let offset = zone.offset_of_local(unix);
            let time = Some(Clock { offset, ..clock });
            return Self { time, ..self };
        }
        let shifted = zone.offset_at(unix).and_then(|offset| {
            let shown = OffsetDateTime::from_unix_timestamp(unix + i64::from(offset)).ok()?;
            let (hour, minute, second) = shown.time().as_hms();
            let time = Some(Clock {
                hour,
                minute,
                second,
                offset: Some(offset),
                ..clock
            });
            let date = shown.date();
            Some(Self { date, time })
        });
        shifted.unwrap_or(self)
    }

    /// Seconds since 1970. A time that names no offset is taken to be of UTC.
    pub fn unix(&self) -> i64 {
        let days = i64::from(self.date.to_julian_day()) - 2_440_588;
        let clock = self.clock();
        let of_day =
            i64::from(clock.hour) * 3600 + i64::from(clock.minute) * 60 + i64::from(clock.second);
        days * 86_400 + of_day - i64::from(clock.offset.unwrap_or(0))
    }

    /// `2026-03-03 14:05:06` in UTC, as SQLite's `datetime('now')` writes it; with a fraction only
    /// if there is one. None without a time, and outside of the years from 1 to 9999.
    pub fn utc_text(&self) -> Option<String> {
        let fraction = self.time?.fraction;
        let moment = OffsetDateTime::from_unix_timestamp(self.unix()).ok()?;
        let (date, (hour, minute, second)) = (moment.date(), moment.time().as_hms());
        let year = u16::try_from(date.year())
            .ok()
            .filter(|year| (1..=9999).contains(year))?;
        let (month, day) = (u8::from(date.month()), date.day());
        let text = format!("{year:04}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02}");
        Some(match fraction {
            0 => text,
            _ => format!("{text}.{fraction:09}")
                .trim_end_matches('0')
                .to_owned(),
        })
    }

    /// Its time; midnight of a day without one.
    pub fn clock(&self) -> Clock {
        self.time.unwrap_or(Clock {
            hour: 0,
            minute: 0,
            second: 0,
            fraction: 0,
            offset: None,
        })
    }
}

impl Clock {
    /// Reads `14:05`, `14:05:06.123` and what may follow: `Z`, `+01`, `+0100`, `+01:00`.
    fn parse(text: &str) -> Option<Self> {
        let end = text.find(['Z', 'z', '+', '-']).unwrap_or(text.len());
        let (clock, zone) = text.split_at(end);
        let mut parts = clock.trim_end().split(':');
        let hour = two(parts.next()?, 23)?;
        let minute = two(parts.next()?, 59)?;
        let (second, fraction) = match parts.next() {
            Some(seconds) => {
                let (whole, fraction) = seconds.split_once('.').unwrap_or((seconds, "0"));
                let fraction = fraction.get(..fraction.len().min(9))?;
                let scale = 10_u32.pow(9 - u32::try_from(fraction.len()).ok()?);
                // A leap second.
                (two(whole, 60)?, digits(fraction)?.checked_mul(scale)?)
            }
            None => (0, 0),
        };
        if parts.next().is_some() {
            return None;
        }
        Some(Self {
            hour,
            minute,
            second,
            fraction,
            offset: offset(zone)?,
        })
    }
}

/// An offset in seconds; the inner none is that of an empty text.
fn offset(zone: &str) -> Option<Option<i32>> {
    let sign = match zone.as_bytes().first() {
        None => return Some(None),
        Some(b'Z' | b'z') if zone.len() == 1 => return Some(Some(0)),
        Some(b'+') => 1,
        Some(b'-') => -1,
        Some(_) => return None,
    };
    let digits: String = zone[1..].chars().filter(|letter| *letter != ':').collect();
    let part = |from: usize| match digits.get(from..from + 2) {
        Some(part) => two(part, 59).map(i32::from),
        None => (digits.len() == from).then_some(0),
    };
    let hours = two(digits.get(..2)?, 23).map(i32::from)?;
    let seconds = if digits.len() > 4 { part(4)? } else { 0 };
    let is_whole = digits.len() <= 6;
    is_whole.then_some(Some(sign * (hours * 3600 + part(2)? * 60 + seconds)))
}

/// Two digits of a number up to `most`.
fn two(text: &str, most: u8) -> Option<u8> {
    let number = u8::try_from(digits(text)?).ok()?;
    (text.len() == 2 && number <= most).then_some(number)
}

fn digits(text: &str) -> Option<u32> {
    let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| text.parse().ok())?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_databases_texts_are_moments() {
        for (text, unix) in [
            ("1970-01-01", 0),
            ("2026-03-03", 1_772_496_000),
            ("2026-03-03 14:05:06", 1_772_546_706),
            ("2026-03-03T14:05:06.123456Z", 1_772_546_706),
            ("2026-03-03 14:05", 1_772_546_700),
            ("2026-03-03 14:05:06+02", 1_772_539_506),
            ("2026-03-03T14:05:06-05:30", 1_772_566_506),
            ("2026-03-03T14:05:06+0100", 1_772_543_106),
            ("0001-01-01", -62_135_596_800),
        ] {
            let moment = Moment::parse(text).unwrap_or_else(|| panic!("{text}"));
            assert_eq!(moment.unix(), unix, "{text}");
        }
        assert_eq!(
            Moment::of_unix(1_772_546_706).unwrap().unix(),
            1_772_546_706
        );
    }

    #[test]
    fn a_moment_is_shown_in_a_zone_and_a_day_is_not_moved() {
        let vienna = SiteZone::find("Europe/Vienna").unwrap();
        for (text, shown, utc) in [
            (
                "2026-07-01 22:30:00",
                "2026-07-02 0:30 +7200",
                Some("2026-07-01 22:30:00"),
            ),
            (
                "2026-12-31T23:30:00.5Z",
                "2027-01-01 0:30 +3600",
                Some("2026-12-31 23:30:00.5"),
            ),
            (
                "2026-07-01 12:00:00-05",
                "2026-07-01 19:0 +7200",
                Some("2026-07-01 17:00:00"),
            ),
            (
                "2026-07-01T14:05",
                "2026-07-01 14:5 +7200",
                Some("2026-07-01 12:05:00"),
            ),
            // Left out, and twice.
            (
                "2026-03-29T02:30",
                "2026-03-29 2:30 +3600",
                Some("2026-03-29 01:30:00"),
            ),
            (
                "2026-10-25T02:30",
                "2026-10-25 2:30 +7200",
                Some("2026-10-25 00:30:00"),
            ),
            (
                "2026-10-25 01:30:00",
                "2026-10-25 2:30 +3600",
                Some("2026-10-25 01:30:00"),
            ),
            ("2026-07-01", "2026-07-01 0:0 +0", None),
        ] {
            let moment = Moment::parse(text).unwrap().in_zone(vienna);
            let clock = moment.clock();
            let offset = clock.offset.unwrap_or(0);
            let found = format!("{} {}:{} +{offset}", moment.date, clock.hour, clock.minute);
            assert_eq!(found, shown, "{text}");
            assert_eq!(moment.utc_text().as_deref(), utc, "{text}");
        }
        // At the ends of the calendar a moment stays as it is.
        for text in [
            "9999-12-31 23:30:00",
            "9999-12-31T23:30",
            "0000-01-01T00:00",
        ] {
            assert!(Moment::parse(text).unwrap().in_zone(vienna).time.is_some());
        }
    }

    #[test]
    fn what_is_no_moment_is_none() {
        for bad in [
            "",
            "soon",
            "2026-02-29",
            "2026-13-01",
            "2026-1-1",
            "20260303",
            "2026-03-03x",
            "2026-03-03 25:00",
            "2026-03-03 14",
            "2026-03-03 14:5",
            "2026-03-03 14:05+1",
            "2026-03-03 14:05+01:0",
            "2026-03-03 14:05Zx",
            "2026-03-03T14:05:06.",
            "infinity",
            "ä026-03-03",
        ] {
            assert_eq!(Moment::parse(bad), None, "{bad}");
        }
        assert_eq!(Moment::of_unix(i64::MAX), None);
    }
}
