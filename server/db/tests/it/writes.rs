//! Own writes: constraints, expectations, and that they are seen at once.

use millpond_db::{Bind, ConstraintKind, Error, Expect, WriteStep};

use crate::support::{SqliteFixture, int, text, wait};

const SCHEMA: &str = "
create table t (id integer primary key, u text unique, n text not null default 'n', c integer check (c > 0));
create table child (t integer references t);
insert into t values (1, 'one', 'n', 1);
";

#[test]
fn violated_constraints_say_which() {
    let fixture = SqliteFixture::new(SCHEMA);
    let check = |sql: &str, expected: ConstraintKind| match fixture.try_write(sql, vec![]) {
        Err(Error::Constraint { kind, message, .. }) => assert_eq!(kind, expected, "{message}"),
        other => panic!("{other:?}"),
    };
    check("insert into t (u) values ('one')", ConstraintKind::Unique);
    check("insert into t (id) values (1)", ConstraintKind::PrimaryKey);
    check("insert into t (n) values (null)", ConstraintKind::NotNull);
    check("insert into t (c) values (0)", ConstraintKind::Check);
    check("insert into child values (9)", ConstraintKind::ForeignKey);
    fixture.write("insert into child values (1)", vec![]);
    check("delete from t", ConstraintKind::StillReferenced);
    check(
        "update t set id = 2 where id = 1",
        ConstraintKind::EitherReference,
    );
    assert_eq!(
        fixture.rows(&fixture.prepare("select count(*) from t"), vec![]),
        [[int(1)]]
    );
}

#[test]
fn expectations() {
    let fixture = SqliteFixture::new(SCHEMA);
    let run = |sql, expect| {
        wait(fixture.database.write(vec![WriteStep {
            query: fixture.prepare(sql),
            bind: vec![],
            expect,
        }]))
    };
    assert!(matches!(
        run("select * from t where id = 9", Expect::One),
        Err(Error::NoRow { step: 0 })
    ));
    assert!(
        run("select * from t where id = 9", Expect::Optional)
            .unwrap()
            .results[0]
            .rows
            .is_empty()
    );
    assert_eq!(
        run(
            "insert into t (u) values ('a'), ('b') returning u",
            Expect::One
        )
        .unwrap()
        .results[0]
            .rows,
        [[text("a")]]
    );
    assert_eq!(
        run(
            "insert into t (u) values ('c'), ('d') returning u",
            Expect::Many
        )
        .unwrap()
        .results[0]
            .rows
            .len(),
        2
    );
    assert!(
        run(
            "insert into t (u) values ('e'), ('f') returning u",
            Expect::Exec
        )
        .unwrap()
        .results[0]
            .rows
            .is_empty()
    );
    assert_eq!(
        fixture.rows(&fixture.prepare("select count(*) from t"), vec![]),
        [[int(7)]]
    );
}

#[test]
fn a_binding_to_a_row_that_is_not_there_rolls_back() {
    let fixture = SqliteFixture::new(SCHEMA);
    let step = |sql, bind, expect| WriteStep {
        query: fixture.prepare(sql),
        bind,
        expect,
    };
    let insert = step("insert into t (u) values ('x')", vec![], Expect::Exec);
    let none = step("select id from t where id = 77", vec![], Expect::Optional);
    let uses = |step_index, column: &str| {
        step(
            "insert into child values (:t)",
            vec![Bind::Column {
                step: step_index,
                column: column.into(),
            }],
            Expect::Exec,
        )
    };
    let write = |steps| wait(fixture.database.write(steps));
    // Without a row a column is null.
    let missing = |column: &str| Bind::Column {
        step: 0,
        column: column.into(),
    };
    let is_null = step("select :id is null", vec![missing("id")], Expect::One);
    let written = write(vec![none.clone(), is_null]).unwrap();
    assert_eq!(written.results[1].rows, [[int(1)]]);
    assert!(matches!(
        write(vec![insert.clone(), none, uses(1, "nope")]),
        Err(Error::Usage { .. })
    ));
    assert!(matches!(
        write(vec![insert, uses(5, "id")]),
        Err(Error::Usage { .. })
    ));
    assert_eq!(
        fixture.rows(&fixture.prepare("select count(*) from t"), vec![]),
        [[int(1)]]
    );
}

#[test]
fn what_was_written_is_read_at_once_from_any_thread() {
    let fixture = SqliteFixture::new("create table t (id integer primary key, n integer)");
    let count = fixture.prepare("select count(*) from t where n = :n");
    std::thread::scope(|scope| {
        for n in 0..4 {
            let (fixture, count) = (&fixture, &count);
            scope.spawn(move || {
                for written in 1..=25 {
                    fixture.fill(&n.to_string(), count, &[int(n)]);
                    fixture.write("insert into t (n) values (:n)", vec![int(n)]);
                    assert!(fixture.sink.cached(&n.to_string()).is_none());
                    assert_eq!(fixture.rows(count, vec![int(n)]), [[int(written)]]);
                }
            });
        }
    });
}

#[test]
fn a_transaction_statement_is_refused() {
    let fixture = SqliteFixture::new(SCHEMA);
    for sql in [
        "commit",
        "rollback",
        "savepoint s",
        "pragma foreign_keys = off",
        "attach 'x' as y",
        "vacuum",
    ] {
        assert!(fixture.try_write(sql, vec![]).is_err(), "{sql}");
    }
}
