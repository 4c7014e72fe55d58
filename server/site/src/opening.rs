//! The database of a site: opened, waited for, and brought up to date.

pub(crate) mod known_migrations;
pub(crate) mod open_addresses;
pub(crate) mod reading;

use std::{
    fs::File,
    io::Read as _,
    path::{Path, PathBuf},
    thread,
    time::Duration,
};

use base_clock::Boottime;
use millpond_db::{Database, Error, FeedKind, PostgresOptions, SqliteOptions};

use crate::SiteOptions;
use millpond_site_format::{
    Config, DatabaseUrl, PostgresUrl, Problem,
    dialect::dialect_of,
    folder::{Migrations, SiteFolder, migrations},
    problem::SETTINGS,
};

/// The time between two attempts to reach a server.
const PAUSE: Duration = Duration::from_secs(1);
/// The time between two notes to the waiting owner.
const REMINDER: Duration = Duration::from_secs(5);

/// Opens the database and applies the site's migrations.
pub(crate) fn open(
    dir: &Path,
    config: &Config,
    options: &SiteOptions,
) -> Result<Database, Vec<Problem>> {
    let files = options.files;
    let migrations = migrations(SiteFolder { dir, files }, dialect_of(&config.database))?;
    let database = match &config.database {
        DatabaseUrl::Sqlite(path) => {
            no_replicas(config).map_err(|p| vec![p])?;
            let readers = options.readers.unwrap_or(config.pool);
            sqlite(dir, path, config, readers).map_err(|p| vec![p])?
        }
        DatabaseUrl::Postgres(url) => {
            postgres(url, config, options).map_err(|problem| vec![problem])?
        }
    };
    let applied = migrate(&database, &migrations, &shown(dir, &config.database))
        .inspect_err(|_| database.stop())
        .map_err(|problem| vec![problem])?;
    // Those of a site in the program are its own affair.
    if options.files.is_none() && !applied.is_empty() {
        (options.log)(&format!("applied migrations: {}", applied.join(", ")));
    }
    report_missing_triggers(config, &database, options.log);
    Ok(database)
}

/// Says that triggers which the owner asks for are missing. On PostgreSQL `check` says it, and
/// nothing is kept.
fn report_missing_triggers(config: &Config, database: &Database, log: fn(&str)) {
    if config.feed != FeedKind::Triggers || !matches!(config.database, DatabaseUrl::Sqlite(_)) {
        return;
    }
    let is_missing = match database.requirements(&[]) {
        Ok(missing) => !missing.is_empty(),
        Err(_) => true,
    };
    if is_missing {
        log(
            "warning: database.feed is \"triggers\", and triggers that record changes are \
             missing or changed, so each commit of another program ends all results; \
             \"millpond check --fix\" makes them",
        );
    }
}

/// Connects to a PostgreSQL server.
pub(crate) fn postgres(
    url: &PostgresUrl,
    config: &Config,
    options: &SiteOptions,
) -> Result<Database, Problem> {
    let wanted = PostgresOptions {
        pool: options.readers.unwrap_or(config.pool),
        queue: config.queue,
        statement_timeout: config.statement_timeout,
        replicas: config.replicas.clone(),
        max_staleness: config.max_staleness,
        feed: config.feed,
        publication: config.publication.clone(),
        ..PostgresOptions::new(url.reveal())
    };
    let wanted = match options.workers {
        0 => wanted,
        workers => PostgresOptions { workers, ..wanted },
    };
    let connect = || Database::connect(wanted.clone());
    retry_while_unreachable(options.start_timeout, options.log, connect)
        .map_err(|error| unreached(&error))
}

/// An SQLite file has none.
pub(crate) fn no_replicas(config: &Config) -> Result<(), Problem> {
    if config.replicas.is_empty() {
        return Ok(());
    }
    Err(Problem::new(
        SETTINGS,
        "database.replicas names standbys of a PostgreSQL server, and the database is an SQLite file",
    )
    .hint("take the line out, or name the primary in database.url"))
}

/// Opens an SQLite file.
pub(crate) fn sqlite(
    dir: &Path,
    path: &Path,
    config: &Config,
    readers: usize,
) -> Result<Database, Problem> {
    let options = SqliteOptions {
        readers,
        queue: config.queue,
        statement_timeout: config.statement_timeout,
        feed: config.feed,
        ..SqliteOptions::new(path)
    };
    Database::open(options).map_err(|error| {
        let problem = Problem::new(
            path.strip_prefix(dir).unwrap_or(path),
            format!("the database cannot be opened: {error}"),
        );
        with_file_hint(problem, path)
    })
}

