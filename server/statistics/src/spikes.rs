//! Minutes far above their neighbours, and where their requests came from.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use base_logs::{Frequent, LogEntry};

use crate::agent::AgentClass;
use crate::counter::host;
use crate::day::{Days, MINUTES};
use crate::run::Options;

/// Spikes that are shown: those with the most requests more than usual.
const MOST: usize = 10;
/// Minutes before and after one that say what is usual. A longer flood is usual itself; at the end
/// of a log one of half of them is.
const NEIGHBOURS: usize = 180;
/// Minutes of a log at least that say it.
const KNOWN: usize = 30;
/// A minute with fewer requests is no spike.
const LEAST: u32 = 30;
/// How many times the usual count a spike has.
const TIMES: u32 = 3;
/// Standard deviations of independent visitors by which a spike is above the usual count.
const DEVIATIONS: f64 = 8.0;
/// Minutes between two that still belong to one spike.
const GAP: i64 = 2;
/// Different keys of an origin, and their bytes.
const KEYS: (usize, usize) = (10_000, 1 << 20);

/// Consecutive minutes far above their neighbours.
#[derive(Debug)]
pub(crate) struct Spike {
    /// First and last minute, from 1970 on the clock of the log.
    pub(crate) first: i64,
    pub(crate) last: i64,
    /// Requests in all of it, and in the minute with the most.
    pub(crate) requests: u64,
    pub(crate) peak: u32,
    /// The median of the minutes around.
    pub(crate) usual: u32,
    /// Addresses, referrers, networks and agents of its requests.
    pub(crate) origins: [Frequent; 4],
    pub(crate) classes: [u64; 4],
}

impl Spike {
    fn excess(&self) -> i64 {
        self.requests as i64 - (self.last - self.first + 1) * i64::from(self.usual)
    }

    /// By how much a count of an origin may be too low at most.
    pub(crate) fn missing(&self) -> u64 {
        let missing = self.origins.iter().map(Frequent::missing);
        missing.max().unwrap_or(0)
    }

    fn add(&mut self, entry: &LogEntry<'_>, class: AgentClass, options: &Options) {
        let [addresses, referrers, networks, agents] = &mut self.origins;
        addresses.add(options.address(entry));
        if !entry.referrer.is_empty() {
            referrers.add(host(entry.referrer));
        }
        networks.add(network(entry.client).as_bytes());
        agents.add(entry.agent);
        self.classes[class as usize] += 1;
    }
}

/// Adds a request to the spike that it belongs to, if it is to be counted.
pub(crate) fn add(spikes: &mut [Spike], entry: &LogEntry<'_>, options: &Options) {
    let minute = entry.local_time().div_euclid(60);
    let is_in = |spike: &&mut Spike| (spike.first..=spike.last).contains(&minute);
    if let Some(spike) = spikes.iter_mut().find(is_in) {
        let class = AgentClass::of(entry.agent);
        if options.counts(entry, class) {
            spike.add(entry, class, options);
        }
    }
}

/// The spikes of a log in their order, without their origins.
pub(crate) fn find(days: &Days) -> Vec<Spike> {
    let mut spikes = Vec::<Spike>::new();
    for days in days.days.chunk_by(|(one, _), (next, _)| one + 1 == *next) {
        let first = days[0].0 * MINUTES as i64;
        let counts = days.iter().map(|(_, figures)| &figures.minutes[..]);
        let counts = counts.collect::<Vec<_>>().concat();
        // Nothing is known of the time before the first request and after the last.
        let begin = counts.iter().position(|count| *count > 0).unwrap_or(0);
        let last = counts.iter().rposition(|count| *count > 0).unwrap_or(0);
        for at in (begin..=last).filter(|at| counts[*at] >= LEAST) {
            let from = at.saturating_sub(NEIGHBOURS).max(begin);
            let mut around = counts[from..=last.min(at + NEIGHBOURS)].to_vec();
            let middle = around.len() / 2;
            let usual = *around.select_nth_unstable(middle).1;
            let limit = f64::from(usual) + DEVIATIONS * f64::from(usual + 1).sqrt();
            let count = counts[at];
            // The first minutes of a log have no neighbours to be compared with.
            if around.len() > KNOWN
                && count >= usual.saturating_mul(TIMES)
                && f64::from(count) > limit
            {
                note(&mut spikes, first + at as i64, &counts[..=at], usual);
            }
        }
    }
    spikes.sort_by_key(|spike| std::cmp::Reverse(spike.excess()));
    spikes.truncate(MOST);
    spikes.sort_by_key(|spike| spike.first);
    spikes
}

