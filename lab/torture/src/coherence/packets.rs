//! Packets that the kernel drops: rules of nftables in a network namespace of the scenario.
//!
//! Each node reaches the server by a loopback address of its own, so an address identifies the node
//! of a packet. Packets are dropped on arrival, not on departure: the sender is not notified, as in
//! a real network. The rules touch nothing outside the namespace, and end with it.

use std::collections::HashSet;
use std::fmt::Write as _;
use std::fs;
use std::io::{self, Write as _};
use std::net::Ipv4Addr;
use std::process::{Command, Stdio};

/// The table and the chain of the rules.
const CHAIN: &str = "inet millpond arriving";
/// Folders in which distributions keep such programs, also for users who have them in no `PATH`.
const SYSTEM: &str = "/usr/sbin:/sbin";
/// How often the kernel repeats the end of a connection whose program has ended. By default it
/// repeats for minutes: a peer that receives packets again would be notified, and would never have
/// to find out by itself.
const FAREWELLS: (&str, &str) = ("/proc/sys/net/ipv4/tcp_orphan_retries", "1");

/// The right to lose packets here: only a process in a namespace of its own has it.
#[derive(Clone, Debug)]
pub struct Packets(());

/// Direction of the packets that are lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LossDirection {
    Both,
    ToServer,
    FromServer,
}

/// Packets that are lost, of those between a server's address and its clients.
#[derive(Clone, Debug)]
pub(crate) struct Loss {
    pub(crate) server: (Ipv4Addr, u16),
    pub(crate) way: LossDirection,
    /// Of a hundred packets.
    pub(crate) percent: u8,
    /// Only on the connections from these ports; on all, also later ones, if there are none.
    pub(crate) ports: Vec<u16>,
    /// True if the sender is notified of the end of the connection.
    pub(crate) is_told: bool,
}

impl Loss {
    /// Everything between the server and its clients.
    pub(crate) fn of(server: (Ipv4Addr, u16)) -> Self {
        Self {
            server,
            way: LossDirection::Both,
            percent: 100,
            ports: Vec::new(),
            is_told: false,
        }
    }

    fn rules(&self) -> String {
        let (address, port) = self.server;
        let ports: Vec<String> = self.ports.iter().map(u16::to_string).collect();
        let mut rules = String::new();
        for (way, own, ours, theirs) in [
            (LossDirection::ToServer, "daddr", "dport", "sport"),
            (LossDirection::FromServer, "saddr", "sport", "dport"),
        ] {
            if self.way != way && self.way != LossDirection::Both {
                continue;
            }
            let _ = write!(
                rules,
                "add rule {CHAIN} ip {own} {address} tcp {ours} {port}"
            );
            if !ports.is_empty() {
                let _ = write!(rules, " tcp {theirs} {{ {} }}", ports.join(", "));
            }
            if self.percent < 100 {
                let _ = write!(rules, " numgen random mod 100 < {}", self.percent);
            }
            rules += if self.is_told {
                " reject with tcp reset\n"
            } else {
                " drop\n"
            };
        }
        rules
    }
}

impl Packets {
    /// Makes a namespace ready in which this process is alone.
    pub(crate) fn take() -> io::Result<Self> {
        run(program("ip").args(["link", "set", "lo", "up"]), "")?;
        let (path, value) = FAREWELLS;
        fs::write(path, value)?;
        let table = "add table inet millpond\n\
                     add chain inet millpond arriving { type filter hook input priority 0; }\n";
        nft(table)?;
        Ok(Self(()))
    }

    /// Loses packets until all [pass](Self::pass) again.
    pub(crate) fn lose(&self, loss: &Loss) -> io::Result<()> {
        nft(&loss.rules())
    }

    /// Loses nothing any more.
    pub(crate) fn pass(&self) -> io::Result<()> {
        nft(&format!("flush chain {CHAIN}\n"))
    }
}

