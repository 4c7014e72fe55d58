//! Values that are made ahead, beside writers and readers.

use super::*;

/// Makes ahead what is offered, and the value itself even if it is not, as after a restart.
fn set_attendant(store: &TestStore, row: &SimulatedRow, tag: Tag) {
    for _ in 0..3 {
        store.sweep(NOW);
        let next = store.next_ahead(NOW);
        let key = next.map_or_else(|| KEY.into(), |(key, _)| key);
        if let Some(mut permit) = store.lead_ahead(&key, NOW) {
            permit.renewable();
            make(permit, row, tag);
        }
        store.fold_heat();
    }
}

#[test]
fn own_writes_are_read_while_values_are_made_ahead() {
    check_beside(set_attendant, Order::VisibleFirst, TAGS[0], false);
}

#[test]
fn own_writes_are_read_while_values_are_made_ahead_by_generation() {
    check_beside(set_attendant, Order::VisibleFirst, TAGS[1], true);
}

#[test]
fn own_writes_are_read_while_values_are_made_ahead_of_visibility() {
    check_beside(set_attendant, Order::AppliedFirst, TAGS[0], true);
}
