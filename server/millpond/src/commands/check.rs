//! `millpond check`: the faults of a site, the routes that never answer, and what ends each page.

use std::io::{self, BufRead as _, IsTerminal as _};
use std::path::{Path, PathBuf};

use base_chart::{Column, Table, text_table};
use clap::Args;
use millpond_db::{Advice, Requirement};
use millpond_site::{CheckReport, Config, QueryReport};

use super::database_option::DatabaseOption;
use crate::failure::{CommandFailure, CommandResult};
use crate::output::{note, say, write_out};
use crate::tls_check::{self, TlsFindings, trust_lines};

/// Read a whole site and say what is wrong with it, or what ends each page in memory
#[derive(Args)]
pub(crate) struct CheckArgs {
    /// The site's folder
    #[arg(default_value = ".")]
    site: PathBuf,
    #[command(flatten)]
    database: DatabaseOption,
    /// Run the statements that PostgreSQL needs so that it tells of changes, as far as the role
    /// may, after asking
    #[arg(long)]
    fix: bool,
    /// Answer yes to what --fix asks before it changes anything
    #[arg(long, requires = "fix")]
    yes: bool,
    /// Also show what each query depends on, and what would make that less
    #[arg(long)]
    dependencies: bool,
    /// Only show how browsers are made to trust the certificate for localhost
    #[arg(long, conflicts_with = "fix")]
    trust: bool,
}

impl CheckArgs {
    pub(crate) fn run(self) -> CommandResult {
        let config = self.database.read(&self.site)?;
        if self.trust {
            let lines = trust_lines(&self.site, &config)?;
            return write_out(&lines.join("\n"));
        }
        let TlsFindings {
            mut errors,
            warnings,
        } = tls_check::check(&self.site, &config);
        let warn = || {
            let warnings = warnings.iter();
            warnings.for_each(|warning| note(format_args!("warning: {warning}")));
        };
        let CheckReport {
            queries,
            notes,
            requirements,
            pending,
        } = millpond_site::check(&self.site, &config).inspect_err(|_| {
            warn();
            print_all(&errors);
        })?;
        if errors.is_empty() {
            let found = notes.len() + requirements.len() + warnings.len();
            note(verdict(&self.site, found, queries.len()));
        }
        warn();
        for found in &notes {
            note(format_args!("note: {found}"));
        }
        for lacking in &requirements {
            print_missing(lacking, self.fix);
        }
        if self.fix {
            self.repair(&config, &requirements, &pending)?;
        }
        if !queries.is_empty() {
            self.print_dependencies(&queries);
        }
        if let Some(last) = errors.pop() {
            print_all(&errors);
            return Err(last);
        }
        Ok(())
    }

    fn print_dependencies(&self, queries: &[QueryReport]) {
        print_pages(queries);
        if self.dependencies {
            say(text_table(&table(queries)));
            print_advice(queries);
            return;
        }
        let advised = queries.iter().filter(|query| !query.advice.is_empty());
        match advised.count() {
            0 => {}
            1 => say("1 query could depend on less; --dependencies says how"),
            more => say(format_args!(
                "{more} queries could depend on less; --dependencies says how"
            )),
        }
    }
}

/// The result in one line: `found` are the notes.
fn verdict(site: &Path, found: usize, queries: usize) -> String {
    let found = match found {
        0 => "all is well".to_owned(),
        1 => "nothing is wrong, 1 note".to_owned(),
        more => format!("nothing is wrong, {more} notes"),
    };
    let queries = match queries {
        1 => "1 query".to_owned(),
        more => format!("{more} queries"),
    };
    format!("{}: {found}, {queries}", site.display())
}

