//! Clients that spin: which cores they take, and whether the server has a core left.
//!
//! A thread that never sleeps in `epoll` notices a response without the server's help. The price is
//! its whole core. A plan is refused if its threads would take cores from each other, or from a
//! server whose cores are known. If they may do so, the run has a note.
//!
//! Spinning for a while before sleeping would cost less, but how often such a client sleeps depends
//! on the speed of the server, so two servers would be measured by two kinds of client. Therefore a
//! client spins always or never. (`SO_BUSY_POLL` concerns queues of network cards. The loopback
//! interface has none, and the option does not keep a thread from sleeping in `epoll` after its
//! time.)

use std::collections::BTreeSet;
use std::fs;

use rustix::process::Pid;

use crate::url::{self, Url};
use crate::{Error, Plan, driver, limits};

/// Numbers of cores.
pub type Cores = BTreeSet<usize>;

/// Refuses a plan that spins on more cores than it may use, or on all cores of a server whose
/// processes are given here or in the plan's probe.
pub fn check(plan: &Plan, pids: &[u32]) -> Result<(), Error> {
    if !plan.spin {
        return Ok(());
    }
    let (threads, cores) = (driver::threads(plan), cores(plan));
    if !cores.is_empty() && threads > cores.len() {
        return Err(Error::Plan(format!(
            "each thread of a client that spins takes a whole core, and {threads} threads would share {}: use fewer threads, or \
             give more cores",
            cores.len()
        )));
    }
    let probed = plan.probe.iter().flat_map(|probe| probe.pids.iter());
    let given = pids.iter().filter_map(|&pid| i32::try_from(pid).ok());
    for pid in probed.copied().chain(given) {
        let own: Cores = limits::cores_of(Pid::from_raw(pid)).into_iter().collect();
        if !own.is_empty() && left(&own, &cores, threads) == 0 {
            return Err(Error::Plan(format!(
                "process {pid} may run only on cores that a client which spins would take whole: use fewer threads, or give the \
                 client other cores"
            )));
        }
    }
    Ok(())
}

/// A note for a plan that spins and seems to leave no core to a server on this machine.
pub fn note(plan: &Plan) -> Option<String> {
    if !plan.spin || !is_here(plan) {
        return None;
    }
    let online = fs::read_to_string("/sys/devices/system/cpu/online").ok()?;
    let machine = listed(&online)?;
    let threads = driver::threads(plan);
    (left(&machine, &cores(plan), threads) == 0).then(|| {
        format!(
            "the client spins on all {} cores of this machine, where the server seems to be as well: it takes from the server what \
             it measures; leave a core to it with fewer threads, or pin both",
            machine.len()
        )
    })
}

/// Cores on which the threads of a plan may run; empty if not known.
fn cores(plan: &Plan) -> Cores {
    match &plan.cores {
        // The threads are pinned to these cores in turn.
        Some(cores) => cores.iter().copied().take(driver::threads(plan)).collect(),
        None => limits::cores_of(None).into_iter().collect(),
    }
}

/// How many of the server's cores are left if `threads` take one core each of the client's cores,
/// first those that the server may not use.
pub fn left(server: &Cores, client: &Cores, threads: usize) -> usize {
    let elsewhere = client.difference(server).count();
    server
        .len()
        .saturating_sub(threads.saturating_sub(elsewhere))
}

/// Whether the name says that the server is on this machine.
fn is_here(plan: &Plan) -> bool {
    if plan.unix_socket.is_some() {
        return true;
    }
    let host = match &plan.connect_to {
        Some(place) => url::host_and_port(place).map(|(host, _)| host),
        None => Url::parse(&plan.url).map(|url| url.host),
    };
    host.is_ok_and(|host| limits::is_local(&host))
}

/// The numbers in a list such as `0-3,8`.
fn listed(text: &str) -> Option<Cores> {
    let mut all = Cores::new();
    for part in text.trim().split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        all.extend(first.parse::<usize>().ok()?..=last.parse().ok()?);
    }
    Some(all)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ProbePlan;

    fn plan(threads: usize) -> Plan {
        Plan {
            spin: true,
            threads,
            connections: 1_000,
            ..Plan::new("http://127.0.0.1:1/")
        }
    }

    fn said(plan: &Plan, pids: &[u32]) -> String {
        check(plan, pids).map_or_else(|error| error.to_string(), |()| String::new())
    }

    #[test]
    fn a_thread_that_spins_has_a_core_of_its_own() {
        let allowed = limits::cores();
        assert_eq!(said(&plan(0), &[]), "", "one for each core");
        let many = plan(allowed + 1);
        assert!(said(&many, &[]).contains("would share"));
        let sleeps = Plan {
            spin: false,
            ..many.clone()
        };
        assert_eq!(said(&sleeps, &[]), "");
        // A core that is named twice is one core.
        let pinned = |threads| Plan {
            cores: Some(vec![0, 0]),
            ..plan(threads)
        };
        assert!(said(&pinned(2), &[]).contains("2 threads would share 1"));
        assert_eq!(said(&pinned(1), &[]), "");
        // Threads that have no connection are not started.
        let few = Plan {
            connections: 1,
            ..many
        };
        assert_eq!(said(&few, &[]), "");
    }

    #[test]
    fn a_server_that_is_known_keeps_a_core() {
        // This process plays the server: it may run on the client's cores.
        let pid = std::process::id();
        let word = "other cores";
        assert!(said(&plan(0), &[pid]).contains(word));
        let probed = Plan {
            probe: Some(ProbePlan {
                pids: vec![pid.cast_signed()],
                ..ProbePlan::default()
            }),
            ..plan(0)
        };
        assert!(said(&probed, &[]).contains(word));
        // A process that has ended is no reason to refuse.
        assert_eq!(said(&plan(0), &[u32::MAX]), "");
    }

    #[test]
    fn cores_are_left_where_the_client_has_others() {
        let set = |list: &str| listed(list).unwrap();
        for (server, client, threads, expected) in [
            ("0", "1", 1, 1),
            ("0", "0", 1, 0),
            ("0-1", "0-1", 1, 1),
            ("0-1", "0-1", 2, 0),
            ("0-1", "1-3", 2, 2),
            ("0-1", "1-3", 3, 1),
            ("0", "0-1", 1, 1),
        ] {
            let found = left(&set(server), &set(client), threads);
            assert_eq!(found, expected, "{server} {client} {threads}");
        }
    }

    #[test]
    fn only_a_server_on_this_machine_can_lose_its_core() {
        let away = Plan {
            url: "http://192.0.2.7/".into(),
            ..plan(1)
        };
        let here = |change: fn(&mut Plan)| {
            let mut plan = away.clone();
            change(&mut plan);
            is_here(&plan)
        };
        assert!(!here(|_| ()));
        assert!(here(|plan| plan.url = "http://localhost/".into()));
        assert!(here(|plan| plan.unix_socket = Some("/s".into())));
        assert!(here(|plan| plan.connect_to = Some("127.0.0.1:1".into())));
        assert_eq!(note(&away), None);
    }

    #[test]
    fn lists_of_cores_are_read() {
        let numbers = |text: &str| listed(text).map(|cores| cores.into_iter().collect::<Vec<_>>());
        assert_eq!(numbers("0-2,5\n"), Some(vec![0, 1, 2, 5]));
        assert_eq!(numbers("x"), None);
    }
}
