//! Dates as the schema keeps them: `2026-03-01T09:30:00Z`, always UTC, so that text order is time
//! order.

use time::{Date, Duration, Month, OffsetDateTime, Time, UtcOffset};

use super::text::stable_hash;

/// The schema's form. Fractions of a second are dropped.
pub(super) fn format(moment: OffsetDateTime) -> String {
    let utc = moment.checked_to_offset(UtcOffset::UTC).unwrap_or(moment);
    format!(
        "{:04}-{:02}-{:02}T{:02}:{:02}:{:02}Z",
        utc.year().clamp(0, 9999),
        u8::from(utc.month()),
        utc.day(),
        utc.hour(),
        utc.minute(),
        utc.second()
    )
}

/// `YYYY-MM-DD`, and nothing else.
fn iso_date(text: &str) -> Option<Date> {
    let bytes = text.as_bytes();
    if bytes.len() != 10 || bytes[4] != b'-' || bytes[7] != b'-' {
        return None;
    }
    let number = |part: &str| {
        part.bytes()
            .all(|b| b.is_ascii_digit())
            .then(|| part.parse::<u16>().ok())
            .flatten()
    };
    let month = Month::try_from(u8::try_from(number(text.get(5..7)?)?).ok()?).ok()?;
    let day = u8::try_from(number(text.get(8..10)?)?).ok()?;
    Date::from_calendar_date(i32::from(number(text.get(..4)?)?), month, day).ok()
}

/// The first date in a line such as a change log's heading: `## [1.2.0] - 2025-03-24` or `# 1.10.1
/// (March 5th, 2025)`.
pub(super) fn find(line: &str) -> Option<String> {
    let words: Vec<&str> = line
        .split(|c: char| c.is_whitespace() || "()[],".contains(c))
        .filter(|word| !word.is_empty())
        .collect();
    let iso = words.iter().find_map(|word| iso_date(word));
    let written = || {
        words
            .windows(3)
            .find_map(|three| written_date(three[0], three[1], three[2]))
    };
    iso.or_else(written)
        .map(|date| format(date.midnight().assume_utc()))
}

/// `March`, `5th`, `2025`.
fn written_date(month: &str, day: &str, year: &str) -> Option<Date> {
    const MONTHS: [&str; 12] = [
        "jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec",
    ];
    let name = month.get(..3)?.to_ascii_lowercase();
    let month = u8::try_from(MONTHS.iter().position(|&known| known == name)? + 1).ok()?;
    let day = day
        .trim_end_matches(|c: char| c.is_ascii_alphabetic())
        .parse()
        .ok()?;
    let year = if year.len() == 4 {
        year.parse().ok()?
    } else {
        return None;
    };
    Date::from_calendar_date(year, Month::try_from(month).ok()?, day).ok()
}

/// A date for a text without one: the same for the same name, spread over the five years before
/// 2026.
pub(super) fn derived(name: &str) -> String {
    const FIVE_YEARS_S: u64 = 5 * 365 * 86_400;
    let seconds = stable_hash(name) % FIVE_YEARS_S;
    let start = Date::from_ordinal_date(2021, 1)
        .unwrap_or(Date::MIN)
        .midnight()
        .assume_utc();
    // The clock of the hash says a minute; whole minutes look less like a hash.
    format(start + Duration::seconds(i64::try_from(seconds - seconds % 60).unwrap_or(0)))
}

/// `days` before a date in the schema's form; the date itself when it cannot be moved.
pub(super) fn days_before(at: &str, days: u32) -> String {
    let moved = at
        .get(..10)
        .and_then(iso_date)
        .and_then(|date| date.checked_sub(Duration::days(i64::from(days))));
    moved.map_or_else(
        || at.to_owned(),
        |date| format(date.with_time(Time::MIDNIGHT).assume_utc()),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn change_log_dates() {
        assert_eq!(
            find("## [0.4.27] - 2025-03-24").as_deref(),
            Some("2025-03-24T00:00:00Z")
        );
        assert_eq!(
            find("# 1.10.1 (March 5th, 2025)").as_deref(),
            Some("2025-03-05T00:00:00Z")
        );
        assert_eq!(
            find("# 1.0.0 Oct 31, 2019").as_deref(),
            Some("2019-10-31T00:00:00Z")
        );
        assert_eq!(find("# 1.0.0 (unreleased)"), None);
    }

    #[test]
    fn derived_dates_are_stable() {
        assert_eq!(derived("tokio"), derived("tokio"));
        assert_ne!(derived("tokio"), derived("bytes"));
        assert!(derived("serde").as_str() >= "2021" && derived("serde").as_str() < "2026");
        assert_eq!(
            days_before("2025-03-01T12:00:00Z", 1),
            "2025-02-28T00:00:00Z"
        );
    }
}
