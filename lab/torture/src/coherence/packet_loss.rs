//! Faults of the network between one node and the server.

use std::collections::HashSet;
use std::io;
use std::net::Ipv4Addr;
use std::time::Duration;

use crate::coherence::fault::Fault;
use crate::coherence::inject::{FaultInjector, to_message};
use crate::coherence::node::Link;
use crate::coherence::packets::{Loss, LossDirection, Packets, connected_to};
use crate::coherence::page::Ask;

/// Of a hundred packets, where only some are lost.
const SOME: u8 = 30;
/// How long connections are refused that are cut: longer than from one heartbeat to the next.
const CUTTING: Duration = Duration::from_millis(600);
/// Until the kernel stops repeating the end of a connection whose program has ended.
const FORGETTING: Duration = Duration::from_millis(1500);

impl<'f> FaultInjector<'f> {
    /// Loses packets of a node for a while.
    pub(crate) fn lose(&mut self, fault: Fault, number: usize) -> Result<(), String> {
        let (packets, server) = self.network(number)?;
        let (mut loss, mut time) = (Loss::of(server), self.lasting);
        match fault {
            Fault::PacketsLostBriefly => time /= 5,
            Fault::PacketsToServerLost => loss.way = LossDirection::ToServer,
            Fault::PacketsFromServerLost => loss.way = LossDirection::FromServer,
            Fault::PacketsThinned => loss.percent = SOME,
            _ => {}
        }
        self.exceed_bound(
            number,
            time,
            |_| packets.lose(&loss).map_err(to_message),
            |_| packets.pass().map_err(to_message),
        )
    }

    /// Loses everything on the connections that a node's feed, or its pool, has now.
    pub(crate) fn lose_packets(&mut self, fault: Fault, number: usize) -> Result<(), String> {
        let (packets, server) = self.network(number)?;
        self.load_into_memory(number, &[Ask::Account(1), Ask::Total]);
        let feeds = self.feeds()?;
        let mut ports = connected_to(server).map_err(to_message)?;
        ports.retain(|port| feeds.contains(port) == (fault == Fault::FeedDeaf));
        if ports.is_empty() {
            return Err("there is no such connection".to_owned());
        }
        let loss = Loss {
            ports: ports.into_iter().collect(),
            ..Loss::of(server)
        };
        packets.lose(&loss).map_err(to_message)
    }

    /// Ends all connections of a node.
    pub(crate) fn cut(&self, number: usize) -> Result<(), String> {
        match &self.nodes[number].link {
            Link::File(_) => return Err("the node has no connections".to_owned()),
            Link::Relay(relay) => relay.cut(),
            Link::Straight(server) => {
                let packets = self.packets.ok_or("there is no namespace")?;
                let loss = Loss {
                    is_told: true,
                    ..Loss::of(*server)
                };
                packets.lose(&loss).map_err(to_message)?;
                self.context.span.pass(CUTTING);
                packets.pass().map_err(to_message)?;
            }
        }
        Ok(())
    }

    /// When a node hears again, the server knows nothing of its connections.
    pub(crate) fn crash_unheard(&mut self, number: usize) -> Result<(), String> {
        let (packets, server) = self.network(number)?;
        packets.lose(&Loss::of(server)).map_err(to_message)?;
        self.server.kill_hard();
        let started = self.server.restart().map_err(to_message);
        self.context.span.pass(FORGETTING);
        packets.pass().map_err(to_message).and(started)
    }

    /// Nothing is lost any more.
    pub(crate) fn end_loss(&self) -> io::Result<()> {
        self.packets.map_or(Ok(()), Packets::pass)
    }

    fn network(&self, number: usize) -> Result<(&'f Packets, (Ipv4Addr, u16)), String> {
        match (&self.nodes[number].link, self.packets) {
            (Link::Straight(server), Some(packets)) => Ok((packets, *server)),
            _ => Err("packets cannot be lost here".to_owned()),
        }
    }

    /// The clients' ports of all feeds.
    fn feeds(&self) -> Result<HashSet<u16>, String> {
        let rows = self.client()?.query(
            "select client_port from pg_stat_activity where application_name = 'millpond_feed' and client_port > 0",
            &[],
        );
        let ports = rows.map_err(to_message)?;
        let ports = ports
            .iter()
            .filter_map(|row| u16::try_from(row.get::<_, i32>(0)).ok());
        Ok(ports.collect())
    }
}
