//! Passwords that would get into a query as they were typed.

use std::collections::BTreeSet;

use millpond_db::{self as db, ValueKind};

use super::{parameters::SqlFile, signing};
use millpond_site_format::{
    Problem,
    script::NamedQuery,
    secret_names::{is_of_something, is_password, is_repetition},
};

/// The first parameter that a visitor gives and whose name says that it is a password. Hashes of
/// `-- hash:` lines and columns of other queries are in `given`.
pub(super) fn plain_password(
    source: SqlFile<'_>,
    prepared: &[(&NamedQuery, db::Query)],
    given: &BTreeSet<(usize, String)>,
) -> Option<Problem> {
    let session = &source.script.session;
    prepared.iter().enumerate().find_map(|(step, (named, query))| {
        let params = query.params();
        let param = params.iter().find(|param| {
            let name = &*param.name;
            // `-- param: has_password boolean` is none.
            let may_be = source.declared(name).is_none_or(|it| {
                it.kind == ValueKind::Text && !is_of_something(name)
            });
            let is_named = signing::passwords(session).any(|password| password == name);
            let is_given = given.contains(&(step, name.to_owned()));
            is_password(name) && may_be && !is_named && !is_given
        })?;
        let name = &param.name;
        let message = format!(
            "query `{}` is given the password `:{name}` as it was typed",
            named.name
        );
        if is_repetition(name) {
            return Some(source.at_query(named, name, message).hint(
                "let the browser compare what is typed twice, and leave the repetition out of the queries",
            ));
        }
        Some(source.at_query(named, name, message).hint(format!(
            "a form stores its hash: -- hash: password_hash = :{name}, and :password_hash in the query; a sign-in compares it: -- verify: account.password_hash = :{name} else /login; a value that is no visitor's password says of what: -- param: wifi_password text"
        )))
    })
}
