//! A folder's texts to pages: every fault is found here, before a visitor comes.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
    sync::{Arc, atomic::AtomicBool},
};

use millpond_db::{self as db, Database};
use minijinja::Environment;

use crate::{
    error_pages::ErrorPages,
    page::{
        Counters, Endpoint, Form, FormAnswer, Page, PageQuery, PageStatement, csv::CsvReader,
        path::PagePath,
    },
    page_type::PageType,
    template::{self, Given, GivenForms, GivenQuery},
};
use millpond_site_format::{
    Problem,
    access::SessionRequirements,
    dialect::{Dialect, Text},
    folder::Folder,
    locale::Formats,
    params::Param,
    route::{Pattern, Router},
    script::{NamedQuery, Script},
    time_zone::SiteZone,
    write_method::WriteMethod,
};

mod answer;
mod bytes;
mod declared_types;
mod folder_params;
mod form;
mod guards;
mod invalid;
mod language;
mod lists;
pub mod may_be_at;
mod messages;
mod page_redirect;
mod parameters;
mod partials;
mod password_forms;
mod plain_passwords;
mod redirect;
mod repeated;
mod returned;
mod rewrite;
mod same_value;
pub mod sign_in;
mod signing;
mod statements;
mod undeclared;
mod until;
mod uploads;

use answer::Shows;
use folder_params::FolderParams;
use form::form;
use parameters::{SqlFile, misspelt, parameters, unused};
use partials::{Partial, Partials};
pub use redirect::redirect;
use statements::{Prepared, Statements};
use undeclared::claims_from_visitors;

/// A site's pages, ready to answer.
#[derive(Debug)]
pub struct Pages {
    pub router: Router,
    pub endpoints: Vec<Endpoint>,
    pub environment: Environment<'static>,
    pub partials: Partials,
    /// The site's own error pages.
    pub error_pages: ErrorPages,
    zone: SiteZone,
    folders: FolderParams,
    /// Values in templates that may be missing, depending on the data and the request.
    pub doubts: Vec<Problem>,
    /// Claims that a page takes from its address, each with the place of the page's endpoint: a
    /// fault where the settings require a session.
    open_claims: Vec<(usize, Problem)>,
}

/// The files of one path.
#[derive(Default)]
struct Files<'f> {
    html: Option<&'f Text>,
    sql: Option<&'f Text>,
    writes: Vec<(WriteMethod, &'f Text)>,
}

/// Compiles all pages; gives all faults at once.
pub fn compile(
    folder: &Folder,
    dialect: Dialect,
    database: &Database,
    formats: Formats,
) -> Result<Pages, Vec<Problem>> {
    let mut problems = Vec::new();
    let mut sources = folder.templates.clone();
    let stems = by_stem(folder, &mut sources, &mut problems);
    let (environment, found) = template::environment(&sources, formats);
    problems.extend(found);
    let partials = Partials::compile(&folder.partials, &sources, (database, formats.zone));
    let (partials, are_partials_broken) = partials.map_or_else(
        |found| {
            problems.extend(found);
            (Partials::default(), true)
        },
        |partials| (partials, false),
    );
    let mut pages = Pages {
        router: Router::default(),
        endpoints: Vec::new(),
        environment,
        partials,
        error_pages: ErrorPages::default(),
        zone: formats.zone,
        folders: FolderParams::read(folder, (dialect, formats.zone), &mut problems),
        doubts: Vec::new(),
        open_claims: Vec::new(),
    };
    let claims = undeclared::claims(folder);
    let mut given = Vec::new();
    for (stem, files) in stems {
        let added = match ErrorPages::is_name(stem) {
            true => pages.add_error_page(stem, &files, &mut given),
            false => pages.add(stem, &files, (database, &claims), &mut given),
        };
        problems.extend(added.err().into_iter().flatten());
    }
    pages.error_pages.finish(&pages.endpoints);
    for page in given.iter_mut().filter(|page| page.is_error) {
        let params = page.params.as_deref_mut().unwrap_or_default();
        pages.error_pages.choose(&page.template, params);
    }
    if problems.is_empty() {
        problems.extend(pages.link_forms(&mut given, &sources));
    }
    // Without all pages and forms, what leads where is unknown.
    if !problems.is_empty() {
        given
            .iter_mut()
            .for_each(|page| page.forms = GivenForms::Unknown);
    }
    // PostgreSQL gives documents and lists as such.
    let has_documents = dialect == Dialect::Postgres;
    // Without the queries of a partial, each page that shows it would seem to lack them.
    if !are_partials_broken {
        let inspection = template::inspect(&pages.environment, &sources, &given, has_documents);
        problems.extend(inspection.errors);
        pages.doubts.extend(inspection.doubts);
    }
    problems.extend(password_forms::in_addresses(folder));
    if problems.is_empty() {
        Ok(pages)
    } else {
        Err(repeated::merged(problems))
    }
}

