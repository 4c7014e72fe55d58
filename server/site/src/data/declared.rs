//! Types that a table declares and SQLite does not hold: a file's values are held to them here, as
//! PostgreSQL does. Other values, such as those of forms, are the site's own matter.

use millpond_data::Moment;
use millpond_db::Value;
use millpond_site_format::{text_format::TextFormat, time_zone::SiteZone};

/// Returns the value as a declared type has it.
///
/// # Errors
/// Description of a right value, to stand behind "not".
pub(super) fn held(type_name: &str, value: Value) -> Result<Value, String> {
    let (name, sizes) = type_name.split_once('(').unwrap_or((type_name, ""));
    let is = |names: &[&str]| {
        let mut names = names.iter();
        names.any(|known| known.eq_ignore_ascii_case(name.trim()))
    };
    let mut sizes = sizes.trim_end_matches(')').split(',');
    let mut size = || sizes.next()?.trim().parse::<usize>().ok();
    if is(&["text", "integer"]) || value == Value::Null {
        return Ok(value);
    }
    if is(&["date", "date text"]) {
        let day = text(&value)
            .and_then(Moment::parse)
            .map(|moment| moment.date);
        let day = day.ok_or("a day like 2026-11-26")?;
        return Ok(Value::from(&*day.to_string()));
    }
    let (is_right, wanted) = if is(&["time"]) {
        let time = text(&value).map(|text| format!("2000-01-01T{text}"));
        let moment = time.and_then(|time| Moment::parse(&time));
        let is_time = moment.is_some_and(|moment| moment.clock().offset.is_none());
        (is_time, "a time such as 14:05".to_owned())
    } else if is(&["uuid"]) {
        let digits = text(&value).map(|text| text.trim_matches(['{', '}']).replace('-', ""));
        let is_hex = |digits: &String| digits.bytes().all(|byte| byte.is_ascii_hexdigit());
        let is_uuid = digits.is_some_and(|digits| digits.len() == 32 && is_hex(&digits));
        (is_uuid, "a UUID".to_owned())
    } else if is(&["smallint", "int2"]) {
        let small = |integer: i64| i16::try_from(integer).is_ok();
        let is_small = matches!(value, Value::Integer(integer) if small(integer));
        (is_small, "an integer from -32768 to 32767".to_owned())
    } else if is(&["numeric", "decimal"]) {
        let (digits, decimals) = (size(), size());
        let is_number = text(&value).is_some_and(|text| is_decimal(text, digits, decimals));
        let sized = digits.map_or(String::new(), |digits| {
            let decimals = decimals.unwrap_or(0);
            format!(" of {digits} digits, {decimals} of them behind the point")
        });
        (is_number, format!("a number{sized}"))
    } else if is(&[
        "varchar",
        "char",
        "character",
        "character varying",
        "nvarchar",
        "nchar",
    ]) {
        let most = size().unwrap_or(usize::MAX);
        let fits = text(&value).is_none_or(|text| text.chars().count() <= most);
        (fits, format!("a text of at most {most} characters"))
    } else {
        return Ok(value);
    };
    is_right.then_some(value).ok_or(wanted)
}

/// A moment in UTC, as `datetime('now')` of SQLite writes it and as parameters of type `datetime`
/// are: so the two compare on both databases. A day is its beginning in the zone.
pub(super) fn moment(text: &str, zone: SiteZone) -> Option<Value> {
    let text = text.trim();
    let begun = || format!("{text}T00:00");
    let utc = TextFormat::DateTime
        .read(text, zone)
        .map(|text| Value::from(&*text));
    utc.or_else(|| {
        TextFormat::DateTime
            .read(&begun(), zone)
            .map(|text| Value::from(&*text))
    })
}

fn text(value: &Value) -> Option<&str> {
    match value {
        Value::Text(text) => Some(text.trim()),
        _ => None,
    }
}

/// True for a number within a number of digits, and a number of them behind the point.
fn is_decimal(text: &str, digits: Option<usize>, decimals: Option<usize>) -> bool {
    if !text.parse::<f64>().is_ok_and(f64::is_finite) {
        return false;
    }
    let (Some(digits), false) = (digits, text.contains(['e', 'E'])) else {
        return true;
    };
    let unsigned = text.trim_start_matches(['+', '-']);
    let (whole, fraction) = unsigned.split_once('.').unwrap_or((unsigned, ""));
    let decimals = decimals.unwrap_or(0);
    let whole = whole.trim_start_matches('0').len();
    fraction.trim_end_matches('0').len() <= decimals && whole <= digits.saturating_sub(decimals)
}
