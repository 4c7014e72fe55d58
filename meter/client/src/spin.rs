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

use crate::{Error, LoadPlan, TargetPlan, limits};

/// Numbers of cores.
pub type Cores = BTreeSet<usize>;

/// Refuses a client that spins on more cores than it may use, or on all cores of a server with one
/// of these processes.
pub fn check(load: &LoadPlan, pids: &[i32]) -> Result<(), Error> {
    if !load.spin {
        return Ok(());
    }
    let (threads, cores) = (load.thread_count(), cores(load));
    if !cores.is_empty() && threads > cores.len() {
        return Err(Error::Plan(format!(
            "each thread of a client that spins takes a whole core, and {threads} threads would share {}: use fewer threads, or \
             give more cores",
            cores.len()
        )));
    }
    for &pid in pids {
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

/// A note about a client that spins and seems to leave no core to a server on this machine.
pub fn note(target: &TargetPlan, load: &LoadPlan) -> Option<String> {
    if !load.spin || !target.is_local() {
        return None;
    }
    let online = fs::read_to_string("/sys/devices/system/cpu/online").ok()?;
    let machine = listed(&online)?;
    let threads = load.thread_count();
    (left(&machine, &cores(load), threads) == 0).then(|| {
        format!(
            "the client spins on all {} cores of this machine, where the server seems to be as well: it takes from the server what \
             it measures; leave a core to it with fewer threads, or pin both",
            machine.len()
        )
    })
}

/// Cores on which the threads of a load may run; empty if not known.
fn cores(load: &LoadPlan) -> Cores {
    match &load.cores {
        // The threads are pinned to these cores in turn.
        Some(cores) => cores.iter().copied().take(load.thread_count()).collect(),
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
    use crate::{Plan, ProbePlan};

    fn spinning(threads: usize) -> LoadPlan {
        LoadPlan {
            spin: true,
            threads,
            connections: 1_000,
            ..LoadPlan::default()
        }
    }

    fn refusal(load: &LoadPlan, pids: &[i32]) -> String {
        check(load, pids).map_or_else(|error| error.to_string(), |()| String::new())
    }

    #[test]
    fn a_thread_that_spins_has_a_core_of_its_own() {
        let allowed = limits::cores();
        assert_eq!(refusal(&spinning(0), &[]), "", "one for each core");
        let many = spinning(allowed + 1);
        assert!(refusal(&many, &[]).contains("would share"));
        let sleeps = LoadPlan {
            spin: false,
            ..many.clone()
        };
        assert_eq!(refusal(&sleeps, &[]), "");
        // A core that is named twice is one core.
        let pinned = |threads| LoadPlan {
            cores: Some(vec![0, 0]),
            ..spinning(threads)
        };
        assert!(refusal(&pinned(2), &[]).contains("2 threads would share 1"));
        assert_eq!(refusal(&pinned(1), &[]), "");
        // Threads that have no connection are not started.
        let few = LoadPlan {
            connections: 1,
            ..many
        };
        assert_eq!(refusal(&few, &[]), "");
    }

    #[test]
    fn a_server_that_is_known_keeps_a_core() {
        // This process plays the server: it may run on the client's cores.
        let pid = std::process::id().cast_signed();
        let word = "other cores";
        assert!(refusal(&spinning(0), &[pid]).contains(word));
        let probed = Plan::new("http://127.0.0.1:1/").with(|plan| {
            plan.load = spinning(0);
            plan.conditions.probe = Some(ProbePlan {
                pids: vec![pid],
                ..ProbePlan::default()
            });
        });
        assert!(probed.check().unwrap_err().to_string().contains(word));
        // A process that has ended is no reason to refuse.
        assert_eq!(refusal(&spinning(0), &[i32::MAX]), "");
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
    fn a_server_on_another_machine_loses_no_core() {
        let away = TargetPlan::new("http://192.0.2.7/");
        assert_eq!(note(&away, &spinning(0)), None);
    }

    #[test]
    fn lists_of_cores_are_read() {
        let numbers = |text: &str| listed(text).map(|cores| cores.into_iter().collect::<Vec<_>>());
        assert_eq!(numbers("0-2,5\n"), Some(vec![0, 1, 2, 5]));
        assert_eq!(numbers("x"), None);
    }
}
