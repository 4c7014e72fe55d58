//! What a statement reads, writes and calls, according to SQLite's authorizer.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use parking_lot::Mutex;
use rusqlite::Connection;
use rusqlite::hooks::{AuthAction, AuthContext, Authorization};

/// Actions that the authorizer was asked about while one statement was prepared. Names are
/// lower-case.
#[derive(Clone, Debug, Default)]
pub(crate) struct AuthorizerRecord {
    /// Tables, views and virtual tables of the main database that are read, with the names of the
    /// columns. The empty name is read where no column is: by `count(*)`.
    pub(crate) reads: BTreeMap<String, BTreeSet<String>>,
    /// Tables and views that are written, by the statement itself, its triggers and its cascades.
    pub(crate) writes: BTreeSet<String>,
    /// Objects outside the main database that are read, as `database.table`.
    pub(crate) outside_main: BTreeSet<String>,
    /// The functions that are called, including operators such as LIKE.
    pub(crate) functions: BTreeSet<String>,
    /// The refused kind of statement, in words.
    pub(crate) refused: Option<&'static str>,
}

/// Statements that may be prepared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum StatementPolicy {
    /// Statements of this crate: all.
    #[default]
    Own,
    /// The owner's statements: no transactions, pragmas, attached databases or temporary objects.
    Owner,
    /// Statements of a migration: as for the owner's, and some pragmas.
    Migration,
}

#[derive(Debug, Default)]
struct RecorderState {
    policy: StatementPolicy,
    recorded: AuthorizerRecord,
}

/// One connection's authorizer.
#[derive(Clone, Default)]
pub(crate) struct Recorder(Arc<Mutex<RecorderState>>);

impl Recorder {
    pub(crate) fn install(connection: &mut Connection) -> rusqlite::Result<Self> {
        let recorder = Self::default();
        let state = Arc::clone(&recorder.0);
        connection.authorizer(Some(move |context: AuthContext<'_>| {
            state.lock().decide(&context)
        }))?;
        Ok(recorder)
    }

    /// Runs `f`, which prepares statements under `policy`, and returns the record of the
    /// authorizer.
    pub(crate) fn record<T>(
        &self,
        policy: StatementPolicy,
        f: impl FnOnce() -> T,
    ) -> (T, AuthorizerRecord) {
        let before = {
            let mut state = self.0.lock();
            (
                std::mem::replace(&mut state.policy, policy),
                std::mem::take(&mut state.recorded),
            )
        };
        let result = f();
        let mut state = self.0.lock();
        state.policy = before.0;
        (result, std::mem::replace(&mut state.recorded, before.1))
    }
}

impl RecorderState {
    fn decide(&mut self, context: &AuthContext<'_>) -> Authorization {
        use AuthAction as A;
        let main = context
            .database_name
            .is_none_or(|name| name.eq_ignore_ascii_case("main"));
        let recorded = &mut self.recorded;
        match context.action {
            A::Read {
                table_name,
                column_name,
            } if !table_name.is_empty() => {
                if main {
                    let table = table_name.to_ascii_lowercase();
                    insert(recorded.reads.entry(table).or_default(), column_name);
                } else {
                    let database = context.database_name.unwrap_or_default();
                    recorded
                        .outside_main
                        .insert(format!("{database}.{table_name}"));
                }
            }
            A::Insert { table_name } | A::Delete { table_name } | A::Update { table_name, .. } => {
                insert(&mut recorded.writes, table_name);
            }
            A::Function { function_name } => insert(&mut recorded.functions, function_name),
            A::Transaction { .. } | A::Savepoint { .. } => {
                return self.refuse(
                    "a transaction statement; each set of steps is one transaction by itself",
                );
            }
            A::Pragma {
                pragma_name,
                pragma_value,
            } => return self.pragma(pragma_name, pragma_value),
            A::Attach { .. } | A::Detach { .. } => return self.refuse("ATTACH or DETACH"),
            A::CreateTempIndex { .. }
            | A::CreateTempTable { .. }
            | A::CreateTempTrigger { .. }
            | A::CreateTempView { .. }
            | A::DropTempIndex { .. }
            | A::DropTempTable { .. }
            | A::DropTempTrigger { .. }
            | A::DropTempView { .. } => {
                return self.refuse("a temporary object, which only one connection would have");
            }
            // The schema's version shows schema changes.
            _ => {}
        }
        Authorization::Allow
    }

    fn pragma(&mut self, name: &str, value: Option<&str>) -> Authorization {
        const IN_MIGRATIONS: [&str; 6] = [
            "foreign_keys",
            "defer_foreign_keys",
            "foreign_key_check",
            "integrity_check",
            "user_version",
            "application_id",
        ];
        // Virtual tables and ALTER TABLE use these pragmas internally.
        const INTERNAL: [&str; 3] = ["data_version", "page_size", "quick_check"];
        let among = |names: &[&str]| {
            names
                .iter()
                .any(|allowed| name.eq_ignore_ascii_case(allowed))
        };
        let internal =
            among(&INTERNAL) && (value.is_none() || name.eq_ignore_ascii_case("quick_check"));
        let migration = self.policy == StatementPolicy::Migration && among(&IN_MIGRATIONS);
        if internal || migration {
            Authorization::Allow
        } else {
            self.refuse("a PRAGMA")
        }
    }

    fn refuse(&mut self, what: &'static str) -> Authorization {
        if self.policy == StatementPolicy::Own {
            return Authorization::Allow;
        }
        self.recorded.refused.get_or_insert(what);
        Authorization::Deny
    }
}

fn insert(set: &mut BTreeSet<String>, name: &str) {
    set.insert(name.to_ascii_lowercase());
}
