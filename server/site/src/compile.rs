//! A folder's texts to pages: every fault is found here, before a visitor comes.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
    sync::{Arc, atomic::AtomicBool},
};

use millpond_db::{self as db, Database, Expect, ValueKind};
use minijinja::Environment;

use crate::{
    Problem,
    dialect::{Dialect, Text},
    folder::Folder,
    page::{ArgumentSource, Counters, Endpoint, Form, FormStep, Page, PageQuery, RedirectPiece},
    params::Param,
    route::{Pattern, Router},
    script::{NamedQuery, Rows, Script},
    session::{self, RESERVED},
    suggest::closest,
    template::{self, Given, GivenQuery},
};

mod signing;

/// A site's pages, ready to answer.
#[derive(Debug)]
pub(crate) struct Pages {
    pub(crate) router: Router,
    pub(crate) endpoints: Vec<Endpoint>,
    pub(crate) environment: Environment<'static>,
    /// Whether the site has error pages of its own.
    pub(crate) custom_404: bool,
    pub(crate) custom_500: bool,
    /// Values in templates that may be missing, depending on the data and the request.
    pub(crate) doubts: Vec<Problem>,
}

/// The files of one path.
#[derive(Default)]
struct Files<'f> {
    html: Option<&'f Text>,
    sql: Option<&'f Text>,
    post: Option<&'f Text>,
}

/// Compiles all pages; gives all faults at once.
pub(crate) fn compile(
    folder: &Folder,
    dialect: Dialect,
    database: &Database,
) -> Result<Pages, Vec<Problem>> {
    let mut problems = Vec::new();
    let mut sources = folder.templates.clone();
    let mut stems: BTreeMap<&str, Files<'_>> = BTreeMap::new();
    for (path, text) in &folder.pages {
        if let Some(stem) = path.strip_suffix(".post.sql") {
            stems.entry(stem).or_default().post = Some(text);
        } else if let Some(stem) = path.strip_suffix(".sql") {
            stems.entry(stem).or_default().sql = Some(text);
        } else if let Some(stem) = path.strip_suffix(".html") {
            stems.entry(stem).or_default().html = Some(text);
            sources.insert(format!("pages/{path}"), text.text.clone());
        } else {
            problems.push(
                Problem::new(
                    format!("pages/{path}"),
                    "neither a template (.html) nor queries (.sql, .post.sql)",
                )
                .hint("files that are served as they are belong into static/"),
            );
        }
    }
    let environment = template::environment(&sources).unwrap_or_else(|found| {
        problems.extend(found);
        Environment::new()
    });
    let mut pages = Pages {
        router: Router::default(),
        endpoints: Vec::new(),
        environment,
        custom_404: false,
        custom_500: false,
        doubts: Vec::new(),
    };
    let mut given = Vec::new();
    for (stem, files) in stems {
        match stem {
            "404" => pages.custom_404 = true,
            "500" => pages.custom_500 = true,
            _ => {
                if let Err(found) = pages.add(stem, &files, database, &mut given) {
                    problems.extend(found);
                }
            }
        }
    }
    // PostgreSQL gives documents and lists as such.
    let has_documents = dialect == Dialect::Postgres;
    let inspection = template::inspect(&pages.environment, &sources, &given, has_documents);
    problems.extend(inspection.errors);
    pages.doubts = inspection.doubts;
    if problems.is_empty() {
        Ok(pages)
    } else {
        Err(problems)
    }
}

impl Pages {
    /// Whether a form begins sessions, so that there must be a key to sign them with.
    pub(crate) fn issue_sessions(&self) -> bool {
        let mut forms = self
            .endpoints
            .iter()
            .filter_map(|endpoint| endpoint.form.as_ref());
        forms.any(|form| !form.signing.claims.is_empty())
    }

