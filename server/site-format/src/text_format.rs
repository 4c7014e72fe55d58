//! The types of parameters that are texts of a certain form: `date`, `email` and their like.
//!
//! Each value has one spelling, so that two requests for the same value ask for the same page.

use std::borrow::Cow;

use millpond_data::Moment;

use crate::{decimal, slug::slug, time_zone::SiteZone};

/// A form of text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TextFormat {
    /// A day that exists, `2026-03-03`.
    Date,
    /// A time of day, `14:05` or `14:05:06`.
    Time,
    /// A moment. It becomes `2026-03-03 14:05:06` in UTC, as SQLite's `datetime('now')` writes it.
    DateTime,
    /// A month, `2026-03`.
    Month,
    /// An address as browsers take it in `<input type=email>`.
    Email,
    /// An address of the web, with its scheme.
    Url,
    /// `123e4567-e89b-12d3-a456-426614174000`, in small letters.
    Uuid,
    /// A part of an address that can be read, as the filter `slug` makes it.
    Slug,
    /// A number with all its digits, `12.5`.
    Decimal,
}

/// The formats by the names that `-- param:` lines give them.
pub const FORMATS: [(&str, TextFormat); 9] = [
    ("date", TextFormat::Date),
    ("time", TextFormat::Time),
    ("datetime", TextFormat::DateTime),
    ("month", TextFormat::Month),
    ("email", TextFormat::Email),
    ("url", TextFormat::Url),
    ("uuid", TextFormat::Uuid),
    ("slug", TextFormat::Slug),
    ("decimal", TextFormat::Decimal),
];

impl TextFormat {
    pub fn name(self) -> &'static str {
        let mut known = FORMATS.iter();
        known
            .find(|(_, format)| *format == self)
            .map_or("", |(name, _)| name)
    }

    /// Describes a right value, to stand behind "must be".
    pub fn wanted(self) -> &'static str {
        match self {
            Self::Date => "a date such as 2026-03-31",
            Self::Time => "a time such as 14:05",
            Self::DateTime => "a date and a time such as 2026-03-31T14:05",
            Self::Month => "a month such as 2026-03",
            Self::Email => "an e-mail address",
            Self::Url => "an address that begins with https:// or http://",
            Self::Uuid => "a UUID",
            Self::Decimal => "a number such as 12.50",
            Self::Slug => "small letters and digits with hyphens between, such as tea-and-cake",
        }
    }

    /// Returns the cast that gives a parameter its type on PostgreSQL.
    pub fn cast(self, is_list: bool) -> &'static str {
        match (self, is_list) {
            (Self::Date, false) => "::date",
            (Self::Date, true) => "::date[]",
            (Self::Time, false) => "::time",
            (Self::Time, true) => "::time[]",
            (Self::DateTime, false) => "::timestamptz",
            (Self::DateTime, true) => "::timestamptz[]",
            (Self::Month | Self::Email | Self::Url | Self::Slug, false) => "::text",
            (Self::Month | Self::Email | Self::Url | Self::Slug, true) => "::text[]",
            (Self::Decimal, false) => "::numeric",
            (Self::Decimal, true) => "::numeric[]",
            (Self::Uuid, false) => "::uuid",
            (Self::Uuid, true) => "::uuid[]",
        }
    }

    /// True for those whose values have an order that people know.
    pub fn is_ordered(self) -> bool {
        matches!(
            self,
            Self::Date | Self::Time | Self::DateTime | Self::Month | Self::Decimal
        )
    }

    /// True if an empty text may stand for no value.
    pub fn may_be_empty(self) -> bool {
        matches!(self, Self::Email | Self::Url | Self::Slug)
    }

    /// The one spelling of the value that a text is; none if it is no such value. A moment that
    /// names no offset is of the zone, which its one spelling does not depend on.
    pub fn read(self, text: &str, zone: SiteZone) -> Option<Cow<'_, str>> {
        // Browsers do the same with what is typed.
        let text = text.trim_matches(|c: char| c.is_ascii_whitespace());
        match self {
            Self::Date => {
                let moment = Moment::parse(text)?;
                moment.time.is_none().then_some(Cow::Borrowed(text))
            }
            Self::Time => {
                let is_short = text.len() == 5;
                let moment = Moment::parse(&format!("2000-01-01T{text}"))?;
                let clock = moment.time?;
                let is_plain = clock.offset.is_none() && clock.second < 60;
                let is_written = (is_short || text.len() == 8) && clock.fraction == 0;
                let spelt = text.strip_suffix(":00").filter(|_| !is_short);
                (is_plain && is_written).then_some(Cow::Borrowed(spelt.unwrap_or(text)))
            }
            Self::DateTime => {
                let moment = zone.shown(Moment::parse(text)?);
                moment.utc_text().map(Cow::Owned)
            }
            Self::Month => {
                let first = format!("{text}-01");
                let moment = Moment::parse(&first).filter(|_| text.len() == 7)?;
                moment.time.is_none().then_some(Cow::Borrowed(text))
            }
            Self::Decimal => decimal::read(text),
            Self::Slug => (!text.is_empty() && slug(text) == text).then_some(Cow::Borrowed(text)),
            Self::Email => is_email(text).then_some(Cow::Borrowed(text)),
            Self::Url => is_web_address(text).then_some(Cow::Borrowed(text)),
            Self::Uuid => {
                let is_one = text.len() == 36
                    && text.bytes().enumerate().all(|(at, byte)| match at {
                        8 | 13 | 18 | 23 => byte == b'-',
                        _ => byte.is_ascii_hexdigit(),
                    });
                is_one.then(
                    || match text.bytes().any(|byte| byte.is_ascii_uppercase()) {
                        true => Cow::Owned(text.to_ascii_lowercase()),
                        false => Cow::Borrowed(text),
                    },
                )
            }
        }
    }
}

