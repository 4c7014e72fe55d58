//! What must be so before a life of the feed can begin, and the sentence for each thing that is
//! not.

use super::replication::{OLDEST, identifier, literal};
use super::wait::{FeedEnd, Patience};
use super::wire::FeedConnection;
use crate::FeedKind;
use crate::postgres::TextRow;

/// Settings of a server that was asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ServerSettings {
    pub(crate) version: u32,
    /// When it was started: no two servers that one could take for each other share that.
    pub(crate) started: String,
    pub(crate) user: String,
}

/// The first version on which the level of the log follows the slots: with `wal_level = replica`
/// the first logical slot raises it, and some time after the last has gone it falls again.
const LEVEL_FOLLOWS_SLOTS: u32 = 19_00_00;

/// True if a server of this version with this `wal_level` makes a logical slot.
pub(crate) fn makes_slots(version: u32, wal_level: &str) -> bool {
    wal_level == "logical" || (wal_level == "replica" && version >= LEVEL_FOLLOWS_SLOTS)
}

/// Asks for the level of the log as it is; [`is_logical`] reads the answer.
pub(crate) const LEVEL: &str = "select coalesce(pg_catalog.current_setting('effective_wal_level', true), pg_catalog.current_setting('wal_level'))";

/// Checks, once the slot is there, that the log has what the stream needs.
pub(crate) fn is_logical(level: &str) -> Result<(), FeedEnd> {
    match level {
        "logical" => Ok(()),
        level => Err(FeedEnd::lost(format!(
            "effective_wal_level is {level} on the server although there is a logical slot; \
             run ALTER SYSTEM SET wal_level = 'logical' and restart it, {OTHERWISE}"
        ))),
    }
}

/// Remedy where logical replication cannot be had.
const OTHERWISE: &str = "or where that cannot be had, write feed = \"triggers\" into [database]";

/// About the server itself. The last column is for [`not_a_standby_ourselves`].
const SERVER: &str = "select pg_catalog.current_setting('server_version_num'), \
    pg_catalog.pg_is_in_recovery()::text, pg_catalog.current_setting('wal_level'), \
    extract(epoch from pg_catalog.pg_postmaster_start_time())::text, current_user::text, pg_catalog.current_setting('synchronous_standby_names')";

/// When the server was started, for the other connections; as a number, which does not depend on
/// the session's time zone.
pub(crate) const STARTED: &str =
    "select extract(epoch from pg_catalog.pg_postmaster_start_time())::text";

/// Checks that the server can be the feed's server.
pub(crate) fn server(
    control: &mut FeedConnection,
    kind: FeedKind,
    patience: Patience<'_>,
) -> Result<ServerSettings, FeedEnd> {
    let rows = control.query(SERVER, patience)?;
    read_server(&rows, kind)
}

fn read_server(rows: &[TextRow], kind: FeedKind) -> Result<ServerSettings, FeedEnd> {
    let text = |at: usize| {
        let text = rows.first().and_then(|row| row.get(at)?.clone());
        text.ok_or_else(|| FeedEnd::lost("the server does not say what it is"))
    };
    let version: u32 = text(0)?.parse().unwrap_or(0);
    if version < OLDEST {
        return Err(FeedEnd::lost(
            "the server is older than PostgreSQL 14, whose change stream shows no heartbeats: upgrade it",
        ));
    }
    if text(1)? != "false" {
        // The primary is what cannot be reached.
        return Err(FeedEnd::disconnected(
            "the server is a standby; name the primary in database.url, several hosts with commas between them",
        ));
    }
    if kind == FeedKind::Logical {
        let level = text(2)?;
        if !makes_slots(version, &level) {
            return Err(FeedEnd::lost(format!(
                "wal_level is {level} on the server; run ALTER SYSTEM SET wal_level = 'logical' and restart it, {OTHERWISE}"
            )));
        }
        not_a_standby_ourselves(&text(5)?)?;
    }
    Ok(ServerSettings {
        version,
        started: text(3)?,
        user: text(4)?,
    })
}

/// A `*` among the synchronous standbys would count the feed as one: commits would be acknowledged
/// because Millpond has seen them, which keeps nothing.
pub(crate) fn not_a_standby_ourselves(standbys: &str) -> Result<(), FeedEnd> {
    if standbys.contains('*') {
        return Err(FeedEnd::lost(
            "synchronous_standby_names has a *, so that the server would take the feed for a standby: name the standbys there",
        ));
    }
    Ok(())
}

/// Asks for a publication; [`publishes_everything`] reads the answer.
pub(crate) fn publication(name: &str) -> String {
    format!(
        "select (pubinsert and pubupdate and pubdelete and pubtruncate)::text from pg_catalog.pg_publication where pubname = {}",
        literal(name)
    )
}

