//! What PostgreSQL's catalogs say about the tables that queries may read.
//!
//! Loaded whole, in one snapshot, and thrown away when the fingerprint has changed. What a
//! statement names is resolved by PostgreSQL's own parser (see [`super::analysis`]), so nothing
//! here is looked up by name.

mod fingerprint;
mod load;
mod recording;
pub(crate) mod types;

use std::collections::{BTreeSet, HashMap, HashSet};

use super::families::Families;
use crate::precision::ValueClass;
use crate::{FeedKind, WrittenSchema};

pub(crate) use fingerprint::{SESSIONS_CHANGED, fingerprint, session_part};
pub(crate) use recording::{Recording, UnreportedReason};

/// Oids below this one are of what PostgreSQL brings itself.
pub(crate) const FIRST_OWN: u32 = 16_384;

/// The catalogs at one moment.
#[derive(Debug, Default)]
pub(crate) struct Catalog {
    /// The tables that depend on each other's changes.
    pub(crate) families: Families,
    publication: Publication,
    recording: Recording,
    relations: HashMap<u32, Relation>,
    /// Tables that inherit from a table or are partitions of it.
    children: HashMap<u32, Vec<u32>>,
    parents: HashMap<u32, Vec<u32>>,
    /// The first columns of indexes on all rows, with their tables, and the functions of these that
    /// are indexed instead.
    indexed: HashSet<(u32, i16, Option<&'static str>)>,
    /// Columns that are alone in a unique index and never null.
    unique: HashSet<(u32, i16)>,
    /// CHECK constraints, by their tables.
    checks: HashMap<u32, Vec<(String, Vec<String>)>>,
    /// The names of other constraints and of unique indexes, by their tables.
    constraints: HashMap<u32, BTreeSet<String>>,
    /// The type beneath each domain.
    domains: HashMap<u32, u32>,
    /// Collations in which texts may be equal that are not the same bytes.
    nondeterministic: HashSet<u32>,
}

/// The publication that the feed reads.
#[derive(Debug, Default)]
pub(crate) struct Publication {
    pub(crate) name: String,
    pub(crate) exists: bool,
    /// Inserts, updates, deletes and truncations.
    pub(crate) complete: bool,
    /// Generated columns are left out, and the server refuses to update or delete rows whose
    /// identity has one: PostgreSQL 18 or later, without `publish_generated_columns = stored`.
    pub(crate) lacks_generated: bool,
    tables: HashSet<u32>,
    /// Tables of which the publication leaves out rows or columns.
    partial: HashSet<u32>,
}

/// A table, a view, a sequence.
#[derive(Debug)]
pub(crate) struct Relation {
    pub(crate) oid: u32,
    pub(crate) schema: String,
    pub(crate) name: String,
    /// As in `pg_class.relkind`.
    pub(crate) kind: char,
    /// As in `pg_class.relpersistence`.
    pub(crate) persistence: char,
    pub(crate) identity: Identity,
    pub(crate) row_security: bool,
    pub(crate) is_partition: bool,
    /// True if its name alone finds it, with the session's search path.
    pub(crate) is_visible: bool,
    /// True if the session's role may read it.
    pub(crate) may_select: bool,
    /// True if it had few rows when the catalogs were read.
    pub(crate) is_small: bool,
    pub(crate) columns: Vec<CatalogColumn>,
}

/// Values of former rows that the feed reports (REPLICA IDENTITY).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Identity {
    /// Everything.
    Full,
    /// The columns that are marked.
    Columns,
    /// Nothing: PostgreSQL refuses to update a published table.
    None,
}

/// A column of a table.
#[derive(Debug)]
pub(crate) struct CatalogColumn {
    pub(crate) number: i16,
    pub(crate) name: String,
    /// Its type's oid, which may be a domain's.
    pub(crate) type_oid: u32,
    pub(crate) collation: u32,
    pub(crate) is_generated: bool,
    /// Generated and not stored.
    pub(crate) is_virtual: bool,
    /// True if the feed reports its old value also where the rest of a row is not reported.
    pub(crate) in_identity: bool,
}

impl Catalog {
    pub(crate) fn recording(&self) -> &Recording {
        &self.recording
    }

    pub(crate) fn publication(&self) -> &Publication {
        &self.publication
    }

    /// The constraints of tables that a statement names. Keys need not be here: the server names
    /// their columns when they are violated.
    pub(crate) fn written_schema(&self, tables: &[u32]) -> WrittenSchema {
        let checks = tables.iter().filter_map(|table| self.checks.get(table));
        let names = tables.iter();
        let names = names.filter_map(|table| self.constraints.get(table));
        WrittenSchema {
            references: Vec::new(),
            checks: checks.flatten().cloned().collect(),
            keys: Vec::new(),
            names: names.flatten().cloned().collect(),
        }
    }

    /// A relation by its oid; none of PostgreSQL's own.
    pub(crate) fn relation(&self, oid: u32) -> Option<&Relation> {
        self.relations.get(&oid)
    }

