//! Which pages of the record shop end besides those that a change of another program changes.

use expect_test::{Expect, expect};

use super::feed::Fed;
use super::triggers;
use crate::chinook::{PAGES, SCHEMA, Shop};

fn check(fed: &Fed, besides: &Expect) {
    let mut foreign = fed.foreign();
    let shop = Shop::new(&fed.database, &fed.sink);
    besides.assert_eq(&shop.besides(|sql| {
        foreign.batch_execute(sql).unwrap();
        fed.sink.settle();
    }));
}

fn logical(identity: &str) -> Fed {
    let identity = format!(
        "do $$ declare t regclass; begin
             for t in select oid from pg_class where relkind = 'r' and relnamespace = 'public'::regnamespace loop
                 execute format('alter table %s replica identity {identity}', t);
             end loop;
         end $$"
    );
    let schema = format!("{SCHEMA} {identity}; create publication millpond for all tables;");
    Fed::with(&schema, |_| {})
}

#[test]
fn with_the_full_identity() {
    check(
        &logical("full"),
        &expect![[r#"
            update album set title = 'new' where id = 1
                invoice 1,4
            update album set title = 'a1' where id = 1
                invoice 1,4
            update genre set name = 'new' where id = 1
                invoice 1,3
            update genre set name = 'g1' where id = 1
                invoice 1,3
            update customer set support_rep_id = 2 where id = 4
                served 2
            update customer set support_rep_id = null where id = 4
                served 2
        "#]],
    );
}

#[test]
fn with_the_default_identity() {
    check(
        &logical("default"),
        &expect![[r#"
            update album set title = 'new' where id = 1
                discs 2,3,4 genre 1,2 invoice 1,4
            update album set title = 'a1' where id = 1
                discs 2,3,4 genre 1,2 invoice 1,4
            update album set artist_id = 2 where id = 2
                discs 3,4
            update album set artist_id = 1 where id = 2
                discs 3,4
            delete from album where id = 5
                discs 1,2,3
            update genre set name = 'new' where id = 1
                invoice 1,3
            update genre set name = 'g1' where id = 1
                invoice 1,3
            update track set name = 'new' where id = 1
                discs 1,2,3,4 genre 2,3,4 tracks 2,3,4
            update track set name = 't1' where id = 1
                discs 1,2,3,4 genre 2,3,4 tracks 2,3,4
            update track set album_id = 2 where id = 4
                bought 2 discs 3,4 genre 1,2,4 tracks 1,4
            update track set album_id = 3 where id = 4
                bought 2 discs 3,4 genre 1,2,4 tracks 1,4
            delete from track where id = 7
                discs 1,3,4 genre 1,2,3 tracks 1,2,4
            update customer set name = 'new' where id = 1
                served 2,3,4
            update customer set name = 'k1' where id = 1
                served 2,3,4
            update customer set support_rep_id = 2 where id = 4
                served 1,2,3,4
            update customer set support_rep_id = null where id = 4
                served 1,2,3,4
            delete from invoice where id = 5
                invoices 1,2,3 served 1,2,3,4
            update invoice_line set quantity = 9 where id = 1
                bought 1,2,3,4 invoice 2,3,4 invoices 2,3,4
            update invoice_line set quantity = 1 where id = 1
                bought 1,2,3,4 invoice 2,3,4 invoices 2,3,4
            delete from invoice_line where id = 6
                bought 1,3,4 invoice 1,3,4 invoices 2,3,4
        "#]],
    );
}

#[test]
fn with_triggers() {
    let queries = PAGES.iter().map(|(_, sql)| *sql).collect::<Vec<_>>();
    let fed = triggers::fed(SCHEMA, &queries, |_| {});
    check(
        &fed,
        &expect![[r#"
            update album set title = 'new' where id = 1
                genre 1,2 invoice 1,4
            update album set title = 'a1' where id = 1
                genre 1,2 invoice 1,4
            update genre set name = 'new' where id = 1
                genre 1 invoice 1,3
            update genre set name = 'g1' where id = 1
                genre 1 invoice 1,3
            update track set name = 'new' where id = 1
                discs 1
            update track set name = 't1' where id = 1
                discs 1
            update track set album_id = 2 where id = 4
                bought 2
            update track set album_id = 3 where id = 4
                bought 2
            update customer set support_rep_id = 2 where id = 4
                served 2
            update customer set support_rep_id = null where id = 4
                served 2
            update invoice_line set quantity = 9 where id = 1
                bought 1
            update invoice_line set quantity = 1 where id = 1
                bought 1
        "#]],
    );
}
