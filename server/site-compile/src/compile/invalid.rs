//! `-- invalid:` lines of forms, and the pages to which they lead.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
    sync::Arc,
};

use millpond_db as db;
use millpond_http::path::normalize;

use super::{
    Pages,
    redirect::redirect,
    signing::{check_target, passwords},
};
use crate::{
    page::{
        Form,
        redirect_target::{ArgumentSource, RedirectPiece},
    },
    refusal::{
        invalid::{Invalid, query_of},
        values::{ERRORS, FORM, FormFields},
    },
    template::{Given, GivenForms, Reach, ShownFaults},
};
use millpond_site_format::{
    Problem,
    access::From,
    params::Param,
    rules::WORD,
    script::{FileLine, Script},
    secret_names::is_secret,
    suggest::closest,
};

/// Compiles the lines; none if the form has none.
pub(super) fn invalid(
    file: &Path,
    script: &Script,
    params: &[Param],
) -> Result<Option<Invalid>, Problem> {
    let Some((target, line)) = &script.invalid else {
        return Ok(None);
    };
    let at_line = |message: String| Problem::new(file, message).at(*line, 1);
    let known = || params.iter().map(|param| param.name.as_str());
    let place = |name: &str| params.iter().position(|param| param.name == name);
    check_target(file, &script.session, params, target, *line)?;
    let pieces = redirect(target, |name| place(name).map(ArgumentSource::Param));
    let target = pieces.map_err(|name| {
        let message = format!("`:{name}` in the path is no parameter of the form");
        match closest(&name, known()) {
            Some(near) => at_line(message).hint(format!("did you mean `:{near}`?")),
            None => at_line(message).hint(
                "nothing was written, so there are no columns; declare it: -- param: id integer",
            ),
        }
    })?;
    if let Some(param) = params.iter().find(|param| param.name == FORM) {
        let message = format!(
            "the parameter `{}` takes the name of `errors.form`",
            param.name
        );
        return Err(at_line(message).hint("that is what belongs to no field: give it another name"));
    }
    Ok(Some(Invalid {
        target,
        line: *line,
        is_kept: params.iter().map(|param| is_kept(script, param)).collect(),
    }))
}

/// True if what was typed comes back to the visitor. A password does not, nor what becomes a claim,
/// nor what a path has anyway.
fn is_kept(script: &Script, param: &Param) -> bool {
    let lines = &script.session;
    let name = param.name.as_str();
    let is_claim = lines
        .claims
        .iter()
        .any(|claim| matches!(&claim.from, From::Param(of) if of == name));
    let is_password = passwords(lines).any(|password| password == name);
    let mut files = script.files.iter().flat_map(FileLine::declarations);
    let is_of_file = files.any(|declared| declared.name == name);
    !is_claim && !is_secret(name) && !is_password && !is_of_file && param.in_path.is_none()
}

impl Pages {
    /// Lets each page to which forms lead back know their fields.
    pub(super) fn link_forms(
        &mut self,
        given: &mut [Given],
        sources: &BTreeMap<String, String>,
    ) -> Vec<Problem> {
        let forms = self.endpoints.iter();
        let forms = forms.flat_map(|endpoint| endpoint.forms.iter().cloned());
        let forms: Vec<_> = forms.filter(|form| form.invalid.is_some()).collect();
        let mut problems = Vec::new();
        for form in &forms {
            let Some(invalid) = &form.invalid else {
                continue;
            };
            if let Err((message, hint)) = self.link(invalid, &form.params, given) {
                let problem = Problem::new(&form.file, message).at(invalid.line, 1);
                problems.push(problem.hint(hint));
            }
        }
        if !forms.is_empty() {
            self.find_unshown(sources);
            self.doubts.extend(self.unseen(&forms));
        }
        problems
    }

    /// Finds the fields whose faults the pages do not show.
    fn find_unshown(&mut self, sources: &BTreeMap<String, String>) {
        let reach = Reach::new(sources);
        let pages = self.endpoints.iter_mut();
        let pages = pages.filter_map(|endpoint| endpoint.page.as_mut().and_then(Arc::get_mut));
        for page in pages {
            let template = page.template.as_deref().unwrap_or_default();
            let Some(fields) = page.forms.as_mut().and_then(Arc::get_mut) else {
                continue;
            };
            let shown = ShownFaults::of(template, sources, &reach);
            let names = fields.params.iter().map(|param| param.name.clone());
            let names = names.chain([FORM.to_owned()]);
            fields.unshown = names.filter(|name| !shown.has(name)).collect();
        }
    }

    /// Notes on forms with a fault that no visitor sees: the page shows it neither at its field
    /// nor in `errors.form`.
    fn unseen(&self, forms: &[Arc<Form>]) -> Vec<Problem> {
        let notes = forms.iter().filter_map(|form| {
            let invalid = form.invalid.as_ref()?;
            let page = self.target_of(samples(&invalid.target, &form.params).first()?)?;
            let page = self.endpoints[page].page.as_ref()?;
            let unshown = &page.forms.as_ref()?.unshown;
            let mut params = form.params.iter();
            let unseen = params
                .find(|param| param.in_path.is_none() && unshown.contains(&param.name))
                .filter(|_| unshown.contains(FORM))?;
            let message = format!(
                "the page {} shows neither `errors.{}` nor `errors.form`, so a visitor may not see why the form is refused",
                page.route, unseen.name
            );
            let note = Problem::new(&form.file, message).at(invalid.line, 1);
            Some(note.hint(
                "write {{ errors.form }} there: it also has what is wrong with fields that are not shown",
            ))
        });
        notes.collect()
    }

