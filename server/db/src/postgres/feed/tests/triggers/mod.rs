//! The feed by triggers, on servers without logical replication, and as a role without the right to
//! replicate.

mod changes;
mod guard;
mod lives;
mod nodes;

use super::*;
use crate::postgres::feed::triggers::objects;

/// A server as managed ones often are: `wal_level` is replica.
fn plain() -> &'static Postgres {
    static PLAIN: LazyLock<Postgres> = LazyLock::new(|| Postgres::start().unwrap());
    &PLAIN
}

/// Makes the role and everything that the feed needs, as that role.
fn script(schema: &str, tables: &[&str]) -> String {
    let watched: Vec<String> = tables
        .iter()
        .map(|table| objects::watch("public", table))
        .collect();
    format!(
        "do $$ begin create role site login; exception when duplicate_object or unique_violation then null; end $$; \
         grant create on schema public to site; set role site; {schema}; {}; {}; reset role",
        objects::install("public"),
        watched.join("; ")
    )
}

fn by_triggers(settings: &mut FeedSettings) {
    settings.kind = FeedKind::Triggers;
    settings.config.user("site");
}

/// A database whose tables have triggers, and a feed of it.
fn recorded<'a>(server: &'a Postgres, schema: &str, tables: &[&str]) -> FeedFixture<'a> {
    FeedFixture::with(server, &script(schema, tables), by_triggers)
}

/// True if the feed has delivered a change.
fn is_apply(event: &SinkEvent) -> bool {
    matches!(event, SinkEvent::Apply(..))
}
