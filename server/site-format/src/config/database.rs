//! `database.url`: the location of the database.

use std::{
    env, fmt,
    path::{Path, PathBuf},
};

use millpond_db::PostgresOptions;

/// The database of a site (`database.url`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DatabaseUrl {
    /// An SQLite file, as an absolute path.
    Sqlite(PathBuf),
    /// A database of a PostgreSQL server.
    Postgres(PostgresUrl),
}

/// The URL of a PostgreSQL database. Messages and logs never show its password.
#[derive(Clone, PartialEq, Eq)]
pub struct PostgresUrl {
    url: String,
    place: String,
}

impl PostgresUrl {
    /// The whole URL with its password, for connecting.
    #[must_use]
    pub fn reveal(&self) -> &str {
        &self.url
    }
}

impl fmt::Display for PostgresUrl {
    /// Host, port and database.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.place)
    }
}

impl fmt::Debug for PostgresUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("PostgresUrl").field(&self.place).finish()
    }
}

/// The prefix that names an environment variable with the URL.
const ENVIRONMENT: &str = "env:";

impl DatabaseUrl {
    /// Reads a URL; the path of an SQLite file is taken from `dir`, and `env:NAME` is the value of
    /// an environment variable.
    ///
    /// # Errors
    /// A message about the error, without the password.
    pub fn parse(url: &str, dir: &Path) -> Result<Self, String> {
        match url.strip_prefix(ENVIRONMENT) {
            None => Self::direct(url, dir),
            Some(name) => {
                let value = variable(name)?;
                Self::direct(&value, dir)
                    .map_err(|message| format!("in the environment variable {name}: {message}"))
            }
        }
    }

    fn direct(url: &str, dir: &Path) -> Result<Self, String> {
        let Some((scheme, rest)) = url.split_once(':') else {
            return Err(
                "this is no URL: it begins with none of `sqlite:`, `postgres://` and `env:`"
                    .to_owned(),
            );
        };
        match scheme {
            "sqlite" => sqlite(rest).map(|path| Self::Sqlite(dir.join(path))),
            "postgres" | "postgresql" => {
                let place = PostgresOptions::new(url)
                    .place()
                    .map_err(|error| error.to_string())?;
                Ok(Self::Postgres(PostgresUrl {
                    url: url.to_owned(),
                    place,
                }))
            }
            _ => Err(format!(
                "`{scheme}:` is no database that Millpond serves; it serves SQLite (`sqlite:`) and PostgreSQL (`postgres://`)"
            )),
        }
    }

    /// The path of the SQLite file, if the database is one.
    #[must_use]
    pub fn file(&self) -> Option<&Path> {
        match self {
            Self::Sqlite(path) => Some(path),
            Self::Postgres(_) => None,
        }
    }
}

fn variable(name: &str) -> Result<String, String> {
    if name.is_empty() || name.contains(['=', '\0']) {
        return Err("`env:` stands before the name of an environment variable".to_owned());
    }
    match env::var(name) {
        Ok(value) if value.is_empty() => Err(format!("the environment variable {name} is empty")),
        Ok(value) => Ok(value),
        Err(env::VarError::NotPresent) => Err(format!(
            "the environment variable {name}, which is to have the URL, is not set"
        )),
        Err(env::VarError::NotUnicode(_)) => {
            Err(format!("the environment variable {name} is not UTF-8"))
        }
    }
}

/// The path in an SQLite URL, from the text after the scheme.
fn sqlite(rest: &str) -> Result<&str, String> {
    let path = rest.strip_prefix("//").unwrap_or(rest);
    if path.contains('?') {
        return Err("the URL of an SQLite file takes no options after a question mark".to_owned());
    }
    if path == ":memory:" {
        return Err(
            "a database in memory would be a different one for every connection; it must be a file"
                .to_owned(),
        );
    }
    if path.is_empty() || path.ends_with('/') || path.contains('\0') {
        return Err(format!("`sqlite:{rest}` names no file"));
    }
    Ok(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(url: &str) -> Result<DatabaseUrl, String> {
        DatabaseUrl::parse(url, Path::new("/site"))
    }

    #[test]
    fn both_databases() {
        assert_eq!(
            parse("sqlite:a.db"),
            Ok(DatabaseUrl::Sqlite("/site/a.db".into()))
        );
        for (url, place) in [
            ("postgres://me:secret@db.example/shop", "db.example:5432"),
            (
                "postgresql://me:secret@db.example:5433/shop",
                "db.example:5433",
            ),
            (
                "postgres://me:secret@%2Frun%2Fpostgresql/shop",
                "/run/postgresql",
            ),
        ] {
            let Ok(DatabaseUrl::Postgres(found)) = parse(url) else {
                panic!("{url}");
            };
            assert_eq!(found.reveal(), url);
            let shown = format!("{found} {found:?}");
            assert!(shown.contains(place), "{shown}");
            assert!(!shown.contains("secret"), "{shown}");
        }
    }

    #[test]
    fn faults_do_not_reveal_the_password() {
        for (url, expected) in [
            ("mysql://me:secret@h/d", "it serves SQLite"),
            ("postgress://me:secret@h/d", "it serves SQLite"),
            ("postgres://me:secret@h:port/d", "port"),
            ("postgres://me:secret@h/d?sslmode=sometimes", "sslmode"),
            ("secret", "this is no URL"),
            ("env:", "the name of an environment variable"),
            (
                "env:MILLPOND_NO_SUCH_VARIABLE",
                "MILLPOND_NO_SUCH_VARIABLE, which is to have the URL, is not set",
            ),
            // Cargo sets it for tests; it has a path in it.
            (
                "env:CARGO_MANIFEST_DIR",
                "in the environment variable CARGO_MANIFEST_DIR: this is no URL",
            ),
        ] {
            let message = parse(url).unwrap_err();
            assert!(message.contains(expected), "{url}: {message}");
            assert!(!message.contains("secret"), "{message}");
        }
    }
}
