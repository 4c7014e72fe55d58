//! A `.post.sql` file, or one of another method that writes, to a form.

use std::collections::BTreeSet;

use millpond_db::{self as db, Database, Expect};

use super::{
    answer::{AnswerLines, Target},
    folder_params::FolderParams,
    guards::guards_of_form,
    invalid::invalid,
    language,
    messages::texts,
    page_redirect,
    parameters::{SqlFile, misspelt, parameters, unused},
    plain_passwords::plain_password,
    redirect::{names, redirect},
    returned, sign_in, signing,
    statements::Statements,
    undeclared::undeclared,
    uploads::{deleted_files, uploads},
};
use crate::page::{
    Form, FormStep,
    redirect_target::{ArgumentSource, RedirectPiece},
};
use millpond_site_format::{
    Problem,
    access::{SessionLines, SessionRequirements},
    dialect::Text,
    params::Param,
    route::Pattern,
    script::{NamedQuery, Rows, Script},
    suggest::closest,
    time_zone::SiteZone,
    write_method::WriteMethod,
};

/// Compiles a form. `claims` are those that the site's forms give.
pub(super) fn form(
    method: WriteMethod,
    pattern: &Pattern,
    text: &Text,
    (folders, stem): (&FolderParams, &str),
    (database, zone): (&Database, SiteZone),
    claims: &BTreeSet<String>,
) -> Result<Form, Vec<Problem>> {
    let file = text.page();
    let script = Script::parse_in(&file, &text.text, zone);
    let mut script = script.map_err(|problem| vec![problem])?;
    folders.add_to_form(stem, &mut script);
    let source = SqlFile {
        file: &file,
        text: &text.text,
        pattern,
        script: &script,
        dialect: database.dialect(),
    };
    let one = |problem| vec![problem];
    without_lines_of_pages(source).map_err(one)?;
    page_redirect::of_form(source).map_err(one)?;
    language::of_page_alone(source).map_err(one)?;
    let lines = AnswerLines::of(source).map_err(one)?;
    let target = lines.target();
    let steps = FormSteps::prepare(source, database)?;
    let given = steps.given();
    steps.check(&given, target, claims)?;
    let mut params = parameters(source, &steps.prepared, &given).map_err(one)?;
    let session = &script.session;
    sign_in::check(&file, session, pattern).map_err(one)?;
    let guards = guards_of_form(source, &steps.prepared, verified_after(session)).map_err(one)?;
    signing::check(&file, &script, &steps.prepared, &given).map_err(one)?;
    let end = steps.prepared.len();
    let is_column = |name: &str| !steps.is_declared(name) && steps.column(end, name).is_some();
    signing::add_params(&file, session, is_column, &mut params).map_err(one)?;
    let needs = steps.needs();
    let uploads = uploads(source, &params).map_err(one)?;
    let deleted_files = deleted_files(source, &steps.prepared).map_err(one)?;
    let pieces = steps.redirect(&params, &needs, target).map_err(one)?;
    let invalid = invalid(&file, &script, &params).map_err(one)?;
    let texts = texts(&file, &script, &steps.prepared, &params).map_err(one)?;
    let mut signing = signing::signing(
        &file,
        session,
        &steps.prepared,
        (&params, &needs),
        steps.verified,
    )
    .map_err(one)?;
    let next = session.next.as_ref();
    signing.next = next.and_then(|(name, _)| steps.argument(&params, &needs, end, name));
    Ok(Form {
        method,
        answer: lines.answer(&steps.prepared, pieces).map_err(one)?,
        route: pattern.to_string(),
        steps: steps.all(&params, &needs),
        params,
        needs,
        guards,
        signing,
        invalid,
        texts,
        uploads,
        deleted_files,
        file,
    })
}

/// The number of steps above `-- verify:`.
fn verified_after(lines: &SessionLines) -> usize {
    lines.verify.as_ref().map_or(0, |verify| verify.after)
}

/// Lines that only a page may have.
fn without_lines_of_pages(source: SqlFile<'_>) -> Result<(), Problem> {
    let script = source.script;
    let order = script.orders.first().map(|order| order.line);
    let bytes = script.bytes.as_ref().map(|bytes| bytes.line.number);
    let until = script.until.first().map(|until| until.line.number);
    let csv = script.csv.as_ref().map(|(_, line)| *line);
    let found = [
        (order, "only a page has an order to choose"),
        (bytes, "only a page answers with bytes"),
        (until, "only a page ends at a moment"),
        (csv, "only a page answers with CSV"),
        (script.uncrawled, "crawlers send no forms"),
        (script.live, "only a page is looked at"),
    ];
    let found = found
        .into_iter()
        .find_map(|(line, message)| Some((line?, message)));
    let Some((line, message)) = found else {
        return Ok(());
    };
    Err(Problem::new(source.file, message)
        .at(line, 1)
        .hint("this line belongs into the .sql file of a page"))
}

