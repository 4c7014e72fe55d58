//! One reading of a site folder: its files first, then its pages.

use std::{borrow::Cow, collections::BTreeMap, path::Path, sync::Arc};

use bytes::Bytes;
use millpond_db::Database;
use millpond_http::{Parts, Prepared};
use millpond_pages::CacheStatus;

use super::open_addresses::partly_closed;
use crate::{
    core::{
        Generation,
        error_answer::{self, PreparedErrors},
        own_page::StatusPage,
        problem_details::{FAILED, NOT_FOUND},
    },
    service::addresses::{Addresses, of_files},
    session::{Purpose, Sessions},
    statics::Statics,
};
use millpond_site_compile::{
    compile::{Pages, compile},
    lint,
    robots::robots,
};
use millpond_site_format::{
    Config, Problem,
    dialect::{Dialect, dialect_of},
    folder::{Folder, MAX_SOURCE, SiteFolder},
    locale::Formats,
    rules::{Rules, closed_targets, loops},
};

/// Pages and templates, as read and compiled.
struct Texts {
    number: u32,
    fingerprint: u64,
    pages: Arc<Pages>,
}

/// Reads the folder; what has not changed is kept from `before`.
pub(crate) fn read(
    folder: SiteFolder<'_>,
    config: &Config,
    database: &Database,
    before: Option<&Generation>,
) -> Result<Generation, Vec<Problem>> {
    let statics = match folder.files {
        Some(files) => Arc::new(Statics::embedded(files, &config.files)),
        None => statics(folder.dir, config, before)?,
    };
    let before = before.map(|before| (before, false));
    whole(folder, config, database, &statics, before, true)
}

/// Reads the folder without serving it: nothing is made in it.
pub(crate) fn look(
    dir: &Path,
    config: &Config,
    database: &Database,
) -> Result<Generation, Vec<Problem>> {
    let statics = statics(dir, config, None)?;
    whole(dir.into(), config, database, &statics, None, false)
}

/// Reads the folder again after a good reading. If the pages or the rules have problems, the files
/// are replaced all the same: a deleted file must not be served on because a template is broken.
/// Then `config` gets the other settings from `in_use`, and the problems are returned too.
/// `are_pages_older` if the schema has changed since the pages before were compiled.
pub(crate) fn read_again(
    dir: &Path,
    config: &mut Config,
    in_use: &Config,
    database: &Database,
    (before, are_pages_older): (&Generation, bool),
) -> Result<(Generation, Vec<Problem>), Vec<Problem>> {
    let statics = statics(dir, config, Some(before))?;
    let with_age = Some((before, are_pages_older));
    let problems = match whole(dir.into(), config, database, &statics, with_age, true) {
        Ok(generation) => return Ok((generation, Vec::new())),
        Err(problems) => problems,
    };
    config.rules.clone_from(&in_use.rules);
    config.session.clone_from(&in_use.session);
    config.formats = in_use.formats;
    let texts = Texts {
        number: before.number,
        fingerprint: before.fingerprint,
        pages: before.pages.clone(),
    };
    // With the new files the old rules may redirect in a circle: then everything stays as it was.
    let sessions = before.sessions.clone();
    match assemble(config, statics, texts, sessions, Some(before)) {
        Ok(generation) => Ok((generation, problems)),
        Err(_) => Err(problems),
    }
}

fn statics(
    dir: &Path,
    config: &Config,
    before: Option<&Generation>,
) -> Result<Arc<Statics>, Vec<Problem>> {
    let before = before.map(|before| &*before.statics);
    Statics::load(&dir.join("static"), &config.statics, &config.files, before)
        .map(Arc::new)
        .map_err(|problem| vec![problem])
}

fn whole(
    folder: SiteFolder<'_>,
    config: &Config,
    database: &Database,
    statics: &Arc<Statics>,
    before: Option<(&Generation, bool)>,
    is_served: bool,
) -> Result<Generation, Vec<Problem>> {
    let (dir, dialect) = (folder.dir, dialect_of(&config.database));
    let folder = Folder::read(folder, dialect)?;
    let formats = config.formats;
    let fingerprint = folder.fingerprint(formats);
    let (number, pages) = match before {
        Some((before, false)) if before.fingerprint == fingerprint => {
            (before.number, before.pages.clone())
        }
        _ => (
            before.map_or(0, |(before, _)| before.number + 1),
            Arc::new(compiled(&folder, dialect, database, formats)?),
        ),
    };
    let texts = Texts {
        number,
        fingerprint,
        pages,
    };
    let purpose = if is_served {
        let issues = texts.pages.issue_sessions();
        Purpose::Serve { issues }
    } else {
        Purpose::Check
    };
    let file = config.database.file();
    let key_folder = file.and_then(Path::parent).unwrap_or(dir);
    let name = file
        .and_then(Path::file_name)
        .unwrap_or_default()
        .to_string_lossy();
    let sessions = Sessions::load(
        &config.session,
        key_folder,
        &name,
        config.max_staleness.saturating_add(config.stale_if_error),
        purpose,
    )
    .map_err(|mut problem| {
        if let Ok(below) = problem.file.strip_prefix(dir) {
            problem.file = below.to_owned();
        }
        vec![problem]
    })?;
    let before = before.map(|(before, _)| before);
    assemble(config, statics.clone(), texts, sessions, before)
}

