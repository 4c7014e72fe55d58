//! Templates with queries of their own: `templates/menu.html` with `templates/menu.sql`.
//!
//! A page that shows such a template has its queries beside the page's own. So they are read in the
//! page's snapshot, and what they depend on ends the page. Their results have the same keys in
//! each page with the same values, so the store keeps one of each for all pages.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
};

use millpond_db::{self as db, Database, ValueKind};
use minijinja::Value;

use super::{
    language, page_redirect,
    parameters::{self, SqlFile, unused},
    statements::{Chosen, Prepared, Statements},
};
use crate::template::{GivenQuery, Reach};
use millpond_site_format::{
    Problem,
    access::{RESERVED, SessionRequirements},
    dialect::Text,
    params::Param,
    route::Pattern,
    script::{Declaration, NamedQuery, Rows, Script},
    suggest::closest,
    time_zone::SiteZone,
    today::TODAY,
    value_rules::ValueRules,
};

/// All of them, by the names of their templates.
#[derive(Debug, Default)]
pub struct Partials {
    partials: BTreeMap<String, Partial>,
    reach: Reach,
}

/// The queries of one template, prepared once for all pages that show it.
#[derive(Debug)]
pub(super) struct Partial {
    pub(super) file: PathBuf,
    text: String,
    script: Script,
    /// The statements of each query.
    statements: Vec<Vec<(Chosen, db::Query)>>,
}

impl Partials {
    /// Compiles the queries of all templates. `templates` are all templates with their sources,
    /// `texts` the files of queries by their names in `templates/`.
    pub(super) fn compile(
        texts: &BTreeMap<String, Text>,
        templates: &BTreeMap<String, String>,
        in_zone: (&Database, SiteZone),
    ) -> Result<Self, Vec<Problem>> {
        let mut problems = Vec::new();
        let mut partials = BTreeMap::new();
        for (name, text) in texts {
            let template = format!("{}.html", name.trim_end_matches(".sql"));
            let compiled = if templates.contains_key(&template) {
                Partial::compile(text, templates, in_zone)
            } else {
                Err(vec![without_template(text, name, templates)])
            };
            match compiled {
                Ok(partial) => drop(partials.insert(template, partial)),
                Err(found) => problems.extend(found),
            }
        }
        if !problems.is_empty() {
            return Err(problems);
        }
        let reach = match partials.is_empty() {
            true => Reach::default(),
            false => Reach::new(templates),
        };
        Ok(Self { partials, reach })
    }

    /// Returns the partials whose queries a page of this template has.
    pub(super) fn shown_by(&self, template: Option<&str>) -> Vec<&Partial> {
        let Some(template) = template else {
            return Vec::new();
        };
        let all = self.partials.iter();
        let shown = all.filter(|(name, _)| self.reach.shows(template, name));
        shown.map(|(_, partial)| partial).collect()
    }

    /// Returns the queries as an error page of this template sees them: lists without rows, and no
    /// rows. A `:one` is undefined there, because it always has a row where a page shows it.
    pub fn without_rows(&self, template: &str) -> BTreeMap<String, Value> {
        let partials = self.shown_by(Some(template));
        let queries = partials.iter().flat_map(|partial| &partial.script.queries);
        let seen = queries.filter_map(|query| match query.rows {
            Rows::Many => Some((query.name.clone(), Value::from(Vec::<Value>::new()))),
            Rows::Optional => Some((query.name.clone(), Value::from(()))),
            Rows::One | Rows::Exec => None,
        });
        seen.collect()
    }
}

/// Queries beside which there is no template.
fn without_template(text: &Text, name: &str, templates: &BTreeMap<String, String>) -> Problem {
    let file = text.partial();
    if name.ends_with(".post.sql") {
        return Problem::new(file, "a form has an address, and templates have none")
            .hint("put it below pages/");
    }
    let template = format!("{}.html", name.trim_end_matches(".sql"));
    let names = templates.keys().map(String::as_str);
    let names = names.filter(|name| !name.starts_with("pages/"));
    let hint = match closest(&template, names) {
        Some(near) => format!("did you mean {}.sql?", near.trim_end_matches(".html")),
        None => "these queries are for the pages that include it".to_owned(),
    };
    Problem::new(file, format!("there is no templates/{template} beside it")).hint(hint)
}

