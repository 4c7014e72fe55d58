//! A page of bytes: its `-- bytes:` line against its queries.

use std::path::Path;

use millpond_db as db;

use super::statements::Chosen;
use crate::page::bytes::{ByteSource, PageBytes, TextOrColumn};
use millpond_site_format::{
    Problem,
    script::{BytesLine, ColumnName, NamedQuery, Rows, Script, TextSource},
    suggest::closest,
};

/// Compiles the bytes that a page answers with, if it has such a line; adds faults to `problems`.
pub(super) fn page_bytes(
    file: &Path,
    script: &Script,
    prepared: &[(&NamedQuery, Vec<(Chosen, db::Query)>)],
    has_template: bool,
    problems: &mut Vec<Problem>,
) -> Option<PageBytes> {
    let written = script.bytes.as_ref()?;
    if has_template {
        let problem = Problem::new(file, "a page of bytes has no template");
        let hint = "remove the .html file of this page, or give the bytes a page of their own";
        problems.push(problem.at(written.line.number, 1).hint(hint));
        return None;
    }
    // What is wrong with a query has been said.
    if prepared.len() != script.queries.len() {
        return None;
    }
    let compiler = Compiler {
        file,
        written,
        prepared,
    };
    match compiler.compile() {
        Ok(bytes) => Some(bytes),
        Err(problem) => {
            problems.push(problem);
            None
        }
    }
}

struct Compiler<'s> {
    file: &'s Path,
    written: &'s BytesLine,
    prepared: &'s [(&'s NamedQuery, Vec<(Chosen, db::Query)>)],
}

impl Compiler<'_> {
    fn compile(&self) -> Result<PageBytes, Problem> {
        let text = |source: &Option<TextSource>| match source {
            None => Ok(None),
            Some(TextSource::Text(text)) => Ok(Some(TextOrColumn::Text(text.clone()))),
            Some(TextSource::Column(name)) => self
                .source(name)
                .map(|source| Some(TextOrColumn::Column(source))),
        };
        Ok(PageBytes {
            content: self.source(&self.written.content)?,
            media_type: text(&self.written.media_type)?,
            name: text(&self.written.name)?,
            is_attachment: self.written.is_attachment,
        })
    }

    /// The query and the column of a name.
    fn source(&self, name: &ColumnName) -> Result<ByteSource, Problem> {
        let found = self
            .prepared
            .iter()
            .position(|(named, _)| named.name == name.query);
        let Some(query) = found else {
            let known = self.prepared.iter().map(|(named, _)| named.name.as_str());
            let message = format!("there is no query `{}`", name.query);
            return Err(self.fault(&name.query, message, &known.collect::<Vec<_>>()));
        };
        let (named, statements) = &self.prepared[query];
        if !matches!(named.rows, Rows::One | Rows::Optional) {
            let message = format!(
                "`{}` gives many rows, but a page has the bytes of one",
                name.query
            );
            let problem = self.fault(&name.query, message, &[]);
            return Err(problem.hint(format!("write: -- name: {} :one", name.query)));
        }
        let columns = statements[0].1.columns();
        if !columns.iter().any(|column| **column == *name.column) {
            let message = format!("`{}` has no column `{}`", name.query, name.column);
            let known = columns.iter().map(|column| &**column);
            return Err(self.fault(&name.column, message, &known.collect::<Vec<_>>()));
        }
        Ok(ByteSource {
            query,
            column: name.column.clone(),
        })
    }

    fn fault(&self, word: &str, message: String, known: &[&str]) -> Problem {
        let (line, column) = self.written.line.place(word);
        let problem = Problem::new(self.file, message).at(line, column);
        match closest(word, known.iter().copied()) {
            Some(near) => problem.hint(format!("did you mean `{near}`?")),
            None if known.is_empty() => problem,
            None => problem.hint(format!("there is `{}`", known.join("`, `"))),
        }
    }
}
