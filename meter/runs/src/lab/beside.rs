//! Why this client's throughput is not the other's.
//!
//! A closed loop gives what the slowest of server and client can do. Where the server's core was busy throughout under both
//! clients, the difference is in what a request costs the server: most of all in how often it has to wake the client, which a
//! quick client makes it do more often, since it sleeps more, and in whether that takes an interrupt; one that spins it never has
//! to wake. A client that was busy throughout was the limit itself, one that had time left never is; and where client and server
//! both had some, as with few connections, each waited for the other in turn.

use super::outcome::{LabRun, OtherClient, Spread};

/// How far from the other's the throughput may be without a word.
const NEAR: f64 = 0.03;
/// Busy share from which a core or a thread is taken to be saturated.
const SATURATED: f64 = 0.97;

/// Throughput over the other client's, of a run that has one beside it.
pub(super) fn over_other(run: &LabRun) -> Option<f64> {
    let other = run.other.filter(|other| other.throughput > 0.0)?;
    Some(run.throughput / other.throughput)
}

/// Whether such a ratio has to be explained.
pub(super) fn is_far(ratio: f64) -> bool {
    (ratio - 1.0).abs() > NEAR
}

/// Of one client: medians over the pairs, but for the cores.
struct Side<'a> {
    name: &'a str,
    /// Of the server's cores.
    core_busy: f64,
    client: Option<OtherClient>,
    /// Of the client's cores, for one request.
    interrupts: Option<f64>,
}

impl Side<'_> {
    /// Whether the client had no time left, or its cores had none.
    fn client_is_full(&self) -> bool {
        self.client_is_saturated() || self.client_cores_are_saturated()
    }

    fn client_is_saturated(&self) -> bool {
        self.client.is_some_and(|client| client.busy >= SATURATED)
    }

    /// Some kernels charge no thread for interrupts, so a client that is only ever interrupted at its work may seem to have time left.
    fn client_cores_are_saturated(&self) -> bool {
        let busy = self.client.and_then(|client| client.core_busy);
        busy.is_some_and(|busy| busy >= SATURATED)
    }

    fn server_is_saturated(&self) -> bool {
        self.core_busy >= SATURATED
    }
}

/// Which side was the limit, of the pairs among `runs`, whose median ratio is `ratio`; `name` is the other client.
pub(super) fn difference(runs: &[&LabRun], ratio: f64, name: &str) -> String {
    let pairs: Vec<&LabRun> = runs
        .iter()
        .copied()
        .filter(|run| run.other.is_some())
        .collect();
    let Some((ours, theirs)) = ours(&pairs).zip(theirs(&pairs, name)) else {
        return "how busy the server’s cores were is not known, nor so which side was the limit"
            .to_owned();
    };
    let who = who(&ours, &theirs, ratio, &pairs);
    let mut sentence = format!(
        "{who}: the server’s cores {:.0} % busy, under {name} {:.0} %",
        ours.core_busy * 100.0,
        theirs.core_busy * 100.0
    );
    if let Some((cpu, other)) = typical_costs(&pairs) {
        sentence.push_str(&format!(", {cpu:.1} and {other:.1} µs a request"));
    }
    if let Some((own, theirs)) = ours.client.zip(theirs.client) {
        sentence.push_str("; ");
        let spins = pairs.iter().any(|run| run.client_spin);
        sentence.push_str(&clients(own, theirs, spins, name));
    }
    if let Some((own, theirs)) = ours.interrupts.zip(theirs.interrupts) {
        sentence.push_str(&format!(
            "; the client’s cores were interrupted {own:.2} times a request, {name}’s {theirs:.2}"
        ));
    }
    sentence
}

/// What was the limit. Only the slower client can have been.
fn who(ours: &Side<'_>, theirs: &Side<'_>, ratio: f64, pairs: &[&LabRun]) -> String {
    let (slower, other) = match ratio < 1.0 {
        true => (ours, theirs),
        false => (theirs, ours),
    };
    let name = slower.name;
    if slower.client_is_saturated() {
        format!("{name} was the limit")
    } else if slower.client_cores_are_saturated() {
        format!("the cores of {name} were full")
    } else if slower.server_is_saturated() {
        let Some(ratio) = cores_ratio(pairs) else {
            return "the server was the limit".to_owned();
        };
        // Where it was full under both and took less of its cores for one: who had the rest?
        let has_lost = match other.server_is_saturated() {
            true => is_far(ratio * theirs.core_busy / ours.core_busy),
            false => typical_costs(pairs).is_none_or(|(cpu, other)| !is_far(cpu / other)),
        };
        match has_lost {
            true => "interrupts or other processes used the server’s cores as well".to_owned(),
            false => "a request cost the server a different amount".to_owned(),
        }
    } else if other.server_is_saturated() || other.client_is_full() {
        match slower.client {
            Some(_) => format!("server and client waited for each other under {name}"),
            None => format!("the server had time left under {name}"),
        }
    } else {
        "server and client waited for each other".to_owned()
    }
}

