//! TLS 1.2 and 1.3 (RFC 5246, RFC 8446) as a function of bytes: records in, plaintext out, and the
//! reverse. `rustls` does it, by its interface without buffers of its own: an idle connection has
//! none.
//!
//! `rustls` 0.23 allocates one vector for each record that it decrypts, and one for each record
//! that it encrypts. A response whose head and body fit one record (16 KiB) becomes one record.

use std::sync::Arc;

use rustls::ServerConfig;
use rustls::server::{ServerConnectionData, UnbufferedServerConnection};
use rustls::unbuffered::{
    ConnectionState, EncodeError, EncryptError, InsufficientSizeError, UnbufferedStatus,
    WriteTraffic,
};

/// The most plaintext in one record (RFC 8446 section 5.1).
pub(crate) const RECORD: usize = 16 << 10;
/// Bytes that a record has beside its plaintext, at most: head, nonce, type and tag of the suites
/// that are offered. One that needs more is asked for its size.
pub(crate) const RECORD_OVERHEAD: usize = 64;

/// Bytes before the payload of a record: type, version, length (RFC 8446 section 5.1).
const HEAD: usize = 5;
const APPLICATION_DATA: u8 = 23;

/// The server's side of one TLS connection.
pub(crate) struct TlsSession {
    connection: UnbufferedServerConnection,
    /// True if the handshake is complete.
    is_open: bool,
    /// True if the peer has ended its side.
    has_ended: bool,
    /// Bytes of whole records that were not taken: they are the beginning of a message whose end is
    /// in another record. `rustls` remembers where they end and wants to see them each time.
    passed: usize,
}

/// Bounds of a record in the received bytes, as far as it has arrived.
#[derive(Clone, Copy, Debug)]
struct RecordBounds {
    start: usize,
    end: usize,
    is_whole: bool,
}

impl RecordBounds {
    fn at(start: usize, received: &[u8]) -> Self {
        let whole = match received.get(start..) {
            Some([_, _, _, high, low, ..]) => {
                start + HEAD + usize::from(u16::from_be_bytes([*high, *low]))
            }
            _ => usize::MAX,
        };
        Self {
            start,
            end: whole.min(received.len()),
            is_whole: whole <= received.len(),
        }
    }

    /// Makes the record look like one that has not arrived whole. It was refused, and `rustls`
    /// would refuse it again each time that it is asked what is to be sent.
    fn conceal(self, received: &mut [u8]) {
        let record = &mut received[self.start..self.end];
        let longer = u16::try_from(record.len())
            .unwrap_or(u16::MAX)
            .max(RECORD as u16);
        let [high, low] = longer.to_be_bytes();
        let head: [u8; HEAD] = [APPLICATION_DATA, 3, 3, high, low];
        let len = record.len().min(HEAD);
        record[..len].copy_from_slice(&head[..len]);
    }
}

/// Why a TLS connection cannot go on. The alert for the peer is among the records to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TlsError {
    /// The peer broke the protocol, or nothing in common was found.
    Protocol,
    /// `rustls` came to a state that this server never asks for.
    Unexpected,
}

/// Place to which plaintext goes: the space of the caller first, then a vector.
#[derive(Debug)]
pub(crate) struct Plaintext<'a> {
    space: &'a mut [u8],
    /// Bytes in `space`.
    pub(crate) len: usize,
    /// Bytes that did not fit.
    pub(crate) rest: Vec<u8>,
}

impl<'a> Plaintext<'a> {
    pub(crate) fn new(space: &'a mut [u8]) -> Self {
        Self {
            space,
            len: 0,
            rest: Vec::new(),
        }
    }

    pub(crate) fn push(&mut self, bytes: &[u8]) {
        let fits = bytes.len().min(self.space.len() - self.len);
        self.space[self.len..self.len + fits].copy_from_slice(&bytes[..fits]);
        self.len += fits;
        self.rest.extend_from_slice(&bytes[fits..]);
    }
}

