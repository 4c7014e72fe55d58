//! `-- invalid:` lines of forms, and the pages to which they lead.

use std::{path::Path, sync::Arc};

use millpond_db as db;
use millpond_http::path::normalize;

use super::{
    Pages,
    redirect::redirect,
    signing::{check_target, passwords},
};
use crate::{
    Problem,
    form_values::{ERRORS, FORM},
    invalid::{Invalid, query_of},
    page::{ArgumentSource, RedirectPiece},
    params::Param,
    rules::WORD,
    script::{FileLine, Script},
    secret_names::is_secret,
    session::From,
    suggest::closest,
    template::{Given, GivenForms},
};

/// What the lines come to; none if the form has none.
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

/// Whether what was typed comes back to the visitor. A password does not, nor what becomes a claim,
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
    pub(super) fn link_forms(&mut self, given: &mut [Given]) -> Vec<Problem> {
        let forms = self.endpoints.iter();
        let forms = forms.flat_map(|endpoint| endpoint.forms.iter().cloned());
        let forms: Vec<_> = forms.filter(|form| form.invalid.is_some()).collect();
        let mut problems = Vec::new();
        for form in forms {
            let Some(invalid) = &form.invalid else {
                continue;
            };
            if let Err((message, hint)) = self.link(invalid, &form.params, given) {
                let problem = Problem::new(&form.file, message).at(invalid.line, 1);
                problems.push(problem.hint(hint));
            }
        }
        problems
    }

    fn link(
        &mut self,
        invalid: &Invalid,
        params: &[Param],
        given: &mut [Given],
    ) -> Result<(), (String, String)> {
        let sample = sample(&invalid.target);
        let path = sample.split(['?', '#']).next().unwrap_or_default();
        let found = normalize(path).ok().and_then(|path| {
            let found = self.router.find(&path)?;
            Some(found.page)
        });
        let Some(at) = found else {
            return Err(self.no_page(path));
        };
        let route = self.endpoints[at].pattern.to_string();
        let page = self.endpoints[at].page.as_mut().and_then(Arc::get_mut);
        let Some(page) = page.filter(|page| page.template.is_some()) else {
            let message = format!("{route} has no template in which the form could be filled in");
            return Err((message, "name the page that has the form".to_owned()));
        };
        let query = query_of(&sample);
        let lacking = page.params.iter().find(|param| {
            let is_given = param.in_path.is_some() || param.default.is_some() || param.is_list;
            !is_given && !query.contains(&param.name)
        });
        if let Some(param) = lacking {
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
        let mut fields: Vec<Param> = page.forms.as_deref().unwrap_or_default().to_vec();
        for param in params {
            match fields.iter_mut().find(|known| known.name == param.name) {
                None => fields.push(param.clone()),
                // Two forms of one page: what both take is shown as it was typed.
                Some(known) if known.kind != param.kind => known.kind = db::ValueKind::Text,
                Some(_) => {}
            }
        }
        let names: Vec<String> = fields.iter().map(|param| param.name.clone()).collect();
        page.forms = Some(fields.into());
        let mut all = given.iter_mut();
        if let Some(given) = all.find(|given| Some(&given.template) == page.template.as_ref()) {
            given.forms = GivenForms::Fields(names);
        }
        Ok(())
    }

    fn no_page(&self, path: &str) -> (String, String) {
        let pages = self
            .endpoints
            .iter()
            .filter(|endpoint| endpoint.page.is_some());
        let known: Vec<String> = pages.map(|page| page.pattern.to_string()).collect();
        let hint = match closest(path, known.iter().map(String::as_str)) {
            Some(near) => format!("did you mean {near}?"),
            None => "name the page that has the form".to_owned(),
        };
        (format!("no page answers at {path}"), hint)
    }
}

/// An address that the target may become.
fn sample(target: &[RedirectPiece]) -> String {
    let pieces = target.iter().map(|piece| match piece {
        RedirectPiece::Text(text) => text.as_str(),
        RedirectPiece::Value(_) => WORD,
    });
    pieces.collect()
}
