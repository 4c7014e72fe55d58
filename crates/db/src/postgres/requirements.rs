//! What a server needs so that its changes can be told, as data for `millpond check`.
//!
//! What must be published is what the site's queries read. Partitions are told under their own names (`publish_via_partition_root`
//! stays off): then the replica identity that the feed is told is that of the table which holds the row, and old values can be
//! believed. A table without a replica identity is never published here: from then on PostgreSQL would refuse the application's UPDATE and DELETE (COHERENCE, rule 20).

use std::collections::BTreeSet;

use tokio_postgres::Client;

use super::analysis::refused;
use super::catalog::{Catalog, Identity, Untold};
use super::pool::Pool;
use crate::{Error, SqlError};

/// Something that a database lacks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Requirement {
    /// What is missing.
    pub missing: String,
    /// Why it matters.
    pub reason: String,
    /// The statement that mends it.
    pub statement: Option<String>,
    /// Whether `millpond check --fix` may run the statement: it harms nobody, and the role has the right to.
    pub may_fix: bool,
    /// Whether the server has to be started anew afterwards.
    pub restart: bool,
}

impl Requirement {
    fn new(missing: impl Into<String>, reason: impl Into<String>) -> Self {
        Self {
            missing: missing.into(),
            reason: reason.into(),
            statement: None,
            may_fix: false,
            restart: false,
        }
    }

    fn mended_by(self, statement: impl Into<String>, may_fix: bool) -> Self {
        Self {
            statement: Some(statement.into()),
            may_fix,
            ..self
        }
    }
}

/// What the server says about itself and the role.
struct Facts {
    version: i32,
    wal_level: String,
    role: String,
    database: String,
    superuser: bool,
    replication: bool,
    temporary: bool,
    creates: bool,
    owns_publication: bool,
    slots: (i64, i64),
    senders: (i64, i64),
    any_standby: bool,
}

const FACTS: &str = "select pg_catalog.current_setting('server_version_num')::int, pg_catalog.current_setting('wal_level'), \
    pg_catalog.quote_ident(current_user), pg_catalog.quote_ident(pg_catalog.current_database()), r.rolsuper, r.rolreplication, \
    pg_catalog.has_database_privilege(pg_catalog.current_database(), 'TEMPORARY'), \
    pg_catalog.has_database_privilege(pg_catalog.current_database(), 'CREATE'), \
    coalesce((select pg_catalog.pg_has_role(p.pubowner, 'USAGE') from pg_catalog.pg_publication p where p.pubname = $1), false), \
    (select count(*) from pg_catalog.pg_replication_slots), pg_catalog.current_setting('max_replication_slots')::bigint, \
    (select count(*) from pg_catalog.pg_stat_replication), pg_catalog.current_setting('max_wal_senders')::bigint, \
    pg_catalog.current_setting('synchronous_standby_names') like '%*%' \
    from pg_catalog.pg_roles r where r.rolname = current_user";

impl Facts {
    async fn ask(client: &Client, publication: &str) -> Result<Self, SqlError> {
        let row = client
            .query_one(FACTS, &[&publication])
            .await
            .map_err(|error| refused(&error))?;
        Ok(Self {
            version: row.get(0),
            wal_level: row.get(1),
            role: row.get(2),
            database: row.get(3),
            superuser: row.get(4),
            replication: row.get(5),
            temporary: row.get(6),
            creates: row.get(7),
            owns_publication: row.get(8),
            slots: (row.get(9), row.get(10)),
            senders: (row.get(11), row.get(12)),
            any_standby: row.get(13),
        })
    }
}

/// What is missing so that results that are read from `tables` may be kept; the most basic first. `running` says that this
/// program's own feed runs, and has a slot already.
pub(crate) async fn requirements(
    client: &Client,
    catalog: &Catalog,
    tables: &BTreeSet<u32>,
    running: bool,
) -> Result<Vec<Requirement>, SqlError> {
    let facts = Facts::ask(client, &catalog.publication().name).await?;
    let mut all = server(&facts, running);
    let owned = owned(client, catalog, tables).await?;
    publication(&facts, catalog, tables, &owned, &mut all);
    Ok(all)
}

/// Runs the statement of a requirement that may be mended so.
pub(crate) async fn fix(client: &Client, requirement: &Requirement) -> Result<(), SqlError> {
    match &requirement.statement {
        Some(statement) if requirement.may_fix => client
            .batch_execute(statement)
            .await
            .map_err(|error| refused(&error)),
        _ => Err(SqlError {
            message: format!("{}: this is not for Millpond to mend", requirement.missing),
            offset: None,
            hint: requirement.statement.clone(),
        }),
    }
}

