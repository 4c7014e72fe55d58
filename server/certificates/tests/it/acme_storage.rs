//! A storage that fails while the authority works: nothing is asked again that was got, and no
//! pause is forgotten.

use millpond_certificates::AcmeReport;

use crate::acme_node::{AcmeNode, AcmeSetting};
use crate::memory_storage::{MemoryStorage, MemoryValues, NODE};
use crate::support::PATIENCE;

/// Renewal information with a window that is over (RFC 9773 section 4.2).
const PAST: &str = r#"{"suggestedWindow":
    {"start": "2026-01-01T00:00:00Z", "end": "2026-01-02T00:00:00Z"}}"#;

fn node(setting: &AcmeSetting, storage: &MemoryStorage) -> AcmeNode {
    let mut options = setting.options(&["one.test"]);
    options.timing.first_retry = 4 * PATIENCE;
    options.timing.longest_retry = 4 * PATIENCE;
    AcmeNode::start(&setting.certificates, options, storage.clone())
}

/// Waits until the node has looked at the storage some times more.
fn rounds(storage: &MemoryStorage) {
    let rounds = |values: &MemoryValues| values.rounds[usize::from(NODE)];
    let before = rounds(&storage.wait(|_| true));
    drop(storage.wait(|values| rounds(values) > before + 10));
}

fn wait_for_recovery(node: &AcmeNode) {
    let report = node.report();
    assert_eq!(report, AcmeReport::StorageRecovered);
}

#[test]
fn a_pause_that_cannot_be_stored_is_kept_and_stored_later() {
    let Some(setting) = AcmeSetting::start() else {
        return;
    };
    let storage = MemoryStorage::new();
    storage.wait(|_| true).unwritable = vec!["/challenges.json", ".failure.json"];
    let node = node(&setting, &storage);
    // The challenge cannot be published.
    assert!(matches!(node.report(), AcmeReport::StorageFailed { .. }));
    node.wait_until_failed();
    rounds(&storage);
    assert_eq!(setting.pebble.orders(), 1);
    // One value of two can be written: the fault has not ended.
    storage.wait(|_| true).unwritable.pop();
    rounds(&storage);
    let reports: Vec<_> = node.reports.try_iter().collect();
    assert!(reports.is_empty(), "{reports:?}");
    storage.wait(|_| true).unwritable.clear();
    wait_for_recovery(&node);
    let stored = storage.wait(|_| true).value(".failure.json").unwrap();
    let stored = String::from_utf8(stored).unwrap();
    assert!(stored.contains("\"failures\":1"), "{stored}");
    assert_eq!(setting.pebble.orders(), 1);
}

#[test]
fn a_certificate_that_cannot_be_stored_stays_in_use_and_is_stored_later() {
    let Some(setting) = AcmeSetting::start() else {
        return;
    };
    let storage = MemoryStorage::new();
    let node = node(&setting, &storage);
    node.wait_until_issued("one.test");
    let first = node.serial("one.test");
    storage.wait(|_| true).unwritable = vec!["/one.test.pem"];
    // A certificate that was just issued is not asked for again.
    drop(node);
    let node = self::node(&setting, &storage);
    setting.pebble.set_renewal_info(&first.clone().into(), PAST);
    node.wait_until_issued("one.test");
    let second = node.serial("one.test");
    assert_ne!(second, first);
    assert!(matches!(node.report(), AcmeReport::StorageFailed { .. }));
    rounds(&storage);
    assert_eq!(node.serial("one.test"), second, "the new one stays in use");
    let reports: Vec<_> = node.reports.try_iter().collect();
    assert!(reports.is_empty(), "{reports:?}");
    let stored_before = storage.wait(|_| true).value("/one.test.pem");
    storage.wait(|_| true).unwritable.clear();
    wait_for_recovery(&node);
    assert_ne!(storage.wait(|_| true).value("/one.test.pem"), stored_before);
    assert_eq!(setting.pebble.orders(), 2);
    drop(node);
    let node = self::node(&setting, &storage);
    assert_eq!(node.serial("one.test"), second, "it was stored");
}

#[test]
fn challenges_of_another_node_are_answered_while_the_authority_is_silent() {
    let Some(setting) = AcmeSetting::start() else {
        return;
    };
    let storage = MemoryStorage::new();
    let node = node(&setting, &storage);
    node.wait_until_issued("one.test");
    drop(storage.wait(|values| values.holder.is_none()));
    setting.pebble.pause();
    let mut values = storage.wait(|values| values.value("/challenges.json").is_some());
    let mut names = values.values.keys();
    let key = names.find(|name| name.ends_with("/challenges.json"));
    let key = key.unwrap().clone();
    for turn in 0..20 {
        let theirs = format!(
            r#"[{{"name": "one.test", "token": "t{turn}", "key_authorization": "t{turn}.b"}}]"#
        );
        values.values.insert(key.clone(), theirs.into_bytes());
        let before = values.rounds[usize::from(NODE)];
        drop(values);
        // The second reading begins after the first has been answered.
        values = storage.wait(|values| values.rounds[usize::from(NODE)] > before + 1);
        let answer = setting.certificates.http_challenge(&format!("t{turn}"));
        assert_eq!(answer.unwrap(), format!("t{turn}.b"));
    }
    drop(values);
    setting.pebble.resume();
}
