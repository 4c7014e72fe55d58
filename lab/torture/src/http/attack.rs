//! One hostile connection: what is sent, how it is left, and whether what came back is right.

use std::collections::VecDeque;
use std::io::{self, ErrorKind, Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::thread;
use std::time::Duration;

use socket2::SockRef;

use crate::Choices;
use crate::http::messages::{LARGE, Messages, PLAIN, noise, oversized};
use crate::http::verdict::statuses;
use base_clock::now;

/// Limit for an answer, or for the end of a connection. Both normally take less than a hundredth of
/// it.
const PATIENCE: Duration = Duration::from_secs(30);
/// Pause before another try where all ports rest.
const PORTS_REST: Duration = Duration::from_millis(10);
/// Connections that one client leaves open to annoy; when it has more, the oldest goes.
const HELD: usize = 4;
/// Requests for the large file in a connection whose answers the client never reads.
const NEVER_READ: usize = 16;
/// No exchange has more bytes of answers, though some are for many large files.
const MOST_ANSWERED: usize = 64 << 20;

/// A way to misbehave.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Attack {
    /// A good request after a few edits.
    Mutated,
    /// A message with two readings.
    Smuggled,
    /// Bytes that are no HTTP.
    Noise,
    /// A request that ends too early.
    Truncated,
    /// A request over some limit.
    Oversized,
    /// Good requests in one write with something broken behind them.
    Pipelined,
    /// A message, and at once a reset (`SO_LINGER` 0).
    Reset,
    /// Good requests and the end of the stream: all must be answered.
    HalfClosed,
    /// Requests for large answers, which are never read.
    NeverRead,
    /// A request in single bytes, now and then.
    Slow,
}

impl Attack {
    /// All of them.
    pub const ALL: [Self; 10] = [
        Self::Mutated,
        Self::Smuggled,
        Self::Noise,
        Self::Truncated,
        Self::Oversized,
        Self::Pipelined,
        Self::Reset,
        Self::HalfClosed,
        Self::NeverRead,
        Self::Slow,
    ];

    /// Its name in a table.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Mutated => "mutated",
            Self::Smuggled => "smuggling",
            Self::Noise => "noise",
            Self::Truncated => "truncated",
            Self::Oversized => "oversized",
            Self::Pipelined => "pipelined garbage",
            Self::Reset => "reset",
            Self::HalfClosed => "half-closed",
            Self::NeverRead => "never reads",
            Self::Slow => "byte by byte",
        }
    }

    /// Of a hundred connections, how many are of this kind.
    const fn share(self) -> usize {
        match self {
            Self::Mutated => 26,
            Self::Smuggled => 16,
            Self::Noise | Self::Truncated | Self::Pipelined => 10,
            Self::Reset => 12,
            Self::HalfClosed => 8,
            Self::Oversized => 4,
            Self::NeverRead | Self::Slow => 2,
        }
    }

    fn chosen(choices: &mut Choices<'_>) -> Self {
        let mut left = choices.below(Self::ALL.iter().map(|attack| attack.share()).sum());
        for attack in Self::ALL {
            match left.checked_sub(attack.share()) {
                Some(less) => left = less,
                None => return attack,
            }
        }
        Self::Mutated
    }
}

/// How one connection went.
#[derive(Debug)]
pub(crate) struct Outcome {
    pub(crate) attack: Attack,
    /// Requests, whole or broken, that were sent: the hostile one and good ones around it.
    pub(crate) requests: u64,
    pub(crate) statuses: Vec<u16>,
    /// Fault of the server.
    pub(crate) fault: Option<String>,
}

/// A hostile client: one connection after the other, and a few that it keeps open.
pub(crate) struct Attacker {
    address: SocketAddr,
    messages: Messages,
    choices: Choices<'static>,
    held: VecDeque<OpenConnection>,
    scratch: Vec<u8>,
}

/// A connection that is left open, and what it has not sent yet.
struct OpenConnection {
    stream: TcpStream,
    rest: VecDeque<u8>,
}

