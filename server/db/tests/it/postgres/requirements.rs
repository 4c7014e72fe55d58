//! What a server lacks, asked and mended through the database.

use millpond_db::{Error, Requirement};

use super::Fixture;

#[test]
fn a_publication_that_is_missing_is_made_and_a_mute_table_left_out_until_it_has_an_identity() {
    let fixture = Fixture::new("create table a (id int primary key); create table mute (id int)");
    let queries = [
        fixture.prepare("select * from a where id = :id"),
        fixture.prepare("select * from mute"),
    ];
    let ask = || fixture.database.requirements(&queries).unwrap();
    let missing = |all: &[Requirement]| -> Vec<String> {
        all.iter().map(|lacking| lacking.missing.clone()).collect()
    };
    let before = ask();
    assert_eq!(
        missing(&before),
        [
            "there is no publication millpond",
            "mute has no replica identity"
        ]
    );
    fixture.database.repair(&before[0]).unwrap();
    assert_eq!(missing(&ask()), ["mute has no replica identity"]);
    // The application may still change the rows of a table that was left out, and of one that was
    // given an identity.
    let mut foreign = fixture.foreign();
    foreign
        .batch_execute("insert into mute values (1); update mute set id = 2")
        .unwrap();
    fixture.database.repair(&before[1]).unwrap();
    assert!(ask().is_empty(), "{:?}", missing(&ask()));
    foreign.batch_execute("update mute set id = 3").unwrap();
}

#[test]
fn a_partitioned_table_without_a_key_is_not_published_by_us() {
    let fixture = Fixture::new(
        "create table parted (id int, part int) partition by list (part); \
         create table part_1 partition of parted for values in (1); create publication millpond",
    );
    let queries = [fixture.prepare("select * from parted")];
    let all = fixture.database.requirements(&queries).unwrap();
    let [lacking] = &all[..] else {
        panic!("{all:?}");
    };
    assert!(
        lacking.missing.contains("parted has no replica identity"),
        "{lacking:?}"
    );
    // A partition that is made later would have none, and its rows could not be updated any more.
    assert!(!lacking.may_fix);
    let refused = fixture.database.repair(lacking).unwrap_err();
    assert!(matches!(refused, Error::Usage { .. }), "{refused}");
}
