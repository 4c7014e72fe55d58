//! What the lines about sessions and passwords come to, and what is wrong with them.

use std::{collections::BTreeSet, path::Path};

use millpond_db::{self as db, ValueKind};

use crate::page::{
    Signing, Verify,
    redirect_target::{ArgumentSource, RedirectPiece},
};
use millpond_site_format::{
    Problem,
    access::{
        ClaimLine, ClaimUse, DirectiveLine, From, RESERVED, SessionLines, SessionRequirements,
        VerifyLine,
    },
    params::Param,
    script::{NamedQuery, Rows, Script},
    suggest::closest,
};

use super::{
    redirect::{names, redirect},
    statements::PreparedStatements,
};

/// The claim that a query's parameter is, if it is one.
pub(super) fn claim(param: &db::Param) -> Option<ClaimUse> {
    let name = param.name.strip_prefix(RESERVED)?;
    Some(ClaimUse {
        name: name.to_owned(),
        kind: param.kind,
    })
}

/// The claim of the present session that a `-- claims:` line gives again.
pub(super) fn kept_claim(line: &ClaimLine) -> Option<ClaimUse> {
    match &line.from {
        From::Claim(name) => Some(ClaimUse {
            name: name.clone(),
            kind: None,
        }),
        _ => None,
    }
}

/// Returns the requirements of a page by its lines alone; those of its queries are added.
pub(super) fn needs(script: &Script) -> SessionRequirements {
    let mut needs = SessionRequirements {
        require: script.session.require.clone(),
        claims: Vec::new(),
    };
    vary(script, &mut needs);
    needs
}

/// Adds the claims that the template looks at.
pub(super) fn vary(script: &Script, needs: &mut SessionRequirements) {
    for name in &script.session.vary {
        needs.place_of(ClaimUse {
            name: name.clone(),
            kind: None,
        });
    }
}

/// The step that finds the account whose password is verified.
pub(super) fn verified(
    file: &Path,
    lines: &SessionLines,
    prepared: &PreparedStatements<'_>,
) -> Result<Option<usize>, Problem> {
    let Some(verify) = &lines.verify else {
        return Ok(None);
    };
    let above = &prepared[..verify.after];
    let step = step_of(file, &verify.query, &verify.line, above)?;
    let (named, query) = &above[step];
    if named.rows != Rows::Optional {
        return Err(at(file, &verify.line, &verify.query, format!("query `{}` may find no account", named.name))
            .hint(format!("make it `-- name: {} :one?`, so that an unknown account is answered as a wrong password is", named.name)));
    }
    column_of(file, &verify.column, &verify.line, named, query)?;
    let writes = above
        .iter()
        .find(|(named, query)| named.rows == Rows::Exec || !query.is_readonly());
    match writes {
        Some((named, _)) => Err(Problem::new(
            file,
            format!(
                "query `{}` writes before the password is verified",
                named.name
            ),
        )
        .at(named.line, 1)
        .hint("put it below the `-- verify:` line")),
        None => Ok(Some(step)),
    }
}

/// Checks the fields of passwords, and the names of their hashes. `given` has the values that steps
/// take from others.
pub(super) fn check(
    file: &Path,
    script: &Script,
    prepared: &PreparedStatements<'_>,
    given: &BTreeSet<(usize, String)>,
) -> Result<(), Problem> {
    let lines = &script.session;
    let after = lines.verify.as_ref().map_or(0, |verify| verify.after);
    if let Some((step, name)) = given.iter().find(|(step, _)| *step < after) {
        let named = prepared[*step].0;
        return Err(Problem::new(
            file,
            format!(
                "query `{}` cannot use `:{name}` above the `-- verify:` line",
                named.name
            ),
        )
        .at(named.line, 1)
        .hint(
            "there each query is given what the form and the session have; join the tables in one",
        ));
    }
    let passwords = lines.hashes.iter().map(|hash| &hash.password);
    let passwords: Vec<_> = passwords
        .chain(lines.verify.as_ref().map(|verify| &verify.password))
        .collect();
    for (named, query) in prepared {
        let params = query.params();
        if let Some(param) = params.iter().find(|param| passwords.contains(&&param.name)) {
            return Err(Problem::new(
                file,
                format!("query `{}` is given the password `:{}` itself", named.name, param.name),
            )
            .at(named.line, 1)
            .hint("a database keeps hashes only: -- hash: password_hash = :password, and then :password_hash"));
        }
    }
    for (index, hash) in lines.hashes.iter().enumerate() {
        let is_param = script.params.iter().any(|param| param.name == hash.name);
        let is_twice = lines.hashes[..index]
            .iter()
            .any(|other| other.name == hash.name);
        if is_param || is_twice || hash.name.starts_with(RESERVED) || hash.name == hash.password {
            return Err(at(
                file,
                &hash.line,
                &hash.name,
                format!("the name `:{}` is taken", hash.name),
            )
            .hint("give the hash a name of its own"));
        }
        let uses = |(_, query): &(&NamedQuery, db::Query)| {
            query.params().iter().any(|param| param.name == hash.name)
        };
        if !prepared.iter().any(uses) {
            return Err(at(
                file,
                &hash.line,
                &hash.name,
                format!("no query uses the hash `:{}`", hash.name),
            )
            .hint(format!("write it into a table, as `:{}`", hash.name)));
        }
    }
    match &lines.logout {
        Some(line) if !lines.claims.is_empty() => {
            let problem = Problem::new(file, "the form both begins a session and ends it");
            Err(problem
                .at(line.number, 1)
                .hint("keep `-- claims:` or `-- logout`"))
        }
        _ => Ok(()),
    }
}