/// The pages of a folder, with notes on what is probably not meant.
fn compiled(
    folder: &Folder,
    dialect: Dialect,
    database: &Database,
    formats: Formats,
) -> Result<Pages, Vec<Problem>> {
    let mut pages = compile(folder, dialect, database, formats)?;
    let notes = lint::notes(folder, &pages);
    pages.doubts.extend(notes);
    Ok(pages)
}

fn prepared_robots(text: String) -> Arc<Prepared> {
    Arc::new(Prepared::new(Parts {
        status: 200,
        media_type: "text/plain; charset=utf-8",
        fields: &[("Cache-Control", "no-cache")],
        body: text.into(),
        last_modified: None,
        compressible: true,
    }))
}

fn assemble(
    config: &Config,
    statics: Arc<Statics>,
    texts: Texts,
    sessions: Arc<Sessions>,
    before: Option<&Generation>,
) -> Result<Generation, Vec<Problem>> {
    let pages = texts.pages;
    let faults = error_answer::faults(&pages);
    if !faults.is_empty() {
        return Err(faults);
    }
    let own = |status, sentence| own_error_page(&pages, status, sentence);
    let mut rules = Rules::compile(&config.rules, &CacheStatus::Hit.line());
    if let Some(guards) = rules.as_mut().and_then(|rules| rules.guards.as_mut()) {
        guards.reach_files(of_files(&statics, &config.files));
    }
    let file_404 = || file_404(&statics).filter(|_| !pages.error_pages.has(404));
    let generation = Generation {
        edition: before.map_or(0, |before| before.edition + 1),
        number: texts.number,
        fingerprint: texts.fingerprint,
        not_found: StatusPage::new(
            404,
            ("Not found", NOT_FOUND),
            match file_404() {
                None => own(404, NOT_FOUND)?,
                file => file,
            },
            before.map(|before| &before.not_found),
        ),
        error: StatusPage::new(
            500,
            ("Something went wrong", FAILED),
            own(500, FAILED)?,
            before.map(|before| &before.error),
        ),
        robots: robots(&pages.endpoints).map(prepared_robots),
        errors: PreparedErrors::default(),
        is_dev: before.is_some_and(|before| before.is_dev),
        addresses: Addresses::new(&statics, &pages.router, &config.files),
        rules,
        statics,
        sessions,
        pages,
        routes: Box::default(),
    };
    let circles = generation.rules.as_ref().map_or_else(Vec::new, |rules| {
        loops(rules, |path| {
            let to = generation.moved_to(path);
            let to = to.filter(|_| !generation.answers(path));
            to.map(Cow::into_owned)
        })
    });
    let closed = generation.rules.as_ref().map_or_else(Vec::new, |rules| {
        closed_targets(rules, |path| generation.path_behind(path))
    });
    let guards = generation.rules.as_ref();
    let guards = guards.and_then(|rules| rules.guards.as_ref());
    let is_closed = |path: &str| guards.is_some_and(|it| it.at("GET", path).next().is_some());
    let open = generation.pages.open_claims(is_closed);
    let open = open.into_iter().chain(partly_closed(&generation));
    let circles: Vec<Problem> = circles.into_iter().chain(closed).chain(open).collect();
    if circles.is_empty() {
        Ok(generation)
    } else {
        Err(circles)
    }
}

/// `static/404.html`, wherever it is sent from, unless it is larger than any page's source.
fn file_404(statics: &Statics) -> Option<Bytes> {
    statics.find("/404.html")?.content(MAX_SOURCE)
}

/// The site's own error page for a status, rendered once: it knows nothing of the request.
fn own_error_page(
    pages: &Pages,
    status: u16,
    sentence: &str,
) -> Result<Option<Bytes>, Vec<Problem>> {
    let Some(page) = pages.error_pages.of_site(status) else {
        return Ok(None);
    };
    let none = BTreeMap::new();
    let html = error_answer::render(pages, &page.template, none, (status, sentence));
    html.map(|html| Some(html.into()))
        .map_err(|problem| vec![problem])
}
