//! Statistics as a report: the same tables as text and as HTML.

use base_chart::number::{self, none};
use base_chart::{
    Axis, BarChart, Bars, Column, Figure, Line, LineChart, Report, Scale, Section, Table, Unit,
};
use base_logs::{Frequent, KeyCount};

use crate::agent::AgentClass;
use crate::day::{DayFigures, SECONDS};
use crate::run::Statistics;
use crate::spikes::Spike;

/// Days in the table; of more the last are shown.
const DAYS: usize = 31;
/// Letters of an address that are shown.
const LETTERS: usize = 200;
/// Keys of each kind that say where a spike came from.
const ORIGINS: usize = 3;
/// Share of a spike from which a key says something.
const SHARE: f64 = 0.05;
/// Shares of the answers whose response time is shown.
pub(crate) const QUANTILES: [(&str, f64); 6] = [
    ("50 %", 0.5),
    ("75 %", 0.75),
    ("90 %", 0.9),
    ("95 %", 0.95),
    ("99 %", 0.99),
    ("99.9 %", 0.999),
];
/// Kinds of the origins of a spike.
pub(crate) const ORIGIN_NAMES: [&str; 4] = ["address", "referrer", "network", "agent"];

impl Statistics {
    /// The statistics as a report, with `top` rows in each table of frequent values.
    pub fn report(&self, top: usize) -> Report {
        let names: Vec<String> = self
            .logs
            .iter()
            .map(|path| path.display().to_string())
            .collect();
        let names = match &names[..] {
            [first, second, third, .., last] if names.len() > 4 => {
                format!("{first}, {second}, {third} … {last}")
            }
            names => names.join(", "),
        };
        let mut report = Report::new("Requests in the access log", names);
        let totals = &self.totals;
        report.push(Section::Figures(self.figures()));
        if totals.requests == 0 {
            report.push(Section::Text(self.remarks()));
            return report;
        }
        report.push(Section::Lines(self.timeline()));
        report.push(Section::Heading("Days".into()));
        report.push(Section::Table(self.days()));
        report.push(Section::Bars(self.hours()));
        report.push(Section::Heading("Addresses".into()));
        report.push(Section::Table(self.addresses(top)));
        report.push(Section::Heading("Answers".into()));
        report.push(Section::Table(self.statuses(top)));
        report.push(Section::Table(self.frequent(
            "Methods",
            "method",
            &totals.methods,
            top,
        )));
        if totals.times.count() > 0 {
            report.push(Section::Table(self.times()));
        }
        report.push(Section::Heading("Visitors".into()));
        report.push(Section::Table(self.agents()));
        report.push(Section::Table(self.frequent(
            "Referrers",
            "host",
            &totals.referrers,
            top,
        )));
        report.push(Section::Heading("Peaks".into()));
        report.push(Section::Table(self.minutes(top)));
        for spike in &self.spikes {
            report.push(Section::Table(origins(spike)));
        }
        report.push(Section::Heading("How it was counted".into()));
        report.push(Section::Text(self.remarks()));
        report
    }

    fn figures(&self) -> Vec<Figure> {
        let totals = &self.totals;
        let days = &totals.days.days;
        let mut figures =
            vec![Figure::new("requests", number::count(totals.requests)).with_note(self.span())];
        let counts = days.iter().map(|(_, day)| day.visitors.count());
        if let Some(most) = counts.clone().max() {
            let mean = counts.sum::<u64>() / days.len() as u64;
            let note = format!("{} on the day with the most", number::count(most));
            figures.push(Figure::new("visitors a day", number::count(mean)).with_note(note));
        }
        figures.push(Figure::new(
            "bytes sent",
            number::bytes(totals.bytes as f64),
        ));
        let bots = totals.agents[AgentClass::Bots as usize];
        figures.push(Figure::new("requests of declared bots", self.share(bots)));
        let failed: u64 = totals.statuses[500..600].iter().sum();
        let note = format!("{} answers", number::count(failed));
        figures.push(Figure::new("server errors", self.share(failed)).with_note(note));
        if let Some((time, count)) = totals.days.busiest_minutes(1).first() {
            let count = number::count(u64::from(*count));
            figures.push(
                Figure::new("requests in the busiest minute", count).with_note(moment(*time)),
            );
        }
        if let Some(micros) = totals.times.quantile(0.99) {
            figures.push(Figure::new("response time, 99 %", number::micros(micros)));
        }
        figures
    }