/// The local ports with a connection to a server.
pub(crate) fn connected_to(server: (Ipv4Addr, u16)) -> io::Result<HashSet<u16>> {
    Ok(established(&fs::read_to_string("/proc/net/tcp")?, server))
}

/// From the kernel's table: `sl local_address rem_address st …`, addresses in the machine's byte
/// order.
fn established(table: &str, (address, port): (Ipv4Addr, u16)) -> HashSet<u16> {
    let remote = format!("{:08X}:{port:04X}", u32::from_ne_bytes(address.octets()));
    let ports = table.lines().skip(1).filter_map(|line| {
        let mut fields = line.split_ascii_whitespace().skip(1);
        let (local, to, state) = (fields.next()?, fields.next()?, fields.next()?);
        let (_, local) = local.split_once(':')?;
        (to == remote && state == "01").then(|| u16::from_str_radix(local, 16).ok())?
    });
    ports.collect()
}

pub(crate) fn program(name: &str) -> Command {
    let mut command = Command::new(name);
    let path = std::env::var("PATH").unwrap_or_default();
    command.env("PATH", format!("{path}:{SYSTEM}"));
    command
}

fn nft(script: &str) -> io::Result<()> {
    run(program("nft").args(["-f", "-"]), script)
}

/// Runs a program to its end; what it complains of is the error.
pub(crate) fn run(command: &mut Command, input: &str) -> io::Result<()> {
    let name = command.get_program().to_string_lossy().into_owned();
    let to_message = |error: io::Error| io::Error::new(error.kind(), format!("{name}: {error}"));
    command.stdin(Stdio::piped()).stdout(Stdio::null());
    let mut child = command.stderr(Stdio::piped()).spawn().map_err(to_message)?;
    if let Some(mut pipe) = child.stdin.take() {
        // A program that does not read its input explains the failure itself.
        let _ = pipe.write_all(input.as_bytes());
    }
    let output = child.wait_with_output().map_err(to_message)?;
    if output.status.success() {
        return Ok(());
    }
    let complaint = String::from_utf8_lossy(&output.stderr);
    // Most say themselves who they are.
    let complaint = complaint.trim().trim_start_matches(&format!("{name}: "));
    Err(io::Error::other(format!("{name}: {complaint}")))
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, TcpListener, TcpStream};

    use super::{Loss, LossDirection, connected_to};

    const SERVER: (Ipv4Addr, u16) = (Ipv4Addr::new(127, 0, 0, 11), 5432);

    #[test]
    fn a_loss_is_rules_for_both_ways_or_one() {
        let both = Loss::of(SERVER).rules();
        assert_eq!(
            both,
            "add rule inet millpond arriving ip daddr 127.0.0.11 tcp dport 5432 drop\n\
             add rule inet millpond arriving ip saddr 127.0.0.11 tcp sport 5432 drop\n"
        );
        let some = Loss {
            way: LossDirection::FromServer,
            percent: 30,
            ports: vec![7, 8],
            ..Loss::of(SERVER)
        };
        assert_eq!(
            some.rules(),
            "add rule inet millpond arriving ip saddr 127.0.0.11 tcp sport 5432 tcp dport { 7, 8 } numgen random mod 100 < 30 drop\n"
        );
        let told = Loss {
            way: LossDirection::ToServer,
            is_told: true,
            ..Loss::of(SERVER)
        };
        assert!(told.rules().ends_with("5432 reject with tcp reset\n"));
    }

    #[test]
    fn clients_are_found_by_their_servers_address() {
        let address = Ipv4Addr::new(127, 0, 0, 11);
        let server = TcpListener::bind((address, 0)).unwrap();
        let port = server.local_addr().unwrap().port();
        let clients = [(); 2].map(|()| TcpStream::connect((address, port)).unwrap());
        let found = connected_to((address, port)).unwrap();
        let ports = clients
            .each_ref()
            .map(|client| client.local_addr().unwrap().port());
        assert_eq!(found, ports.into());
        assert!(
            connected_to((Ipv4Addr::LOCALHOST, port))
                .unwrap()
                .is_empty()
        );
    }
}
