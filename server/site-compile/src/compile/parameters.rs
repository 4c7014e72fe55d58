//! The parameters of a page or a form: which there are, and which are probably misspelt.

use std::{collections::BTreeSet, path::Path};

use millpond_db::{
    self as db, ValueKind,
    sql::{Dialect, Lexer, Token},
};

use super::lists;
use millpond_site_format::{
    Problem,
    access::RESERVED,
    params::Param,
    route::Pattern,
    script::{Declaration, NamedQuery, Script},
    suggest::closest,
    today::TODAY,
};

/// The file that is compiled.
#[derive(Clone, Copy)]
pub(super) struct SqlFile<'s> {
    pub(super) file: &'s Path,
    pub(super) text: &'s str,
    pub(super) pattern: &'s Pattern,
    pub(super) script: &'s Script,
    pub(super) dialect: Dialect,
}

impl SqlFile<'_> {
    pub(super) fn declared(&self, name: &str) -> Option<&Declaration> {
        self.script.params.iter().find(|param| param.name == name)
    }

    pub(super) fn in_path(&self, name: &str) -> Option<usize> {
        self.pattern.params().position(|part| part == name)
    }

    pub(super) fn at_query(&self, named: &NamedQuery, name: &str, message: String) -> Problem {
        let problem = Problem::new(self.file, message);
        let mut found = Lexer::new(&named.sql, self.dialect);
        match found.find(|token| token.parameter() == Some(name)) {
            Some(Token { start: at, .. }) => problem.at_offset(self.text, named.offset + at),
            None => problem.at(named.line, 1),
        }
    }
}

/// Every parameter that the queries use, with the types from `-- param:` lines or from the
/// database. The parameters in `given` come from elsewhere.
pub(super) fn parameters(
    source: SqlFile<'_>,
    queries: &[(&NamedQuery, db::Query)],
    given: &BTreeSet<(usize, String)>,
) -> Result<Vec<Param>, Problem> {
    let mut params: Vec<Param> = Vec::new();
    for declared in &source.script.params {
        let in_path = source.in_path(&declared.name);
        if in_path.is_some() {
            fits_path(source, declared)?;
        }
        params.push(Param {
            name: declared.name.clone(),
            kind: declared.kind,
            is_list: declared.is_list,
            choices: declared.choices.clone().into(),
            rules: declared.rules.clone().some(),
            default: declared.default.clone(),
            in_path,
            today: None,
        });
    }
    for (at, (named, query)) in queries.iter().enumerate() {
        for param in query.params().iter() {
            if given.contains(&(at, param.name.clone())) || param.name.starts_with(RESERVED) {
                continue;
            }
            match source.declared(&param.name) {
                Some(declared) => takes_list(source, declared, named, param)?,
                None if params.iter().any(|known| known.name == param.name) => {}
                None if is_today(source, &param.name) => params.push(today(source, named, param)?),
                None => {
                    let param = known_elsewhere(param, queries);
                    params.push(Param {
                        in_path: source.in_path(&param.name),
                        ..Param::new(&param.name, kind(source, named, &param)?)
                    });
                }
            }
        }
    }
    // A parameter in the path is part of the page's key, and the template can show it even if no
    // query uses it.
    for (at, name) in source.pattern.params().enumerate() {
        if !params.iter().any(|param| param.name == name) {
            params.push(Param {
                in_path: Some(at),
                ..Param::new(name, ValueKind::Text)
            });
        }
    }
    Ok(params)
}

/// True if the server gives the parameter: the date.
pub(super) fn is_today(source: SqlFile<'_>, name: &str) -> bool {
    name == TODAY && source.declared(name).is_none() && source.in_path(name).is_none()
}

/// The date that the server gives to a query.
pub(super) fn today(
    source: SqlFile<'_>,
    named: &NamedQuery,
    wanted: &db::Param,
) -> Result<Param, Problem> {
    millpond_site_format::params::of_today(wanted, source.script.zone).ok_or_else(|| {
        let message = "`:today` is a date, and something else is expected here".to_owned();
        let hint = "compare it with a column of dates; or declare it, if the visitor sends it: -- param: today integer";
        source.at_query(named, TODAY, message).hint(hint)
    })
}

