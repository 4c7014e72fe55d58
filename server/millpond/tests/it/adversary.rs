//! The promise on PostgreSQL: three nodes while feeds, server, nodes and the network fail. `cargo
//! xtask soak adversary` does this for an hour.

use std::time::Duration;

use lab_torture::coherence::{Feed, Netns, Scenario, enter_netns, run};

/// A run of less than this has checked nothing, however busy the machine is.
const LEAST_READS: u64 = 2_000;
/// The same of the pages of the node with the long bound that were asked for while all was well.
const LEAST_IN_QUIET_PERIODS: u64 = 50;

#[test]
fn no_fault_makes_a_page_late_or_mixed() {
    let packets = match enter_netns("adversary::no_fault_makes_a_page_late_or_mixed").unwrap() {
        Netns::Isolated(packets) => Ok(packets),
        Netns::Shared(reason) => Err(reason),
        // The report and the findings have been printed.
        Netns::Finished(ended) => return assert!(ended.success(), "{ended}"),
    };
    let report = run(&Scenario {
        program: env!("CARGO_BIN_EXE_millpond").into(),
        feed: feed(),
        packets,
        length: Duration::from_secs(number("MILLPOND_ADVERSARY_SECONDS").unwrap_or(30)),
        seed: number("MILLPOND_ADVERSARY_SEED").unwrap_or(1),
        readers: 4,
        writers: 4,
    });
    let report = report.unwrap();
    println!("{report}");
    let all = report.all;
    assert_eq!((all.late, all.mixed), (0, 0), "{report}");
    assert_eq!(report.lost, [0; 0], "{report}");
    assert_eq!((report.slots, report.sessions), (0, 0), "{report}");
    assert_eq!(report.notes, [""; 0], "{report}");
    let least = number("MILLPOND_ADVERSARY_READS").unwrap_or(LEAST_READS);
    assert!(all.reads >= least, "{report}");
    assert!(all.hits * 2 >= all.reads, "{report}");
    let quiet = report.quiet_period;
    assert!(
        quiet.reads >= LEAST_IN_QUIET_PERIODS && quiet.hits > 0,
        "{report}"
    );
    assert!(report.is_prompt(), "{report}");
}

/// The kind of feed of the nodes. A run with triggers takes as long again, so only `cargo xtask
/// soak adversary` has one.
fn feed() -> Feed {
    match std::env::var("MILLPOND_ADVERSARY_FEED").as_deref() {
        Ok("triggers") => Feed::Triggers,
        Ok("logical") | Err(_) => Feed::Logical,
        Ok(other) => panic!("MILLPOND_ADVERSARY_FEED is {other}, neither logical nor triggers"),
    }
}

/// A whole number from the environment.
fn number(name: &str) -> Option<u64> {
    let text = std::env::var(name).ok()?;
    Some(text.parse().unwrap())
}
