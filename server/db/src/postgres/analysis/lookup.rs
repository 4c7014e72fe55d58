//! Asks the catalogs for what one query needs of them.

use tokio_postgres::Client;
use tokio_postgres::types::ToSql;

use super::functions::{Function, Role};
use crate::SqlError;
use crate::postgres::server_error::refused;

/// Functions by their oids, and by the operators and types that use them.
#[derive(Default)]
pub(crate) struct FunctionLookup {
    pub(crate) functions: Vec<u32>,
    pub(crate) operators: Vec<u32>,
    pub(crate) inputs: Vec<u32>,
    pub(crate) outputs: Vec<u32>,
}

impl FunctionLookup {
    pub(crate) fn is_empty(&self) -> bool {
        self.functions.is_empty()
            && self.operators.is_empty()
            && self.inputs.is_empty()
            && self.outputs.is_empty()
    }
}

pub(crate) struct Functions {
    pub(crate) functions: Vec<Function>,
    /// True if a cast to JSON was created, which functions such as `to_json` then use.
    pub(crate) json_casts: bool,
}

/// The first column of each row.
async fn texts(
    client: &Client,
    sql: &str,
    params: &[&(dyn ToSql + Sync)],
) -> Result<Vec<String>, SqlError> {
    let rows = client
        .query(sql, params)
        .await
        .map_err(|error| refused(&error))?;
    Ok(rows.iter().map(|row| row.get(0)).collect())
}

/// The names of relations.
pub(crate) async fn names(client: &Client, oids: &[u32]) -> Result<Vec<String>, SqlError> {
    const NAMES: &str =
        "select c.oid::regclass::text from pg_catalog.pg_class c where c.oid = any ($1) order by 1";
    texts(client, NAMES, &[&oids]).await
}

/// The trees of views, each with the view's oid.
pub(crate) async fn views(client: &Client, oids: &[u32]) -> Result<Vec<(u32, String)>, SqlError> {
    const VIEWS: &str = "select ev_class::oid, ev_action::text from pg_catalog.pg_rewrite where ev_class = any ($1) and ev_type = '1'";
    let rows = client
        .query(VIEWS, &[&oids])
        .await
        .map_err(|error| refused(&error))?;
    Ok(rows.iter().map(|row| (row.get(0), row.get(1))).collect())
}

/// The trees of policies on reading: on tables in `active` if the role is subject to them, on those
/// in `all` in any case.
pub(crate) async fn policies(
    client: &Client,
    active: &[u32],
    all: &[u32],
) -> Result<Vec<String>, SqlError> {
    const POLICIES: &str = "select polqual::text from pg_catalog.pg_policy \
        where polcmd in ('*', 'r') and polqual is not null \
        and (polrelid = any ($2) or polrelid = any ($1) and pg_catalog.row_security_active(polrelid)) order by oid";
    texts(client, POLICIES, &[&active, &all]).await
}

/// Asks the catalogs about functions, each with its use.
pub(crate) async fn functions(
    client: &Client,
    wanted: &FunctionLookup,
) -> Result<Functions, SqlError> {
    const FUNCTIONS: &str = "with used (oid, role) as ( \
          select pg_catalog.unnest($1::oid[]), 'call' \
          union select oprcode::oid, 'call' from pg_catalog.pg_operator where oid = any ($2) \
          union select typinput::oid, 'input' from pg_catalog.pg_type where oid = any ($3) \
          union select typoutput::oid, 'output' from pg_catalog.pg_type where oid = any ($4)) \
        select p.oid, n.nspname::text, p.proname::text, p.provolatile::text, l.lanname::text, p.prokind = 'a', p.prosqlbody::text, u.role, \
          exists (select from pg_catalog.pg_cast where oid >= 16384 and casttarget in (114, 3802)), \
          case when l.lanname = 'sql' and p.prosqlbody is null and p.prokind = 'f' and p.oid >= 16384 \
            and not p.prosecdef and p.proconfig is null and p.proargmodes is null then \
            array[pg_catalog.pg_get_function_identity_arguments(p.oid), pg_catalog.pg_get_function_result(p.oid), p.prosrc] end, \
          exists (select from pg_catalog.pg_cast c where c.oid >= 16384 and c.castfunc <> 0 and c.castcontext <> 'e' \
            and (c.casttarget = p.prorettype or c.casttarget = any (p.proallargtypes) or c.casttarget in \
              (select a.atttypid from pg_catalog.pg_type t join pg_catalog.pg_attribute a on a.attrelid = t.typrelid where t.oid = p.prorettype))) \
        from used u join pg_catalog.pg_proc p on p.oid = u.oid \
          join pg_catalog.pg_namespace n on n.oid = p.pronamespace join pg_catalog.pg_language l on l.oid = p.prolang \
        order by p.proname, p.oid";
    let rows = client
        .query(
            FUNCTIONS,
            &[
                &wanted.functions,
                &wanted.operators,
                &wanted.inputs,
                &wanted.outputs,
            ],
        )
        .await
        .map_err(|error| refused(&error))?;
    let functions = rows
        .iter()
        .map(|row| Function {
            oid: row.get(0),
            schema: row.get(1),
            name: row.get(2),
            volatility: row.get::<_, &str>(3).chars().next().unwrap_or('v'),
            language: row.get(4),
            is_aggregate: row.get(5),
            body: row.get(6),
            text: row
                .get::<_, Option<Vec<String>>>(9)
                .and_then(|text| text.try_into().ok()),
            is_cast: row.get(10),
            role: match row.get(7) {
                "input" => Role::Input,
                "output" => Role::Output,
                _ => Role::Call,
            },
        })
        .collect();
    Ok(Functions {
        functions,
        json_casts: rows.first().is_some_and(|row| row.get(8)),
    })
}

/// The functions that aggregates are made of.
pub(crate) async fn made_of(
    client: &Client,
    aggregates: &[u32],
) -> Result<FunctionLookup, SqlError> {
    const PARTS: &str = "select distinct part from pg_catalog.pg_aggregate a, pg_catalog.unnest(array[a.aggtransfn::oid, \
        a.aggfinalfn::oid, a.aggcombinefn::oid, a.aggserialfn::oid, a.aggdeserialfn::oid, a.aggmtransfn::oid, a.aggminvtransfn::oid, \
        a.aggmfinalfn::oid]) part where a.aggfnoid::oid = any ($1) and part <> 0";
    let rows = client
        .query(PARTS, &[&aggregates])
        .await
        .map_err(|error| refused(&error))?;
    Ok(FunctionLookup {
        functions: rows.iter().map(|row| row.get(0)).collect(),
        ..FunctionLookup::default()
    })
}

/// The tables that the owner names in a `-- depends:` line.
pub(crate) async fn tables(client: &Client, names: &[String]) -> Result<Vec<u32>, SqlError> {
    const TABLES: &str = "select pg_catalog.to_regclass(name)::oid from pg_catalog.unnest($1::text[]) with ordinality n (name, place) order by place";
    let rows = client
        .query(TABLES, &[&names])
        .await
        .map_err(|error| refused(&error))?;
    let resolve = |(row, name): (&tokio_postgres::Row, &String)| {
        row.get::<_, Option<u32>>(0).ok_or_else(|| {
            SqlError::new(format!("-- depends: there is no table {name}"))
                .with_hint("write the names of tables or views, separated by commas")
        })
    };
    rows.iter().zip(names).map(resolve).collect()
}
