//! `[tls]`: the settings of https, and their texts.

use std::{
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
    path::{Path, PathBuf},
    time::Duration,
};

use millpond_http::ListenAddress;
use toml::de::DeValue;

use super::{Config, value::texts};
use crate::{Problem, problem::SETTINGS, suggest};

/// The port of https (RFC 9110 section 4.2.2), and that of http.
const HTTPS: u16 = 443;
const HTTP: u16 = 80;
/// The port for `localhost` alone, which needs no privilege.
const LOCAL_HTTPS: u16 = 8443;

/// The name that gets a certificate of the machine's own authority.
const LOCALHOST: &str = "localhost";

/// The settings of https as they stand in the file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TlsSettings {
    /// The address for https; `None`: see [`Config::https_addresses`] (`tls.listen`).
    pub listen: Option<SocketAddr>,
    /// Names that get certificates by ACME, or `localhost` (`tls.domains`).
    pub domains: Vec<String>,
    /// A PEM file with a chain of certificates (`tls.certificate`).
    pub certificate: Option<PathBuf>,
    /// The PEM file with its key (`tls.key`).
    pub key: Option<PathBuf>,
    /// The folder for certificates that the server got; `None`: the database, if that is of
    /// PostgreSQL, else [`TlsSettings::folder`] (`tls.storage`).
    pub storage: Option<PathBuf>,
    /// The URL of the authority's directory (`tls.acme_directory`).
    pub acme_directory: Option<String>,
    /// A PEM file with the root behind the directory's certificate (`tls.acme_trust`).
    pub acme_trust: Option<PathBuf>,
    /// Address to which the authority may write (`tls.acme_email`).
    pub acme_email: Option<String>,
    /// The kind of certificate (`tls.profile`).
    pub profile: Option<String>,
    /// A PEM file with the authorities of clients' certificates (`tls.client_authorities`).
    pub client_authorities: Option<PathBuf>,
    /// How long browsers use https only; zero: they are not told (`tls.hsts`).
    pub hsts: Duration,
}

impl TlsSettings {
    /// The folder for certificates of the site in `dir`.
    #[must_use]
    pub fn folder(&self, dir: &Path) -> PathBuf {
        self.storage.clone().unwrap_or_else(|| dir.join("tls"))
    }

    /// The names that an authority of the web is asked for.
    pub fn public_domains(&self) -> impl Iterator<Item = &str> {
        let domains = self.domains.iter().map(String::as_str);
        domains.filter(|domain| *domain != LOCALHOST)
    }

    /// True if `localhost` is among the names.
    #[must_use]
    pub fn has_localhost(&self) -> bool {
        self.domains.iter().any(|domain| domain == LOCALHOST)
    }

    /// True if `localhost` is all that https is for.
    fn is_local(&self) -> bool {
        let is_public = self.certificate.is_some() || self.public_domains().next().is_some();
        self.has_localhost() && !is_public
    }
}

impl Config {
    /// True if the site is served by https.
    #[must_use]
    pub fn has_tls(&self) -> bool {
        !self.tls.domains.is_empty() || !self.certificate_files().is_empty()
    }

    /// The certificates in files, each with its key: of `[tls]` first, then those of `[[host]]`.
    #[must_use]
    pub fn certificate_files(&self) -> Vec<(PathBuf, PathBuf)> {
        let own = self.tls.certificate.clone().zip(self.tls.key.clone());
        let hosts = self.hosts.iter();
        let hosts = hosts.filter_map(|host| host.certificate.clone());
        own.into_iter().chain(hosts).collect()
    }

    /// The addresses for https, and those for http that redirects to it. Of each list the first
    /// that the machine has is to be used: where there is no IPv6, it is that of IPv4.
    #[must_use]
    pub fn https_addresses(&self) -> [Vec<ListenAddress>; 2] {
        let everywhere = |port| {
            let v6 = IpAddr::from(Ipv6Addr::UNSPECIFIED);
            [v6, Ipv4Addr::UNSPECIFIED.into()]
                .map(|address| SocketAddr::from((address, port)).into())
                .to_vec()
        };
        let secure = match self.tls.listen {
            Some(address) => vec![address.into()],
            None if self.tls.is_local() => {
                vec![SocketAddr::from((Ipv4Addr::LOCALHOST, LOCAL_HTTPS)).into()]
            }
            None => everywhere(HTTPS),
        };
        let plain = if self.is_listen_given() || self.tls.listen.is_some() || self.tls.is_local() {
            vec![self.listen.clone()]
        } else {
            everywhere(HTTP)
        };
        [secure, plain]
    }

