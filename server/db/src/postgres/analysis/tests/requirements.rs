//! What a server lacks, and that the statements mend it.

use std::collections::BTreeSet;

use expect_test::{Expect, expect};

use super::support::AnalysisFixture;
use crate::Requirement;
use crate::postgres::requirements::{fix, requirements};

const TABLES: &str = "create table a (id int primary key); create table \"B c\" (id int primary key); create table mute (id int);
    create table p (id int primary key) partition by range (id); create table p1 partition of p for values from (1) to (9);
    create table parent (id int primary key); create table child (primary key (id)) inherits (parent);
    create unlogged table noise (id int primary key);";

fn found(fixture: &AnalysisFixture, queries: &[&str]) -> Vec<Requirement> {
    let mut tables = BTreeSet::new();
    for sql in queries {
        tables.extend(fixture.analyse(sql).unwrap().reads());
    }
    fixture
        .runtime
        .block_on(requirements(
            &fixture.client,
            &fixture.catalog,
            &tables,
            false,
        ))
        .unwrap()
}

fn check(found: &[Requirement], expected: &Expect) {
    let mut actual = String::new();
    for requirement in found {
        actual += &format!("{} ({})\n", requirement.missing, requirement.reason);
        if let Some(statement) = &requirement.statement {
            let who = if requirement.may_fix { "fix" } else { "ask" };
            actual += &format!("    {who}: {statement}\n");
        }
    }
    expected.assert_eq(&actual);
}

const QUERIES: [&str; 6] = [
    "select * from a",
    "select * from \"B c\"",
    "select * from mute",
    "select * from p",
    "select * from parent",
    "select * from noise",
];

#[test]
fn what_is_missing_is_said_and_mended() {
    let mut fixture = AnalysisFixture::bare(TABLES);
    let missing = found(&fixture, &QUERIES);
    check(
        &missing,
        &expect![[r#"
            wal_level is replica, not logical (without it the server reports no changes, and nothing is kept; where it cannot be had, feed = "triggers" in [database] does without it)
                fix: alter system set wal_level = logical
            there is no publication millpond (it says of which tables the server tells changes)
                fix: create publication "millpond" for table a, "public"."B c", p, only parent, child
            mute has no replica identity (it has no primary key, and published as it is PostgreSQL would refuse to update or delete its rows; a primary key is best, with FULL each update and deletion writes the whole old row to the log)
                fix: alter table mute replica identity full; alter publication "millpond" add table mute
        "#]],
    );
    let publication = missing
        .iter()
        .find(|requirement| requirement.missing.contains("publication"))
        .unwrap();
    fixture
        .runtime
        .block_on(fix(&fixture.client, publication))
        .unwrap();
    fixture.reload();
    check(
        &found(&fixture, &QUERIES[..2]),
        &expect![[r#"
        wal_level is replica, not logical (without it the server reports no changes, and nothing is kept; where it cannot be had, feed = "triggers" in [database] does without it)
            fix: alter system set wal_level = logical
    "#]],
    );
    // A table without an identity was not published with the others: the application may still
    // update it.
    fixture.run("insert into mute values (1); update mute set id = 2");
    let without_identity = missing
        .iter()
        .find(|requirement| requirement.missing.contains("mute"))
        .unwrap();
    let forbidden = Requirement {
        may_fix: false,
        ..without_identity.clone()
    };
    let repair = |lacking: &Requirement| fixture.runtime.block_on(fix(&fixture.client, lacking));
    assert!(repair(&forbidden).is_err());
    repair(without_identity).unwrap();
    fixture.run("update mute set id = 3; delete from mute");
    fixture.reload();
    check(
        &found(&fixture, &QUERIES),
        &expect![[r#"
        wal_level is replica, not logical (without it the server reports no changes, and nothing is kept; where it cannot be had, feed = "triggers" in [database] does without it)
            fix: alter system set wal_level = logical
    "#]],
    );
}

#[test]
fn a_role_without_rights_learns_which_role_to_ask() {
    let mut fixture = AnalysisFixture::bare(TABLES);
    fixture.run("do 'begin if not exists (select from pg_roles where rolname = ''guest'') then create role guest; end if; end';
        grant select on all tables in schema public to guest;
        do 'begin execute format(''revoke temporary on database %I from public'', current_database()); end'; set role guest");
    fixture.reload();
    let mut tables = BTreeSet::new();
    tables.extend(fixture.catalog_oid("a"));
    let missing = fixture
        .runtime
        .block_on(requirements(
            &fixture.client,
            &fixture.catalog,
            &tables,
            false,
        ))
        .unwrap();
    assert!(missing.iter().all(|requirement| !requirement.may_fix));
    let said: Vec<&str> = missing
        .iter()
        .map(|requirement| requirement.missing.as_str())
        .collect();
    assert_eq!(
        said,
        [
            "wal_level is replica, not logical",
            "the role guest has no REPLICATION right",
            "the role guest may make no temporary objects",
            "there is no publication millpond",
        ]
    );
    fixture.run("reset role; drop owned by guest");
}
