//! Follows what a query names, through views, policies and the bodies of functions, down to tables
//! whose changes the feed reports.

use std::collections::{BTreeMap, BTreeSet};

use tokio_postgres::Client;

use super::functions::{self, Function, Verdict};
use super::nodes::{self, TreeNode};
use super::restriction::Restriction;
use super::walk::{self, TreeNames};
use super::witness::Asked;
use super::{Depends, lookup, tree};
use crate::SqlError;
use crate::advice::Cause;
use crate::column_set::ColumnSet;
use crate::postgres::catalog::{Catalog, FIRST_OWN, Relation, UnreportedReason};
use crate::precision::Moved;

/// How often one thing may stand behind another.
const MAX_ROUNDS: usize = 32;

/// References to one view with other equalities each that are looked at by themselves. Views that
/// read views several times over have more references than a query has words.
const MAX_VIEW_REFERENCES: usize = 16;

/// Relations that a query reads in the end.
#[derive(Debug, Default)]
pub(crate) struct Readings {
    /// References in the query's own text and in that of views, by table.
    pub(crate) direct: BTreeMap<u32, Vec<Vec<Restriction>>>,
    /// Why some of them are not restricted.
    pub(crate) causes: BTreeMap<u32, Cause>,
    /// The columns of these tables that are read.
    pub(crate) reads: BTreeMap<u32, ColumnSet>,
    /// A choice is made among rows that may be equal in these columns.
    pub(crate) chooses: bool,
    /// Tables that are reached through something else.
    pub(crate) whole: BTreeMap<u32, Cause>,
    /// Relations that are read besides tables whose changes are reported.
    pub(crate) others: BTreeSet<u32>,
    /// True if it may read unknown tables.
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
    asked: &mut Asked,
) -> Result<Readings, SqlError> {
    let mut search = DependencySearch {
        catalog,
        depends,
        asked,
        readings: Readings::default(),
        seen: VisitedObjects::default(),
        views: BTreeMap::new(),
    };
    let named = names.relations.keys().chain(names.views.keys());
    search.readings.named.extend(named);
    search.readings.causes.clone_from(&names.causes);
    let mut round = PendingLookups::default();
    search.take(names, &Place::Query, &mut round);
    if let Some(owners) = depends {
        let line = Place::Behind("the functions of its \"-- depends:\"".to_owned());
        for table in lookup::tables(client, owners).await? {
            search.relation(table, vec![Vec::new()], &line, &mut round);
        }
    }
    for _ in 0..MAX_ROUNDS {
        if round.is_empty() {
            return Ok(search.readings);
        }
        let found = search.expand(client, round).await?;
        round = PendingLookups::default();
        for (place, names) in found {
            search.take(names, &place, &mut round);
        }
    }
    search.readings.is_partial = true;
    search.object("views and functions are nested too deeply");
    Ok(search.readings)
}

/// Place at which a relation is named.
enum Place {
    /// In the query's own text.
    Query,
    /// In the text of the view with this name, which the query or another such view reads. The
    /// equalities on the reference are known.
    View(String),
    /// In what this says, where nothing is narrowed: `$1` in a function is not the query's.
    Behind(String),
}

/// Objects that have been looked at.
#[derive(Default)]
struct VisitedObjects {
    /// Functions and views, as a whole.
    expanded: BTreeSet<u32>,
    /// The equalities with which views have been looked at.
    views: BTreeMap<u32, Vec<Vec<Moved>>>,
    secured: BTreeSet<u32>,
    functions: BTreeSet<u32>,
    operators: BTreeSet<u32>,
    inputs: BTreeSet<u32>,
    outputs: BTreeSet<u32>,
}

/// Objects that have to be asked for.
#[derive(Default)]
struct PendingLookups {
    /// Views with the equalities on one of their references.
    views: Vec<(u32, Vec<Moved>)>,
    /// Views of which all rows count.
    views_behind: Vec<u32>,
    /// Tables with row security that the query names itself: its policies count if the role is
    /// subject to them.
    secured: Vec<u32>,
    /// Tables with row security behind a view, whose owner may be another role.
    secured_behind: Vec<u32>,
    system: Vec<u32>,
    functions: lookup::FunctionLookup,
}