/// The same on a connection of the pool.
pub(super) async fn ask(pool: &Pool, tables: &BTreeSet<u32>) -> Result<Vec<Requirement>, Error> {
    let connection = pool.get().await?;
    let publication = &pool.shared.options.publication;
    let found = match Catalog::load(&connection.client, publication).await {
        Ok(catalog) => {
            let running = pool.shared.link.has_feed();
            requirements(&connection.client, &catalog, tables, running).await
        }
        Err(error) => Err(error),
    };
    pool.put(connection);
    found.map_err(Error::unavailable)
}

/// Mends one of them on a connection of the pool.
pub(super) async fn mend(pool: &Pool, requirement: &Requirement) -> Result<(), Error> {
    let connection = pool.get().await?;
    // The sessions of the pool only read, so this one is not given back.
    let writing = connection
        .client
        .batch_execute("set default_transaction_read_only = off");
    let done = match writing.await {
        Ok(()) => fix(&connection.client, requirement).await,
        Err(error) => Err(refused(&error)),
    };
    connection.close().await;
    done.map_err(|error| Error::usage(error.to_string()))
}

fn server(facts: &Facts, running: bool) -> Vec<Requirement> {
    const OLDEST: i32 = 140_000;
    let mut all = Vec::new();
    if facts.version < OLDEST {
        all.push(Requirement::new(
            "the server is older than PostgreSQL 14",
            "older ones send a large transaction only once it has ended, and do not tell what a query names",
        ));
    }
    if facts.wal_level != "logical" {
        let mut missing = Requirement::new(
            format!("wal_level is {}, not logical", facts.wal_level),
            "without it the server tells nobody of changes, and nothing is kept",
        )
        .mended_by("alter system set wal_level = logical", facts.superuser);
        missing.restart = true;
        all.push(missing);
    }
    if !facts.replication && !facts.superuser {
        all.push(
            Requirement::new(
                format!("the role {} has no REPLICATION right", facts.role),
                "the feed of changes is a replication connection",
            )
            .mended_by(format!("alter role {} replication", facts.role), false),
        );
    }
    if facts.any_standby {
        all.push(Requirement::new(
            "synchronous_standby_names has a *",
            "the feed would count as a standby, and commits would wait for it; name the standbys",
        ));
    }
    if !facts.temporary {
        all.push(
            Requirement::new(
                format!("the role {} may make no temporary objects", facts.role),
                "PostgreSQL tells what a query names by a temporary function, which is dropped at once",
            )
            .mended_by(
                format!(
                    "grant temporary on database {} to {}",
                    facts.database, facts.role
                ),
                false,
            ),
        );
    }
    for (setting, what, (used, most)) in [
        ("max_replication_slots", "replication slots", facts.slots),
        ("max_wal_senders", "replication connections", facts.senders),
    ] {
        if used >= most && !running {
            let mut missing = Requirement::new(
                format!("all {most} {what} are in use"),
                "the feed of changes needs one",
            )
            .mended_by(
                format!("alter system set {setting} = {}", most + 2),
                facts.superuser,
            );
            missing.restart = true;
            all.push(missing);
        }
    }
    all
}

/// Which of the tables the role owns, so that it may publish them.
async fn owned(
    client: &Client,
    catalog: &Catalog,
    tables: &BTreeSet<u32>,
) -> Result<BTreeSet<u32>, SqlError> {
    const OWNED: &str = "select oid from pg_catalog.pg_class where oid = any ($1) and pg_catalog.pg_has_role(relowner, 'USAGE')";
    let all: BTreeSet<u32> = tables
        .iter()
        .flat_map(|table| catalog.tree(*table))
        .collect();
    let all: Vec<u32> = all.into_iter().collect();
    let rows = client
        .query(OWNED, &[&all])
        .await
        .map_err(|error| refused(&error))?;
    Ok(rows.iter().map(|row| row.get(0)).collect())
}

