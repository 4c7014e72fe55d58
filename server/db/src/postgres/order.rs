//! The order of rows by a column, as far as changes can be told by it (coherence.md, rule 23).

use super::tags;
use crate::Value;
use crate::column_set::ColumnSet;
use crate::order::{OrderHash, OrderPlace};

const DAY: i64 = 86_400_000_000;

/// How the values of a column are ordered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum OrderClass {
    /// `smallint`, `integer`, `bigint`.
    Integer,
    Date,
    /// Without a zone.
    Timestamp,
    TimestampTz,
    Numeric,
}

/// One term of ORDER BY.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct RowOrder {
    pub(crate) class: OrderClass,
    pub(crate) is_descending: bool,
    pub(crate) nulls_first: bool,
}

/// The names of a family, a column and an order, hashed once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct OrderName {
    pub(crate) hash: OrderHash,
    pub(crate) order: RowOrder,
}

impl OrderName {
    /// For queries that read these columns.
    pub(crate) fn new(family: u32, column: &str, order: RowOrder, reads: &ColumnSet) -> Self {
        let hash = tags::hash((5_u8, family, column, order, reads));
        Self {
            hash: OrderHash::new(hash, order.is_descending),
            order,
        }
    }

    /// The place of a stored value, from the text in which the feed brings it. What is not as
    /// expected may have any place.
    pub(crate) fn place_of_text(self, text: &[u8]) -> OrderPlace {
        let place = std::str::from_utf8(text).ok();
        place
            .and_then(|text| self.place_as_written(text))
            .unwrap_or(OrderPlace::FIRST)
    }

    pub(crate) fn place_of_null(self) -> OrderPlace {
        let ascending = match self.order.is_descending == self.order.nulls_first {
            true => OrderPlace::LAST,
            false => OrderPlace::FIRST,
        };
        self.hash.place(ascending)
    }

    /// The place of a value of a result; none for a null and what is not as expected.
    pub(crate) fn place_of(self, value: &Value) -> Option<OrderPlace> {
        match (self.order.class, value) {
            (OrderClass::Integer, Value::Integer(integer)) => Some(self.place(*integer as f64)),
            (OrderClass::Integer, _) => None,
            (_, Value::Text(text)) => self.place_as_written(text),
            _ => None,
        }
    }

    /// The place of a value that is written so. Numbers of more digits than a double has are at the
    /// place of the nearest one.
    pub(crate) fn place_as_written(self, text: &str) -> Option<OrderPlace> {
        let number = match self.order.class {
            OrderClass::Integer => text.parse::<i64>().ok()? as f64,
            // Behind all others, which a double's bits need not say.
            OrderClass::Numeric => Some(text.parse::<f64>().ok()?).filter(|n| !n.is_nan())?,
            class => microseconds(class, text)? as f64,
        };
        Some(self.place(number))
    }

    fn place(self, number: f64) -> OrderPlace {
        self.hash.place(OrderPlace::number(number))
    }
}

/// A date or a time as microseconds, from the text that PostgreSQL writes with `datestyle = ISO`,
/// or as RFC 3339 has it. Other styles begin with no year of four digits; these, infinity, and
/// years before 1 and after 9999 are not read.
fn microseconds(class: OrderClass, text: &str) -> Option<i64> {
    let (date, rest) = text.split_at_checked(10)?;
    let day = days(date)? * DAY;
    match class {
        OrderClass::Date => rest.is_empty().then_some(day),
        OrderClass::Timestamp => Some(day + time(rest.strip_prefix(' ')?)?),
        OrderClass::TimestampTz => {
            let rest = rest.strip_prefix([' ', 'T'])?;
            let zone = rest.find(['+', '-', 'Z'])?;
            let (at, zone) = rest.split_at(zone);
            Some(day + time(at)? - offset(zone)?)
        }
        OrderClass::Integer | OrderClass::Numeric => None,
    }
}

/// The days since 1970-01-01, from `YYYY-MM-DD` (Hinnant, "chrono-compatible low-level date
/// algorithms", days_from_civil).
fn days(date: &str) -> Option<i64> {
    let mut parts = date.splitn(3, '-');
    let mut part = |length: usize| digits(parts.next()?, length);
    let (year, month, day) = (part(4)?, part(2)?, part(2)?);
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let of_era = year.rem_euclid(400);
    let of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    Some(era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468)
}

/// `HH:MM:SS`, with up to six digits behind a point.
fn time(text: &str) -> Option<i64> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let mut parts = whole.splitn(3, ':');
    let mut part = || digits(parts.next()?, 2);
    let seconds = (part()? * 60 + part()?) * 60 + part()?;
    if fraction.len() > 6 {
        return None;
    }
    let fraction = digits(&format!("{fraction:0<6}"), 6)?;
    Some(seconds * 1_000_000 + fraction)
}