    /// First and last day.
    fn span(&self) -> String {
        match &self.totals.days.days[..] {
            [] => String::new(),
            [(day, _)] => date(*day),
            [(first, _), .., (last, _)] => format!("{} to {}", date(*first), date(*last)),
        }
    }

    fn share(&self, count: u64) -> String {
        share(count, self.totals.requests)
    }

    /// Requests an hour from the first day to the last; of a long time requests a day.
    fn timeline(&self) -> LineChart {
        let days = &self.totals.days.days;
        let is_long = days.len() > 100;
        let mut points = Vec::new();
        let mut next = days.first().map_or(0, |(day, _)| *day);
        for (day, figures) in days {
            // Days without a request are a gap in the log.
            if *day > next {
                points.push(((next * SECONDS) as f64, None));
            }
            next = day + 1;
            let begin = (day * SECONDS) as f64;
            if is_long {
                points.push((begin, Some(figures.requests as f64)));
            } else {
                let hour = |hour: usize| {
                    (
                        begin + hour as f64 * 3600.0,
                        Some(figures.hour(hour) as f64),
                    )
                };
                points.extend((0..24).map(hour));
            }
        }
        let unit = if is_long {
            "requests a day"
        } else {
            "requests an hour"
        };
        LineChart {
            title: "Requests over time".into(),
            note: String::new(),
            x: Axis {
                title: "on the clock of the log".into(),
                unit: Unit::Moment,
                scale: Scale::Time,
            },
            y: Axis::linear(unit, Unit::Count),
            lines: vec![Line {
                name: unit.into(),
                points,
            }],
        }
    }

    fn days(&self) -> Table {
        let days = &self.totals.days.days;
        let first = days.len().saturating_sub(DAYS);
        let row = |at: usize| {
            let (number, day) = &days[at];
            let before = at
                .checked_sub(1)
                .map(|at| &days[at])
                .filter(|(before, _)| before + 1 == *number);
            let status = |class: usize| number::count(day.statuses[class]);
            vec![
                date(*number),
                number::count(day.requests),
                before.map_or_else(none, |(_, before)| change(day, before)),
                visitors(day),
                share(day.agents[AgentClass::Bots as usize], day.requests),
                number::bytes(day.bytes as f64),
                status(4),
                status(5),
            ]
        };
        let note = match first {
            0 => String::new(),
            more => format!(
                "{} earlier days are in the JSON",
                number::count(more as u64)
            ),
        };
        Table {
            caption: "Each day beside the day before".into(),
            columns: Column::all("day|#requests|#change|#visitors|#bots|#bytes|#4xx|#5xx"),
            rows: (first..days.len()).map(row).collect(),
            note,
        }
    }

    fn hours(&self) -> BarChart {
        let days = &self.totals.days.days;
        let sum = |hour: usize| days.iter().map(|(_, day)| day.hour(hour)).sum::<u64>() as f64;
        BarChart {
            title: "Requests by the hour of the day".into(),
            note: String::new(),
            unit: Unit::Count,
            scale: Scale::Linear,
            groups: (0..24).map(|hour| format!("{hour:02}:00")).collect(),
            series: vec![Bars {
                name: "requests".into(),
                values: (0..24).map(|hour| Some(sum(hour))).collect(),
            }],
        }
    }