/// The statements of a form, and where their values come from.
struct FormSteps<'f> {
    source: SqlFile<'f>,
    prepared: Vec<(&'f NamedQuery, db::Query)>,
    /// The step that finds the account whose password is verified.
    verified: Option<usize>,
    /// The columns that steps give to later ones.
    columns: Vec<(usize, String)>,
}

impl<'f> FormSteps<'f> {
    fn prepare(source: SqlFile<'f>, database: &Database) -> Result<Self, Vec<Problem>> {
        let statements = Statements {
            file: source.file,
            text: source.text,
            script: source.script,
            database,
        };
        let mut problems = Vec::new();
        let mut prepared = Vec::new();
        for named in &source.script.queries {
            match statements.one(named) {
                Ok(query) => {
                    problems.extend(returned::without_columns(source, named, &query));
                    prepared.push((named, query));
                }
                Err(problem) => problems.push(problem),
            }
        }
        if !problems.is_empty() {
            return Err(problems);
        }
        let verified = signing::verified(source.file, &source.script.session, &prepared)
            .map_err(|problem| vec![problem])?;
        Ok(Self {
            source,
            columns: columns(&prepared),
            prepared,
            verified,
        })
    }

    fn column(&self, before: usize, name: &str) -> Option<&(usize, String)> {
        let mut columns = self.columns.iter().rev();
        columns.find(|(step, column)| *step < before && column == name)
    }

    fn is_declared(&self, name: &str) -> bool {
        let SqlFile {
            script, pattern, ..
        } = self.source;
        script.params.iter().any(|param| param.name == name)
            || pattern.params().any(|part| part == name)
    }

    fn hash(&self, name: &str) -> Option<usize> {
        let mut hashes = self.source.script.session.hashes.iter();
        hashes.position(|hash| hash.name == name)
    }

    /// The parameters of steps that do not come from the request.
    fn given(&self) -> BTreeSet<(usize, String)> {
        let mut given = BTreeSet::new();
        for (step, (_, query)) in self.prepared.iter().enumerate() {
            let is_given = |name: &str| {
                let from_column = !self.is_declared(name) && self.column(step, name).is_some();
                self.hash(name).is_some() || from_column
            };
            let names = query.params();
            let names = names.iter().filter(|param| is_given(&param.name));
            given.extend(names.map(|param| (step, param.name.clone())));
        }
        given
    }

    /// Refuses steps that name what is not there, or what visitors give for themselves.
    fn check(
        &self,
        given: &BTreeSet<(usize, String)>,
        target: Option<Target<'_>>,
        claims: &BTreeSet<String>,
    ) -> Result<(), Vec<Problem>> {
        let fail_if_any = |found: Vec<Problem>| match found.is_empty() {
            true => Ok(()),
            false => Err(found),
        };
        let (source, prepared) = (self.source, &self.prepared);
        fail_if_any(self.misnamed(given, target))?;
        fail_if_any(Vec::from_iter(plain_password(source, prepared, given)))?;
        fail_if_any(undeclared(source, prepared, given, claims))?;
        fail_if_any(returned::ambiguous(source, prepared, target.as_ref()))
    }

    /// Parameters that are probably misspelt, and those that nothing uses.
    fn misnamed(
        &self,
        given: &BTreeSet<(usize, String)>,
        target: Option<Target<'_>>,
    ) -> Vec<Problem> {
        let lines = &self.source.script.session;
        let hashes = lines.hashes.iter().map(|hash| hash.name.as_str());
        let others = hashes.chain(self.columns.iter().map(|(_, column)| column.as_str()));
        let others: Vec<&str> = others.collect();
        let problems = misspelt(self.source, &self.prepared, given, &others);
        if !problems.is_empty() {
            // The line of a name that is misspelt in a query seems to be unused.
            return problems;
        }
        unused(self.source, &self.prepared, |name| {
            let back = self.source.script.invalid.iter();
            let back = back.map(|(target, _)| target.as_str());
            let mut targets = back.chain(target.as_ref().map(|target| target.path));
            let files = &self.source.script.files;
            files.iter().any(|file| file.gives_also(name))
                || lines.uses(name)
                || targets.any(|to| names(to).any(|found| found == name))
        })
    }

