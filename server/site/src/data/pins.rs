//! Migrations for files without a table: the types of the columns, written down once, for the owner
//! to read and to change.

use std::{
    collections::BTreeMap,
    fs::{self, File},
    path::Path,
    sync::Arc,
};

use millpond_data::{FilePlace, Inference, InferredColumn, Kind, ReadError, read};
use millpond_db::{Database, FILE_COLUMN, FeedKind, KEY_COLUMN};

use super::{
    DataSources, FOLDER,
    columns::{RowSettings, TargetTable},
    fields::{is_left_out, misspelt_names, place_of_field},
    gone_folder::gone_folders,
    hiding::is_known,
    messages::brief,
    scan::{DataFile, scan},
    survey::{Survey, problem, survey},
};
use millpond_site_format::{Config, Problem, time_zone::SiteZone};

/// Problems of files that are told at once.
const MAX_PROBLEMS: usize = 50;

/// A migration that a table of files lacks.
#[derive(Clone, Debug)]
pub struct FilePin {
    /// The file or folder, for people.
    pub source: String,
    /// Description of the missing thing, in one sentence.
    pub missing: String,
    /// The name of the migration's file in `migrations/`, without its number: `data_rates`.
    pub name: String,
    /// Its statements.
    pub sql: String,
}

/// Findings of a check about the files.
#[derive(Debug, Default)]
pub(crate) struct Found {
    /// Migrations that are missing.
    pub(crate) pins: Vec<FilePin>,
    /// Faults of files.
    pub(crate) problems: Vec<Problem>,
    /// Files that are not read.
    passed_over: Vec<Problem>,
}

impl Found {
    /// Replaces the problems that are too many to read by their number.
    pub(crate) fn bounded(mut self) -> Self {
        let more = self.problems.len().saturating_sub(MAX_PROBLEMS);
        // One is not hidden for the line that counts it.
        if more > 1 {
            self.problems.truncate(MAX_PROBLEMS);
            let message = format!("and {more} more faults in files of data");
            let rest = Problem::new(FOLDER, message);
            self.problems
                .push(rest.hint("correct those above to see them"));
        }
        self
    }

    /// The missing migrations and the files that are not read, as notes.
    pub(crate) fn notes(&self) -> Vec<Problem> {
        let pins = self.pins.iter().map(|pin| {
            Problem::new(&pin.source, pin.missing.clone()).hint(format!(
                "`millpond check --fix` writes migrations/…_{}.sql",
                pin.name
            ))
        });
        pins.chain(brief(&self.passed_over)).collect()
    }
}

/// Reads all files, and holds them against the tables of the database. A moment without an offset
/// is of the zone.
pub(crate) fn found(sources: &DataSources, database: &Database, config: &Config) -> Found {
    let zone = config.formats.zone;
    let publication = (config.feed == FeedKind::Logical).then_some(&*config.publication);
    let scan = scan(sources);
    let mut problems = gone_folders(&scan, sources, database);
    problems.extend(scan.problems);
    let mut found = Found {
        problems,
        passed_over: scan.notes,
        ..Found::default()
    };
    let mut tables: BTreeMap<&str, Vec<&DataFile>> = BTreeMap::new();
    for file in scan.files.values() {
        tables.entry(&file.table).or_default().push(file);
    }
    for (table, files) in tables {
        let mut inference = Inference::default();
        let (mut readable, mut named) = (Vec::new(), Vec::new());
        let mut separator = None;
        for file in &files {
            match infer(file, &mut inference) {
                Ok((names, found)) => {
                    separator = separator.or(found);
                    readable.push(*file);
                    named.push((*file, names));
                }
                Err(problem) => found.problems.extend(problem),
            }
        }
        // Of the transaction in which a check has applied the migrations.
        let known = database
            .prepare(&format!("select * from \"{table}\""))
            .ok()
            .map(|query| query.columns().to_vec());
        let columns = inference.columns();
        let source = match files[0].is_one_of_many() {
            true => format!("{}/", sources.shown(table).display()),
            false => files[0].shown.display().to_string(),
        };
        match known {
            // A file with a fault keeps no other out.
            None if !readable.is_empty() => {
                let layout = FilesLayout::of(&files);
                let mut pin = create(&source, table, &columns, layout, database.is_postgres());
                if let Some(separator) = separator {
                    pin.missing.push_str(&divided(separator));
                }
                if let Some(publication) = publication.filter(|_| database.is_postgres()) {
                    pin.sql.push_str(&published(table, publication));
                }
                found.pins.push(pin);
            }
            None => {}
            Some(known) => {
                let new = new_columns(&named, &columns, &known);
                found
                    .pins
                    .extend(add(&source, table, &new, &named, database.is_postgres()));
                let misfits = misfits(&readable, table, database, zone);
                found.problems.extend(misfits);
            }
        }
    }
    found
}

