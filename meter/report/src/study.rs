//! A study as a page: what it shows, each experiment with graph, table and verdict, the figures of
//! its source beside them, and an explanation.

use millrace_runs::{Lab, OriginalTable, StudyPart, StudyRecord};
use millrace_stats::Verdict;

use crate::measured::sentence;
use crate::{
    Banner, Column, PageLink, Report, Section, Table, Tone, conditions, day, lab::banner,
    lab_charts, lab_graphs, lab_limited, lab_limits, lab_report, lab_time, study_original,
    study_saturation,
};

/// The page of all studies.
pub(crate) const INDEX: &str = "index.html";

/// A study with the results of its experiments.
#[derive(Clone, Debug, Default)]
pub struct StudyPages {
    /// Its text, and what became of its experiments.
    pub record: StudyRecord,
    /// For each part of the record its result, if there is one.
    pub results: Vec<Option<Lab>>,
}

impl StudyPages {
    /// The file of its page.
    fn page(&self) -> String {
        format!("{}.html", self.record.name)
    }

    fn parts(&self) -> impl Iterator<Item = (&StudyPart, Option<&Lab>)> {
        let results = self.results.iter().map(Option::as_ref);
        let results = results.chain(std::iter::repeat(None));
        self.record.parts.iter().zip(results)
    }

    /// The worst verdict, in a word, and how it sounds.
    fn verdict(&self) -> (String, Tone) {
        let parts: Vec<_> = self.parts().collect();
        let done = parts.iter().filter_map(|(_, lab)| *lab);
        let is_missing = parts.is_empty() || parts.iter().any(|(_, lab)| lab.is_none());
        match done.clone().map(weight).max() {
            None => ("not run".to_owned(), Tone::Bad),
            Some(_) if is_missing => ("in part".to_owned(), Tone::Doubtful),
            Some(2) => ("INVALID".to_owned(), Tone::Bad),
            Some(1) => ("SUSPECT".to_owned(), Tone::Doubtful),
            Some(_) => {
                let tones = done.map(|lab| banner(lab).tone);
                let is_good = tones.into_iter().all(|tone| tone == Tone::Good);
                let tone = if is_good { Tone::Good } else { Tone::Doubtful };
                ("VALID".to_owned(), tone)
            }
        }
    }

    /// Every page of the study: the name of its file, and the report.
    pub fn reports(&self) -> Vec<(String, Report)> {
        let mut pages = vec![(self.page(), study_report(self))];
        for (part, lab) in self.parts() {
            let Some(lab) = lab else {
                continue;
            };
            let mut report = lab_report(lab);
            let back = PageLink::new(self.page(), self.record.text.title.as_str());
            report.sections.insert(0, Section::Links(vec![back]));
            pages.push((self.full_page(part), report));
        }
        pages
    }

    /// The file of the full report of an experiment.
    fn full_page(&self, part: &StudyPart) -> String {
        let name = part.file.strip_suffix(".toml").unwrap_or(&part.file);
        format!("{}-{name}.html", self.record.name)
    }
}

fn weight(lab: &Lab) -> u8 {
    match lab.verdict {
        Verdict::Valid => 0,
        Verdict::Suspect => 1,
        Verdict::Invalid => 2,
    }
}

/// The page of one study.
pub fn study_report(study: &StudyPages) -> Report {
    let text = &study.record.text;
    let mut report = Report::new(text.title.as_str(), text.sentence.as_str());
    report.push(Section::Links(vec![PageLink::new(
        INDEX,
        "All experiments",
    )]));
    if study.record.parts.iter().any(|part| part.quick) {
        report.push(Section::Text(
            "These are quick runs: shorter and fewer than the files of the experiments say. They show that everything works, \
             and hardly how fast."
                .to_owned(),
        ));
    }
    for (part, lab) in study.parts() {
        experiment(&mut report, study, part, lab);
    }
    let is_apart = |table: &&OriginalTable| table.experiment.is_none();
    for original in text.originals.iter().filter(is_apart) {
        report.push(study_original::section(original));
    }
    report.push(Section::Heading("What it shows".to_owned()));
    report.push(Section::Prose(text.shows.clone()));
    if !text.cannot.is_empty() {
        report.push(Section::Table(cannot(study)));
    }
    report.push(Section::Table(circumstances(study)));
    report
}

