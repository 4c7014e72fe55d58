//! What the function behind the triggers must not do: run what others wrote, or make a write fail.

use ::postgres::error::SqlState;

use super::*;

/// Makes a role that may write into `article`, and a schema of its own.
const ROLE: &str = "do $$ begin create role prowler login; exception when duplicate_object or unique_violation then null; end $$; \
    set role site; grant insert, select on article to prowler; reset role; create schema lair authorization prowler; \
    grant usage on schema lair to public";

const ARTICLE: &str = "create table article (id bigint primary key, title text)";

/// Casts a type of the role's own to JSON by a function that writes down as whom it runs.
const TRAP: &str = "set role prowler; create table lair.caught as select current_user as who limit 0; grant all on lair.caught to public; \
    create type pg_temp.bait as enum ('a'); \
    create function lair.spring(pg_temp.bait) returns json language plpgsql as \
      $$ begin insert into lair.caught values (current_user); return '1'; end $$; \
    create cast (pg_temp.bait as json) with function lair.spring(pg_temp.bait); \
    create temporary table trap (id int, bait pg_temp.bait)";

const GIVE: &str = "create trigger t after insert on trap referencing new table as new_rows for each statement \
    execute function public._millpond_record()";

#[test]
fn only_the_owner_may_grant_the_function_to_a_trigger() {
    let mut fixture = recorded(plain(), ARTICLE, &["article"]);
    fixture.run(ROLE);
    fixture.run("set role prowler; create temporary table trap (id int)");
    let refused = fixture.client.batch_execute(GIVE).unwrap_err();
    assert_eq!(refused.code(), Some(&SqlState::INSUFFICIENT_PRIVILEGE));
    fixture.run("reset role");
    fixture.run(&objects::lend("public", "prowler"));
    fixture.run(&format!("set role prowler; {GIVE}; reset role"));
    // What is installed once more revokes from PUBLIC what an earlier version may have left, and
    // keeps what was granted.
    fixture.run("grant execute on function _millpond_record() to public; set role site");
    fixture.run(&objects::install("public"));
    let may = "select has_function_privilege('prowler', '_millpond_record()', 'execute'), \
        exists (select from pg_proc, aclexplode(proacl) a where proname = '_millpond_record' and a.grantee = 0)";
    let row = fixture.client.query_one(may, &[]).unwrap();
    assert_eq!((row.get(0), row.get(1)), (true, false));
}

#[test]
fn a_strangers_trigger_runs_none_of_the_strangers_code() {
    let mut fixture = recorded(plain(), ARTICLE, &["article"]);
    // As the role could while PUBLIC had the right.
    fixture.run(&format!("{ROLE}; {}", objects::lend("public", "prowler")));
    fixture.run(&format!(
        "{TRAP}; {GIVE}; insert into trap values (7, 'a'); reset role"
    ));
    let caught = "select string_agg(who, ', ') from lair.caught";
    let who: Option<String> = fixture.client.query_one(caught, &[]).unwrap().get(0);
    assert_eq!(who, None);
}

#[test]
fn operators_and_functions_in_the_schema_of_the_tables_are_not_taken() {
    let mut fixture = recorded(plain(), ARTICLE, &["article"]);
    let id = fixture.watch("article", "id", ValueClass::Integer);
    fixture.run(
        "create table caught as select current_user as who limit 0; grant all on caught to public; \
         create function spring(numeric, int) returns numeric language plpgsql as \
           $$ begin insert into public.caught values (current_user); return 1; end $$; \
         create operator public.* (function = spring, leftarg = numeric, rightarg = int); \
         create function spring(bigint, int) returns bool language plpgsql as \
           $$ begin insert into public.caught values (current_user); return true; end $$; \
         create operator public.> (function = spring, leftarg = bigint, rightarg = int)",
    );
    let touched = fixture.touches("insert into article values (1, 'a')");
    assert!(touched.contains(&int(id, 1)));
    let caught = "select count(*) from caught";
    assert_eq!(
        fixture
            .client
            .query_one(caught, &[])
            .unwrap()
            .get::<_, i64>(0),
        0
    );
}

#[test]
fn no_value_makes_a_write_fail() {
    let schema = "create table page (id int primary key, slug varchar(100), raw json, picture bytea, body text, at timestamptz)";
    let mut fixture = recorded(plain(), schema, &["page"]);
    let table = broad(fixture.oid("page"));
    let id = fixture.watch("page", "id", ValueClass::Integer);
    let slug = fixture.watch("page", "slug", ValueClass::Text);
    let named = |name: &str| slug.equal_to(&name.into()).unwrap();
    for raw in [r#"{"a": "\u0000"}"#, r#"{"a": "\ud800"}"#] {
        let insert = format!("insert into page values (1, 'a', '{raw}'); delete from page");
        assert_eq!(
            fixture.touches(&insert),
            HashSet::from([table, int(id, 1), named("a")]),
            "{raw}"
        );
    }
    // Neither can be made JSON: the one as text is longer than a string may be there, and so is the
    // other.
    for large in [
        "convert_to(repeat('x', 129 << 20), 'UTF8'), null",
        "null, repeat('x', 257 << 20)",
    ] {
        let insert = format!("insert into page values (2, 'b', null, {large}); delete from page");
        assert_eq!(
            fixture.touches(&insert),
            HashSet::from([table, int(id, 2), named("b")]),
            "{large}"
        );
    }
    // What is recorded of a row has a limit too.
    let columns: Vec<String> = (0..20)
        .map(|n| format!("c{n} text default repeat('x', 300)"))
        .collect();
    fixture.run(&format!(
        "set role site; create table wide (id int primary key, {}); {}; reset role",
        columns.join(", "),
        objects::watch("public", "wide")
    ));
    let wide = fixture.watch("wide", "id", ValueClass::Integer);
    fixture.feed.sink.settle();
    let touched = fixture.touches("insert into wide values (1)");
    assert!(touched.contains(&wide.unknown()), "{touched:?}");
}

#[test]
fn domains_count_as_their_base_types() {
    let schema = "create domain short as varchar(40); create domain slug as short check (value <> ''); \
        create table page (id int primary key, slug slug, open bool, key uuid, mood text collate \"C\")";
    let mut fixture = recorded(plain(), schema, &["page"]);
    let id = fixture.watch("page", "id", ValueClass::Integer);
    let slug = fixture.watch("page", "slug", ValueClass::Text);
    let open = fixture.watch("page", "open", ValueClass::Boolean);
    let key = fixture.watch("page", "key", ValueClass::Uuid);
    let touched = fixture
        .touches("insert into page values (1, 'a', false, '6B9E2BBA-0000-4000-8000-000000000001')");
    let uuid = "6b9e2bba-0000-4000-8000-000000000001";
    let all = HashSet::from([
        broad(fixture.oid("page")),
        int(id, 1),
        slug.equal_to(&"a".into()).unwrap(),
        open.equal_to(&false.into()).unwrap(),
        key.equal_to(&uuid.into()).unwrap(),
    ]);
    assert_eq!(touched, all);
}