/// The parameter with the type that the first query gives it from which the database knows it.
fn known_elsewhere(param: &db::Param, queries: &[(&NamedQuery, db::Query)]) -> db::Param {
    let named = queries.iter().flat_map(|(_, query)| {
        let params = query.params();
        let named = params.iter().find(|other| other.name == param.name);
        named.and_then(|other| other.kind)
    });
    db::Param {
        name: param.name.clone(),
        kind: param.kind.or_else(|| named.into_iter().next()),
    }
}

/// The type of a parameter that no line declares.
fn kind(source: SqlFile<'_>, named: &NamedQuery, param: &db::Param) -> Result<ValueKind, Problem> {
    let name = &param.name;
    match param.kind {
        Some(ValueKind::Blob) => {
            let message = format!(
                "parameter `{name}` of query `{}` would be bytes, which no text field can give",
                named.name
            );
            let hint = format!(
                "a form takes a file: -- file: {name} as bytes; else declare another type: -- param: {name} text"
            );
            Err(source.at_query(named, name, message).hint(hint))
        }
        Some(kind) => Ok(kind),
        // A path's part is text by nature; elsewhere a guess would surprise.
        None if source.in_path(name).is_some() => Ok(ValueKind::Text),
        None => {
            let message = format!(
                "the database does not tell the type of parameter `{name}` in query `{}`",
                named.name
            );
            let hint = if orders_by(source, named, name) {
                format!(
                    "if it chooses an order: -- order: {name}: title = \"title, id\", -title = \"title desc, id\""
                )
            } else {
                format!("declare it: -- param: {name} integer")
            };
            Err(source.at_query(named, name, message).hint(hint))
        }
    }
}

/// True if a parameter stands behind `order by`.
fn orders_by(source: SqlFile<'_>, named: &NamedQuery, name: &str) -> bool {
    let tokens = Lexer::new(&named.sql, source.dialect).significant();
    tokens.windows(3).any(|three| {
        let is_order = three[0].is_word("order") && three[1].is_word("by");
        is_order && three[2].parameter() == Some(name)
    })
}

/// A part of the path is one value that is always there.
pub(super) fn fits_path(source: SqlFile<'_>, declared: &Declaration) -> Result<(), Problem> {
    let name = &declared.name;
    let (message, hint) = if source.script.orders.iter().any(|order| order.name == *name) {
        (
            "an order is not chosen by a part of the path",
            "give it a name of its own",
        )
    } else if declared.is_list {
        (
            "a part of the path is one value and no list",
            "remove the `[]`",
        )
    } else if declared.default.is_some() {
        (
            "a part of the path is always there, so it needs no default",
            "remove the default",
        )
    } else {
        return Ok(());
    };
    let message = format!("`{name}`: {message}");
    Err(Problem::new(source.file, message)
        .at(declared.line, 1)
        .hint(hint))
}

/// A list does not stand where the database takes one value.
fn takes_list(
    source: SqlFile<'_>,
    declared: &Declaration,
    named: &NamedQuery,
    param: &db::Param,
) -> Result<(), Problem> {
    lists::not_as_json(source, declared, named, param)?;
    if !declared.is_list || matches!(param.kind, None | Some(ValueKind::Other)) {
        return Ok(());
    }
    let name = &param.name;
    let message = format!("`:{name}` is a list, and here stands one value");
    let hint = format!("write `in (:{name})`");
    Err(source.at_query(named, name, message).hint(hint))
}

/// Parameters of queries that are probably misspelt: no line declares them, and they are like one
/// that is known.
pub(super) fn misspelt(
    source: SqlFile<'_>,
    queries: &[(&NamedQuery, db::Query)],
    given: &BTreeSet<(usize, String)>,
    others: &[&str],
) -> Vec<Problem> {
    let declared = source.script.params.iter().map(|param| param.name.as_str());
    let known: Vec<&str> = declared
        .chain(source.pattern.params())
        .chain(others.iter().copied())
        .collect();
    let mut reported = BTreeSet::new();
    let mut problems = Vec::new();
    for (at, (named, query)) in queries.iter().enumerate() {
        for param in query.params().iter() {
            let name = param.name.as_str();
            let is_known = known.contains(&name)
                || name.starts_with(RESERVED)
                || given.contains(&(at, name.to_owned()));
            let near = known.iter().find(|known| !is_known && is_like(name, known));
            if let Some(near) = near
                && reported.insert((named.line, name.to_owned()))
            {
                let message = format!("no line declares the parameter `:{name}`");
                let hint =
                    format!("did you mean `:{near}`? If not, declare it: -- param: {name} text");
                problems.push(source.at_query(named, name, message).hint(hint));
            }
        }
    }
    problems
}

