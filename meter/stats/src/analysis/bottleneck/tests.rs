//! Each rule on figures that show its limit, and on figures that show no limit.

use base_probe::{
    CoreUse, DiskUse, Network, NetworkUse, ServerUse, Summary, ThreadUse, ThrottleUse,
};

use super::{Finding, Limit, findings};
use crate::analysis::demand::ClientSide;

fn client() -> ClientSide {
    ClientSide {
        rate: 1_000.0,
        cpu_us: Some(20.0),
        busiest: 0.02,
        spun: None,
    }
}

/// A healthy one: four cores, a tenth of them in use.
fn healthy() -> Summary {
    let core = CoreUse {
        user: 0.1,
        idle: 0.9,
        ..CoreUse::default()
    };
    Summary {
        span_s: 10.0,
        cores: vec![core; 4],
        server: Some(ServerUse {
            cpu_s: 3.0,
            ..ServerUse::default()
        }),
        threads: vec![thread(0.2, 0.01)],
        own_threads: vec![thread(0.02, 0.0)],
        ..Summary::default()
    }
}

fn thread(busy: f64, run_delay: f64) -> ThreadUse {
    ThreadUse {
        busy,
        run_delay,
        name: "worker".to_owned(),
        ..ThreadUse::default()
    }
}

fn cores(idle: f64) -> Vec<CoreUse> {
    let core = CoreUse {
        user: 1.0 - idle,
        idle,
        ..CoreUse::default()
    };
    vec![core; 4]
}

fn first(change: impl FnOnce(&mut Summary)) -> Option<Finding> {
    let mut summary = healthy();
    change(&mut summary);
    findings(&summary, client()).into_iter().next()
}

fn server(change: impl FnOnce(&mut ServerUse)) -> Option<ServerUse> {
    let mut server = healthy().server.unwrap_or_default();
    change(&mut server);
    Some(server)
}

#[test]
fn a_healthy_server_has_no_name() {
    assert_eq!(first(|_| ()), None);
    assert_eq!(findings(&Summary::default(), ClientSide::default()), []);
}

#[test]
fn one_thread_is_told_from_all_cores() {
    let one = first(|s| {
        s.threads = vec![thread(0.98, 0.01), thread(0.1, 0.0)];
        s.server = server(|s| s.cpu_s = 10.8);
        s.cores = cores(0.7);
    })
    .unwrap();
    assert_eq!(one.name, Limit::Threads);
    assert!((one.bound_per_s.unwrap() - 1_000.0 / 0.98).abs() < 1e-6);
    let all = first(|s| {
        s.threads = vec![thread(0.95, 0.05); 4];
        s.server = server(|s| s.cpu_s = 38.0);
        s.cores = cores(0.03);
    })
    .unwrap();
    assert_eq!(all.name, Limit::Cores);
}

#[test]
fn a_server_that_is_kept_on_one_core_has_no_more() {
    // Core 3 of four, with two threads there, and the client on core 0.
    let confined = |s: &mut Summary| {
        s.threads = vec![thread(0.5, 0.49), thread(0.49, 0.5)];
        s.server = server(|s| (s.cpu_s, s.run_delay_s) = (9.9, 9.9));
        s.cores[3] = cores(0.0)[3];
        (s.server_cores, s.own_cores) = (vec![3], vec![0]);
    };
    let found = first(confined).unwrap();
    assert_eq!(found.name, Limit::Cores, "{found:?}");
    // Twice as much would be two threads with a core each.
    assert!(
        (found.bound_per_s.unwrap() - 1_000.0).abs() < 1.0,
        "{found:?}"
    );
    let text = found.evidence.join("; ");
    assert!(text.contains("may run on 1 of 4 cores only"), "{text}");
    // What other programs do elsewhere takes nothing from it; on its own core it does.
    let elsewhere = first(|s| {
        confined(s);
        s.cores[1] = cores(0.0)[1];
    });
    assert_eq!(elsewhere.unwrap().name, Limit::Cores);
    let there = first(|s| {
        confined(s);
        s.server = server(|s| (s.cpu_s, s.run_delay_s) = (3.0, 16.0));
        s.threads = vec![thread(0.15, 0.8), thread(0.15, 0.8)];
    });
    assert_eq!(there.unwrap().name, Limit::Neighbours);
}

#[test]
fn a_quota_stands_above_what_looks_busy_because_of_it() {
    let found = first(|s| {
        s.threads = vec![thread(0.3, 0.65)];
        s.throttle = Some(ThrottleUse {
            quota_cores: Some(0.3),
            periods: 100,
            throttled: 95,
            throttled_s: 6.5,
        });
    })
    .unwrap();
    assert_eq!(found.name, Limit::Quota);
    // A quota that exists and is not used up limits nothing.
    let spare = first(|s| {
        s.throttle = Some(ThrottleUse {
            quota_cores: Some(2.0),
            periods: 100,
            throttled: 1,
            throttled_s: 0.01,
        });
    });
    assert_eq!(spare, None);
}

