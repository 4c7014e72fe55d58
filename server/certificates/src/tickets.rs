//! Session tickets (RFC 5077, RFC 8446 section 4.6.1) that every node of a site accepts.
//!
//! Nodes that share a secret derive the same keys from the secret and the time, without a word to
//! each other. A key encrypts tickets for one period of [`PERIOD`] and decrypts them until the end
//! of the next, so a ticket is of use for at most twice the period. The keys of a process live in
//! memory only and are replaced when a period begins. If the secret is stolen, tickets of all times
//! can be read: connections by TLS 1.2 that were resumed then lose their forward secrecy;
//! connections by TLS 1.3 do not, for they mix in a key exchange of their own. A secret made by
//! [`TicketSecret::random`] ends with its process.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use arc_swap::ArcSwap;
use aws_lc_rs::aead::{AES_256_GCM_SIV, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use aws_lc_rs::hkdf::{HKDF_SHA256, KeyType, Prk, Salt};
use rustls::server::ProducesTickets;

use crate::Error;

/// How long one key encrypts tickets.
const PERIOD: Duration = Duration::from_secs(12 * 60 * 60);
/// Octets of a secret, at least.
const LEAST_SECRET: usize = 32;
const KEY_LENGTH: usize = 32;
const KEY_NAME_LENGTH: usize = 16;
/// Purpose that the keys are derived for; another use of the same secret has another purpose.
const PURPOSE: &[u8] = b"millpond TLS session tickets 1";

/// The secret from which the keys of tickets are derived.
#[derive(Clone)]
pub struct TicketSecret(Prk);

impl TicketSecret {
    /// A secret that nodes share, so that each accepts the tickets of the others.
    ///
    /// # Errors
    ///
    /// It has fewer than 32 octets.
    pub fn shared(secret: &[u8]) -> Result<Self, Error> {
        if secret.len() < LEAST_SECRET {
            return Err(Error::new(format!(
                "the secret for session tickets has {} octets; it needs {LEAST_SECRET} random ones",
                secret.len()
            )));
        }
        Ok(Self(Salt::new(HKDF_SHA256, PURPOSE).extract(secret)))
    }

    /// A secret of this process alone.
    ///
    /// # Errors
    ///
    /// The system has no random bytes.
    pub fn random() -> Result<Self, Error> {
        let mut secret = [0; LEAST_SECRET];
        aws_lc_rs::rand::fill(&mut secret)
            .map_err(|_| Error::new("the system has no random bytes"))?;
        Self::shared(&secret)
    }

    /// The key of a period, counted from 1970, for servers of one context; its name tells nothing
    /// of the key or the period.
    fn key(&self, context: &[u8], period: u64) -> Option<TicketKey> {
        let period = period.to_be_bytes();
        let mut bytes = [0; KEY_LENGTH + KEY_NAME_LENGTH];
        let info = [&period[..], context];
        let derived = self.0.expand(&info, DerivedLength(bytes.len())).ok()?;
        derived.fill(&mut bytes).ok()?;
        let (key, name) = bytes.split_at(KEY_LENGTH);
        Some(TicketKey {
            name: name.try_into().ok()?,
            key: LessSafeKey::new(UnboundKey::new(&AES_256_GCM_SIV, key).ok()?),
        })
    }
}

impl fmt::Debug for TicketSecret {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("TicketSecret")
    }
}

struct DerivedLength(usize);

impl KeyType for DerivedLength {
    fn len(&self) -> usize {
        self.0
    }
}

struct TicketKey {
    name: [u8; KEY_NAME_LENGTH],
    key: LessSafeKey,
}

/// The keys of a period: its own first, then the one before and the one after. A node whose clock
/// is ahead may already use the latter.
struct TicketKeys {
    period: u64,
    keys: Vec<TicketKey>,
}

impl TicketKeys {
    fn of(secret: &TicketSecret, context: &[u8], period: u64) -> Self {
        let periods = [period, period.wrapping_sub(1), period.wrapping_add(1)];
        Self {
            period,
            keys: periods
                .into_iter()
                .filter_map(|period| secret.key(context, period))
                .collect(),
        }
    }
}

/// Makes and reads tickets: the name of the key, a random nonce, then what `rustls` wants to know
/// again, encrypted by AES-256-GCM-SIV (RFC 8452), which a repeated nonce does not break.
pub(crate) struct SharedTickets {
    secret: TicketSecret,
    context: Vec<u8>,
    keys: ArcSwap<TicketKeys>,
}

impl SharedTickets {
    /// Tickets of servers with this secret and this context. What a resumed session need not prove
    /// again belongs into the context: else a ticket from a server that asks clients for less would
    /// open one that asks for more.
    pub(crate) fn new(secret: TicketSecret, context: Vec<u8>) -> Self {
        let keys = TicketKeys::of(&secret, &context, period_at(base_clock::wall()));
        Self {
            secret,
            context,
            keys: ArcSwap::from_pointee(keys),
        }
    }