/// What the two clients did.
fn clients(own: OtherClient, other: OtherClient, spins: bool, name: &str) -> String {
    let (busy, other_busy) = (own.busy * 100.0, other.busy * 100.0);
    if spins {
        return format!(
            "this client spun and had something to do for {busy:.0} % of the time, {:.1} µs a request, {name} {other_busy:.0} % busy, \
             {:.1} µs and {:.2} wake-ups",
            own.cpu_us, other.cpu_us, other.turns
        );
    }
    format!(
        "this client {busy:.0} % busy, {:.1} µs and {:.2} wake-ups a request, {name} {other_busy:.0} %, {:.1} µs and {:.2}",
        own.cpu_us, own.turns, other.cpu_us, other.turns
    )
}

/// The time of the server's cores that its process took in a second under this client over that under the other: the median
/// over the pairs, as the machine's pace may change between any two. With cores that are equally busy it is 1, unless
/// something else had a part of them.
fn cores_ratio(pairs: &[&LabRun]) -> Option<f64> {
    median(pairs.iter().filter_map(|run| {
        let cost = run.cpu_us? / run.other?.cpu_us?;
        Some(over_other(run)? * cost)
    }))
}

/// What a request cost the server under this client and under the other, of the pair in the middle by throughput, or of both in the
/// middle: what is explained is the median of that.
fn typical_costs(pairs: &[&LabRun]) -> Option<(f64, f64)> {
    let costs = pairs
        .iter()
        .filter_map(|run| Some((over_other(run)?, run.cpu_us?, run.other?.cpu_us?)));
    let mut costs: Vec<(f64, f64, f64)> = costs.collect();
    costs.sort_by(|(a, ..), (b, ..)| a.total_cmp(b));
    let upper = costs.get(costs.len() / 2)?;
    let lower = costs.get((costs.len() - 1) / 2)?;
    Some((
        f64::midpoint(lower.1, upper.1),
        f64::midpoint(lower.2, upper.2),
    ))
}

fn median(values: impl Iterator<Item = f64>) -> Option<f64> {
    Spread::of(values).map(|spread| spread.median)
}

/// How busy cores were: the mean of the middle half of the runs. Of a run of a quarter of a second, which has twenty-five ticks, a
/// share is right to one in twenty-five, which evens out in a mean; and one in which the machine stood still moves a mean of all.
fn busy(shares: impl Iterator<Item = f64>) -> Option<f64> {
    let mut shares: Vec<f64> = shares.collect();
    shares.sort_by(f64::total_cmp);
    let ends = shares.len() / 4;
    let middle = &shares[ends..shares.len() - ends];
    let mean = middle.iter().sum::<f64>() / middle.len() as f64;
    (!middle.is_empty()).then(|| mean.min(1.0))
}

fn ours(pairs: &[&LabRun]) -> Option<Side<'static>> {
    let runs = || pairs.iter();
    let client = || {
        Some(OtherClient {
            cpu_us: median(runs().filter_map(|run| run.client_cpu_us))?,
            busy: median(runs().map(|run| run.client_busy))?,
            turns: median(runs().filter_map(|run| run.client_turns))?,
            core_busy: busy(runs().filter_map(|run| run.client_core_busy)),
        })
    };
    Some(Side {
        name: "this client",
        core_busy: busy(runs().filter_map(|run| run.core_busy))?,
        client: client(),
        interrupts: median(runs().filter_map(|run| run.client_interrupts)),
    })
}

fn theirs<'a>(pairs: &[&LabRun], name: &'a str) -> Option<Side<'a>> {
    let runs = || pairs.iter().filter_map(|run| run.other);
    let clients = || runs().filter_map(|other| other.client);
    let client = || {
        Some(OtherClient {
            cpu_us: median(clients().map(|client| client.cpu_us))?,
            busy: median(clients().map(|client| client.busy))?,
            turns: median(clients().map(|client| client.turns))?,
            core_busy: busy(clients().filter_map(|client| client.core_busy)),
        })
    };
    Some(Side {
        name,
        core_busy: busy(runs().filter_map(|other| other.core_busy))?,
        client: client(),
        interrupts: median(runs().filter_map(|other| other.interrupts)),
    })
}