    /// The relation's name as the owner would write it.
    pub(crate) fn display(&self, oid: u32) -> String {
        self.relation(oid)
            .map_or_else(|| format!("relation {oid}"), Relation::display)
    }

    /// The table and everything that a query on it reads with it.
    pub(crate) fn tree(&self, oid: u32) -> BTreeSet<u32> {
        let mut tree = BTreeSet::from([oid]);
        let mut open = vec![oid];
        while let Some(next) = open.pop() {
            for child in self.children.get(&next).into_iter().flatten() {
                if tree.insert(*child) {
                    open.push(*child);
                }
            }
        }
        tree
    }

    /// Why not all changes to the rows that a query on the table reads are told, and of which of
    /// its parts.
    pub(crate) fn unreported(&self, oid: u32) -> Option<(u32, UnreportedReason)> {
        let own = self.tree(oid).into_iter().find_map(|part| {
            let relation = self.relation(part)?;
            let reason = match (relation.kind, relation.persistence) {
                ('f', _) => UnreportedReason::Foreign,
                (_, 'u') => UnreportedReason::Unlogged,
                (_, 't') => UnreportedReason::Temporary,
                // It has no rows of its own.
                ('p', _) => return None,
                _ if self.recording.feed == FeedKind::Triggers => return None,
                _ => self.unpublished(part)?,
            };
            Some((part, reason))
        });
        own.or_else(|| self.unrecorded(oid))
    }

    /// Tables whose rows a statement on one of them may change: what inheritance connects, in both
    /// directions.
    pub(crate) fn relatives(&self, oid: u32) -> BTreeSet<u32> {
        let mut relatives = BTreeSet::from([oid]);
        let mut open = vec![oid];
        while let Some(next) = open.pop() {
            let below = self.children.get(&next).into_iter().flatten();
            let above = self.parents.get(&next).into_iter().flatten();
            for relative in below.chain(above) {
                if relatives.insert(*relative) {
                    open.push(*relative);
                }
            }
        }
        relatives
    }

    /// Returns a relative of the table whose triggers are missing: those of the table that a
    /// statement names fire, so all relatives need their own.
    fn unrecorded(&self, oid: u32) -> Option<(u32, UnreportedReason)> {
        if self.recording.feed != FeedKind::Triggers {
            return None;
        }
        self.relatives(oid).into_iter().find_map(|part| {
            let relation = self.relation(part)?;
            let has_triggers = matches!(relation.kind, 'r' | 'p');
            let reason = self
                .recording
                .unrecorded_reason(part)
                .filter(|_| has_triggers)?;
            Some((part, reason))
        })
    }

    fn unpublished(&self, table: u32) -> Option<UnreportedReason> {
        let publication = &self.publication;
        if !publication.exists {
            return Some(UnreportedReason::NoPublication);
        }
        if !publication.complete {
            return Some(UnreportedReason::IncompletePublication);
        }
        let line = self.partition_line(table);
        if line.iter().any(|table| publication.partial.contains(table)) {
            return Some(UnreportedReason::Partial);
        }
        let is_published = line.iter().any(|table| publication.tables.contains(table));
        (!is_published).then_some(UnreportedReason::Unpublished)
    }

    /// The table and what it is a partition of, up to the root. A child that merely inherits is not
    /// published with its parent.
    fn partition_line(&self, table: u32) -> Vec<u32> {
        let mut line = vec![table];
        let mut current = table;
        while self
            .relation(current)
            .is_some_and(|relation| relation.is_partition)
        {
            match self.parents.get(&current).and_then(|all| all.first()) {
                Some(parent) if !line.contains(parent) => current = *parent,
                _ => break,
            }
            line.push(current);
        }
        line
    }

    /// True if the feed reports the column's old value for every row that a query on the table
    /// reads.
    pub(crate) fn reports_old_values(&self, oid: u32, column: &str) -> bool {
        if self.recording.feed == FeedKind::Triggers {
            // Triggers are given rows as they were.
            return true;
        }
        self.tree(oid).into_iter().all(|part| {
            let Some(relation) = self.relation(part).filter(|part| part.kind == 'r') else {
                return true;
            };
            match relation.identity {
                Identity::Full => true,
                Identity::None => false,
                Identity::Columns => relation
                    .columns
                    .iter()
                    .any(|found| found.name == column && found.in_identity),
            }
        })
    }

    /// True if an index finds the rows of a table by the value of a column.
    pub(crate) fn is_indexed(
        &self,
        table: u32,
        column: i16,
        function: Option<&'static str>,
    ) -> bool {
        self.indexed.contains(&(table, column, function))
    }

    /// True if no two rows that a reference to the table reads have the same value of a column.
    pub(crate) fn is_unique(&self, table: &Relation, column: i16) -> bool {
        let has_children = table.kind != 'p' && self.tree(table.oid).len() > 1;
        !has_children && self.unique.contains(&(table.oid, column))
    }

