//! How numbers, money and dates are written for the readers of a site.

mod table;

use strsim::jaro_winkler;

use crate::time_zone::SiteZone;
pub use table::{ENGLISH, LOCALES};

/// One way of writing. The table has those that exist.
#[derive(Debug, PartialEq, Eq)]
pub struct Locale {
    /// As in `site.locale`, such as `de-CH`; empty is the default.
    pub tag: &'static str,
    pub decimal: &'static str,
    /// Stands between groups of three digits.
    pub group: &'static str,
    /// The least number of digits before the decimal point that are grouped.
    pub grouped_from: usize,
    pub currency: CurrencyPlace,
    /// The format of a date, in the notation of the `date` filter.
    pub date: &'static str,
    pub time: &'static str,
    pub words: &'static Words,
}

/// Place of the sign of a currency.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CurrencyPlace {
    Before,
    BeforeWithSpace,
    /// After the amount and a space.
    After,
}

/// The words of a language.
#[derive(Debug, PartialEq, Eq)]
pub struct Words {
    /// As they stand in a date.
    pub months: [&'static str; 12],
    pub short_months: [&'static str; 12],
    /// Monday first.
    pub days: [&'static str; 7],
    pub short_days: [&'static str; 7],
    pub now: &'static str,
    /// With `{}` for the duration.
    pub past: &'static str,
    pub future: &'static str,
    /// Minutes, hours, days, months and years: one, and several.
    pub units: [(&'static str, &'static str); 5],
}

/// The tags that a site may name, for messages.
pub fn tags() -> String {
    let tags = LOCALES.iter().filter(|locale| !locale.tag.is_empty());
    let tags: Vec<_> = tags.map(|locale| format!("`{}`", locale.tag)).collect();
    tags.join(", ")
}

impl Locale {
    /// The locale that applies where the site names none.
    pub fn default_locale() -> &'static Self {
        &LOCALES[0]
    }

    /// The locale of a tag. The error is the one that was probably meant, if there is one.
    pub fn find(tag: &str) -> Result<&'static Self, Option<&'static str>> {
        let is_it = |locale: &&Self| !tag.is_empty() && locale.tag.eq_ignore_ascii_case(tag);
        if let Some(found) = LOCALES.iter().find(is_it) {
            return Ok(found);
        }
        let near = LOCALES
            .iter()
            .map(|locale| (jaro_winkler(tag, locale.tag), locale.tag))
            .filter(|(score, _)| *score > 0.6)
            .max_by(|(a, _), (b, _)| a.total_cmp(b));
        Err(near.map(|(_, tag)| tag))
    }
}

/// A currency, by its three letters (ISO 4217).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Currency([u8; 3]);

/// Signs that readers know; other currencies are written by their letters.
const SIGNS: [(&[u8; 3], &str); 14] = [
    (b"EUR", "€"),
    (b"USD", "$"),
    (b"GBP", "£"),
    (b"JPY", "¥"),
    (b"CNY", "¥"),
    (b"INR", "₹"),
    (b"KRW", "₩"),
    (b"BRL", "R$"),
    (b"PLN", "zł"),
    (b"CZK", "Kč"),
    (b"SEK", "kr"),
    (b"NOK", "kr"),
    (b"DKK", "kr."),
    (b"UAH", "₴"),
];

/// Currencies that do not have two decimals (ISO 4217, list one).
const DECIMALS: [(&[u8; 3], usize); 14] = [
    (b"JPY", 0),
    (b"KRW", 0),
    (b"VND", 0),
    (b"CLP", 0),
    (b"ISK", 0),
    (b"PYG", 0),
    (b"UGX", 0),
    (b"BHD", 3),
    (b"IQD", 3),
    (b"JOD", 3),
    (b"KWD", 3),
    (b"LYD", 3),
    (b"OMR", 3),
    (b"TND", 3),
];

impl Currency {
    /// Reads three capital letters.
    pub fn parse(code: &str) -> Option<Self> {
        let letters: [u8; 3] = code.as_bytes().try_into().ok()?;
        let is_code = letters.iter().all(u8::is_ascii_uppercase);
        is_code.then_some(Self(letters))
    }

    pub fn sign(&self) -> &str {
        let sign = SIGNS.iter().find(|(code, _)| **code == self.0);
        sign.map_or_else(|| self.code(), |(_, sign)| sign)
    }

    /// Decimals that an amount of it has.
    pub fn decimals(self) -> usize {
        let found = DECIMALS.iter().find(|(code, _)| **code == self.0);
        found.map_or(2, |(_, decimals)| *decimals)
    }

    pub fn code(&self) -> &str {
        std::str::from_utf8(&self.0).unwrap_or_default()
    }
}

/// How the templates of a site write numbers, money and dates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Formats {
    pub locale: &'static Locale,
    pub currency: Option<Currency>,
    pub zone: SiteZone,
}

impl Default for Formats {
    fn default() -> Self {
        Self {
            locale: Locale::default_locale(),
            currency: None,
            zone: SiteZone::default(),
        }
    }
}
