//! Sign-ins that read a password's hash and compare no password with it.

use crate::{
    compile::Pages,
    page::{Form, redirect_target::ArgumentSource},
};
use millpond_site_format::Problem;

/// Notes on forms that give a visitor the claims of a row with a hash, without a `-- verify:` line.
pub(super) fn claims(pages: &Pages) -> Vec<Problem> {
    let forms = pages.endpoints.iter().flat_map(|endpoint| &endpoint.forms);
    forms.filter_map(|form| of_form(form)).collect()
}

fn of_form(form: &Form) -> Option<Problem> {
    if form.signing.verify.is_some() {
        return None;
    }
    let mut claims = form.signing.claims.iter();
    let (step, hash) = claims.find_map(|(_, source)| {
        let ArgumentSource::Column { step, .. } = source else {
            return None;
        };
        let step = &form.steps[*step];
        let columns = step.query.columns();
        let hash = columns.iter().find(|column| is_hash(column))?;
        Some((step, hash.to_string()))
    })?;
    let name = &step.name;
    let message = format!(
        "visitors get the claims of `{name}`, which has `{hash}`, and no `-- verify:` line compares a password with it"
    );
    let note = Problem::new(&form.file, message).at(step.line, 1);
    Some(note.hint(format!(
        "below the query: -- verify: {name}.{hash} = :password else /login?failed=1; if no password is asked for, leave the column out"
    )))
}

fn is_hash(column: &str) -> bool {
    let column = column.to_ascii_lowercase();
    column.contains("password") || column.contains("passwd") || column.ends_with("_hash")
}
