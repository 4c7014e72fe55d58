//! Demands per request: how much of each resource one request takes, and the rate at which the
//! resource would be full.
//!
//! The service demand law D = U·T/C, and the bound X ≤ 1/D of asymptotic bounds analysis (Denning
//! and Buzen, "The Operational Analysis of Queueing Network Models", ACM Computing Surveys 10(3),
//! 1978). Demands hold where the resource works hard. In an idle system caches and batches make
//! each request cost more, so no demands are taken below [`LEAST`] of saturation, if a sweep says
//! how far that is.

use base_probe::{CoreUse, Summary};
use serde::{Deserialize, Serialize};

/// Share of the highest throughput from which demands are taken.
pub const LEAST: f64 = 0.7;

/// Demands of one request, with the throughput at which they were taken.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Demands {
    /// Answers a second.
    pub rate_per_s: f64,
    /// Rate as a share of the highest throughput of a sweep; `None` where none was made.
    pub of_saturation: Option<f64>,
    /// The resources.
    pub resources: Vec<Demand>,
}

/// Demand of one request on one resource.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Demand {
    /// The resource, such as `server CPU` or `disk sda`.
    pub resource: String,
    /// How much a request takes.
    pub per_request: f64,
    /// The unit of that.
    pub unit: PerRequest,
    /// Share of the resource in use, from 0 to 1; `None` for what has no capacity.
    pub utilisation: Option<f64>,
    /// Requests a second at which the resource would be full.
    pub bound_per_s: Option<f64>,
}

/// The unit of a demand.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PerRequest {
    /// Microseconds.
    #[default]
    Microseconds,
    /// Bytes.
    Bytes,
    /// Times.
    Count,
}

/// Figures of the client that the probe does not have.
#[derive(Clone, Copy, Debug, Default)]
pub struct ClientSide {
    /// Answers a second.
    pub rate: f64,
    /// CPU time of all client threads for one request.
    pub cpu_us: Option<f64>,
    /// Share of a core that the busiest client thread used.
    pub busiest: f64,
    /// Further cores that its threads took while they polled and found no event; `None` for a
    /// client that sleeps.
    pub spun: Option<f64>,
}

impl Demands {
    /// The demands of one request; `of_saturation` is the share of the highest throughput, if
    /// known.
    ///
    /// `None` if there were no answers, or below [`LEAST`] of saturation.
    pub fn of(summary: &Summary, client: ClientSide, of_saturation: Option<f64>) -> Option<Self> {
        let too_idle = of_saturation.is_some_and(|share| share < LEAST);
        if too_idle || client.rate <= 0.0 {
            return None;
        }
        let per = Per {
            requests: client.rate * summary.span_s,
            span_s: summary.span_s,
            rate: client.rate,
        };
        let mut resources = server(summary, &per);
        resources.extend(machine(summary, &per));
        if let Some(cpu) = client.cpu_us {
            resources.push(Demand {
                resource: "client CPU".to_owned(),
                per_request: cpu,
                unit: PerRequest::Microseconds,
                utilisation: Some(client.busiest),
                bound_per_s: bound(client.rate, client.busiest),
            });
        }
        Some(Self {
            rate_per_s: client.rate,
            of_saturation,
            resources,
        })
    }
}

/// Divisors that turn sums over the span into demands.
struct Per {
    requests: f64,
    span_s: f64,
    rate: f64,
}

impl Per {
    /// A time that was spent in the span; with `capacity` as many seconds can be spent in one.
    fn time(&self, resource: &str, spent_s: f64, capacity: Option<f64>) -> Demand {
        let utilisation = capacity.map(|capacity| spent_s / self.span_s / capacity);
        Demand {
            resource: resource.to_owned(),
            per_request: spent_s * 1e6 / self.requests,
            unit: PerRequest::Microseconds,
            utilisation,
            bound_per_s: utilisation.and_then(|used| bound(self.rate, used)),
        }
    }

    fn amount(&self, resource: &str, amount: u64, unit: PerRequest) -> Demand {
        Demand {
            resource: resource.to_owned(),
            per_request: amount as f64 / self.requests,
            unit,
            utilisation: None,
            bound_per_s: None,
        }
    }
}

/// X/U = 1/D: the rate at which a resource used to `utilisation` today would be full.
pub fn bound(rate: f64, utilisation: f64) -> Option<f64> {
    (utilisation > 0.0).then(|| rate / utilisation)
}

