//! A million hostile requests, and again as many: other clients notice nothing, nothing panics, and
//! no memory stays behind.

use std::{
    fmt::Write as _,
    path::PathBuf,
    thread,
    time::{Duration, Instant},
};

use lab_torture::http::{BaselineClient, Campaign, CampaignReport, Visits, attack, repeat_flood};
use serde_json::{Value, json};

use crate::{
    Result,
    arguments::{Arguments, publish},
    victim::Victim,
};

/// Hostile requests before the first look at memory, so that one-time allocations are made.
const WARM_UP: u64 = 50_000;
/// Heads that are sent twice each, until the server's memory of repeated requests has reached its
/// bound: after that the bounded growth cannot hide an unbounded one.
const KNOWN: usize = 32_000;
/// The bound is reached when these heads leave at most this much behind, twice in turn.
const LEVEL: u64 = 512 << 10;
/// So often at most: 1.3 million requests.
const FILLINGS: usize = 20;
/// How much more memory there may be after a campaign than before it.
const GROWTH: u64 = 4 << 20;
/// How long the well-behaved client is alone, for comparison.
const ALONE: Duration = Duration::from_secs(3);

/// All that was found out.
struct HostileFinding {
    /// Before everything else.
    filled: Filled,
    campaigns: Vec<Carried>,
    alone: Visits,
    beside: Visits,
    /// Bytes before the first campaign.
    before: u64,
    /// Panics, and an unclean end.
    said: Vec<String>,
}

/// A campaign that was carried out.
struct Carried {
    report: CampaignReport,
    seconds: f64,
    /// Bytes of memory after it.
    resident: u64,
}

