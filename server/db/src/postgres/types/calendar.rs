//! Dates and times as PostgreSQL writes them with `datestyle = ISO`.

use std::fmt::Write as _;

const DAY: i64 = 86_400_000_000;

/// `date`: days since 2000-01-01.
pub(super) fn date(days: i32) -> String {
    match days {
        i32::MAX => "infinity".to_owned(),
        i32::MIN => "-infinity".to_owned(),
        _ => {
            let mut text = String::with_capacity(10);
            let era = push_date(&mut text, days.into());
            text.push_str(era);
            text
        }
    }
}

/// `time`: microseconds since midnight.
pub(super) fn time(microseconds: i64) -> String {
    let mut text = String::with_capacity(15);
    push_time(&mut text, microseconds);
    text
}

/// `timestamp` and `timestamptz`: microseconds since 2000-01-01. With a zone the session's, which
/// is UTC: as RFC 3339 writes it.
pub(super) fn timestamp(microseconds: i64, zone: bool) -> String {
    match microseconds {
        i64::MAX => return "infinity".to_owned(),
        i64::MIN => return "-infinity".to_owned(),
        _ => {}
    }
    let mut text = String::with_capacity(27);
    let era = push_date(&mut text, microseconds.div_euclid(DAY));
    text.push(if zone { 'T' } else { ' ' });
    push_time(&mut text, microseconds.rem_euclid(DAY));
    if zone {
        text.push('Z');
    }
    text.push_str(era);
    text
}

/// Writes the day; gives what stands at the very end, ` BC` before year 1.
fn push_date(text: &mut String, days: i64) -> &'static str {
    // From the proleptic Gregorian calendar's day 0, 0000-03-01, in eras of 400 years (Hinnant,
    // "chrono-compatible low-level date algorithms", civil_from_days).
    let day = days + 730_425;
    let era = day.div_euclid(146_097);
    let of_era = day.rem_euclid(146_097);
    let year_of_era = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted = (5 * of_year + 2) / 153;
    let day = of_year - (153 * shifted + 2) / 5 + 1;
    let month = if shifted < 10 {
        shifted + 3
    } else {
        shifted - 9
    };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    let (year, era) = if year > 0 {
        (year, "")
    } else {
        (1 - year, " BC")
    };
    // A String takes all that is written.
    let _ = write!(text, "{year:04}-{month:02}-{day:02}");
    era
}

fn push_time(text: &mut String, microseconds: i64) {
    let seconds = microseconds / 1_000_000;
    let (hour, minute, second) = (seconds / 3_600, seconds / 60 % 60, seconds % 60);
    let _ = write!(text, "{hour:02}:{minute:02}:{second:02}");
    let fraction = microseconds % 1_000_000;
    if fraction != 0 {
        let _ = write!(text, ".{fraction:06}");
        text.truncate(text.trim_end_matches('0').len());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_and_moments_have_postgresqls_form() {
        assert_eq!(date(0), "2000-01-01");
        assert_eq!(date(59), "2000-02-29");
        assert_eq!(date(-1), "1999-12-31");
        assert_eq!(date(-730_119), "0001-01-01");
        assert_eq!(date(-730_120), "0001-12-31 BC");
        assert_eq!(date(i32::MIN), "-infinity");
        assert_eq!(time(86_400_000_000), "24:00:00");
        assert_eq!(time(1_500_000), "00:00:01.5");
        assert_eq!(timestamp(0, false), "2000-01-01 00:00:00");
        assert_eq!(timestamp(-1, true), "1999-12-31T23:59:59.999999Z");
        assert_eq!(timestamp(i64::MAX, true), "infinity");
    }
}