#[cfg(test)]
mod tests {
    use super::super::findings::run_of;
    use super::super::outcome::CrossCheck;
    use super::*;

    const CLIENT: OtherClient = OtherClient {
        cpu_us: 8.0,
        busy: 0.7,
        turns: 0.1,
        core_busy: None,
    };

    /// The server's cost and busy share under this client and under wrk, and wrk's own busy share.
    fn pair(ours: (f64, f64), theirs: (f64, f64), wrk_busy: f64, ratio: f64) -> LabRun {
        let mut run = run_of("it", 1, ours.0);
        run.core_busy = Some(ours.1);
        run.client_cpu_us = Some(8.0);
        run.client_turns = Some(0.3);
        run.other = Some(CrossCheck {
            throughput: run.throughput / ratio,
            errors: 0,
            cpu_us: Some(theirs.0),
            core_busy: Some(theirs.1),
            client: Some(OtherClient {
                busy: wrk_busy,
                ..CLIENT
            }),
            interrupts: None,
        });
        assert!((over_other(&run).unwrap() - ratio).abs() < 1e-9);
        run
    }

    /// What is said of one such pair.
    fn said(ours: (f64, f64), theirs: (f64, f64), wrk_busy: f64, ratio: f64) -> String {
        difference(&[&pair(ours, theirs, wrk_busy, ratio)], ratio, "wrk")
    }

    #[test]
    fn pairs_are_compared_each_in_itself() {
        // A machine that changes its pace between the pairs: medians of each side do not belong together.
        let pairs = [(10.0, 12.5), (20.0, 25.0), (11.0, 25.0)]
            .map(|(cpu, other)| pair((cpu, 1.0), (other, 1.0), 0.9, other / cpu));
        let runs: Vec<&LabRun> = pairs.iter().collect();
        assert_eq!(cores_ratio(&runs), Some(1.0));
        let said = difference(&runs, 1.25, "wrk");
        let costs = "a request cost the server a different amount: the server’s cores 100 % busy, under wrk 100 %, 20.0 and 25.0 µs a request";
        assert!(said.starts_with(costs), "{said}");
    }

    #[test]
    fn costs_are_told_of_the_pairs_by_which_the_clients_differ() {
        // 1.048 in the middle; by its costs alone the pair in the middle would be the first.
        let pairs = [
            (0.962, 39.7, 39.1),
            (1.02, 39.0, 39.8),
            (1.076, 37.0, 39.8),
            (1.104, 36.0, 39.8),
        ]
        .map(|(ratio, cpu, other)| pair((cpu, 1.0), (other, 1.0), 0.9, ratio));
        let runs: Vec<&LabRun> = pairs.iter().collect();
        assert_eq!(typical_costs(&runs), Some((38.0, 39.8)));
        assert_eq!(typical_costs(&runs[2..3]), Some((37.0, 39.8)));
        assert_eq!(typical_costs(&[]), None);
    }

    #[test]
    fn ticks_of_short_runs_make_no_client_with_time_left_the_limit() {
        // Apache's worker model, 32 connections: 25 ticks each, of which one is seen or not, and one run in which the core was away.
        let pairs = [0.96, 1.008, 0.96, 0.6, 1.0, 0.96, 1.0]
            .map(|busy| pair((40.2, busy), (37.8, 0.98), 0.6, 0.941));
        let runs: Vec<&LabRun> = pairs.iter().collect();
        let said = difference(&runs, 0.941, "wrk");
        let costs = "a request cost the server a different amount: the server’s cores 98 % busy, under wrk 98 %, 40.2 and 37.8 µs a request; \
                     this client 50 % busy";
        assert!(said.starts_with(costs), "{said}");
        assert_eq!(busy([].into_iter()), None);
        assert_eq!(busy([1.04].into_iter()), Some(1.0));
    }