    fn add(
        &mut self,
        stem: &str,
        files: &Files<'_>,
        database: &Database,
        given: &mut Vec<Given>,
    ) -> Result<(), Vec<Problem>> {
        let first = files.html.or(files.sql).or(files.post);
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
                let page = Self::page(index, stem, &pattern, (html, sql), database, given)?;
                Some(Arc::new(page))
            }
        };
        let form = files
            .post
            .map(|text| form(&pattern, text, database).map(Arc::new))
            .transpose()?;
        self.endpoints.push(Endpoint {
            pattern,
            page,
            form,
        });
        Ok(())
    }

    /// What answers GET at a path. What its template gets goes to `given`.
    fn page(
        index: usize,
        stem: &str,
        pattern: &Pattern,
        (html, sql): (Option<&Text>, Option<&Text>),
        database: &Database,
        given: &mut Vec<Given>,
    ) -> Result<Page, Vec<Problem>> {
        let file = sql.map_or_else(|| PathBuf::from(format!("pages/{stem}.sql")), Text::page);
        let text = sql.map_or("", |sql| &sql.text);
        let script = Script::parse(&file, text).map_err(|problem| vec![problem])?;
        if let Some((_, line)) = script.redirect {
            return Err(vec![
                Problem::new(file, "a page has no redirect")
                    .at(line, 1)
                    .hint("a form's queries are in a .post.sql file"),
            ]);
        }
        let mut problems = Vec::new();
        if let Some(line) = script.session.of_forms() {
            problems.push(
                Problem::new(&file, "only a form signs in or out, and handles passwords")
                    .at(line.number, 1)
                    .hint(format!("this line belongs into pages/{stem}.post.sql")),
            );
        }
        let mut prepared = Vec::new();
        for named in &script.queries {
            match prepare(&file, text, named, database) {
                Ok(query) if query.is_readonly() && named.rows != Rows::Exec => {
                    prepared.push((named, query))
                }
                Ok(_) => problems.push(
                    Problem::new(&file, format!("query `{}` writes", named.name))
                        .at(named.line, 1)
                        .hint(format!(
                            "what writes belongs into pages/{stem}.post.sql, which answers POST"
                        )),
                ),
                Err(problem) => problems.push(problem),
            }
        }
        let params = parameters(&file, pattern, &script, &prepared, &BTreeSet::new())
            .unwrap_or_else(|problem| {
                problems.push(problem);
                Vec::new()
            });
        let template = html.map(|_| format!("pages/{stem}.html"));
        let gets = |template| given_to(template, &script, &prepared, &params);
        given.extend(template.clone().map(gets));
        if !problems.is_empty() {
            return Err(problems);
        }
        let mut needs = signing::needs(&script);
        let mut place = |param: &db::Param| match signing::claim(param) {
            Some(claim) => params.len() + needs.place_of(claim),
            None => params
                .iter()
                .position(|known| known.name == param.name)
                .expect("every parameter was gathered"),
        };
        let queries = prepared.into_iter().map(|(named, query)| PageQuery {
            name: named.name.clone(),
            rows: named.rows,
            args: query.params().iter().map(&mut place).collect(),
            query,
            max_age: named.max_age,
            depends: named.depends.clone().into(),
            file: file.clone(),
        });
        let queries = queries.collect();
        Ok(Page {
            index: index as u32,
            route: pattern.to_string(),
            queries,
            params,
            template,
            vary: script.vary.into(),
            needs: needs.into(),
            private: AtomicBool::new(false),
            counters: Counters::default(),
        })
    }
}

/// What a page gives its template.
fn given_to(
    template: String,
    script: &Script,
    prepared: &[(&NamedQuery, db::Query)],
    params: &[Param],
) -> Given {
    let queries = script.queries.iter().map(|named| {
        let mut compiled = prepared.iter();
        let compiled = compiled.find(|(known, _)| known.name == named.name);
        GivenQuery {
            name: named.name.clone(),
            rows: named.rows,
            columns: compiled.map(|(_, query)| query.columns()),
        }
    });
    Given {
        template,
        queries: queries.collect(),
        params: params.iter().map(|param| param.name.clone()).collect(),
    }
}

fn prepare(
    file: &Path,
    text: &str,
    named: &NamedQuery,
    database: &Database,
) -> Result<db::Query, Problem> {
    let sql = session::with_claims(&named.sql).map_err(|offset| {
        Problem::new(
            file,
            format!("names that begin with `{RESERVED}` are those of claims"),
        )
        .at_offset(text, named.offset + offset)
        .hint("what a session says is written :claims.name")
    })?;
    let depends = Some(&*named.depends).filter(|tables| !tables.is_empty());
    let prepared = database.prepare_depending(&sql, depends);
    prepared.map_err(|error| {
        let problem = Problem::new(file, format!("query `{}`: {}", named.name, error.message))
            .at_offset(text, named.offset + error.offset.unwrap_or(0));
        match error.hint {
            Some(hint) => problem.hint(hint),
            None => problem,
        }
    })
}

