//! Network counters: interfaces, TCP segments, and what listeners turned away.

use std::fs;
use std::io;

use procfs::process::Process;

use super::missing::Missing;
use super::model::Network;

/// The counters of the network namespace of `process`.
pub(super) fn sample(process: &Process, missing: &mut Missing) -> Option<Network> {
    let mut network = Network::default();
    let devices = missing.or_note("network.interfaces", process.dev_status())?;
    let here = process.pid() == std::process::id().cast_signed()
        || same_namespace(process).unwrap_or(false);
    for device in devices.values() {
        if device.name == "lo" {
            network.loopback_bytes += device.sent_bytes;
            network.loopback_packets += device.sent_packets;
            continue;
        }
        network.received_bytes += device.recv_bytes;
        network.sent_bytes += device.sent_bytes;
        network.received_packets += device.recv_packets;
        network.sent_packets += device.sent_packets;
        // /sys shows the interfaces of the reader's own namespace.
        if here {
            network.speed_bytes_per_s = network.speed_bytes_per_s.max(speed(&device.name));
        }
    }
    let folder = format!("/proc/{}/net", process.pid());
    let read = |name: &str| fs::read_to_string(format!("{folder}/{name}"));
    let snmp = missing.or_note("network.tcp", read("snmp"))?;
    let netstat = missing.or_note("network.listen", read("netstat"))?;
    let mut take = |text: &str, group: &str, field: &str| {
        let found = counter(text, group, field)
            .ok_or_else(|| io::Error::other("the kernel does not count it"));
        missing
            .or_note(&format!("network.{group}.{field}"), found)
            .unwrap_or_default()
    };
    network.segments = take(&snmp, "Tcp", "OutSegs");
    network.retransmits = take(&snmp, "Tcp", "RetransSegs");
    network.listen_overflows = take(&netstat, "TcpExt", "ListenOverflows");
    network.listen_drops = take(&netstat, "TcpExt", "ListenDrops");
    network.syn_cookies = take(&netstat, "TcpExt", "SyncookiesSent");
    Some(network)
}

/// True if the process sees the same interfaces as this one.
fn same_namespace(process: &Process) -> Option<bool> {
    let namespace = |pid: &str| fs::read_link(format!("/proc/{pid}/ns/net")).ok();
    Some(namespace(&process.pid().to_string())? == namespace("self")?)
}

/// Returns the capacity of an interface each way in bytes a second, where its driver says.
fn speed(device: &str) -> Option<u64> {
    let text = fs::read_to_string(format!("/sys/class/net/{device}/speed")).ok()?;
    let megabits: i64 = text.trim().parse().ok()?;
    // Drivers that do not know say -1.
    u64::try_from(megabits)
        .ok()
        .filter(|speed| *speed > 0)
        .map(|speed| speed * 125_000)
}

/// A counter of `/proc/net/snmp` or `/proc/net/netstat`: a line of names and a line of values, both
/// after the name of the group. The `procfs` crate has no `netstat`, and refuses a whole `snmp` for
/// one field.
pub(super) fn counter(text: &str, group: &str, field: &str) -> Option<u64> {
    let mut lines = text
        .lines()
        .filter_map(|line| line.strip_prefix(group)?.strip_prefix(':'));
    let (names, values) = (lines.next()?, lines.next()?);
    let at = names.split_whitespace().position(|name| name == field)?;
    values.split_whitespace().nth(at)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::counter;

    #[test]
    fn a_counter_is_found_by_its_name() {
        let text = "TcpExt: A ListenDrops B\nTcpExt: 1 7 -3\nIpExt: A\nIpExt: 9\n";
        assert_eq!(counter(text, "TcpExt", "ListenDrops"), Some(7));
        assert_eq!(counter(text, "IpExt", "A"), Some(9));
        assert_eq!(counter(text, "TcpExt", "B"), None, "not a count");
        assert_eq!(counter(text, "TcpExt", "C"), None);
        assert_eq!(counter("TcpExt: A\n", "TcpExt", "A"), None);
    }
}
