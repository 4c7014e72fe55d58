//! The history as a report: days, hours, routes, statuses and times, beside the day before.
//!
//! The file is only read, so a server may write it at the same time.

use std::path::Path;

use base_chart::number::{self, none};
use base_chart::{
    Axis, BarChart, Bars, Column, Figure, Line, LineChart, Report, Scale, Section, Table, Unit,
};
use rusqlite::{Connection, OpenFlags};
use serde_json::{Value, json};

/// The lists of a report, each with its query.
const LISTS: [(&str, &str); 5] = [
    ("totals", include_str!("sql/report/totals.sql")),
    ("days", include_str!("sql/report/days.sql")),
    ("hours", include_str!("sql/report/hours.sql")),
    ("routes", include_str!("sql/report/routes.sql")),
    ("times", include_str!("sql/report/times.sql")),
];

/// Figures of some time, as the history has them.
pub struct HistoryReport(Value);

impl HistoryReport {
    /// Reads the figures from `from` to `till`, in seconds since 1970, with this number of routes.
    /// Returns `None` if there are none of that time.
    ///
    /// # Errors
    /// A sentence, if there is no such file, or if it is none of a history.
    pub fn read(file: &Path, (from, till): (i64, i64), top: usize) -> Result<Option<Self>, String> {
        // Beyond these there is no history, and the sums of SQLite would not be exact.
        let (from, till) = (from.max(0), till.min(1 << 40));
        let read = || -> rusqlite::Result<Value> {
            let history = Connection::open_with_flags(file, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
            // All lists show one state.
            history.execute_batch("begin")?;
            let mut lists = serde_json::Map::new();
            for (name, sql) in LISTS {
                let mut statement = history.prepare(sql)?;
                for (name, value) in [(":from", from), (":till", till), (":top", top as i64)] {
                    if let Some(at) = statement.parameter_index(name)? {
                        statement.raw_bind_parameter(at, value)?;
                    }
                }
                let mut rows = Vec::<Value>::new();
                let mut found = statement.raw_query();
                while let Some(row) = found.next()? {
                    let row: String = row.get(0)?;
                    rows.push(serde_json::from_str(&row).unwrap_or_default());
                }
                lists.insert(name.to_owned(), rows.into());
            }
            Ok(lists.into())
        };
        let mut lists = read().map_err(|error| format!("{}: {error}", file.display()))?;
        // One row, or none.
        let totals = lists["totals"].get_mut(0).map(Value::take);
        lists["totals"] = totals.into();
        Ok((!lists["totals"].is_null()).then_some(Self(lists)))
    }

    /// Returns the figures; times are in microseconds, moments in UTC. Null is what was not
    /// counted.
    #[must_use]
    pub fn json(&self) -> &Value {
        &self.0
    }

    /// Returns the figures as a report.
    #[must_use]
    pub fn report(&self) -> Report {
        let totals = &self.0["totals"];
        let (first, last) = (text(&totals["first_day"]), text(&totals["last_day"]));
        let span = match first == last {
            true => first,
            false => format!("{first} to {last}"),
        };
        let mut report = Report::new("Requests of the server", format!("{span}, in UTC"));
        report
            .push(Section::Figures(self.figures()))
            .push(Section::Lines(self.hours("Requests an hour", "requests")))
            .push(self.days())
            .push(Section::Heading("Routes".to_owned()))
            .push(self.routes())
            .push(Section::Heading("Answers".to_owned()))
            .push(Section::Bars(self.statuses()))
            .push(self.times());
        if self
            .list("hours")
            .iter()
            .any(|hour| hour["errors"].as_u64() > Some(0))
        {
            report.push(Section::Lines(
                self.hours("Errors of the server an hour", "errors"),
            ));
        }
        report
    }

    fn list(&self, name: &str) -> &[Value] {
        self.0[name].as_array().map_or(&[], Vec::as_slice)
    }

    fn figures(&self) -> Vec<Figure> {
        let totals = &self.0["totals"];
        let of = |name: &str| format!("{} {name}", count(&totals[name]));
        let slow = self
            .list("times")
            .iter()
            .find(|row| row["share"] == json!(0.99));
        let slow = slow.map_or_else(none, |row| micros(&row["us"]));
        let fill = ratio(&totals["fill_us"], &totals["made"]);
        vec![
            Figure::new("requests", count(&totals["requests"])).with_note(of("refused")),
            Figure::new(
                "pages from memory",
                share(&totals["hits"], &totals["pages"]),
            )
            .with_note(of("made")),
            Figure::new("99 of 100 answered within", slow),
            Figure::new("to make a page", fill.map_or_else(none, number::micros)),
            Figure::new("server errors", count(&totals["5xx"])),
            Figure::new("bytes sent", bytes(&totals["bytes"])),
            Figure::new(
                "requests of crawlers",
                share(&totals["crawlers"], &totals["requests"]),
            ),
        ]
    }

    /// A figure of the hours of the last day, and of the day before.
    fn hours(&self, title: &str, name: &str) -> LineChart {
        let line = |name: &str, figure: &str| {
            let hours = self.list("hours").iter();
            let points =
                hours.map(|hour| (hour["hour"].as_f64().unwrap_or(0.0), hour[figure].as_f64()));
            Line {
                name: name.to_owned(),
                points: points.collect(),
            }
        };
        LineChart {
            title: title.to_owned(),
            note: String::new(),
            x: Axis::linear("hour of the day, in UTC", Unit::Plain),
            y: Axis::linear("in the hour", Unit::Count),
            lines: vec![
                line(&text(&self.0["totals"]["last_day"]), name),
                line("the day before", &format!("{name}_before")),
            ],
        }
    }

    fn days(&self) -> Section {
        let row = |day: &Value| {
            vec![
                text(&day["day"]),
                count(&day["requests"]),
                change(&day["requests"], &day["requests_before"]),
                share(&day["hits"], &day["pages"]),
                bytes(&day["bytes"]),
                count(&day["4xx"]),
                count(&day["5xx"]),
                micros(&day["p99_us"]),
            ]
        };
        let note = "A day that is not over is compared with the same hours of the day before.";
        let titles = "Each day beside the day before|day|#requests|#change|#from memory|#bytes|\
             #4xx|#5xx|#99 % within";
        table(titles, self.list("days").iter().map(row), note)
    }

    fn routes(&self) -> Section {
        let row = |route: &Value| {
            let fill = ratio(&route["fill_us"], &route["made"]);
            vec![
                text(&route["route"]),
                count(&route["requests"]),
                change(&route["requests_of_last_day"], &route["requests_before"]),
                share(&route["hits"], &route["requests"]),
                fill.map_or_else(none, number::micros),
                count(&route["errors"]),
            ]
        };
        let note = "The change is that of the last day to the day before.";
        let titles = "The most requested routes|route|#requests|#change|#from memory|\
             #to make one|#errors";
        table(titles, self.list("routes").iter().map(row), note)
    }

    /// Answers by the class of their status, on the last two days of the time.
    fn statuses(&self) -> BarChart {
        let classes = ["2xx", "3xx", "4xx", "5xx"];
        let days = self.list("days");
        let days = &days[days.len().saturating_sub(2)..];
        let series = days.iter().map(|day| Bars {
            name: text(&day["day"]),
            values: classes.iter().map(|class| day[class].as_f64()).collect(),
        });
        BarChart {
            title: "Answers by status".to_owned(),
            note: String::new(),
            unit: Unit::Count,
            scale: Scale::Linear,
            groups: classes.map(str::to_owned).to_vec(),
            series: series.collect(),
        }
    }

    fn times(&self) -> Section {
        let row = |row: &Value| {
            let share = number::percent(row["share"].as_f64().unwrap_or(0.0));
            vec![share, micros(&row["us"])]
        };
        let titles = "Time to answer: this share of the answers took at most|share|#time";
        table(titles, self.list("times").iter().map(row), "")
    }
}

/// A table; its caption and the titles of its columns stand between `|`.
fn table(titles: &str, rows: impl Iterator<Item = Vec<String>>, note: &str) -> Section {
    let (caption, columns) = titles.split_once('|').unwrap_or((titles, ""));
    Section::Table(Table {
        caption: caption.to_owned(),
        columns: Column::all(columns),
        rows: rows.collect(),
        note: note.to_owned(),
    })
}

fn text(value: &Value) -> String {
    value.as_str().map_or_else(none, str::to_owned)
}

fn count(value: &Value) -> String {
    value.as_u64().map_or_else(none, number::count)
}

fn bytes(value: &Value) -> String {
    value.as_f64().map_or_else(none, number::bytes)
}

fn micros(value: &Value) -> String {
    value.as_f64().map_or_else(none, number::micros)
}

fn ratio(part: &Value, whole: &Value) -> Option<f64> {
    let whole = whole.as_f64().filter(|whole| *whole > 0.0)?;
    Some(part.as_f64()? / whole)
}

fn share(part: &Value, whole: &Value) -> String {
    ratio(part, whole).map_or_else(none, number::percent)
}

/// `+12 %`, or how many times as many.
fn change(now: &Value, before: &Value) -> String {
    let Some(ratio) = ratio(now, before) else {
        return none();
    };
    match ((ratio - 1.0) * 100.0).round() as i64 {
        900.. => number::times(ratio),
        0 => "0\u{a0}%".to_owned(),
        percent => format!("{percent:+}\u{a0}%").replace('-', "−"),
    }
}
