//! One reading of a site folder: its files first, then its pages.

use std::{path::Path, sync::Arc};

use bytes::Bytes;
use millpond_db::Database;

use crate::{
    Config, Problem,
    addresses::Addresses,
    compile::{Pages, compile},
    core::{Generation, error_page},
    dialect::Dialect,
    folder::{Folder, MAX_SOURCE},
    rules::{Rules, loops},
    session::{Purpose, Sessions},
    statics::Statics,
};

/// Pages and templates, as read and compiled.
struct Texts {
    number: u32,
    fingerprint: u64,
    pages: Arc<Pages>,
}

/// Reads the folder; what has not changed is kept from `before`.
pub(crate) fn read(
    dir: &Path,
    config: &Config,
    database: &Database,
    before: Option<&Generation>,
) -> Result<Generation, Vec<Problem>> {
    let statics = statics(dir, config, before)?;
    whole(dir, config, database, &statics, before, true)
}

/// Reads the folder without serving it: nothing is made in it.
pub(crate) fn look(
    dir: &Path,
    config: &Config,
    database: &Database,
) -> Result<Generation, Vec<Problem>> {
    let statics = statics(dir, config, None)?;
    whole(dir, config, database, &statics, None, false)
}

/// Reads the folder again after a good reading. If the pages or the rules have problems, the files
/// are replaced all the same: a deleted file must not be served on because a template is broken.
/// Then `config` gets the other settings from `in_use`, and the problems are returned too.
pub(crate) fn read_again(
    dir: &Path,
    config: &mut Config,
    in_use: &Config,
    database: &Database,
    before: &Generation,
) -> Result<(Generation, Vec<Problem>), Vec<Problem>> {
    let statics = statics(dir, config, Some(before))?;
    let problems = match whole(dir, config, database, &statics, Some(before), true) {
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
    dir: &Path,
    config: &Config,
    database: &Database,
    statics: &Arc<Statics>,
    before: Option<&Generation>,
    is_served: bool,
) -> Result<Generation, Vec<Problem>> {
    let dialect = Dialect::of(&config.database);
    let folder = Folder::read(dir, dialect)?;
    let formats = config.formats;
    let fingerprint = folder.fingerprint(formats);
    let (number, pages) = match before {
        Some(before) if before.fingerprint == fingerprint => (before.number, before.pages.clone()),
        _ => (
            before.map_or(0, |before| before.number + 1),
            Arc::new(compile(&folder, dialect, database, formats)?),
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
    assemble(config, statics.clone(), texts, sessions, before)
}

fn assemble(
    config: &Config,
    statics: Arc<Statics>,
    texts: Texts,
    sessions: Arc<Sessions>,
    before: Option<&Generation>,
) -> Result<Generation, Vec<Problem>> {
    let pages = texts.pages;
    let own = |name: &str, present: bool| own_error_page(&pages, name, present);
    let generation = Generation {
        edition: before.map_or(0, |before| before.edition + 1),
        number: texts.number,
        fingerprint: texts.fingerprint,
        not_found: error_page(
            404,
            ("Not found", "There is no such page here."),
            own("pages/404.html", pages.custom_404)?.or_else(|| file_404(&statics)),
            before.map(|before| &before.not_found),
        ),
        error: error_page(
            500,
            (
                "Something went wrong",
                "The page could not be made. It is not your fault; please try again later.",
            ),
            own("pages/500.html", pages.custom_500)?,
            before.map(|before| &before.error),
        ),
        addresses: Addresses::new(&statics, &pages.router, &config.files),
        rules: Rules::compile(&config.rules),
        statics,
        sessions,
        pages,
    };
    let circles = generation.rules.as_ref().map_or_else(Vec::new, |rules| {
        loops(rules, |path| {
            let is_page = generation.pages.router.find(path).is_some();
            let to = generation.canonical(path).filter(|_| !is_page);
            to.map(str::to_owned)
        })
    });
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

/// The site's own error page, rendered once: it knows nothing of the request.
fn own_error_page(pages: &Pages, name: &str, present: bool) -> Result<Option<Bytes>, Vec<Problem>> {
    if !present {
        return Ok(None);
    }
    let rendered = pages
        .environment
        .get_template(name)
        .and_then(|template| template.render(pages.partials.without_rows(name)));
    rendered.map(|html| Some(html.into())).map_err(|error| {
        vec![Problem::new(name, crate::template::failure(&error)).hint(
            "an error page has no queries and no request; those of partials have no rows there",
        )]
    })
}
