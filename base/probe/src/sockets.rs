//! Sockets by state, and connections that wait to be accepted.

use std::collections::BTreeMap;
use std::fs;

use procfs::net::{TcpNetEntry, TcpState};
use procfs::process::Process;

use super::missing::Missing;
use super::model::Sockets;
use super::network::counter;

/// Above this number of sockets the table is not read: the kernel takes a lock for each of its
/// lines.
const MOST: u64 = 5_000;

/// Looks at sockets; the table of all of them only when asked to.
#[derive(Debug, Default)]
pub(super) struct SocketProbe {
    last: Sockets,
}

impl SocketProbe {
    /// The sockets in the namespace of `process`. With `table` the states are counted again, else
    /// they are those of the last count.
    pub(super) fn sample(
        &mut self,
        process: &Process,
        ports: &[u16],
        table: bool,
        missing: &mut Missing,
    ) -> Option<Sockets> {
        let folder = format!("/proc/{}/net", process.pid());
        let text = missing.or_note("sockets", fs::read_to_string(format!("{folder}/sockstat")))?;
        self.last.in_use = in_sockstat(&text, "inuse")?;
        self.last.time_wait = in_sockstat(&text, "tw").unwrap_or_default();
        self.last.orphans = in_sockstat(&text, "orphan").unwrap_or_default();
        self.last.established = fs::read_to_string(format!("{folder}/snmp"))
            .ok()
            .and_then(|text| counter(&text, "Tcp", "CurrEstab"))
            .unwrap_or_default();
        if table {
            self.read_table(process, ports, missing);
        }
        Some(self.last.clone())
    }

    fn read_table(&mut self, process: &Process, ports: &[u16], missing: &mut Missing) {
        let many = self.last.in_use + self.last.time_wait;
        if many > MOST {
            self.last.by_state.clear();
            self.last.accept_queue = None;
            let why = format!("{many} sockets are more than are counted one by one ({MOST})");
            return missing.note("sockets.by_state", why);
        }
        let Some(mut entries) = missing.or_note("sockets.by_state", process.tcp()) else {
            return;
        };
        // Without IPv6 there is no such file.
        entries.extend(process.tcp6().unwrap_or_default());
        let mut states = BTreeMap::new();
        for entry in &entries {
            *states.entry(name(&entry.state).to_owned()).or_default() += 1;
        }
        self.last.by_state = states;
        self.last.accept_queue = accept_queue(&entries, ports);
    }
}

/// Connections waiting on listeners of `ports`: their number is in the column that holds the unread
/// bytes of other sockets.
fn accept_queue(entries: &[TcpNetEntry], ports: &[u16]) -> Option<u64> {
    let waiting: Vec<u64> = entries
        .iter()
        .filter(|entry| {
            entry.state == TcpState::Listen && ports.contains(&entry.local_address.port())
        })
        .map(|entry| u64::from(entry.rx_queue))
        .collect();
    (!waiting.is_empty()).then(|| waiting.iter().sum())
}

fn in_sockstat(text: &str, field: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix("TCP: "))?;
    let mut words = line.split_whitespace();
    words.find(|word| *word == field)?;
    words.next()?.parse().ok()
}

fn name(state: &TcpState) -> &'static str {
    match state {
        TcpState::Established => "established",
        TcpState::SynSent => "syn_sent",
        TcpState::SynRecv | TcpState::NewSynRecv => "syn_received",
        TcpState::FinWait1 => "fin_wait_1",
        TcpState::FinWait2 => "fin_wait_2",
        TcpState::TimeWait => "time_wait",
        TcpState::Close => "closed",
        TcpState::CloseWait => "close_wait",
        TcpState::LastAck => "last_ack",
        TcpState::Listen => "listening",
        TcpState::Closing => "closing",
    }
}

#[cfg(test)]
mod tests {
    use super::in_sockstat;

    #[test]
    fn sockstat_is_read_by_name() {
        let text = "sockets: used 24\nTCP: inuse 1 orphan 0 tw 3 alloc 1 mem 34\nUDP: inuse 9\n";
        assert_eq!(in_sockstat(text, "inuse"), Some(1));
        assert_eq!(in_sockstat(text, "tw"), Some(3));
        assert_eq!(in_sockstat(text, "none"), None);
        assert_eq!(in_sockstat("", "tw"), None);
    }
}