/// Every parameter that the queries use, with the types from `-- param:` lines or from the
/// database. The parameters in `given` come from elsewhere.
fn parameters(
    file: &Path,
    pattern: &Pattern,
    script: &Script,
    queries: &[(&NamedQuery, db::Query)],
    given: &BTreeSet<(usize, String)>,
) -> Result<Vec<Param>, Problem> {
    let in_path: Vec<&str> = pattern.params().collect();
    let mut params: Vec<Param> = Vec::new();
    let mut add = |name: &str, kind: ValueKind, default: Option<db::Value>| {
        if !params.iter().any(|param| param.name == name) {
            let in_path = in_path.iter().position(|part| *part == name);
            params.push(Param {
                name: name.to_owned(),
                kind,
                default,
                in_path,
            });
        }
    };
    for declared in &script.params {
        add(&declared.name, declared.kind, declared.default.clone());
    }
    for (at, (named, query)) in queries.iter().enumerate() {
        for param in query.params().iter() {
            if given.contains(&(at, param.name.clone())) || param.name.starts_with(RESERVED) {
                continue;
            }
            let declared = script
                .params
                .iter()
                .any(|declared| declared.name == param.name);
            match param.kind {
                _ if declared => {}
                Some(ValueKind::Blob) => {
                    let problem = Problem::new(
                        file,
                        format!(
                            "parameter `{}` of query `{}` would be bytes, which no request can give",
                            param.name, named.name
                        ),
                    );
                    return Err(problem.at(named.line, 1).hint(format!(
                        "declare another type: -- param: {} text",
                        param.name
                    )));
                }
                Some(kind) => add(&param.name, kind, None),
                // A path's part is text by nature; elsewhere a guess would surprise.
                None if in_path.contains(&param.name.as_str()) => {
                    add(&param.name, ValueKind::Text, None)
                }
                None => {
                    let problem = Problem::new(
                        file,
                        format!(
                            "the database does not tell the type of parameter `{}` in query `{}`",
                            param.name, named.name
                        ),
                    );
                    return Err(problem
                        .at(named.line, 1)
                        .hint(format!("declare it: -- param: {} integer", param.name)));
                }
            }
        }
    }
    // A parameter in the path is part of the page's key, and the template can show it even if no
    // query uses it.
    for name in &in_path {
        add(name, ValueKind::Text, None);
    }
    Ok(params)
}

