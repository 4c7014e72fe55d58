//! The host probe of a run: started before it, cut to its measured part, and turned into demands
//! and a bottleneck.

use std::collections::BTreeSet;
use std::net::{SocketAddr, UdpSocket};

use base_probe::{Moment, Probe, Prober, ProberOptions, Summary};
use socket2::SockAddr;

use crate::Run;
use crate::figures::Probed;
use base_clock::Nanos;
use millrace_client::driver;
use millrace_client::engine::Harvest;
use millrace_client::{Error, RunConditions, spin};
use millrace_stats::Verdict;
use millrace_stats::analysis::bottleneck::findings;
use millrace_stats::analysis::demand::{ClientSide, Demands};

/// A probe that runs while a plan is carried out.
pub(crate) struct Probing(Prober);

/// Starts the probe that the plan asks for.
pub(crate) fn start(
    conditions: &RunConditions,
    addresses: &[SockAddr],
) -> Result<Option<Probing>, Error> {
    let Some(wanted) = &conditions.probe else {
        return Ok(None);
    };
    let explicit = !(wanted.pids.is_empty() && wanted.ports.is_empty());
    let ports = match explicit {
        true => wanted.ports.clone(),
        false => ports_here(addresses),
    };
    let options = ProberOptions {
        interval: wanted.interval,
        pids: wanted.pids.clone(),
        ports,
        required: explicit && wanted.required,
        own_threads: Some(driver::THREAD),
        perf: wanted.perf,
    };
    let prober = Prober::start(options).map_err(|error| {
        Error::Plan(format!(
            "the host cannot be probed: {error}; --no-probe measures without"
        ))
    })?;
    Ok(Some(Probing(prober)))
}

/// The ports of addresses that belong to this machine, each once.
fn ports_here(addresses: &[SockAddr]) -> Vec<u16> {
    let here = addresses.iter().filter_map(SockAddr::as_socket);
    let ports: BTreeSet<u16> = here.filter(is_here).map(|address| address.port()).collect();
    ports.into_iter().collect()
}

/// True if an address belongs to this machine: only then can a socket be bound to it.
fn is_here(address: &SocketAddr) -> bool {
    UdpSocket::bind((address.ip(), 0)).is_ok()
}

impl Probing {
    /// Ends the probe. The measured part lasts from the start of the last thread to the first
    /// refused request.
    pub(crate) fn finish(self, harvests: &[Harvest]) -> (Probe, Nanos, Nanos) {
        let starts = harvests.iter().map(|harvest| harvest.times.start);
        let ends = harvests.iter().map(|harvest| harvest.stopped_at);
        let (start, end) = (
            starts.max().unwrap_or_default(),
            ends.min().unwrap_or_default(),
        );
        (self.0.stop(), start, end)
    }
}

impl Run {
    /// Adds a probe to the run and names the bottleneck in its measured part, from `start` to
    /// `end`. For a probe of another machine these are [`Moment::Wall`]; the clocks of the two
    /// machines must agree to a fraction of a second.
    pub fn attach_probe(&mut self, probe: Probe, start: Moment, end: Moment) {
        let summary = probe.within(start, end);
        if let Some(summary) = summary.as_ref().filter(|_| self.client.spin) {
            self.doubt_spinning(summary);
        }
        let client = self.client_side();
        let (Moment::Monotonic(began_ns) | Moment::Wall(began_ns)) = start;
        self.bottleneck = summary.as_ref().map(|summary| findings(summary, client));
        self.probe = Some(Probed {
            demands: summary
                .as_ref()
                .and_then(|summary| Demands::of(summary, client, None)),
            summary,
            began_ns,
            samples: probe,
        });
    }

    /// A server that was found only during the run may have had no core of its own.
    fn doubt_spinning(&mut self, summary: &Summary) {
        let set = |cores: &[usize]| cores.iter().copied().collect::<spin::Cores>();
        let (server, own) = (set(&summary.server_cores), set(&summary.own_cores));
        let threads = usize::try_from(self.client.threads).unwrap_or(usize::MAX);
        if !server.is_empty() && !own.is_empty() && spin::left(&server, &own, threads) == 0 {
            if self.verdict == Verdict::Valid {
                self.verdict = Verdict::Suspect;
            }
            self.reasons.push(
                "the client spun on the only cores of the server: it took from it what it measured; pin both apart, or \
                 let the client sleep"
                    .to_owned(),
            );
        }
    }

    /// Returns the figures of the client that the demand law needs.
    pub(crate) fn client_side(&self) -> ClientSide {
        ClientSide {
            rate: self.achieved_rate,
            cpu_us: self.client.cpu_us_per_request,
            busiest: self.client.busiest_thread,
            spun: self
                .client
                .spun_us
                .map(|spun| spun as f64 / 1e6 / self.duration_s.max(f64::EPSILON)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{is_here, ports_here};

    #[test]
    fn only_local_addresses_are_on_this_machine() {
        for (address, here) in [
            ("127.0.0.1:80", true),
            // A block for documentation (RFC 5737).
            ("192.0.2.7:80", false),
        ] {
            assert_eq!(is_here(&address.parse().unwrap()), here, "{address}");
        }
    }

    #[test]
    fn servers_are_found_by_all_their_ports_on_this_machine() {
        let all = [
            "127.0.0.1:82",
            "192.0.2.7:83",
            "127.0.0.2:81",
            "127.0.0.1:81",
        ];
        let all = all.map(|address| {
            let address: std::net::SocketAddr = address.parse().unwrap();
            address.into()
        });
        assert_eq!(ports_here(&all), [81, 82]);
    }
}
