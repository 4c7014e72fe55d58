//! What the feed by triggers lacks, and what is left of it where another feed is used now.

use std::collections::BTreeSet;

use tokio_postgres::Client;

use crate::postgres::catalog::{Catalog, UnreportedReason};
use crate::postgres::feed::triggers::function;
use crate::postgres::feed::triggers::objects::{self as parts, CHANGES, FUNCTION};
use crate::postgres::server_error::refused;
use crate::{Requirement, SqlError};

/// State of the feed's own tables, and the rights of the role on them.
pub(super) struct Objects {
    /// The schema where they are, or are to be; none if the search path has none.
    schema: Option<String>,
    role: String,
    /// True if all of them exist, with the function as this version makes it and usable only by the
    /// roles that its owner allows.
    complete: bool,
    /// True if any of them is there.
    begun: bool,
    /// True if the role may make or replace them.
    makes: bool,
    /// True if the role may read and tidy the tables.
    reads: bool,
    /// True if the role may give the function to triggers.
    lends: bool,
}

/// The rights are those that [`parts::grant`] gives. A right on what is not there is none.
const OBJECTS: &str = "select pg_catalog.quote_ident(pg_catalog.current_schema()), pg_catalog.quote_ident(current_user), \
    count(*) filter (where n is not null) = 4 and exists (select from f where is_current), \
    count(*) filter (where n is not null) > 0 or exists (select from f), \
    coalesce(pg_catalog.has_schema_privilege(pg_catalog.current_schema(), 'CREATE'), false) \
      and coalesce(bool_and(pg_catalog.pg_has_role(o.owner, 'USAGE')), true) \
      and coalesce((select bool_and(pg_catalog.pg_has_role(f.owner, 'USAGE')) from f), true), \
    coalesce(bool_and(case o.n when '_millpond_change' then pg_catalog.has_table_privilege(o.oid, 'SELECT') \
        and pg_catalog.has_table_privilege(o.oid, 'DELETE') and pg_catalog.has_table_privilege(o.oid, 'TRUNCATE') \
      when '_millpond_node' then pg_catalog.has_table_privilege(o.oid, 'SELECT') and pg_catalog.has_table_privilege(o.oid, 'INSERT') \
        and pg_catalog.has_table_privilege(o.oid, 'UPDATE') and pg_catalog.has_table_privilege(o.oid, 'DELETE') \
      when '_millpond_lost' then pg_catalog.has_table_privilege(o.oid, 'SELECT') and pg_catalog.has_sequence_privilege(o.oid, 'USAGE') \
      else true end), false), \
    coalesce((select bool_and(pg_catalog.has_function_privilege(f.oid, 'EXECUTE')) from f), false) \
    from o";

/// Returns the common table expressions before [`OBJECTS`]. The function is current if it has the
/// body of this version, is guarded, and it is not executable by PUBLIC.
fn with() -> String {
    let body = function::in_this_schema("$1");
    let is_guarded = function::IS_GUARDED;
    format!(
        "with f as (select p.oid, p.proowner as owner, coalesce(p.prosrc = {body} and {is_guarded} and not exists \
         (select from pg_catalog.aclexplode(coalesce(p.proacl, pg_catalog.acldefault('f', p.proowner))) a where a.grantee = 0), false) \
         as is_current from pg_catalog.pg_proc p join pg_catalog.pg_namespace n on n.oid = p.pronamespace \
         where p.proname = '{FUNCTION}' and p.pronargs = 0 and n.nspname = pg_catalog.current_schema()), \
         o as (select c.oid, c.relname as n, c.relowner as owner from pg_catalog.pg_class c \
         join pg_catalog.pg_namespace n on n.oid = c.relnamespace \
         where n.nspname = pg_catalog.current_schema() and ((c.relkind = 'r' and c.relname in ('_millpond_change', '_millpond_node')) \
         or (c.relkind = 'S' and c.relname in ('_millpond_lost', '_millpond_woken'))))"
    )
}

