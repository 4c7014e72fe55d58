//! What a walk over the templates finds, told once for each place.

use std::collections::{BTreeMap, BTreeSet};

use minijinja::machinery::ast::Stmt;

use super::file_of;
use millpond_site_format::Problem;

/// A template's text and its syntax tree.
pub(super) struct Parsed<'t> {
    pub(super) name: &'t str,
    pub(super) source: &'t str,
    pub(super) root: Stmt<'t>,
}

/// A byte in a template: the template's place in the list, and the offset.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct TemplatePlace {
    pub(super) file: usize,
    pub(super) offset: usize,
    /// True if the finding is that a value may be missing. The name itself may be good.
    pub(super) is_lack: bool,
}

/// One fault, and what to do about it.
#[derive(Clone, Debug)]
pub(super) struct Finding {
    pub(super) place: TemplatePlace,
    pub(super) message: String,
    pub(super) hint: Option<String>,
}

impl Finding {
    /// Why a value may be missing.
    pub(super) fn lack(place: TemplatePlace, message: String, hint: String) -> Self {
        let place = TemplatePlace {
            is_lack: true,
            ..place
        };
        Self::new(place, message, Some(hint))
    }

    pub(super) fn new(place: TemplatePlace, message: String, hint: Option<String>) -> Self {
        Self {
            place,
            message,
            hint,
        }
    }
}

/// A fault at one place, for one page or several.
struct Spot {
    finding: Finding,
    /// Each page with those of its cases for which it is a fault.
    pages: BTreeMap<usize, BTreeSet<String>>,
}

/// The faults and the doubts of all pages.
#[derive(Default)]
pub(super) struct Findings {
    faults: BTreeMap<TemplatePlace, Spot>,
    doubts: BTreeMap<TemplatePlace, Spot>,
    /// The number of cases of each page that has several.
    pub(super) cases: BTreeMap<usize, usize>,
}

impl Findings {
    /// A fault for a page, and a case of it.
    pub(super) fn fault(&mut self, finding: &Finding, of: (usize, &str)) {
        record(&mut self.faults, finding, of);
    }

    /// A value that may be missing, depending on the data.
    pub(super) fn doubt(&mut self, finding: &Finding, of: (usize, &str)) {
        record(&mut self.doubts, finding, of);
    }

    /// Errors, and what may be missing. Both in the order of the files.
    pub(super) fn problems(self, templates: &[Parsed<'_>]) -> (Vec<Problem>, Vec<Problem>) {
        let Self {
            faults,
            doubts,
            cases,
        } = self;
        let doubts = doubts
            .iter()
            .filter(|(place, _)| !faults.contains_key(place));
        let doubts = doubts.map(|(_, spot)| problem(spot, templates, &cases));
        let doubts = doubts.collect();
        let faults = faults.values();
        let faults = faults.map(|spot| problem(spot, templates, &cases));
        (faults.collect(), doubts)
    }
}

fn record(
    spots: &mut BTreeMap<TemplatePlace, Spot>,
    finding: &Finding,
    (page, case): (usize, &str),
) {
    let spot = spots.entry(finding.place).or_insert_with(|| Spot {
        finding: finding.clone(),
        pages: BTreeMap::new(),
    });
    spot.pages.entry(page).or_default().insert(case.to_owned());
}

/// A fault in a shared template says for which pages it is one, and a fault for some values of the
/// path names one of them.
fn problem(spot: &Spot, templates: &[Parsed<'_>], cases: &BTreeMap<usize, usize>) -> Problem {
    let place = spot.finding.place;
    let template = &templates[place.file];
    let mut message = spot.finding.message.clone();
    let first = spot.pages.first_key_value();
    if let Some((page, own)) = first
        && cases.get(page).is_some_and(|all| own.len() < *all)
        && let Some(case) = own.first().filter(|case| !case.is_empty())
    {
        message = format!("{message} where {case}");
    }
    let first = first.map(|(page, _)| templates[*page].name);
    match (first, spot.pages.len()) {
        (Some(page), 1) if page != template.name => message = format!("{message} (for {page})"),
        (Some(page), more) if more > 1 => {
            message = format!("{message} (for {more} pages, such as {page})");
        }
        _ => {}
    }
    let mut problem = Problem::new(file_of(template.name), message);
    problem.hint.clone_from(&spot.finding.hint);
    problem.at_offset(template.source, place.offset)
}