    fn addresses(&self, top: usize) -> Table {
        let is_timed = self.totals.times.count() > 0;
        let row = |counted: &&KeyCount<crate::counter::AddressSums>| {
            let sums = counted.value;
            let mut cells = self.row(&counted.key, counted.count);
            cells.push(number::bytes(sums.bytes as f64));
            if is_timed {
                let mean = sums.micros as f64 / sums.timed.max(1) as f64;
                cells.push(if sums.timed > 0 {
                    number::micros(mean)
                } else {
                    none()
                });
            }
            cells
        };
        let mean = if is_timed { "|#mean time" } else { "" };
        Table {
            caption: format!(
                "The {} of {} with the most requests",
                top.min(self.totals.addresses.len()),
                number::count(self.totals.addresses.len() as u64)
            ),
            columns: Column::all(&format!("address|#requests|#share|#bytes{mean}")),
            rows: self
                .totals
                .addresses
                .sorted()
                .iter()
                .take(top)
                .map(row)
                .collect(),
            note: missing(&self.totals.addresses),
        }
    }

    fn row(&self, key: &[u8], count: u64) -> Vec<String> {
        vec![words(key), number::count(count), self.share(count)]
    }

    fn frequent(&self, caption: &str, name: &str, counts: &Frequent, top: usize) -> Table {
        let sorted = counts.sorted();
        Table {
            caption: caption.to_owned(),
            columns: Column::all(&format!("{name}|#requests|#share")),
            rows: sorted
                .iter()
                .take(top)
                .map(|counted| self.row(&counted.key, counted.count))
                .collect(),
            note: missing(counts),
        }
    }

    fn statuses(&self, top: usize) -> Table {
        let mut counts: Vec<(usize, u64)> =
            self.totals.statuses.iter().copied().enumerate().collect();
        counts.retain(|(_, count)| *count > 0);
        counts.sort_by_key(|(status, count)| (std::cmp::Reverse(*count), *status));
        let classes = (1..6).map(|class| {
            let sum = self.totals.statuses[class * 100..class * 100 + 100]
                .iter()
                .sum();
            (format!("{class}xx"), sum)
        });
        let classes = classes.filter(|(_, sum)| *sum > 0);
        let single = counts
            .iter()
            .take(top)
            .map(|(status, count)| (status.to_string(), *count));
        let rows = classes
            .chain(single)
            .map(|(name, count)| self.row(name.as_bytes(), count));
        Table {
            caption: "Statuses by class, then each".into(),
            columns: Column::all("status|#requests|#share"),
            rows: rows.collect(),
            note: String::new(),
        }
    }

    fn times(&self) -> Table {
        let times = &self.totals.times;
        let quantile = |share| times.quantile(share).map_or_else(none, number::micros);
        let mut rows: Vec<Vec<String>> = QUANTILES
            .iter()
            .map(|(name, share)| vec![(*name).to_owned(), quantile(*share)])
            .collect();
        rows.push(vec!["mean".into(), number::micros(times.mean())]);
        Table {
            caption: "Response time: this share of the answers took at most".into(),
            columns: Column::all("share|#time"),
            rows,
            note: format!(
                "of {} answers whose time is in the log",
                number::count(times.count())
            ),
        }
    }

    fn agents(&self) -> Table {
        let rows = AgentClass::ALL.iter().zip(self.totals.agents);
        Table {
            caption: "Clients, by the words they use for themselves".into(),
            columns: Column::all("clients|#requests|#share"),
            rows: rows
                .map(|(class, count)| self.row(class.name().as_bytes(), count))
                .collect(),
            note: "A robot that calls itself a browser is counted among people.".into(),
        }
    }

    fn minutes(&self, top: usize) -> Table {
        let minutes = self.totals.days.busiest_minutes(top);
        let note = match self.spikes.len() {
            0 => "No minute was far above its neighbours.",
            _ => "The spikes below were far above their neighbours.",
        };
        Table {
            caption: "Busiest minutes".into(),
            columns: Column::all("minute|#requests"),
            rows: minutes
                .iter()
                .map(|(time, count)| vec![moment(*time), number::count(u64::from(*count))])
                .collect(),
            note: note.into(),
        }
    }

