//! A million hostile requests, and a million more: nobody else notices, nothing panics, no memory stays behind.

use std::{
    fmt::Write as _,
    path::PathBuf,
    thread,
    time::{Duration, Instant},
};

use millpond_hostile::{Campaign, Friend, Report, Visits, attack};
use serde_json::{Value, json};

use crate::{
    Result,
    arguments::{Arguments, publish},
    victim::Victim,
};

/// Hostile requests before memory is looked at for the first time, so that whatever is made once has been made.
const WARM_UP: u64 = 50_000;
/// How much more memory there may be after the second campaign than after the first, and after the first than before.
const GROWTH: u64 = 4 << 20;
/// How long the well-behaved client is alone, for comparison.
const ALONE: Duration = Duration::from_secs(3);

/// All that was found out.
struct Finding {
    report: [Report; 2],
    seconds: [f64; 2],
    alone: Visits,
    beside: Visits,
    /// Bytes: before, after the first, after the second campaign.
    resident: [u64; 3],
    /// Panics, and an unclean end.
    said: Vec<String>,
}

pub(crate) fn run(mut arguments: Arguments) -> Result<bool> {
    let millpond: Option<PathBuf> = arguments.option("--millpond")?;
    let millpond = millpond.unwrap_or_else(|| "target/release/millpond".into());
    let requests: u64 = arguments.option("--requests")?.unwrap_or(1_000_000);
    let clients: usize = arguments.option("--clients")?.unwrap_or(32).max(1);
    let seed: u64 = arguments.option("--seed")?.unwrap_or(1);
    let json: Option<String> = arguments.option("--json")?;
    arguments.end()?;

    let victim = Victim::start(&millpond)?;
    let campaign = |requests, seed| Campaign {
        address: victim.address(),
        requests,
        clients,
        seed,
    };
    let alone = beside_nobody(&victim, Duration::ZERO)?;
    carry_out(&campaign(WARM_UP.min(requests), seed), "warm-up")?;
    let before = victim.resident_when_quiet()?;
    let friend = befriend(&victim, Duration::ZERO)?;
    let (first, first_seconds) = carry_out(&campaign(requests, seed + 1), "first campaign")?;
    let mut beside = vec![friend.stop()];
    let between = victim.resident_when_quiet()?;
    let friend = befriend(&victim, Duration::ZERO)?;
    let (second, second_seconds) = carry_out(&campaign(requests, seed + 2), "second campaign")?;
    beside.push(friend.stop());
    let after = victim.resident_when_quiet()?;
    let finding = Finding {
        report: [first, second],
        seconds: [first_seconds, second_seconds],
        alone,
        beside: Visits::sum(beside),
        resident: [before, between, after],
        said: victim.stop()?,
    };
    let faults = finding.faults();
    publish(
        &finding.table(clients, &faults),
        &finding.as_json(clients, seed, &faults),
        json.as_deref(),
    )?;
    Ok(faults.is_empty())
}

/// The well-behaved client, which waits `pause` between an answer and its next request.
pub(crate) fn befriend(victim: &Victim, pause: Duration) -> Result<Friend> {
    Friend::start(victim.address(), pause)
        .map_err(|error| format!("the server does not serve: {error}"))
}

/// What the well-behaved client meets with when there is no other.
pub(crate) fn beside_nobody(victim: &Victim, pause: Duration) -> Result<Visits> {
    let friend = befriend(victim, pause)?;
    // This is how long is measured; nothing is waited for.
    thread::sleep(ALONE);
    Ok(friend.stop())
}

fn carry_out(campaign: &Campaign, what: &str) -> Result<(Report, f64)> {
    eprintln!("{what}: {} requests", campaign.requests);
    let began = Instant::now();
    let report = attack(campaign).map_err(|error| format!("{what}: {error}"))?;
    Ok((report, began.elapsed().as_secs_f64()))
}

impl Finding {
    /// What does not hold, in words.
    fn faults(&self) -> Vec<String> {
        let mut faults = self.said.clone();
        for report in &self.report {
            if report.faults > 0 {
                faults.push(format!("{} wrong answers", report.faults));
                faults.extend(report.first_faults.iter().cloned());
            }
        }
        if self.beside.errors > 0 || self.beside.good == 0 {
            faults.push(format!(
                "the well-behaved client: {} good answers, {} errors",
                self.beside.good, self.beside.errors
            ));
            faults.extend(self.beside.first_errors.iter().cloned());
        }
        for pair in self.resident.windows(2) {
            if pair[1] > pair[0] + GROWTH {
                faults.push(format!("memory grew by {:.1} MiB", mib(pair[1] - pair[0])));
            }
        }
        faults
    }