/// Adds what the lines take from the form and no query asks for. `is_column` is whether a name is
/// that of a column.
pub(super) fn add_params(
    file: &Path,
    lines: &SessionLines,
    is_column: impl Fn(&str) -> bool,
    params: &mut Vec<Param>,
) -> Result<(), Problem> {
    let mut add = |name: &str, default: Option<db::Value>, line: &DirectiveLine| {
        let Some(param) = params.iter().find(|param| param.name == name) else {
            params.push(Param {
                default,
                ..Param::new(name, ValueKind::Text)
            });
            return Ok(());
        };
        match param.kind {
            ValueKind::Text if !param.is_list => Ok(()),
            _ => Err(at(
                file,
                line,
                name,
                format!("parameter `{name}` is not declared as text"),
            )
            .hint(format!("declare it: -- param: {name} text"))),
        }
    };
    if let Some(verify) = &lines.verify {
        add(&verify.password, None, &verify.line)?;
    }
    for hash in &lines.hashes {
        add(&hash.password, None, &hash.line)?;
    }
    match &lines.next {
        Some((name, line)) if !is_column(name) => add(name, Some("".into()), line),
        _ => Ok(()),
    }
}

/// Compiles the actions of a form on passwords and the session, with the places of all values that
/// it uses.
pub(super) fn signing(
    file: &Path,
    lines: &SessionLines,
    prepared: &PreparedStatements<'_>,
    (params, needs): (&[Param], &SessionRequirements),
    verified: Option<usize>,
) -> Result<Signing, Problem> {
    let place = |name: &str| params.iter().position(|param| param.name == name);
    let one = |name: &str| place(name).filter(|at| !params[*at].is_list);
    let password = |name: &str| place(name).expect("every parameter was gathered");
    let verify = |(verify, step): (&VerifyLine, usize)| {
        Ok(Verify {
            step,
            column: verify.column.clone(),
            password: password(&verify.password),
            otherwise: otherwise(file, verify, params)?,
        })
    };
    let claims = lines.claims.iter().map(|claim| {
        let source = match &claim.from {
            From::Param(name) => one(name).map(ArgumentSource::Param).ok_or_else(|| {
                let known = params.iter().map(|param| param.name.as_str());
                let message = format!("the form has no parameter `:{name}` with one value");
                let problem = at(file, &claim.line, name, message);
                unknown(
                    problem,
                    name,
                    known,
                    &format!("declare it: -- param: {name} text"),
                )
            })?,
            From::Column { query, column } => claim_column(file, claim, (query, column), prepared)?,
            From::Claim(_) => {
                let place = kept_claim(claim).map(|used| needs.clone().place_of(used));
                ArgumentSource::Param(params.len() + place.unwrap_or_default())
            }
        };
        Ok((claim.name.clone(), source))
    });
    Ok(Signing {
        lookups: lines.verify.as_ref().map_or(0, |verify| verify.after),
        verify: lines
            .verify
            .as_ref()
            .zip(verified)
            .map(verify)
            .transpose()?,
        hashes: lines
            .hashes
            .iter()
            .map(|hash| password(&hash.password))
            .collect(),
        claims: claims.collect::<Result<_, Problem>>()?,
        is_logout: lines.logout.is_some(),
        next: None,
    })
}