/// Adds a minute, whose count is the last one, to the spike before it, or as a spike of its own.
fn note(spikes: &mut Vec<Spike>, minute: i64, counts: &[u32], usual: u32) {
    let count = counts.last().copied().unwrap_or(0);
    match spikes.last_mut() {
        Some(spike) if minute - spike.last <= GAP => {
            let more = counts.iter().rev().take((minute - spike.last) as usize);
            spike.requests += more.copied().map(u64::from).sum::<u64>();
            spike.last = minute;
            if count > spike.peak {
                (spike.peak, spike.usual) = (count, usual);
            }
        }
        _ => spikes.push(Spike {
            first: minute,
            last: minute,
            requests: u64::from(count),
            peak: count,
            usual,
            origins: std::array::from_fn(|_| Frequent::new(KEYS.0, KEYS.1)),
            classes: [0; 4],
        }),
    }
}

/// The network of a client: its /24, or its /48 for IPv6; of a host's name the last two labels.
fn network(client: &[u8]) -> String {
    let text = String::from_utf8_lossy(client);
    match text.parse::<IpAddr>().map(|address| address.to_canonical()) {
        Ok(IpAddr::V4(host)) => format!("{}/24", Ipv4Addr::from_bits(host.to_bits() >> 8 << 8)),
        Ok(IpAddr::V6(host)) => format!("{}/48", Ipv6Addr::from_bits(host.to_bits() >> 80 << 80)),
        Err(_) if text.contains(':') => String::new(),
        Err(_) => {
            let labels = text.rmatch_indices('.').nth(1);
            text[labels.map_or(0, |(at, _)| at + 1)..].to_owned()
        }
    }
}

/// True if a block whose first and last minute these are has a request of a spike.
pub(crate) fn touches(spikes: &[Spike], (first, last): (i64, i64)) -> bool {
    spikes
        .iter()
        .any(|spike| spike.first <= last && first <= spike.last)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A day with these counts from noon on.
    fn found(counts: &[u32]) -> Vec<(i64, i64, u64, u32, u32)> {
        let mut days = Days::default();
        let day = days.day(0).unwrap();
        day.minutes[720..720 + counts.len()].copy_from_slice(counts);
        let spikes = find(&days);
        spikes
            .iter()
            .map(|spike| {
                (
                    spike.first - 720,
                    spike.last - 720,
                    spike.requests,
                    spike.peak,
                    spike.usual,
                )
            })
            .collect()
    }

    #[test]
    fn minutes_far_above_their_neighbours_are_spikes() {
        let mut counts = vec![10; 120];
        assert_eq!(found(&counts), []);
        counts[60] = 45;
        assert_eq!(found(&counts), [(60, 60, 45, 45, 10)]);
        counts[62] = 100;
        assert_eq!(found(&counts), [(60, 62, 155, 100, 10)]);
        counts[100] = 29;
        counts[40] = 35;
        assert_eq!(found(&counts).len(), 1, "too few, and not far enough");
        assert_eq!(found(&[500, 1, 1]), [], "nothing to compare with");
        let mut busy = vec![10_000; 120];
        busy[60] = 20_000;
        assert_eq!(found(&busy), [], "not three times");
        busy[60] = 31_000;
        assert_eq!(found(&busy).len(), 1);
        let many: Vec<u32> = (0..700)
            .map(|n| if n % 50 == 0 { 100 + n } else { 1 })
            .collect();
        assert_eq!(found(&many).len(), MOST);
    }

    #[test]
    fn networks_are_cut() {
        assert_eq!(network(b"192.0.2.77"), "192.0.2.0/24");
        assert_eq!(network(b"2001:db8:1:2::3"), "2001:db8:1::/48");
        assert_eq!(network(b"::ffff:192.0.2.77"), "192.0.2.0/24");
        assert_eq!(network(b"192-0-2-77.dyn.example.org"), "example.org");
        assert_eq!(network(b"localhost"), "localhost");
        assert_eq!(network(b"2001:db8::1:x"), "");
    }

    #[test]
    fn a_long_flood_is_not_usual() {
        for minutes in [29, 31, 120, 179] {
            let mut counts = vec![10; 640];
            counts[200..200 + minutes].fill(100);
            let last = 199 + minutes as i64;
            let expected = (200, last, 100 * minutes as u64, 100, 10);
            assert_eq!(found(&counts), [expected], "{minutes}");
        }
        let mut counts = vec![10; 640];
        counts[550..].fill(100);
        assert_eq!(found(&counts), [(550, 639, 9000, 100, 10)], "it goes on");
        let ramp: Vec<u32> = (0..540).map(|n| 30 + 2 * n).collect();
        assert_eq!(found(&ramp), [], "a morning");
    }
}
