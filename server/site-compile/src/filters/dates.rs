//! `date` and `datetime`: days, and times in the site's time zone.

use std::fmt::Write;

use minijinja::{
    Error,
    value::{Value, ValueKind},
};

use super::fault::{given, unfit, unfit_argument};
use millpond_data::{Clock, Moment};
use millpond_site_format::{
    locale::{ENGLISH, Formats, Words},
    time_zone::SiteZone,
};

pub(super) const TAKES: &str =
    "a date such as 2026-03-03 or 2026-03-03 14:05:06, or the seconds since 1970";

/// Formats that `date` takes.
const FORMATS: &str = "%Y %m %d %e %H %I %M %S %p %B %b %A %a %j %u %G %V %y %F %T %R %z %s and %%, \
                       or one of iso, rfc3339, rfc2822 and ical";

/// A day in the site's locale, or in the `format` that is given.
pub(super) fn date(
    value: &Value,
    format: Option<&str>,
    Formats { locale, zone, .. }: Formats,
) -> Result<String, Error> {
    let Some(value) = given("date", value)? else {
        return Ok(String::new());
    };
    let Some(moment) = moment("date", value, zone)? else {
        return Ok(value.to_string());
    };
    match format {
        None => write(&moment, locale.date, locale.words),
        Some("iso") => write(&moment, "%Y-%m-%d", locale.words),
        Some("rfc3339") => write(&moment, "%Y-%m-%dT%H:%M:%S", locale.words)
            .map(|text| text + &offset(&moment, true)),
        Some("ical") => Ok(ical(&moment)),
        Some("rfc2822") => write(&moment, "%a, %d %b %Y %H:%M:%S %z", &ENGLISH),
        Some(format) if format.contains('%') => write(&moment, format, locale.words),
        Some(format) => Err(unfit_argument(
            "date",
            &format!("`{format}` is no format of a date"),
            FORMATS,
        )),
    }
}

/// A day and its time of day, if it has one, in the site's locale.
pub(super) fn datetime(
    value: &Value,
    Formats { locale, zone, .. }: Formats,
) -> Result<String, Error> {
    let Some(value) = given("datetime", value)? else {
        return Ok(String::new());
    };
    let Some(moment) = moment("datetime", value, zone)? else {
        return Ok(value.to_string());
    };
    let mut text = write(&moment, locale.date, locale.words)?;
    if moment.time.is_some() {
        text.push_str(", ");
        text.push_str(&write(&moment, locale.time, locale.words)?);
    }
    Ok(text)
}

/// Returns the moment of a text, as [`Moment::parse`] reads it, or of seconds since 1970.
pub fn moment_of(value: &Value) -> Option<Moment> {
    match value.kind() {
        ValueKind::String => Moment::parse(value.as_str()?.trim()),
        ValueKind::Number if value.is_integer() => {
            Moment::of_unix(i64::try_from(value.clone()).ok()?)
        }
        _ => None,
    }
}

/// The moment of a value; none if it is a date that is written as it stands.
pub(super) fn moment(filter: &str, value: &Value, zone: SiteZone) -> Result<Option<Moment>, Error> {
    match moment_of(value).map(|moment| zone.shown(moment)) {
        None if value.as_str().is_some_and(Moment::is_beyond) => Ok(None),
        None => Err(unfit(filter, value, TAKES)),
        moment => Ok(moment),
    }
}

/// Writes a moment by a format of `strftime`.
fn write(moment: &Moment, format: &str, words: &Words) -> Result<String, Error> {
    let mut out = String::with_capacity(format.len() + 16);
    let mut letters = format.chars();
    while let Some(letter) = letters.next() {
        if letter != '%' {
            out.push(letter);
            continue;
        }
        let (is_padded, code) = match letters.next() {
            Some('-') => (false, letters.next()),
            code => (true, code),
        };
        let is_known = code.is_some_and(|code| field(&mut out, moment, code, is_padded, words));
        if !is_known {
            let code = code.map_or(String::new(), String::from);
            return Err(unfit_argument(
                "date",
                &format!("`%{code}` is no field of a date"),
                FORMATS,
            ));
        }
    }
    Ok(out)
}

