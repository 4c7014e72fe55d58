//! Each attack over TLS and HTTP/2 against the real program: the times of a well-behaved client
//! beside attackers, and beside as many clients that connect for each request, in turn. Both make
//! the server do handshakes, of which each takes longer than a request.

use std::{
    fmt::Write as _,
    path::PathBuf,
    sync::atomic::{AtomicBool, Ordering},
    thread,
    time::Duration,
};

use lab_torture::{
    http::Visits,
    secure::{SecureAttack, SecureTarget, SecureVisitor, visit_once},
};
use serde_json::{Value, json};

use crate::{
    Result,
    arguments::{Arguments, publish},
    hostile::{verdict, visits_json},
    victim::Victim,
};

/// Path that the clients ask for.
const PATH: &str = "/mills";
/// The client's pause between two requests: it observes the server and must not load it.
const PAUSE: Duration = Duration::from_millis(1);
/// How much slower the client's 99th percentile may be.
const SLOWER: f64 = 2.0;

struct SecureOptions {
    attackers: usize,
    seconds: f64,
    blocks: usize,
}

/// Effect of one attack on the client.
struct SecureFinding {
    attack: SecureAttack,
    without: Visits,
    with: Visits,
    /// Ends of attackers' connections that are not the stated one.
    other_ends: u64,
}

pub(crate) fn run(mut arguments: Arguments) -> Result<bool> {
    let millpond: Option<PathBuf> = arguments.option("--millpond")?;
    let millpond = millpond.unwrap_or_else(|| "target/release/millpond".into());
    let options = SecureOptions {
        attackers: arguments.option("--attackers")?.unwrap_or(10).max(1),
        seconds: arguments.option("--seconds")?.unwrap_or(1.0_f64).max(0.1),
        blocks: arguments.option("--blocks")?.unwrap_or(1).max(1),
    };
    let json: Option<String> = arguments.option("--json")?;
    arguments.end()?;

    let victim = Victim::start_secure(&millpond)?;
    let target = SecureTarget::localhost(victim.address());
    let (alone, _) = one_run(&target, None, &options)?;
    let mut findings = Vec::new();
    for &attack in SecureAttack::ALL {
        eprintln!("{}", attack.name());
        findings.push(in_turn(&target, attack, &options)?);
    }
    let memory = victim.resident_when_quiet()?;
    let mut faults = victim.stop()?;
    faults.extend(findings.iter().flat_map(SecureFinding::faults));
    publish(
        &table(&alone, &findings, memory, &faults),
        &as_json(&alone, &findings, &options, memory, &faults),
        json.as_deref(),
    )?;
    Ok(faults.is_empty())
}

/// Other clients that have connections while the client asks.
#[derive(Clone, Copy)]
enum Company {
    /// As many clients that connect, ask once, and connect again.
    New,
    Attackers(SecureAttack),
}

/// Runs without, with, with, and without the attack.
fn in_turn(
    target: &SecureTarget,
    attack: SecureAttack,
    options: &SecureOptions,
) -> Result<SecureFinding> {
    let (mut without, mut with, mut other_ends) = (Vec::new(), Vec::new(), 0);
    for _ in 0..options.blocks {
        for is_attacked in [false, true, true, false] {
            let (company, runs) = match is_attacked {
                true => (Company::Attackers(attack), &mut with),
                false => (Company::New, &mut without),
            };
            let (visits, others) = one_run(target, Some(company), options)?;
            other_ends += others;
            runs.push(visits);
        }
    }
    Ok(SecureFinding {
        attack,
        without: Visits::sum(without),
        with: Visits::sum(with),
        other_ends,
    })
}

