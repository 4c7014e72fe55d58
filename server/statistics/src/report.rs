//! Statistics as a report: the same tables as text and as HTML.

use base_chart::number::{self, none};
use base_chart::{
    Axis, BarChart, Bars, Column, Figure, Line, LineChart, Report, Scale, Section, Table, Unit,
};
use base_logs::Frequent;

use crate::agent::AgentClass;
use crate::day::{DayFigures, MINUTES, SECONDS};
use crate::run::Statistics;
use crate::spikes::Spike;

/// Days in the table; of more the last are shown.
const DAYS: usize = 31;
/// Days from which the chart has days, not hours.
const LONG: usize = 100;
/// Letters of an address that are shown.
const LETTERS: usize = 200;
/// Keys of each kind that say where a spike came from, and the share from which one says something.
const ORIGINS: usize = 3;
const SHARE: f64 = 0.05;
/// Shares of the answers whose response time is shown.
pub(crate) const QUANTILES: [f64; 6] = [0.5, 0.75, 0.9, 0.95, 0.99, 0.999];
/// Kinds of the origins of a spike.
pub(crate) const ORIGIN_NAMES: [&str; 4] = ["address", "referrer", "network", "agent"];

impl Statistics {
    /// The statistics as a report, with `top` rows in each table of frequent values.
    pub fn report(&self, top: usize) -> Report {
        let names = self.logs.iter().map(|path| path.display().to_string());
        let mut report = Report::new(
            "Requests in the access log",
            words(names.collect::<Vec<_>>().join(", ").as_bytes()),
        );
        let totals = &self.totals;
        let mut add = |section| {
            report.push(section);
        };
        add(Section::Figures(self.figures()));
        if totals.requests > 0 {
            add(Section::Lines(self.timeline()));
            add(Section::Heading("Days".into()));
            add(self.days());
            add(Section::Bars(self.hours()));
            add(Section::Heading("Addresses".into()));
            add(self.addresses(top));
            add(Section::Heading("Answers".into()));
            add(self.statuses(top));
            add(self.frequent("Methods|method", &totals.methods, top));
            if totals.times.count() > 0 {
                add(self.times());
            }
            add(Section::Heading("Visitors".into()));
            let agents = AgentClass::ALL.into_iter().zip(totals.agents);
            let agents = agents.map(|(class, count)| (class.name().to_owned(), count));
            let note = "A robot that calls itself a browser is counted among people.";
            let title = "Clients, by the words they use for themselves|clients";
            add(self.counts(title, agents, note.into()));
            add(self.frequent("Referrers|host", &totals.referrers, top));
            add(Section::Heading("Peaks".into()));
            let minutes = totals.days.busiest_minutes(top).into_iter();
            let minutes = minutes.map(|(time, count)| (minute(time), u64::from(count)));
            let note = match self.spikes.len() {
                0 => "No minute was far above its neighbours.",
                _ => "The spikes below were far above their neighbours.",
            };
            add(self.counts("Busiest minutes|minute", minutes, note.into()));
            self.spikes.iter().map(origins).for_each(&mut add);
        }
        add(Section::Heading("How it was counted".into()));
        add(Section::Text(self.remarks()));
        report
    }

    fn figures(&self) -> Vec<Figure> {
        let totals = &self.totals;
        let days = &totals.days.days;
        let span = match &days[..] {
            [(first, _), .., (last, _)] => format!("{} to {}", date(*first), date(*last)),
            days => days.first().map_or_else(none, |(day, _)| date(*day)),
        };
        let counts = days.iter().map(|(_, day)| day.visitors.count());
        let mean = counts.clone().sum::<u64>() / days.len().max(1) as u64;
        let failed: u64 = totals.statuses[500..600].iter().sum();
        let bots = totals.agents[AgentClass::Bots as usize];
        let busiest = totals.days.busiest_minutes(1);
        let (time, peak) = busiest.first().copied().unwrap_or_default();
        let figure =
            |label: &str, value: String, note: String| Figure::new(label, value).with_note(note);
        let (sent, peak) = (
            number::bytes(totals.bytes as f64),
            number::count(peak.into()),
        );
        let most = format!("{} at most", number::count(counts.max().unwrap_or(0)));
        let answers = format!("{} answers", number::count(failed));
        let mut figures = vec![
            figure("requests", number::count(totals.requests), span),
            figure("visitors a day", number::count(mean), most),
            figure("bytes sent", sent, String::new()),
            figure("requests of declared bots", self.share(bots), String::new()),
            figure("server errors", self.share(failed), answers),
            figure("requests in the busiest minute", peak, minute(time)),
        ];
        let slow = totals.times.quantile(0.99).map(number::micros);
        figures.extend(slow.map(|slow| Figure::new("response time, 99 %", slow)));
        figures
    }

    fn share(&self, count: u64) -> String {
        share(count, self.totals.requests)
    }