    /// The place of the page at an address.
    fn target_of(&self, address: &str) -> Option<usize> {
        let path = address.split(['?', '#']).next().unwrap_or_default();
        let path = normalize(path).ok()?;
        Some(self.router.find(&path)?.page)
    }

    fn link(
        &mut self,
        invalid: &Invalid,
        params: &[Param],
        given: &mut [Given],
    ) -> Result<(), (String, String)> {
        let mut linked = BTreeSet::new();
        for sample in samples(&invalid.target, params) {
            let path = sample.split(['?', '#']).next().unwrap_or_default();
            let Some(at) = self.target_of(&sample) else {
                return Err(self.no_page(path));
            };
            if linked.insert(at) {
                self.link_page(at, &sample, params, given)?;
            }
        }
        Ok(())
    }

    /// Lets the page at an address know the fields of a form.
    fn link_page(
        &mut self,
        at: usize,
        sample: &str,
        params: &[Param],
        given: &mut [Given],
    ) -> Result<(), (String, String)> {
        let path = sample.split(['?', '#']).next().unwrap_or_default();
        let route = self.endpoints[at].pattern.to_string();
        let page = self.endpoints[at].page.as_mut().and_then(Arc::get_mut);
        let Some(page) = page.filter(|page| page.template.is_some()) else {
            let message = format!("{route} has no template in which the form could be filled in");
            return Err((message, "name the page that has the form".to_owned()));
        };
        let query = query_of(sample);
        let lacking = page.params.iter().enumerate().find(|(at, param)| {
            let is_given = param.in_path.is_some()
                || param.default.is_some()
                || param.is_list
                || page.language == Some(*at);
            !is_given && !query.contains(&param.name)
        });
        if let Some((_, param)) = lacking {
            let name = &param.name;
            let message = format!("the page {route} needs the parameter `{name}`");
            return Err((
                message,
                format!("write it behind the path: {path}?{name}=:{name}"),
            ));
        }
        let taken = page
            .queries
            .iter()
            .find(|query| [FORM, ERRORS].contains(&&*query.name));
        if let Some(query) = taken {
            let message = format!("the page {route} has a query named `{}`", query.name);
            let hint = "that is the name of what a form leads back with: rename the query";
            return Err((message, hint.to_owned()));
        }
        let known = page.forms.as_ref().map(|known| known.params.to_vec());
        let mut fields: Vec<Param> = known.unwrap_or_default();
        for param in params {
            match fields.iter_mut().find(|known| known.name == param.name) {
                None => fields.push(param.clone()),
                // Two forms of one page: what both take is shown as it was typed.
                Some(known) if known.kind != param.kind => known.kind = db::ValueKind::Text,
                Some(_) => {}
            }
        }
        let names: Vec<String> = fields.iter().map(|param| param.name.clone()).collect();
        page.forms = Some(Arc::new(FormFields {
            params: fields.into(),
            ..FormFields::default()
        }));
        let mut all = given.iter_mut();
        if let Some(given) = all.find(|given| Some(&given.template) == page.template.as_ref()) {
            given.forms = GivenForms::Fields(names);
        }
        Ok(())
    }

    fn no_page(&self, path: &str) -> (String, String) {
        let pages = self.endpoints.iter();
        let pages = pages.filter(|endpoint| endpoint.page.is_some());
        let is_narrow = pages.clone().any(|page| page.pattern.sample() == path);
        let known: Vec<String> = pages.map(|page| page.pattern.in_lines()).collect();
        let hint = match closest(path, known.iter().map(String::as_str)) {
            _ if is_narrow => {
                "the page takes some values alone; the form needs the same -- param: line"
                    .to_owned()
            }
            Some(near) => format!("did you mean {near}?"),
            None => "name the page that has the form".to_owned(),
        };
        (format!("no page answers at {path}"), hint)
    }
}

/// Returns addresses that the target may become, with each value of its parameters that have only
/// some: the page may answer for these alone.
fn samples(target: &[RedirectPiece], params: &[Param]) -> Vec<String> {
    let texts = |piece: &RedirectPiece| match piece {
        RedirectPiece::Text(text) => vec![text.clone()],
        RedirectPiece::Value(ArgumentSource::Param(at)) => params[*at].texts(),
        RedirectPiece::Value(ArgumentSource::Column { .. }) | RedirectPiece::Slug(_) => Vec::new(),
    };
    let pieces: Vec<Vec<String>> = target.iter().map(texts).collect();
    let most = pieces.iter().map(Vec::len).max().unwrap_or_default();
    let sample = |number: usize| {
        let texts = pieces.iter().map(|texts| match texts.len() {
            0 => WORD,
            count => &texts[number % count],
        });
        texts.collect()
    };
    (0..most).map(sample).collect()
}
