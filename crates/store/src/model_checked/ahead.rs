//! Values made before they are asked for, beside writers and readers.

use super::*;

/// Makes ahead what is offered, and the value itself even if it is not, as after a restart.
fn attend(store: &TestStore, row: &Row, tag: Tag) {
    for _ in 0..3 {
        store.sweep(NOW);
        let key = store.next_ahead(NOW).unwrap_or_else(|| KEY.into());
        if let Some(mut permit) = store.lead_ahead(&key, NOW) {
            permit.renewable();
            make(permit, row, tag);
        }
        store.fold_heat();
    }
}

fn check(order: Order, tag: Tag, end_epochs: bool) {
    explore(move || {
        let (store, row) = (store(), Arc::new(Row::default()));
        let mut threads = Vec::new();
        let (shared, seen) = (store.clone(), row.clone());
        threads.push(thread::spawn(move || attend(&shared, &seen, tag)));
        let (shared, seen) = (store.clone(), row.clone());
        threads.push(thread::spawn(move || {
            let mut held = None;
            for _ in 0..3 {
                let owed = seen.acknowledged.load(Ordering::SeqCst);
                let given = ask(&shared, &seen, tag, &mut held);
                assert!(given >= owed, "given {given}, written {owed}");
            }
        }));
        if end_epochs {
            let store = store.clone();
            threads.push(thread::spawn(move || store.new_epoch("test")));
        }
        write(&store, &row, 2, order);
        for thread in threads {
            thread.join().expect("nobody fails");
        }
        assert_eq!(ask(&store, &row, tag, &mut None), 2);
        let stats = store.stats();
        assert_eq!((stats.flights, stats.waiting, stats.logged), (0, 0, 0));
        assert!(stats.made_in_vain <= stats.made_ahead);
    });
}

#[test]
fn own_writes_are_read_while_values_are_made_ahead() {
    check(Order::VisibleFirst, TAGS[0], false);
}

#[test]
fn own_writes_are_read_while_values_are_made_ahead_by_generation() {
    check(Order::VisibleFirst, TAGS[1], true);
}

#[test]
fn own_writes_are_read_while_values_are_made_ahead_of_visibility() {
    check(Order::AppliedFirst, TAGS[0], true);
}