impl Attacker {
    pub(crate) fn new(address: SocketAddr, seed: u64) -> Self {
        Self {
            address,
            messages: Messages::new(),
            choices: Choices::seeded(seed),
            held: VecDeque::new(),
            scratch: vec![0; 64 << 10],
        }
    }

    /// One more connection.
    pub(crate) fn attack_once(&mut self) -> Outcome {
        self.drip();
        let attack = Attack::chosen(&mut self.choices);
        let (message, requests) = self.message(attack);
        let result = match attack {
            Attack::Reset => self.reset(&message).map(|()| Vec::new()),
            Attack::NeverRead | Attack::Slow => self.hold(attack, &message).map(|()| Vec::new()),
            _ => self.exchange(&message),
        };
        let (statuses, fault) = match result {
            Err(error) => (Vec::new(), Some(error.to_string())),
            Ok(answer) => match statuses(&answer) {
                Err(fault) => (Vec::new(), Some(fault)),
                Ok(statuses) => {
                    let fault = wrong(attack, requests, &statuses);
                    (statuses, fault)
                }
            },
        };
        let fault = fault.map(|fault| {
            let start = &message[..message.len().min(200)];
            format!("{}: {fault}, after {}", attack.name(), start.escape_ascii())
        });
        Outcome {
            attack,
            requests,
            statuses,
            fault,
        }
    }

    /// Makes the bytes to send, and counts their requests.
    fn message(&mut self, attack: Attack) -> (Vec<u8>, u64) {
        let choices = &mut self.choices;
        match attack {
            Attack::Mutated => (self.messages.mutated(choices), 1),
            Attack::Smuggled => (self.messages.smuggled(choices), 1),
            Attack::Noise => (noise(choices), 1),
            Attack::Truncated => (self.messages.truncated(choices), 1),
            Attack::Oversized => (oversized(choices), 1),
            Attack::Slow => (self.messages.good(choices), 1),
            Attack::Pipelined => {
                let before = choices.below(8);
                let mut message = PLAIN.repeat(before).into_bytes();
                message.extend(self.messages.mutated(choices));
                (message, before as u64 + 1)
            }
            Attack::HalfClosed => {
                let count = 1 + choices.below(12);
                (PLAIN.repeat(count).into_bytes(), count as u64)
            }
            Attack::NeverRead => (LARGE.repeat(NEVER_READ).into_bytes(), NEVER_READ as u64),
            Attack::Reset => match choices.below(3) {
                0 => (self.messages.truncated(choices), 1),
                1 => (self.messages.mutated(choices), 1),
                _ => (LARGE.into(), 1),
            },
        }
    }

    fn connect(&self) -> io::Result<TcpStream> {
        let began = now();
        let stream = loop {
            match TcpStream::connect(self.address) {
                // Every port is in use or rests after a connection (TIME_WAIT, a second on the
                // loopback).
                Err(error)
                    if error.kind() == ErrorKind::AddrNotAvailable
                        && base_clock::since(began) < PATIENCE =>
                {
                    thread::sleep(PORTS_REST);
                }
                other => break other,
            }
        };
        let stream = stream
            .map_err(|error| io::Error::new(error.kind(), format!("no connection: {error}")))?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_write_timeout(Some(PATIENCE))?;
        stream.set_nodelay(true)?;
        Ok(stream)
    }

