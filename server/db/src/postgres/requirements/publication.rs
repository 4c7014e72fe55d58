//! What the publication lacks, and the tables that are to be in it.

use std::collections::BTreeSet;

use tokio_postgres::Client;

use super::server::Facts;
use crate::postgres::catalog::{Catalog, Identity, Relation, UnreportedReason};
use crate::postgres::server_error::refused;
use crate::{Requirement, SqlError};

/// Returns the tables that the role owns, so that it may publish them.
pub(super) async fn owned(
    client: &Client,
    catalog: &Catalog,
    tables: &BTreeSet<u32>,
) -> Result<BTreeSet<u32>, SqlError> {
    const OWNED: &str = "select oid from pg_catalog.pg_class where oid = any ($1) and pg_catalog.pg_has_role(relowner, 'USAGE')";
    let all: BTreeSet<u32> = tables
        .iter()
        .flat_map(|table| catalog.relatives(*table))
        .collect();
    let all: Vec<u32> = all.into_iter().collect();
    let rows = client
        .query(OWNED, &[&all])
        .await
        .map_err(|error| refused(&error))?;
    Ok(rows.iter().map(|row| row.get(0)).collect())
}

/// Tables to be published.
struct PublicationTables {
    /// As the owner would write them.
    shown: String,
    /// As they stand in the publication's list.
    entries: String,
    /// True if the role may publish them.
    owned: bool,
    /// True if their identities have generated columns, which are to be published with them.
    generated: bool,
}

impl PublicationTables {
    fn new(
        facts: &Facts,
        catalog: &Catalog,
        tables: &BTreeSet<u32>,
        owned: &BTreeSet<u32>,
    ) -> Self {
        let entries: Vec<String> = tables.iter().map(|table| entry(catalog, *table)).collect();
        Self {
            shown: displays(catalog, tables),
            entries: entries.join(", "),
            owned: facts.superuser || tables.is_subset(owned),
            generated: tables
                .iter()
                .any(|table| parts(catalog, *table).any(|part| catalog.refuses_changes(part))),
        }
    }

    fn whose(&self) -> &'static str {
        if self.owned {
            ""
        } else {
            "; only the tables' owner can add them"
        }
    }
}

/// Lists the requirements that the publication lacks so that results that are read from `tables`
/// may be kept; the role owns those in `owned`.
pub(super) fn missing_requirements(
    facts: &Facts,
    catalog: &Catalog,
    tables: &BTreeSet<u32>,
    owned: &BTreeSet<u32>,
) -> Vec<Requirement> {
    let wanted: BTreeSet<u32> = tables
        .iter()
        .flat_map(|table| missing(catalog, *table))
        .collect();
    let (barred, wanted): (BTreeSet<u32>, BTreeSet<u32>) = wanted
        .into_iter()
        .partition(|table| parts(catalog, *table).any(|part| part.is_barred()));
    let (published, silent): (BTreeSet<u32>, BTreeSet<u32>) = wanted
        .into_iter()
        .partition(|table| unpublished_parts(catalog, *table).is_empty());
    let wanted = PublicationTables::new(facts, catalog, &published, owned);
    let mut all = if catalog.publication().exists {
        existing(facts, catalog, &wanted)
    } else {
        vec![absent(facts, catalog, &wanted)]
    };
    let may_publish = if catalog.publication().exists {
        facts.superuser || facts.owns_publication
    } else {
        wanted.owned && (facts.superuser || facts.creates)
    };
    let owns = |table: u32| facts.superuser || owned.contains(&table);
    all.extend(silent.into_iter().map(|table| {
        let whole = catalog.tree(table);
        // Counterexample: *A partition that is made later has no identity, and as its root is
        // published the server refuses to update it.*
        let is_whole = catalog
            .relation(table)
            .is_some_and(|table| table.kind != 'p');
        let may_fix = may_publish && is_whole && whole.into_iter().all(owns);
        without_identity(catalog, table, may_fix)
    }));
    all.extend(tables.iter().filter_map(|table| partial(catalog, *table)));
    all.extend(unwritable(catalog, tables, may_publish));
    all.extend(barred.into_iter().map(|table| {
        Requirement::new(
            format!("{} cannot be published", catalog.display(table)),
            "its replica identity is full, and no publication has its virtual column: PostgreSQL would refuse to update or delete \
             its rows; give it another identity",
        )
    }));
    all
}

fn existing(facts: &Facts, catalog: &Catalog, wanted: &PublicationTables) -> Vec<Requirement> {
    let publication = catalog.publication();
    let (name, quoted) = (&publication.name, publication.quoted());
    let owns = facts.superuser || facts.owns_publication;
    let mut all = Vec::new();
    if !publication.complete {
        all.push(
            Requirement::new(
                format!("the publication {name} leaves out some kinds of changes"),
                "what it does not tell would be missed, so nothing is kept",
            )
            .repaired_by(
                format!(
                    "alter publication {quoted} set (publish = 'insert, update, delete, truncate')"
                ),
                owns,
            ),
        );
    }
    if !wanted.entries.is_empty() {
        let add = format!("alter publication {quoted} add table {}", wanted.entries);
        all.push(
            Requirement::new(
                format!("the publication {name} lacks {}", wanted.shown),
                format!(
                    "results that are read from there cannot be kept{}",
                    wanted.whose()
                ),
            )
            .repaired_by(
                match wanted.generated {
                    true => format!("{}; {add}", catalog.publish_stored()),
                    false => add,
                },
                owns && wanted.owned,
            ),
        );
    }
    all
}

