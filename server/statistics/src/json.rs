//! Statistics as JSON.

use base_logs::Frequent;
use serde_json::{Value, json};

use crate::agent::AgentClass;
use crate::histogram::ResponseTimes;
use crate::report::{ORIGIN_NAMES, QUANTILES, date, minute};
use crate::run::Statistics;

impl Statistics {
    /// The statistics as JSON, with `top` rows of each list of frequent values, and all days. Times
    /// are on the clock of the log, durations in microseconds.
    pub fn json(&self, top: usize) -> Value {
        let totals = &self.totals;
        let forgotten = totals.addresses.missing();
        let day = |(number, day): &(i64, crate::day::DayFigures)| {
            json!({
                "day": date(*number),
                "requests": day.requests,
                "bytes": day.bytes,
                "visitors": day.visitors.count(),
                "visitors_exact": day.visitors.is_exact(),
                "statuses": object((0..).map(|class| format!("{class}xx")), &day.statuses),
                "agents": agents(&day.agents),
                "hours": Vec::from_iter((0..24).map(|hour| day.hour(hour))),
                "response_micros": times(&day.times),
            })
        };
        let busiest = totals.days.busiest_minutes(top).into_iter();
        let busiest =
            busiest.map(|(number, count)| json!({ "minute": minute(number), "requests": count }));
        let spikes = self.spikes.iter().map(|spike| {
            let origins = spike.origins.iter().map(|counts| frequent(counts, top));
            json!({
                "first": minute(spike.first),
                "last": minute(spike.last),
                "requests": spike.requests,
                "peak": spike.peak,
                "usual": spike.usual,
                "agents": agents(&spike.classes),
                "from": Value::from_iter(ORIGIN_NAMES.into_iter().zip(origins)),
                "from_too_low_by_at_most": spike.missing(),
            })
        });
        let mut addresses = frequent(&totals.addresses, top);
        let sorted = totals.addresses.sorted();
        for (row, counted) in addresses.as_array_mut().into_iter().flatten().zip(sorted) {
            row["bytes"] = counted.value.bytes.into();
            row["mean_micros"] = json!(counted.value.micros.checked_div(counted.value.timed));
        }
        json!({
            "logs": Vec::from_iter(self.logs.iter().map(|path| path.display().to_string())),
            "lines": totals.lines,
            "damaged": totals.damaged,
            "damage": self.damage(),
            "problems": self.problems,
            "left_out": totals.left_out,
            "requests": totals.requests,
            "requests_of_other_days": totals.days.left_out,
            "bytes": totals.bytes,
            "agents": agents(&totals.agents),
            "statuses": object((0..).map(|status: u32| status.to_string()), &totals.statuses),
            "methods": frequent(&totals.methods, top),
            "addresses": addresses,
            "different_addresses": (forgotten == 0).then_some(totals.addresses.len()),
            "addresses_too_low_by_at_most": forgotten,
            "referrers": frequent(&totals.referrers, top),
            "referrers_too_low_by_at_most": totals.referrers.missing(),
            "methods_too_low_by_at_most": totals.methods.missing(),
            "response_micros": times(&totals.times),
            "busiest_minutes": Value::from_iter(busiest),
            "spikes": Value::from_iter(spikes),
            "days": Value::from_iter(totals.days.days.iter().map(day)),
        })
    }
}

/// Counts with their names, but for those that are 0.
fn object(names: impl Iterator<Item = String>, counts: &[u64]) -> Value {
    let counts = names.zip(counts.iter().copied());
    counts.filter(|(_, count)| *count > 0).collect()
}

fn agents(counts: &[u64]) -> Value {
    object(
        AgentClass::ALL.iter().map(|class| class.name().to_owned()),
        counts,
    )
}

fn frequent<V: Default>(counts: &Frequent<V>, top: usize) -> Value {
    let sorted = counts.sorted().into_iter().take(top);
    let row =
        |name: &[u8], count| json!({ "name": String::from_utf8_lossy(name), "requests": count });
    sorted
        .map(|counted| row(&counted.key, counted.count))
        .collect()
}

fn times(times: &ResponseTimes) -> Option<Value> {
    let quantile = |share: &f64| Some(((share * 100.0).to_string(), times.quantile(*share)?));
    let mean = ("mean".to_owned(), times.mean());
    let all = QUANTILES.iter().filter_map(quantile).chain([mean]);
    (times.count() > 0).then(|| {
        all.map(|(name, micros)| (name, micros.round() as u64))
            .collect()
    })
}
