//! Row-level security on PostgreSQL beside claims: a row that a policy hides is on no page, from
//! memory either.

use lab_pgtest::Database;

use crate::{
    both::Housed,
    postgres::{client, database},
    sessions::{SITE, get, register},
    support::TestSite,
};

/// Only notes of tenants that are open.
const BY_TABLE: &str = "create table open_tenant (id bigint primary key);
insert into open_tenant values (1), (2);
alter publication millpond add table open_tenant;
create policy open on note using (tenant in (select id from open_tenant)) with check (true);
alter table note enable row level security, force row level security;";

/// Only notes of the tenant that the transaction names.
const BY_SETTING: &str = "create policy named on note
  using (tenant = nullif(current_setting('app.tenant', true), '')::bigint) with check (true);
alter table note enable row level security, force row level security;";

/// All that the policy shows, to every visitor.
const ALL: (&str, &str) = (
    "pages/api/all.sql",
    "-- name: notes :many\nselect body from note order by id;\n",
);
/// The page names its visitor's tenant to the policy, for its own transaction.
const NAMED: (&str, &str) = (
    "pages/api/named.sql",
    "-- name: tenant :one\nselect set_config('app.tenant', coalesce(:claims.tenant::text, ''), true) as named;\n\
     -- name: notes :many\nselect body from note order by id;\n",
);

/// A site with this policy, whose role owns the tables and is subject to it; no superuser is.
fn site(policy: &str) -> Housed {
    site_with(policy, &[])
}

fn site_with(policy: &str, more: &[(&str, &str)]) -> Housed {
    let database: Database<'static> = database();
    let role = format!("site_{}", database.name());
    let owner = format!(
        "create role {role} login replication; alter database {} owner to {role}",
        database.name()
    );
    client(&database).batch_execute(&owner).unwrap();
    let files = [
        SITE,
        &[("migrations/0003_policy.postgres.sql", policy), ALL, NAMED],
        more,
    ]
    .concat();
    let site = Housed::on(database, &files, |url| {
        url.replace("//postgres@", &format!("//{role}@"))
    });
    site.run("insert into note (id, tenant, body) values (1, 1, 'of one'), (2, 2, 'of two'), (3, 1, 'one more')");
    site
}

/// The tenant's notes as JSON.
fn json(bodies: &[&str]) -> String {
    let notes: Vec<String> = bodies
        .iter()
        .map(|body| format!("{{\"body\":\"{body}\"}}"))
        .collect();
    format!("\"notes\":[{}]}}", notes.join(","))
}

/// Ann of tenant 1, and Bob of tenant 2.
fn visitors(site: &TestSite) -> (String, String) {
    let ann = register(site, "Ann", 1, "reader");
    (ann, register(site, "Bob", 2, "reader"))
}

/// Waits until a page comes from memory; it.
fn kept(site: &TestSite, target: &str, cookie: &str) -> String {
    let mut body = String::new();
    site.until("a hit", || {
        let answer = get(site, target, cookie);
        body = answer.body.clone();
        answer.cache() == "hit"
    });
    body
}

#[test]
fn a_policy_that_reads_a_table_is_a_dependency_and_each_tenant_has_its_own_page() {
    let site = site(BY_TABLE);
    let (ann, bob) = visitors(&site);
    let (one, two) = (json(&["of one", "one more"]), json(&["of two"]));
    let both = json(&["of one", "of two", "one more"]);
    let shows = |cookie: &str, target: &str, body: &str| {
        site.until("it shows", || {
            get(&site, target, cookie).body.ends_with(body)
        });
        assert!(kept(&site, target, cookie).ends_with(body));
    };
    shows(&ann, "/api/notes", &one);
    shows(&bob, "/api/notes", &two);
    shows("", "/api/all", &both);
    // Not a note is touched, and of one tenant no note shows any more.
    site.run("delete from open_tenant where id = 1");
    shows(&ann, "/api/notes", &json(&[]));
    shows("", "/api/all", &two);
    shows(&bob, "/api/notes", &two);
    site.run("insert into open_tenant values (1)");
    shows(&ann, "/api/notes", &one);
    shows("", "/api/all", &both);
}

/// No feed reports the change of a setting, so such a query is never kept: each request reads it.
#[test]
fn a_policy_by_a_setting_keeps_the_query_out_of_memory_and_a_page_may_name_its_tenant() {
    let site = site(BY_SETTING);
    let (ann, bob) = visitors(&site);
    let of = |cookie: &str, target: &str, body: &str| {
        let answer = get(&site, target, cookie);
        assert!(answer.body.ends_with(body), "{target}: {}", answer.body);
        assert_eq!(answer.cache(), "fwd=miss; detail=uncacheable", "{target}");
        answer.field("cache-control").to_owned()
    };
    let (one, two) = (json(&["of one", "one more"]), json(&["of two"]));
    site.until("the notes are there", || {
        get(&site, "/api/named", &ann).body.ends_with(&one)
    });
    // More often than there are connections: what one page has named is over with its transaction.
    for _ in 0..20 {
        for (cookie, body) in [(&*ann, &*one), (&bob, &two), ("", &json(&[]))] {
            assert_eq!(of(cookie, "/api/named", body), "private, no-cache");
            of(cookie, "/api/notes", &json(&[]));
            of(cookie, "/api/all", &json(&[]));
        }
    }
}

/// *Counterexample*: the state of a forbidden row is that of a missing right, and both were a 500.
#[test]
fn a_row_that_a_policy_forbids_is_refused_and_a_right_that_is_missing_is_the_owners() {
    let policy = "create policy own on note using (true) with check (tenant = 1);
        alter table note enable row level security, force row level security;
        create view first as select * from note where id < 100 with check option;";
    let insert = "-- param: tenant integer\n-- param: id integer = 50\n-- name: put :exec\n";
    let form = |table: &str, line: &str| {
        format!(
            "{insert}insert into {table} (id, tenant, body) values (:id, :tenant, 'b');\n{line}-- redirect: /\n"
        )
    };
    let (put, back, first) = (
        form("note", ""),
        form("note", "-- invalid: /again\n"),
        form("first", ""),
    );
    let site = site_with(
        policy,
        &[
            ("pages/put.post.sql", &put),
            ("pages/back.post.sql", &back),
            ("pages/first.post.sql", &first),
            (
                "pages/api/put.post.sql",
                &put.replace("-- redirect: /\n", ""),
            ),
            ("pages/again.html", "{{ errors.form }}"),
            ("pages/403.html", "<h1>Own {{ message }}</h1>"),
        ],
    );
    assert_eq!(site.post("/put", "tenant=1&id=51").status, 303);
    let refused = site.post("/put", "tenant=2");
    assert_eq!(refused.status, 403, "{}", refused.body);
    assert_eq!(refused.body, "<h1>Own You may not write this.</h1>");
    let refused = site.post("/api/put", "tenant=2");
    assert_eq!(refused.status, 403);
    assert!(refused.body.contains("\"status\":403"), "{}", refused.body);
    let led = site.post("/back", "tenant=2");
    assert_eq!((led.status, led.field("location")), (303, "/again"));
    // The check option of a view is a constraint.
    assert_eq!(site.post("/first", "tenant=1&id=52").status, 303);
    assert_eq!(site.post("/first", "tenant=1&id=200").status, 422);
    site.run(
        "do $$ begin execute format('revoke insert on note from %I',
         (select tableowner from pg_tables where tablename = 'note')); end $$",
    );
    let missing = site.post("/put", "tenant=1");
    assert_eq!(missing.status, 500, "{}", missing.body);
}
