//! `millpond check`: what is wrong with a site, what in it never answers, and what each of its queries depends on.

use std::path::PathBuf;

use clap::Args;
use millpond_db::Requirement;
use millpond_report::{Column, Table, text_table};
use millpond_site::{QueryReport, Report};

use super::database_option::DatabaseOption;
use crate::failure::Outcome;
use crate::output::{note, say};

/// Read a whole site and say what is wrong with it, or what each query depends on
#[derive(Args)]
pub(crate) struct Check {
    /// The site's folder
    #[arg(default_value = ".")]
    site: PathBuf,
    #[command(flatten)]
    database: DatabaseOption,
}

impl Check {
    pub(crate) fn run(self) -> Outcome {
        let config = self.database.read(&self.site)?;
        let Report {
            queries,
            notes,
            requirements,
        } = millpond_site::check(&self.site, &config)?;
        for found in &notes {
            note(format_args!("note: {found}"));
        }
        for lacking in &requirements {
            tell_lacking(lacking);
        }
        if !queries.is_empty() {
            say(text_table(&table(&queries)));
        }
        note(format_args!(
            "{}: {}, {} queries",
            self.site.display(),
            match notes.len() + requirements.len() {
                0 => "all is well".to_owned(),
                1 => "nothing is wrong, 1 note".to_owned(),
                more => format!("nothing is wrong, {more} notes"),
            },
            queries.len()
        ));
        Ok(())
    }
}

/// What the database lacks, why that matters, and the statement that mends it.
fn tell_lacking(lacking: &Requirement) {
    note(format_args!(
        "note: {}: {}",
        lacking.missing, lacking.reason
    ));
    if let Some(statement) = &lacking.statement {
        let then = if lacking.restart {
            ", then start the server anew"
        } else {
            ""
        };
        note(format_args!("  hint: {statement};{then}"));
    }
}

fn table(queries: &[QueryReport]) -> Table {
    let row = |query: &QueryReport| {
        vec![
            query.file.display().to_string(),
            query.name.clone(),
            match query.dependencies.is_empty() {
                true => "nothing: it never changes".to_owned(),
                false => query.dependencies.join(", "),
            },
        ]
    };
    Table {
        columns: vec![
            Column::text("file"),
            Column::text("query"),
            Column::text("depends on"),
        ],
        rows: queries.iter().map(row).collect(),
        ..Table::default()
    }
}