/// `Z`, `+HH`, `-HH:MM` or `+HH:MM:SS`.
fn offset(zone: &str) -> Option<i64> {
    let (sign, rest) = zone.split_at_checked(1)?;
    if sign == "Z" {
        return rest.is_empty().then_some(0);
    }
    let parts: Option<Vec<i64>> = rest.split(':').map(|part| digits(part, 2)).collect();
    let seconds = match parts?.as_slice() {
        [hours] => hours * 3_600,
        [hours, minutes] => hours * 3_600 + minutes * 60,
        [hours, minutes, seconds] => hours * 3_600 + minutes * 60 + seconds,
        _ => return None,
    };
    let microseconds = seconds * 1_000_000;
    Some(if sign == "-" {
        -microseconds
    } else {
        microseconds
    })
}

/// A number of this many digits.
fn digits(text: &str, length: usize) -> Option<i64> {
    let is_number = text.len() == length && text.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| text.parse().ok())?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_in_their_order_in_all_forms() {
        let tz = |text| microseconds(OrderClass::TimestampTz, text);
        assert_eq!(tz("1970-01-01 00:00:00+00"), Some(0));
        assert_eq!(tz("1970-01-01T00:00:01.5Z"), Some(1_500_000));
        assert_eq!(
            tz("2024-03-01 00:30:00+05:30"),
            tz("2024-02-29 19:00:00+00")
        );
        assert_eq!(tz("2024-02-29 19:00:00-08"), tz("2024-03-01T03:00:00Z"));
        assert_eq!(
            tz("1890-01-01 00:53:28+00:53:28"),
            tz("1890-01-01 00:00:00+00")
        );
        let at = |text| microseconds(OrderClass::Timestamp, text);
        let all = [
            "0001-01-01 00:00:00",
            "1969-12-31 23:59:59.999999",
            "1970-01-01 00:00:00",
            "2000-02-29 12:00:00.000001",
            "2000-03-01 00:00:00",
            "9999-12-31 23:59:59",
        ];
        let numbers: Vec<i64> = all.into_iter().map(|text| at(text).unwrap()).collect();
        assert!(numbers.is_sorted(), "{numbers:?}");
        assert!(numbers.windows(2).all(|pair| pair[0] < pair[1]));
        assert_eq!(
            microseconds(OrderClass::Date, "2000-01-01"),
            Some(10_957 * DAY)
        );
    }

    #[test]
    fn what_is_written_otherwise_is_not_read() {
        for text in [
            "infinity",
            "12024-01-01 00:00:00",
            "0044-03-15 00:00:00 BC",
            "17.12.1997 07:37:16.00",
            "12/17/1997 07:37:16",
            "Wed Dec 17 07:37:16 1997",
            "2024-01-01 00:00:00+00",
            "2024-01-01",
            "2024-01-01 00:00",
            "2024-01-01 00:00:00.1234567",
            "2024-01-01 00:00:0é",
        ] {
            assert_eq!(microseconds(OrderClass::Timestamp, text), None, "{text}");
        }
        assert_eq!(
            microseconds(OrderClass::TimestampTz, "2024-01-01 00:00:00"),
            None
        );
        assert_eq!(
            microseconds(OrderClass::TimestampTz, "2024-01-01 00:00:00+0"),
            None
        );
        assert_eq!(microseconds(OrderClass::Date, "2024-01-01 BC"), None);
    }

    #[test]
    fn numbers_have_the_places_of_their_doubles() {
        let order = RowOrder {
            class: OrderClass::Numeric,
            is_descending: false,
            nulls_first: false,
        };
        let name = OrderName::new(7, "a", order, &ColumnSet::All);
        let all = [
            "-Infinity",
            "-1e500",
            "-2.5",
            "-0.00000000000000000001",
            "0.000",
            "12.34",
            "12.3400000000000000000000001",
            "99999999999999999999",
            "Infinity",
        ];
        let places = all.map(|text| name.place_of_text(text.as_bytes()));
        assert!(places.is_sorted(), "{places:?}");
        assert_eq!(places[5], name.place_of(&"12.340".into()).unwrap());
        // It is behind all numbers, so it may be anywhere, and is no last one.
        assert_eq!(name.place_of(&"NaN".into()), None);
        assert_eq!(name.place_of_text(b"NaN"), OrderPlace::FIRST);
    }

    #[test]
    fn nulls_stand_where_the_order_has_them() {
        for (is_descending, nulls_first) in
            [(false, false), (false, true), (true, false), (true, true)]
        {
            let order = RowOrder {
                class: OrderClass::Integer,
                is_descending,
                nulls_first,
            };
            let name = OrderName::new(7, "a", order, &ColumnSet::All);
            let (null, value) = (
                name.place_of_null(),
                name.place_of(&Value::Integer(7)).unwrap(),
            );
            assert_eq!(null < value, nulls_first, "{order:?}");
        }
    }
}
