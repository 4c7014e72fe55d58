//! Transports: bytes that arrive on a socket to bytes of the protocol, and back. No socket here.

mod tls;

pub(crate) use tls::{Plaintext, RECORD, RECORD_OVERHEAD, Records, TlsError, TlsSession};