fn absent(facts: &Facts, catalog: &Catalog, wanted: &PublicationTables) -> Requirement {
    let mut list = if wanted.entries.is_empty() {
        String::new()
    } else {
        format!(" for table {}", wanted.entries)
    };
    if wanted.generated {
        list.push_str(" with (publish_generated_columns = stored)");
    }
    Requirement::new(
        format!("there is no publication {}", catalog.publication().name),
        format!(
            "it says of which tables the server tells changes{}",
            wanted.whose()
        ),
    )
    .repaired_by(
        format!(
            "create publication {}{list}",
            catalog.publication().quoted()
        ),
        wanted.owned && (facts.superuser || facts.creates),
    )
}

/// A table that must not be published as it is: it gets an identity first, in the same transaction.
fn without_identity(catalog: &Catalog, table: u32, may_fix: bool) -> Requirement {
    let parts = unpublished_parts(catalog, table).into_iter();
    let parts = parts.filter_map(|part| catalog.relation(part));
    let what = format!("{} has no replica identity", catalog.display(table));
    let Some(identities) = catalog.full_identity(parts) else {
        return Requirement::new(
            what,
            "it has no primary key, and published as it is PostgreSQL would refuse to update or delete its rows; give it a primary key: \
             with a virtual column PostgreSQL refuses a full identity too",
        );
    };
    let statement = format!(
        "{identities}; alter publication {} add table {}",
        catalog.publication().quoted(),
        entry(catalog, table)
    );
    Requirement::new(
        what,
        "it has no primary key, and published as it is PostgreSQL would refuse to update or delete its rows; \
         a primary key is best, with FULL each update and deletion writes the whole old row to the log",
    )
    .repaired_by(statement, may_fix)
}

/// A table and its parts.
fn parts(catalog: &Catalog, table: u32) -> impl Iterator<Item = &Relation> {
    let parts = catalog.tree(table).into_iter();
    parts.filter_map(|part| catalog.relation(part))
}

/// Lists the tables whose rows PostgreSQL refuses to update, as their identity has a column that
/// the publication leaves out.
fn unwritable(catalog: &Catalog, tables: &BTreeSet<u32>, may_fix: bool) -> Vec<Requirement> {
    let parts: BTreeSet<u32> = tables
        .iter()
        .flat_map(|table| catalog.tree(*table))
        .collect();
    let is_refused = |relation: &&Relation| {
        catalog.unreported(relation.oid).is_none() && catalog.refuses_changes(relation)
    };
    let relations = parts.iter().filter_map(|part| catalog.relation(*part));
    let requirement = |relation: &Relation| {
        let what = format!(
            "PostgreSQL refuses to update or delete rows of {}",
            relation.display()
        );
        if relation.is_barred() {
            let why = "its replica identity is full, and no publication has its virtual column; give it another identity";
            return Requirement::new(what, why);
        }
        let why = "the publication leaves out a generated column of its replica identity";
        Requirement::new(what, why).repaired_by(catalog.publish_stored(), may_fix)
    };
    relations.filter(is_refused).map(requirement).collect()
}

fn partial(catalog: &Catalog, table: u32) -> Option<Requirement> {
    let (part, reason) = catalog.unreported(table)?;
    (reason == UnreportedReason::Partial).then(|| {
        Requirement::new(
            format!(
                "the publication {} leaves out rows, columns or TRUNCATEs of {}",
                catalog.publication().name,
                catalog.display(part)
            ),
            "what it does not tell would be missed; add the table without WHERE and without a list of columns, and set publish_via_partition_root = false",
        )
    })
}

/// Lists the tables that have to be published so that all changes to the rows of a query on the
/// table are told.
fn missing(catalog: &Catalog, table: u32) -> Vec<u32> {
    let missing_requirements = |part: &u32| {
        catalog
            .relation(*part)
            .is_some_and(|relation| relation.kind == 'r')
            && matches!(
                catalog.unreported(*part),
                Some((
                    _,
                    UnreportedReason::Unpublished | UnreportedReason::NoPublication
                ))
            )
            && catalog.unreported(*part).is_some_and(|(of, _)| of == *part)
    };
    let parts: Vec<u32> = catalog
        .tree(table)
        .into_iter()
        .filter(missing_requirements)
        .collect();
    match catalog.relation(table) {
        Some(relation) if relation.kind == 'p' && !parts.is_empty() => vec![table],
        _ => parts,
    }
}

/// The parts of a table whose rows PostgreSQL would no longer update if it were published.
fn unpublished_parts(catalog: &Catalog, table: u32) -> Vec<u32> {
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

/// A table in the list of a publication. ONLY, as children that inherit are in the list by
/// themselves.
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