/// Writes one field; false if there is none of this name.
fn field(out: &mut String, moment: &Moment, code: char, is_padded: bool, words: &Words) -> bool {
    let (date, clock) = (moment.date, moment.clock());
    let month = usize::from(u8::from(date.month())) - 1;
    let day = usize::from(date.weekday().number_days_from_monday());
    let mut number = |number: i64, width: usize| {
        let width = if is_padded { width } else { 0 };
        // Writing into a text cannot fail.
        let _ = write!(out, "{number:0width$}");
    };
    match code {
        'Y' => number(date.year().into(), 4),
        'y' => number(i64::from(date.year()).rem_euclid(100), 2),
        'm' => number(month as i64 + 1, 2),
        'd' => number(date.day().into(), 2),
        'H' => number(clock.hour.into(), 2),
        'I' => number(hour_of_twelve(clock), 2),
        'M' => number(clock.minute.into(), 2),
        'S' => number(clock.second.into(), 2),
        'j' => number(date.ordinal().into(), 3),
        'u' => number(day as i64 + 1, 1),
        'G' => number(date.to_iso_week_date().0.into(), 4),
        'V' => number(date.iso_week().into(), 2),
        's' => number(moment.unix(), 1),
        'e' if is_padded => drop(write!(out, "{:2}", date.day())),
        'e' => number(date.day().into(), 1),
        'p' => out.push_str(if clock.hour < 12 { "AM" } else { "PM" }),
        'B' => out.push_str(words.months[month]),
        'b' => out.push_str(words.short_months[month]),
        'A' => out.push_str(words.days[day]),
        'a' => out.push_str(words.short_days[day]),
        'F' => {
            return ["Y", "-", "m", "-", "d"]
                .iter()
                .all(|part| piece(out, moment, part, words));
        }
        'T' => {
            return ["H", ":", "M", ":", "S"]
                .iter()
                .all(|part| piece(out, moment, part, words));
        }
        'R' => {
            return ["H", ":", "M"]
                .iter()
                .all(|part| piece(out, moment, part, words));
        }
        'z' => out.push_str(&offset(moment, false)),
        '%' => out.push('%'),
        _ => return false,
    }
    true
}

/// Writes a field of a composed field, or what stands between two.
fn piece(out: &mut String, moment: &Moment, part: &str, words: &Words) -> bool {
    match part.chars().next() {
        Some(code) if code.is_ascii_alphabetic() => field(out, moment, code, true, words),
        _ => {
            out.push_str(part);
            true
        }
    }
}

fn hour_of_twelve(clock: Clock) -> i64 {
    match clock.hour % 12 {
        0 => 12,
        hour => hour.into(),
    }
}

/// `+0100`, or in the form of RFC 3339 `+01:00` and `Z`. What names no offset is taken for UTC.
fn offset(moment: &Moment, is_rfc3339: bool) -> String {
    let offset = moment.clock().offset.unwrap_or(0);
    let sign = if offset < 0 { '-' } else { '+' };
    let minutes = offset.unsigned_abs() / 60;
    match (is_rfc3339, offset) {
        (true, 0) => "Z".to_owned(),
        (true, _) => format!("{sign}{:02}:{:02}", minutes / 60, minutes % 60),
        (false, _) => format!("{sign}{:02}{:02}", minutes / 60, minutes % 60),
    }
}

