//! A database for one test.

use crate::{Error, Postgres, error::sql};

/// A database of a server; dropped with this value, `with (force)`.
#[derive(Debug)]
pub struct Database<'a> {
    server: &'a Postgres,
    name: String,
}

impl<'a> Database<'a> {
    pub(crate) fn create(server: &'a Postgres, name: String) -> Result<Self, Error> {
        server
            .superuser()?
            .batch_execute(&format!("create database {name}"))
            .map_err(sql(format!("create the database {name}")))?;
        Ok(Self { server, name })
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// A connection URL over TCP, as the superuser.
    pub fn url(&self) -> String {
        self.server.url_of(&self.name)
    }
}

impl Drop for Database<'_> {
    fn drop(&mut self) {
        // A server that was stopped or killed meanwhile takes its databases along.
        if let Ok(mut client) = self.server.superuser() {
            let _ = client.batch_execute(&format!("drop database {} with (force)", self.name));
        }
    }
}