    /// Requests an hour from the first day to the last; of a long time requests a day.
    fn timeline(&self) -> LineChart {
        let days = &self.totals.days.days;
        let is_long = days.len() > LONG;
        let mut points = Vec::new();
        let mut next = days.first().map_or(0, |(day, _)| *day);
        for (day, figures) in days {
            let begin = (day * SECONDS) as f64;
            // Days without a request are a gap in the log.
            if *day > next {
                points.push(((next * SECONDS) as f64, None));
            }
            next = day + 1;
            let count = |hour| Some(figures.hour(hour) as f64);
            let hour = |hour| (begin + hour as f64 * 3600.0, count(hour));
            match is_long {
                true => points.push((begin, Some(figures.requests as f64))),
                false => points.extend((0..24).map(hour)),
            }
        }
        let each = if is_long { "a day" } else { "an hour" };
        let name = format!("requests {each}");
        let x = Axis {
            scale: Scale::Time,
            ..Axis::linear("on the clock of the log", Unit::Moment)
        };
        LineChart {
            title: "Requests over time".into(),
            note: String::new(),
            x,
            y: Axis::linear(&name, Unit::Count),
            lines: vec![Line { name, points }],
        }
    }

    fn days(&self) -> Section {
        let days = &self.totals.days.days;
        let first = days.len().saturating_sub(DAYS);
        let row = |at: usize| {
            let (number, day) = &days[at];
            let before = days[..at]
                .last()
                .filter(|(before, _)| before + 1 == *number);
            let estimated = if day.visitors.is_exact() { "" } else { "~" };
            vec![
                date(*number),
                number::count(day.requests),
                before.map_or_else(none, |(_, before)| change(day, before)),
                format!("{estimated}{}", number::count(day.visitors.count())),
                share(day.agents[AgentClass::Bots as usize], day.requests),
                number::bytes(day.bytes as f64),
                number::count(day.statuses[4]),
                number::count(day.statuses[5]),
            ]
        };
        let note = match first {
            0 => String::new(),
            more => format!(
                "{} earlier days are in the JSON",
                number::count(more as u64)
            ),
        };
        let titles =
            "Each day beside the day before|day|#requests|#change|#visitors|#bots|#bytes|#4xx|#5xx";
        table(titles, (first..days.len()).map(row), note)
    }

    fn hours(&self) -> BarChart {
        let days = &self.totals.days.days;
        let sum = |hour: usize| days.iter().map(|(_, day)| day.hour(hour)).sum::<u64>() as f64;
        let values = (0..24).map(|hour| Some(sum(hour))).collect();
        BarChart {
            title: "Requests by the hour of the day".into(),
            note: String::new(),
            unit: Unit::Count,
            scale: Scale::Linear,
            groups: (0..24).map(|hour| format!("{hour:02}:00")).collect(),
            series: vec![Bars {
                name: "requests".into(),
                values,
            }],
        }
    }

    fn addresses(&self, top: usize) -> Section {
        let addresses = &self.totals.addresses;
        let is_timed = self.totals.times.count() > 0;
        let sorted = addresses.sorted();
        let rows = sorted.iter().take(top).map(|counted| {
            let sums = counted.value;
            let mean = (sums.timed > 0).then(|| sums.micros as f64 / sums.timed as f64);
            let mut row = self.row(words(&counted.key), counted.count);
            row.push(number::bytes(sums.bytes as f64));
            row.extend(is_timed.then(|| mean.map_or_else(none, number::micros)));
            row
        });
        let least = if addresses.missing() > 0 {
            "at least "
        } else {
            ""
        };
        let all = format!("{least}{}", number::count(addresses.len() as u64));
        let mean = if is_timed { "|#mean time" } else { "" };
        let titles = format!("Of {all} the most requested|address|#requests|#share|#bytes{mean}");
        table(&titles, rows, missing(addresses.missing()))
    }

    fn statuses(&self, top: usize) -> Section {
        let statuses = &self.totals.statuses;
        let mut single: Vec<(usize, u64)> = statuses.iter().copied().enumerate().collect();
        single.sort_by_key(|(status, count)| (std::cmp::Reverse(*count), *status));
        let single = single.into_iter().take(top);
        let single = single.map(|(status, count)| (status.to_string(), count));
        let classes = statuses.chunks(100).zip(0..);
        let classes = classes.map(|(all, class)| (format!("{class}xx"), all.iter().sum()));
        let rows = classes.chain(single).filter(|(_, count)| *count > 0);
        self.counts("Statuses by class, then each|status", rows, String::new())
    }

    fn times(&self) -> Section {
        let times = &self.totals.times;
        let rows = QUANTILES.iter().map(|share| {
            let value = times.quantile(*share).map_or_else(none, number::micros);
            vec![number::percent(*share), value]
        });
        let mean = [vec!["mean".into(), number::micros(times.mean())]];
        let note = format!(
            "of {} answers whose time is in the log",
            number::count(times.count())
        );
        let titles = "Response time: this share of the answers took at most|share|#time";
        table(titles, rows.chain(mean), note)
    }

