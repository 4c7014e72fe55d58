//! The promise on PostgreSQL: three nodes while feeds, server, nodes and wires fail. `cargo xtask soak adversary` does the
//! same for an hour.

use std::time::Duration;

use millpond_adversary::{Feed, Fight, fight};

/// A run of less than this has checked nothing, however busy the machine is.
const LEAST_READS: u64 = 2_000;

#[test]
fn no_fault_makes_a_page_late_or_mixed() {
    fought(Feed::Logical);
}

/// The same where changes are told by triggers; the faults take most of the time.
#[test]
fn no_fault_makes_a_page_late_or_mixed_without_logical_replication() {
    fought(Feed::Triggers);
}

fn fought(feed: Feed) {
    let report = fight(&Fight {
        program: env!("CARGO_BIN_EXE_millpond").into(),
        feed,
        length: Duration::from_secs(number("MILLPOND_ADVERSARY_SECONDS").unwrap_or(30)),
        seed: number("MILLPOND_ADVERSARY_SEED").unwrap_or(1),
        readers: 4,
        writers: 4,
    });
    let report = report.unwrap();
    println!("{report}");
    assert_eq!((report.late, report.mixed), (0, 0), "{report}");
    assert_eq!(report.lost, [0; 0], "{report}");
    assert_eq!(report.slots, 0, "{report}");
    assert_eq!(report.notes, [""; 0], "{report}");
    let least = number("MILLPOND_ADVERSARY_READS").unwrap_or(LEAST_READS);
    assert!(report.reads >= least, "{report}");
    assert!(report.hits * 2 >= report.reads, "{report}");
}

/// A whole number from the environment.
fn number(name: &str) -> Option<u64> {
    let text = std::env::var(name).ok()?;
    Some(text.parse().unwrap())
}