/// Says how the fields of a CSV file are divided, unless it is by commas.
fn divided(separator: u8) -> String {
    let name = match separator {
        b',' => return String::new(),
        b';' => "semicolons".to_owned(),
        b'\t' => "tabs".to_owned(),
        other => format!("`{}`", char::from(other)),
    };
    format!("; its fields are divided by {name}, and the first line names them")
}

/// Takes up the rows of a file; gives the names of its fields, and the sign between them.
fn infer(
    file: &DataFile,
    inference: &mut Inference,
) -> Result<(Vec<String>, Option<u8>), Option<Problem>> {
    let shown = &file.shown;
    let opened = file.open().map_err(|error| {
        Some(Problem::new(
            shown,
            format!("the file cannot be read: {error}"),
        ))
    })?;
    inference.begin_file();
    let mut names = Vec::new();
    let outcome = read(file.format, opened, file.row_name.as_ref(), &mut |row| {
        inference.add(row);
        names.extend_from_slice(&row.names[names.len()..]);
        Ok(())
    });
    match outcome {
        Ok(digest) => Ok((names, digest.separator)),
        Err(ReadError::Data(error)) => Err(Some(problem(file, &error))),
        Err(ReadError::Stopped) => Err(None),
    }
}

/// The files whose values do not fit the table. A table that only a pending migration makes on
/// PostgreSQL cannot be asked for its types.
fn misfits(files: &[&DataFile], table: &str, database: &Database, zone: SiteZone) -> Vec<Problem> {
    let Some(columns) = database
        .table_columns(table)
        .ok()
        .filter(|all| !all.is_empty())
    else {
        return Vec::new();
    };
    let table = TargetTable {
        name: table.to_owned(),
        columns,
        zone,
        names: RowSettings::default(),
    };
    if let (Some((message, hint)), Some(file)) = (table.fault(), files.first()) {
        return vec![Problem::new(&file.shown, message).hint(hint)];
    }
    let surveys = files
        .iter()
        .map(|file| survey(file, &table, &Arc::default()));
    surveys
        .flat_map(|survey| match survey {
            Survey::Bad(problems) => problems,
            Survey::Unreadable(problem) => vec![problem],
            Survey::Good(_) | Survey::Changed => Vec::new(),
        })
        .collect()
}

/// Layout of the files of a table.
#[derive(Clone, Copy, PartialEq, Eq)]
enum FilesLayout {
    /// One file.
    One,
    /// A folder.
    Folder,
    /// A folder with Markdown files in folders, which tell rows apart with the slug.
    Nested,
}

impl FilesLayout {
    fn of(files: &[&DataFile]) -> Self {
        match files {
            [file] if !file.is_one_of_many() => Self::One,
            files if files.iter().any(|file| file.is_nested()) => Self::Nested,
            _ => Self::Folder,
        }
    }
}