/// The files of each path, by its stem; templates go to `sources`.
fn by_stem<'f>(
    folder: &'f Folder,
    sources: &mut BTreeMap<String, String>,
    problems: &mut Vec<Problem>,
) -> BTreeMap<&'f str, Files<'f>> {
    let mut stems: BTreeMap<&str, Files<'f>> = BTreeMap::new();
    for (path, text) in &folder.pages {
        if FolderParams::takes(path, problems) {
            continue;
        }
        if let Some(stem) = path.strip_suffix(".sql") {
            if let Some((stem, method)) = WriteMethod::split(stem) {
                let writes = &mut stems.entry(stem).or_default().writes;
                writes.push((method, text));
            } else {
                problems.extend(misspelt_method(stem, text));
                stems.entry(stem).or_default().sql = Some(text);
            }
        } else if let Some(stem) = path.strip_suffix(".html") {
            stems.entry(stem).or_default().html = Some(text);
            sources.insert(format!("pages/{path}"), text.text.clone());
        } else {
            problems.push(
                Problem::new(
                    format!("pages/{path}"),
                    "neither a template (.html) nor queries (.sql, .post.sql, .put.sql)",
                )
                .hint("files that are served as they are belong into static/"),
            );
        }
    }
    stems
}

impl Pages {
    /// True if a form begins sessions or leads back, so that there must be a key to sign with.
    pub fn issue_sessions(&self) -> bool {
        let mut forms = self.endpoints.iter().flat_map(|endpoint| &endpoint.forms);
        forms.any(|form| !form.signing.claims.is_empty() || form.invalid.is_some())
    }

    /// Claims that pages take from their addresses though the settings let in only visitors with a
    /// session.
    pub fn open_claims(&self, is_closed: impl Fn(&str) -> bool) -> Vec<Problem> {
        let open = self.open_claims.iter();
        let is_closed = |at: &usize| {
            let mut shapes = self.endpoints[*at].shapes().into_iter();
            shapes.any(|shape| is_closed(&shape.sample()))
        };
        let open = open.filter(|(at, _)| is_closed(at));
        open.map(|(_, problem)| problem.clone()).collect()
    }

    /// The names of the claims that forms give to sessions.
    pub fn claims_of_forms(&self) -> BTreeSet<&str> {
        let forms = self.endpoints.iter().flat_map(|endpoint| &endpoint.forms);
        let claims = forms.flat_map(|form| &form.signing.claims);
        claims.map(|(name, _)| name.as_str()).collect()
    }

    /// Adds `pages/404.html` or its like.
    fn add_error_page(
        &mut self,
        stem: &str,
        files: &Files<'_>,
        given: &mut Vec<Given>,
    ) -> Result<(), Vec<Problem>> {
        let mut writes = files.writes.iter().map(|(_, text)| *text);
        if let Some(text) = files.sql.or_else(|| writes.next()) {
            let message = format!("`{stem}` is the error page of a status, which has no queries");
            return Err(vec![Problem::new(text.page(), message).hint(format!(
                "an error page is pages/{stem}.html alone; give a page for visitors another name"
            ))]);
        }
        let template = format!("pages/{stem}.html");
        let partials = self.partials.shown_by(Some(&template));
        let queries = partials.iter().flat_map(|partial| partial.given());
        let queries = queries.collect();
        let params = self.error_pages.add(stem);
        let params = params.map_err(|problem| vec![problem])?;
        given.push(Given::of_error(template, queries, params));
        Ok(())
    }