/// Adds what can be done about an SQLite file that cannot be opened.
pub(crate) fn with_file_hint(problem: Problem, path: &Path) -> Problem {
    let folder = path
        .parent()
        .filter(|folder| !folder.as_os_str().is_empty());
    let mut beginning = [0; 16];
    let read = File::open(path).and_then(|mut file| file.read_exact(&mut beginning));
    let hint = match read {
        _ if folder.is_some_and(|folder| !folder.exists()) => {
            "the folder of this file does not exist: make it, or change database.url"
        }
        _ if path.is_dir() => "it is a folder: name a file in database.url",
        Ok(()) if beginning != *b"SQLite format 3\0" => {
            "the file is no SQLite database: move it away, or name another in database.url"
        }
        _ => {
            "the user that runs millpond must be able to read and write the file and its folder, as \
             SQLite keeps files of its own beside it"
        }
    };
    problem.hint(hint)
}

/// Applies what was not applied before, and returns the names.
pub(crate) fn migrate(
    database: &Database,
    migrations: &Migrations,
    shown: &Path,
) -> Result<Vec<String>, Problem> {
    database
        .migrate(&migrations.list)
        .map_err(|error| refused(error, migrations, shown))
}

/// A migration that failed, with the place in its file.
pub(crate) fn refused(error: Error, migrations: &Migrations, shown: &Path) -> Problem {
    match error {
        Error::Migration {
            name,
            line,
            column,
            message,
        } => Problem::new(migrations.file(&name), message).at(line, column),
        Error::MigrationChanged { name } => Problem::new(
            migrations.file(&name),
            "the migration has been edited since it was applied",
        )
        .hint("restore it, and put the change into a new migration"),
        other => Problem::new(shown, other.to_string()),
    }
}

/// The database as a problem names it: its file, or the setting.
pub(crate) fn shown(dir: &Path, database: &DatabaseUrl) -> PathBuf {
    match database {
        DatabaseUrl::Sqlite(path) => path.strip_prefix(dir).unwrap_or(path).to_owned(),
        DatabaseUrl::Postgres(_) => PathBuf::from("database.url"),
    }
}

/// Why there is no connection to a server.
fn unreached(error: &Error) -> Problem {
    Problem::new("database.url", error.to_string()).hint(
        "is the server running, and do host, port, user, password and database in the URL fit it? \
         `psql` with the same URL tells more",
    )
}

/// Retries until `f` succeeds, fails for another reason than an unreachable server, or
/// `start_timeout` ends. The owner is notified meanwhile.
fn retry_while_unreachable<T>(
    start_timeout: Duration,
    log: fn(&str),
    mut attempt: impl FnMut() -> Result<T, Error>,
) -> Result<T, Error> {
    let began = Boottime::now();
    let mut last_note = None;
    loop {
        let error = match attempt() {
            Err(error @ Error::Unavailable { .. }) => error,
            outcome => return outcome,
        };
        let waited = Boottime::now().since(began);
        if waited + PAUSE > start_timeout {
            return Err(error);
        }
        if last_note.is_none_or(|last_note| waited.saturating_sub(last_note) >= REMINDER) {
            last_note = Some(waited);
            let left = (start_timeout - waited).as_secs();
            log(&format!("{error}; trying for another {left} s"));
        }
        // Nothing tells when a server comes up.
        thread::sleep(PAUSE);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unreachable_server() -> Error {
        Error::Unavailable {
            message: "away".into(),
        }
    }

    #[test]
    fn a_server_that_comes_up_in_time_is_waited_for() {
        let mut attempts = 0;
        let outcome = retry_while_unreachable(
            Duration::from_secs(60),
            |_| {},
            || {
                attempts += 1;
                if attempts < 2 {
                    Err(unreachable_server())
                } else {
                    Ok(attempts)
                }
            },
        );
        assert_eq!(outcome.ok(), Some(2));
    }

    #[test]
    fn impatience_and_other_failures_end_the_wait_at_once() {
        let login = Error::Login {
            message: "password authentication failed".into(),
        };
        for (error, timeout) in [
            (unreachable_server(), Duration::ZERO),
            (Error::Overloaded, Duration::from_secs(60)),
            (login, Duration::from_secs(60)),
        ] {
            let mut attempts = 0;
            let outcome: Result<(), _> = retry_while_unreachable(
                timeout,
                |_| {},
                || {
                    attempts += 1;
                    Err(error.clone())
                },
            );
            assert!(outcome.is_err());
            assert_eq!(attempts, 1);
        }
    }
}
