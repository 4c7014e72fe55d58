//! Files of rows: a long transaction of ours.

use std::sync::Arc;
use std::time::Duration;

use millpond_db::{
    Error, FileChange, FileContent, FileOutcome, FileState, RowCounts, RowSource, TableColumn,
    TableColumnKind, Value,
};
use millpond_store::Feed;

use crate::support::{RecordingSink, SinkCall, SqliteFixture};

const SCHEMA: &str = "create table t (id integer primary key, v integer, _file text not null);
     insert into t values (1, 0, 'old.csv');";

/// Gives rows until a heartbeat has gone out that began after the first.
struct SlowRows {
    sink: Arc<RecordingSink>,
    rows: i64,
}

fn heartbeats(sink: &RecordingSink) -> usize {
    let calls = sink.calls();
    let calls = calls
        .iter()
        .filter(|call| matches!(call, SinkCall::Heartbeat(..)));
    calls.count()
}

impl RowSource for SlowRows {
    fn rows(&mut self, each: &mut dyn FnMut(&[Value]) -> Result<(), Error>) -> Result<(), Error> {
        let before = heartbeats(&self.sink);
        while heartbeats(&self.sink) < before + 3 {
            self.rows += 1;
            each(&[(self.rows + 1).into(), 7.into()])?;
        }
        Ok(())
    }
}

fn column(name: &str, is_key: bool) -> TableColumn {
    TableColumn {
        name: name.to_owned(),
        type_name: "integer".to_owned(),
        kind: TableColumnKind::Integer,
        is_key,
        not_null: is_key,
        default: None,
    }
}

#[test]
fn heartbeats_go_on_in_a_long_transaction_of_ours_and_its_change_is_not_taken_for_seen() {
    let fixture = SqliteFixture::new(SCHEMA);
    let seen = fixture.sink.calls().len();
    let content = FileContent {
        columns: vec![column("id", true), column("v", false)],
        others: Vec::new(),
        source: Box::new(SlowRows {
            sink: Arc::clone(&fixture.sink),
            rows: 0,
        }),
    };
    let change = FileChange {
        file: "t.csv".to_owned(),
        table: "t".to_owned(),
        hash: "a".to_owned(),
        version: 1,
        is_news: true,
        seen: None,
        state: FileState::Rows(content),
    };
    let outcome = fixture.database.apply_files(vec![change], Arc::default());
    let Ok([FileOutcome::Applied(RowCounts { inserted, .. })]) = outcome.as_deref() else {
        panic!("{outcome:?}");
    };
    assert!(*inserted > 0);
    let calls = fixture.sink.calls().split_off(seen);
    let applied = calls
        .iter()
        .position(|call| matches!(call, SinkCall::Apply(..)));
    let applied = applied.expect("the change was delivered");
    let SinkCall::Apply(mark, _) = calls[applied] else {
        unreachable!()
    };
    let mut heartbeats = 0;
    for call in &calls[..applied] {
        match call {
            SinkCall::Heartbeat(_, position) | SinkCall::Visible(position) => {
                heartbeats += usize::from(matches!(call, SinkCall::Heartbeat(..)));
                let snapshot = millpond_db::DatabaseFeed::snapshot_at(*position);
                let mark = millpond_db::Mark {
                    transaction: mark,
                    at: mark,
                };
                assert!(
                    !millpond_db::DatabaseFeed::sees(&snapshot, mark),
                    "{calls:?}"
                );
            }
            SinkCall::Apply(..) | SinkCall::NewEpoch(_) => {}
        }
    }
    assert!(heartbeats >= 3, "{calls:?}");
}

#[test]
fn heartbeats_go_on_in_a_long_statement_of_ours() {
    let fixture = SqliteFixture::on_disk(SCHEMA);
    let endless = "insert into t select n, n, 'endless' from (with recursive c (n) as (select 2 \
        union all select n + 1 from c) select n from c) where n < 0";
    let foreign = fixture.foreign();
    foreign.busy_timeout(Duration::ZERO).unwrap();
    std::thread::scope(|scope| {
        let writing = scope.spawn(|| fixture.try_write(endless, vec![]));
        while foreign.execute_batch("begin immediate; rollback").is_ok() {
            assert!(!writing.is_finished(), "the statement has ended");
        }
        // Its transaction has the lock, so each heartbeat is sent in the middle of the statement.
        for _ in 0..3 {
            fixture.sink.settle();
        }
        // There is no other end of it than a file that is not the database any more.
        std::fs::rename(fixture.path(), fixture.directory.path().join("moved.db")).unwrap();
        assert!(writing.join().unwrap().is_err());
    });
}
