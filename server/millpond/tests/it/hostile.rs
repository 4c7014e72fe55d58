//! Hostile clients against the program: `MILLPOND_HOSTILE_REQUESTS=1000000` is for a release build.

use std::time::Duration;

use lab_torture::http::{Attack, BaselineClient, Campaign, attack, site};

use crate::{memory::memory, support::serve};

/// How much more memory there may be after a second campaign than after the first.
const GROWTH: u64 = 16 << 20;

#[test]
fn hostile_requests_disturb_no_visitor_and_leave_no_memory_behind() {
    let requests = std::env::var("MILLPOND_HOSTILE_REQUESTS").ok();
    let requests = requests.map_or(2000, |number| number.parse().unwrap());
    let dir = lab_testkit::fast_dir();
    site::write(dir.path()).unwrap();
    let server = serve(dir.path());
    let baseline = BaselineClient::start(server.address(), Duration::ZERO).unwrap();
    let kept = [1, 2].map(|seed| {
        let report = attack(&Campaign {
            address: server.address(),
            requests,
            clients: 6,
            seed,
        });
        let report = report.unwrap();
        assert_eq!(report.faults, 0, "{:#?}", report.first_faults);
        assert!(report.hostile() >= requests);
        let mut attacks = Attack::ALL.iter();
        assert!(
            attacks.all(|attack| report.tallies.contains_key(attack)),
            "{report:?}"
        );
        memory(&server, "RssAnon")
    });
    assert!(kept[1] < kept[0] + GROWTH, "{kept:?} bytes");
    let visits = baseline.stop();
    assert_eq!(visits.errors, 0, "{:?}", visits.first_errors);
    assert!(visits.good > 0);
    let (status, notes) = server.stop();
    assert!(status.success() && !notes.contains("panicked"), "{notes}");
}