    fn add(
        &mut self,
        stem: &str,
        files: &Files<'_>,
        (database, claims): (&Database, &BTreeSet<String>),
        given: &mut Vec<Given>,
    ) -> Result<(), Vec<Problem>> {
        let writes = files.writes.iter().map(|(_, text)| *text);
        let first = files.html.or(files.sql).or(writes.clone().next());
        let file = first.map_or_else(PathBuf::new, Text::page);
        let pattern = Pattern::parse(&file, stem).map_err(|problem| vec![problem])?;
        let index = self.endpoints.len();
        if let Err(other) = self.router.insert(&pattern, index) {
            let other = self.endpoints[other].pattern.to_string();
            return Err(vec![
                Problem::new(file, format!("another file answers {other} already"))
                    .hint("remove one of them"),
            ]);
        }
        let page = match (files.html, files.sql) {
            (None, None) => None,
            (html, sql) => {
                let with_claims = (database, claims);
                let page = self.page(index, stem, &pattern, (html, sql), with_claims, given)?;
                Some(Arc::new(page))
            }
        };
        let mut forms = Vec::new();
        for (method, text) in &files.writes {
            let folders = (&self.folders, stem);
            let of_site = (database, self.zone);
            let form = form(*method, &pattern, text, folders, of_site, claims)?;
            let is_shown = files.html.is_some() && *method == WriteMethod::Post;
            if is_shown
                && matches!(
                    form.answer,
                    FormAnswer::Json {
                        created: None,
                        bare: None
                    }
                )
            {
                self.doubts.push(without_redirect(&form));
            }
            forms.push(Arc::new(form));
        }
        let endpoint = Endpoint::new(pattern, page, forms);
        self.router.restrict(index, &endpoint.choices);
        self.endpoints.push(endpoint);
        Ok(())
    }

    /// Compiles the page that answers GET at a path. The names for its template go to `given`.
    fn page(
        &mut self,
        index: usize,
        stem: &str,
        pattern: &Pattern,
        (html, sql): (Option<&Text>, Option<&Text>),
        (database, claims): (&Database, &BTreeSet<String>),
        given: &mut Vec<Given>,
    ) -> Result<Page, Vec<Problem>> {
        let file = sql.map_or_else(|| PathBuf::from(format!("pages/{stem}.sql")), Text::page);
        let text = sql.map_or("", |sql| &sql.text);
        let script = Script::parse_in(&file, text, self.zone);
        let mut script = script.map_err(|problem| vec![problem])?;
        self.folders.add_to(stem, &mut script);
        let source = SqlFile {
            file: &file,
            text,
            pattern,
            script: &script,
            dialect: database.dialect(),
        };
        let page_type = PageType::of(stem);
        let shows = match html {
            Some(_) => Shows::Template,
            None if page_type.is_csv() => Shows::Csv,
            None => Shows::Json,
        };
        self.page_of(
            (index, stem),
            source,
            (page_type, shows),
            (database, claims),
            given,
        )
    }

