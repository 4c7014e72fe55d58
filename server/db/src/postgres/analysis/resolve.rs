//! Follows what a query names, through views, policies and the bodies of functions, down to tables
//! whose changes the feed reports.

use std::collections::{BTreeMap, BTreeSet};

use tokio_postgres::Client;

use super::functions::{self, Function, Verdict};
use super::nodes;
use super::restrict::Restriction;
use super::walk::{self, TreeNames};
use super::{Depends, lookup};
use crate::SqlError;
use crate::advice::Cause;
use crate::postgres::catalog::{Catalog, FIRST_OWN, Relation, UnreportedReason};

/// How often one thing may stand behind another.
const MAX_ROUNDS: usize = 32;

/// What a query reads in the end.
#[derive(Debug, Default)]
pub(crate) struct Readings {
    /// References in the query's own text, by table.
    pub(crate) direct: BTreeMap<u32, Vec<Vec<Restriction>>>,
    /// Why some of them are not restricted.
    pub(crate) causes: BTreeMap<u32, Cause>,
    /// Tables that are reached through something else.
    pub(crate) whole: BTreeMap<u32, Cause>,
    /// What is read besides tables whose changes are reported.
    pub(crate) others: BTreeSet<u32>,
    /// Whether it may read unknown tables.
    pub(crate) is_partial: bool,
    /// Everything that the query's own text names.
    pub(crate) named: BTreeSet<u32>,
    pub(crate) objections: Vec<String>,
}

/// Follows what `names` has.
pub(crate) async fn follow(
    client: &Client,
    catalog: &Catalog,
    names: TreeNames,
    depends: &Depends<'_>,
) -> Result<Readings, SqlError> {
    let mut search = DependencySearch {
        catalog,
        depends,
        readings: Readings::default(),
        seen: VisitedObjects::default(),
        origin: String::new(),
    };
    search.readings.is_partial = names.is_partial;
    search
        .readings
        .objections
        .extend(names.objections.iter().cloned());
    search.readings.named.extend(names.relations.keys());
    search.readings.causes.clone_from(&names.causes);
    let mut round = search.take(names, true);
    if let Some(owners) = depends {
        "the functions of its \"-- depends:\"".clone_into(&mut search.origin);
        for table in lookup::tables(client, owners).await? {
            search.relation(table, Vec::new(), false, &mut round);
        }
    }
    for _ in 0..MAX_ROUNDS {
        if round.is_empty() {
            return Ok(search.readings);
        }
        let trees = search.expand(client, round).await?;
        let mut behind = TreeNames::default();
        for tree in &trees {
            match nodes::parse(tree) {
                Some(tree) => walk::names(&tree, catalog, &mut behind),
                None => {
                    search.readings.is_partial = true;
                    search.object("something in it is in a form that Millpond does not know");
                }
            }
        }
        search.readings.is_partial |= behind.is_partial;
        search.readings.objections.append(&mut behind.objections);
        round = search.take(behind, false);
    }
    search.readings.is_partial = true;
    search.object("views and functions are nested too deeply");
    Ok(search.readings)
}

/// What has been looked at.
#[derive(Default)]
struct VisitedObjects {
    expanded: BTreeSet<u32>,
    secured: BTreeSet<u32>,
    functions: BTreeSet<u32>,
    operators: BTreeSet<u32>,
    inputs: BTreeSet<u32>,
    outputs: BTreeSet<u32>,
}

/// What has to be asked for.
#[derive(Default)]
struct PendingLookups {
    views: Vec<u32>,
    /// Tables with row security that the query names itself: its policies count if the role is
    /// subject to them.
    secured: Vec<u32>,
    /// The same behind a view, whose owner may be another role.
    secured_behind: Vec<u32>,
    system: Vec<u32>,
    functions: lookup::FunctionLookup,
}

impl PendingLookups {
    fn is_empty(&self) -> bool {
        self.views.is_empty()
            && self.secured.is_empty()
            && self.secured_behind.is_empty()
            && self.system.is_empty()
            && self.functions.is_empty()
    }
}

struct DependencySearch<'a> {
    catalog: &'a Catalog,
    depends: &'a Depends<'a>,
    readings: Readings,
    seen: VisitedObjects,
    /// Behind what it looks now.
    origin: String,
}

