//! Prepared statements and the values of their parameters.

use millpond_db::{Call, Query, Value};

use super::{IntoSql, QueryError, SqlDatabase};

/// A statement that the database has accepted, of [`SqlDatabase::prepare`]. Cheap to clone.
#[derive(Clone, Debug)]
pub struct SqlQuery {
    database: SqlDatabase,
    query: Query,
}

/// A statement with values for its parameters.
#[derive(Clone, Debug)]
pub struct BoundQuery {
    query: SqlQuery,
    /// None: a value that the databases cannot hold.
    values: Vec<(String, Option<Value>)>,
}

impl SqlQuery {
    pub(super) fn new(database: SqlDatabase, query: Query) -> Self {
        Self { database, query }
    }

    /// The statement with a value for its parameter `:name`. A value is a number, a text, bytes, a
    /// boolean, or an [`Option`] of them: see [`IntoSql`].
    #[must_use]
    pub fn with(&self, name: &str, value: impl IntoSql) -> BoundQuery {
        BoundQuery::from(self).with(name, value)
    }

    /// Lists the changes that end a page that shows the rows of the query, in few words: `address
    /// with id = :id`, or `any address`; or the reason for which it is not kept. The list is made
    /// anew, so it is right after a [`repair`](SqlDatabase::repair) or a migration. Blocks; while
    /// the database does not answer, the last list is returned.
    #[must_use]
    pub fn ends(&self) -> Vec<String> {
        let now = self.database.inner.database.prepare(self.query.sql());
        now.map_or_else(|_| self.query.ends(), |now| now.ends())
    }

    pub(super) fn prepared(&self) -> Query {
        self.query.clone()
    }
}

impl From<&SqlQuery> for BoundQuery {
    fn from(query: &SqlQuery) -> Self {
        Self {
            query: query.clone(),
            values: Vec::new(),
        }
    }
}

impl BoundQuery {
    /// Sets the value of a parameter. Of two values for one, the last counts.
    #[must_use]
    pub fn with(mut self, name: &str, value: impl IntoSql) -> Self {
        self.values.push((name.to_owned(), value.into_sql()));
        self
    }

    pub(super) fn database(&self) -> &SqlDatabase {
        &self.query.database
    }

    /// The values in the order of the statement.
    pub(super) fn call(self, database: &SqlDatabase) -> Result<Call, QueryError> {
        let query = self.query.query;
        let fault = |what: String| QueryError::usage(format!("{what}, in: {}", query.sql()));
        if !self.query.database.is(database) {
            return Err(fault("the statement is of another database".to_owned()));
        }
        let params = query.params();
        let unknown = |name: &String| !params.iter().any(|param| param.name == *name);
        if let Some((name, _)) = self.values.iter().find(|(name, _)| unknown(name)) {
            let names: Vec<_> = params.iter().map(|param| &*param.name).collect();
            let names = names.join(", ");
            return Err(fault(format!(
                "there is no parameter {name} among: {names}"
            )));
        }
        let value = |param: &millpond_db::Param| {
            let mut given = self.values.iter().rev();
            let given = given.find(|(name, _)| *name == param.name);
            let missing = || fault(format!("the parameter {} has no value", param.name));
            let (_, value) = given.ok_or_else(missing)?;
            let too_large = || QueryError::too_large(&param.name, query.sql());
            value.clone().ok_or_else(too_large)
        };
        let params = params.iter().map(value).collect::<Result<_, _>>()?;
        Ok(Call { query, params })
    }
}
