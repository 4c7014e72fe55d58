//! The moment at which a page ends even if nothing changes: at midnight, if it uses `:today`, and
//! at the moments of `-- until:` lines (coherence.md, rule 14).

use std::time::Duration;

use base_clock::Boottime;
use millpond_db::Value;

use crate::{filters::moment_of, object::QueryResult};
use millpond_data::Moment;
use millpond_site_format::{params::Param, time_zone::SiteZone, today};

/// For so long after a moment a result is not kept. A database may show whole seconds, and its
/// clock need not be exactly this one: what it was asked just after the moment may be of before.
const SETTLING: Duration = Duration::from_secs(10);

/// One moment by both clocks.
#[derive(Clone, Copy)]
pub struct Present {
    pub boottime: Boottime,
    /// Since 1970.
    pub unix: Duration,
}

impl Present {
    pub fn now() -> Self {
        Self {
            boottime: Boottime::now(),
            unix: Duration::from_nanos(base_clock::unix_nanos()),
        }
    }

    /// The moment of a time in seconds and nanoseconds since 1970; this one, if that is past.
    pub fn at(&self, unix: i64, fraction: u32) -> Boottime {
        let then = u64::try_from(unix).map_or(Duration::ZERO, |unix| Duration::new(unix, fraction));
        self.boottime.plus(then.saturating_sub(self.unix))
    }
}

/// One of the columns of an `-- until:` line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Until {
    /// The place of its query among the page's.
    pub query: usize,
    pub column: String,
    /// The seconds by which the page ends later than the column says.
    pub shift: i64,
    pub zone: SiteZone,
}

/// Next end of a result by the moments in its rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NextEnd {
    /// All are past, or there are none.
    None,
    At(Boottime),
    /// One was just now, or cannot be read.
    Unknown,
}

/// The moment at which the date that a page was made with is over; none if it has none.
pub fn end_of_today(params: &[Param], values: &[Value], present: Present) -> Option<Boottime> {
    let at = params.iter().position(|param| param.today.is_some())?;
    let Some(Value::Text(text)) = values.get(at) else {
        return Some(present.boottime);
    };
    let moment = Moment::parse(text);
    let next =
        moment.map(|moment| today::day_after(params[at].today.unwrap_or_default(), moment.date));
    Some(next.map_or(present.boottime, |next| present.at(next, 0)))
}

impl Until {
    /// Returns what the moments in the rows of its query come to.
    pub fn next_end(&self, result: &QueryResult, present: Present) -> NextEnd {
        let mut columns = result.data.columns.iter();
        let Some(at) = columns.position(|column| **column == *self.column) else {
            return NextEnd::Unknown;
        };
        let mut next = NextEnd::None;
        for row in &result.data.rows {
            let end = match &row[at] {
                Value::Null => continue,
                value => self.end(value, present),
            };
            next = match (next, end) {
                (_, NextEnd::Unknown) => return NextEnd::Unknown,
                (NextEnd::At(one), NextEnd::At(other)) => NextEnd::At(one.min(other)),
                (NextEnd::None, end) => end,
                (next, _) => next,
            };
        }
        next
    }

    fn end(&self, value: &Value, present: Present) -> NextEnd {
        let shown = crate::object::template_value(value);
        let Some(moment) = moment_of(&shown) else {
            return match shown.as_str().is_some_and(Moment::is_beyond) {
                true => NextEnd::None,
                false => NextEnd::Unknown,
            };
        };
        let unix = match moment.time {
            None => today::beginning_of(self.zone, moment.date),
            Some(_) => self.zone.shown(moment).unix(),
        };
        let (unix, fraction) = (unix.saturating_add(self.shift), moment.clock().fraction);
        let then = u64::try_from(unix).map_or(Duration::ZERO, |unix| Duration::new(unix, fraction));
        if then > present.unix {
            return NextEnd::At(present.at(unix, fraction));
        }
        match present.unix - then < SETTLING {
            true => NextEnd::Unknown,
            false => NextEnd::None,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use millpond_db::ResultRows;

    use super::*;
    use millpond_site_format::script::Rows;

    /// 2026-11-26 14:00:00 UTC.
    const NOON: i64 = 1_795_701_600;

    fn result(values: &[Value]) -> QueryResult {
        let rows = values.iter().map(|value| vec![1.into(), value.clone()]);
        let data = ResultRows {
            columns: ["id", "at"].map(Arc::from).into(),
            rows: rows.collect(),
        };
        QueryResult {
            rows: Rows::Many,
            data: Arc::new(data),
        }
    }

    #[test]
    fn a_page_ends_at_the_first_moment_to_come() {
        let present = Present {
            boottime: Boottime::now(),
            unix: Duration::from_millis(NOON.unsigned_abs() * 1000 + 500),
        };
        let vienna = SiteZone::find("Europe/Vienna").unwrap();
        let until = |shift| Until {
            query: 0,
            column: "at".to_owned(),
            shift,
            zone: vienna,
        };
        let after =
            |seconds: f64| NextEnd::At(present.boottime.plus(Duration::from_secs_f64(seconds)));
        for (values, shift, expected) in [
            (&[][..], 0, NextEnd::None),
            (&[Value::Null], 0, NextEnd::None),
            (&["2026-11-26 14:00:01".into()], 0, after(0.5)),
            (&["2026-11-26T14:00:00.75Z".into()], 0, after(0.25)),
            (&["2026-11-26 15:00:00".into()], -3600, NextEnd::Unknown),
            (&["2026-11-26 15:00:01".into()], -3600, after(0.5)),
            (&["2026-11-26 13:00:01".into()], 3600, after(0.5)),
            // In the zone of the site.
            (&["2026-11-26T15:00:01".into()], 0, after(0.5)),
            (&["2026-11-27".into()], 0, after(9.0 * 3600.0 - 0.5)),
            (&[(NOON + 2).into()], 0, after(1.5)),
            (
                &[
                    "2026-11-27 14:00:00".into(),
                    "2026-11-26 14:00:02".into(),
                    Value::Null,
                ],
                0,
                after(1.5),
            ),
            // Long ago, and just now.
            (&["2026-11-26 13:59:50".into()], 0, NextEnd::None),
            (&["2026-11-26 13:59:51".into()], 0, NextEnd::Unknown),
            (&["2026-11-26 14:00:00".into()], 0, NextEnd::Unknown),
            (
                &["2026-11-27 14:00:00".into(), "2026-11-26 14:00:00".into()],
                0,
                NextEnd::Unknown,
            ),
            (&["1960-01-01".into()], 0, NextEnd::None),
            (&["infinity".into()], 0, NextEnd::None),
            (&["soon".into()], 0, NextEnd::Unknown),
            (&[Value::Real(1.5)], 0, NextEnd::Unknown),
        ] {
            let found = until(shift).next_end(&result(values), present);
            assert_eq!(found, expected, "{values:?} {shift}");
        }
        let other = Until {
            column: "of".to_owned(),
            ..until(0)
        };
        assert_eq!(other.next_end(&result(&[]), present), NextEnd::Unknown);
    }
}