    fn row(&self, name: String, count: u64) -> Vec<String> {
        vec![name, number::count(count), self.share(count)]
    }

    fn counts(
        &self,
        titles: &str,
        rows: impl Iterator<Item = (String, u64)>,
        note: String,
    ) -> Section {
        let rows = rows.map(|(name, count)| self.row(name, count));
        table(&format!("{titles}|#requests|#share"), rows, note)
    }

    fn frequent(&self, titles: &str, counts: &Frequent, top: usize) -> Section {
        let sorted = counts.sorted();
        let rows = sorted.into_iter().take(top);
        let rows = rows.map(|counted| (words(&counted.key), counted.count));
        self.counts(titles, rows, missing(counts.missing()))
    }

    /// Sentences on what is exact, and on what was not counted.
    fn remarks(&self) -> String {
        let totals = &self.totals;
        let mut sentences = vec![format!("{} lines were read", number::count(totals.lines))];
        sentences.extend(self.damage());
        for (count, what) in [
            (totals.left_out, "outside of --from, --to and --filter"),
            (totals.days.left_out, "of further days than are kept apart"),
        ] {
            let sentence = || format!("{} requests are {what}", number::count(count));
            sentences.extend((count > 0).then(sentence));
        }
        sentences.extend(self.problems.iter().cloned());
        sentences.push("A visitor is an address with an agent, on one day, a bot or program too; visitors of days are not added, for many come again".into());
        let mut days = totals.days.days.iter();
        let single = totals.referrers.missing() + totals.methods.missing();
        let origins: u64 = self.spikes.iter().map(Spike::missing).sum();
        let doubts = [
            (
                days.any(|(_, day)| !day.visitors.is_exact()),
                "visitors with a ~ (within 2 %)",
            ),
            (totals.times.count() > 0, "response times (within 3 %)"),
            (
                totals.addresses.missing() + single + origins > 0,
                "tables that say so",
            ),
        ];
        let doubts = doubts.iter().filter(|doubt| doubt.0);
        let doubts = Vec::from_iter(doubts.map(|doubt| doubt.1));
        let but = if doubts.is_empty() { "" } else { ", but for " };
        sentences.push(format!("All figures are exact{but}{}", doubts.join(", ")));
        sentences.join(". ") + "."
    }
}

/// A table; its caption and the titles of its columns stand between `|`.
fn table(titles: &str, rows: impl Iterator<Item = Vec<String>>, note: String) -> Section {
    let (caption, columns) = titles.split_once('|').unwrap_or((titles, ""));
    Section::Table(Table {
        caption: caption.to_owned(),
        columns: Column::all(columns),
        rows: rows.collect(),
        note,
    })
}

fn origins(spike: &Spike) -> Section {
    let mut rows = Vec::new();
    for (name, counts) in ORIGIN_NAMES.iter().zip(&spike.origins) {
        for (n, counted) in counts.sorted().iter().take(ORIGINS).enumerate() {
            // The first one also if it says little: that they came from everywhere.
            if n == 0 || counted.count as f64 >= SHARE * spike.requests as f64 {
                rows.push(vec![
                    (*name).to_owned(),
                    words(&counted.key),
                    number::count(counted.count),
                    share(counted.count, spike.requests),
                ]);
            }
        }
    }
    let minutes = [spike.first, spike.last].map(minute);
    let last = minutes[1]
        .rsplit(' ')
        .next()
        .filter(|_| spike.first < spike.last);
    let last = last.map_or_else(String::new, |last| format!(" to {last}"));
    let [peak, usual] = [spike.peak, spike.usual].map(|count| number::count(count.into()));
    let titles = format!(
        "Spike of {}{last}: {} requests, up to {peak} a minute where {usual} are usual|from|which|#requests|#share",
        minutes[0],
        number::count(spike.requests),
    );
    table(&titles, rows.into_iter(), missing(spike.missing()))
}

fn missing(count: u64) -> String {
    match count {
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
        percent => format!("{percent:+}\u{a0}%").replace('-', "−"),
    }
}

/// A text of a client as words of a table; one that is empty as the word for none.
fn words(key: &[u8]) -> String {
    let text = String::from_utf8_lossy(key);
    match text.char_indices().nth(LETTERS) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None if text.is_empty() => none(),
        None => text.into_owned(),
    }
}

/// `2026-11-29 12:30`.
pub(crate) fn minute(number: i64) -> String {
    number::moment((number * 60) as f64)
}

/// `2026-11-29`.
pub(crate) fn date(day: i64) -> String {
    // A day that has no four digits has no time either.
    let first = minute(day * MINUTES as i64);
    first.split(' ').next().unwrap_or_default().to_owned()
}
