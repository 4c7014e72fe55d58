//! Which tables have the triggers that record their changes.

use std::collections::{BTreeSet, HashMap, HashSet};

use crate::FeedKind;
use crate::postgres::feed::triggers::function;
use crate::postgres::feed::triggers::objects::{ALL_KINDS, FUNCTION};

/// Each trigger of ours by its table: which kind it is, and whether it is as it must be. `$2` is
/// the body of its function.
///
/// ALWAYS: it fires also where `session_replication_role` says that others do not. Counterexample:
/// *A trigger with WHEN, with a list of columns, or with a function of the same name that was
/// edited records less than everything.*
pub(super) fn triggers() -> String {
    let body = function::in_this_schema("$2");
    let is_guarded = function::IS_GUARDED;
    format!(
        "select 'trigger', array[t.tgrelid::text, t.tgtype::text, (t.tgenabled = 'A' and t.tgqual is null and t.tgattr::text = '' \
         and not t.tgdeferrable and p.prosrc = {body} and {is_guarded} \
         and p.pronamespace = (select n.oid from pg_catalog.pg_namespace n where n.nspname = pg_catalog.current_schema()))::text]::text[] \
         from pg_catalog.pg_trigger t join pg_catalog.pg_proc p on p.oid = t.tgfoid \
         where not t.tgisinternal and p.proname = '{FUNCTION}' \
         union all \
         select 'subscribed', array[srrelid::text] from pg_catalog.pg_subscription_rel"
    )
}

/// Why the feed does not report all changes of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum UnreportedReason {
    Foreign,
    Unlogged,
    Temporary,
    NoPublication,
    IncompletePublication,
    Unpublished,
    Partial,
    /// Some of the triggers that record its changes are missing, or changed, or disabled.
    Unrecorded,
    /// A subscription fills it, which fires no triggers.
    Subscribed,
}

/// State of the triggers in the catalogs.
#[derive(Debug, Default)]
pub(crate) struct Recording {
    /// The kind of feed that the catalogs are read for.
    pub(crate) feed: FeedKind,
    /// The kinds of triggers of each table that are as they must be.
    good: HashMap<u32, i16>,
    /// The tables with any of them.
    tables_with_triggers: BTreeSet<u32>,
    subscribed: HashSet<u32>,
}

impl Recording {
    pub(super) fn new(feed: FeedKind) -> Self {
        Self {
            feed,
            ..Self::default()
        }
    }

    pub(super) fn trigger(&mut self, table: u32, kind: i16, is_good: bool) {
        self.tables_with_triggers.insert(table);
        if is_good {
            *self.good.entry(table).or_default() |= kind;
        }
    }

    pub(super) fn subscribed(&mut self, table: u32) {
        self.subscribed.insert(table);
    }

    /// Why not every change that a statement on this table makes is recorded.
    pub(crate) fn unrecorded_reason(&self, table: u32) -> Option<UnreportedReason> {
        if self.subscribed.contains(&table) {
            return Some(UnreportedReason::Subscribed);
        }
        let good = self.good.get(&table).copied();
        (good != Some(ALL_KINDS)).then_some(UnreportedReason::Unrecorded)
    }

    /// The tables that have a trigger of ours, in any state.
    pub(crate) fn tables_with_triggers(&self) -> &BTreeSet<u32> {
        &self.tables_with_triggers
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_needs_a_good_trigger_of_each_kind() {
        let mut recording = Recording::new(FeedKind::Triggers);
        assert_eq!(
            recording.unrecorded_reason(7),
            Some(UnreportedReason::Unrecorded)
        );
        for kind in [4, 8, 16] {
            recording.trigger(7, kind, true);
        }
        recording.trigger(7, 32, false);
        assert_eq!(
            recording.unrecorded_reason(7),
            Some(UnreportedReason::Unrecorded)
        );
        recording.trigger(7, 32, true);
        assert_eq!(recording.unrecorded_reason(7), None);
        recording.subscribed(7);
        assert_eq!(
            recording.unrecorded_reason(7),
            Some(UnreportedReason::Subscribed)
        );
        assert_eq!(recording.tables_with_triggers().len(), 1);
    }
}