fn create(
    source: &str,
    table: &str,
    columns: &[InferredColumn],
    layout: FilesLayout,
    is_postgres: bool,
) -> FilePin {
    // Files of one name may be in several folders.
    let is_by_path = layout == FilesLayout::Nested;
    let key = ["id", "slug"].iter().find_map(|name| {
        columns
            .iter()
            .find(|column| column.name == **name && column.is_key && !is_by_path)
    });
    let mut lines = Vec::new();
    if key.is_none() && !is_by_path {
        lines.push(format!("{KEY_COLUMN} text primary key"));
    }
    for column in columns {
        let kind = type_name(column.kind, is_postgres);
        let suffix = match &*column.name {
            "folder" | "slug" if is_by_path => " not null",
            _ if key == Some(column) => " primary key",
            _ => "",
        };
        lines.push(format!("{} {kind}{suffix}", name(&column.name)));
    }
    lines.push(format!("{FILE_COLUMN} text not null"));
    if is_by_path {
        lines.push("primary key (folder, slug)".to_owned());
    }
    let mut sql = format!(
        "-- The rows of {source}, written by `millpond check --fix`. Change it before the site starts:\n\
         -- types, references, checks, indexes, columns of your own. What is named {FILE_COLUMN} or {KEY_COLUMN} stays.\n\n\
         create table {} (\n  {}\n);\n",
        name(table),
        lines.join(",\n  ")
    );
    if layout != FilesLayout::One {
        sql.push_str(&format!(
            "\ncreate index {} on {} ({FILE_COLUMN});\n",
            name(&format!("{table}_by_file")),
            name(table)
        ));
    }
    FilePin {
        source: source.to_owned(),
        missing: format!("there is no table {table} yet"),
        name: format!("data_{table}"),
        sql,
    }
}

/// Statements that have the changes of a new table told, if the publication lists its tables and
/// is the role's.
fn published(table: &str, publication: &str) -> String {
    let literal = publication.replace('\'', "''");
    let (publication, table) = (name(publication), name(table));
    format!(
        "\n-- PostgreSQL tells of its changes, so that pages with its rows are kept in memory.\n\
         do $$ begin\n  \
           if exists (select from pg_publication where pubname = '{literal}' and not puballtables\n      \
               and pg_has_role(pubowner, 'usage')) then\n    \
             alter publication {publication} add table {table};\n  \
           end if;\n\
         end $$;\n"
    )
}

/// The columns of the files that a table lacks, without those that are misspelt.
fn new_columns(
    files: &[(&DataFile, Vec<String>)],
    columns: &[InferredColumn],
    known: &[Arc<str>],
) -> Vec<InferredColumn> {
    if !known.iter().any(|known| **known == *FILE_COLUMN) {
        // Another table, which stays as it is; that is a problem.
        return Vec::new();
    }
    let known: Vec<String> = known.iter().map(|name| name.to_lowercase()).collect();
    let is_new = |(file, names): &(&DataFile, Vec<String>), name: &String| {
        let mut misspelt = misspelt_names(file, names, &known);
        names.contains(name)
            && !is_left_out(file, name)
            && !misspelt.any(|(misspelt, _)| misspelt == name)
    };
    let new = columns.iter().filter(|column| {
        let is_unknown = !known.contains(&column.name) && !is_known(&column.name, &known);
        is_unknown && files.iter().any(|file| is_new(file, &column.name))
    });
    new.cloned().collect()
}

/// The migration that adds columns.
fn add(
    source: &str,
    table: &str,
    new: &[InferredColumn],
    files: &[(&DataFile, Vec<String>)],
    is_postgres: bool,
) -> Option<FilePin> {
    let first = &new.first()?.name;
    let mut where_found = String::new();
    if let Some((file, _)) = files.iter().find(|(_, names)| names.contains(first))
        && file.is_one_of_many()
    {
        let place = place_of_field(file, FilePlace::default(), first);
        let line = place
            .line
            .map_or_else(String::new, |line| format!(":{line}"));
        where_found = format!(", as in {}{line}", file.shown.display());
    }
    let statements: Vec<String> = new
        .iter()
        .map(|column| {
            format!(
                "alter table {} add column {} {};\n",
                name(table),
                name(&column.name),
                type_name(column.kind, is_postgres)
            )
        })
        .collect();
    let names: Vec<&str> = new.iter().map(|column| &*column.name).collect();
    Some(FilePin {
        source: source.to_owned(),
        missing: format!("the table {table} lacks {}{where_found}", names.join(", ")),
        name: format!("data_{table}"),
        sql: format!(
            "-- New columns of {source}, written by `millpond check --fix`.\n\n{}",
            statements.concat()
        ),
    })
}

