//! Which requests are counted: by time and by field.

use std::str::FromStr;

use base_logs::{LogEntry, seconds_of};

use crate::agent::AgentClass;
use crate::counter::host;
use crate::day::SECONDS;

/// The fields of a filter.
const FIELDS: [&str; 8] = [
    "path", "url", "status", "method", "referrer", "agent", "class", "client",
];

/// A condition on one field.
#[derive(Clone, Debug)]
struct FieldFilter {
    /// Place of its name.
    field: usize,
    pattern: Vec<u8>,
    is_negated: bool,
}

/// Conditions on fields. Of those that name values of one field, one has to hold; all that exclude
/// values have to.
#[derive(Clone, Debug, Default)]
pub struct Filters {
    all: Vec<FieldFilter>,
}

impl Filters {
    /// Adds `FIELD=VALUE`. A `!` before either excludes the value; `*` stands for any text.
    ///
    /// # Errors
    /// A sentence on what is wrong with it.
    pub fn add(&mut self, text: &str) -> Result<(), String> {
        let (name, value) = text
            .split_once('=')
            .ok_or_else(|| format!("{text:?} is no filter: it has no ="))?;
        let (name, before) = (name.trim_start_matches('!'), name.starts_with('!'));
        let (value, behind) = value
            .strip_prefix('!')
            .map_or((value, false), |value| (value, true));
        let field = FIELDS.iter().position(|field| *field == name);
        let field = field.ok_or_else(|| {
            format!(
                "there is no field {name:?}; there are {}",
                FIELDS.join(", ")
            )
        })?;
        let mut pattern = value.to_owned();
        if FIELDS[field] == "status" {
            pattern = pattern.replace("xx", "*");
        }
        if FIELDS[field] == "class" {
            let is_class =
                |class: &AgentClass| glob(pattern.as_bytes(), class.name().as_bytes(), true);
            if !AgentClass::ALL.iter().any(is_class) {
                return Err(format!(
                    "{value:?} is no class; there are people, bots, programs, unknown"
                ));
            }
        }
        self.all.push(FieldFilter {
            field,
            pattern: pattern.into_bytes(),
            is_negated: before != behind,
        });
        Ok(())
    }

    /// True if a request is to be counted.
    pub(crate) fn pass(&self, entry: &LogEntry<'_>, class: AgentClass) -> bool {
        // By bits of fields: which were named, and which of them hold.
        let (mut named, mut held) = (0_u32, 0_u32);
        for filter in &self.all {
            let matches = filter.matches(entry, class);
            if !filter.is_negated {
                named |= 1 << filter.field;
                held |= u32::from(matches) << filter.field;
            } else if matches {
                return false;
            }
        }
        named == held
    }
}

impl FieldFilter {
    fn matches(&self, entry: &LogEntry<'_>, class: AgentClass) -> bool {
        let digits = [100, 10, 1].map(|place| b'0' + (entry.status / place % 10) as u8);
        let name = FIELDS[self.field];
        let value = match name {
            "path" => entry.path(),
            "url" => entry.target,
            "status" => &digits,
            "method" => entry.method,
            "referrer" => host(entry.referrer),
            "agent" => entry.agent,
            "class" => class.name().as_bytes(),
            _ => entry.client,
        };
        glob(&self.pattern, value, !matches!(name, "path" | "url"))
    }
}

/// True if a text matches a pattern, in which `*` stands for any text. Linear but for the last `*`.
fn glob(pattern: &[u8], text: &[u8], ignores_case: bool) -> bool {
    let same = |a: u8, b: u8| a == b || ignores_case && a.eq_ignore_ascii_case(&b);
    let (mut p, mut t) = (0, 0);
    // Where to go on if a later byte differs: one byte more for the last `*`.
    let mut retry = None;
    while t < text.len() {
        if pattern.get(p) == Some(&b'*') {
            p += 1;
            retry = Some((p, t));
        } else if pattern.get(p).is_some_and(|&byte| same(byte, text[t])) {
            p += 1;
            t += 1;
        } else if let Some((star, from)) = retry {
            (p, t) = (star, from + 1);
            retry = Some((star, from + 1));
        } else {
            return false;
        }
    }
    pattern[p..].iter().all(|&byte| byte == b'*')
}

/// From a moment to another on the clock of the log, in seconds from 1970.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Period {
    from: i64,
    /// The first second behind it.
    to: i64,
}

