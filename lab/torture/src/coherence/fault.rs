//! What is done to the nodes and to the server while pages are read.

/// A kind of fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Fault {
    /// The server ends all feeds.
    FeedsKilled,
    /// A fast shutdown, and a start at once.
    ServerRestarted,
    /// SIGKILL to every process of the server, and recovery.
    ServerCrashed,
    /// The server is away for longer than the bound.
    ServerAway,
    /// The server's processes are stopped for longer than the bound: connections stay open and get
    /// no answer.
    ServerFrozen,
    /// A node is stopped for longer than the bound.
    NodeFrozen,
    /// A node is killed and started again.
    NodeKilled,
    /// Nothing goes through the relay between a node and the server for longer than the bound.
    RelaySilent,
    /// All connections between a node and the server end.
    ConnectionsCut,
    /// All packets between a node and the server are lost for longer than the bound.
    PacketsLost,
    /// All packets between a node and the server are lost for less than the bound.
    PacketsLostBriefly,
    /// The server receives nothing from a node; the node receives everything.
    PacketsToServerLost,
    /// A node receives nothing from the server; the server receives everything.
    PacketsFromServerLost,
    /// Three packets of ten between a node and the server are lost.
    PacketsThinned,
    /// On the connections of a node's feed nothing arrives any more, ever; new ones are good.
    FeedDeaf,
    /// On a node's other connections nothing arrives any more; new ones are good.
    PoolDeaf,
    /// The server crashes and restarts, and a node receives no packet about it: the node's
    /// connections no longer exist at the server.
    ServerGoneUnheard,
    /// New slots have to be made while a write is open.
    SlotBesideOpenWrite,
    /// A column of a table becomes another, and is what it was.
    TableAltered,
    /// A view says something else.
    ViewReplaced,
    /// A policy, a role, a function, a schema or a path says something else.
    RulesChanged,
    /// The publication is dropped for a moment; with triggers, a table's changes are not recorded.
    PublicationDropped,
    /// A transaction beyond `logical_decoding_work_mem`.
    LargeTransaction,
}

impl Fault {
    /// Faults that need nothing of the machine.
    const EVERYWHERE: [Self; 14] = [
        Self::FeedsKilled,
        Self::ServerRestarted,
        Self::ServerCrashed,
        Self::ServerAway,
        Self::ServerFrozen,
        Self::NodeFrozen,
        Self::NodeKilled,
        Self::ConnectionsCut,
        Self::SlotBesideOpenWrite,
        Self::TableAltered,
        Self::ViewReplaced,
        Self::RulesChanged,
        Self::PublicationDropped,
        Self::LargeTransaction,
    ];
    /// Faults of packets that the kernel loses.
    const PACKETS: [Self; 8] = [
        Self::PacketsLost,
        Self::PacketsLostBriefly,
        Self::PacketsToServerLost,
        Self::PacketsFromServerLost,
        Self::PacketsThinned,
        Self::FeedDeaf,
        Self::PoolDeaf,
        Self::ServerGoneUnheard,
    ];
    /// The fault of a relay, which replaces these where packets cannot be lost.
    const RELAY: [Self; 1] = [Self::RelaySilent];

    /// All kinds, where packets can be lost and where not.
    pub(crate) fn kinds(with_packets: bool) -> Vec<Self> {
        let others = if with_packets {
            &Self::PACKETS[..]
        } else {
            &Self::RELAY
        };
        [&Self::EVERYWHERE, others].concat()
    }

    /// Its name in the report.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::FeedsKilled => "feeds killed",
            Self::ServerRestarted => "server restarted",
            Self::ServerCrashed => "server crashed",
            Self::ServerAway => "server away",
            Self::ServerFrozen => "server frozen",
            Self::NodeFrozen => "node frozen",
            Self::NodeKilled => "node killed",
            Self::RelaySilent => "relay silent",
            Self::ConnectionsCut => "connections cut",
            Self::PacketsLost => "packets lost",
            Self::PacketsLostBriefly => "packets lost briefly",
            Self::PacketsToServerLost => "packets to the server lost",
            Self::PacketsFromServerLost => "packets from the server lost",
            Self::PacketsThinned => "30 % of packets lost",
            Self::FeedDeaf => "feed's connections deaf",
            Self::PoolDeaf => "pool's connections deaf",
            Self::ServerGoneUnheard => "server gone unheard",
            Self::SlotBesideOpenWrite => "slot beside an open write",
            Self::TableAltered => "table altered",
            Self::ViewReplaced => "view replaced",
            Self::RulesChanged => "rules changed",
            Self::PublicationDropped => "publication dropped",
            Self::LargeTransaction => "large transaction",
        }
    }

    /// True if it lasts until the nodes have found a way around it.
    pub(crate) fn stays(self) -> bool {
        matches!(self, Self::FeedDeaf | Self::PoolDeaf)
    }
}
