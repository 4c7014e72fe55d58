//! `millpond check`: the faults of a site, the routes that never answer, and what ends each page.

mod old_values;
mod sqlite_shell;

use std::io::{self, BufRead as _, IsTerminal as _};
use std::path::{Path, PathBuf};

use base_chart::{Column, Table, text_table};
use clap::Args;
use millpond_db::{Advice, Requirement};
use millpond_site::{CheckReport, Config, QueryReport, ReachReport};

use self::old_values::OldValues;
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
    /// Write migrations for files in data/ that have no table or new columns; and run the
    /// statements that PostgreSQL needs so that it tells of changes, as far as the role may, after
    /// asking
    #[arg(long)]
    fix: bool,
    /// Answer yes to what --fix asks before it changes anything
    #[arg(long, requires = "fix")]
    yes: bool,
    /// Also show what each query depends on, and what would make that less
    #[arg(long)]
    dependencies: bool,
    /// Show the statements for the database in full, also long ones
    #[arg(long)]
    sql: bool,
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
            mut warnings,
        } = tls_check::check(&self.site, &config);
        warnings.extend(sqlite_shell::warning(&config));
        let warn = || {
            let warnings = warnings.iter();
            warnings.for_each(|warning| note(format_args!("warning: {warning}")));
        };
        if self.fix {
            self.write_migrations(&config)?;
        }
        let mut report = match millpond_site::check(&self.site, &config) {
            Ok(report) => report,
            Err(problems) => {
                errors.push(problems.into());
                note(refusal(&self.site, &errors, warnings.len()));
                warn();
                return fail(errors);
            }
        };
        if errors.is_empty() {
            note(verdict(&self.site, &report, warnings.len()));
        } else {
            note(refusal(&self.site, &errors, warnings.len()));
        }
        warn();
        for found in &report.notes {
            note(format_args!("note: {found}"));
        }
        print_reached(&report.reached);
        self.print_requirements(&report.requirements);
        let mut is_mended = self.fix && self.repair(&config, &report)?;
        if is_mended {
            // What is published now may lack old values, which nothing was said of before.
            report = millpond_site::check(&self.site, &config)?;
        }
        let old_values = OldValues::of(&report.queries);
        self.print_old_values(&old_values);
        if self.fix && self.report_old_values(&config, &report, &old_values)? {
            is_mended = true;
            report = millpond_site::check(&self.site, &config)?;
        }
        if is_mended {
            note(verdict(&self.site, &report, warnings.len()));
            self.print_requirements(&report.requirements);
        }
        if !report.queries.is_empty() {
            self.print_dependencies(&report.queries);
        }
        fail(errors)
    }

    /// Writes migrations for files of data that have no table or new columns: files to be read
    /// before they are applied. What keeps them from being found is reported by the check that
    /// follows.
    fn write_migrations(&self, config: &Config) -> CommandResult {
        let missing = millpond_site::missing_tables(&self.site, config).unwrap_or_default();
        for pin in &missing {
            note(format_args!("note: {}: {}", pin.source, pin.missing));
        }
        if missing.is_empty() {
            return Ok(());
        }
        for written in millpond_site::write_migrations(&self.site, &missing)? {
            note(format_args!(
                "written: {written}: read it and change what you like; it is applied when the site starts"
            ));
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
        let advised = queries.iter().filter(|query| {
            let mut advice = query.advice.iter();
            advice.any(|advice| old_values::statement(advice).is_none())
        });
        match advised.count() {
            0 => {}
            1 => say("1 query could depend on less; --dependencies says how"),
            more => say(format_args!(
                "{more} queries could depend on less; --dependencies says how"
            )),
        }
    }
}

/// Says what each `[[require]]` entry reaches.
fn print_reached(reached: &[ReachReport]) {
    for rule in reached {
        let mut all = rule.addresses.clone();
        all.extend((rule.files > 0).then(|| counted(rule.files, "file")));
        all.extend(rule.uploads.then(|| "uploads".to_owned()));
        if all.is_empty() {
            all.push("nothing".to_owned());
        }
        say(format_args!(
            "{}:{}: {} wants {} at {}",
            rule.file.display(),
            rule.line,
            rule.path,
            rule.claims,
            all.join(", ")
        ));
    }
}

/// The result in one line, if there are no errors.
fn verdict(site: &Path, report: &CheckReport, warnings: usize) -> String {
    let found = report.notes.len() + report.requirements.len() + warnings;
    let found = match found {
        0 => "all is well".to_owned(),
        more => format!("nothing is wrong, {}", counted(more, "note")),
    };
    let forms = match report.forms {
        0 => String::new(),
        more => format!("{}, ", counted(more, "form")),
    };
    format!(
        "{}: {found}, {}, {forms}{}",
        named(site),
        counted(report.pages, "page"),
        match report.queries.len() {
            1 => "1 query".to_owned(),
            more => format!("{more} queries"),
        }
    )
}