/// Compiles the address for a visitor whose password is wrong. Only the values of the form are
/// there.
fn otherwise(
    file: &Path,
    verify: &VerifyLine,
    params: &[Param],
) -> Result<Option<Vec<RedirectPiece>>, Problem> {
    let Some(path) = &verify.otherwise else {
        return Ok(None);
    };
    let place = |name: &str| params.iter().position(|param| param.name == name);
    let pieces = redirect(path, |name| place(name).map(ArgumentSource::Param));
    pieces.map(Some).map_err(|name| {
        let message = format!("after `else` stands `:{name}`, which is no parameter of the form");
        let problem = at(file, &verify.line, &name, message);
        let known = params.iter().map(|param| param.name.as_str());
        let hint = format!("declare it: -- param: {name} text = ''");
        unknown(problem, &name, known, &hint)
    })
}

/// The parameters that are passwords.
pub(super) fn passwords(lines: &SessionLines) -> impl Iterator<Item = &str> {
    let hashes = lines.hashes.iter().map(|hash| hash.password.as_str());
    let verified = lines.verify.as_ref();
    hashes.chain(verified.map(|verify| verify.password.as_str()))
}

/// The line that gives a claim the value of a name.
pub(super) fn claim_of_param<'l>(lines: &'l SessionLines, name: &str) -> Option<&'l DirectiveLine> {
    let mut claims = lines.claims.iter();
    let claim = claims.find(|claim| matches!(&claim.from, From::Param(of) if of == name))?;
    Some(&claim.line)
}

/// Refuses values that must not stand in an address that a visitor is redirected to.
pub(super) fn check_target(
    file: &Path,
    lines: &SessionLines,
    params: &[Param],
    target: &str,
    line: usize,
) -> Result<(), Problem> {
    for name in names(target) {
        let is_list = params
            .iter()
            .any(|param| param.is_list && param.name == name);
        let (message, hint) = if passwords(lines).any(|password| password == name) {
            (
                format!("the password `:{name}` would stand in an address"),
                "addresses are kept in histories and logs; leave it out",
            )
        } else if is_list {
            (
                format!("`:{name}` is a list, and an address takes one value"),
                "redirect to a page that finds the values in the database",
            )
        } else {
            continue;
        };
        return Err(Problem::new(file, message).at(line, 1).hint(hint));
    }
    Ok(())
}

fn claim_column(
    file: &Path,
    claim: &ClaimLine,
    (query, column): (&str, &str),
    prepared: &PreparedStatements<'_>,
) -> Result<ArgumentSource, Problem> {
    let step = step_of(file, query, &claim.line, prepared)?;
    let (named, found) = &prepared[step];
    if !matches!(named.rows, Rows::One | Rows::Optional) {
        return Err(at(
            file,
            &claim.line,
            query,
            format!("query `{query}` does not give one row"),
        )
        .hint("a claim comes from a query that is :one or :one?"));
    }
    column_of(file, column, &claim.line, named, found)?;
    Ok(ArgumentSource::Column {
        step,
        column: column.to_owned(),
    })
}

fn step_of(
    file: &Path,
    name: &str,
    line: &DirectiveLine,
    prepared: &PreparedStatements<'_>,
) -> Result<usize, Problem> {
    let found = prepared.iter().position(|(named, _)| named.name == name);
    found.ok_or_else(|| {
        let known = prepared.iter().map(|(named, _)| named.name.as_str());
        let problem = at(file, line, name, format!("there is no query `{name}` here"));
        unknown(
            problem,
            name,
            known,
            "name a query of this file; one that is verified stands above",
        )
    })
}

fn column_of(
    file: &Path,
    name: &str,
    line: &DirectiveLine,
    named: &NamedQuery,
    query: &db::Query,
) -> Result<(), Problem> {
    let columns = query.columns();
    if columns.iter().any(|column| **column == *name) {
        return Ok(());
    }
    let message = format!("query `{}` has no column `{name}`", named.name);
    let known = columns.iter().map(|column| &**column);
    let problem = at(file, line, name, message);
    Err(unknown(problem, name, known, "select it there"))
}

/// A problem with the name that was probably meant, or else with `hint`.
fn unknown<'k>(
    problem: Problem,
    name: &str,
    known: impl Iterator<Item = &'k str>,
    hint: &str,
) -> Problem {
    match closest(name, known) {
        Some(near) => problem.hint(format!("did you mean `{near}`?")),
        None => problem.hint(hint),
    }
}

fn at(file: &Path, line: &DirectiveLine, word: &str, message: String) -> Problem {
    let (line, column) = line.place(word);
    Problem::new(file, message).at(line, column)
}