impl Partial {
    fn compile(
        text: &Text,
        templates: &BTreeMap<String, String>,
        (database, zone): (&Database, SiteZone),
    ) -> Result<Self, Vec<Problem>> {
        let file = text.partial();
        let script = Script::parse_in(&file, &text.text, zone).map_err(|problem| vec![problem])?;
        let pattern = Pattern::default();
        let source = SqlFile {
            file: &file,
            text: &text.text,
            pattern: &pattern,
            script: &script,
            dialect: database.dialect(),
        };
        let misplaced = of_an_address(&file, &script);
        if let Some(problem) = misplaced.or_else(|| page_redirect::of_partial(source)) {
            return Err(vec![problem]);
        }
        language::of_page_alone(source).map_err(|problem| vec![problem])?;
        let statements = Statements {
            file: &file,
            text: &text.text,
            script: &script,
            database,
        };
        let hint = "what writes is a form: a .post.sql file below pages/";
        let mut problems = Vec::new();
        let prepared = statements.that_read(hint, &mut problems);
        if !problems.is_empty() {
            return Err(problems);
        }
        let single = super::single_statements(&prepared);
        problems.extend(undeclared(source, &single));
        if problems.is_empty() {
            problems = unused(source, &single, |param| {
                let mut sources = templates.iter();
                sources.any(|(name, source)| {
                    !name.starts_with("pages/") && parameters::may_read(source, param)
                })
            });
        }
        if !problems.is_empty() {
            return Err(problems);
        }
        let statements = prepared.into_iter().map(|(_, all)| all).collect();
        Ok(Self {
            text: text.text.clone(),
            file,
            script,
            statements,
        })
    }

    /// Its queries with their statements.
    pub(super) fn prepared(&self) -> impl Iterator<Item = Prepared<'_>> {
        self.script
            .queries
            .iter()
            .zip(self.statements.iter().cloned())
    }

    /// Iterates over the queries that templates are given.
    pub(super) fn given(&self) -> impl Iterator<Item = GivenQuery> {
        self.prepared().map(|(named, all)| GivenQuery {
            name: named.name.clone(),
            rows: named.rows,
            columns: Some(all[0].1.columns()),
            documents: all[0].1.documents(),
        })
    }

    /// Adds its parameters to those of a page.
    pub(super) fn add_params(
        &self,
        page: SqlFile<'_>,
        params: &mut Vec<Param>,
    ) -> Result<(), Problem> {
        for declared in &self.script.params {
            match params.iter().find(|param| param.name == declared.name) {
                Some(param) => self.agrees(declared, param, page)?,
                None => params.push(self.param(declared, page.file)?),
            }
        }
        self.add_today(page, params)
    }

    /// Adds the date that the server gives, if a query asks for it.
    fn add_today(&self, page: SqlFile<'_>, params: &mut Vec<Param>) -> Result<(), Problem> {
        let source = SqlFile {
            file: &self.file,
            text: &self.text,
            pattern: page.pattern,
            script: &self.script,
            dialect: page.dialect,
        };
        if self.script.params.iter().any(|param| param.name == TODAY) {
            return Ok(());
        }
        for (named, all) in self.prepared() {
            let wanted = all[0].1.params();
            let Some(wanted) = wanted.iter().find(|param| param.name == TODAY) else {
                continue;
            };
            match params.iter().find(|param| param.name == TODAY) {
                None => params.push(parameters::today(source, named, wanted)?),
                Some(param) if param.today.is_some() => {}
                Some(_) => {
                    let shown = page.file.display();
                    let message = format!(
                        "`:today` is the server's date here, and a parameter of {shown}, which shows this"
                    );
                    let problem = source.at_query(named, TODAY, message);
                    return Err(problem.hint("give the page's parameter another name"));
                }
            }
        }
        Ok(())
    }

    /// Adds the fields and claims that its template looks at to those of a page.
    pub(super) fn add_vary(&self, vary: &mut Vec<String>, needs: &mut SessionRequirements) {
        for field in &self.script.vary {
            if !vary.contains(field) {
                vary.push(field.clone());
            }
        }
        super::signing::vary(&self.script, needs);
    }

    /// A parameter that the page has only because it shows this template.
    fn param(&self, declared: &Declaration, page: &Path) -> Result<Param, Problem> {
        let name = &declared.name;
        if declared.default.is_none() && !declared.is_list {
            let shown = page.display();
            let message = format!(
                "`{name}` has no default, and {shown}, which shows this, has no such parameter"
            );
            let hint = "declare it there too, or give it a default here, such as `= null`";
            return Err(self.at(declared, message).hint(hint));
        }
        Ok(Param {
            name: name.clone(),
            kind: declared.kind,
            is_list: declared.is_list,
            choices: declared.choices.clone().into(),
            rules: declared.rules.clone().some(),
            default: declared.default.clone(),
            in_path: None,
            today: None,
        })
    }

    /// A parameter of one name has one meaning on a page.
    fn agrees(
        &self,
        declared: &Declaration,
        param: &Param,
        page: SqlFile<'_>,
    ) -> Result<(), Problem> {
        // PostgreSQL reads what is of another type from text.
        let is_text = |kind| matches!(kind, ValueKind::Text | ValueKind::Other);
        let is_same_kind =
            declared.kind == param.kind || is_text(declared.kind) && is_text(param.kind);
        let has_default = param.in_path.is_none() && param.default.is_some();
        let is_same = is_same_kind
            && declared.is_list == param.is_list
            && (declared.choices.is_empty() || *declared.choices == *param.choices)
            && (declared.rules == ValueRules::default()
                || declared.rules.clone().some() == param.rules)
            && (!has_default || declared.default.is_none() || declared.default == param.default);
        if is_same {
            return Ok(());
        }
        let (name, shown) = (&declared.name, page.file.display());
        if page.declared(name).is_none() {
            let message =
                format!("`{name}` is declared here, and not in {shown}, which shows this");
            let line = self.text.lines().nth(declared.line - 1);
            let line = line.unwrap_or_default().trim();
            let once = match param.in_path {
                None => "",
                Some(_) => ", or once for its folder into _folder.sql",
            };
            let hint = format!("write the same line into {shown}{once}: {line}");
            return Err(self.at(declared, message).hint(hint));
        }
        let message = format!("`{name}` is declared otherwise than in {shown}, which shows this");
        Err(self
            .at(declared, message)
            .hint("declare both alike, or give one of them another name"))
    }

    fn at(&self, declared: &Declaration, message: String) -> Problem {
        Problem::new(&self.file, message).at(declared.line, 1)
    }

    /// The first of its queries that has the name of one that a page has already, with its file.
    pub(super) fn collision(&self, taken: &[(&NamedQuery, &Path)]) -> Option<Problem> {
        let mut queries = self.script.queries.iter();
        let (query, other) = queries.find_map(|query| {
            let mut taken = taken.iter();
            let (_, file) = taken.find(|(known, _)| known.name == query.name)?;
            Some((query, file))
        })?;
        let (name, other) = (&query.name, other.display());
        let message = format!("`{name}` is also a query of {other}, and one page shows both");
        Some(
            Problem::new(&self.file, message)
                .at(query.line, 1)
                .hint("give one of them another name"),
        )
    }
}

