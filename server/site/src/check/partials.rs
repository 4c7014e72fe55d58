//! The queries of templates in the pages that show them.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use millpond_db::Advice;

use super::advice;
use millpond_site_compile::{
    compile::Pages,
    page::{Page, PageQuery},
};
use millpond_site_format::Problem;

/// How many pages a note names.
const NAMED: usize = 3;

/// A query of a template: its file, and the line of its name.
type QueryPlace<'p> = (&'p Path, usize);

/// Each query of a template, with the pages that show it.
pub(super) struct ShownQueries<'p>(BTreeMap<QueryPlace<'p>, (&'p PageQuery, Vec<&'p Page>)>);

impl<'p> ShownQueries<'p> {
    pub(super) fn of(pages: &'p Pages) -> Self {
        let mut shown = BTreeMap::new();
        let endpoints = pages.endpoints.iter();
        for page in endpoints.filter_map(|endpoint| endpoint.page.as_deref()) {
            for query in page.queries.iter().filter(|query| is_of_template(query)) {
                let known = shown.entry((&*query.file, query.line));
                let (_, pages) = known.or_insert_with(|| (query, Vec::new()));
                pages.push(page);
            }
        }
        Self(shown)
    }

    /// The files of the pages that show a query's template; none if the query is a page's own.
    pub(super) fn files(&self, query: &PageQuery) -> Vec<PathBuf> {
        let found = self.0.get(&(&*query.file, query.line));
        let pages = found.into_iter().flat_map(|(_, pages)| pages);
        pages.map(|page| file_of(page)).collect()
    }

    /// Notes on queries that are not kept in memory, and so keep pages out of it that would be kept
    /// without this template.
    pub(super) fn notes(&self) -> Vec<Problem> {
        let notes = self.0.values().filter_map(|(query, pages)| {
            let why = uncacheable(query)?;
            let others = |page: &Page| {
                let mut others = page.queries.iter().filter(|other| other.file != query.file);
                others.all(|other| uncacheable(other).is_none())
            };
            let pages = pages.iter().filter(|page| others(page));
            let files: Vec<PathBuf> = pages.map(|page| file_of(page)).collect();
            (!files.is_empty()).then(|| note(query, why, &files))
        });
        notes.collect()
    }
}

fn note(query: &PageQuery, why: Advice, pages: &[PathBuf]) -> Problem {
    let named = pages.iter().take(NAMED);
    let named: Vec<String> = named.map(|file| file.display().to_string()).collect();
    let named = named.join(", ");
    let none = match pages.len() {
        1 => format!("so {named}, which shows it, is not"),
        more if more > NAMED => {
            format!("so none of the {more} pages that show it is, such as {named}")
        }
        more => format!("so none of the {more} pages that show it is: {named}"),
    };
    let (name, cause) = (&query.name, why.cause);
    let message = format!("query `{name}` is not kept in memory ({cause}), {none}");
    let note = Problem::new(&query.file, message).at(query.line, 1);
    match why.remedy {
        Some(remedy) => note.hint(format!("{}; {}", remedy.change, remedy.cost)),
        None => note,
    }
}

/// Why the results of a query are not kept, if they are not.
fn uncacheable(query: &PageQuery) -> Option<Advice> {
    let statements = query.statements.iter();
    let mut advice = statements.flat_map(|statement| advice(query, statement));
    advice.find(|advice| !advice.is_kept)
}

fn is_of_template(query: &PageQuery) -> bool {
    query.file.starts_with("templates")
}

/// The file of a page's own queries, or of its template.
fn file_of(page: &Page) -> PathBuf {
    let own = page.queries.iter().find(|query| !is_of_template(query));
    let template = page.template.iter();
    let file = own.map(|query| query.file.clone());
    file.unwrap_or_else(|| template.map(PathBuf::from).collect())
}