fn server(summary: &Summary, per: &Per) -> Vec<Demand> {
    let Some(server) = &summary.server else {
        return Vec::new();
    };
    let cores = summary.cores.len().max(1) as f64;
    let mut demands = vec![
        per.time("server CPU", server.cpu_s, Some(cores)),
        per.time("server CPU, user", server.user_s, None),
        per.time("server CPU, system", server.system_s, None),
    ];
    if let Some(thread) = summary.threads.first() {
        let spent = thread.busy * per.span_s;
        demands.push(per.time("busiest server thread", spent, Some(1.0)));
    }
    demands.push(per.time("server waiting for a core", server.run_delay_s, None));
    let counts = [
        ("server context switches, voluntary", server.voluntary),
        ("server context switches, involuntary", server.involuntary),
        ("server page faults", Some(server.faults)),
    ];
    for (name, count) in counts {
        demands.extend(count.map(|count| per.amount(name, count, PerRequest::Count)));
    }
    let bytes = [
        ("server bytes read from disks", server.read_bytes),
        ("server bytes written to disks", server.written_bytes),
    ];
    for (name, count) in bytes {
        demands.extend(count.map(|count| per.amount(name, count, PerRequest::Bytes)));
    }
    if let Some(throttle) = &summary.throttle
        && throttle.quota_cores.is_some()
    {
        let used = throttle.quota_cores.map(|quota| {
            let mut demand = per.time("CPU quota", server.cpu_s, Some(quota));
            // This time is also in the server's, above.
            demand.per_request = throttle.throttled_s * 1e6 / per.requests;
            "CPU quota, kept waiting".clone_into(&mut demand.resource);
            demand
        });
        demands.extend(used);
    }
    demands
}

fn machine(summary: &Summary, per: &Per) -> Vec<Demand> {
    let interrupts = |core: &CoreUse| (core.softirq + core.irq) * per.span_s;
    let mut demands: Vec<Demand> = summary
        .cores
        .iter()
        .enumerate()
        .filter(|(_, core)| interrupts(core) > 0.0)
        .map(|(n, core)| {
            per.time(
                &format!("interrupts on core {n}"),
                interrupts(core),
                Some(1.0),
            )
        })
        .collect();
    let disks = summary
        .disks
        .iter()
        .filter(|disk| disk.reads + disk.writes > 0);
    demands.extend(disks.map(|disk| {
        per.time(
            &format!("disk {}", disk.name),
            disk.busy * per.span_s,
            Some(1.0),
        )
    }));
    if let Some(network) = &summary.network {
        let counts = &network.counts;
        let all = counts.received_bytes + counts.sent_bytes;
        let mut demand = per.amount("network bytes", all, PerRequest::Bytes);
        demand.utilisation = network.busy;
        demand.bound_per_s = network.busy.and_then(|busy| bound(per.rate, busy));
        demands.push(demand);
        let loopback = counts.loopback_bytes;
        demands.push(per.amount("loopback bytes", loopback, PerRequest::Bytes));
    }
    for (name, count) in &summary.perf {
        demands.push(match name.strip_suffix("_ns") {
            Some(name) => per.time(&counted(name), *count as f64 / 1e9, None),
            None => per.amount(&counted(name), *count, PerRequest::Count),
        });
    }
    demands
}

/// The name of a counter of the processor or the kernel that counts only in the server's threads.
fn counted(name: &str) -> String {
    format!("server {}, by perf", name.replace('_', " "))
}

#[cfg(test)]
mod tests {
    use base_probe::{ServerUse, ThreadUse};

    use super::*;

    fn summary() -> Summary {
        Summary {
            span_s: 10.0,
            cores: vec![CoreUse::default(); 4],
            server: Some(ServerUse {
                cpu_s: 9.8,
                voluntary: Some(5_000),
                ..ServerUse::default()
            }),
            threads: vec![ThreadUse {
                busy: 0.98,
                ..ThreadUse::default()
            }],
            ..Summary::default()
        }
    }

    fn client() -> ClientSide {
        ClientSide {
            rate: 1_000.0,
            cpu_us: Some(20.0),
            busiest: 0.02,
            spun: None,
        }
    }

    #[test]
    fn the_demand_law_holds() {
        let demands = Demands::of(&summary(), client(), None).unwrap();
        let of = |name: &str| demands.resources.iter().find(|d| d.resource == name);
        let thread = of("busiest server thread").unwrap();
        assert!((thread.per_request - 980.0).abs() < 1e-6);
        assert!((thread.bound_per_s.unwrap() - 1e6 / 980.0).abs() < 1e-6);
        let cpu = of("server CPU").unwrap();
        assert!((cpu.utilisation.unwrap() - 0.245).abs() < 1e-9);
        assert!((cpu.bound_per_s.unwrap() - 4e6 / 980.0).abs() < 1e-6);
        let switches = of("server context switches, voluntary").unwrap();
        assert!((switches.per_request - 0.5).abs() < 1e-9);
        assert!(of("server bytes read from disks").is_none());
    }

    #[test]
    fn an_idle_system_gives_no_demands() {
        assert!(Demands::of(&summary(), client(), Some(0.69)).is_none());
        assert!(Demands::of(&summary(), client(), Some(0.7)).is_some());
        let nothing = ClientSide::default();
        assert!(Demands::of(&summary(), nothing, None).is_none());
    }
}