/// Records to send, in memory that is used again.
#[derive(Debug, Default)]
pub(crate) struct Records {
    /// Longer than its content, so that no byte of it is cleared before it is written.
    buffer: Vec<u8>,
    len: usize,
}

impl Records {
    pub(crate) fn clear(&mut self) {
        self.len = 0;
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.buffer[..self.len]
    }

    /// At least `room` bytes behind the content.
    fn space(&mut self, room: usize) -> &mut [u8] {
        let wanted = self.len + room;
        if self.buffer.len() < wanted {
            self.buffer.resize(wanted, 0);
        }
        &mut self.buffer[self.len..]
    }

    /// Appends what `write` writes into the space that it is given.
    fn append<E>(
        &mut self,
        room: usize,
        mut write: impl FnMut(&mut [u8]) -> Result<usize, E>,
        missing: impl Fn(&E) -> Option<usize>,
    ) -> Result<(), TlsError> {
        let first = write(self.space(room));
        let written = match first {
            Ok(written) => Ok(written),
            Err(error) => {
                let room = missing(&error).ok_or(TlsError::Unexpected)?;
                write(self.space(room)).map_err(|_| TlsError::Unexpected)
            }
        }?;
        self.len += written;
        Ok(())
    }
}

impl TlsSession {
    /// A session that has received nothing.
    pub(crate) fn new(config: Arc<ServerConfig>) -> Result<Self, TlsError> {
        Ok(Self {
            connection: UnbufferedServerConnection::new(config).map_err(|_| TlsError::Protocol)?,
            is_open: false,
            has_ended: false,
            passed: 0,
        })
    }

    /// True if the handshake is complete.
    pub(crate) const fn is_open(&self) -> bool {
        self.is_open
    }

    /// True if the peer has ended its side: no plaintext follows.
    pub(crate) const fn has_ended(&self) -> bool {
        self.has_ended
    }

    /// True if the handshake used a secret of an earlier connection (RFC 8446 section 2.2).
    pub(crate) fn is_resumed(&self) -> bool {
        self.connection.handshake_kind() == Some(rustls::HandshakeKind::Resumed)
    }

    /// The protocol that both sides chose (ALPN, RFC 7301).
    pub(crate) fn protocol(&self) -> Option<&[u8]> {
        self.connection.alpn_protocol()
    }

    /// Takes the whole records at the beginning of `received`; gives the number of bytes that were
    /// taken. The others belong before what is received next. What has to be sent, in a handshake
    /// or as an alert, is appended to `out`.
    pub(crate) fn read(
        &mut self,
        received: &mut [u8],
        plaintext: &mut Plaintext<'_>,
        out: &mut Records,
    ) -> Result<usize, TlsError> {
        let mut taken = 0;
        let mut has_failed = false;
        let mut record = RecordBounds::at(self.passed, received);
        loop {
            let input = &mut received[taken..record.end];
            let UnbufferedStatus { discard, state } = self.connection.process_tls_records(input);
            let is_waiting = match state {
                Ok(ConnectionState::ReadTraffic(mut traffic)) => {
                    while let Some(record) = traffic.next_record() {
                        plaintext.push(record.map_err(|_| TlsError::Protocol)?.payload);
                    }
                    false
                }
                Ok(ConnectionState::EncodeTlsData(mut data)) => {
                    out.append(RECORD_OVERHEAD, |space| data.encode(space), encode_room)?;
                    false
                }
                Ok(ConnectionState::TransmitTlsData(data)) => {
                    // They are in `out`, which the caller sends before anything else.
                    data.done();
                    false
                }
                Ok(ConnectionState::WriteTraffic(_)) => {
                    self.is_open |= !has_failed;
                    true
                }
                Ok(ConnectionState::BlockedHandshake) => true,
                Ok(ConnectionState::PeerClosed) => {
                    self.has_ended = true;
                    false
                }
                Ok(ConnectionState::Closed) => {
                    self.has_ended = true;
                    true
                }
                // Early data is not accepted (RFC 8446 section 8: it can be replayed).
                Ok(_) => return Err(TlsError::Unexpected),
                Err(_) if has_failed => true,
                Err(_) => {
                    has_failed = true;
                    record.conceal(received);
                    false
                }
            };
            taken += discard;
            if !is_waiting {
                continue;
            }
            if has_failed {
                return Err(TlsError::Protocol);
            }
            if record.is_whole && record.end < received.len() {
                record = RecordBounds::at(record.end, received);
                continue;
            }
            let passed = if record.is_whole {
                record.end
            } else {
                record.start
            };
            self.passed = passed.saturating_sub(taken);
            return Ok(taken);
        }
    }

