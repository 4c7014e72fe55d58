//! The day of a measurement.

use time::OffsetDateTime;

/// `2026-11-26`, in UTC, of seconds since 1970; `None` for 0, which is no stored time.
pub(crate) fn of(unix_s: u64) -> Option<String> {
    let seconds = i64::try_from(unix_s).ok().filter(|seconds| *seconds > 0)?;
    let at = OffsetDateTime::from_unix_timestamp(seconds).ok()?;
    Some(at.date().to_string())
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_day_is_written_as_year_month_day() {
        assert_eq!(super::of(1_795_910_400).as_deref(), Some("2026-11-29"));
        assert_eq!((super::of(0), super::of(u64::MAX)), (None, None));
    }
}