/// A line that only what has an address can have.
fn of_an_address(file: &Path, script: &Script) -> Option<Problem> {
    let paths = [&script.created, &script.invalid].into_iter();
    let paths = paths.flatten().map(|(_, line)| *line);
    let messages = script.messages.iter().map(|message| message.line);
    let of_forms = script.session.of_forms().map(|line| line.number);
    let otherwise = script.otherwise();
    if let Some(line) = paths.chain(messages).chain(of_forms).chain(otherwise).min() {
        let problem = Problem::new(file, "only a form has this line").at(line, 1);
        return Some(problem.hint("put it into a .post.sql file below pages/"));
    }
    let of_pages = script.json.as_ref().or(script.csv.as_ref());
    let of_pages = of_pages.map(|(_, line)| *line);
    let bytes = script.bytes.as_ref().map(|bytes| bytes.line.number);
    let until = script.until.first().map(|until| until.line.number);
    if let Some(line) = of_pages
        .or(bytes)
        .or(until)
        .or(script.uncrawled)
        .or(script.live)
    {
        let problem = Problem::new(file, "only a page has this line").at(line, 1);
        return Some(problem.hint("put it into a .sql file below pages/"));
    }
    if script.session.require.is_empty() && script.session.guards.is_empty() {
        return None;
    }
    let problem = Problem::new(file, "only a page or a form says who may enter");
    Some(problem.hint("put the `-- require:` line into the .sql file of each page"))
}

/// A template is shown by many pages, so its own file says what its parameters are.
fn undeclared(source: SqlFile<'_>, queries: &[(&NamedQuery, db::Query)]) -> Vec<Problem> {
    let declared = source.script.params.iter();
    let declared: BTreeSet<&str> = declared.map(|param| param.name.as_str()).collect();
    let mut problems = Vec::new();
    for (named, query) in queries {
        let params = query.params();
        let unknown = params.iter().filter(|param| {
            !declared.contains(param.name.as_str())
                && !param.name.starts_with(RESERVED)
                && param.name != TODAY
        });
        for param in unknown {
            let name = &param.name;
            let hint = match closest(name, declared.iter().copied()) {
                Some(near) => format!("did you mean `:{near}`?"),
                None => format!("declare it: -- param: {name} integer"),
            };
            let message = format!("no line declares the parameter `:{name}`");
            problems.push(source.at_query(named, name, message).hint(hint));
        }
    }
    problems
}