fn publication(
    facts: &Facts,
    catalog: &Catalog,
    tables: &BTreeSet<u32>,
    owned: &BTreeSet<u32>,
    all: &mut Vec<Requirement>,
) {
    let publication = catalog.publication();
    let name = format!("\"{}\"", publication.name.replace('"', "\"\""));
    let mut wanted = BTreeSet::new();
    for table in tables {
        wanted.extend(missing(catalog, *table));
    }
    let (told, silent): (BTreeSet<u32>, BTreeSet<u32>) = wanted
        .into_iter()
        .partition(|table| has_identity(catalog, *table));
    let entries: Vec<String> = told.iter().map(|table| entry(catalog, *table)).collect();
    let owns_all = facts.superuser || told.is_subset(owned);
    let whose = if owns_all {
        ""
    } else {
        "; only the tables' owner can add them"
    };
    if publication.exists {
        if !publication.complete {
            all.push(
                Requirement::new(
                    format!("the publication {} leaves out some kinds of changes", publication.name),
                    "what it does not tell would be missed, so nothing is kept",
                )
                .mended_by(
                    format!("alter publication {name} set (publish = 'insert, update, delete, truncate')"),
                    facts.superuser || facts.owns_publication,
                ),
            );
        }
        if !entries.is_empty() {
            all.push(
                Requirement::new(
                    format!(
                        "the publication {} lacks {}",
                        publication.name,
                        displays(catalog, &told)
                    ),
                    format!("results that are read from them cannot be kept{whose}"),
                )
                .mended_by(
                    format!("alter publication {name} add table {}", entries.join(", ")),
                    owns_all && (facts.superuser || facts.owns_publication),
                ),
            );
        }
    } else {
        let list = if entries.is_empty() {
            String::new()
        } else {
            format!(" for table {}", entries.join(", "))
        };
        all.push(
            Requirement::new(
                format!("there is no publication {}", publication.name),
                format!("it says of which tables the server tells changes{whose}"),
            )
            .mended_by(
                format!("create publication {name}{list}"),
                owns_all && (facts.superuser || facts.creates),
            ),
        );
    }
    for table in silent {
        let relation = catalog.display(table);
        all.push(
            Requirement::new(
                format!("{relation} has no replica identity"),
                "it has no primary key; once it were published, PostgreSQL would refuse to update or delete its rows",
            )
            .mended_by(identity_statements(catalog, table), false),
        );
    }
    for table in tables {
        if let Some((part, Untold::Partial)) = catalog.untold(*table) {
            all.push(Requirement::new(
                format!("the publication {} leaves out rows or columns of {}", publication.name, catalog.display(part)),
                "what it does not tell would be missed; add the table without WHERE and without a list of columns",
            ));
        }
    }
}

/// What has to be published so that all changes to what a query on the table reads are told.
fn missing(catalog: &Catalog, table: u32) -> Vec<u32> {
    let lacks = |part: &u32| {
        catalog
            .relation(*part)
            .is_some_and(|relation| relation.kind == 'r')
            && matches!(
                catalog.untold(*part),
                Some((_, Untold::Unpublished | Untold::NoPublication))
            )
            && catalog.untold(*part).is_some_and(|(of, _)| of == *part)
    };
    let parts: Vec<u32> = catalog.tree(table).into_iter().filter(lacks).collect();
    match catalog.relation(table) {
        Some(relation) if relation.kind == 'p' && !parts.is_empty() => vec![table],
        _ => parts,
    }
}

/// Whether PostgreSQL would still update the table, and its partitions, when it is published.
fn has_identity(catalog: &Catalog, table: u32) -> bool {
    silent_parts(catalog, table).is_empty()
}

fn silent_parts(catalog: &Catalog, table: u32) -> Vec<u32> {
    let is_root = catalog
        .relation(table)
        .is_some_and(|relation| relation.kind == 'p');
    let parts = if is_root {
        catalog.tree(table)
    } else {
        BTreeSet::from([table])
    };
    parts
        .into_iter()
        .filter(|part| {
            catalog
                .relation(*part)
                .is_some_and(|relation| relation.kind == 'r' && relation.identity == Identity::None)
        })
        .collect()
}

fn identity_statements(catalog: &Catalog, table: u32) -> String {
    let statements: Vec<String> = silent_parts(catalog, table)
        .into_iter()
        .filter_map(|part| {
            let name = catalog.relation(part)?.display_quoted();
            Some(format!("alter table {name} replica identity full"))
        })
        .collect();
    statements.join("; ")
}

/// A table in the list of a publication. ONLY, as children that inherit are in the list by themselves.
fn entry(catalog: &Catalog, table: u32) -> String {
    let Some(relation) = catalog.relation(table) else {
        return String::new();
    };
    let name = relation.display_quoted();
    let has_children = relation.kind == 'r' && catalog.tree(table).len() > 1;
    if has_children {
        format!("only {name}")
    } else {
        name
    }
}

fn displays(catalog: &Catalog, tables: &BTreeSet<u32>) -> String {
    let names: Vec<String> = tables.iter().map(|table| catalog.display(*table)).collect();
    names.join(", ")
}
