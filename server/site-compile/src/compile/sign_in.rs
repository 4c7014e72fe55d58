//! Where a visitor without a session is led: the path behind `else` of a `-- require:` line. Parts
//! of the page's own path may be filled in, as nothing else of the request is known to be good when
//! a visitor is turned away.

use std::path::Path;

use millpond_db::Value;

use super::redirect::{names, redirect};
use crate::page::redirect_target::{ArgumentSource, RedirectPiece, target};
use millpond_site_format::{
    Problem, access::SessionLines, route::Pattern, rules::local, suggest::closest,
};

/// Checks the paths of a file at `pattern`.
///
/// # Errors
/// A name that is no part of the path.
pub(super) fn check(file: &Path, lines: &SessionLines, pattern: &Pattern) -> Result<(), Problem> {
    let required = lines.require.iter().zip(&lines.require_lines);
    let required = required.map(|(require, line)| (&require.otherwise, line));
    let guards = lines.guards.iter();
    let guards = guards.map(|guard| (&guard.otherwise, &guard.line));
    for (path, line) in required.chain(guards) {
        let path = path.as_deref().unwrap_or_default();
        let is_unknown = |name: &&str| !pattern.params().any(|part| part == *name);
        let Some(name) = names(path).find(is_unknown) else {
            continue;
        };
        let (line, column) = line.place(name);
        let message =
            format!("after `else` stands `:{name}`, which is no part of this file's path");
        let hint = match closest(name, pattern.params()) {
            Some(near) => format!("did you mean `:{near}`?"),
            None => "the wanted address is added as `next=` by itself".to_owned(),
        };
        return Err(Problem::new(file, message).at(line, column).hint(hint));
    }
    Ok(())
}

/// The pieces of a path behind `else`; each value is that of a part of the path at `pattern`.
pub fn pieces(path: &str, pattern: &Pattern) -> Vec<RedirectPiece> {
    let place = |name: &str| pattern.params().position(|part| part == name);
    redirect(path, |name| place(name).map(ArgumentSource::Param))
        .unwrap_or_else(|_| vec![RedirectPiece::Text(path.to_owned())])
}

/// The path, with the parts of the path that is asked for.
pub fn filled(path: &str, pattern: &Pattern, values: &[&str]) -> String {
    let values: Vec<Value> = values.iter().map(|value| Value::from(*value)).collect();
    local(&target(&pieces(path, pattern), &values, &[]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_of_the_path_are_filled_in_and_stay_parts() {
        let pattern = Pattern::parse(Path::new("x"), "[lang]/plays/[id]").unwrap();
        for (path, values, expected) in [
            ("/login", ["de", "7"], "/login"),
            ("/:lang/login?play=:id", ["de", "7"], "/de/login?play=7"),
            ("/:lang/login", ["a/b?c", "7"], "/a%2Fb%3Fc/login"),
            ("/x/:lang/login", ["..", "7"], "/x//login"),
            ("/:lang/example.org", ["..", "7"], "/example.org"),
            ("/at/12:30/:id", ["de", "7"], "/at/12:30/7"),
        ] {
            assert_eq!(filled(path, &pattern, &values), expected, "{path}");
        }
    }
}
