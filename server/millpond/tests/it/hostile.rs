//! Hostile clients against the program; `lab-bench hostile` does the same a million times over.

use std::time::Duration;

use lab_torture::http::{Attack, BaselineClient, Campaign, attack, site};

use crate::support::serve;

#[test]
fn thousands_of_hostile_requests_disturb_no_visitor() {
    let dir = lab_testkit::fast_dir();
    site::write(dir.path()).unwrap();
    let server = serve(dir.path());
    let baseline = BaselineClient::start(server.address(), Duration::ZERO).unwrap();
    let report = attack(&Campaign {
        address: server.address(),
        requests: 2000,
        clients: 6,
        seed: 1,
    });
    let (report, visits) = (report.unwrap(), baseline.stop());
    assert_eq!(report.faults, 0, "{:#?}", report.first_faults);
    assert!(report.hostile() >= 2000);
    assert!(
        Attack::ALL
            .iter()
            .all(|attack| report.tallies.contains_key(attack)),
        "{report:?}"
    );
    assert_eq!(visits.errors, 0, "{:?}", visits.first_errors);
    assert!(visits.good > 0);
    let (status, notes) = server.stop();
    assert!(status.success() && !notes.contains("panicked"), "{notes}");
}