impl CheckArgs {
    /// Runs what may be run once the owner agrees, and says so.
    fn repair(
        &self,
        config: &Config,
        requirements: &[Requirement],
        pending: &[String],
    ) -> CommandResult {
        if config.has_hosts() {
            return Err(CommandFailure::new(
                "--fix is for one site, and this folder names several",
            )
            .hint("run it on the folder of each site"));
        }
        if !pending.is_empty() && requirements.iter().any(|lacking| lacking.may_fix) {
            return Err(CommandFailure::new(format!(
                "nothing is mended before the migrations are applied: {}",
                pending.join(", ")
            ))
            .hint("start the site once, as \"millpond serve\" applies them; then run this again"));
        }
        let fixable = requirements.iter().filter(|lacking| lacking.may_fix);
        let count = fixable.count();
        if count == 0 || !(self.yes || is_agreed(count)?) {
            return Ok(());
        }
        millpond_site::repair(&self.site, config, requirements, |lacking| {
            let statement = lacking.statement.as_deref().unwrap_or_default();
            let then = restart(lacking);
            note(format_args!("done: {statement};{then}"));
        })?;
        Ok(())
    }
}

fn print_all(errors: &[CommandFailure]) {
    errors.iter().for_each(CommandFailure::print);
}

/// Asks whether to run the statements that are marked as repairs. Without a terminal the answer is
/// no.
fn is_agreed(count: usize) -> Result<bool, CommandFailure> {
    let (statements, change, them) = match count {
        1 => ("the statement".to_owned(), "changes", "it"),
        more => (format!("the {more} statements"), "change", "them"),
    };
    if !io::stdin().is_terminal() {
        return Err(CommandFailure::new(format!(
            "{statements} marked \"fix\" above {change} your database, and no terminal is there to ask you first"
        ))
        .hint("run this again with --yes"));
    }
    note(format_args!(
        "{statements} marked \"fix\" above {change} your database. Run {them}? [y/N]"
    ));
    let mut answer = String::new();
    let read = io::stdin().lock().read_line(&mut answer);
    Ok(read.is_ok() && matches!(answer.trim(), "y" | "Y" | "yes"))
}

/// Prints what the database lacks, why it is needed, and the statement that adds it. With `fix`,
/// also whether this command would run the statement.
fn print_missing(lacking: &Requirement, fix: bool) {
    note(format_args!(
        "note: {}: {}",
        lacking.missing, lacking.reason
    ));
    if let Some(statement) = &lacking.statement {
        let then = restart(lacking);
        let label = if fix && lacking.may_fix {
            "fix"
        } else {
            "hint"
        };
        note(format_args!("  {label}: {statement};{then}"));
    }
}

/// What is to be done after the statement.
fn restart(lacking: &Requirement) -> &'static str {
    if lacking.restart {
        " then start the server anew"
    } else {
        ""
    }
}

/// Prints how the queries could depend on less, and at what cost; equal advice is printed once with
/// all its queries.
fn print_advice(queries: &[QueryReport]) {
    let mut all: Vec<(&Advice, Vec<String>)> = Vec::new();
    for query in queries {
        let name = format!("{} {}", query.file.display(), query.name);
        for advice in &query.advice {
            match all.iter_mut().find(|(known, _)| *known == advice) {
                Some((_, names)) => names.push(name.clone()),
                None => all.push((advice, vec![name.clone()])),
            }
        }
    }
    for (advice, names) in all {
        say(format_args!("{}: {}", advice.effect, advice.cause));
        say(format_args!("  in: {}", names.join(", ")));
        if let Some(remedy) = &advice.remedy {
            say(format_args!("  remedy: {}", remedy.change));
            say(format_args!("  cost: {}", remedy.cost));
        }
    }
}

/// Prints what ends each page: one line for each file of queries.
fn print_pages(queries: &[QueryReport]) {
    let mut pages: Vec<(String, Vec<String>)> = vec![("page".into(), vec!["ends by".into()])];
    for query in queries {
        let file = query.file.display().to_string();
        let place = pages.iter().position(|(known, _)| *known == file);
        let place = place.unwrap_or_else(|| {
            pages.push((file, Vec::new()));
            pages.len() - 1
        });
        for text in &query.ends {
            if !pages[place].1.contains(text) {
                pages[place].1.push(text.clone());
            }
        }
    }
    let width = pages.iter().map(|(file, _)| file.chars().count()).max();
    let width = width.unwrap_or_default();
    for (file, ends) in pages {
        let ends = match ends.is_empty() {
            true => "nothing: it never changes".to_owned(),
            false => ends.join(", "),
        };
        say(format_args!("{file:width$}  {ends}"));
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
