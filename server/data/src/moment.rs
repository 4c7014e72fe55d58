//! Dates and times: the one reader of all that people and databases write.

use time::{Date, Month, OffsetDateTime};

/// A day, with a time if there is one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Moment {
    /// The day.
    pub date: Date,
    /// The time of day.
    pub time: Option<Clock>,
}

/// A time of day.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Clock {
    /// From 0 to 23.
    pub hour: u8,
    /// From 0 to 59.
    pub minute: u8,
    /// From 0 to 60: there are leap seconds.
    pub second: u8,
    /// Nanoseconds.
    pub fraction: u32,
    /// Seconds east of UTC; none of a time that is the site's own, as browsers send it.
    pub offset: Option<i32>,
}

impl Moment {
    /// Returns the moment of seconds since 1970, in UTC; none if no calendar has it.
    #[must_use]
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
    #[must_use]
    pub fn is_beyond(text: &str) -> bool {
        let year = text.bytes().take_while(u8::is_ascii_digit).count();
        matches!(text, "infinity" | "-infinity")
            || text.ends_with(" BC")
            || year > 4 && text[year..].starts_with('-')
    }

    /// Reads a day, such as `2026-03-03`, or a day and a time in a form of both databases, of YAML
    /// 1.1, TOML, Jekyll or Hugo: `2026-03-03T14:05Z`, `2026-3-3 4:05:06.5 +01:00`,
    /// `2026-03-03 14:05:06 +0100`, `2026-03-03 14:05:06 UTC`. Behind a blank, a time without an
    /// offset is of UTC, as databases and YAML have it.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let year = digits(text.get(..4)?)?;
        let (month, rest) = one_or_two(text[4..].strip_prefix('-')?, 12)?;
        let (of_month, rest) = one_or_two(rest.strip_prefix('-')?, 31)?;
        let month = Month::try_from(month).ok()?;
        let year = i32::try_from(year).ok().filter(|year| *year > 0)?;
        let date = Date::from_calendar_date(year, month, of_month).ok()?;
        if rest.is_empty() {
            return (text.len() == 10).then_some(Self { date, time: None });
        }
        let behind = rest.trim_start_matches([' ', '\t']);
        let is_blank = behind.len() < rest.len();
        let clock = match is_blank {
            true => behind,
            false => rest.strip_prefix(['T', 't'])?,
        };
        let mut clock = Clock::parse(clock)?;
        if is_blank {
            clock.offset = clock.offset.or(Some(0));
        }
        let time = Some(clock);
        Some(Self { date, time })
    }

    /// Seconds since 1970. A time that names no offset is taken to be of UTC.
    #[must_use]
    pub fn unix(&self) -> i64 {
        let days = i64::from(self.date.to_julian_day()) - 2_440_588;
        let clock = self.clock();
        let of_day =
            i64::from(clock.hour) * 3600 + i64::from(clock.minute) * 60 + i64::from(clock.second);
        days * 86_400 + of_day - i64::from(clock.offset.unwrap_or(0))
    }

    /// `2026-03-03 14:05:06` in UTC, as SQLite's `datetime('now')` writes it; with a fraction only
    /// if there is one. None without a time, and outside of the years from 1 to 9999.
    #[must_use]
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
    #[must_use]
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
    /// Reads `14:05`, `14:05:06.123` and the offset that may follow.
    fn parse(text: &str) -> Option<Self> {
        let is_zone = |sign: char| !sign.is_ascii_digit() && sign != ':' && sign != '.';
        let (clock, zone) = text.split_at(text.find(is_zone).unwrap_or(text.len()));
        let mut parts = clock.split(':');
        let (hour, rest) = one_or_two(parts.next()?, 23)?;
        let minute = two(parts.next()?, 59)?;
        let (second, fraction) = match parts.next() {
            Some(seconds) => {
                let (whole, fraction) = seconds.split_once('.').unwrap_or((seconds, "0"));
                let kept = fraction.get(..fraction.len().min(9))?;
                let scale = 10_u32.pow(9 - u32::try_from(kept.len()).ok()?);
                let is_number = fraction.bytes().all(|byte| byte.is_ascii_digit());
                let kept = digits(kept).filter(|_| is_number)?;
                // A leap second.
                (two(whole, 60)?, kept.checked_mul(scale)?)
            }
            None => (0, 0),
        };
        let is_whole = rest.is_empty() && parts.next().is_none();
        is_whole.then_some(Self {
            hour,
            minute,
            second,
            fraction,
            offset: offset(zone)?,
        })
    }
}

/// An offset in seconds; the inner none is that of an empty text. It is written `Z`, `UTC`, `+1`,
/// `+01`, `+0100`, `+01:00` or `+01:00:00`, and Go writes the name of the zone behind it.
fn offset(zone: &str) -> Option<Option<i32>> {
    let zone = zone.trim_matches([' ', '\t']);
    let (number, name) = zone.split_once(' ').unwrap_or((zone, ""));
    let sign = match number.as_bytes().first() {
        None => return Some(None),
        Some(_)
            if ["Z", "UTC", "GMT"]
                .iter()
                .any(|it| it.eq_ignore_ascii_case(zone)) =>
        {
            return Some(Some(0));
        }
        Some(b'+') => 1,
        Some(b'-') => -1,
        Some(_) => return None,
    };
    let first = number[1..].split(':').next()?;
    let padding = if first.len() == 1 { "0" } else { "" };
    let digits: String = [padding, &number[1..]].concat().replace(':', "");
    let part = |from: usize| match digits.get(from..from + 2) {
        Some(part) => two(part, 59).map(i32::from),
        None => (digits.len() == from).then_some(0),
    };
    let hours = two(digits.get(..2)?, 23).map(i32::from)?;
    let seconds = if digits.len() > 4 { part(4)? } else { 0 };
    let is_name = name.bytes().all(|byte| byte.is_ascii_uppercase());
    let is_whole = digits.len() <= 6 && is_name;
    is_whole.then_some(Some(sign * (hours * 3600 + part(2)? * 60 + seconds)))
}

/// One or two digits of a number up to `most`, and the text behind them.
fn one_or_two(text: &str, most: u8) -> Option<(u8, &str)> {
    let length = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, rest) = text.split_at(length);
    let number = number.parse().ok().filter(|number| *number <= most);
    ((1..=2).contains(&length)).then_some((number?, rest))
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
    fn the_texts_of_databases_and_of_people_are_moments() {
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
            // Jekyll.
            ("2013-05-06 02:12:52 +0200", 1_367_799_172),
            ("2013-05-06 00:12:52 UTC", 1_367_799_172),
            // YAML 1.1.
            ("2001-12-14t21:59:43.10-05:00", 1_008_385_183),
            ("2001-12-14 21:59:43.10 -5", 1_008_385_183),
            ("2001-12-15 2:59:43.10", 1_008_385_183),
            ("2001-12-15 2:59:43.1 Z", 1_008_385_183),
            ("2001-2-4\t2:59:43", 981_255_583),
            // TOML and Go.
            ("1979-05-27T00:32:00.999999-07:00", 296_638_320),
            ("1979-05-27 07:32:00Z", 296_638_320),
            ("1979-05-27 00:32:00.123456789123 -0700 PDT", 296_638_320),
            ("1979-05-27 07:32:00 +0000 UTC", 296_638_320),
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
            "2026-1-1x",
            "0000-01-01",
            "2019-13-40",
            "now",
            "Jan 5, 2026",
            "2026-03-03 014:05",
            "2026-03-03 14:05:06.123456789x",
            "2026-03-03 14:05 pm",
            "2026-03-03 14:05 UTC+1",
            "2026-03-03  ",
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
