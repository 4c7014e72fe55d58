//! Statistics as JSON.

use base_logs::Frequent;
use serde_json::{Map, Value, json};

use crate::agent::AgentClass;
use crate::histogram::ResponseTimes;
use crate::report::{ORIGIN_NAMES, QUANTILES, date, moment};
use crate::run::Statistics;

impl Statistics {
    /// The statistics as JSON, with `top` rows of each list of frequent values, and all days. Times
    /// are on the clock of the log, durations in microseconds.
    pub fn json(&self, top: usize) -> Value {
        let totals = &self.totals;
        let days: Vec<Value> = totals
            .days
            .days
            .iter()
            .map(|(number, day)| {
                let hours: Vec<u64> = (0..24).map(|hour| day.hour(hour)).collect();
                json!({
                    "day": date(*number),
                    "requests": day.requests,
                    "bytes": day.bytes,
                    "visitors": day.visitors.count(),
                    "visitors_exact": day.visitors.is_exact(),
                    "statuses": statuses(&day.statuses),
                    "agents": agents(&day.agents),
                    "hours": hours,
                    "response_micros": times(&day.times),
                })
            })
            .collect();
        let addresses: Vec<Value> = totals
            .addresses
            .sorted()
            .iter()
            .take(top)
            .map(|counted| {
                let sums = counted.value;
                let mean = (sums.timed > 0).then(|| sums.micros / sums.timed);
                json!({
                    "name": String::from_utf8_lossy(&counted.key),
                    "requests": counted.count,
                    "bytes": sums.bytes,
                    "mean_micros": mean,
                })
            })
            .collect();
        let numbered = totals
            .statuses
            .iter()
            .enumerate()
            .filter(|(_, count)| **count > 0);
        let numbered: Map<String, Value> = numbered
            .map(|(status, count)| (status.to_string(), json!(count)))
            .collect();
        let minutes: Vec<Value> = totals
            .days
            .busiest_minutes(top)
            .iter()
            .map(|(time, count)| json!({ "minute": moment(*time), "requests": count }))
            .collect();
        let spikes: Vec<Value> = self
            .spikes
            .iter()
            .map(|spike| {
                let origins = ORIGIN_NAMES.iter().zip(&spike.origins);
                let origins: Map<String, Value> = origins
                    .map(|(name, counts)| ((*name).to_owned(), frequent(counts, top)))
                    .collect();
                json!({
                    "first": moment(spike.first * 60),
                    "last": moment(spike.last * 60),
                    "requests": spike.requests,
                    "peak": spike.peak,
                    "usual": spike.usual,
                    "agents": agents(&spike.classes),
                    "from": origins,
                })
            })
            .collect();
        let logs: Vec<String> = self
            .logs
            .iter()
            .map(|path| path.display().to_string())
            .collect();
        json!({
            "logs": logs,
            "lines": totals.lines,
            "damaged": totals.damaged,
            "damage": self.damage(),
            "problems": self.problems,
            "left_out": totals.left_out,
            "requests": totals.requests,
            "requests_of_other_days": totals.days.left_out,
            "bytes": totals.bytes,
            "agents": agents(&totals.agents),
            "statuses": numbered,
            "methods": frequent(&totals.methods, top),
            "addresses": addresses,
            "different_addresses": totals.addresses.len(),
            "addresses_too_low_by_at_most": totals.addresses.missing(),
            "referrers": frequent(&totals.referrers, top),
            "referrers_too_low_by_at_most": totals.referrers.missing(),
            "response_micros": times(&totals.times),
            "busiest_minutes": minutes,
            "spikes": spikes,
            "days": days,
        })
    }
}

fn statuses(counts: &[u64]) -> Value {
    let classes = counts.iter().enumerate().filter(|(_, count)| **count > 0);
    classes
        .map(|(class, count)| (format!("{class}xx"), json!(count)))
        .collect::<Map<_, _>>()
        .into()
}

fn agents(counts: &[u64; 4]) -> Value {
    let classes = AgentClass::ALL.iter().zip(counts);
    classes
        .map(|(class, count)| (class.name().to_owned(), json!(count)))
        .collect::<Map<_, _>>()
        .into()
}

fn frequent(counts: &Frequent, top: usize) -> Value {
    let row = |counted: &&base_logs::KeyCount<()>| json!({ "name": String::from_utf8_lossy(&counted.key), "requests": counted.count });
    counts.sorted().iter().take(top).map(row).collect()
}

fn times(times: &ResponseTimes) -> Value {
    if times.count() == 0 {
        return Value::Null;
    }
    let quantiles = QUANTILES.iter().map(|(name, share)| {
        let value = times.quantile(*share).unwrap_or(0.0).round() as u64;
        (name.replace(" %", ""), json!(value))
    });
    let mean = ("mean".to_owned(), json!(times.mean().round() as u64));
    quantiles.chain([mean]).collect::<Map<_, _>>().into()
}