    /// Returns the requirements of the form on the visitor's session.
    fn needs(&self) -> SessionRequirements {
        let script = self.source.script;
        let mut needs = signing::needs(script);
        for claim in script.session.claims.iter().filter_map(signing::kept_claim) {
            needs.place_of(claim);
        }
        for (_, query) in &self.prepared {
            for claim in query.params().iter().filter_map(signing::claim) {
                needs.place_of(claim);
            }
        }
        needs
    }

    /// Finds the source of the value of a name, for a step or for the lines behind all steps.
    fn argument(
        &self,
        params: &[Param],
        needs: &SessionRequirements,
        before: usize,
        name: &str,
    ) -> Option<ArgumentSource> {
        if let Some(at) = self.hash(name) {
            return Some(ArgumentSource::Param(
                params.len() + needs.claims.len() + at,
            ));
        }
        let param = params.iter().position(|param| param.name == name);
        match (param, self.column(before, name)) {
            (Some(at), column) if self.is_declared(name) || column.is_none() => {
                Some(ArgumentSource::Param(at))
            }
            (_, Some((step, column))) => Some(ArgumentSource::Column {
                step: *step,
                column: column.clone(),
            }),
            (param, None) => param.map(ArgumentSource::Param),
        }
    }

    fn redirect(
        &self,
        params: &[Param],
        needs: &SessionRequirements,
        target: Option<Target<'_>>,
    ) -> Result<Vec<RedirectPiece>, Problem> {
        let SqlFile { file, script, .. } = self.source;
        let lines = &script.session;
        let after_else = lines.verify.iter().filter_map(|verify| {
            let path = verify.otherwise.as_deref()?;
            Some((path, verify.line.number))
        });
        let at_end = target.map(|target| (target.path, target.line));
        for (path, line) in after_else.chain(at_end) {
            signing::check_target(file, lines, params, path, line)?;
        }
        let Some(Target { path, line, word }) = target else {
            return Ok(Vec::new());
        };
        let source = |name: &str| self.argument(params, needs, self.prepared.len(), name);
        redirect(path, source).map_err(|name| {
            let columns = self.columns.iter().map(|(_, column)| column.as_str());
            let known = params.iter().map(|param| param.name.as_str()).chain(columns);
            let message = format!(
                "the {word} names `:{name}`, which is neither a parameter nor a column of a `:one` query"
            );
            let problem = Problem::new(file, message).at(line, 1);
            match closest(&name, known) {
                Some(near) => problem.hint(format!("did you mean `:{near}`?")),
                None => problem.hint(format!("declare it: -- param: {name} text = ''")),
            }
        })
    }

    fn all(&self, params: &[Param], needs: &SessionRequirements) -> Vec<FormStep> {
        let steps = self.prepared.iter().enumerate();
        let steps = steps.map(|(step, (named, query))| {
            let source = |param: &db::Param| match signing::claim(param) {
                Some(claim) => ArgumentSource::Param(params.len() + needs.clone().place_of(claim)),
                None => self
                    .argument(params, needs, step, &param.name)
                    .expect("every parameter was gathered"),
            };
            FormStep {
                name: named.name.clone(),
                rows: named.rows,
                bind: query.params().iter().map(source).collect(),
                query: query.clone(),
                expect: match named.rows {
                    Rows::One => Expect::One,
                    Rows::Optional => Expect::Optional,
                    Rows::Many => Expect::Many,
                    Rows::Exec => Expect::Exec,
                },
                otherwise: named.otherwise,
                line: named.line,
            }
        });
        steps.collect()
    }
}

/// The columns that the row of each `:one` and `:one?` step gives to later steps. They are null if
/// a `:one?` step has no row.
fn columns(prepared: &[(&NamedQuery, db::Query)]) -> Vec<(usize, String)> {
    let ones = prepared
        .iter()
        .enumerate()
        .filter(|(_, (named, _))| matches!(named.rows, Rows::One | Rows::Optional));
    ones.flat_map(|(step, (_, query))| {
        query
            .columns()
            .iter()
            .map(|name| (step, name.to_string()))
            .collect::<Vec<_>>()
    })
    .collect()
}
