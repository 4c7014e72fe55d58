//! What a replica says of itself.

use std::fmt;
use std::sync::LazyLock;

use crate::postgres::read_snapshot::place;
use crate::postgres::shape::Shape;
use crate::{Requirement, Value};

/// Query for the state of a standby: how far it has replayed and received the log, and who receives
/// it, of which timeline.
static SHAPE: LazyLock<Shape> = LazyLock::new(|| {
    Shape::of_texts(
        "select pg_catalog.pg_is_in_recovery()::text as standby, \
         pg_catalog.pg_last_wal_replay_lsn()::text as replayed, \
         pg_catalog.pg_last_wal_receive_lsn()::text as received, \
         (select pid::text from pg_catalog.pg_stat_wal_receiver) as receiver, \
         (select received_tli::text from pg_catalog.pg_stat_wal_receiver) as timeline, \
         current_user::text as role",
        &[
            "standby", "replayed", "received", "receiver", "timeline", "role",
        ],
    )
});

/// The question.
pub(super) fn shape() -> &'static Shape {
    &SHAPE
}

/// The answer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Probe {
    is_standby: bool,
    /// All commits whose records end here or before are shown by later snapshots.
    pub(super) replayed: u64,
    /// Nothing from here on has been received, so nothing of it has been replayed.
    pub(super) received: u64,
    receiver: Option<String>,
    timeline: Option<String>,
    role: String,
}

/// Why a server is no replica that may be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum ReplicaMismatch {
    /// It takes writes.
    Primary,
    /// Its log comes from nowhere, or from files.
    NoReceiver,
    /// The role may not see which timeline it follows.
    Hidden(String),
    /// It follows another timeline than the primary is on.
    Elsewhere,
    /// It is a copy of another database system.
    Stranger,
}

impl Probe {
    /// From the rows; `None` if they make no sense.
    pub(super) fn read(rows: &[Vec<Value>]) -> Option<Self> {
        let [row] = rows else { return None };
        let text = |at: usize| match row.get(at) {
            Some(Value::Text(text)) => Some(text.as_ref()),
            _ => None,
        };
        // Null on a primary, and before anything was received.
        let log = |at: usize| text(at).map_or(Some(0), place);
        Some(Self {
            is_standby: text(0)? == "true",
            replayed: log(1)?,
            received: log(2)?,
            receiver: text(3).map(str::to_owned),
            timeline: text(4).map(str::to_owned),
            role: text(5)?.to_owned(),
        })
    }

    /// Returns the fault that keeps the server from being read; `source` is the system and the
    /// timeline of the feed, where there is one.
    pub(super) fn fault(&self, system: &str, source: Option<&str>) -> Option<ReplicaMismatch> {
        if !self.is_standby {
            return Some(ReplicaMismatch::Primary);
        }
        if self.receiver.is_none() {
            return Some(ReplicaMismatch::NoReceiver);
        }
        let Some(timeline) = &self.timeline else {
            return Some(ReplicaMismatch::Hidden(self.role.clone()));
        };
        // As the feed names them.
        let own = format!("{system}, timeline {timeline}");
        source
            .is_some_and(|source| source != own)
            .then_some(ReplicaMismatch::Elsewhere)
    }

    /// True if all that was replayed since `before` came of the same timeline, through one
    /// receiver. Counterexample: *The timeline alone: after a time of replaying from an archive the
    /// place where receiving has ended may lie before what was replayed.*
    pub(super) fn follows(&self, before: &Self) -> bool {
        self.is_standby
            && self.receiver.is_some()
            && self.receiver == before.receiver
            && self.timeline == before.timeline
    }
}

impl ReplicaMismatch {
    /// With what mends it, if a statement does.
    pub(super) fn requirement(&self, requirement: Requirement) -> Requirement {
        match self {
            Self::Hidden(role) => {
                let role = role.replace('"', "\"\"");
                requirement.repaired_by(format!("grant pg_read_all_stats to \"{role}\""), false)
            }
            _ => requirement,
        }
    }
}

impl fmt::Display for ReplicaMismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Primary => f.write_str(
                "it is no standby; take it out of database.replicas, or make it one again",
            ),
            Self::NoReceiver => f.write_str(
                "it receives nothing from a primary now (pg_stat_wal_receiver is empty); look at its primary_conninfo and its log",
            ),
            Self::Hidden(role) => write!(
                f,
                "{role} may not see which timeline it follows; run GRANT pg_read_all_stats TO {role} on the primary"
            ),
            Self::Elsewhere => f.write_str(
                "it follows another timeline than the primary of database.url; after a failover its primary_conninfo must name the new primary",
            ),
            Self::Stranger => {
                f.write_str("it is no copy of the server of database.url; make it anew with pg_basebackup")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOURCE: &str = "7, timeline 2";

    fn probe() -> Probe {
        Probe {
            is_standby: true,
            replayed: 10,
            received: 12,
            receiver: Some("77".to_owned()),
            timeline: Some("2".to_owned()),
            role: "site".to_owned(),
        }
    }

    #[test]
    fn an_answer_is_read() {
        let text = |text: &str| Value::Text(text.into());
        let row = ["true", "0/A", "0/C", "77", "2", "site"].map(text);
        assert_eq!(Probe::read(&[row.to_vec()]), Some(probe()));
        let mut primary = vec![Value::Null; 6];
        (primary[0], primary[5]) = (text("false"), text("site"));
        let read = Probe::read(&[primary]).unwrap();
        assert_eq!(
            read.fault("7", Some(SOURCE)),
            Some(ReplicaMismatch::Primary)
        );
        assert_eq!(Probe::read(&[]), None);
        assert_eq!(Probe::read(&[vec![Value::Null; 6]]), None);
    }

    #[test]
    fn only_a_standby_that_receives_the_feeds_timeline_is_a_replica() {
        assert_eq!(probe().fault("7", Some(SOURCE)), None);
        assert_eq!(
            probe().fault("8", Some(SOURCE)),
            Some(ReplicaMismatch::Elsewhere)
        );
        let with = |change: fn(&mut Probe)| {
            let mut probe = probe();
            change(&mut probe);
            probe.fault("7", Some(SOURCE))
        };
        assert_eq!(
            with(|probe| probe.is_standby = false),
            Some(ReplicaMismatch::Primary)
        );
        assert_eq!(
            with(|probe| probe.receiver = None),
            Some(ReplicaMismatch::NoReceiver)
        );
        let other = |probe: &mut Probe| probe.timeline = Some("1".to_owned());
        assert_eq!(with(other), Some(ReplicaMismatch::Elsewhere));
        let hidden = with(|probe| probe.timeline = None).unwrap();
        assert!(
            hidden
                .to_string()
                .contains("GRANT pg_read_all_stats TO site")
        );
    }

    #[test]
    fn a_read_ends_where_it_began() {
        assert!(probe().follows(&probe()));
        let changes: [fn(&mut Probe); 3] = [
            |probe| probe.timeline = Some("3".to_owned()),
            |probe| probe.receiver = Some("78".to_owned()),
            |probe| probe.is_standby = false,
        ];
        for change in changes {
            let mut after = probe();
            change(&mut after);
            assert!(!after.follows(&probe()));
        }
    }
}
