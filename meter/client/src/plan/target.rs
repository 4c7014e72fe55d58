//! The server of a run, and how connections reach it.

use std::path::PathBuf;

use crate::transport::{Bandwidth, Trust};
use crate::url::{self, Url};
use crate::{Error, limits};

/// Target of the connections, and their protocol.
#[derive(Clone, Debug)]
pub struct TargetPlan {
    /// The server and, unless the requests name other URLs, what is requested:
    /// `http://host[:port][/path]`.
    pub url: String,
    /// Connections go through this Unix socket. The request still names the host of the URL.
    pub unix_socket: Option<PathBuf>,
    /// Connections go to these `HOST:PORT` in turn, each new connection to the next one; if there
    /// are none, to the host of the URL. The request and TLS name the host of the URL in any case.
    pub connect_to: Vec<String>,
    /// New connections go in turn to every address of a name that has several, as the visitors of a
    /// round-robin name do. Otherwise all go to the first address that accepts.
    pub round_robin: bool,
    /// Certificates that an `https://` server may have.
    pub trust: Trust,
    /// No TLS session is resumed: each connection makes a full handshake.
    pub full_handshakes: bool,
    /// HTTP/2 instead of HTTP/1.1: over TLS by ALPN, in clear text with prior knowledge. The depth
    /// of the load is then the number of streams on one connection; the server may allow fewer.
    pub http2: bool,
    /// The most that a connection receives. What the kernel or TLS adds counts as well, handshakes
    /// do not.
    pub throttle_down: Option<Bandwidth>,
    /// The most that a connection sends.
    pub throttle_up: Option<Bandwidth>,
}

impl TargetPlan {
    /// HTTP/1.1 to the server of `url` at full speed.
    pub fn new(url: impl Into<String>) -> Self {
        Self {
            url: url.into(),
            unix_socket: None,
            connect_to: Vec::new(),
            round_robin: false,
            trust: Trust::System,
            full_handshakes: false,
            http2: false,
            throttle_down: None,
            throttle_up: None,
        }
    }

    /// The URL, after a check of this part.
    pub(super) fn check(&self) -> Result<Url, Error> {
        let refuse = |sentence: &str| Err(Error::Plan(sentence.to_owned()));
        let url = Url::parse(&self.url)?;
        if self.http2 && (self.throttle_down.is_some() || self.throttle_up.is_some()) {
            return refuse("bandwidth is limited for HTTP/1.1 only: HTTP/2 has windows of its own");
        }
        if self.unix_socket.is_some() && (self.round_robin || !self.connect_to.is_empty()) {
            return refuse("connections go through a Unix socket or to another address, not both");
        }
        for other in &self.connect_to {
            url::host_and_port(other)?;
        }
        if self.trust != Trust::System && !url.secure {
            return refuse("which certificates are accepted only matters for an https:// URL");
        }
        if self.full_handshakes && !url.secure {
            return refuse("handshakes are made for an https:// URL only");
        }
        Ok(url)
    }

    /// True if the server is on this machine, judged by its name alone.
    pub(crate) fn is_local(&self) -> bool {
        if self.unix_socket.is_some() {
            return true;
        }
        if self.connect_to.is_empty() {
            return Url::parse(&self.url).is_ok_and(|url| limits::is_local(&url.host));
        }
        let mut places = self
            .connect_to
            .iter()
            .map(|other| url::host_and_port(other));
        places.all(|place| place.is_ok_and(|(host, _)| limits::is_local(&host)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn changed(url: &str, change: impl FnOnce(&mut TargetPlan)) -> TargetPlan {
        let mut target = TargetPlan::new(url);
        change(&mut target);
        target
    }

    #[test]
    fn a_server_that_cannot_be_reached_as_asked_is_refused() {
        assert!(TargetPlan::new("http://h/").check().is_ok());
        let changes: [fn(&mut TargetPlan); 7] = [
            |target| target.url = "ftp://h/".into(),
            |target| target.trust = Trust::Anyone,
            |target| target.full_handshakes = true,
            |target| {
                target.http2 = true;
                target.throttle_up = Some("1K".parse().unwrap());
            },
            |target| target.connect_to = vec!["h:1".into(), "nowhere".into()],
            |target| {
                target.connect_to = vec!["h:1".into()];
                target.unix_socket = Some("/s".into());
            },
            |target| {
                target.round_robin = true;
                target.unix_socket = Some("/s".into());
            },
        ];
        for change in changes {
            let bad = changed("http://h/", change);
            assert!(bad.check().is_err(), "{bad:?}");
        }
    }

    #[test]
    fn the_name_of_a_server_says_whether_it_is_on_this_machine() {
        let away = "http://192.0.2.7/";
        assert!(!TargetPlan::new(away).is_local());
        assert!(TargetPlan::new("http://localhost/").is_local());
        assert!(changed(away, |target| target.unix_socket = Some("/s".into())).is_local());
        let near = || "127.0.0.1:1".to_owned();
        assert!(changed(away, |target| target.connect_to = vec![near()]).is_local());
        let both = vec![near(), "192.0.2.7:1".into()];
        assert!(!changed(away, |target| target.connect_to = both).is_local());
    }
}