    fn keys_at(&self, now: SystemTime) -> Arc<TicketKeys> {
        let period = period_at(now);
        let keys = self.keys.load_full();
        if keys.period == period {
            return keys;
        }
        // Several threads may derive the same keys at the turn of a period.
        let keys = Arc::new(TicketKeys::of(&self.secret, &self.context, period));
        self.keys.store(Arc::clone(&keys));
        keys
    }

    fn encrypt_at(&self, plain: &[u8], now: SystemTime) -> Option<Vec<u8>> {
        let keys = self.keys_at(now);
        let TicketKey { name, key } = keys.keys.first()?;
        let mut nonce = [0; NONCE_LEN];
        aws_lc_rs::rand::fill(&mut nonce).ok()?;
        let mut text = plain.to_vec();
        key.seal_in_place_append_tag(
            Nonce::assume_unique_for_key(nonce),
            Aad::from(name),
            &mut text,
        )
        .ok()?;
        Some([&name[..], &nonce, &text].concat())
    }

    fn decrypt_at(&self, ticket: &[u8], now: SystemTime) -> Option<Vec<u8>> {
        let (name, rest) = ticket.split_first_chunk::<KEY_NAME_LENGTH>()?;
        let (nonce, text) = rest.split_first_chunk::<NONCE_LEN>()?;
        let keys = self.keys_at(now);
        // The name is public, so comparing it may take any time.
        let key = keys.keys.iter().find(|key| key.name == *name)?;
        let mut text = text.to_vec();
        let nonce = Nonce::assume_unique_for_key(*nonce);
        let plain = key.key.open_in_place(nonce, Aad::from(name), &mut text);
        let length = plain.ok()?.len();
        text.truncate(length);
        Some(text)
    }
}

impl ProducesTickets for SharedTickets {
    fn enabled(&self) -> bool {
        true
    }

    fn lifetime(&self) -> u32 {
        // A ticket made at the end of a period is of use for one period more.
        PERIOD.as_secs().try_into().unwrap_or(u32::MAX)
    }

    fn encrypt(&self, plain: &[u8]) -> Option<Vec<u8>> {
        self.encrypt_at(plain, base_clock::wall())
    }

    fn decrypt(&self, cipher: &[u8]) -> Option<Vec<u8>> {
        self.decrypt_at(cipher, base_clock::wall())
    }
}

impl fmt::Debug for SharedTickets {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("SharedTickets")
    }
}

fn period_at(now: SystemTime) -> u64 {
    let since = now.duration_since(UNIX_EPOCH).unwrap_or_default();
    since.as_secs() / PERIOD.as_secs()
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, SystemTime, UNIX_EPOCH};

    use super::{PERIOD, SharedTickets, TicketSecret};

    fn tickets(secret: u8) -> SharedTickets {
        SharedTickets::new(TicketSecret::shared(&[secret; 32]).unwrap(), Vec::new())
    }

    /// A moment `offset` after the start of some period.
    fn moment(periods: u32, offset: Duration) -> SystemTime {
        UNIX_EPOCH + PERIOD * (40_000 + periods) + offset
    }

    #[test]
    fn nodes_with_one_secret_read_each_others_tickets() {
        let now = moment(0, Duration::ZERO);
        let ticket = tickets(1).encrypt_at(b"session", now).unwrap();
        assert_eq!(tickets(1).decrypt_at(&ticket, now).unwrap(), b"session");
        assert_eq!(tickets(2).decrypt_at(&ticket, now), None);
        let secret = TicketSecret::shared(&[1; 32]).unwrap();
        let stricter = SharedTickets::new(secret, b"client certificates".to_vec());
        assert_eq!(stricter.decrypt_at(&ticket, now), None);
    }

    #[test]
    fn a_ticket_lives_until_the_end_of_the_next_period() {
        let (one, other) = (tickets(1), tickets(1));
        let last_second = PERIOD - Duration::from_secs(1);
        let ticket = one.encrypt_at(b"session", moment(1, last_second)).unwrap();
        let read = |at| other.decrypt_at(&ticket, at).is_some();
        assert!(read(moment(1, last_second)) && read(moment(2, last_second)));
        assert!(!read(moment(3, Duration::ZERO)), "the key is gone");
        assert!(read(moment(0, last_second)), "this node's clock is behind");
    }

    #[test]
    fn a_changed_ticket_is_refused() {
        let now = moment(0, Duration::ZERO);
        let tickets = tickets(1);
        let ticket = tickets.encrypt_at(b"session", now).unwrap();
        for at in 0..ticket.len() {
            let mut changed = ticket.clone();
            changed[at] ^= 1;
            assert_eq!(tickets.decrypt_at(&changed, now), None, "octet {at}");
            assert_eq!(tickets.decrypt_at(&ticket[..at], now), None);
        }
    }

    #[test]
    fn a_short_secret_is_refused() {
        assert!(TicketSecret::shared(&[7; 31]).is_err());
        assert!(TicketSecret::random().is_ok());
    }
}