    /// Sentences on what is exact, and on what was not counted.
    fn remarks(&self) -> String {
        let totals = &self.totals;
        let mut text = format!("{} lines were read. ", number::count(totals.lines));
        let mut add = |sentence: &str| {
            text.push_str(sentence);
            text.push_str(". ");
        };
        if let Some(damage) = self.damage() {
            add(&damage);
        }
        if totals.left_out > 0 {
            add(&format!(
                "{} requests are outside of --from, --to and --filter",
                number::count(totals.left_out)
            ));
        }
        if totals.days.left_out > 0 {
            add(&format!(
                "{} requests are of further days than are kept apart",
                number::count(totals.days.left_out)
            ));
        }
        self.problems.iter().for_each(|problem| add(problem));
        add(
            "A visitor is an address with an agent, on one day; visitors of days are not added, for many come again",
        );
        let is_exact = totals
            .days
            .days
            .iter()
            .all(|(_, day)| day.visitors.is_exact());
        let is_complete = totals.addresses.missing() + totals.referrers.missing() == 0;
        add(match (is_complete, is_exact) {
            (true, true) => "All counts are exact",
            (true, false) => "All counts are exact, but for visitors with a ~ (within 2 %)",
            (false, true) => {
                "All counts are exact, but for the tables that say by how much they may be too low"
            }
            (false, false) => {
                "All counts are exact, but for visitors with a ~ (within 2 %) and the tables that say by how much they may be too low"
            }
        });
        if totals.times.count() > 0 {
            add("Response times are within 3 %");
        }
        text
    }
}

fn origins(spike: &Spike) -> Table {
    let mut rows = Vec::new();
    for (name, counts) in ORIGIN_NAMES.iter().zip(&spike.origins) {
        let sorted = counts.sorted();
        // The first one also if it says little: that they came from everywhere.
        let says = |(n, counted): &(usize, &&KeyCount<()>)| {
            *n == 0 || counted.count as f64 >= SHARE * spike.requests as f64
        };
        for (_, counted) in sorted.iter().enumerate().take(ORIGINS).filter(says) {
            let key = if counted.key.is_empty() {
                none()
            } else {
                words(&counted.key)
            };
            rows.push(vec![
                (*name).to_owned(),
                key,
                number::count(counted.count),
                share(counted.count, spike.requests),
            ]);
        }
    }
    let last = match spike.last - spike.first {
        0 => String::new(),
        _ => format!(" to {}", &moment(spike.last * 60)[11..]),
    };
    Table {
        caption: format!(
            "Spike of {}{last}: {} requests, up to {} a minute where {} are usual",
            moment(spike.first * 60),
            number::count(spike.requests),
            number::count(u64::from(spike.peak)),
            number::count(u64::from(spike.usual))
        ),
        columns: Column::all("from|which|#requests|#share"),
        rows,
        note: String::new(),
    }
}

fn missing<V: Default>(counts: &Frequent<V>) -> String {
    match counts.missing() {
        0 => String::new(),
        missing => format!(
            "more different ones than are kept apart: a count may be too low by up to {}",
            number::count(missing)
        ),
    }
}

fn share(count: u64, all: u64) -> String {
    match count as f64 / all.max(1) as f64 {
        small if small > 0.0 && small < 1e-4 => "<0.01\u{a0}%".to_owned(),
        share => number::percent(share),
    }
}

/// `+12 %`, or how many times as many.
fn change(day: &DayFigures, before: &DayFigures) -> String {
    let ratio = day.requests as f64 / before.requests.max(1) as f64;
    match ((ratio - 1.0) * 100.0).round() as i64 {
        900.. => number::times(ratio),
        0 => "0\u{a0}%".to_owned(),
        percent @ 1.. => format!("+{percent}\u{a0}%"),
        percent => format!("−{}\u{a0}%", -percent),
    }
}

fn visitors(day: &DayFigures) -> String {
    let estimated = if day.visitors.is_exact() { "" } else { "~" };
    format!("{estimated}{}", number::count(day.visitors.count()))
}

/// A text of a client as words of a table.
fn words(key: &[u8]) -> String {
    let text = String::from_utf8_lossy(key);
    match text.char_indices().nth(LETTERS) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.into_owned(),
    }
}

/// `2026-11-29`.
pub(crate) fn date(day: i64) -> String {
    moment(day * SECONDS)
        .split(' ')
        .next()
        .unwrap_or_default()
        .to_owned()
}

/// `2026-11-29 12:30`.
pub(crate) fn moment(time: i64) -> String {
    number::moment(time as f64)
}