    /// True if the address for http is not the default.
    #[must_use]
    pub fn is_listen_given(&self) -> bool {
        self.listen != Self::defaults(Path::new("/")).listen
    }

    /// Refuses settings of https while there is nothing to serve by https: the site would be served
    /// by http, and its visitors not be checked. To be called once the names of the command line
    /// are set.
    ///
    /// # Errors
    /// The first such setting, and the settings that are missing.
    pub fn check_tls(&self) -> Result<(), Problem> {
        if self.has_tls() {
            return Ok(());
        }
        let set = [
            ("client_authorities", self.tls.client_authorities.is_some()),
            ("listen", self.tls.listen.is_some()),
            ("hsts", !self.tls.hsts.is_zero()),
        ];
        match set.iter().find(|(_, is_set)| *is_set) {
            None => Ok(()),
            Some((name, _)) => Err(Problem::new(
                SETTINGS,
                format!(
                    "tls.{name} without tls.domains, and without tls.certificate and tls.key: the \
                     site would be served by http"
                ),
            )
            .hint(
                "add domains = [\"blog.example.org\"] or certificate and key to [tls], or start with \
                 `millpond serve --domain`",
            )),
        }
    }

    /// Serves `domains` by https in place of `tls.domains`.
    ///
    /// # Errors
    /// A sentence about the first text that is neither a host name nor an address.
    pub fn set_domains(&mut self, domains: &[String]) -> Result<(), String> {
        let domains = domains.iter().map(|text| domain(text));
        self.tls.domains = domains.collect::<Result<_, _>>()?;
        Ok(())
    }
}

/// Host names and addresses.
pub(super) fn domains(value: &DeValue<'_>) -> Result<Vec<String>, String> {
    let names = texts(value, "a list of names in quotes")?;
    names.into_iter().map(domain).collect()
}

/// A name that a certificate can be got for: a host without a port, or an address.
fn domain(text: &str) -> Result<String, String> {
    let name = text.to_ascii_lowercase();
    if name == LOCALHOST {
        return Ok(name);
    }
    let bare = name
        .strip_prefix('[')
        .and_then(|name| name.strip_suffix(']'));
    if let Ok(address) = bare.unwrap_or(&name).parse::<IpAddr>() {
        let canonical = address.to_canonical();
        return match canonical.is_loopback() || canonical.is_unspecified() {
            true => Err(only_here(text)),
            false => Ok(address.to_string()),
        };
    }
    if name.ends_with(".localhost") {
        return Err(only_here(text));
    }
    if !name.is_ascii() {
        return Err(format!(
            "`{text}`: write the name as DNS has it, with labels that begin with xn-- (RFC 5890); `idn2 {text}` prints it"
        ));
    }
    if name.starts_with("*.") {
        return Err(format!(
            "`{text}`: a certificate for all names below a domain needs a change of its DNS, which this server \
             does not make; list the names, or give the files with `certificate` and `key`"
        ));
    }
    let good = |c: char| c.is_ascii_alphanumeric() || c == '-';
    let is_label = |part: &str| (1..64).contains(&part.len()) && part.chars().all(good);
    if is_label(&name) {
        let advice = match suggest::closest(&name, [LOCALHOST]) {
            Some(near) => format!("did you mean `{near}`?"),
            None => "on this machine use `localhost`".to_owned(),
        };
        return Err(format!(
            "`{text}` has no dot, and no authority issues a certificate for such a name; {advice}"
        ));
    }
    if name.len() > 253 || !name.split('.').all(is_label) {
        return Err(format!(
            "`{text}` is no host name such as blog.example.org (without scheme, port and path), and no address"
        ));
    }
    Ok(name)
}

