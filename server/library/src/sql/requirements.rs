//! What a database lacks for pages to be kept, and what mends it.

use std::sync::{Arc, Weak};

use millpond_db::{FeedKind, Requirement};

use super::{QueryError, SqlDatabase, SqlInner, SqlQuery};

/// A longer statement, or one of several lines, is not shown if the program may run it.
const SHOWN_STATEMENT: usize = 100;

impl SqlDatabase {
    /// Lists the requirements that the database lacks for pages with these queries to be kept, a
    /// sentence each, with the remedy; empty if all is well. PostgreSQL needs `wal_level = logical`
    /// (before 19) and a publication named `millpond`, or triggers; SQLite needs triggers if
    /// [`feed`](crate::SqlSettings::feed) is [`FeedKind::Triggers`].
    ///
    /// # Errors
    /// A database that does not answer.
    pub fn missing<'q>(
        &self,
        queries: impl IntoIterator<Item = &'q SqlQuery>,
    ) -> Result<Vec<String>, QueryError> {
        Ok(self
            .requirements(queries)?
            .into_iter()
            .map(sentence)
            .collect())
    }

    /// Makes what is [missing](Self::missing), as `millpond check --fix` does for a site, and
    /// returns what was: a publication on PostgreSQL, and the triggers that record the changes of
    /// other programs if [`feed`](crate::SqlSettings::feed) is [`FeedKind::Triggers`]; if it is
    /// not, those left behind are removed. Triggers cost each write of every program something.
    ///
    /// What the role of the program may not do, and what needs a restart of PostgreSQL, is left and
    /// is still missing. Call it when the program starts, after [`migrate`](Self::migrate).
    ///
    /// ```
    /// use millpond::{FeedKind, SqlDatabase, SqlSettings};
    ///
    /// # let dir = tempfile::tempdir()?;
    /// # let url = format!("sqlite:{}", dir.path().join("book.db").display());
    /// let settings = SqlSettings { feed: FeedKind::Triggers, ..SqlSettings::default() };
    /// let database = SqlDatabase::open_with(&url, &settings)?;
    /// database.migrate([("0001", "create table address (id integer primary key, name text)")])?;
    /// let by_id = database.prepare("select name from address where id = :id")?;
    /// database.repair([&by_id])?;
    /// assert!(database.missing([&by_id])?.is_empty());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// A database that does not answer, or refuses a statement. What was made before stays.
    pub fn repair<'q>(
        &self,
        queries: impl IntoIterator<Item = &'q SqlQuery>,
    ) -> Result<Vec<String>, QueryError> {
        let mut made = Vec::new();
        for requirement in self.requirements(queries)?.into_iter().filter(is_repaired) {
            self.inner.database.repair(&requirement)?;
            made.push(requirement.missing);
        }
        Ok(made)
    }

    fn requirements<'q>(
        &self,
        queries: impl IntoIterator<Item = &'q SqlQuery>,
    ) -> Result<Vec<Requirement>, QueryError> {
        let queries: Vec<_> = queries.into_iter().map(SqlQuery::prepared).collect();
        Ok(self.inner.database.requirements(&queries)?)
    }

    /// Has its store say, when a server begins to serve it, that triggers are missing. On
    /// PostgreSQL nothing is kept without them, which shows.
    pub(super) fn check_at_start(&self, feed: FeedKind) {
        if feed == FeedKind::Triggers && !self.inner.database.is_postgres() {
            let database = Arc::downgrade(&self.inner);
            self.store()
                .check_at_start(Box::new(move || missing_triggers(&database)));
        }
    }
}

fn missing_triggers(database: &Weak<SqlInner>) -> Option<&'static str> {
    let missing = database.upgrade()?.database.requirements(&[]).ok()?;
    (!missing.is_empty()).then_some(
        "SqlSettings::feed is Triggers, and triggers are missing: each commit of another program \
         ends all pages; SqlDatabase::repair makes them",
    )
}

/// True if the program may run the statement, and that is enough.
fn is_repaired(requirement: &Requirement) -> bool {
    requirement.statement.is_some() && requirement.may_fix && !requirement.restart
}

fn sentence(requirement: Requirement) -> String {
    let is_repaired = is_repaired(&requirement);
    let Requirement {
        missing, statement, ..
    } = requirement;
    match statement {
        Some(it) if is_repaired && (it.len() > SHOWN_STATEMENT || it.contains('\n')) => {
            format!("{missing}: SqlDatabase::repair makes it")
        }
        Some(statement) => format!("{missing}: {statement}"),
        None => missing,
    }
}