fn form(pattern: &Pattern, text: &Text, database: &Database) -> Result<Form, Vec<Problem>> {
    let (file, text) = (text.page(), text.text.as_str());
    let script = Script::parse(&file, text).map_err(|problem| vec![problem])?;
    let mut problems = Vec::new();
    let Some((target, line)) = &script.redirect else {
        let problem = Problem::new(&file, "the form says not where to go when it is done")
            .hint("end the file with a line such as: -- redirect: /read?id=:id");
        return Err(vec![problem]);
    };
    let prepared: Vec<_> = script
        .queries
        .iter()
        .filter_map(|named| match prepare(&file, text, named, database) {
            Ok(query) => Some((named, query)),
            Err(problem) => {
                problems.push(problem);
                None
            }
        })
        .collect();
    if !problems.is_empty() {
        return Err(problems);
    }
    let lines = &script.session;
    let verified = signing::verified(&file, lines, &prepared).map_err(|problem| vec![problem])?;
    let columns = columns(&prepared, verified);
    let column = |before: usize, name: &str| {
        columns
            .iter()
            .rev()
            .find(|(step, column)| *step < before && column == name)
    };
    let declared = |name: &str| {
        script.params.iter().any(|param| param.name == name)
            || pattern.params().any(|part| part == name)
    };
    let hash = |name: &str| lines.hashes.iter().position(|hash| hash.name == name);
    let mut given = BTreeSet::new();
    for (step, (_, query)) in prepared.iter().enumerate() {
        let is_given =
            |name: &str| hash(name).is_some() || (!declared(name) && column(step, name).is_some());
        let names = query.params();
        let names = names.iter().filter(|param| is_given(&param.name));
        given.extend(names.map(|param| (step, param.name.clone())));
    }
    let mut params =
        parameters(&file, pattern, &script, &prepared, &given).map_err(|problem| vec![problem])?;
    let mut needs = signing::needs(&script);
    signing::check(&file, &script, &prepared, &given).map_err(|problem| vec![problem])?;
    signing::add_params(&file, lines, &mut params).map_err(|problem| vec![problem])?;
    for (_, query) in &prepared {
        for claim in query.params().iter().filter_map(signing::claim) {
            needs.place_of(claim);
        }
    }
    let source = |before: usize, name: &str| {
        if let Some(at) = hash(name) {
            return Some(ArgumentSource::Param(
                params.len() + needs.claims.len() + at,
            ));
        }
        let param = params.iter().position(|param| param.name == name);
        match (param, column(before, name)) {
            (Some(at), _) if declared(name) || column(before, name).is_none() => {
                Some(ArgumentSource::Param(at))
            }
            (_, Some((step, column))) => Some(ArgumentSource::Column {
                step: *step,
                column: column.clone(),
            }),
            (param, None) => param.map(ArgumentSource::Param),
        }
    };
    let redirect = redirect(target, |name| source(prepared.len(), name)).map_err(|name| {
        let known = params.iter().map(|param| param.name.as_str()).chain(columns.iter().map(|(_, column)| column.as_str()));
        let problem = Problem::new(&file, format!("the redirect names `:{name}`, which is neither a parameter nor a column of a `:one` query")).at(*line, 1);
        vec![match closest(&name, known) {
            Some(near) => problem.hint(format!("did you mean `:{near}`?")),
            None => problem,
        }]
    })?;
    let steps = prepared
        .iter()
        .enumerate()
        .map(|(step, (named, query))| FormStep {
            bind: query
                .params()
                .iter()
                .map(|param| match signing::claim(param) {
                    Some(claim) => {
                        ArgumentSource::Param(params.len() + needs.clone().place_of(claim))
                    }
                    None => source(step, &param.name).expect("every parameter was gathered"),
                })
                .collect(),
            query: query.clone(),
            expect: match named.rows {
                Rows::One => Expect::One,
                Rows::Optional => Expect::Optional,
                Rows::Many => Expect::Many,
                Rows::Exec => Expect::Exec,
            },
        });
    let steps = steps.collect();
    let signing = signing::signing(&file, lines, &prepared, &params, verified)
        .map_err(|problem| vec![problem])?;
    Ok(Form {
        route: pattern.to_string(),
        params,
        needs,
        signing,
        steps,
        redirect,
    })
}

/// The columns that the one row of each `:one` step gives to later steps. The step with the
/// verified account also gives its columns, because without an account no later step runs.
fn columns(prepared: &[(&NamedQuery, db::Query)], verified: Option<usize>) -> Vec<(usize, String)> {
    let ones = prepared
        .iter()
        .enumerate()
        .filter(|(step, (named, _))| named.rows == Rows::One || verified == Some(*step));
    ones.flat_map(|(step, (_, query))| {
        query
            .columns()
            .iter()
            .map(|name| (step, name.to_string()))
            .collect::<Vec<_>>()
    })
    .collect()
}

/// Cuts a redirect's target at its `:name`s.
fn redirect(
    target: &str,
    source: impl Fn(&str) -> Option<ArgumentSource>,
) -> Result<Vec<RedirectPiece>, String> {
    let mut pieces = Vec::new();
    let mut rest = target;
    while let Some(at) = rest.find(':') {
        let after = &rest[at + 1..];
        let end = after
            .find(|c: char| !(c.is_ascii_alphanumeric() || c == '_'))
            .unwrap_or(after.len());
        if end == 0 || after.as_bytes()[0].is_ascii_digit() {
            pieces.push(RedirectPiece::Text(rest[..=at].to_owned()));
            rest = after;
            continue;
        }
        pieces.push(RedirectPiece::Text(rest[..at].to_owned()));
        pieces.push(RedirectPiece::Value(
            source(&after[..end]).ok_or_else(|| after[..end].to_owned())?,
        ));
        rest = &after[end..];
    }
    pieces.push(RedirectPiece::Text(rest.to_owned()));
    Ok(pieces)
}