    /// Appends `plaintext` to `out` as records. `held` are the bytes that [`TlsSession::read`] has
    /// not taken.
    pub(crate) fn write(
        &mut self,
        held: &mut Vec<u8>,
        plaintext: &[u8],
        out: &mut Records,
    ) -> Result<(), TlsError> {
        let records = plaintext.len().div_ceil(RECORD);
        let room = plaintext.len() + records * RECORD_OVERHEAD;
        self.with_traffic(held, out, |traffic, out| {
            out.append(room, |space| traffic.encrypt(plaintext, space), room_of)
        })
    }

    /// Appends the end of this side (`close_notify`, RFC 8446 section 6.1), unless the handshake is
    /// not complete. `held` is as for [`TlsSession::write`].
    pub(crate) fn close(&mut self, held: &mut Vec<u8>, out: &mut Records) -> Result<(), TlsError> {
        if !self.is_open {
            return Ok(());
        }
        self.with_traffic(held, out, |traffic, out| {
            let end = |space: &mut [u8]| traffic.queue_close_notify(space);
            out.append(RECORD_OVERHEAD, end, room_of)
        })
    }

    /// Acts on an open session after what it has to send itself is in `out`.
    fn with_traffic(
        &mut self,
        held: &mut Vec<u8>,
        out: &mut Records,
        mut act: impl FnMut(&mut Traffic<'_>, &mut Records) -> Result<(), TlsError>,
    ) -> Result<(), TlsError> {
        let mut taken = 0;
        let done = loop {
            let input = &mut held[taken..];
            let UnbufferedStatus { discard, state } = self.connection.process_tls_records(input);
            let done = match state {
                Ok(ConnectionState::WriteTraffic(mut traffic)) => Some(act(&mut traffic, out)),
                Ok(ConnectionState::EncodeTlsData(mut data)) => {
                    out.append(RECORD_OVERHEAD, |space| data.encode(space), encode_room)?;
                    None
                }
                Ok(ConnectionState::TransmitTlsData(data)) => {
                    data.done();
                    None
                }
                // It comes once, and after it this side may still send.
                Ok(ConnectionState::PeerClosed) => {
                    self.has_ended = true;
                    None
                }
                Ok(_) => Some(Err(TlsError::Unexpected)),
                Err(_) => Some(Err(TlsError::Protocol)),
            };
            taken += discard;
            if let Some(done) = done {
                break done;
            }
        };
        held.drain(..taken);
        self.passed = self.passed.saturating_sub(taken);
        done
    }
}

type Traffic<'a> = WriteTraffic<'a, ServerConnectionData>;

fn encode_room(error: &EncodeError) -> Option<usize> {
    match error {
        EncodeError::InsufficientSize(InsufficientSizeError { required_size }) => {
            Some(*required_size)
        }
        EncodeError::AlreadyEncoded => None,
    }
}

fn room_of(error: &EncryptError) -> Option<usize> {
    match error {
        EncryptError::InsufficientSize(InsufficientSizeError { required_size }) => {
            Some(*required_size)
        }
        EncryptError::EncryptExhausted => None,
    }
}

#[cfg(test)]
mod tests;