    /// Sends all, says that this was all, and reads to the end.
    fn exchange(&mut self, message: &[u8]) -> io::Result<Vec<u8>> {
        let mut stream = self.connect()?;
        let cut = self.choices.below(message.len() + 1);
        let (one, other) = message.split_at(cut);
        // The server may have refused already and closed: then this write fails, and the answer can
        // be read.
        let _ = stream.write_all(one).and_then(|()| stream.write_all(other));
        let _ = stream.shutdown(Shutdown::Write);
        let mut answer = Vec::new();
        loop {
            match stream.read(&mut self.scratch) {
                Ok(0) => break,
                Ok(len) => answer.extend_from_slice(&self.scratch[..len]),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::ConnectionReset => break,
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    return Err(io::Error::other(format!(
                        "neither an answer nor the end within {} s",
                        PATIENCE.as_secs()
                    )));
                }
                Err(error) => return Err(error),
            }
            if answer.len() > MOST_ANSWERED {
                return Err(io::Error::other("an answer without end"));
            }
        }
        Ok(answer)
    }

    /// Sends what the socket takes, and resets the connection.
    fn reset(&mut self, message: &[u8]) -> io::Result<()> {
        let mut stream = self.connect()?;
        SockRef::from(&stream).set_linger(Some(Duration::ZERO))?;
        let _ = stream.write_all(message);
        if message == LARGE.as_bytes() && self.choices.chance(50) {
            // In the middle of an answer.
            let _ = stream.read(&mut self.scratch[..1]);
        }
        Ok(())
    }

    /// Leaves a connection open: all sent and nothing read, or hardly anything sent.
    fn hold(&mut self, attack: Attack, message: &[u8]) -> io::Result<()> {
        let mut stream = self.connect()?;
        let mut rest = VecDeque::new();
        if attack == Attack::NeverRead {
            let _ = stream.write_all(message);
        } else {
            rest.extend(message);
        }
        stream.set_nonblocking(true)?;
        self.held.push_back(OpenConnection { stream, rest });
        if self.held.len() > HELD
            && let Some(oldest) = self.held.pop_front()
            && self.choices.chance(50)
        {
            SockRef::from(&oldest.stream).set_linger(Some(Duration::ZERO))?;
        }
        Ok(())
    }

    /// One more byte on one of the connections that are held.
    fn drip(&mut self) {
        let which = self.choices.below(HELD);
        if let Some(held) = self.held.get_mut(which)
            && let Some(byte) = held.rest.pop_front()
        {
            // Who was refused meanwhile need not go on.
            let _ = held.stream.write(&[byte]);
        }
    }
}

/// True if there was one answer, and it says no.
fn is_refusal(statuses: &[u16]) -> bool {
    matches!(statuses, [status] if *status >= 400)
}

/// Returns the fault in the answers to an attack, if there is one.
fn wrong(attack: Attack, requests: u64, statuses: &[u16]) -> Option<String> {
    match attack {
        Attack::Smuggled if !is_refusal(statuses) => {
            Some(format!("not one refusal but {statuses:?}"))
        }
        Attack::HalfClosed
            if statuses.len() as u64 != requests
                || statuses.iter().any(|&status| status != 200) =>
        {
            Some(format!("{requests} requests, answered with {statuses:?}"))
        }
        Attack::Oversized if !is_refusal(statuses) => {
            Some(format!("over a limit, and answered with {statuses:?}"))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::{Attack, wrong};
    use crate::Choices;

    #[test]
    fn every_attack_is_chosen() {
        let mut choices = Choices::seeded(1);
        let chosen: Vec<_> = (0..2000).map(|_| Attack::chosen(&mut choices)).collect();
        assert!(Attack::ALL.iter().all(|attack| chosen.contains(attack)));
    }

    #[test]
    fn wrong_answers_are_recognised() {
        for (attack, requests, statuses, is_wrong) in [
            (Attack::Smuggled, 1, &[400][..], false),
            (Attack::Smuggled, 1, &[501], false),
            (Attack::Smuggled, 1, &[200], true),
            (Attack::Smuggled, 1, &[400, 404], true),
            (Attack::Smuggled, 1, &[], true),
            (Attack::HalfClosed, 2, &[200, 200], false),
            (Attack::HalfClosed, 2, &[200], true),
            (Attack::HalfClosed, 2, &[200, 408], true),
            (Attack::Oversized, 1, &[431], false),
            (Attack::Oversized, 1, &[200], true),
            (Attack::Mutated, 1, &[], false),
        ] {
            assert_eq!(
                wrong(attack, requests, statuses).is_some(),
                is_wrong,
                "{attack:?} {statuses:?}"
            );
        }
    }
}
