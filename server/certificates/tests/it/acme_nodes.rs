//! Several nodes with one storage: one asks, and another one when the first does not any more.

use std::sync::Arc;
use std::time::Duration;

use lab_testkit::Pebble;
use millpond_certificates::{AcmeOptions, AcmeReport, CertificateStorage, Certificates};

use crate::acme_node::{AcmeNode, AcmeSetting, CLOSED_PORT, options, storage};
use crate::memory_storage::{MemoryStorage, MemoryValues, NODE, OTHER};
use crate::support::{PATIENCE, TestServer, client_config, config_of, get};

/// How long a lock lasts in these tests. The storage's clock stands still unless a test moves it.
const LEASE: Duration = Duration::from_secs(4);

/// A node for one name, with this storage.
fn node(setting: &AcmeSetting, storage: &MemoryStorage) -> AcmeNode {
    let mut options = setting.options(&["one.test"]);
    options.timing.lease = LEASE;
    AcmeNode::start(&setting.certificates, options, storage.clone())
}

#[test]
fn of_two_nodes_one_asks_and_both_answer() {
    let nodes = [(); 2].map(|()| Arc::new(Certificates::new()));
    // The authority looks several times, so that each node has to answer.
    let server = TestServer::tls(nodes.iter().map(config_of).collect());
    let Some(pebble) = Pebble::start(server.address.port(), CLOSED_PORT) else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let wanted = options(&pebble, &["one.test"]);
    let shared = || storage(folder.path()).shared(Duration::from_millis(200));
    let [one, other] = nodes.map(|node| AcmeNode::start(&node, wanted.clone(), shared()));
    let deadline = base_clock::Deadline::after(PATIENCE);
    while [&one, &other]
        .iter()
        .any(|node| node.certificates.get("acme one.test").is_none())
    {
        assert!(!deadline.is_past(), "both nodes get the certificate");
        std::thread::sleep(Duration::from_millis(20));
    }
    assert_eq!(one.serial("one.test"), other.serial("one.test"));
    let reports: Vec<_> = one
        .reports
        .try_iter()
        .chain(other.reports.try_iter())
        .collect();
    let is_issued = |report: &&AcmeReport| matches!(report, AcmeReport::Issued { .. });
    assert_eq!(reports.iter().filter(is_issued).count(), 1, "{reports:?}");
    let client = Arc::new(client_config(&[pebble.issuing_root()]));
    for _ in 0..2 {
        get(server.address, "one.test", &client).unwrap();
    }
}

#[test]
fn a_lease_is_prolonged_while_the_authority_works() {
    let Some(setting) = AcmeSetting::start() else {
        return;
    };
    let storage = MemoryStorage::new();
    setting.pebble.pause();
    let node = node(&setting, &storage);
    let taken = |values: &MemoryValues| values.taken[usize::from(NODE)];
    drop(storage.wait(|values| taken(values) > 0));
    for _ in 0..5 {
        let before = taken(&storage.wait(|_| true));
        let mut values = storage.wait(|values| taken(values) > before);
        values.clock += LEASE * 3 / 4;
        assert!(!values.take(OTHER, LEASE));
    }
    setting.pebble.resume();
    node.wait_until_issued("one.test");
    drop(storage.wait(|values| values.holder.is_none()));
}

#[test]
fn a_lease_that_is_lost_to_another_node_ends_the_work_quietly() {
    let Some(setting) = AcmeSetting::start() else {
        return;
    };
    let storage = MemoryStorage::new();
    setting.pebble.pause();
    let node = node(&setting, &storage);
    let mut values = storage.wait(|values| values.holder.is_some());
    values.clock += LEASE;
    assert!(values.take(OTHER, LEASE));
    let key = values.lock.replace("/lock", "/challenges.json");
    let theirs = br#"[{"name": "one.test", "token": "a", "key_authorization": "a.b"}]"#;
    values.values.insert(key.clone(), theirs.to_vec());
    drop(values);

    // The first refusal ends the work, the second one is of the next round.
    let values = storage.wait(|values| values.refused[usize::from(NODE)] >= 2);
    assert_eq!(values.values[&key], theirs);
    drop(values);
    assert_eq!(setting.certificates.http_challenge("a").unwrap(), "a.b");
    setting.pebble.resume();
    let reports: Vec<_> = node.reports.try_iter().collect();
    assert!(reports.is_empty(), "{reports:?}");
    storage.other().unlock("").unwrap();
    node.wait_until_issued("one.test");
}

#[test]
fn the_lease_of_a_dead_node_is_waited_for() {
    let Some(setting) = AcmeSetting::start() else {
        return;
    };
    let storage = MemoryStorage::new();
    assert!(storage.other().lock("", LEASE).unwrap());
    let node = node(&setting, &storage);
    let mut values = storage.wait(|values| values.refused[usize::from(NODE)] >= 2);
    values.clock += LEASE;
    drop(values);
    node.wait_until_issued("one.test");
    assert_eq!(setting.pebble.orders(), 1);
}

#[test]
fn stopping_does_not_wait_for_a_storage_that_does_not_answer() {
    let storage = MemoryStorage::new();
    let directory = format!("https://127.0.0.1:{CLOSED_PORT}/dir");
    let mut options = AcmeOptions::new(vec!["one.test".to_owned()]);
    options.directory = directory;
    let node = AcmeNode::start(&Arc::default(), options, storage.clone());
    node.wait_until_failed();
    storage.wait(|_| true).is_silent = true;
    node.renewal.check_now();
    drop(storage.wait(|values| values.waiting > 0));
    drop(node);
    let mut values = storage.wait(|_| true);
    assert_eq!(values.waiting, 1);
    values.is_silent = false;
    drop(values);
    storage.shared.1.notify_all();
}

#[test]
fn a_storage_that_works_again_is_reported() {
    let folder = tempfile::tempdir().unwrap();
    let blocked = folder.path().join("blocked");
    std::fs::write(&blocked, "no folder").unwrap();
    let mut options = AcmeOptions::new(vec!["one.test".to_owned()]);
    options.directory = format!("https://127.0.0.1:{CLOSED_PORT}/dir");
    let node = AcmeNode::start(&Arc::default(), options, storage(&blocked));
    assert!(matches!(node.report(), AcmeReport::StorageFailed { .. }));
    std::fs::remove_file(&blocked).unwrap();
    node.renewal.check_now();
    loop {
        match node.report() {
            AcmeReport::StorageRecovered => break,
            // The authority cannot be reached.
            AcmeReport::Failed { .. } | AcmeReport::StorageFailed { .. } => {}
            other => panic!("{other}"),
        }
    }
}