/// The result in one line, if there are errors.
fn refusal(site: &Path, errors: &[CommandFailure], warnings: usize) -> String {
    let errors = errors.iter().map(CommandFailure::count).sum();
    let warnings = match warnings {
        0 => String::new(),
        more => format!(", {}", counted(more, "warning")),
    };
    format!("{}: {}{warnings}", named(site), counted(errors, "error"))
}

fn counted(count: usize, what: &str) -> String {
    match count {
        1 => format!("1 {what}"),
        more => format!("{more} {what}s"),
    }
}

/// The folder as it was typed; `.` and `..` by their names.
fn named(site: &Path) -> String {
    let full = match site.file_name() {
        Some(_) => None,
        None => site.canonicalize().ok(),
    };
    let name = full.as_deref().and_then(Path::file_name);
    name.map_or_else(
        || site.display().to_string(),
        |name| name.to_string_lossy().into_owned(),
    )
}

/// Prints all errors but the last, which is the command's.
fn fail(mut errors: Vec<CommandFailure>) -> CommandResult {
    let Some(last) = errors.pop() else {
        return Ok(());
    };
    errors.iter().for_each(CommandFailure::print);
    Err(last)
}

impl CheckArgs {
    /// Runs what may be run once the owner agrees, and says so. True if something was run.
    fn repair(&self, config: &Config, report: &CheckReport) -> CommandResult<bool> {
        let CheckReport {
            requirements,
            pending,
            ..
        } = report;
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
            return Ok(false);
        }
        millpond_site::repair(&self.site, config, requirements, |lacking| {
            let statement = lacking.statement.as_deref().unwrap_or_default();
            let done = self.statement(statement);
            note(format_args!("done: {done}{}", restart(lacking)));
        })?;
        Ok(true)
    }

    /// Prints what the database lacks; a reason that several share stands once.
    fn print_requirements(&self, requirements: &[Requirement]) {
        let mut groups: Vec<(&str, Vec<&Requirement>)> = Vec::new();
        for lacking in requirements {
            let known = groups
                .iter_mut()
                .find(|(reason, _)| *reason == lacking.reason);
            match known {
                Some((_, group)) => group.push(lacking),
                None => groups.push((&lacking.reason, vec![lacking])),
            }
        }
        for (reason, group) in groups {
            if let [lacking] = group[..] {
                note(format_args!("note: {}: {reason}", lacking.missing));
                self.print_statement(lacking, "  ");
                continue;
            }
            note(format_args!(
                "note: {} things are missing: {reason}",
                group.len()
            ));
            for lacking in group {
                note(format_args!("  {}", lacking.missing));
                self.print_statement(lacking, "    ");
            }
        }
    }

    /// Prints the statement that adds what is missing. With `--fix`, also whether this command
    /// would run the statement.
    fn print_statement(&self, lacking: &Requirement, indent: &str) {
        if let Some(statement) = &lacking.statement {
            let label = if self.fix && lacking.may_fix {
                "fix"
            } else {
                "hint"
            };
            let statement = self.statement(statement);
            note(format_args!(
                "{indent}{label}: {statement}{}",
                restart(lacking)
            ));
        }
    }

    /// A statement, or what it makes if it is long and `--sql` is not given.
    fn statement(&self, statement: &str) -> String {
        if self.sql || is_short(statement) {
            format!("{statement};")
        } else {
            let run = if self.fix { "" } else { "--fix runs them, " };
            format!("{} ({run}--sql shows the statements)", effect(statement))
        }
    }
}

/// True if a statement is printed as it is.
fn is_short(statement: &str) -> bool {
    statement.len() <= 160 && !statement.contains('\n')
}

