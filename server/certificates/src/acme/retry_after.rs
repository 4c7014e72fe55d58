//! `Retry-After` (RFC 9110 section 10.2.3).

use std::time::{Duration, SystemTime};

/// Longest time that an authority's wish is followed: a mistake there must not stop renewals.
pub(super) const LONGEST: Duration = Duration::from_secs(7 * 24 * 60 * 60);

/// The moment that the field names, in seconds from now or as a date; at most a week from `now`.
pub(super) fn parse(text: &str, now: SystemTime) -> Option<SystemTime> {
    let moment = match text.trim().parse::<u32>() {
        Ok(seconds) => now + Duration::from_secs(seconds.into()),
        Err(_) => httpdate::parse_http_date(text.trim()).ok()?,
    };
    Some(moment.min(now + LONGEST))
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, UNIX_EPOCH};

    use super::{LONGEST, parse};

    #[test]
    fn seconds_and_dates_are_read() {
        let now = UNIX_EPOCH + Duration::from_secs(784_111_700);
        let in_a_minute = now + Duration::from_secs(60);
        assert_eq!(parse("60", now), Some(in_a_minute));
        let date = parse("Sun, 06 Nov 1994 08:49:37 GMT", now).unwrap();
        assert_eq!(date, UNIX_EPOCH + Duration::from_secs(784_111_777));
        assert_eq!(parse("4000000000", now), Some(now + LONGEST));
        assert_eq!(parse("soon", now), None);
    }
}