impl PendingLookups {
    fn is_empty(&self) -> bool {
        self.views.is_empty()
            && self.views_behind.is_empty()
            && self.secured.is_empty()
            && self.secured_behind.is_empty()
            && self.system.is_empty()
            && self.functions.is_empty()
    }
}

struct DependencySearch<'a> {
    catalog: &'a Catalog,
    depends: &'a Depends<'a>,
    asked: &'a mut Asked,
    readings: Readings,
    seen: VisitedObjects,
    /// The trees of views that have been asked for.
    views: BTreeMap<u32, TreeNode>,
}

impl DependencySearch<'_> {
    fn take(&mut self, mut names: TreeNames, place: &Place, round: &mut PendingLookups) {
        self.readings.is_partial |= names.is_partial;
        self.readings.objections.append(&mut names.objections);
        self.readings.chooses |= names.chooses;
        for (oid, read) in names.reads {
            let known = self.readings.reads.get(&oid);
            let all = known.map_or(read.clone(), |known| known.union(&read));
            self.readings.reads.insert(oid, all);
        }
        for (oid, references) in names.relations {
            self.relation(oid, references, place, round);
        }
        for (view, references) in names.views {
            for equalities in references {
                self.view(view, equalities, place, round);
            }
        }
        let add = |new: BTreeSet<u32>, seen: &mut BTreeSet<u32>, into: &mut Vec<u32>| {
            into.extend(new.into_iter().filter(|oid| seen.insert(*oid)));
        };
        let (seen, into) = (&mut self.seen, &mut round.functions);
        add(names.functions, &mut seen.functions, &mut into.functions);
        add(names.operators, &mut seen.operators, &mut into.operators);
        add(names.inputs, &mut seen.inputs, &mut into.inputs);
        add(names.outputs, &mut seen.outputs, &mut into.outputs);
    }

    fn relation(
        &mut self,
        oid: u32,
        references: Vec<Vec<Restriction>>,
        place: &Place,
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
            'v' => self.view(oid, Vec::new(), place, round),
            'r' | 'p' if catalog.families.of(oid).is_some() => {
                if let Some((part, reason)) = catalog.unreported(oid) {
                    self.object(unreported(catalog, part, &reason));
                }
                self.references(oid, references, place);
                let secured = catalog
                    .tree(oid)
                    .into_iter()
                    .filter(|part| catalog.relation(*part).is_some_and(|r| r.row_security));
                for part in secured {
                    if matches!(place, Place::Query) {
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

    /// Notes the references to a table.
    fn references(&mut self, table: u32, references: Vec<Vec<Restriction>>, place: &Place) {
        match place {
            Place::Behind(what) => {
                let cause = Cause::Behind(what.clone());
                self.readings.whole.entry(table).or_insert(cause);
                return;
            }
            Place::View(name) if references.iter().any(Vec::is_empty) => {
                let known = self.readings.causes.remove(&table);
                let cause = known.max(Some(Cause::View(name.clone())));
                self.readings
                    .causes
                    .extend(cause.map(|cause| (table, cause)));
            }
            Place::View(_) | Place::Query => {}
        }
        let known = self.readings.direct.entry(table).or_default();
        for reference in references {
            if !known.contains(&reference) {
                known.push(reference);
            }
        }
    }

    /// Has a view looked at for a reference with these equalities on its columns.
    fn view(
        &mut self,
        oid: u32,
        mut equalities: Vec<Moved>,
        place: &Place,
        round: &mut PendingLookups,
    ) {
        if matches!(place, Place::Behind(_)) {
            if self.seen.expanded.insert(oid) {
                round.views_behind.push(oid);
            }
            return;
        }
        let known = self.seen.views.entry(oid).or_default();
        if known.len() >= MAX_VIEW_REFERENCES {
            equalities.clear();
        }
        // A reference without equalities depends on all that one with equalities depends on.
        if !known
            .iter()
            .any(|known| known.is_empty() || *known == equalities)
        {
            known.push(equalities.clone());
            round.views.push((oid, equalities));
        }
    }

    /// Asks for everything in the round; gives what stands behind it.
    async fn expand(
        &mut self,
        client: &Client,
        round: PendingLookups,
    ) -> Result<Vec<(Place, TreeNames)>, SqlError> {
        if !round.system.is_empty() {
            for name in lookup::names(client, &round.system).await? {
                self.object(format!(
                    "no feed reports changes to PostgreSQL's own tables ({name})"
                ));
            }
        }
        self.load_views(client, &round).await?;
        let mut found = Vec::new();
        for (view, equalities) in &round.views {
            let mut names = TreeNames::default();
            if let Some(tree) = self.views.get(view) {
                let tree = (tree, *view);
                walk::names_of_view(tree, equalities, self.catalog, self.asked, &mut names);
            }
            let name = self.catalog.display(*view);
            found.push((Place::View(format!("the view {name}")), names));
        }
        found.push(self.expand_whole(client, &round).await?);
        Ok(found)
    }

    /// Asks for the trees of views that have not been asked for.
    async fn load_views(
        &mut self,
        client: &Client,
        round: &PendingLookups,
    ) -> Result<(), SqlError> {
        let views = round.views.iter().map(|(view, _)| view);
        let views = views.chain(&round.views_behind);
        let wanted = views.filter(|view| !self.views.contains_key(view)).copied();
        let wanted: BTreeSet<u32> = wanted.collect();
        if wanted.is_empty() {
            return Ok(());
        }
        let all: Vec<u32> = wanted.iter().copied().collect();
        for (view, tree) in lookup::views(client, &all).await? {
            self.views
                .extend(nodes::parse(&tree).map(|tree| (view, tree)));
        }
        if wanted.iter().any(|view| !self.views.contains_key(view)) {
            self.object_to_form();
        }
        Ok(())
    }

    /// Asks for functions, policies and views behind these, where nothing is narrowed.
    async fn expand_whole(
        &mut self,
        client: &Client,
        round: &PendingLookups,
    ) -> Result<(Place, TreeNames), SqlError> {
        let views = round.views_behind.iter();
        let mut origins: Vec<String> = views
            .clone()
            .map(|view| format!("the view {}", self.catalog.display(*view)))
            .collect();
        let mut behind = TreeNames::default();
        for tree in views.filter_map(|view| self.views.get(view)) {
            walk::names(tree, self.catalog, &mut behind);
        }
        let mut trees = Vec::new();
        if !round.secured.is_empty() || !round.secured_behind.is_empty() {
            origins.push("a policy".to_owned());
            trees.extend(lookup::policies(client, &round.secured, &round.secured_behind).await?);
        }
        if !round.functions.is_empty() {
            let found = lookup::functions(client, &round.functions).await?;
            let mut aggregates = Vec::new();
            for mut function in found.functions {
                self.look_into(client, &mut function).await?;
                let name = format!("the function {}()", function.name);
                if self.function(function, found.json_casts, &mut trees, &mut aggregates) {
                    origins.push(name);
                }
            }
            if !aggregates.is_empty() {
                let made_of = lookup::made_of(client, &aggregates).await?;
                let parts = lookup::functions(client, &made_of).await?;
                for mut function in parts.functions {
                    self.look_into(client, &mut function).await?;
                    self.function(function, parts.json_casts, &mut trees, &mut Vec::new());
                }
            }
        }
        for tree in &trees {
            match nodes::parse(tree) {
                Some(tree) => walk::names(&tree, self.catalog, &mut behind),
                None => self.object_to_form(),
            }
        }
        Ok((Place::Behind(origins.join(" or ")), behind))
    }

    /// Asks for the tree of a function whose body is a text, unless the owner says what it reads.
    async fn look_into(&self, client: &Client, function: &mut Function) -> Result<(), SqlError> {
        if let Some(text) = function.text.as_ref().filter(|_| self.depends.is_none()) {
            function.body = tree::of_function(client, text).await?;
        }
        Ok(())
    }

    fn object_to_form(&mut self) {
        self.readings.is_partial = true;
        self.object("something in it is in a form that Millpond does not know");
    }

    /// Returns whether its body is to be looked into.
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
            format!("the publication {publication} leaves out rows, columns or TRUNCATEs of {name}")
        }
        UnreportedReason::Unrecorded => format!(
            "{name} lacks triggers that record its changes; \"millpond check --fix\" installs them"
        ),
        UnreportedReason::Subscribed => {
            format!("{name} is filled by a subscription, which fires no triggers")
        }
    }
}