/// Summarizes the things that long statements make or drop, such as `1 function, 4 triggers`.
fn effect(statements: &str) -> String {
    let mut made: Vec<(String, usize)> = Vec::new();
    let mut dropped = made.clone();
    for statement in statements.split(';') {
        let words = statement.split_whitespace().map(str::to_lowercase);
        let mut words = words.skip_while(|word| word == "begin");
        let tally = match words.next().as_deref() {
            Some("create") => &mut made,
            Some("drop") => &mut dropped,
            _ => continue,
        };
        let kind = words.find(|word| {
            let qualifiers = ["or", "replace", "temp", "unlogged", "unique", "constraint"];
            !qualifiers.contains(&word.as_str())
        });
        let Some(kind) = kind else { continue };
        match tally.iter_mut().find(|(known, _)| *known == kind) {
            Some((_, count)) => *count += 1,
            None => tally.push((kind, 1)),
        }
    }
    let list = |tally: &[(String, usize)]| {
        let items = tally.iter().map(|(kind, count)| match kind.as_str() {
            "index" if *count > 1 => format!("{count} indexes"),
            kind => counted(*count, kind),
        });
        items.collect::<Vec<_>>().join(", ")
    };
    match (made.is_empty(), dropped.is_empty()) {
        (false, _) => list(&made),
        (true, false) => format!("drops {}", list(&dropped)),
        (true, true) => {
            let beginning: String = statements.chars().take(100).collect();
            format!("{}…", beginning.lines().next().unwrap_or_default())
        }
    }
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

/// Returns the action that is to be done after the statement.
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

/// A reason why pages are not kept stands once if at least this number of pages has it.
const SHARED: usize = 3;

/// Number of causes up to which the changes that end a page are listed; `--dependencies` has all.
const SHOWN: usize = 4;

/// Takes the reasons that many pages share out of the pages' lists.
fn shared_reasons(pages: &mut [(String, Vec<String>)]) -> Vec<(String, usize)> {
    let mut reasons: Vec<(String, usize)> = Vec::new();
    for (_, ends) in pages.iter() {
        for text in ends
            .iter()
            .filter(|text| text.starts_with("not cacheable: "))
        {
            match reasons.iter_mut().find(|(known, _)| known == text) {
                Some((_, count)) => *count += 1,
                None => reasons.push((text.clone(), 1)),
            }
        }
    }
    reasons.retain(|(_, count)| *count >= SHARED);
    for (_, ends) in pages {
        // What would end a page that is not kept says nothing beside the reason.
        if ends
            .iter()
            .any(|text| reasons.iter().any(|(reason, _)| reason == text))
        {
            ends.clear();
        }
    }
    reasons
}

/// Lists the changes that end each page: first by its own queries, then by those of the templates
/// that it shows.
fn pages(queries: &[QueryReport]) -> Vec<(String, Vec<String>)> {
    let mut pages: Vec<(String, Vec<String>)> = vec![("page".into(), vec!["ends by".into()])];
    let mut add = |file: &Path, ends: &mut dyn Iterator<Item = String>| {
        let file = file.display().to_string();
        let place = pages.iter().position(|(known, _)| *known == file);
        let place = place.unwrap_or_else(|| {
            pages.push((file, Vec::new()));
            pages.len() - 1
        });
        for text in ends {
            if !pages[place].1.contains(&text) {
                pages[place].1.push(text);
            }
        }
    };
    for query in queries.iter().filter(|query| query.shown_by.is_empty()) {
        add(&query.file, &mut query.ends.iter().cloned());
    }
    for query in queries {
        let file = query.file.display();
        for page in &query.shown_by {
            let ends = query.ends.iter();
            add(page, &mut ends.map(|text| format!("{text} ({file})")));
        }
    }
    // Below the heading.
    pages[1..].sort_by(|one, other| one.0.cmp(&other.0));
    pages
}

/// Prints what ends each page: one line for each page.
fn print_pages(queries: &[QueryReport]) {
    let mut pages = pages(queries);
    for (_, ends) in pages.iter_mut().filter(|(_, ends)| ends.is_empty()) {
        ends.push("nothing: it never changes".to_owned());
    }
    let reasons = shared_reasons(&mut pages);
    pages.retain(|(_, ends)| !ends.is_empty());
    let width = pages.iter().map(|(file, _)| file.chars().count()).max();
    let width = width.unwrap_or_default();
    // The heading alone would be no table.
    let pages = if pages.len() > 1 { pages } else { Vec::new() };
    for (file, ends) in pages {
        let more = ends.len().saturating_sub(SHOWN);
        let shown = ends[..ends.len() - more].join(", ");
        match more {
            0 => say(format_args!("{file:width$}  {shown}")),
            more => say(format_args!("{file:width$}  {shown} and {more} more")),
        }
    }
    for (reason, count) in reasons {
        say(format_args!("{count} pages are {reason}"));
    }
}

fn table(queries: &[QueryReport]) -> Table {
    let are_shared = queries.iter().any(|query| !query.shown_by.is_empty());
    let row = |query: &QueryReport| {
        let mut row = vec![
            query.file.display().to_string(),
            query.name.clone(),
            match query.dependencies.is_empty() {
                true => "nothing: it never changes".to_owned(),
                false => query.dependencies.join(", "),
            },
        ];
        if are_shared {
            let pages = query.shown_by.iter();
            let pages: Vec<String> = pages.map(|page| page.display().to_string()).collect();
            row.push(match pages.len() {
                ..=SHOWN => pages.join(", "),
                more => format!("{more} pages"),
            });
        }
        row
    };
    let names = ["file", "query", "depends on", "shown by"];
    let names = &names[..if are_shared { 4 } else { 3 }];
    Table {
        columns: names.iter().copied().map(Column::text).collect(),
        rows: queries.iter().map(row).collect(),
        ..Table::default()
    }
}