#[test]
fn neighbours_are_named_when_they_take_more_than_is_left() {
    let found = first(|s| {
        s.threads = vec![thread(0.25, 0.7)];
        s.server = server(|s| (s.cpu_s, s.run_delay_s) = (2.5, 7.0));
        s.cores = cores(0.0);
    })
    .unwrap();
    assert_eq!(found.name, Limit::Neighbours);
    assert_eq!(found.bound_per_s, None);
    // A client that takes two cores, and interrupts caused by the packets of both: no other program
    // runs.
    let among_themselves = first(|s| {
        s.threads = vec![thread(0.6, 0.35)];
        s.own_threads = vec![thread(0.8, 0.0)];
        s.server = server(|s| (s.cpu_s, s.run_delay_s) = (30.0, 8.0));
        let core = CoreUse {
            softirq: 0.25,
            ..cores(0.0)[0]
        };
        s.cores = vec![core; 4];
    });
    assert!(
        among_themselves.is_none_or(|found| found.name != Limit::Neighbours),
        "interrupts are nobody's program"
    );
}

#[test]
fn a_disk_needs_threads_that_wait_for_it() {
    let disk = DiskUse {
        name: "sda".to_owned(),
        busy: 0.9,
        writes: 9_000,
        flushes: 9_000,
        written_bytes: 50_000_000,
        ..DiskUse::default()
    };
    let found = first(|s| {
        s.disks = vec![disk.clone()];
        s.server = server(|s| (s.blocked_threads, s.written_bytes) = (0.8, Some(40_960_000)));
    })
    .unwrap();
    assert_eq!(found.name, Limit::Disk);
    // One thread that writes, waits for the flush, and answers.
    let alternates = first(|s| {
        s.threads = vec![thread(0.3, 0.1)];
        s.disks = vec![DiskUse {
            busy: 0.5,
            ..disk.clone()
        }];
        s.server = server(|s| s.written_bytes = Some(40_960_000));
    })
    .unwrap();
    assert_eq!(alternates.name, Limit::Disk);
    // A lock of the kernel, such as that of a process's memory map, cannot be interrupted either.
    let lock = first(|s| {
        s.disks = vec![DiskUse {
            busy: 0.01,
            ..disk.clone()
        }];
        s.server = server(|s| s.blocked_threads = 3.0);
    });
    assert_eq!(lock, None);
    // Another process keeps the disk busy.
    assert_eq!(first(|s| s.disks = vec![disk]), None);
}

#[test]
fn the_network_and_the_queue_have_their_counters() {
    let network = |counts, busy| Some(NetworkUse { counts, busy });
    let full = first(|s| s.network = network(Network::default(), Some(0.95))).unwrap();
    assert_eq!(full.name, Limit::Network);
    let lost = Network {
        segments: 10_000,
        retransmits: 500,
        ..Network::default()
    };
    let lost = first(|s| s.network = network(lost, None)).unwrap();
    assert_eq!((lost.name, lost.bound_per_s), (Limit::Network, None));
    let overflow = Network {
        listen_overflows: 7,
        ..Network::default()
    };
    let queue = first(|s| s.network = network(overflow, None)).unwrap();
    assert_eq!(queue.name, Limit::Backlog);
}

#[test]
fn the_client_accuses_itself() {
    let found = first(|s| s.own_threads = vec![thread(0.97, 0.0)]).unwrap();
    assert_eq!(found.name, Limit::Client);
    let starved = first(|s| s.own_threads = vec![thread(0.5, 0.45)]).unwrap();
    assert_eq!(starved.name, Limit::Client);
}

#[test]
fn a_client_that_spins_is_not_busy_and_no_other_program() {
    let mut summary = healthy();
    summary.own_threads = vec![thread(0.99, 0.0); 2];
    let spins = |busiest| ClientSide {
        busiest,
        spun: Some(1.9),
        ..client()
    };
    assert_eq!(findings(&summary, spins(0.1)), []);
    let found = findings(&summary, spins(0.95));
    assert_eq!(found[0].name, Limit::Client);
    // Two of the four cores are the client's, and the server is short of them.
    summary.threads = vec![thread(0.25, 0.7)];
    (summary.server, summary.cores) = (
        server(|s| (s.cpu_s, s.run_delay_s) = (16.0, 7.0)),
        cores(0.0),
    );
    let has_neighbours = |client| {
        let found = findings(&summary, client);
        found.iter().any(|one| one.name == Limit::Neighbours)
    };
    assert!(!has_neighbours(spins(0.1)));
    assert!(has_neighbours(client()));
}
