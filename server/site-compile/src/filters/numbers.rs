//! `number`, `money`, `filesize` and `pluralize`.

use minijinja::{
    Error,
    value::{Kwargs, Value, ValueKind},
};

use super::{
    decimal::{Decimal, Number},
    fault::{given, unfit, unfit_argument},
    in_locale,
};
use millpond_site_format::locale::{Currency, CurrencyPlace, Formats, Locale};

/// More decimals than this are refused: a slip of the pen, not a number for people.
const MAX_DECIMALS: usize = 100;

/// A minus sign, which is as wide as a plus.
const MINUS: &str = "−";

/// Grouped digits, with as many decimals as `places` says, or as there are.
pub(super) fn number(
    value: &Value,
    places: Option<usize>,
    locale: &Locale,
) -> Result<String, Error> {
    check_decimals("number", places)?;
    let Some(value) = given("number", value)? else {
        return Ok(String::new());
    };
    Ok(match finite("number", value)? {
        Ok(decimal) => {
            let decimal = match places {
                Some(places) => decimal.rounded(places),
                None => decimal,
            };
            let sign = if decimal.is_negative { MINUS } else { "" };
            format!("{sign}{}", unsigned(&decimal, locale))
        }
        Err(text) => text.to_owned(),
    })
}

/// An amount with its currency: the argument, else the site's, else none.
pub(super) fn money(
    value: &Value,
    currency: Option<&str>,
    options: &Kwargs,
    formats: Formats,
) -> Result<String, Error> {
    let decimals: Option<usize> = options.get("decimals")?;
    let is_minor: Option<bool> = options.get("minor")?;
    let formats = in_locale("money", options, formats)?;
    check_decimals("money", decimals)?;
    let currency = match currency {
        Some(code) => Some(Currency::parse(code).ok_or_else(|| {
            unfit_argument(
                "money",
                &format!("{code:?} is no currency"),
                "the three letters of a currency, such as EUR",
            )
        })?),
        None => formats.currency,
    };
    let Some(value) = given("money", value)? else {
        return Ok(String::new());
    };
    let decimal = match finite("money", value)? {
        Ok(decimal) => decimal,
        Err(text) => return Ok(text.to_owned()),
    };
    let usual = currency.map_or(2, Currency::decimals);
    let decimal = match is_minor {
        Some(true) => decimal.lowered(usual),
        _ => decimal,
    };
    let decimal = decimal.rounded(decimals.unwrap_or(usual));
    let sign = if decimal.is_negative { MINUS } else { "" };
    let amount = unsigned(&decimal, formats.locale);
    let Some(currency) = currency else {
        return Ok(format!("{sign}{amount}"));
    };
    let unit = currency.sign();
    Ok(match formats.locale.currency {
        CurrencyPlace::After => format!("{sign}{amount}\u{a0}{unit}"),
        CurrencyPlace::BeforeWithSpace => format!("{unit}\u{a0}{sign}{amount}"),
        CurrencyPlace::Before if unit.ends_with(char::is_alphabetic) => {
            format!("{sign}{unit}\u{a0}{amount}")
        }
        CurrencyPlace::Before => format!("{sign}{unit}{amount}"),
    })
}

const SIZES: [&str; 7] = ["B", "kB", "MB", "GB", "TB", "PB", "EB"];

/// Bytes in the largest unit of which there is one, units of a thousand.
pub(super) fn filesize(value: &Value, locale: &Locale) -> Result<String, Error> {
    let Some(value) = given("filesize", value)? else {
        return Ok(String::new());
    };
    let bytes = match finite("filesize", value)? {
        Ok(bytes) => bytes,
        Err(text) => return Ok(text.to_owned()),
    };
    let in_unit = |unit: usize| match unit {
        0 => bytes.clone().rounded(0),
        _ => bytes.clone().lowered(3 * unit).rounded(1),
    };
    let is_enough = |unit: &usize| in_unit(*unit).whole.len() <= 3;
    let unit = (0..SIZES.len()).find(is_enough).unwrap_or(SIZES.len() - 1);
    let mut size = in_unit(unit);
    if size.fraction == "0" {
        size.fraction.clear();
    }
    let sign = if size.is_negative { MINUS } else { "" };
    Ok(format!(
        "{sign}{}\u{a0}{}",
        unsigned(&size, locale),
        SIZES[unit]
    ))
}

/// The ending of a word for a number of things: nothing and `s`, or those that are given.
pub(super) fn pluralize(
    value: &Value,
    first: Option<&str>,
    second: Option<&str>,
) -> Result<String, Error> {
    let Some(value) = given("pluralize", value)? else {
        return Ok(String::new());
    };
    let is_one = match value.kind() {
        ValueKind::Seq | ValueKind::Iterable => value.len() == Some(1),
        _ => finite("pluralize", value)?.is_ok_and(|decimal| decimal.is_one()),
    };
    let (one, several) = match (first, second) {
        (Some(one), Some(several)) => (one, several),
        (Some(several), None) => ("", several),
        (None, _) => ("", "s"),
    };
    Ok(if is_one { one } else { several }.to_owned())
}

