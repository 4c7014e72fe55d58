//! Many hostile clients at once, until a given number of requests is sent.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::{io, thread};

use crate::http::Attack;
use crate::http::attack::{Attacker, Outcome};

/// Faults that are kept in words.
const KEPT: usize = 10;

/// The plan of an attack.
#[derive(Clone, Debug)]
pub struct Campaign {
    /// The server.
    pub address: SocketAddr,
    /// Hostile requests to send, at least: one on each connection. Good requests in front of them
    /// are not counted.
    pub requests: u64,
    /// Clients at once: each has one connection under way, and a few more that it holds open.
    pub clients: usize,
    /// Seed by which each client chooses its requests; how they mix is up to the machine.
    pub seed: u64,
}

/// The results of one kind of attack.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AttackTally {
    /// Hostile requests, each on a connection of its own.
    pub hostile: u64,
    /// All requests on these connections, the good ones around the hostile ones included.
    pub requests: u64,
    /// Connections that ended without any answer.
    pub unanswered: u64,
    /// Answers, by status.
    pub statuses: BTreeMap<u16, u64>,
}

/// The result of a campaign.
#[derive(Clone, Debug, Default)]
pub struct CampaignReport {
    /// By attack.
    pub tallies: BTreeMap<Attack, AttackTally>,
    /// Answers that no server should give to such a request, and connections with neither an answer
    /// nor an end.
    pub faults: u64,
    /// The first few of them, in words.
    pub first_faults: Vec<String>,
}

impl CampaignReport {
    /// Hostile requests that were sent.
    #[must_use]
    pub fn hostile(&self) -> u64 {
        self.tallies.values().map(|tally| tally.hostile).sum()
    }

    fn add(&mut self, outcome: Outcome) {
        let tally = self.tallies.entry(outcome.attack).or_default();
        tally.hostile += 1;
        tally.requests += outcome.requests;
        tally.unanswered += u64::from(outcome.statuses.is_empty());
        for status in outcome.statuses {
            *tally.statuses.entry(status).or_default() += 1;
        }
        if let Some(fault) = outcome.fault {
            self.faults += 1;
            self.keep(fault);
        }
    }

    fn keep(&mut self, fault: String) {
        if self.first_faults.len() < KEPT {
            self.first_faults.push(fault);
        }
    }

    fn merge(&mut self, other: Self) {
        for (attack, tally) in other.tallies {
            let sum = self.tallies.entry(attack).or_default();
            sum.hostile += tally.hostile;
            sum.requests += tally.requests;
            sum.unanswered += tally.unanswered;
            for (status, count) in tally.statuses {
                *sum.statuses.entry(status).or_default() += count;
            }
        }
        self.faults += other.faults;
        for fault in other.first_faults {
            self.keep(fault);
        }
    }
}

/// Carries out a campaign; returns when the last client has closed its last connection.
///
/// # Errors
/// If a client's thread cannot be started.
pub fn attack(campaign: &Campaign) -> io::Result<CampaignReport> {
    let sent = AtomicU64::new(0);
    let report = Mutex::new(CampaignReport::default());
    let client = |number: usize| {
        let mut attacker = Attacker::new(campaign.address, campaign.seed ^ ((number as u64) << 32));
        let mut own = CampaignReport::default();
        while sent.load(Ordering::Relaxed) < campaign.requests {
            let outcome = attacker.attack_once();
            sent.fetch_add(1, Ordering::Relaxed);
            own.add(outcome);
        }
        if let Ok(mut report) = report.lock() {
            report.merge(own);
        }
    };
    thread::scope(|scope| {
        (0..campaign.clients).try_for_each(|number| {
            let name = format!("hostile-{number}");
            let client = &client;
            thread::Builder::new()
                .name(name)
                .spawn_scoped(scope, move || client(number))
                .map(drop)
        })
    })?;
    report
        .into_inner()
        .map_err(|_| io::Error::other("a hostile client panicked"))
}