    /// Compiles the page of a file that was read, and of the queries that it shows.
    fn page_of(
        &mut self,
        (index, stem): (usize, &str),
        source: SqlFile<'_>,
        (page_type, shows): (&'static PageType, Shows),
        (database, claims): (&Database, &BTreeSet<String>),
        given: &mut Vec<Given>,
    ) -> Result<Page, Vec<Problem>> {
        let (file, script) = (source.file, source.script);
        let has_template = shows == Shows::Template;
        let mut problems = Vec::new();
        problems.extend(answer::of_page(source, stem, shows));
        let queries: Vec<&NamedQuery> = script.queries.iter().collect();
        let bare = or_noted(answer::bare(source, &queries), &mut problems);
        problems.extend(lines_of_forms(source, stem));
        problems.extend(uploads::misplaced(source, stem));
        let statements = Statements {
            file,
            text: source.text,
            script,
            database,
        };
        let hint = format!("what writes belongs into pages/{stem}.post.sql, which answers POST");
        let prepared = statements.that_read(&hint, &mut problems);
        // What is wrong with a query has been said.
        let is_whole = prepared.len() == script.queries.len();
        let total = is_whole.then(|| answer::total(source, &prepared));
        let total = or_noted(total.unwrap_or(Ok(None)), &mut problems);
        let open = claims_from_visitors(source, &single_statements(&prepared), claims);
        let found = open.problems.into_iter();
        match open.is_closed {
            true => problems.extend(found),
            false => self.open_claims.extend(found.map(|it| (index, it))),
        }
        let template = has_template.then(|| format!("pages/{stem}.html"));
        let partials = self.partials.shown_by(template.as_deref());
        let params = self.page_params(source, &prepared, has_template, stem);
        let params = params.and_then(|params| with_partials(source, params, &partials));
        let params = params.map_err(|found| problems.extend(found)).ok();
        let names = params.as_deref();
        let gets = |template| given_to(template, script, &prepared, &partials, names);
        given.extend(template.clone().map(gets));
        let until = is_whole.then(|| until::until(source, &prepared));
        let until = or_noted(until.unwrap_or_else(|| Ok(Box::default())), &mut problems);
        let guards = or_noted(guards::guards(source), &mut problems);
        let bytes = bytes::page_bytes(file, script, &prepared, has_template, &mut problems);
        problems.extend(rows_of_csv(source, shows));
        problems.extend(language::in_path(source));
        let of_whole = params.as_ref().filter(|_| is_whole);
        let redirect =
            of_whole.map(|params| page_redirect::page_redirect(source, &prepared, params, shows));
        let redirect = or_noted(redirect.unwrap_or(Ok(None)), &mut problems);
        let Some(params) = params.filter(|_| problems.is_empty()) else {
            return Err(problems);
        };
        sign_in::check(file, &script.session, source.pattern).map_err(|problem| vec![problem])?;
        let (queries, needs, vary) = page_queries(source, prepared, &partials, &params);
        Ok(Page {
            index: index as u32,
            route: source.pattern.to_string(),
            path: PagePath::new(source.pattern, &params),
            language: language::place(script, &params),
            queries,
            params,
            template,
            redirect,
            bytes,
            bare,
            total,
            csv_reader: CsvReader::of(script.csv.is_some()),
            is_live: script.live.is_some(),
            is_uncrawled: script.uncrawled.is_some(),
            page_type,
            vary: vary.into(),
            needs: needs.into(),
            guards,
            until,
            forms: None,
            private: AtomicBool::new(false),
            counters: Counters::default(),
        })
    }

    /// The parameters of a page, or all that is wrong with them.
    fn page_params(
        &self,
        source: SqlFile<'_>,
        prepared: &[Prepared<'_>],
        has_template: bool,
        stem: &str,
    ) -> Result<Vec<Param>, Vec<Problem>> {
        let all = single_statements(prepared);
        // What cannot be prepared may use any of them.
        let are_all_known = prepared.len() == source.script.queries.len();
        let given = BTreeSet::new();
        let mut problems = misspelt(source, &all, &given, &[]);
        problems.extend(plain_passwords::plain_password(source, &all, &given));
        let own = format!("pages/{stem}.html");
        // A template that does not parse may use any of them too.
        let is_parsed = !has_template || self.environment.get_template(&own).is_ok();
        if problems.is_empty() && are_all_known && is_parsed {
            problems = unused(source, &all, |param| {
                let mut templates = self.environment.templates();
                let is_shown = has_template
                    && templates.any(|(name, template)| {
                        let may_show = name == own || !name.starts_with("pages/");
                        may_show && parameters::may_read(template.source(), param)
                    });
                is_shown || page_redirect::uses(source.script, param)
            });
        }
        match parameters(source, &all, &given) {
            Ok(params) if problems.is_empty() => Ok(params),
            Ok(_) => Err(problems),
            Err(problem) => {
                problems.push(problem);
                Err(problems)
            }
        }
    }
}

/// A line of a page that only a form may have.
fn lines_of_forms(source: SqlFile<'_>, stem: &str) -> Option<Problem> {
    let line = source.script.session.of_forms()?;
    let message = "only a form signs in or out, and handles passwords";
    let problem = Problem::new(source.file, message).at(line.number, 1);
    Some(problem.hint(format!("this line belongs into pages/{stem}.post.sql")))
}

/// The queries of a page and those of the partials that it shows, with what they need of the
/// session, and the fields of the request that are in the key.
fn page_queries(
    source: SqlFile<'_>,
    prepared: Vec<Prepared<'_>>,
    partials: &[&Partial],
    params: &[Param],
) -> (Vec<PageQuery>, SessionRequirements, Vec<String>) {
    let mut needs = signing::needs(source.script);
    let mut vary = source.script.vary.clone();
    for partial in partials {
        partial.add_vary(&mut vary, &mut needs);
    }
    let own = prepared.into_iter().map(|query| (source.file, query));
    let all = own.chain(partials.iter().flat_map(|partial| {
        let queries = partial.prepared();
        queries.map(|query| (&*partial.file, query))
    }));
    let queries = all.map(|(file, query)| page_query(file, query, params, &mut needs));
    let mut queries: Vec<PageQuery> = queries.collect();
    let ends = until::shown(source.script);
    let own = queries.iter_mut().filter(|query| query.file == source.file);
    own.for_each(|query| query.until.clone_from(&ends));
    (queries, needs, vary)
}

/// Returns the value that was found; adds a problem to `problems`.
fn or_noted<T: Default>(found: Result<T, Problem>, problems: &mut Vec<Problem>) -> T {
    found.unwrap_or_else(|problem| {
        problems.push(problem);
        T::default()
    })
}

/// A page of CSV that has not one query beside those that say who may enter.
fn rows_of_csv(source: SqlFile<'_>, shows: Shows) -> Option<Problem> {
    let SqlFile { file, script, .. } = source;
    let guards = &script.session.guards;
    let queries = script.queries.iter();
    let count = queries
        .filter(|query| !guards.iter().any(|guard| guard.query == query.name))
        .count();
    let is_wrong = shows == Shows::Csv && script.bytes.is_none() && count != 1;
    is_wrong.then(|| {
        let message = format!("{count} queries, but CSV has the rows of one");
        Problem::new(file, message)
            .hint("give each query a file of its own, or leave `.csv` out of the name")
    })
}

fn single_statements<'q>(prepared: &[Prepared<'q>]) -> Vec<(&'q NamedQuery, db::Query)> {
    let single = prepared.iter().flat_map(|(named, all)| {
        let queries = all.iter();
        queries.map(|(_, query)| (*named, query.clone()))
    });
    single.collect()
}