/// The number, or what stands for one that has no digits.
fn finite(filter: &str, value: &Value) -> Result<Result<Decimal, &'static str>, Error> {
    match Number::of(value) {
        Some(Number::Finite(decimal)) => Ok(Ok(decimal)),
        Some(Number::Nan) => Ok(Err("NaN")),
        Some(Number::Infinite { is_negative: false }) => Ok(Err("∞")),
        Some(Number::Infinite { is_negative: true }) => Ok(Err("−∞")),
        None => Err(unfit(
            filter,
            value,
            "a number, or a text that is one, such as 1234.50",
        )),
    }
}

fn check_decimals(filter: &str, places: Option<usize>) -> Result<(), Error> {
    match places {
        Some(places) if places > MAX_DECIMALS => Err(unfit_argument(
            filter,
            &format!("{places} decimals are too many"),
            &format!("at most {MAX_DECIMALS}"),
        )),
        _ => Ok(()),
    }
}

/// The digits without a sign, in groups.
fn unsigned(decimal: &Decimal, locale: &Locale) -> String {
    let mut out = String::with_capacity(decimal.whole.len() * 2 + decimal.fraction.len() + 4);
    let digits = decimal.whole.len();
    for (at, digit) in decimal.whole.chars().enumerate() {
        if at > 0 && digits >= locale.grouped_from && (digits - at).is_multiple_of(3) {
            out.push_str(locale.group);
        }
        out.push(digit);
    }
    if !decimal.fraction.is_empty() {
        out.push_str(locale.decimal);
        out.push_str(&decimal.fraction);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_locale_writes_money_as_its_readers_do() {
        let negative = Value::from("-1234.5");
        let list: Vec<String> = millpond_site_format::locale::LOCALES
            .iter()
            .map(|locale| {
                let currency = Currency::parse("EUR");
                let formats = Formats {
                    locale,
                    currency,
                    ..Formats::default()
                };
                let amount = money(
                    &negative,
                    None,
                    &Kwargs::from_iter::<[(&str, Value); 0]>([]),
                    formats,
                );
                format!("{:5} {}", locale.tag, amount.unwrap())
            })
            .collect();
        expect_test::expect![[r#"
                  −€1^234.50
            en    −€1,234.50
            en-US −€1,234.50
            en-GB −€1,234.50
            de    −1.234,50_€
            de-CH €_−1’234.50
            fr    −1^234,50_€
            es    −1234,50_€
            it    −1.234,50_€
            pt-PT −1234,50_€
            pt-BR €_−1.234,50
            nl    €_−1.234,50
            da    −1.234,50_€
            nb    −1_234,50_€
            sv    −1_234,50_€"#]]
        .assert_eq(
            &list
                .join("\n")
                .replace('\u{a0}', "_")
                .replace('\u{202f}', "^"),
        );
    }

    #[test]
    fn numbers_of_both_databases_are_written_alike() {
        let plain = Locale::default_locale();
        for (value, places, expected) in [
            (Value::from(1_234_567), None, "1\u{202f}234\u{202f}567"),
            (
                Value::from(i64::MIN),
                None,
                "−9\u{202f}223\u{202f}372\u{202f}036\u{202f}854\u{202f}775\u{202f}808",
            ),
            (
                Value::from(u64::MAX),
                Some(0),
                "18\u{202f}446\u{202f}744\u{202f}073\u{202f}709\u{202f}551\u{202f}615",
            ),
            (Value::from(2328.6), None, "2\u{202f}328.6"),
            (Value::from("2328.60"), None, "2\u{202f}328.60"),
            (Value::from("12.5"), Some(2), "12.50"),
            (Value::from(0.1 + 0.2), Some(2), "0.30"),
            (Value::from(f64::NAN), Some(2), "NaN"),
            (Value::from("Infinity"), None, "∞"),
            (Value::from(()), Some(2), ""),
            (Value::from(" "), None, ""),
        ] {
            assert_eq!(
                number(&value, places, plain).unwrap(),
                expected,
                "{value:?}"
            );
        }
        let error = number(&Value::from("soon"), None, plain).unwrap_err();
        assert_eq!(
            error.detail(),
            Some(
                "filter `number` cannot write 'soon'; it takes a number, or a text that is one, such as 1234.50"
            )
        );
        assert!(number(&Value::from(true), None, plain).is_err());
        assert!(number(&Value::from(1), Some(1 << 40), plain).is_err());
    }

    #[test]
    fn sizes_go_up_to_the_next_unit_where_rounding_does() {
        let plain = Locale::default_locale();
        for (bytes, expected) in [
            ("0", "0 B"),
            ("999", "999 B"),
            ("1000", "1 kB"),
            ("1449", "1.4 kB"),
            ("999949", "999.9 kB"),
            ("999950", "1 MB"),
            ("5000000000000000000000", "5 000 EB"),
        ] {
            let shown = filesize(&Value::from(bytes), plain).unwrap();
            assert_eq!(shown.replace(['\u{a0}', '\u{202f}'], " "), expected);
        }
    }
}
