//! What the server itself and the role lack.

use tokio_postgres::Client;

use crate::postgres::feed::makes_slots;
use crate::postgres::server_error::refused;
use crate::{FeedKind, Requirement, SqlError};

/// Facts about the server itself and the role.
pub(super) struct Facts {
    wal_level: String,
    makes_slots: bool,
    role: String,
    database: String,
    pub(super) superuser: bool,
    replication: bool,
    temporary: bool,
    pub(super) creates: bool,
    pub(super) owns_publication: bool,
    slots: (i64, i64),
    senders: (i64, i64),
    any_standby: bool,
}

const FACTS: &str = "select pg_catalog.current_setting('wal_level'), \
    pg_catalog.quote_ident(current_user), pg_catalog.quote_ident(pg_catalog.current_database()), r.rolsuper, r.rolreplication, \
    pg_catalog.has_database_privilege(pg_catalog.current_database(), 'TEMPORARY'), \
    pg_catalog.has_database_privilege(pg_catalog.current_database(), 'CREATE'), \
    coalesce((select pg_catalog.pg_has_role(p.pubowner, 'USAGE') from pg_catalog.pg_publication p where p.pubname = $1), false), \
    (select count(*) from pg_catalog.pg_replication_slots), pg_catalog.current_setting('max_replication_slots')::bigint, \
    (select count(*) from pg_catalog.pg_stat_replication), pg_catalog.current_setting('max_wal_senders')::bigint, \
    pg_catalog.current_setting('synchronous_standby_names') like '%*%', \
    pg_catalog.current_setting('server_version_num')::integer \
    from pg_catalog.pg_roles r where r.rolname = current_user";

impl Facts {
    pub(super) async fn ask(client: &Client, publication: &str) -> Result<Self, SqlError> {
        let row = client
            .query_one(FACTS, &[&publication])
            .await
            .map_err(|error| refused(&error))?;
        let (wal_level, version): (String, i32) = (row.get(0), row.get(13));
        Ok(Self {
            makes_slots: makes_slots(version.unsigned_abs(), &wal_level),
            wal_level,
            role: row.get(1),
            database: row.get(2),
            superuser: row.get(3),
            replication: row.get(4),
            temporary: row.get(5),
            creates: row.get(6),
            owns_publication: row.get(7),
            slots: (row.get(8), row.get(9)),
            senders: (row.get(10), row.get(11)),
            any_standby: row.get(12),
        })
    }
}

/// `running` says that the feed has its slot already.
pub(super) fn missing_requirements(
    facts: &Facts,
    kind: FeedKind,
    running: bool,
) -> Vec<Requirement> {
    let mut all = Vec::new();
    if kind == FeedKind::Logical {
        replication(facts, &mut all);
    }
    temporary(facts, &mut all);
    if kind == FeedKind::Logical && !running {
        room(facts, &mut all);
    }
    all
}

/// Remedy where logical replication cannot be had.
const OTHERWISE: &str = "where it cannot be had, feed = \"triggers\" in [database] does without it";

fn replication(facts: &Facts, all: &mut Vec<Requirement>) {
    if !facts.makes_slots {
        let mut missing = Requirement::new(
            format!("wal_level is {}, not logical", facts.wal_level),
            format!("without it the server reports no changes, and nothing is kept; {OTHERWISE}"),
        )
        .repaired_by("alter system set wal_level = logical", facts.superuser);
        missing.restart = true;
        all.push(missing);
    }
    if !facts.replication && !facts.superuser {
        all.push(
            Requirement::new(
                format!("the role {} has no REPLICATION right", facts.role),
                format!("the feed of changes is a replication connection; {OTHERWISE}"),
            )
            .repaired_by(format!("alter role {} replication", facts.role), false),
        );
    }
    if facts.any_standby {
        all.push(Requirement::new(
            "synchronous_standby_names has a *",
            "the feed would count as a standby, and commits would wait for it; name the standbys",
        ));
    }
}

fn temporary(facts: &Facts, all: &mut Vec<Requirement>) {
    if !facts.temporary {
        all.push(
            Requirement::new(
                format!("the role {} may make no temporary objects", facts.role),
                "PostgreSQL tells what a query names by a temporary function, which is dropped at once",
            )
            .repaired_by(
                format!(
                    "grant temporary on database {} to {}",
                    facts.database, facts.role
                ),
                false,
            ),
        );
    }
}

/// One slot and one connection have to be free for a feed that does not run yet.
fn room(facts: &Facts, all: &mut Vec<Requirement>) {
    for (setting, what, (used, most)) in [
        ("max_replication_slots", "replication slots", facts.slots),
        ("max_wal_senders", "replication connections", facts.senders),
    ] {
        if used >= most {
            let mut missing = Requirement::new(
                format!("all {most} {what} are in use"),
                "the feed of changes needs one",
            )
            .repaired_by(
                format!("alter system set {setting} = {}", most + 2),
                facts.superuser,
            );
            missing.restart = true;
            all.push(missing);
        }
    }
}