/// Describes a name that means this machine on every machine.
fn only_here(text: &str) -> String {
    format!(
        "`{text}` is of this machine only, so no authority issues a certificate for it; use `localhost`, whose \
         certificate is of an authority of this machine and also for 127.0.0.1 and ::1"
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::read::read;

    #[test]
    fn a_domain_is_a_name_or_an_address() {
        for (text, name) in [
            ("Blog.Example.org", Some("blog.example.org")),
            ("localhost", Some("localhost")),
            ("192.0.2.1", Some("192.0.2.1")),
            ("2001:db8::1", Some("2001:db8::1")),
            ("[2001:DB8::1]", Some("2001:db8::1")),
            ("xn--mnchen-3ya.example", Some("xn--mnchen-3ya.example")),
            ("*.example.org", None),
            ("https://example.org", None),
            ("example.org:443", None),
            ("example", None),
            ("a..b", None),
            ("", None),
        ] {
            assert_eq!(domain(text).ok().as_deref(), name, "{text}");
        }
    }

    #[test]
    fn a_name_without_an_authority_has_its_advice() {
        for (text, advice) in [
            ("127.0.0.1", "use `localhost`"),
            ("127.1.2.3", "use `localhost`"),
            ("[::1]", "use `localhost`"),
            ("::ffff:127.0.0.1", "use `localhost`"),
            ("0.0.0.0", "use `localhost`"),
            ("blog.localhost", "use `localhost`"),
            ("*.localhost", "use `localhost`"),
            ("localhots", "did you mean `localhost`?"),
            ("intranet", "has no dot"),
            ("münchen.example", "`idn2 münchen.example` prints it"),
        ] {
            let message = domain(text).unwrap_err();
            assert!(message.contains(advice), "{message}");
        }
    }

    fn config(text: &str) -> Config {
        read(text, Path::new("/site")).unwrap()
    }

    #[test]
    fn the_addresses_follow_from_the_names() {
        let shown = |text: &str| {
            let [secure, plain] = config(text).https_addresses();
            let all = secure.iter().chain(&plain).map(ListenAddress::to_string);
            all.collect::<Vec<_>>().join(" ")
        };
        assert_eq!(
            shown("[tls]\ndomains = [\"example.org\"]"),
            "[::]:443 0.0.0.0:443 [::]:80 0.0.0.0:80"
        );
        assert_eq!(
            shown("[tls]\ndomains = [\"localhost\"]"),
            "127.0.0.1:8443 127.0.0.1:8080"
        );
        let given = "[server]\nlisten = \"192.0.2.1:80\"\n[tls]\nlisten = \"192.0.2.1:443\"";
        assert_eq!(shown(given), "192.0.2.1:443 192.0.2.1:80");
    }

    #[test]
    fn settings_of_https_need_something_to_serve() {
        for (setting, name) in [
            ("client_authorities = \"ca.pem\"", "tls.client_authorities"),
            ("listen = \"192.0.2.1:443\"", "tls.listen"),
            ("hsts = \"1d\"", "tls.hsts"),
        ] {
            let problem = config(&format!("[tls]\n{setting}")).check_tls();
            let problem = problem.unwrap_err().to_string();
            assert!(
                problem.contains(&format!("{name} without tls.domains")),
                "{problem}"
            );
            let domains = "domains = [\"example.org\"]";
            config(&format!("[tls]\n{setting}\n{domains}"))
                .check_tls()
                .unwrap();
        }
        config("").check_tls().unwrap();
        config("[tls]\nacme_email = \"a@example.org\"")
            .check_tls()
            .unwrap();
    }

    #[test]
    fn a_certificate_needs_its_key() {
        let problem = read("[tls]\ncertificate = \"a.pem\"", Path::new("/site")).unwrap_err();
        assert!(problem.to_string().contains("without tls.key"), "{problem}");
        let both = config("[tls]\ncertificate = \"a.pem\"\nkey = \"/etc/a.key\"");
        assert!(both.has_tls() && !config("").has_tls());
        let files = both.certificate_files();
        assert_eq!(files, [("/site/a.pem".into(), "/etc/a.key".into())]);
    }
}
