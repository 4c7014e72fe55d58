//! What a server lacks, asked and mended through the database.

use millpond_db::{Error, Requirement};

use super::Fixture;

#[test]
fn a_publication_that_is_missing_is_made_and_a_mute_table_is_left_out() {
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
    fixture.database.mend(&before[0]).unwrap();
    let refused = fixture.database.mend(&before[1]).unwrap_err();
    assert!(matches!(refused, Error::Usage { .. }), "{refused}");
    assert_eq!(missing(&ask()), ["mute has no replica identity"]);
    // The application may still change the rows of a table that was left out.
    fixture
        .foreign()
        .batch_execute("insert into mute values (1); update mute set id = 2")
        .unwrap();
}
