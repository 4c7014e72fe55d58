//! `-- require: member else /teams`: a query of the file says who may enter.

use super::{
    condition::word,
    lines::{DirectiveLine, LineFault, own_path},
};
use crate::parameter_names::is_name;

/// A `-- require:` line that names a query: without its row the visitor may not enter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GuardLine {
    pub query: String,
    /// The path of this site where a visitor is led who may not enter.
    pub otherwise: Option<String>,
    pub line: DirectiveLine,
}

/// Reads what stands behind `-- require:`; none if it is no name of a query.
pub(super) fn guard(rest: &str, line: &DirectiveLine) -> Result<Option<GuardLine>, LineFault> {
    let (query, rest) = word(rest.trim());
    let otherwise = match word(rest.trim_start()) {
        ("", "") => None,
        ("else", path) => Some(path),
        _ => return Ok(None),
    };
    if !is_name(query) || query == "claims" {
        return Ok(None);
    }
    Ok(Some(GuardLine {
        query: query.to_owned(),
        otherwise: otherwise.map(own_path).transpose()?,
        line: line.clone(),
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_alone_is_a_query() {
        let read = |rest| guard(rest, &DirectiveLine::default());
        let found = |rest| {
            let line = read(rest).unwrap()?;
            Some((line.query, line.otherwise))
        };
        let line =
            |query: &str, path: Option<&str>| Some((query.to_owned(), path.map(str::to_owned)));
        assert_eq!(found("member"), line("member", None));
        assert_eq!(
            found("member else /:lang/teams"),
            line("member", Some("/:lang/teams"))
        );
        for other in [
            "",
            "claims.user",
            "claims.user else /login",
            "role = 'editor'",
            "role='editor'",
            "member and claims.user",
            "member elsewhere",
            "claims",
            "a-b",
        ] {
            assert_eq!(found(other), None, "{other}");
        }
        for bad in [
            "member else teams",
            "member else //x.example",
            "member else",
        ] {
            assert!(read(bad).is_err(), "{bad}");
        }
    }
}