pub(crate) fn run(mut arguments: Arguments) -> Result<bool> {
    let millpond: Option<PathBuf> = arguments.option("--millpond")?;
    let millpond = millpond.unwrap_or_else(|| "target/release/millpond".into());
    let requests: u64 = arguments.option("--requests")?.unwrap_or(1_000_000);
    let clients: usize = arguments.option("--clients")?.unwrap_or(32).max(1);
    let seed: u64 = arguments.option("--seed")?.unwrap_or(1);
    let count: u64 = arguments.option("--campaigns")?.unwrap_or(2).max(1);
    let json: Option<String> = arguments.option("--json")?;
    arguments.end()?;

    let victim = Victim::start(&millpond)?;
    let campaign = |requests, seed| Campaign {
        address: victim.address(),
        requests,
        clients,
        seed,
    };
    let alone = baseline_alone(&victim, Duration::ZERO)?;
    let filled = fill(&victim)?;
    carry_out(&campaign(WARM_UP.min(requests), seed), "warm-up")?;
    let before = victim.resident_when_quiet()?;
    let (mut campaigns, mut beside) = (Vec::new(), Vec::new());
    for number in 1..=count {
        let baseline = start_baseline(&victim, Duration::ZERO)?;
        let what = format!("campaign {number} of {count}");
        let (report, seconds) = carry_out(&campaign(requests, seed + number), &what)?;
        beside.push(baseline.stop());
        campaigns.push(Carried {
            report,
            seconds,
            resident: victim.resident_when_quiet()?,
        });
    }
    let finding = HostileFinding {
        filled,
        campaigns,
        alone,
        beside: Visits::sum(beside),
        before,
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
pub(crate) fn start_baseline(victim: &Victim, pause: Duration) -> Result<BaselineClient> {
    BaselineClient::start(victim.address(), pause)
        .map_err(|error| format!("the server does not serve: {error}"))
}

/// Measures the well-behaved client when there is no other.
pub(crate) fn baseline_alone(victim: &Victim, pause: Duration) -> Result<Visits> {
    let baseline = start_baseline(victim, pause)?;
    // This is how long is measured; nothing is waited for.
    thread::sleep(ALONE);
    Ok(baseline.stop())
}

/// The result of sending heads twice.
#[derive(Default)]
struct Filled {
    /// How many.
    heads: usize,
    /// A request that was not answered, or no end of growing.
    fault: Option<String>,
}

/// Fills the server's memory of repeated requests to its bound.
fn fill(victim: &Victim) -> Result<Filled> {
    let mut filled = Filled::default();
    // A single low sample does not end the wait.
    let (mut most, mut level) = (victim.resident_when_quiet()?, 0);
    while level < 2 {
        if filled.heads == FILLINGS * KNOWN {
            filled.fault = Some(format!(
                "memory still grew after {} heads that were sent twice each",
                filled.heads
            ));
            break;
        }
        let numbers = filled.heads..filled.heads + KNOWN;
        if let Err(error) = repeat_flood(victim.address(), &numbers) {
            filled.fault = Some(format!("requests that come twice: {error}"));
            break;
        }
        filled.heads = numbers.end;
        let resident = victim.resident_when_quiet()?;
        eprintln!(
            "{} heads sent twice each: {:.1} MiB",
            filled.heads,
            mib(resident)
        );
        level = if resident <= most + LEVEL {
            level + 1
        } else {
            0
        };
        most = most.max(resident);
    }
    Ok(filled)
}

fn carry_out(campaign: &Campaign, what: &str) -> Result<(CampaignReport, f64)> {
    eprintln!("{what}: {} requests", campaign.requests);
    let began = Instant::now();
    let report = attack(campaign).map_err(|error| format!("{what}: {error}"))?;
    Ok((report, began.elapsed().as_secs_f64()))
}

impl HostileFinding {
    /// Lists the limits that do not hold, in words.
    fn faults(&self) -> Vec<String> {
        let mut faults = self.said.clone();
        faults.extend(self.filled.fault.clone());
        for Carried { report, .. } in &self.campaigns {
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
        for pair in self.resident().windows(2) {
            if pair[1] > pair[0] + GROWTH {
                faults.push(format!("memory grew by {:.1} MiB", mib(pair[1] - pair[0])));
            }
        }
        // Nor may it creep.
        if let ([first, ..], [.., last]) = (&self.campaigns[..], &self.campaigns[..])
            && last.resident > first.resident + GROWTH
        {
            let grown = mib(last.resident - first.resident);
            faults.push(format!(
                "memory grew by {grown:.1} MiB after the first campaign"
            ));
        }
        faults
    }

    /// Bytes before, and after each campaign.
    fn resident(&self) -> Vec<u64> {
        let after = self.campaigns.iter().map(|carried| carried.resident);
        std::iter::once(self.before).chain(after).collect()
    }

    fn table(&self, clients: usize, faults: &[String]) -> String {
        let mut text = format!(
            "{} heads sent twice each before, until memory no longer grew by them\n",
            self.filled.heads
        );
        for Carried {
            report, seconds, ..
        } in &self.campaigns
        {
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
        let all = CampaignReport::sum(self.campaigns.iter().map(|carried| &carried.report));
        for (attack, tally) in &all.tallies {
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
        let resident = self.resident();
        let resident: Vec<_> = resident
            .iter()
            .map(|bytes| format!("{:.1}", mib(*bytes)))
            .collect();
        let _ = writeln!(
            text,
            "memory of the server, MiB: {} (before, and after each campaign); each at most {:.0} above the one before, and the last above the first campaign's",
            resident.join(", "),
            mib(GROWTH)
        );
        text += &verdict(faults);
        text
    }

    fn as_json(&self, clients: usize, seed: u64, faults: &[String]) -> Value {
        let campaigns: Vec<_> = self
            .campaigns
            .iter()
            .map(
                |Carried {
                     report, seconds, ..
                 }| {
                    json!({
                        "hostile": report.hostile(),
                        "requests": report.requests(),
                        "seconds": seconds,
                        "faults": report.faults,
                    })
                },
            )
            .collect();
        json!({
            "clients": clients,
            "seed": seed,
            "heads_sent_twice": self.filled.heads,
            "campaigns": campaigns,
            "alone": visits_json(&self.alone),
            "beside": visits_json(&self.beside),
            "resident_anonymous_bytes": self.resident(),
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
    use lab_torture::http::{CampaignReport, Visits};

    use super::{Carried, Filled, GROWTH, HostileFinding, verdict};

    fn carried() -> Carried {
        Carried {
            report: CampaignReport::default(),
            seconds: 1.0,
            resident: 101 << 20,
        }
    }

    fn finding() -> HostileFinding {
        let visits = Visits {
            good: 10,
            ..Visits::default()
        };
        HostileFinding {
            filled: Filled::default(),
            campaigns: vec![carried(), carried()],
            alone: visits.clone(),
            beside: visits,
            before: 100 << 20,
            said: Vec::new(),
        }
    }

    #[test]
    fn failed_claims_are_named() {
        assert!(finding().faults().is_empty());
        let mut grown = finding();
        grown.campaigns[1].resident += GROWTH + 1;
        assert!(verdict(&grown.faults()).contains("memory grew by 4.0 MiB"));
        let mut creeping = finding();
        for step in 1..5 {
            let resident = (101 << 20) + step * GROWTH / 3;
            creeping.campaigns.push(Carried {
                resident,
                ..carried()
            });
        }
        let faults = creeping.faults();
        assert!(faults.len() == 1 && faults[0].contains("after the first campaign"));
        let mut endless = finding();
        endless.filled.fault = Some("memory still grew".to_owned());
        assert_eq!(endless.faults(), ["memory still grew"]);
        let mut wrong = finding();
        wrong.campaigns[1].report.faults = 2;
        wrong.beside.errors = 1;
        wrong.said.push("thread 'worker-0' panicked at".to_owned());
        assert_eq!(wrong.faults().len(), 3);
        assert!(wrong.table(8, &wrong.faults()).contains("DOES NOT HOLD"));
    }
}
