//! Forms that give tokens to programs, and those that cannot.

use crate::{core::Generation, form::write_answer::TOKEN_MEMBERS};
use millpond_site_compile::page::{Form, FormAnswer};
use millpond_site_format::{Problem, script::Rows};

/// Notes on the forms that sign in, where tokens are taken.
pub(super) fn notes(generation: &Generation) -> Vec<Problem> {
    if !generation.sessions.take_tokens() {
        return Vec::new();
    }
    let endpoints = generation.pages.endpoints.iter();
    let forms = endpoints.flat_map(|endpoint| &endpoint.forms);
    let signing: Vec<_> = forms
        .filter(|form| !form.signing.claims.is_empty())
        .collect();
    if !signing.is_empty() && signing.iter().all(|form| form.is_for_people()) {
        let message =
            "session.bearer is on, and no form gives a token: each answers with a redirect";
        let hint =
            "a form that signs in without a `-- redirect:` line answers with JSON, and a token";
        return vec![Problem::new(millpond_site_format::problem::SETTINGS, message).hint(hint)];
    }
    signing.iter().filter_map(|form| of_form(form)).collect()
}

fn of_form(form: &Form) -> Option<Problem> {
    let FormAnswer::Json { bare, .. } = &form.answer else {
        return None;
    };
    let shown = form.steps.iter().enumerate();
    let mut shown = shown.filter(|(at, _)| *at >= form.signing.lookups);
    let (message, hint) = match bare {
        Some(bare) if form.steps[*bare].rows == Rows::Many => (
            "the answer is a list, which has no room for the token".to_owned(),
            "let `-- json:` name a query of one row, or leave the line out",
        ),
        Some(bare) => {
            let columns = form.steps[*bare].query.columns();
            let taken = TOKEN_MEMBERS
                .iter()
                .find(|member| columns.iter().any(|it| **it == ***member))?;
            (
                format!("the column `{taken}` is not shown: the token has this name in the answer"),
                "give it another name: select … as …",
            )
        }
        None => {
            let (_, step) = shown.find(|(_, step)| TOKEN_MEMBERS.contains(&&*step.name))?;
            (
                format!(
                    "the query `{}` is not shown: the token has this name in the answer",
                    step.name
                ),
                "give it another name",
            )
        }
    };
    Some(Problem::new(&form.file, message).hint(hint))
}