fn type_name(kind: Option<Kind>, is_postgres: bool) -> &'static str {
    match (kind.unwrap_or(Kind::Text), is_postgres) {
        (Kind::Integer, true) => "bigint",
        (Kind::Real, true) => "double precision",
        (Kind::Boolean, true) => "boolean",
        (Kind::Date, true) => "date",
        // Compared as text, so that a page depends on the rows of its days.
        (Kind::Date, false) => "date text",
        (Kind::Moment, true) => "timestamptz",
        (Kind::Json, true) => "jsonb",
        (Kind::Integer | Kind::Boolean, false) => "integer",
        (Kind::Real, false) => "real",
        (Kind::Moment, false) => "datetime",
        (Kind::Json, false) | (Kind::Text, _) => "text",
    }
}

/// A name as SQL has it, in quotes where it needs them.
fn name(name: &str) -> String {
    let is_plain = name
        .bytes()
        .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_')
        && name.starts_with(|first: char| first.is_ascii_lowercase() || first == '_')
        && !RESERVED.split(' ').any(|word| word == name);
    match is_plain {
        true => name.to_owned(),
        false => format!("\"{}\"", name.replace('"', "\"\"")),
    }
}

/// Writes migrations, each with the next number; gives the paths below the site's folder.
///
/// # Errors
/// A file that cannot be written; those before it are there.
pub(crate) fn pin(dir: &Path, pins: &[FilePin]) -> Result<Vec<String>, Problem> {
    let folder = dir.join("migrations");
    let cannot = |error: std::io::Error| {
        Problem::new(
            "migrations",
            format!("the migration cannot be written: {error}"),
        )
        .hint("the user that runs millpond must be able to write there")
    };
    fs::create_dir_all(&folder).map_err(cannot)?;
    let mut numbers = Vec::new();
    for entry in fs::read_dir(&folder).map_err(cannot)? {
        let name = entry.map_err(cannot)?.file_name();
        let name = name.to_string_lossy();
        let digits: String = name.chars().take_while(char::is_ascii_digit).collect();
        numbers.push((digits.parse::<u64>().unwrap_or(0), digits.len()));
    }
    let (last, width) = numbers.into_iter().max().unwrap_or((0, 4));
    let width = width.max(1);
    let mut written = Vec::new();
    for (number, pin) in (last + 1..).zip(pins) {
        let name = format!("{number:0width$}_{}.sql", pin.name);
        let mut file = File::create_new(folder.join(&name)).map_err(cannot)?;
        std::io::Write::write_all(&mut file, pin.sql.as_bytes()).map_err(cannot)?;
        written.push(format!("migrations/{name}"));
    }
    Ok(written)
}

/// Words that one of the databases takes for something else than a name.
const RESERVED: &str = "\
    abort action add after all alter always analyse analyze and any array as asc asymmetric \
    attach authorization autoincrement before begin between binary both by cascade case cast \
    check collate collation column commit concurrently conflict constraint create cross current \
    current_date current_time current_timestamp database default deferrable deferred delete desc \
    detach distinct do drop each else end escape except exclude exclusive exists explain fail \
    false fetch filter first following for foreign freeze from full generated glob grant group \
    groups having if ignore ilike immediate in index indexed initially inner insert instead \
    intersect into is isnull join key last lateral leading left like limit localtime \
    localtimestamp match materialized natural no not nothing notnull null nulls of offset on only \
    or order others outer over overlaps partition placing plan pragma preceding primary query \
    raise range recursive references regexp reindex release rename replace restrict returning \
    right rollback row rows savepoint select session_user set similar some symmetric table \
    tablesample temp then to trailing transaction trigger true unbounded union unique update user \
    using vacuum values variadic verbose view virtual when where window with without";
