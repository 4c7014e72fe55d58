//! `:today`: the date in the site's time zone, which the server gives to a query.
//!
//! It is a parameter that no request can set, and stands in the key as any other. So a page of
//! yesterday is not found today; and it ends at midnight, so that no connection repeats it either.

use base_clock::Boottime;
use millpond_db::Value;
use time::{Date, OffsetDateTime};

use crate::time_zone::SiteZone;

/// The name of the parameter.
pub const TODAY: &str = "today";

/// Days of the Julian calendar before 1970.
const BEFORE_1970: i64 = 2_440_588;
const DAY: i64 = 86_400;

/// The date now.
pub fn value(zone: SiteZone) -> Value {
    let unix = base_clock::unix_seconds_at(Boottime::now());
    let date = date_at(zone, i64::try_from(unix).unwrap_or(i64::MAX));
    date.map_or(Value::Null, |date| {
        let (year, month, day) = date.to_calendar_date();
        let text = format!("{year:04}-{:02}-{day:02}", u8::from(month));
        Value::from(text.as_str())
    })
}

fn date_at(zone: SiteZone, unix: i64) -> Option<Date> {
    let local = unix.checked_add(i64::from(zone.offset_at(unix).unwrap_or(0)))?;
    Some(OffsetDateTime::from_unix_timestamp(local).ok()?.date())
}

/// The moment at which the day after `date` begins, in seconds since 1970.
pub fn day_after(zone: SiteZone, date: Date) -> i64 {
    beginning(zone, i64::from(date.to_julian_day()) + 1)
}

/// The moment at which a day begins, in seconds since 1970.
pub fn beginning_of(zone: SiteZone, date: Date) -> i64 {
    beginning(zone, i64::from(date.to_julian_day()))
}

fn beginning(zone: SiteZone, julian_day: i64) -> i64 {
    let local = (julian_day - BEFORE_1970) * DAY;
    local - i64::from(zone.offset_of_local(local).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_day_ends_at_midnight_of_its_zone() {
        for (zone, unix, date, end) in [
            // Without a zone it is that of UTC.
            ("", 1_774_742_399, "2026-03-28", 1_774_742_400),
            ("", 1_774_742_400, "2026-03-29", 1_774_828_800),
            // 23:59:59 and 00:00 in Vienna; the day that begins has 23 hours.
            ("Europe/Vienna", 1_774_738_799, "2026-03-28", 1_774_738_800),
            ("Europe/Vienna", 1_774_738_800, "2026-03-29", 1_774_821_600),
            // 25 hours.
            ("Europe/Vienna", 1_792_879_200, "2026-10-25", 1_792_969_200),
            // Clocks went from 00:00 to 01:00 on 4 November 2018.
            (
                "America/Sao_Paulo",
                1_541_300_399,
                "2018-11-03",
                1_541_300_400,
            ),
            (
                "America/Sao_Paulo",
                1_541_300_400,
                "2018-11-04",
                1_541_383_200,
            ),
        ] {
            let zone = match zone {
                "" => SiteZone::default(),
                name => SiteZone::find(name).unwrap(),
            };
            let found = date_at(zone, unix).unwrap();
            assert_eq!(found.to_string(), date, "{unix}");
            assert_eq!(day_after(zone, found), end, "{unix}");
            assert_eq!(date_at(zone, end - 1).unwrap(), found);
            assert_eq!(date_at(zone, end).unwrap(), found.next_day().unwrap());
        }
    }
}