/// True if one name is probably the other with a letter too many, too few, or wrong. `track` and
/// `tracks`, or `from_1` and `from_2`, are two names.
fn is_like(one: &str, other: &str) -> bool {
    let plural = |one: &str, other: &str| one.strip_suffix('s') == Some(other);
    let bare = |name: &str| name.replace(|c: char| c.is_ascii_digit(), "");
    if plural(one, other) || plural(other, one) || bare(one) == bare(other) {
        return false;
    }
    let least = if one.len() == other.len() { 4 } else { 2 };
    // `:uid` beside `:id` is a name of its own.
    let is_longer = one.len() < other.len() || other.len() >= 4 || one.starts_with(other);
    is_longer && one.len().min(other.len()) >= least && strsim::osa_distance(one, other) == 1
}

/// Declared parameters that nothing uses: an address without one of them would be refused for
/// nothing.
pub(super) fn unused(
    source: SqlFile<'_>,
    queries: &[(&NamedQuery, db::Query)],
    is_used: impl Fn(&str) -> bool,
) -> Vec<Problem> {
    let script = source.script;
    let in_orders = |name: &str| {
        let is_order = script.orders.iter().any(|order| order.name == name);
        is_order
            && script.queries.iter().any(|query| {
                let mut tokens = Lexer::new(&query.sql, source.dialect);
                tokens.any(|token| token.parameter() == Some(name))
            })
    };
    let in_queries: BTreeSet<String> = queries
        .iter()
        .flat_map(|(_, query)| {
            query
                .params()
                .iter()
                .map(|param| param.name.clone())
                .collect::<Vec<_>>()
        })
        .collect();
    let unused = script.params.iter().filter(|declared| {
        let name = declared.name.as_str();
        let used = in_queries.contains(name) || in_orders(name) || is_used(name);
        !used && source.in_path(name).is_none()
    });
    let undeclared: Vec<&str> = in_queries
        .iter()
        .map(String::as_str)
        .filter(|name| source.declared(name).is_none() && !name.starts_with(RESERVED))
        .collect();
    unused
        .map(|declared| {
            let name = &declared.name;
            let message = format!("nothing uses the parameter `{name}`");
            let hint = match closest(name, undeclared.iter().copied()) {
                Some(near) => format!("did you mean `{near}`, which a query asks for?"),
                None => format!("remove the line, or write `:{name}` into a query"),
            };
            Problem::new(source.file, message)
                .at(declared.line, 1)
                .hint(hint)
        })
        .collect()
}

/// True if a template may look at a parameter: at its name, or at all parameters at once.
pub(super) fn may_read(template: &str, name: &str) -> bool {
    const ALL: &str = "params";
    let is_part = |c: char| c.is_alphanumeric() || c == '_';
    template.match_indices(ALL).any(|(at, _)| {
        let after = &template[at + ALL.len()..];
        if template[..at].ends_with(is_part) || after.starts_with(is_part) {
            return false;
        }
        let Some(member) = after.strip_prefix('.') else {
            return true;
        };
        let end = member.find(|c| !is_part(c)).unwrap_or(member.len());
        &member[..end] == name || member[end..].trim_start().starts_with('(')
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_with_a_wrong_letter_are_alike() {
        for (one, other) in [
            ("idd", "id"),
            ("titel", "title"),
            ("autor", "author"),
            ("slgu", "slug"),
        ] {
            assert!(is_like(one, other) && is_like(other, one), "{one} {other}");
        }
        for (one, other) in [
            ("id", "id"),
            ("ids", "id"),
            ("min", "max"),
            ("at", "as"),
            ("a", "ab"),
            ("from_1", "from_2"),
            ("day1", "day"),
            ("title", "body"),
        ] {
            assert!(
                !is_like(one, other) && !is_like(other, one),
                "{one} {other}"
            );
        }
    }

    #[test]
    fn a_template_reads_by_name_or_all_at_once() {
        for source in [
            "{{ params.q }}",
            "{% for x in params %}",
            "{{ params['q'] }}",
            "{{ params.items() }}",
        ] {
            assert!(may_read(source, "q"), "{source}");
        }
        for source in ["{{ params.query }}", "{{ my_params.q }}", "{{ q }}", ""] {
            assert!(!may_read(source, "q"), "{source}");
        }
    }
}