/// The parameters of a page with those of the partials that it shows.
fn with_partials(
    source: SqlFile<'_>,
    mut params: Vec<Param>,
    partials: &[&Partial],
) -> Result<Vec<Param>, Vec<Problem>> {
    let mut problems = Vec::new();
    let own = source.script.queries.iter();
    let mut taken: Vec<(&NamedQuery, &Path)> = own.map(|query| (query, source.file)).collect();
    for partial in partials {
        problems.extend(partial.collision(&taken));
        taken.extend(partial.prepared().map(|(query, _)| (query, &*partial.file)));
        problems.extend(partial.add_params(source, &mut params).err());
    }
    match problems.is_empty() {
        true => Ok(params),
        false => Err(problems),
    }
}

/// Lists the names that a page gives its template.
fn given_to(
    template: String,
    script: &Script,
    prepared: &[Prepared<'_>],
    partials: &[&Partial],
    params: Option<&[Param]>,
) -> Given {
    let own = script.queries.iter().map(|named| {
        let mut compiled = prepared.iter();
        let compiled = compiled.find(|(known, _)| known.name == named.name);
        let query = compiled.map(|(_, all)| &all[0].1);
        GivenQuery {
            name: named.name.clone(),
            rows: named.rows,
            columns: query.map(db::Query::columns),
            documents: query.map_or_else(Vec::new, db::Query::documents),
        }
    });
    let shown = partials.iter().flat_map(|partial| partial.given());
    let queries = own.chain(shown);
    Given {
        template,
        queries: queries.collect(),
        params: params.map(<[Param]>::to_vec),
        is_error: false,
        forms: GivenForms::None,
    }
}

/// A query with the places of its values among the page's.
fn page_query(
    file: &Path,
    (named, all): Prepared<'_>,
    params: &[Param],
    needs: &mut SessionRequirements,
) -> PageQuery {
    let param = |name: &str| params.iter().position(|param| param.name == name);
    let mut place = |param_of: &db::Param| match signing::claim(param_of) {
        Some(claim) => params.len() + needs.place_of(claim),
        None => param(&param_of.name).expect("every parameter was gathered"),
    };
    let statements = all.into_iter().map(|(chosen, query)| PageStatement {
        args: query.params().iter().map(&mut place).collect(),
        query,
        chosen,
    });
    let statements: Box<[PageStatement]> = statements.collect();
    let orders = statements[0].chosen.iter();
    PageQuery {
        name: named.name.clone(),
        rows: named.rows,
        orders: orders.filter_map(|(name, _)| param(name)).collect(),
        statements,
        max_age: named.max_age,
        until: None,
        depends: named.depends.clone().into(),
        file: file.to_owned(),
        line: named.line,
    }
}

/// A file that was probably meant for a method, and would be an address instead.
fn misspelt_method(stem: &str, text: &Text) -> Option<Problem> {
    let meant = WriteMethod::misspelt(stem)?;
    let problem = Problem::new(text.page(), "the file's name has no method that is known");
    Some(problem.hint(format!(
        "did you mean pages/{meant}.sql? .post, .put, .patch and .delete answer these methods"
    )))
}

/// A form beside a template that leads nowhere.
fn without_redirect(form: &Form) -> Problem {
    Problem::new(
        &form.file,
        "answers a visitor's form with JSON, as it has no `-- redirect:`",
    )
    .hint("end the file with a line such as: -- redirect: /read?id=:id; or, for a program, with `-- json:` or `-- created:`")
}