/// One experiment: what it asks, its verdict, graphs, table, and the figures of the source.
fn experiment(report: &mut Report, study: &StudyPages, part: &StudyPart, lab: Option<&Lab>) {
    report.push(Section::Heading(part.title.clone()));
    if let Some(lab) = lab.filter(|lab| !lab.question.is_empty()) {
        report.push(Section::Text(lab.question.clone()));
    }
    for left_out in &part.left_out {
        report.push(Section::Text(format!("{left_out}.")));
    }
    match lab {
        Some(lab) => figures(report, lab),
        None => {
            let reason = part.failure.as_deref().unwrap_or("it was not run");
            report.push(Section::Banner(Banner {
                tone: Tone::Bad,
                title: "no result".to_owned(),
                reasons: vec![sentence(reason)],
            }));
        }
    }
    let beside = |table: &&OriginalTable| table.experiment.as_ref() == Some(&part.file);
    for original in study.record.text.originals.iter().filter(beside) {
        report.push(study_original::section(original));
    }
    if lab.is_some() {
        let name = "Every figure of this experiment, and how each server was run";
        report.push(Section::Links(vec![PageLink::new(
            study.full_page(part),
            name,
        )]));
    }
}

fn figures(report: &mut Report, lab: &Lab) {
    if lab.levels.len() > 1 {
        for chart in lab_graphs::lines(lab) {
            match lab_graphs::is_zero(&chart) {
                true => report.push(Section::Text(format!("{}: none.", chart.title))),
                false => report.push(Section::Lines(chart)),
            };
        }
    } else {
        let found: Vec<_> = lab.findings.iter().collect();
        for chart in lab_charts::bars(lab, &found) {
            report.push(Section::Bars(chart));
        }
    }
    for chart in lab_time::lines(lab) {
        report.push(Section::Lines(chart));
    }
    report.push(Section::Table(study_saturation::table(lab)));
    let tables = [lab_limited::table(lab), lab_limits::table(lab)];
    for table in tables.into_iter().flatten() {
        report.push(Section::Table(table));
    }
    report.push(Section::Banner(banner(lab)));
}

fn cannot(study: &StudyPages) -> Table {
    let cannot = &study.record.text.cannot;
    Table {
        caption: "What of the source is not repeated here".to_owned(),
        columns: vec![Column::text("what"), Column::text("why")],
        rows: cannot
            .iter()
            .map(|one| vec![one.what.clone(), one.why.clone()])
            .collect(),
        note: String::new(),
    }
}

/// The source, the machine and the day.
fn circumstances(study: &StudyPages) -> Table {
    let mut rows = vec![["source".to_owned(), study.record.text.source.clone()]];
    rows.extend(conditions::machine(&study.record.host));
    rows.extend(days(study).map(|days| ["date".to_owned(), format!("{days} (UTC)")]));
    let command = format!("millrace lab run {}", study.record.name);
    rows.push(["command".to_owned(), command]);
    conditions::table(rows)
}

/// The day of the runs, or the first and the last.
fn days(study: &StudyPages) -> Option<String> {
    let began = study.results.iter().flatten().map(|lab| lab.started_unix_s);
    let (first, last) = (began.clone().min()?, began.max()?);
    let (first, last) = (day::of(first)?, day::of(last)?);
    Some(match first == last {
        true => first,
        false => format!("{first} to {last}"),
    })
}

/// The page that leads to all studies, and to experiments that belong to none: the file of each
/// one's page with its result.
pub fn study_index(studies: &[StudyPages], single: &[(String, Lab)]) -> Report {
    let mut report = Report::new(
        "Experiments",
        "Tables and graphs of known write-ups about the speed of web servers, measured again on one machine.",
    );
    let link = |study: &StudyPages| {
        let (verdict, tone) = study.verdict();
        PageLink {
            note: study.record.text.sentence.clone(),
            verdict,
            tone,
            ..PageLink::new(study.page(), study.record.text.title.as_str())
        }
    };
    report.push(Section::Links(studies.iter().map(link).collect()));
    if !single.is_empty() {
        report.push(Section::Heading("Single experiments".to_owned()));
        let link = |(page, lab): &(String, Lab)| PageLink {
            note: lab.question.clone(),
            verdict: lab.verdict.to_string(),
            tone: banner(lab).tone,
            ..PageLink::new(page.as_str(), lab.title.as_str())
        };
        report.push(Section::Links(single.iter().map(link).collect()));
    }
    report.push(Section::Text(
        "VALID: the figures can be believed. SUSPECT: with doubts, which the page names. INVALID: not. A server that is asked \
         for more than it can do is SUSPECT for that very reason."
            .to_owned(),
    ));
    let hosts = studies.iter().map(|study| &study.record.host);
    let mut hosts: Vec<_> = hosts
        .chain(single.iter().map(|(_, lab)| &lab.host))
        .collect();
    hosts.dedup();
    if let [host] = hosts.as_slice() {
        report.push(Section::Table(conditions::table(conditions::machine(host))));
    }
    report
}
