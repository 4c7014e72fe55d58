//! Rules that pages depend on besides rows: each has a version that the catalog alone says.
//!
//! A version is written in bits, each of which is a role, a member, a configuration of text search
//! or a schema that is as it says or not; a policy, a function and a path say the number itself. A
//! change sets all bits, so it can be made again after it was lost.

use std::fmt::Write as _;

use crate::coherence::schema::{Thing, ThingKind};

/// Rules whose versions one page shows, in the order of its columns.
pub(crate) const SHOWN: [Rule; 7] = [
    Rule::Policy,
    Rule::Bypass,
    Rule::Member,
    Rule::Search,
    Rule::Function,
    Rule::Place,
    Rule::Path,
];

/// Bits of a version; there are no more changes of a rule than they can count.
const BITS: u32 = 6;
/// The last version.
pub(crate) const LAST: u64 = (1 << BITS) - 1;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rule {
    /// Rows that a policy lets a view's owner see.
    Policy,
    /// Owners of views that bypass policies.
    Bypass,
    /// Owners of views that are members of a role that a policy is for.
    Member,
    /// Configurations of text search that know that *running* is *run*; one is PostgreSQL's own.
    Search,
    /// The number that a function returns.
    Function,
    /// Schema of two that has a name.
    Place,
    /// Schema that the database's search path names: sessions keep the path they began with.
    Path,
    /// Right of a view's owner to read: an odd version shows nothing.
    Right,
}

impl Rule {
    /// As it stands in the log.
    pub(crate) fn thing(self) -> Thing {
        Thing(ThingKind::Rule, self as u32)
    }

    /// The statements, one transaction, that give it this version.
    pub(crate) fn change(self, version: u64) -> String {
        let each = |statement: &dyn Fn(u32, bool) -> String| {
            (0..BITS)
                .map(|bit| statement(bit, version >> bit & 1 == 1))
                .collect::<String>()
        };
        match self {
            Self::Policy => {
                let bits = (0..BITS).filter(|bit| version >> bit & 1 == 1);
                let bits: Vec<String> = bits.map(|bit| bit.to_string()).collect();
                let bits = bits.join(",");
                format!("alter policy few on ruled using (id = any ('{{{bits}}}'))")
            }
            Self::Bypass => each(&|bit, is_set| {
                let no = if is_set { "" } else { "no" };
                format!("alter role free_{bit} {no}bypassrls; ")
            }),
            Self::Member => each(&|bit, is_set| match is_set {
                true => format!("grant crew to member_{bit}; "),
                false => format!("revoke crew from member_{bit}; "),
            }),
            Self::Search => each(&|bit, is_set| {
                let (name, known) = (
                    configuration(bit),
                    if is_set { "english_stem" } else { "simple" },
                );
                format!(
                    "alter text search configuration {name} alter mapping for asciiword with {known}; "
                )
            }),
            Self::Function => function(version),
            Self::Place => each(&|bit, is_set| {
                let wanted = u8::from(is_set);
                format!(
                    "do $do$ begin if (select n from place_{bit}.flag) <> {wanted} then \
                     alter schema place_{bit} rename to moved; alter schema spare_{bit} rename to place_{bit}; \
                     alter schema moved rename to spare_{bit}; end if; end $do$; "
                )
            }),
            Self::Path => format!(
                "do $do$ begin execute format('alter database %I set search_path = public, path_{version}', current_database()); end $do$"
            ),
            Self::Right if version % 2 == 1 => "revoke select on secret from holder".to_owned(),
            Self::Right => format!("{}; grant select on secret to holder", secret(version)),
        }
    }
}

fn configuration(bit: u32) -> String {
    match bit {
        0 => "english".to_owned(),
        _ => format!("words_{bit}"),
    }
}

fn function(version: u64) -> String {
    format!(
        "create or replace function rule_number() returns bigint language sql immutable begin atomic select {version}::bigint; end"
    )
}

fn secret(version: u64) -> String {
    format!(
        "create or replace view secret_state as select id, {version}::bigint as version from secret"
    )
}

/// The objects of all rules, each at version 0.
pub(crate) fn create() -> String {
    let mut sql = format!(
        "{TABLES}{}; {}; create view secret_state as select id, 0::bigint as version from secret; alter view secret_state owner to holder;\n",
        function(0),
        Rule::Path.change(0)
    );
    for bit in 0..BITS {
        let name = configuration(bit);
        let made = match bit {
            0 => String::new(),
            _ => format!("create text search configuration {name} (copy = english);"),
        };
        // A String takes all that is written.
        let _ = writeln!(
            sql,
            "insert into ruled values ({bit}); create role free_{bit}; create role member_{bit};
            create view by_free_{bit} as select count(*) as one from barred; alter view by_free_{bit} owner to free_{bit};
            create view by_member_{bit} as select count(*) as one from crewed; alter view by_member_{bit} owner to member_{bit};
            create schema place_{bit}; create view place_{bit}.flag as select 0::bigint as n from anchor;
            create schema spare_{bit}; create view spare_{bit}.flag as select 1::bigint as n from anchor; {made}"
        );
    }
    for path in 0..=LAST {
        let _ = writeln!(
            sql,
            "create schema path_{path}; create view path_{path}.signpost as select {path}::bigint as n from anchor;"
        );
    }
    sql + &Rule::Search.change(0)
}

const TABLES: &str = "
create role minder; create role crew; create role holder;
create table anchor (id int primary key); insert into anchor values (1);
create table secret (id int primary key); insert into secret values (1);
create table barred (id int primary key); insert into barred values (1);
create table crewed (id int primary key); insert into crewed values (1);
create table ruled (id int primary key);
grant select on anchor, barred, crewed, ruled to public; grant select on secret to holder;
alter table ruled enable row level security; create policy few on ruled using (false);
alter table barred enable row level security;
alter table crewed enable row level security; create policy few on crewed to crew using (true);
create view by_policy as select coalesce(sum(1 << id), 0)::bigint as version from ruled; alter view by_policy owner to minder;
";

/// Returns the query that shows the versions of [`SHOWN`].
pub(crate) fn query() -> String {
    let sum = |one: &dyn Fn(u32) -> String| {
        let bits = (0..BITS).map(|bit| format!("{} * ({})", 1 << bit, one(bit)));
        format!("({})::bigint", bits.collect::<Vec<_>>().join(" + "))
    };
    let columns = SHOWN.map(|rule| {
        let value = match rule {
            Rule::Policy => "(select version from by_policy)".to_owned(),
            Rule::Bypass => sum(&|bit| format!("select one from by_free_{bit}")),
            Rule::Member => sum(&|bit| format!("select one from by_member_{bit}")),
            Rule::Search => sum(&|bit| {
                let name = configuration(bit);
                format!("(to_tsvector('{name}', 'running') @@ to_tsquery('simple', 'run'))::int")
            }),
            Rule::Function => "rule_number()".to_owned(),
            Rule::Place => sum(&|bit| format!("select n from place_{bit}.flag")),
            Rule::Path => "(select n from signpost)".to_owned(),
            Rule::Right => "0".to_owned(),
        };
        format!("{value} as rule_{}", rule as u32)
    });
    format!("select {}", columns.join(", "))
}
