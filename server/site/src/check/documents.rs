//! Links and pictures in the Markdown files of a site that lead nowhere.

use std::{collections::HashMap, fs};

use millpond_http::path::normalize;
use percent_encoding::percent_decode_str;

use super::{
    dead_link::{DeadLink, near_file},
    links::is_upload,
    targets,
};
use crate::{
    core::Generation,
    data::{DataSources, DocumentFile, Documents, FOLDER},
};
use millpond_site_compile::{
    filters::{DocumentLink, document_links, document_stem},
    page::{Endpoint, Page},
    page_type::HTML,
    template::MarkdownUses,
};
use millpond_site_format::{
    Problem,
    route::{Pattern, Segment},
    rules::WORD,
};

/// The most notes. Once these are corrected, the next are shown.
const MAX_NOTES: usize = 100;

/// Addresses and files that the links of documents are compared with.
pub(super) struct DocumentSite<'g> {
    pub(super) generation: &'g Generation,
    uses: MarkdownUses,
    pub(super) documents: Documents,
    /// The pages that show Markdown with its links.
    pages: Vec<&'g Pattern>,
    /// False if there may be more of these pages.
    are_all: bool,
    /// Page that shows the row of a table with a slug; none for a table with several such pages.
    addresses: HashMap<String, Option<&'g Pattern>>,
}

/// Notes on all of them.
pub(super) fn notes(generation: &Generation, sources: &DataSources) -> Vec<Problem> {
    let Some(mut site) = DocumentSite::of(generation) else {
        return Vec::new();
    };
    site.documents = Documents::new(sources);
    let (mut notes, mut more) = (Vec::new(), 0);
    let mut is_filter_named = false;
    for document in &site.documents.all {
        // Another reading says what is wrong with a text that is not UTF-8.
        let opened = fs::File::open(&document.path).ok();
        let Some(Ok(text)) = opened.map(millpond_data::text) else {
            continue;
        };
        for link in document_links(&text) {
            let Some(dead) = site.dead(document, &link) else {
                continue;
            };
            // The template is to be changed, and not each link.
            if matches!(dead, DeadLink::AsWritten(_))
                && std::mem::replace(&mut is_filter_named, true)
            {
                continue;
            }
            if notes.len() == MAX_NOTES {
                more += 1;
                continue;
            }
            let (message, hint) = dead.note(&site, document);
            let note = Problem::new(&document.shown, message).at_offset(&text, link.offset);
            notes.push(note.hint(hint));
        }
    }
    if more > 0 {
        let message = format!("{more} more links and pictures in Markdown files lead nowhere");
        notes.push(Problem::new(FOLDER, message).hint("correct those above to see them"));
    }
    notes
}

impl<'g> DocumentSite<'g> {
    /// None for a site whose pages show no Markdown.
    fn of(generation: &'g Generation) -> Option<Self> {
        let uses = MarkdownUses::of(&generation.pages.environment);
        let (mut templates, mut pages) = (Vec::new(), Vec::new());
        let mut addresses = HashMap::new();
        for endpoint in &generation.pages.endpoints {
            let Some((page, template)) = page_with_template(endpoint) else {
                continue;
            };
            templates.push(template);
            // What a feed shows has the address of its page.
            if page.page_type.media_type == HTML && uses.are_in(template) {
                pages.push(&endpoint.pattern);
                for table in tables_by_slug(page, &endpoint.pattern) {
                    let known = addresses.entry(table).or_insert(Some(&endpoint.pattern));
                    known.take_if(|known| **known != endpoint.pattern);
                }
            }
        }
        let are_all = uses.are_all_in(&templates);
        (!pages.is_empty()).then(|| Self {
            generation,
            uses,
            documents: Documents::default(),
            pages,
            are_all,
            addresses,
        })
    }

    /// The address of a document's page, where it is known.
    pub(super) fn address(&self, document: &DocumentFile) -> Option<String> {
        let page = self.addresses.get(&document.table).copied().flatten()?;
        Some(page.with(document.slug.as_deref()?))
    }

