//! The promise on PostgreSQL: three nodes while feeds, server, nodes and the network fail; and on
//! SQLite: three nodes on a file that other programs write. `cargo xtask soak adversary` does this
//! for an hour.

use std::time::Duration;

use lab_torture::coherence::{
    Feed, LeastReads, Netns, Packets, Scenario, ScenarioReport, enter_netns, run, run_on_sqlite,
};

/// A run of less than this has checked nothing. On a busy machine it takes longer.
const LEAST_READS: u64 = 2_000;
/// Pages of the node with the long bound that a run must ask for while all is well.
const LEAST_IN_QUIET_PERIODS: u64 = 50;
/// Set by `cargo xtask soak adversary`.
const SECONDS: &str = "MILLPOND_ADVERSARY_SECONDS";

#[test]
fn no_fault_makes_a_page_late_or_mixed() {
    let packets = match enter_netns("adversary::no_fault_makes_a_page_late_or_mixed").unwrap() {
        Netns::Isolated(packets) => Ok(packets),
        Netns::Shared(reason) => Err(reason),
        // The report and the findings have been printed.
        Netns::Finished(ended) => return assert!(ended.success(), "{ended}"),
    };
    let scenario = scenario(packets);
    let report = run(&scenario).unwrap();
    check(&report, &scenario.least);
}

#[test]
fn no_fault_on_sqlite_makes_a_page_late_or_mixed() {
    let mut scenario = scenario(Err("a file has no network".to_owned()));
    // Without triggers each commit of another program ends all that is in memory; with them each of
    // another node does.
    scenario.least.hits /= 5;
    let report = run_on_sqlite(&scenario).unwrap();
    check(&report, &scenario.least);
}

fn scenario(packets: Result<Packets, String>) -> Scenario {
    let reads = number("MILLPOND_ADVERSARY_READS").unwrap_or(LEAST_READS);
    Scenario {
        program: env!("CARGO_BIN_EXE_millpond").into(),
        feed: feed(),
        packets,
        length: Duration::from_secs(number(SECONDS).unwrap_or(30)),
        least: LeastReads {
            all: reads,
            hits: reads / 2,
            quiet: LEAST_IN_QUIET_PERIODS,
            quiet_hits: 1,
        },
        seed: number("MILLPOND_ADVERSARY_SEED").unwrap_or(1),
        readers: 4,
        writers: 4,
    }
}

fn check(report: &ScenarioReport, least: &LeastReads) {
    println!("{report}");
    let all = report.all;
    assert_eq!((all.late, all.mixed), (0, 0), "{report}");
    assert_eq!(report.streams.late, 0, "{report}");
    assert!(report.streams.told > 0, "{report}");
    assert_eq!(report.lost, [0; 0], "{report}");
    assert_eq!((report.slots, report.sessions), (0, 0), "{report}");
    assert_eq!(report.notes, [""; 0], "{report}");
    let quiet = report.quiet_period;
    let read = LeastReads {
        all: all.reads.min(least.all),
        hits: all.hits.min(least.hits),
        quiet: quiet.reads.min(least.quiet),
        quiet_hits: quiet.hits.min(least.quiet_hits),
    };
    assert_eq!(read, *least, "{report}");
    // A claim about seconds, so it is judged only where a length is given. Here it is enough that
    // after each fault every node shows a write from memory, which is a note otherwise.
    if number(SECONDS).is_some() {
        assert!(report.is_prompt(), "{report}");
    }
}

/// The kind of feed of the nodes. A run with triggers takes as long again, so only `cargo xtask
/// soak adversary` has one.
fn feed() -> Feed {
    match std::env::var("MILLPOND_ADVERSARY_FEED").as_deref() {
        Ok("triggers" | "sqlite-triggers") => Feed::Triggers,
        Ok("logical" | "sqlite") | Err(_) => Feed::Logical,
        Ok(other) => panic!("MILLPOND_ADVERSARY_FEED is {other}, which is no feed"),
    }
}

/// A whole number from the environment.
fn number(name: &str) -> Option<u64> {
    let text = std::env::var(name).ok()?;
    Some(text.parse().unwrap())
}