/// The client's visits while the others connect again and again, and how many of their connections
/// did not end as stated.
fn one_run(
    target: &SecureTarget,
    company: Option<Company>,
    options: &SecureOptions,
) -> Result<(Visits, u64)> {
    let stop = AtomicBool::new(false);
    let keep_company = |company| {
        // The client has the core when it wants it: what is measured is the server.
        let _ = rustix::process::setpriority_process(None, 19);
        let mut others = 0;
        while !stop.load(Ordering::Relaxed) {
            let is_as_stated = match company {
                Company::New => visit_once(target, PATH).is_ok(),
                Company::Attackers(attack) => {
                    attack.run(target).is_ok_and(|end| end == attack.end())
                }
            };
            others += u64::from(!is_as_stated);
        }
        others
    };
    thread::scope(|scope| {
        let others = company.map_or(0, |_| options.attackers);
        let others: Vec<_> = (0..others)
            .filter_map(|_| company)
            .map(|company| scope.spawn(move || keep_company(company)))
            .collect();
        let visitor = SecureVisitor::start(target.clone(), PATH, PAUSE);
        // This is how long is measured; nothing is waited for.
        thread::sleep(Duration::from_secs_f64(options.seconds));
        let visits = visitor.map(SecureVisitor::stop);
        stop.store(true, Ordering::Relaxed);
        let others = others.into_iter().map(|one| one.join().unwrap_or(1));
        let others = others.sum();
        let visits = visits.map_err(|error| format!("the server does not serve: {error}"))?;
        Ok((visits, others))
    })
}

impl SecureFinding {
    /// The 99th percentile with the attack, as a multiple of that without it.
    fn slower(&self) -> f64 {
        let [without, with] = [&self.without, &self.with].map(|visits| visits.latency_us(0.99));
        f64::from(with) / f64::from(without.max(1))
    }

    fn faults(&self) -> Vec<String> {
        let name = self.attack.name();
        let mut faults = Vec::new();
        let errors = self.without.errors + self.with.errors;
        if errors > 0 {
            let first = [&self.without, &self.with].map(|visits| visits.first_errors.join("; "));
            faults.push(format!("{name}: {errors} errors of the client: {first:?}"));
        }
        if self.other_ends > 0 {
            let others = self.other_ends;
            faults.push(format!("{name}: {others} connections ended otherwise"));
        }
        if self.slower() > SLOWER {
            let times = self.slower();
            faults.push(format!(
                "{name}: the 99th percentile is {times:.1} times as long"
            ));
        }
        faults
    }
}

fn table(alone: &Visits, findings: &[SecureFinding], memory: u64, faults: &[String]) -> String {
    let [p50, p99] = [0.5, 0.99].map(|share| alone.latency_us(share));
    let mut text = format!("alone: p50 {p50} µs, p99 {p99} µs\n");
    let _ = writeln!(
        text,
        "{:22} {:>8} {:>9} {:>9} {:>9} {:>9} {:>6}",
        "attack", "answers", "p50 µs", "p99 µs", "p50 with", "p99 with", "times"
    );
    for finding in findings {
        let [a, b, c, d] = [
            (&finding.without, 0.5),
            (&finding.without, 0.99),
            (&finding.with, 0.5),
            (&finding.with, 0.99),
        ]
        .map(|(visits, share)| visits.latency_us(share));
        let _ = writeln!(
            text,
            "{:22} {:>8} {a:>9} {b:>9} {c:>9} {d:>9} {:>6.1}",
            finding.attack.name(),
            finding.without.good + finding.with.good,
            finding.slower(),
        );
    }
    let _ = writeln!(text, "memory afterwards: {} KiB", memory >> 10);
    text + &verdict(faults)
}

fn as_json(
    alone: &Visits,
    findings: &[SecureFinding],
    options: &SecureOptions,
    memory: u64,
    faults: &[String],
) -> Value {
    let attacks = findings.iter().map(|finding| {
        json!({
            "attack": finding.attack.name(),
            "without": visits_json(&finding.without),
            "with": visits_json(&finding.with),
            "p99_times": finding.slower(),
            "other_ends": finding.other_ends,
        })
    });
    json!({
        "attackers": options.attackers,
        "seconds": options.seconds,
        "blocks": options.blocks,
        "alone": visits_json(alone),
        "attacks": attacks.collect::<Vec<_>>(),
        "resident_anonymous_bytes": memory,
        "faults": faults,
    })
}

#[cfg(test)]
mod tests {
    use lab_torture::{http::Visits, secure::SecureAttack};

    use super::SecureFinding;

    #[test]
    fn a_client_that_is_much_slower_is_a_fault() {
        let visits = |latency| Visits {
            good: 1,
            latencies_us: vec![latency],
            ..Visits::default()
        };
        let finding = |with| SecureFinding {
            attack: SecureAttack::PingFlood,
            without: visits(100),
            with: visits(with),
            other_ends: 0,
        };
        assert_eq!(finding(200).faults(), [""; 0]);
        let faults = finding(250).faults();
        assert_eq!(
            faults,
            ["PING flood: the 99th percentile is 2.5 times as long"]
        );
    }
}
