//! Tables of PostgreSQL whose old values the log does not have, so that a change of one row ends
//! the pages of others: what `millpond check` says, and what `--fix` offers.

use millpond_db::{Advice, Requirement};
use millpond_site::{CheckReport, Config, QueryReport};

use super::{CheckArgs, counted, is_agreed};
use crate::{
    failure::{CommandFailure, CommandResult},
    output::note,
};

/// The statements that would have the log report old values, and the queries that they help.
#[derive(Default)]
pub(super) struct OldValues {
    statements: Vec<String>,
    queries: usize,
}

/// The statement of an advice, if it is such a one.
pub(super) fn statement(advice: &Advice) -> Option<&str> {
    advice.remedy.as_ref()?.statement.as_deref()
}

impl OldValues {
    pub(super) fn of(queries: &[QueryReport]) -> Self {
        let mut all = Self::default();
        for query in queries {
            let mut is_helped = false;
            for statement in query.advice.iter().filter_map(statement) {
                is_helped = true;
                if !all.statements.iter().any(|known| known == statement) {
                    all.statements.push(statement.to_owned());
                }
            }
            all.queries += usize::from(is_helped);
        }
        all
    }
}

impl CheckArgs {
    /// Says it once for all tables.
    pub(super) fn print_old_values(&self, all: &OldValues) {
        if all.statements.is_empty() {
            return;
        }
        let ends = if all.queries == 1 { "ends" } else { "end" };
        let queries = match all.queries {
            1 => "1 query".to_owned(),
            more => format!("{more} queries"),
        };
        let label = if self.fix { "fix" } else { "hint" };
        note(format_args!(
            "note: {queries} {ends} at each update of another row too, as PostgreSQL does not report old values; \
             with this each update and deletion writes the whole old row to the log\n  {label}: {};",
            all.statements.join("; ")
        ));
    }

    /// Runs the statements once the owner agrees to the larger log. True if they were run.
    pub(super) fn report_old_values(
        &self,
        config: &Config,
        report: &CheckReport,
        all: &OldValues,
    ) -> CommandResult<bool> {
        let count = all.statements.len();
        if count == 0 {
            return Ok(false);
        }
        if !report.pending.is_empty() {
            return Err(CommandFailure::new(format!(
                "nothing is mended before the migrations are applied: {}",
                report.pending.join(", ")
            ))
            .hint("start the site once, as \"millpond serve\" applies them; then run this again"));
        }
        note(format_args!(
            "{} for old values: the log grows with each update and deletion",
            counted(count, "statement")
        ));
        if !(self.yes || is_agreed(count)?) {
            return Ok(false);
        }
        let wanted = all.statements.iter().map(|statement| Requirement {
            missing: "old values in the log".to_owned(),
            reason: "pages of other rows end".to_owned(),
            statement: Some(statement.clone()),
            may_fix: true,
            restart: false,
        });
        let wanted: Vec<Requirement> = wanted.collect();
        millpond_site::repair(&self.site, config, &wanted, |done| {
            note(format_args!(
                "done: {};",
                done.statement.as_deref().unwrap_or_default()
            ));
        })?;
        Ok(true)
    }
}