impl Objects {
    pub(super) async fn ask(client: &Client) -> Result<Self, SqlError> {
        let text = tokio_postgres::types::Type::TEXT;
        let ask = async {
            let asked = client
                .prepare_typed(&format!("{} {OBJECTS}", with()), &[text])
                .await?;
            client.query_one(&asked, &[&function::body()]).await
        };
        let row = ask.await.map_err(|error| refused(&error))?;
        Ok(Self {
            schema: row.get(0),
            role: row.get(1),
            complete: row.get(2),
            begun: row.get(3),
            makes: row.get(4),
            reads: row.get(5),
            lends: row.get(6),
        })
    }
}

/// Lists the requirements that are missing so that changes of `tables` are recorded; the role owns
/// those in `owned`.
pub(super) fn missing_requirements(
    objects: &Objects,
    catalog: &Catalog,
    tables: &BTreeSet<u32>,
    owned: &BTreeSet<u32>,
) -> Vec<Requirement> {
    let Some(schema) = &objects.schema else {
        return vec![Requirement::new(
            "the search path has no schema",
            "the table of changes is to be in the first one",
        )];
    };
    let may_use = objects.complete && objects.lends;
    let mut all = Vec::new();
    if !objects.complete {
        all.push(
            Requirement::new(
                format!("{CHANGES} and what belongs to it is missing, or of another version"),
                "triggers record changes there; without it nothing is kept",
            )
            .repaired_by(parts::install(schema), objects.makes),
        );
    } else if !objects.reads {
        all.push(
            Requirement::new(
                format!("the role {} lacks rights on {CHANGES}", objects.role),
                "changes are read there, and removed once all nodes have seen them",
            )
            .repaired_by(parts::grant(schema, &objects.role), false),
        );
    }
    let relatives: BTreeSet<u32> = tables
        .iter()
        .flat_map(|table| catalog.relatives(*table))
        .collect();
    let may_add = may_use || objects.makes;
    let mut unrecorded = Vec::new();
    let mut is_hindered = false;
    for table in relatives {
        let is_own = owned.contains(&table);
        let lacking = table_lacks(catalog, schema, table, is_own && may_add);
        is_hindered |= is_own && !may_add && lacking.is_some();
        unrecorded.extend(lacking);
    }
    if is_hindered && objects.complete {
        all.push(
            Requirement::new(
                format!("the role {} may not execute {FUNCTION}", objects.role),
                "so it cannot give it to the triggers of its tables; the function's owner can let it",
            )
            .repaired_by(parts::lend(schema, &objects.role), false),
        );
    }
    all.extend(unrecorded);
    all
}

fn table_lacks(catalog: &Catalog, schema: &str, table: u32, may_mend: bool) -> Option<Requirement> {
    let relation = catalog.relation(table)?;
    if !matches!((relation.kind, relation.persistence), ('r' | 'p', 'p')) {
        return None;
    }
    let name = relation.display();
    match catalog.recording().unrecorded_reason(table)? {
        UnreportedReason::Subscribed => Some(Requirement::new(
            format!("{name} is filled by a subscription"),
            "that fires no triggers of statements, so results that are read from there cannot be kept",
        )),
        _ => {
            let whose = if may_mend {
                ""
            } else {
                "; only the table's owner can add them, if he may execute the function"
            };
            Some(
                Requirement::new(
                    format!("{name} lacks triggers that record its changes"),
                    format!("results that are read from there cannot be kept{whose}"),
                )
                .repaired_by(parts::watch(schema, &relation.display_quoted()), may_mend),
            )
        }
    }
}

/// Triggers that another feed has no use for.
pub(super) fn leftover_triggers(
    objects: &Objects,
    catalog: &Catalog,
    owned: &BTreeSet<u32>,
) -> Option<Requirement> {
    let schema = objects.schema.as_ref().filter(|_| objects.begun)?;
    let tables_with_triggers = catalog.recording().tables_with_triggers();
    let may_mend = objects.makes && tables_with_triggers.is_subset(owned);
    let tables: Vec<String> = tables_with_triggers
        .iter()
        .filter_map(|table| Some(catalog.relation(*table)?.display_quoted()))
        .collect();
    Some(
        Requirement::new(
            "triggers of the other feed are left",
            "they still record changes that no feed reads",
        )
        .repaired_by(parts::remove(schema, &tables), may_mend),
    )
}
