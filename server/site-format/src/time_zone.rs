//! The time zone of a site, `[site] timezone`: what a time of day without an offset means, and in
//! which offset templates write.

use std::{
    collections::BTreeMap,
    hash::{Hash, Hasher},
};

use jiff::{
    Timestamp,
    tz::{Offset, TimeZone, TimeZoneDatabase},
};
use millpond_data::{Clock, Moment};
use parking_lot::Mutex;
use time::OffsetDateTime;

use crate::suggest::closest;

/// A zone of the IANA database that is compiled in. Without a name times are read as of UTC, and
/// written as they stand.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct SiteZone(Option<&'static TimeZone>);

impl Eq for SiteZone {}

impl Hash for SiteZone {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.and_then(TimeZone::iana_name).hash(state);
    }
}

/// The zones that sites of this process have named. A zone stays, as there are some 600.
static NAMED: Mutex<BTreeMap<String, &'static TimeZone>> = Mutex::new(BTreeMap::new());

impl SiteZone {
    /// The zone of a name such as `Europe/Vienna`. The error says what is wrong with the name.
    pub fn find(name: &str) -> Result<Self, String> {
        let database = TimeZoneDatabase::bundled();
        let Ok(zone) = database.get(name) else {
            let names: Vec<String> = database.available().map(|name| name.to_string()).collect();
            return Err(match closest(name, names.iter().map(String::as_str)) {
                Some(near) => format!("there is no time zone `{name}`; did you mean `{near}`?"),
                None => format!(
                    "there is no time zone `{name}`: a name of the IANA database is expected, such as Europe/Vienna"
                ),
            });
        };
        let mut named = NAMED.lock();
        let key = zone.iana_name().unwrap_or(name).to_owned();
        let zone = named
            .entry(key)
            .or_insert_with(|| Box::leak(Box::new(zone)));
        Ok(Self(Some(zone)))
    }

    /// Its name; empty without a zone.
    pub fn name(self) -> &'static str {
        self.0.and_then(TimeZone::iana_name).unwrap_or_default()
    }

    /// Seconds east of UTC at a moment, which is given in seconds since 1970; none without a zone.
    pub fn offset_at(self, unix: i64) -> Option<i32> {
        let moment = Timestamp::from_second(unix).ok()?;
        Some(self.0?.to_offset(moment).seconds())
    }

    /// Seconds east of UTC where clocks show this time, which is given as if it were of UTC; none
    /// without a zone. Of an hour that comes twice it is the first, and a time that clocks leave
    /// out counts by the offset before.
    pub fn offset_of_local(self, local: i64) -> Option<i32> {
        let shown = Offset::UTC.to_datetime(Timestamp::from_second(local).ok()?);
        let moment = self.0?.to_ambiguous_timestamp(shown).compatible().ok()?;
        i32::try_from(local - moment.as_second()).ok()
    }

    /// Moves a moment to the date, the time and the offset of the zone. A time without an offset is
    /// one of the zone, and a day without a time is the same day everywhere; without a zone every
    /// moment stays as it is.
    #[must_use]
    pub fn shown(self, mut moment: Moment) -> Moment {
        let Some(mut clock) = moment.time else {
            return moment;
        };
        if clock.offset.is_none() {
            clock.offset = self.offset_of_local(moment.unix());
            moment.time = Some(clock);
        }
        let unix = moment.unix();
        let shifted = self.offset_at(unix).and_then(|offset| {
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
            Some(Moment { date, time })
        });
        shifted.unwrap_or(moment)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_zone_is_known_by_its_name() {
        let vienna = SiteZone::find("Europe/Vienna").unwrap();
        assert_eq!(SiteZone::find("europe/vienna").unwrap(), vienna);
        assert_ne!(SiteZone::find("UTC").unwrap(), SiteZone::default());
        assert_eq!(
            SiteZone::find("Europe/Viena").unwrap_err(),
            "there is no time zone `Europe/Viena`; did you mean `Europe/Vienna`?"
        );
        for wrong in ["", "CEST+1", "../etc/passwd", "Mars/Olympus", "\0"] {
            assert!(SiteZone::find(wrong).is_err(), "{wrong}");
        }
    }

    /// Vienna, in 2026: 02:00 becomes 03:00 on 29 March at 1:00 UTC, and 03:00 becomes 02:00 on 25
    /// October at 1:00 UTC.
    #[test]
    fn clocks_change_twice_a_year() {
        let vienna = SiteZone::find("Europe/Vienna").unwrap();
        let (spring, autumn) = (1_774_746_000, 1_792_890_000);
        assert_eq!(vienna.offset_at(spring - 1), Some(3600));
        assert_eq!(vienna.offset_at(spring), Some(7200));
        assert_eq!(vienna.offset_at(autumn - 1), Some(7200));
        assert_eq!(vienna.offset_at(autumn), Some(3600));
        // 01:59:59, 02:30 (left out) and 03:00.
        assert_eq!(vienna.offset_of_local(spring + 3599), Some(3600));
        assert_eq!(vienna.offset_of_local(spring + 5400), Some(3600));
        assert_eq!(vienna.offset_of_local(spring + 7200), Some(7200));
        // 02:30 (twice) and 03:00.
        assert_eq!(vienna.offset_of_local(autumn + 5400), Some(7200));
        assert_eq!(vienna.offset_of_local(autumn + 7200), Some(3600));
        assert_eq!(vienna.offset_of_local(i64::MAX), None);
        assert_eq!(SiteZone::default().offset_of_local(autumn), None);
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
                "2026-03-29 3:30 +7200",
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
            let moment = vienna.shown(Moment::parse(text).unwrap());
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
            "0001-01-01T00:00",
        ] {
            assert!(vienna.shown(Moment::parse(text).unwrap()).time.is_some());
        }
    }
}