    /// The type beneath, if it is a domain.
    pub(crate) fn base_type(&self, mut type_oid: u32) -> u32 {
        while let Some(base) = self.domains.get(&type_oid) {
            type_oid = *base;
        }
        type_oid
    }

    /// Returns the statements that make the server report whole old rows of tables, or nothing
    /// where it would refuse to update them: no publication has a virtual column
    /// (<https://www.postgresql.org/docs/18/logical-replication-gencols.html>).
    pub(crate) fn full_identity<'a>(
        &self,
        tables: impl IntoIterator<Item = &'a Relation>,
    ) -> Option<String> {
        let tables: Vec<&Relation> = tables.into_iter().collect();
        if tables.iter().any(|table| table.has_virtual_column()) {
            return None;
        }
        let is_refused = |table: &&Relation| table.has_stored_column();
        let publishing = self.publication.lacks_generated && tables.iter().any(is_refused);
        let publishing = publishing.then(|| self.publish_stored());
        let identities = tables.iter().map(|table| {
            format!(
                "alter table {} replica identity full",
                table.display_quoted()
            )
        });
        let all: Vec<String> = publishing.into_iter().chain(identities).collect();
        Some(all.join("; "))
    }

    /// True if the server refuses to update or delete rows of the table while it is published, as
    /// the publication leaves out a column of their identity.
    pub(crate) fn refuses_changes(&self, table: &Relation) -> bool {
        let is_full = table.identity == Identity::Full;
        let is_left_out = |column: &CatalogColumn| {
            let is_stored = column.is_generated && !column.is_virtual;
            self.publication.lacks_generated && is_stored && (is_full || column.in_identity)
        };
        table.columns.iter().any(is_left_out) || table.is_barred()
    }

    /// The statement by which the publication has generated columns.
    pub(crate) fn publish_stored(&self) -> String {
        format!(
            "alter publication {} set (publish_generated_columns = stored)",
            self.publication.quoted()
        )
    }

    /// True if texts that are equal in the collation are the same bytes.
    pub(crate) fn is_deterministic(&self, collation: u32) -> bool {
        !self.nondeterministic.contains(&collation)
    }

    /// How the equality of a column's values can be put into one form, if it can (coherence.md,
    /// rule 11). The feed does not report generated columns.
    pub(crate) fn class(&self, column: &CatalogColumn) -> Option<ValueClass> {
        if column.is_generated {
            return None;
        }
        self.class_of(column.type_oid, column.collation)
    }

    /// Returns how the equality of any values of a type, in a collation, can be put into one form,
    /// if it can.
    pub(crate) fn class_of(&self, type_oid: u32, collation: u32) -> Option<ValueClass> {
        match self.base_type(type_oid) {
            types::INT2 | types::INT4 | types::INT8 => Some(ValueClass::Integer),
            types::TEXT | types::VARCHAR => {
                self.is_deterministic(collation).then_some(ValueClass::Text)
            }
            types::UUID => Some(ValueClass::Uuid),
            types::BOOL => Some(ValueClass::Boolean),
            _ => None,
        }
    }
}

impl Publication {
    /// The name as SQL.
    pub(crate) fn quoted(&self) -> String {
        format!("\"{}\"", self.name.replace('"', "\"\""))
    }
}

impl Relation {
    /// The name as the owner would write it.
    pub(crate) fn display(&self) -> String {
        if self.is_visible {
            self.name.clone()
        } else {
            format!("{}.{}", self.schema, self.name)
        }
    }

    /// The name as SQL, quoted so that any letters are valid.
    pub(crate) fn quoted(&self) -> String {
        let quote = |name: &str| format!("\"{}\"", name.replace('"', "\"\""));
        format!("{}.{}", quote(&self.schema), quote(&self.name))
    }

    /// True if the server refuses to update or delete rows of the table in any publication.
    pub(crate) fn is_barred(&self) -> bool {
        self.identity == Identity::Full && self.has_virtual_column()
    }

    /// True if a column is generated from others and stored in its rows.
    pub(crate) fn has_stored_column(&self) -> bool {
        let mut columns = self.columns.iter();
        columns.any(|column| column.is_generated && !column.is_virtual)
    }

    /// True if a column is generated from others whenever it is read: no publication has it.
    pub(crate) fn has_virtual_column(&self) -> bool {
        self.columns.iter().any(|column| column.is_virtual)
    }

    /// The shortest name that is right in SQL.
    pub(crate) fn display_quoted(&self) -> String {
        let is_plain = |name: &str| {
            name.starts_with(|c: char| c.is_ascii_lowercase() || c == '_')
                && name
                    .chars()
                    .all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_')
        };
        if is_plain(&self.name) && (self.is_visible || is_plain(&self.schema)) {
            self.display()
        } else {
            self.quoted()
        }
    }

    pub(crate) fn column(&self, number: i16) -> Option<&CatalogColumn> {
        self.columns.iter().find(|column| column.number == number)
    }
}
