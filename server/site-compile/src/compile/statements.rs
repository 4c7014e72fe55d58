//! The statements of a file, prepared: one of a query, or one for each order that can be chosen.

use std::path::Path;

use millpond_db::{
    Database, Query, SqlError, Value, ValueKind,
    sql::{Dialect, Lexer},
};

use super::{
    declared_types::{self, overruled},
    rewrite::{Declared, RewrittenSql, rewrite},
};
use millpond_site_format::{
    Problem,
    access::{RESERVED, with_claims},
    script::{Declaration, NamedQuery, OrderLine, Rows, Script},
};

/// A query may have this many statements.
const MAX_STATEMENTS: usize = 64;

/// Names that templates see, and that are not those of queries.
const TAKEN: &[&str] = &["params", "request"];

/// Choice for a statement: for each order in it, its name and the value.
pub(super) type Chosen = Box<[(String, Value)]>;

/// Each statement of a file with its query.
pub(super) type PreparedStatements<'s> = [(&'s NamedQuery, Query)];

/// A query with its statements: one, or one for each order that can be chosen.
pub(super) type Prepared<'s> = (&'s NamedQuery, Vec<(Chosen, Query)>);

/// Sources of the statements of a file.
pub(super) struct Statements<'s> {
    pub(super) file: &'s Path,
    pub(super) text: &'s str,
    pub(super) script: &'s Script,
    pub(super) database: &'s Database,
}

