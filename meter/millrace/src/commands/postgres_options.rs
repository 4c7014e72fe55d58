//! The option that watches a PostgreSQL server during a run.

use clap::Args;
use millrace_report::{postgres_tables, text_table};
use millrace_runs::Run;

use super::headings::BESIDE;

/// The database behind the measured server.
#[derive(Args)]
#[command(next_help_heading = BESIDE)]
pub(crate) struct PostgresOptions {
    /// Watch this PostgreSQL server: postgres://user@host/db, password in PGPASSWORD
    #[arg(long, value_name = "URL")]
    pg: Option<String>,
}

impl PostgresOptions {
    /// The server to watch.
    pub(crate) fn url(&self) -> Option<String> {
        self.pg.clone()
    }

    /// Adds what was seen of it to the text of a run.
    pub(crate) fn tell(&self, run: &Run, text: &mut String) {
        for table in run.postgres.iter().flat_map(|seen| postgres_tables(seen)) {
            text.push('\n');
            text.push_str(&text_table(&table));
        }
    }
}