/// `20260303T130506Z`, always in UTC, or `20260303` of a day (RFC 5545, section 3.3).
fn ical(moment: &Moment) -> String {
    let utc = moment.utc_text();
    let end = utc.as_ref().map(|_| 'Z');
    let text = utc.unwrap_or_else(|| moment.date.to_string());
    let signs = text.split('.').next().unwrap_or_default().chars();
    let bare = signs.filter_map(|sign| match sign {
        '-' | ':' => None,
        ' ' => Some('T'),
        digit => Some(digit),
    });
    bare.chain(end).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use millpond_site_format::locale::Locale;

    fn formats(tag: &str) -> Formats {
        Formats {
            locale: Locale::find(tag).unwrap(),
            ..Formats::default()
        }
    }

    const AT: &str = "2026-03-03 14:05:06+01";

    #[test]
    fn every_locale_writes_days_as_its_readers_do() {
        let list: Vec<String> = millpond_site_format::locale::LOCALES
            .iter()
            .map(|locale| {
                let text = datetime(
                    &Value::from(AT),
                    Formats {
                        locale,
                        ..Formats::default()
                    },
                )
                .unwrap();
                format!("{:5} {text}", locale.tag)
            })
            .collect();
        expect_test::expect![[r#"
                  3 March 2026, 14:05
            en    3 March 2026, 14:05
            en-US March 3, 2026, 2:05 PM
            en-GB 3 March 2026, 14:05
            de    3. März 2026, 14:05
            de-CH 3. März 2026, 14:05
            fr    3 mars 2026, 14:05
            es    3 de marzo de 2026, 14:05
            it    3 marzo 2026, 14:05
            pt-PT 3 de março de 2026, 14:05
            pt-BR 3 de março de 2026, 14:05
            nl    3 maart 2026, 14:05
            da    3. marts 2026, 14:05
            nb    3. mars 2026, 14:05
            sv    3 mars 2026, 14:05"#]]
        .assert_eq(&list.join("\n"));
    }

    #[test]
    fn formats_have_the_fields_of_strftime() {
        let german = formats("de");
        for (format, expected) in [
            ("%d.%m.%y %H:%M:%S", "03.03.26 14:05:06"),
            ("%-d.%-m.%Y, %-I %p", "3.3.2026, 2 PM"),
            ("%A, %e. %B (%a %b)", "Dienstag,  3. März (Di März)"),
            ("%j %u %G-W%V %s %z %%", "062 2 2026-W10 1772543106 +0100 %"),
            ("%F %T %R", "2026-03-03 14:05:06 14:05"),
            ("%Y%m%dT%H%M%S", "20260303T140506"),
            ("iso", "2026-03-03"),
            ("rfc3339", "2026-03-03T14:05:06+01:00"),
            ("rfc2822", "Tue, 03 Mar 2026 14:05:06 +0100"),
            ("ical", "20260303T130506Z"),
        ] {
            let text = date(&Value::from(AT), Some(format), german).unwrap();
            assert_eq!(text, expected, "{format}");
        }
        let day = |format| date(&Value::from("2026-03-03"), Some(format), german).unwrap();
        assert_eq!(day("rfc3339"), "2026-03-03T00:00:00Z");
        assert_eq!(day("ical"), "20260303");
        assert_eq!(day("rfc2822"), "Tue, 03 Mar 2026 00:00:00 +0000");
        for format in ["%q", "%", "%-", "%-ä"] {
            let error = date(&Value::from(AT), Some(format), german).unwrap_err();
            assert!(
                error.detail().unwrap().contains("is no field of a date"),
                "{format}"
            );
        }
    }

    #[test]
    fn moments_are_written_in_the_zone_of_the_site() {
        let vienna = Formats {
            zone: SiteZone::find("Europe/Vienna").unwrap(),
            ..Formats::default()
        };
        let shown = |value: Value, format| date(&value, Some(format), vienna).unwrap();
        for (value, format, expected) in [
            ("2026-07-01 22:30:00", "%F %R %z", "2026-07-02 00:30 +0200"),
            ("2026-07-01 22:30:00+00", "%FT%R", "2026-07-02T00:30"),
            (
                "2026-12-01T22:30:00Z",
                "rfc3339",
                "2026-12-01T23:30:00+01:00",
            ),
            ("2026-12-01T22:30", "rfc3339", "2026-12-01T22:30:00+01:00"),
            ("2026-12-01T22:30", "ical", "20261201T213000Z"),
            ("2026-03-29T02:30", "%F %R %z", "2026-03-29 03:30 +0200"),
            ("2026-07-01 22:30:00 -0200", "%F %R", "2026-07-02 02:30"),
            ("2026-12-01", "rfc3339", "2026-12-01T00:00:00Z"),
            ("2026-12-01 22:30", "%s", "1796164200"),
        ] {
            assert_eq!(shown(value.into(), format), expected, "{value}");
        }
        assert_eq!(shown(0.into(), "%R"), "01:00");
        let text = datetime(&Value::from("2026-07-01 22:30:00"), vienna).unwrap();
        assert_eq!(text, "2 July 2026, 00:30");
        let text = datetime(&Value::from("infinity"), vienna).unwrap();
        assert_eq!(text, "infinity");
    }

    #[test]
    fn what_is_no_date_is_named() {
        let plain = Formats::default();
        assert_eq!(date(&Value::from(()), None, plain).unwrap(), "");
        assert_eq!(date(&Value::from(""), Some("%Y"), plain).unwrap(), "");
        assert_eq!(
            datetime(&Value::from("2026-03-03"), plain).unwrap(),
            "3 March 2026"
        );
        let error = date(&Value::from("soon"), None, plain).unwrap_err();
        assert_eq!(
            error.detail(),
            Some(
                "filter `date` cannot write 'soon'; it takes a date such as 2026-03-03 or 2026-03-03 14:05:06, or the seconds since 1970"
            )
        );
    }
}