impl<'s> Statements<'s> {
    /// All queries of a file that may only read. `hint` says where one that writes belongs.
    pub(super) fn that_read(&self, hint: &str, problems: &mut Vec<Problem>) -> Vec<Prepared<'s>> {
        let mut prepared = Vec::new();
        for named in &self.script.queries {
            if TAKEN.contains(&named.name.as_str()) {
                let message = format!("templates see something else as `{}`", named.name);
                let problem = Problem::new(self.file, message).at(named.line, 1);
                problems.push(problem.hint("give the query another name"));
            }
            match self.all(named) {
                Ok(all) => {
                    let only_reads = all.iter().all(|(_, query)| query.is_readonly());
                    if !only_reads || named.rows == Rows::Exec {
                        let message = format!("query `{}` writes", named.name);
                        let problem = Problem::new(self.file, message).at(named.line, 1);
                        problems.push(problem.hint(hint));
                    } else {
                        prepared.push((named, all));
                    }
                }
                Err(problem) => problems.push(problem),
            }
        }
        prepared
    }

    /// The statement of a query of a form, where no order is chosen.
    pub(super) fn one(&self, named: &NamedQuery) -> Result<Query, Problem> {
        self.prepare(named, &[])
    }

    /// The statements of a query. The first has the first value of each order.
    pub(super) fn all(&self, named: &NamedQuery) -> Result<Vec<(Chosen, Query)>, Problem> {
        let in_text: Vec<&str> = Lexer::new(&named.sql, self.database.dialect())
            .filter_map(|token| token.parameter())
            .collect();
        let orders = self.script.orders.iter();
        let orders: Vec<&OrderLine> = orders
            .filter(|order| in_text.contains(&order.name.as_str()))
            .collect();
        let count = orders.iter().try_fold(1_usize, |count, order| {
            count.checked_mul(order.choices.len())
        });
        let Some(count) = count.filter(|count| *count <= MAX_STATEMENTS) else {
            let message = format!(
                "the orders of query `{}` can be combined in more than {MAX_STATEMENTS} ways",
                named.name
            );
            return Err(Problem::new(self.file, message)
                .at(named.line, 1)
                .hint("give them fewer values, or put both into one order"));
        };
        (0..count)
            .map(|number| {
                let picked = pick(&orders, number);
                let query = self.prepare(named, &picked)?;
                let chosen = picked
                    .iter()
                    .map(|picked| (picked.name.to_owned(), Value::from(picked.value)));
                Ok((chosen.collect(), query))
            })
            .collect()
    }

    /// Prepares a statement. Where PostgreSQL does not find the type of a parameter that is
    /// declared, or finds another to which its values would not fit, the statement is prepared
    /// again with that type.
    fn prepare(&self, named: &NamedQuery, picked: &[Picked<'_>]) -> Result<Query, Problem> {
        let mut typed: Vec<&Declaration> = Vec::new();
        let mut untyped = None;
        loop {
            let rewritten = self.rewritten(named, picked, &typed);
            let (sql, error) = match self.try_prepare(named, &rewritten)? {
                Tried::Prepared(query) => {
                    let is_postgres = self.database.is_postgres();
                    let params = self.script.params.as_slice();
                    let found = overruled(&query.params(), params, &named.sql);
                    let is_new = |found: &&Declaration| typed.iter().all(|t| t.name != found.name);
                    let Some(declaration) = found.filter(is_new).filter(|_| is_postgres) else {
                        return Ok(query);
                    };
                    untyped = Some(self.overruled(named, declaration));
                    typed.push(declaration);
                    continue;
                }
                Tried::Refused(sql, error) => (sql, error),
            };
            let problem = self.refused(named, picked, &rewritten, &error);
            let at = error.offset.filter(|_| self.database.is_postgres());
            let name = at.and_then(|at| parameter_at(&sql, self.database.dialect(), at));
            let name = name.filter(|name| typed.iter().all(|known| known.name != *name));
            let Some(name) = name else {
                // The type was no help, so what is said is what is wrong without it.
                return Err(untyped.unwrap_or(problem));
            };
            let mut declared = self.script.params.iter();
            let Some(declaration) = declared.find(|declaration| declaration.name == name) else {
                return Err(problem);
            };
            typed.push(declaration);
            untyped = Some(problem);
        }
    }

    /// Returns the problem of a declared type that makes the statement one that PostgreSQL refuses.
    fn overruled(&self, named: &NamedQuery, declaration: &Declaration) -> Problem {
        let (name, declared) = (&declaration.name, declared_types::name(declaration));
        let message = format!(
            "query `{}`: `{name}` is declared `{declared}`, and PostgreSQL takes it for a number of another type here",
            named.name
        );
        let cast = cast(declaration);
        let mut tokens = Lexer::new(&named.sql, self.database.dialect());
        let at = tokens.find(|token| token.parameter() == Some(name));
        Problem::new(self.file, message)
            .at_offset(self.text, named.offset + at.map_or(0, |token| token.start))
            .hint(format!(
                "declare the type that is used here, or write :{name}{cast} where it is computed with"
            ))
    }

    fn rewritten(
        &self,
        named: &NamedQuery,
        picked: &[Picked<'_>],
        typed: &[&Declaration],
    ) -> RewrittenSql {
        let list = |name: &str| {
            let mut params = self.script.params.iter();
            let found = params.find(|param| param.is_list && param.name == name);
            found.map(cast)
        };
        let order = |name: &str| {
            let found = picked.iter().find(|picked| picked.name == name);
            found.map(|picked| picked.sql)
        };
        let cast = |name: &str| {
            let found = typed.iter().find(|declaration| declaration.name == name);
            found.map_or("", |declaration| cast(declaration))
        };
        let declared = Declared {
            dialect: self.database.dialect(),
            list: &list,
            order: &order,
            cast: &cast,
        };
        rewrite(&named.sql, &declared)
    }

    fn try_prepare(&self, named: &NamedQuery, rewritten: &RewrittenSql) -> Result<Tried, Problem> {
        let sql = with_claims(&rewritten.sql, self.database.dialect()).map_err(|offset| {
            let message = format!("names that begin with `{RESERVED}` are those of claims");
            Problem::new(self.file, message)
                .at_offset(self.text, named.offset + rewritten.place(offset))
                .hint("what a session says is written :claims.name")
        })?;
        let depends = Some(&*named.depends).filter(|tables| !tables.is_empty());
        Ok(match self.database.prepare_depending(&sql, depends) {
            Ok(query) => Tried::Prepared(query),
            Err(error) => Tried::Refused(sql, error),
        })
    }

    /// Returns the message of the database on a statement, with the place in the file.
    fn refused(
        &self,
        named: &NamedQuery,
        picked: &[Picked<'_>],
        rewritten: &RewrittenSql,
        error: &SqlError,
    ) -> Problem {
        let chosen = picked
            .iter()
            .map(|picked| format!(" with {} = {}", picked.name, picked.value));
        let chosen: String = chosen.collect();
        let message = format!("query `{}`{chosen}: {}", named.name, error.message);
        let offset = named.offset + rewritten.place(error.offset.unwrap_or(0));
        let problem = Problem::new(self.file, message).at_offset(self.text, offset);
        match &error.hint {
            Some(hint) => problem.hint(hint),
            // PostgreSQL names the `in` whose list another place has made a list of no kind.
            None if error.message.contains("ANY/ALL (array) requires array") => problem.hint(
                "another place of the statement takes the list for something else, such as \
                 `json_array_length(:list)`, which is for SQLite only; `:list is null` is true where \
                 the list is empty, on both databases",
            ),
            None => problem,
        }
    }
}

/// Result of preparing a statement.
enum Tried {
    Prepared(Query),
    /// With its text.
    Refused(String, SqlError),
}

/// The parameter that begins at this place.
fn parameter_at(sql: &str, dialect: Dialect, offset: usize) -> Option<&str> {
    let mut tokens = Lexer::new(sql, dialect);
    tokens.find(|token| token.start == offset)?.parameter()
}

/// Returns the cast that gives a parameter its declared type on PostgreSQL.
fn cast(declaration: &Declaration) -> &'static str {
    if let Some(format) = declaration.rules.format {
        return format.cast(declaration.is_list);
    }
    match (declaration.kind, declaration.is_list) {
        (ValueKind::Integer, false) => "::bigint",
        (ValueKind::Integer, true) => "::bigint[]",
        (ValueKind::Real, false) => "::double precision",
        (ValueKind::Real, true) => "::double precision[]",
        (ValueKind::Text, false) => "::text",
        (ValueKind::Text, true) => "::text[]",
        (ValueKind::Boolean, false) => "::boolean",
        (ValueKind::Boolean, true) => "::boolean[]",
        // No line declares these.
        (ValueKind::Blob | ValueKind::Other, _) => "",
    }
}

/// One value of an order.
struct Picked<'o> {
    name: &'o str,
    value: &'o str,
    sql: &'o str,
}

/// The combination of this number, with one value of each order.
fn pick<'o>(orders: &[&'o OrderLine], mut number: usize) -> Vec<Picked<'o>> {
    let picked = orders.iter().map(|order| {
        let (value, sql) = &order.choices[number % order.choices.len()];
        number /= order.choices.len();
        Picked {
            name: &order.name,
            value,
            sql,
        }
    });
    picked.collect()
}