impl DependencySearch<'_> {
    fn take(&mut self, names: TreeNames, direct: bool) -> PendingLookups {
        let mut round = PendingLookups::default();
        for (oid, references) in names.relations {
            self.relation(oid, references, direct, &mut round);
        }
        let fresh = |new: BTreeSet<u32>, seen: &mut BTreeSet<u32>| {
            new.into_iter().filter(|oid| seen.insert(*oid)).collect()
        };
        round.functions = lookup::FunctionLookup {
            functions: fresh(names.functions, &mut self.seen.functions),
            operators: fresh(names.operators, &mut self.seen.operators),
            inputs: fresh(names.inputs, &mut self.seen.inputs),
            outputs: fresh(names.outputs, &mut self.seen.outputs),
        };
        round
    }

    fn relation(
        &mut self,
        oid: u32,
        references: Vec<Vec<Restriction>>,
        direct: bool,
        round: &mut PendingLookups,
    ) {
        if oid < FIRST_OWN {
            round.system.push(oid);
            return;
        }
        let catalog = self.catalog;
        let Some(relation) = catalog.relation(oid) else {
            return self.object("it reads a table that was not there when the catalogs were read");
        };
        match relation.kind {
            'v' => {
                if self.seen.expanded.insert(oid) {
                    round.views.push(oid);
                }
            }
            'r' | 'p' if catalog.families.of(oid).is_some() => {
                if let Some((part, reason)) = catalog.unreported(oid) {
                    self.object(unreported(catalog, part, &reason));
                }
                if direct {
                    self.readings
                        .direct
                        .entry(oid)
                        .or_default()
                        .extend(references);
                } else {
                    let cause = Cause::Behind(self.origin.clone());
                    self.readings.whole.entry(oid).or_insert(cause);
                }
                let secured = catalog
                    .tree(oid)
                    .into_iter()
                    .filter(|part| catalog.relation(*part).is_some_and(|r| r.row_security));
                for part in secured {
                    if direct {
                        round.secured.push(part);
                    } else if self.seen.secured.insert(part) {
                        round.secured_behind.push(part);
                    }
                }
            }
            _ => {
                self.readings.others.insert(oid);
                self.object(no_table(relation));
            }
        }
    }

    /// Asks for everything in the round; gives the trees that stand behind it.
    async fn expand(
        &mut self,
        client: &Client,
        round: PendingLookups,
    ) -> Result<Vec<String>, SqlError> {
        let mut trees = Vec::new();
        let views = round.views.iter().map(|view| self.catalog.display(*view));
        let mut origins: Vec<String> = views.map(|name| format!("the view {name}")).collect();
        if !round.secured.is_empty() || !round.secured_behind.is_empty() {
            origins.push("a policy".to_owned());
        }
        if !round.system.is_empty() {
            for name in lookup::names(client, &round.system).await? {
                self.object(format!(
                    "no feed reports changes to PostgreSQL's own tables ({name})"
                ));
            }
        }
        if !round.views.is_empty() {
            trees.extend(lookup::views(client, &round.views).await?);
        }
        if !round.secured.is_empty() || !round.secured_behind.is_empty() {
            trees.extend(lookup::policies(client, &round.secured, &round.secured_behind).await?);
        }
        if !round.functions.is_empty() {
            let found = lookup::functions(client, &round.functions).await?;
            let mut aggregates = Vec::new();
            for function in found.functions {
                let name = format!("the function {}()", function.name);
                if self.function(function, found.json_casts, &mut trees, &mut aggregates) {
                    origins.push(name);
                }
            }
            if !aggregates.is_empty() {
                let made_of = lookup::made_of(client, &aggregates).await?;
                let parts = lookup::functions(client, &made_of).await?;
                for function in parts.functions {
                    self.function(function, parts.json_casts, &mut trees, &mut Vec::new());
                }
            }
        }
        self.origin = origins.join(" or ");
        Ok(trees)
    }

    /// Whether its body is to be looked into.
    fn function(
        &mut self,
        function: Function,
        json_casts: bool,
        trees: &mut Vec<String>,
        aggregates: &mut Vec<u32>,
    ) -> bool {
        match functions::judge(&function, self.depends, json_casts) {
            Verdict::Fine => {}
            Verdict::Aggregate => aggregates.push(function.oid),
            Verdict::Body => {
                if self.seen.expanded.insert(function.oid) {
                    trees.extend(function.body);
                    return true;
                }
            }
            Verdict::Objection(reason) => {
                self.readings.is_partial |= function.oid >= FIRST_OWN;
                self.object(reason);
            }
        }
        false
    }

    fn object(&mut self, reason: impl Into<String>) {
        self.readings.objections.push(reason.into());
    }
}

/// Why a relation that is neither a table nor a view makes a query uncacheable.
fn no_table(relation: &Relation) -> String {
    let name = relation.display();
    match relation.kind {
        'm' => format!(
            "{name} is a materialized view, whose refreshes no feed reports; read a plain view or a table"
        ),
        'f' => format!("{name} is a foreign table, whose changes no feed reports"),
        'S' => format!("{name} is a sequence, whose changes no feed reports"),
        _ => format!("{name} is not a table whose changes a feed reports"),
    }
}

/// Why the feed does not report all changes to a table, and what to do.
fn unreported(catalog: &Catalog, table: u32, reason: &UnreportedReason) -> String {
    let name = catalog.display(table);
    let publication = &catalog.publication().name;
    match reason {
        UnreportedReason::Foreign => {
            format!("{name} is a foreign table, whose changes no feed reports")
        }
        UnreportedReason::Unlogged => format!(
            "{name} is UNLOGGED, so no feed reports its changes; \"alter table {name} set logged\" has them in the log, at the cost of each write"
        ),
        UnreportedReason::Temporary => {
            format!("{name} is a temporary table, whose changes no feed reports")
        }
        UnreportedReason::NoPublication => {
            format!("there is no publication {publication}; \"millpond check --fix\" makes it")
        }
        UnreportedReason::IncompletePublication => {
            format!("the publication {publication} leaves out some kinds of changes")
        }
        UnreportedReason::Unpublished => format!(
            "{name} is not in the publication {publication}; \"millpond check --fix\" adds it"
        ),
        UnreportedReason::Partial => {
            format!("the publication {publication} leaves out rows or columns of {name}")
        }
        UnreportedReason::Unrecorded => format!(
            "{name} lacks triggers that record its changes; \"millpond check --fix\" installs them"
        ),
        UnreportedReason::Subscribed => {
            format!("{name} is filled by a subscription, which fires no triggers")
        }
    }
}