/// A "valid e-mail address" of the HTML living standard.
fn is_email(text: &str) -> bool {
    const SIGNS: &[u8] = b".!#$%&'*+/=?^_`{|}~-";
    let Some((name, domain)) = text.rsplit_once('@') else {
        return false;
    };
    let is_sign = |byte: u8| byte.is_ascii_alphanumeric() || SIGNS.contains(&byte);
    !name.is_empty() && name.bytes().all(is_sign) && domain.split('.').all(is_label)
}

/// A part of a domain's name.
fn is_label(label: &str) -> bool {
    let is_inner = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
    (1..=63).contains(&label.len())
        && label.bytes().all(is_inner)
        && !label.starts_with('-')
        && !label.ends_with('-')
}

/// True for an absolute `http` or `https` address with a host. Other schemes, such as
/// `javascript:`, would be run where a page makes a link of them.
fn is_web_address(text: &str) -> bool {
    let Some((scheme, rest)) = text.split_once("://") else {
        return false;
    };
    let is_web = ["http", "https"]
        .iter()
        .any(|known| scheme.eq_ignore_ascii_case(known));
    let host = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let is_clean = |c: char| !c.is_whitespace() && !c.is_control() && !"<>\"`{}|\\^".contains(c);
    let host = host.rsplit('@').next().unwrap_or_default();
    let has_host = host.starts_with(|c: char| c.is_alphanumeric() || c == '[');
    is_web && has_host && text.chars().all(is_clean)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(format: TextFormat, good: &[(&str, &str)], bad: &[&str]) {
        let utc = SiteZone::default();
        let vienna = SiteZone::find("Europe/Vienna").unwrap();
        for (text, expected) in good {
            assert_eq!(format.read(text, utc).as_deref(), Some(*expected), "{text}");
            // In links of the page, which any visitor's request reads again.
            for zone in [utc, vienna] {
                let again = format.read(expected, zone);
                assert_eq!(again.as_deref(), Some(*expected), "{text}");
            }
        }
        for text in bad {
            assert_eq!(format.read(text, utc), None, "{text}");
            assert_eq!(format.read(text, vienna), None, "{text}");
        }
    }

    #[test]
    fn days_and_times_exist_and_have_one_spelling() {
        check(
            TextFormat::Date,
            &[("2026-03-31", "2026-03-31"), (" 2024-02-29 ", "2024-02-29")],
            &[
                "",
                "2026-02-30",
                "2026-3-1",
                "0000-01-01",
                "2026-03-31T10:00",
                "31.3.2026",
                "infinity",
            ],
        );
        check(
            TextFormat::Time,
            &[
                ("14:05", "14:05"),
                ("00:00:00", "00:00"),
                ("14:05:06", "14:05:06"),
            ],
            &[
                "",
                "24:00",
                "14:5",
                "14",
                "14:05Z",
                "14:05:60",
                "14:05:06.5",
                "14:05+01",
            ],
        );
        check(
            TextFormat::DateTime,
            &[
                ("2026-03-31T14:05", "2026-03-31 14:05:00"),
                ("2026-03-31 14:05:06", "2026-03-31 14:05:06"),
                ("2026-03-31T14:05:06.250Z", "2026-03-31 14:05:06.25"),
                ("2026-03-31T00:30:00+02:00", "2026-03-30 22:30:00"),
                ("2026-12-31T23:30-01:00", "2027-01-01 00:30:00"),
            ],
            &[
                "2026-03-31",
                "2026-02-30T10:00",
                "2026-03-31T25:00",
                "now",
                "9999-12-31T23:59-01",
            ],
        );
    }

    #[test]
    fn months_exist_and_slugs_are_what_the_filter_makes() {
        check(
            TextFormat::Month,
            &[("2026-11", "2026-11"), (" 2024-02 ", "2024-02")],
            &[
                "",
                "2026-13",
                "2026-00",
                "2026-1",
                "2026-11-03",
                "0000-01",
                "abc",
                "26-11-0",
            ],
        );
        check(
            TextFormat::Slug,
            &[
                ("tea", "tea"),
                (" tea-and-7-cakes ", "tea-and-7-cakes"),
                ("чай", "чай"),
            ],
            &[
                "", "Tea", "-tea", "tea-", "a--b", "a b", "a/b", "größe", "..", "a.b", "a_b",
            ],
        );
    }

    #[test]
    fn addresses_are_those_that_browsers_take() {
        check(
            TextFormat::Email,
            &[
                ("ann@example.org", "ann@example.org"),
                (" a+b'c@x ", "a+b'c@x"),
            ],
            &[
                "",
                "ann",
                "@x",
                "a@",
                "a b@x.org",
                "a@-x.org",
                "a@x..org",
                "a@x.org\nb",
                "ä@x.org",
                "a@b@c",
            ],
        );
        check(
            TextFormat::Url,
            &[
                ("https://example.org/a?b#c", "https://example.org/a?b#c"),
                ("HTTP://[::1]:80", "HTTP://[::1]:80"),
            ],
            &[
                "",
                "example.org",
                "javascript://x%0aalert(1)",
                "https://",
                "https:///x",
                "http://a b",
                "ftp://x",
                "https://x/\"onclick",
            ],
        );
        check(
            TextFormat::Uuid,
            &[(
                "123E4567-E89B-12D3-A456-426614174000",
                "123e4567-e89b-12d3-a456-426614174000",
            )],
            &[
                "",
                "123e4567e89b12d3a456426614174000",
                "123e4567-e89b-12d3-a456-42661417400g",
            ],
        );
    }
}