impl Default for Period {
    fn default() -> Self {
        Self {
            from: i64::MIN,
            to: i64::MAX,
        }
    }
}

impl Period {
    /// From the beginning of one day, minute or second to the end of another.
    pub fn new(from: Option<Self>, to: Option<Self>) -> Self {
        let all = Self::default();
        Self {
            from: from.map_or(all.from, |from| from.from),
            to: to.map_or(all.to, |to| to.to),
        }
    }

    /// Returns the first second, and the first one behind it, since 1970.
    pub fn seconds(self) -> (i64, i64) {
        (self.from, self.to)
    }

    pub(crate) fn has(self, time: i64) -> bool {
        (self.from..self.to).contains(&time)
    }
}

/// A day, minute or second: `2026-11-29`, `2026-11-29T12:30` or `2026-11-29 12:30:15`.
impl FromStr for Period {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("{text:?} is no time: write 2026-11-29 or 2026-11-29T12:30");
        let parts = text.split(['-', 'T', ' ', ':']).map(str::parse);
        let parts: Vec<u32> = parts.collect::<Result<_, _>>().map_err(|_| wrong())?;
        let (date, time, length) = match parts[..] {
            [year, month, day] => ([year, month, day], [0; 3], SECONDS),
            [year, month, day, hour, minute] => ([year, month, day], [hour, minute, 0], 60),
            [year, month, day, hour, minute, second] => {
                ([year, month, day], [hour, minute, second], 1)
            }
            _ => return Err(wrong()),
        };
        let from = seconds_of(date, time).ok_or_else(wrong)?;
        Ok(Self {
            from,
            to: from + length,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn passes(filters: &[&str]) -> bool {
        let entry = LogEntry {
            client: b"192.0.2.1",
            method: b"GET",
            target: b"/blog/A?x=1",
            status: 404,
            referrer: b"https://example.org/x",
            agent: b"ExampleBot/1.0",
            ..LogEntry::default()
        };
        let mut all = Filters::default();
        filters.iter().for_each(|filter| all.add(filter).unwrap());
        all.pass(&entry, AgentClass::of(entry.agent))
    }

    #[test]
    fn filters_hold_by_field() {
        for good in [
            &[][..],
            &["path=/blog/A"],
            &["path=/blog/*", "status=404"],
            &["url=*x=1"],
            &["status=4xx"],
            &["status=4*"],
            &["status=200", "status=404"],
            &["method=get"],
            &["referrer=*.org"],
            &["agent=*bot*"],
            &["class=bots"],
            &["client=192.0.2.*"],
            &["!status=5*", "path=!/static/*"],
            &["!class=!bots"],
            &["path=*o*A"],
        ] {
            assert!(passes(good), "{good:?}");
        }
        for bad in [
            &["path=/blog/a"][..],
            &["path=/blog"],
            &["path=/blog/*", "status=200"],
            &["status=!4xx"],
            &["!class=bots"],
            &["class=people"],
            &["client=192.0.2"],
            &["path=*o*B"],
        ] {
            assert!(!passes(bad), "{bad:?}");
        }
    }

    #[test]
    fn mistakes_are_named() {
        let said = |text| Filters::default().add(text).unwrap_err();
        assert_eq!(said("path"), "\"path\" is no filter: it has no =");
        assert!(said("page=/x").starts_with("there is no field \"page\"; there are path, url, "));
        assert!(said("class=humans").contains("there are people, bots"));
        for text in [
            "yesterday",
            "2026-13-01",
            "2026-11-29T25:00",
            "2026-11",
            "2026-11-29T12",
        ] {
            assert!(text.parse::<Period>().is_err(), "{text}");
        }
    }

    #[test]
    fn a_period_ends_with_the_end_of_what_is_named() {
        let read = |text: &str| text.parse::<Period>().unwrap();
        let day = read("1970-01-02");
        assert_eq!((day.from, day.to), (SECONDS, 2 * SECONDS));
        let period = Period::new(Some(day), Some(read("1970-01-02T01:02")));
        let has = [86_399, 86_400, 90_179, 90_180].map(|time| period.has(time));
        assert_eq!(has, [false, true, true, false]);
        assert_eq!(read("1970-01-01 00:00:07").to, 8);
        assert!(Period::new(None, None).has(i64::MIN));
    }
}