    fn table(&self, clients: usize, faults: &[String]) -> String {
        let mut text = String::new();
        for (report, seconds) in self.report.iter().zip(self.seconds) {
            let _ = writeln!(
                text,
                "{} hostile requests and {} good ones around them, {clients} clients at once, {seconds:.1} s",
                report.hostile(),
                report.requests() - report.hostile()
            );
        }
        let _ = writeln!(
            text,
            "{:18} {:>9} {:>9} {:>10}  answers by status",
            "attack", "hostile", "requests", "no answer"
        );
        let both = Report::sum(&self.report);
        for (attack, tally) in &both.tallies {
            let statuses: Vec<_> = tally
                .statuses
                .iter()
                .map(|(status, count)| format!("{status}: {count}"))
                .collect();
            let _ = writeln!(
                text,
                "{:18} {:>9} {:>9} {:>10}  {}",
                attack.name(),
                tally.hostile,
                tally.requests,
                tally.unanswered,
                statuses.join(", ")
            );
        }
        text += &visits_table(&[
            ("alone", &self.alone),
            ("beside hostile ones", &self.beside),
        ]);
        let [before, between, after] = self.resident.map(mib);
        let _ = writeln!(
            text,
            "memory of the server, MiB: {before:.1} before, {between:.1} after the first, {after:.1} after the second; \
             each at most {:.0} above the one before",
            mib(GROWTH)
        );
        text += &verdict(faults);
        text
    }

    fn as_json(&self, clients: usize, seed: u64, faults: &[String]) -> Value {
        let reports = self.report.iter().zip(self.seconds);
        let campaigns: Vec<_> = reports
            .map(|(report, seconds)| {
                json!({
                    "hostile": report.hostile(),
                    "requests": report.requests(),
                    "seconds": seconds,
                    "faults": report.faults,
                })
            })
            .collect();
        json!({
            "clients": clients,
            "seed": seed,
            "campaigns": campaigns,
            "alone": visits_json(&self.alone),
            "beside": visits_json(&self.beside),
            "resident_bytes": self.resident,
            "growth_limit_bytes": GROWTH,
            "faults": faults,
        })
    }
}

/// Lines on the well-behaved client, each time with who was beside it.
pub(crate) fn visits_table(rows: &[(&str, &Visits)]) -> String {
    let mut text = format!(
        "{:22} {:>9} {:>7} {:>9} {:>9} {:>9}\n",
        "well-behaved client", "answers", "errors", "p50 µs", "p99 µs", "max µs"
    );
    for (name, visits) in rows {
        let [median, tail, most] = [0.5, 0.99, 1.0].map(|share| visits.latency_us(share));
        let _ = writeln!(
            text,
            "{name:22} {:>9} {:>7} {median:>9} {tail:>9} {most:>9}",
            visits.good, visits.errors
        );
    }
    text
}

pub(crate) fn visits_json(visits: &Visits) -> Value {
    json!({
        "good": visits.good,
        "errors": visits.errors,
        "latency_us": {
            "p50": visits.latency_us(0.5),
            "p99": visits.latency_us(0.99),
            "max": visits.latency_us(1.0),
        },
    })
}

/// The last lines: what does not hold, or that all does.
pub(crate) fn verdict(faults: &[String]) -> String {
    if faults.is_empty() {
        return "all holds\n".to_owned();
    }
    let lines: Vec<_> = faults.iter().map(|fault| format!("  {fault}\n")).collect();
    format!("DOES NOT HOLD:\n{}", lines.concat())
}

fn mib(bytes: u64) -> f64 {
    bytes as f64 / f64::from(1 << 20)
}

#[cfg(test)]
mod tests {
    use millpond_hostile::{Report, Visits};

    use super::{Finding, GROWTH, verdict};

    fn finding() -> Finding {
        let visits = Visits {
            good: 10,
            ..Visits::default()
        };
        Finding {
            report: [Report::default(), Report::default()],
            seconds: [1.0, 1.0],
            alone: visits.clone(),
            beside: visits,
            resident: [100 << 20, 101 << 20, 101 << 20],
            said: Vec::new(),
        }
    }

    #[test]
    fn what_does_not_hold_is_said() {
        assert!(finding().faults().is_empty());
        let mut grown = finding();
        grown.resident[2] += GROWTH + 1;
        assert!(verdict(&grown.faults()).contains("memory grew by 4.0 MiB"));
        let mut wrong = finding();
        wrong.report[1].faults = 2;
        wrong.beside.errors = 1;
        wrong.said.push("thread 'worker-0' panicked at".to_owned());
        assert_eq!(wrong.faults().len(), 3);
        assert!(wrong.table(8, &wrong.faults()).contains("DOES NOT HOLD"));
    }
}