    /// Finds the fault of a link from a document.
    fn dead(&self, document: &DocumentFile, link: &DocumentLink) -> Option<DeadLink<'_>> {
        let target = &*link.target;
        let path = &target[..target.find(['?', '#']).unwrap_or(target.len())];
        // A template may put something in the place of braces.
        let is_elsewhere = path.contains([':', '{', '\\']) || path.starts_with("//");
        if path.is_empty() || is_elsewhere {
            return None;
        }
        if path.starts_with('/') {
            let nowhere = match is_upload(path) {
                true => None,
                false => targets::unanswered(self.generation, path),
            };
            return nowhere.map(
                |note| match link.is_picture || near_file(self, path).is_some() {
                    true => DeadLink::file(path, link.is_picture),
                    false => DeadLink::Page(note),
                },
            );
        }
        let file = percent_decode_str(path).decode_utf8().ok()?;
        match document_stem(&file) {
            Some(stem) if !link.is_picture => self.dead_file(document, &file, stem),
            None if link.is_picture => self.dead_picture(document, path, &file),
            _ => None,
        }
    }

    /// A link to another document.
    fn dead_file(&self, document: &DocumentFile, file: &str, stem: &str) -> Option<DeadLink<'_>> {
        let dead = self.unfollowed(document, file, stem)?;
        // A redirect may know a name that a file had before.
        let name = stem.rsplit('/').next().unwrap_or(stem);
        let is_answered = |page: &&Pattern| {
            let links = [file, stem, name].into_iter();
            let mut addresses = links.filter_map(|link| beside(page, WORD, link));
            addresses.any(|address| self.answers(&address))
        };
        (self.are_all && !self.pages.iter().any(is_answered)).then_some(dead)
    }

    /// Finds the fault that keeps a link to another document from leading to its page, where the
    /// address of that has a parameter.
    fn unfollowed(&self, document: &DocumentFile, file: &str, stem: &str) -> Option<DeadLink<'_>> {
        let at_path = self.documents.at(document, file);
        let is_elsewhere = at_path.is_some_and(|found| found.table != document.table);
        if is_elsewhere && self.uses.has_tree {
            return None;
        }
        let is_there = || {
            document
                .path
                .parent()
                .is_some_and(|it| it.join(file).exists())
        };
        if at_path.is_none() && is_there() {
            // It is no row, such as a file outside of the folder.
            return None;
        }
        // The template may let its name alone count, so a file in another folder of the table is
        // enough.
        let name = file.rsplit('/').next()?;
        let of_table = |other: &&DocumentFile| other.table == document.table;
        let named = || self.documents.named(name).filter(of_table);
        let found = at_path.or_else(|| named().next());
        let Some(found) = found else {
            let may_be_row = self.documents.has_other_rows(&document.table);
            return (!may_be_row).then(|| DeadLink::Document(file.to_owned()));
        };
        if !self.uses.leads_to_pages {
            return Some(DeadLink::AsWritten(file.to_owned()));
        }
        if is_elsewhere {
            return Some(DeadLink::OtherTable(found));
        }
        let stem = stem.rsplit('/').next().unwrap_or(stem);
        let has_address = named().any(|other| other.slug.as_deref() == Some(stem));
        let is_known = !has_address && self.address(found).is_some();
        is_known.then_some(DeadLink::OwnSlug(found))
    }

    /// A picture with an address without a slash in front, which counts from that of the page.
    fn dead_picture(
        &self,
        document: &DocumentFile,
        path: &str,
        file: &str,
    ) -> Option<DeadLink<'_>> {
        let is_answered = |page: &&Pattern| {
            let address = beside(page, WORD, path);
            address.is_none_or(|address| is_upload(&address) || self.answers(&address))
        };
        if !self.are_all || self.pages.iter().any(is_answered) {
            return None;
        }
        let of_table = self.addresses.get(&document.table).copied().flatten();
        let page = of_table.or_else(|| self.pages.first().copied())?;
        let address = beside(page, "…", file)?;
        let file = file.to_owned();
        Some(DeadLink::PictureBeside { file, address })
    }

    /// True if a rule, a file or a page of its own answers at an address: any but a page of HTML
    /// that takes a part of the address for a parameter.
    fn answers(&self, address: &str) -> bool {
        let Ok(path) = normalize(address) else {
            return true;
        };
        let generation = self.generation;
        let rules = generation.rules.as_ref();
        if rules.is_some_and(|rules| rules.before(&path).is_some()) {
            return true;
        }
        if let Some(found) = generation.pages.router.find(&path) {
            let endpoint = &generation.pages.endpoints[found.page];
            let is_html = |page: &Page| page.bytes.is_none() && page.page_type.media_type == HTML;
            let is_row = endpoint.pattern.params().next().is_some();
            return endpoint
                .page
                .as_deref()
                .is_some_and(|page| !(is_row && is_html(page)));
        }
        generation
            .addresses
            .find(&generation.statics, &path)
            .is_some()
            || generation
                .canonical(&path)
                .is_some_and(|path| self.answers(path))
    }
}

fn page_with_template(endpoint: &Endpoint) -> Option<(&Page, &str)> {
    let page = endpoint.page.as_deref()?;
    Some((page, page.template.as_deref()?))
}

/// The tables of which a page shows the row whose slug is the last part of its address, which is
/// the only one that may vary.
fn tables_by_slug(page: &Page, pattern: &Pattern) -> Vec<String> {
    let Some(Segment::Param(last)) = pattern.segments.last() else {
        return Vec::new();
    };
    if pattern.params().count() > 1 {
        return Vec::new();
    }
    let statements = page.queries.iter().flat_map(|query| {
        let statements = query.statements.iter();
        statements.flat_map(|statement| query.describe(statement))
    });
    let by_slug = statements.filter_map(|line| {
        let (table, param) = line.split_once(": rows with slug = :")?;
        let is_part = |letter: char| letter.is_alphanumeric() || letter == '_';
        let param = param.split(|letter| !is_part(letter)).next()?;
        (param == last).then(|| table.to_owned())
    });
    by_slug.collect()
}

/// The address that a link without a slash in front has on a page, with a text in the place of the
/// page's parameters.
fn beside(page: &Pattern, value: &str, link: &str) -> Option<String> {
    let page = page.with(value);
    let folder = &page[..=page.rfind('/')?];
    let mut parts: Vec<&str> = folder.split('/').filter(|part| !part.is_empty()).collect();
    for part in link.split('/') {
        match part {
            ".." => drop(parts.pop()),
            "." | "" => {}
            part => parts.push(part),
        }
    }
    Some(format!("/{}", parts.join("/")))
}