/// Checks that the publication is there and publishes everything.
pub(crate) fn publishes_everything(rows: &[TextRow], name: &str) -> Result<(), FeedEnd> {
    let quoted = identifier(name);
    match rows.first().map(|row| row.first()) {
        None => Err(FeedEnd::lost(format!(
            "there is no publication {quoted} in the database; run CREATE PUBLICATION {quoted} FOR ALL TABLES as a superuser, \
             or FOR TABLE … as their owner"
        ))),
        Some(Some(Some(complete))) if complete == "true" => Ok(()),
        Some(_) => Err(FeedEnd::lost(format!(
            "the publication {quoted} does not tell of all kinds of changes; run ALTER PUBLICATION {quoted} SET \
             (publish = 'insert, update, delete, truncate')"
        ))),
    }
}

/// Explains why a replication connection was refused, where the server's own sentence does not say
/// what to do.
pub(crate) fn explain(end: FeedEnd, server: &ServerSettings) -> FeedEnd {
    let FeedEnd::Refused { code, sentence } = end else {
        return end;
    };
    let user = identifier(&server.user);
    let todo = match code.as_str() {
        // insufficient_privilege
        "42501" => format!("; run ALTER ROLE {user} REPLICATION as a superuser, {OTHERWISE}"),
        // invalid_authorization_specification: no line in pg_hba.conf
        "28000" => format!("; pg_hba.conf must let {user} in"),
        // too_many_connections, of which max_wal_senders is one
        "53300" => "; raise max_wal_senders or max_connections".to_owned(),
        // configuration_limit_exceeded
        "53400" => "; raise max_replication_slots".to_owned(),
        _ => String::new(),
    };
    FeedEnd::lost(format!("{sentence}{todo}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(values: [&str; 6]) -> Vec<TextRow> {
        vec![
            values
                .iter()
                .map(|value| Some((*value).to_owned()))
                .collect(),
        ]
    }

    #[test]
    fn what_is_missing_is_said_with_what_to_do() {
        let said = |values| {
            read_server(&row(values), FeedKind::Logical)
                .unwrap_err()
                .to_string()
        };
        let good = ["150014", "false", "logical", "now", "site", ""];
        let version = |values, kind| read_server(&row(values), kind).unwrap().version;
        assert_eq!(version(good, FeedKind::Logical), 150_014);
        let with = |at: usize, value| {
            let mut values = good;
            values[at] = value;
            values
        };
        assert!(said(with(0, "130022")).contains("PostgreSQL 14"));
        assert!(said(with(1, "true")).contains("primary"));
        assert!(said(with(2, "replica")).contains("ALTER SYSTEM SET wal_level"));
        // Where the level follows the slots, only what is below `replica` is too little.
        let newer = |level| ["190000", "false", level, "now", "site", ""];
        assert_eq!(version(newer("replica"), FeedKind::Logical), 190_000);
        assert_eq!(version(newer("logical"), FeedKind::Logical), 190_000);
        assert!(said(newer("minimal")).contains("ALTER SYSTEM SET wal_level"));
        assert!(said(with(5, "FIRST 1 (*)")).contains("synchronous_standby_names"));
        assert!(said(with(2, "replica")).contains("feed = \"triggers\""));
        let replica = with(2, "replica");
        assert_eq!(version(replica, FeedKind::Triggers), 150_014);
        assert!(read_server(&[], FeedKind::Logical).is_err());
    }

    #[test]
    fn a_log_without_what_the_stream_needs_is_no_feed() {
        assert_eq!(is_logical("logical"), Ok(()));
        let said = is_logical("replica").unwrap_err().to_string();
        assert!(said.contains("effective_wal_level is replica"), "{said}");
        assert!(said.contains("ALTER SYSTEM SET wal_level"), "{said}");
    }

    #[test]
    fn a_publication_must_publish_everything() {
        let one = |text: &str| vec![vec![Some(text.to_owned())]];
        assert_eq!(publishes_everything(&one("true"), "millpond"), Ok(()));
        let partial = publishes_everything(&one("false"), "millpond").unwrap_err();
        assert!(
            partial
                .to_string()
                .contains("ALTER PUBLICATION \"millpond\"")
        );
        let none = publishes_everything(&[], "millpond").unwrap_err();
        assert!(none.to_string().contains("CREATE PUBLICATION \"millpond\""));
    }

    #[test]
    fn a_refusal_says_what_to_do() {
        let server = ServerSettings {
            version: 150_000,
            started: String::new(),
            user: "site".to_owned(),
        };
        let refused = |code: &str| {
            let refused = FeedEnd::Refused {
                code: code.to_owned(),
                sentence: "no".to_owned(),
            };
            explain(refused, &server).to_string()
        };
        assert_eq!(
            refused("42501"),
            format!("no; run ALTER ROLE \"site\" REPLICATION as a superuser, {OTHERWISE}")
        );
        assert_eq!(refused("XX000"), "no");
        assert_eq!(explain(FeedEnd::Stopped, &server), FeedEnd::Stopped);
    }
}
