//! `timeago`: how long ago something was, and until when the page that says so is right.
//!
//! A page from memory is given for as long as nothing changes, but "3 minutes ago" is right for a
//! minute. So each text that this filter makes says when the next one would differ, and the page
//! ends at the earliest of these moments (coherence.md, rule 14).

use std::{cell::Cell, time::Duration};

use base_clock::Boottime;
use minijinja::{Error, ErrorKind, value::Value};

use super::{dates::moment, fault::given};
use millpond_site_format::locale::{Formats, Words};

/// The time that one render shows.
#[derive(Clone, Copy)]
struct RenderTime {
    /// Seconds since 1970; one moment for the whole page.
    now: i64,
    /// The second at which the first text of the page would be another.
    next: Option<i64>,
}

thread_local! {
    /// Time of the render which runs on this thread. A render never leaves its thread.
    static RENDER: Cell<Option<RenderTime>> = const { Cell::new(None) };
}

/// Runs a render with the present time. Also gives the moment at which what was rendered is no
/// longer right, if it shows a time that passes.
pub fn with_present_time<T>(render: impl FnOnce() -> T) -> (T, Option<Boottime>) {
    let began = Boottime::now();
    let unix = Duration::from_nanos(base_clock::unix_nanos());
    RENDER.set(Some(RenderTime {
        now: unix.as_secs() as i64,
        next: None,
    }));
    let rendered = render();
    let next = RENDER.take().and_then(|time| time.next);
    let end = next.map(|next| {
        let next = Duration::from_secs(u64::try_from(next).unwrap_or(0));
        began.plus(next.saturating_sub(unix))
    });
    (rendered, end)
}

/// The time between now and a moment, in words of the site's locale.
pub(super) fn timeago(value: &Value, formats: Formats) -> Result<String, Error> {
    let Some(value) = given("timeago", value)? else {
        return Ok(String::new());
    };
    let Some(moment) = moment("timeago", value, formats.zone)? else {
        return Ok(value.to_string());
    };
    let Some(mut time) = RENDER.get() else {
        return Err(Error::new(
            ErrorKind::UnknownFilter,
            "filter `timeago` works in pages only: an error page is made once, and would show the \
             time of that moment; use `date` there",
        ));
    };
    let (text, next) = words_of(moment.unix(), time.now, formats.locale.words);
    time.next = time.next.into_iter().chain([next]).min();
    RENDER.set(Some(time));
    Ok(text)
}

const MINUTE: i64 = 60;
const HOUR: i64 = 60 * MINUTE;
const DAY: i64 = 24 * HOUR;
const MONTH: i64 = 30 * DAY;
const YEAR: i64 = 365 * DAY;
const UNITS: [i64; 5] = [MINUTE, HOUR, DAY, MONTH, YEAR];

/// The text at the second `now`, and the next second at which it is another.
fn words_of(then: i64, now: i64, words: &Words) -> (String, i64) {
    let age = now - then;
    let distance = age.abs();
    let Some(at) = UNITS.iter().rposition(|unit| distance >= *unit) else {
        return (words.now.to_owned(), then + MINUTE);
    };
    let unit = UNITS[at];
    let count = match unit {
        // Twelve months of thirty days are no year.
        MONTH => (distance / MONTH).min(11),
        _ => distance / unit,
    };
    let (one, several) = words.units[at];
    let duration = format!("{count} {}", if count == 1 { one } else { several });
    if age < 0 {
        // One second below the unit, the count is lower.
        return (
            words.future.replace("{}", &duration),
            then - count * unit + 1,
        );
    }
    let next = match unit {
        MONTH if count == 11 => YEAR,
        _ => (count + 1) * unit,
    };
    (words.past.replace("{}", &duration), then + next)
}

#[cfg(test)]
mod tests {
    use super::*;
    use millpond_site_format::locale::Locale;

    fn english() -> &'static Words {
        Locale::default_locale().words
    }

    #[test]
    fn the_time_is_told_in_the_largest_unit() {
        for (age, expected) in [
            (0, "just now"),
            (59, "just now"),
            (60, "1 minute ago"),
            (3599, "59 minutes ago"),
            (3600, "1 hour ago"),
            (2 * DAY - 1, "1 day ago"),
            (MONTH - 1, "29 days ago"),
            (MONTH, "1 month ago"),
            (YEAR - 1, "11 months ago"),
            (YEAR, "1 year ago"),
            (-59, "just now"),
            (-60, "in 1 minute"),
            (-3 * DAY, "in 3 days"),
        ] {
            assert_eq!(
                words_of(1_000_000_000 - age, 1_000_000_000, english()).0,
                expected
            );
        }
        let french = Locale::find("fr").unwrap().words;
        assert_eq!(words_of(0, 5 * HOUR, french).0, "il y a 5 heures");
    }

    /// The text is the same until the second that is given, and another from then on.
    #[test]
    fn a_text_ends_exactly_when_the_next_differs() {
        let mut now = -3 * YEAR;
        let mut texts = 0;
        while now < 3 * YEAR {
            let (text, next) = words_of(0, now, english());
            assert!(next > now, "{now}");
            for (at, is_same) in [
                (next - 1, true),
                (now + (next - now) / 2, true),
                (next, false),
            ] {
                let is_equal = words_of(0, at, english()).0 == text;
                assert_eq!(is_equal, is_same, "{text} at {at}");
            }
            now = next;
            texts += 1;
        }
        assert_eq!(texts, 3 + 2 * (11 + 29 + 23 + 59) + 1 + 2);
    }

    #[test]
    fn a_page_ends_with_its_first_text_that_changes() {
        let seconds = base_clock::unix_nanos() as i64 / 1_000_000_000;
        let formats = Formats::default();
        let (_, end) = with_present_time(|| {
            timeago(&Value::from(seconds - 5 * DAY), formats).unwrap();
            timeago(&Value::from(seconds - 90), formats).unwrap();
        });
        let left = end.unwrap().since(Boottime::now());
        assert!(left <= Duration::from_secs(30), "{left:?}");
        assert_eq!(with_present_time(|| ()).1, None);
        assert!(timeago(&Value::from(seconds), formats).is_err());
    }
}