    #[test]
    fn interrupts_that_no_thread_is_charged_for_fill_a_core_as_well() {
        let mut run = pair((6.0, 1.0), (7.0, 0.7), 0.75, 1.5);
        let theirs = run.other.as_mut().and_then(|other| other.client.as_mut());
        theirs.unwrap().core_busy = Some(0.99);
        let said = difference(&[&run], 1.5, "wrk");
        assert!(said.starts_with("the cores of wrk were full: "), "{said}");
        // So it is with this client, beside which wrk and its server had time left.
        let mut run = pair((6.0, 0.9), (7.0, 0.7), 0.9, 1.5);
        run.client_core_busy = Some(0.99);
        let said = difference(&[&run], 1.5, "wrk");
        let waited = "server and client waited for each other under wrk: ";
        assert!(said.starts_with(waited), "{said}");
    }

    #[test]
    fn what_it_took_to_wake_the_clients_is_said_where_it_is_known_of_both() {
        let mut run = pair((40.0, 1.0), (36.0, 1.0), 0.5, 0.9);
        run.client_interrupts = Some(0.837);
        let said = difference(&[&run], 0.9, "wrk");
        assert!(said.ends_with("8.0 µs and 0.10"), "{said}");
        if let Some(other) = &mut run.other {
            other.interrupts = Some(0.486);
        }
        let said = difference(&[&run], 0.9, "wrk");
        let end = "; the client’s cores were interrupted 0.84 times a request, wrk’s 0.49";
        assert!(said.ends_with(end), "{said}");
        run.client_spin = true;
        run.client_interrupts = Some(0.0);
        let said = difference(&[&run], 0.9, "wrk");
        assert!(said.contains("this client spun") && said.contains("interrupted 0.00 times"));
        run.client_turns = None;
        let said = difference(&[&run], 0.9, "wrk");
        assert!(said.contains("µs a request; the client’s cores"), "{said}");
    }

    #[test]
    fn the_limit_is_named_with_what_shows_it() {
        let whole = said((12.5, 1.004), (11.25, 0.98), 0.8, 0.9);
        assert_eq!(
            whole,
            "a request cost the server a different amount: the server’s cores 100 % busy, under wrk 98 %, \
             12.5 and 11.2 µs a request; this client 50 % busy, 8.0 µs and 0.30 wake-ups a request, wrk 80 %, 8.0 µs and 0.10"
        );
        let spun = clients(CLIENT, CLIENT, true, "wrk");
        assert_eq!(
            spun,
            "this client spun and had something to do for 70 % of the time, 8.0 µs a request, wrk 70 % busy, 8.0 µs and 0.10 wake-ups"
        );
        let starts = |said: String, with: &str| assert!(said.starts_with(with), "{said}");
        starts(said((6.0, 1.0), (7.0, 0.7), 0.99, 1.5), "wrk was the limit");
        // It had time left, and so had the server under it.
        let waited = "server and client waited for each other under wrk: the server’s cores 100 %";
        starts(said((6.0, 1.0), (7.0, 0.7), 0.9, 1.5), waited);
        let waited = "server and client waited for each other under this client";
        starts(said((7.0, 0.7), (7.0, 0.9), 0.99, 0.8), waited);
        starts(
            said((6.0, 1.0), (6.0, 1.0), 0.9, 1.5),
            "interrupts or other processes used the server’s cores",
        );
        // The core was full under one client only, but not with more work for each request.
        starts(
            said((40.0, 0.98), (40.0, 0.96), 0.8, 0.95),
            "interrupts or other processes used the server’s cores",
        );
        // Not quite as full, which is all that it had less.
        starts(
            said((8.0, 1.0), (7.5, 0.97), 0.9, 0.968),
            "a request cost the server a different amount",
        );
        // The other one left the server time, which says nothing about who had it here.
        starts(
            said((10.0, 1.0), (6.0, 0.7), 0.8, 0.9),
            "a request cost the server a different amount",
        );
        let mut unknown = pair((6.0, 1.0), (6.0, 1.0), 0.9, 1.5);
        unknown.cpu_us = None;
        starts(
            difference(&[&unknown], 1.5, "wrk"),
            "the server was the limit",
        );
        let mut run = run_of("it", 1, 20.0);
        run.core_busy = Some(0.4);
        run.other = Some(CrossCheck {
            throughput: run.throughput / 1.1,
            errors: 0,
            cpu_us: None,
            core_busy: Some(0.35),
            client: None,
            interrupts: None,
        });
        assert_eq!(
            difference(&[&run], 1.1, "h2load"),
            "server and client waited for each other: the server’s cores 40 % busy, under h2load 35 %"
        );
        run.core_busy = None;
        starts(
            difference(&[&run], 1.1, "h2load"),
            "how busy the server’s cores were is not known",
        );
    }
}
