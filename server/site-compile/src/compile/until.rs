//! `-- until:` lines against the queries of their page.

use std::sync::Arc;

use millpond_db as db;

use super::{parameters::SqlFile, statements::Prepared, uploads::place};
use crate::page::end::Until;
use millpond_site_format::{
    Problem,
    script::{NamedQuery, Script},
};

/// The moments at which a page ends by itself.
///
/// # Errors
/// A line that names no column of the page's own queries.
pub(super) fn until(
    source: SqlFile<'_>,
    prepared: &[Prepared<'_>],
) -> Result<Box<[Until]>, Problem> {
    let queries = prepared.iter();
    let queries: Vec<(&NamedQuery, db::Query)> = queries
        .filter_map(|(named, all)| Some((*named, all.first()?.1.clone())))
        .collect();
    let lines = source.script.until.iter();
    let ends = lines.map(|line| {
        let (query, column) = place(&line.column, &queries).map_err(|(message, hint)| {
            let (number, column) = line.line.place(&line.column.query);
            let problem = Problem::new(source.file, message).at(number, column);
            problem.hint(hint)
        })?;
        Ok(Until {
            query,
            column,
            shift: line.shift,
            zone: source.script.zone,
        })
    });
    ends.collect()
}

/// The lines as they are written, for people; none without one.
pub(super) fn shown(script: &Script) -> Option<Arc<str>> {
    let lines = script.until.iter().map(|line| &line.line);
    let mut texts: Vec<&str> = lines
        .filter_map(|line| Some(line.text.split_once("until:")?.1.trim()))
        .collect();
    texts.dedup();
    (!texts.is_empty()).then(|| texts.join(", ").into())
}
