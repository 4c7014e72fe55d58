//! `millpond unit`: the service of a site for systemd, and its sockets.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::Duration;
use std::{env, fs};

use clap::Args;
use millpond_http::BACKLOG;
use millpond_site::{Config, DatabaseUrl};

use super::database_option::DatabaseOption;
use crate::failure::{CommandFailure, CommandResult};
use crate::output::write_out;

/// Print a systemd unit that serves a site and may do nothing else
#[derive(Args)]
pub(crate) struct UnitArgs {
    /// The site's folder
    #[arg(default_value = ".")]
    site: PathBuf,
    /// The user that serves; the default is the name of the folder
    #[arg(long, value_name = "NAME")]
    user: Option<String>,
    /// Serve this name by https, as `millpond serve --domain`; may be repeated
    #[arg(long, value_name = "NAME")]
    domain: Vec<String>,
    /// Print the socket unit instead: systemd opens the ports, and no connection is refused while
    /// the service restarts
    #[arg(long)]
    socket: bool,
    #[command(flatten)]
    database: DatabaseOption,
}

/// Ports below need a privilege.
const FIRST_FREE_PORT: u16 = 1024;
/// Descriptors beside those of connections: files, databases, workers.
const DESCRIPTORS: usize = 4096;
/// Descriptors that every unit may have.
const LEAST_DESCRIPTORS: usize = 65_536;
/// Time beyond the drain for closing the site and its database.
const CLOSING: Duration = Duration::from_secs(20);
/// Folders that `ProtectHome=` hides.
const HOMES: [&str; 3] = ["/home", "/root", "/run/user"];
/// The folder of systemd's state folders.
const STATE: &str = "/var/lib";

impl UnitArgs {
    pub(crate) fn run(self) -> CommandResult {
        let mut config = self.database.read(&self.site)?;
        if !self.domain.is_empty() {
            let set = config.set_domains(&self.domain);
            set.map_err(|message| CommandFailure::new(format!("--domain {message}")))?;
        }
        let site = absolute(&self.site)?;
        let program = absolute(&env::current_exe().unwrap_or_else(|_| "millpond".into()))?;
        let name = site.rsplit('/').next().unwrap_or_default();
        let addresses = addresses(&config);
        let unit = match self.socket {
            true => socket(name, &site, &addresses),
            false => {
                let user = self.user.as_deref().unwrap_or(name);
                let unit = Unit {
                    name,
                    site: &site,
                    program: &program,
                    user: plain(user, "the user")?,
                    config: &config,
                };
                unit.service(&self.domain, &addresses)?
            }
        };
        write_out(unit.trim_end())
    }
}

/// The path from the root without links, in characters that mean themselves in a unit.
fn absolute(path: &Path) -> CommandResult<String> {
    let shown = path.display();
    let path = path
        .canonicalize()
        .map_err(|error| CommandFailure::new(format!("{shown}: {error}")))?;
    plain(&path.to_string_lossy(), "the path").map(str::to_owned)
}

fn plain<'a>(text: &'a str, what: &str) -> CommandResult<&'a str> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "/._-+@:".contains(c);
    match !text.is_empty() && text.chars().all(is_plain) {
        true => Ok(text),
        false => Err(CommandFailure::new(format!(
            "{what} {text:?} cannot stand in a unit as it is"
        ))
        .hint("use a name of letters, digits and . _ - + @ :")),
    }
}

/// The addresses that the server will listen on, as `ListenStream=` has them.
fn addresses(config: &Config) -> Vec<String> {
    let addresses = match config.has_tls() {
        // Of each list the first that the machine has; systemd finds that out by the bare port.
        true => config
            .https_addresses()
            .map(|all| all[0].to_string())
            .to_vec(),
        false => vec![config.listen.to_string()],
    };
    let addresses = addresses.iter().map(|address| {
        let address = address.strip_prefix("unix:").unwrap_or(address);
        address.strip_prefix("[::]:").unwrap_or(address).to_owned()
    });
    addresses.collect()
}

/// True if the port of the address is for root, or who has the capability.
fn needs_privilege(address: &str) -> bool {
    let port = address
        .rsplit(':')
        .next()
        .and_then(|port| port.parse::<u16>().ok());
    port.is_some_and(|port| port != 0 && port < FIRST_FREE_PORT)
}

fn socket(name: &str, site: &str, addresses: &[String]) -> String {
    let listen: String = addresses
        .iter()
        .map(|address| format!("ListenStream={address}\n"))
        .collect();
    format!(
        "# The sockets of {name}.service. To install them:\n\
         #   millpond unit {site} --socket > /etc/systemd/system/{name}.socket\n\
         #   systemctl daemon-reload && systemctl enable --now {name}.socket\n\
         [Unit]\nDescription=Sockets of {name}\n\n\
         [Socket]\n{listen}Backlog={BACKLOG}\n\n\
         [Install]\nWantedBy=sockets.target\n"
    )
}

/// Facts of a service.
struct Unit<'a> {
    name: &'a str,
    site: &'a str,
    program: &'a str,
    user: &'a str,
    config: &'a Config,
}

impl Unit<'_> {
    fn service(&self, domains: &[String], addresses: &[String]) -> CommandResult<String> {
        let Self {
            name,
            site,
            program,
            user,
            config,
        } = *self;
        let domains: String = domains
            .iter()
            .map(|domain| format!(" --domain {domain}"))
            .collect();
        let after = match config.database {
            DatabaseUrl::Postgres(_) => " postgresql.service",
            DatabaseUrl::Sqlite(_) => "",
        };
        let descriptors = (config.limits.connections + DESCRIPTORS).next_power_of_two();
        let descriptors = descriptors.max(LEAST_DESCRIPTORS);
        let stop = (config.drain_delay + config.limits.drain_timeout + CLOSING).as_secs();
        let (rights, users) = match addresses.iter().any(|address| needs_privilege(address)) {
            true => ("CAP_NET_BIND_SERVICE", "no"),
            false => ("", "yes"),
        };
        let folders = self.folders()?;
        let home = match [site, program]
            .iter()
            .any(|path| HOMES.iter().any(|home| path.starts_with(home)))
        {
            true => "read-only",
            false => "yes",
        };
        Ok(format!(
            "# Serves {site}. To install it:\n\
             #   useradd --system --home-dir {site} --shell /usr/sbin/nologin {user}\n\
             #   chown -R {user}: {site}\n\
             #   millpond unit {site}{domains} > /etc/systemd/system/{name}.service\n\
             #   systemctl daemon-reload && systemctl enable --now {name}\n\
             [Unit]\n\
             Description={name}, served by Millpond\n\
             Wants=network-online.target\n\
             After=network-online.target{after}\n\n\
             [Service]\n\
             Type=notify\n\
             # A server that takes the place of the running one (SIGUSR2) tells its own number.\n\
             NotifyAccess=all\n\
             User={user}\n\
             WorkingDirectory={site}\n\
             # Secrets, such as DATABASE_URL=postgres://...; only root need read the file.\n\
             EnvironmentFile=-/etc/{name}.env\n\
             ExecStart={program} serve {site}{domains}\n\
             ExecReload=/bin/kill -HUP $MAINPID\n\
             Restart=on-failure\n\
             RestartSec=2\n\
             # Migrations of a large database take their time.\n\
             TimeoutStartSec=10min\n\
             TimeoutStopSec={stop}\n\
             WatchdogSec=30\n\
             LimitNOFILE={descriptors}\n\
             UMask=0077\n\n\
             {folders}\
             ProtectSystem=strict\n\
             ProtectHome={home}\n\
             AmbientCapabilities={rights}\n\
             CapabilityBoundingSet={rights}\n\
             PrivateUsers={users}\n\
             {HARDENED}\n\
             [Install]\n\
             WantedBy=multi-user.target\n"
        ))
    }

    /// The lines for the folders that the server writes.
    fn folders(&self) -> CommandResult<String> {
        let mut folders = BTreeSet::new();
        written(Path::new(self.site), self.config, &mut folders);
        for host in &self.config.hosts {
            written(&host.site, &Config::read(&host.site)?, &mut folders);
        }
        let state = Path::new(self.site).strip_prefix(STATE).ok();
        let mut lines = String::new();
        if let Some(state) = state {
            // systemd makes it for the user and lets the service write there.
            lines += &format!(
                "StateDirectory={}\nStateDirectoryMode=0750\n",
                state.display()
            );
        }
        for folder in folders {
            let folder = absolute(&folder)?;
            let is_in_site = Path::new(&folder).starts_with(self.site);
            if !is_in_site || (folder == self.site && state.is_none()) {
                lines += &format!("ReadWritePaths={folder}\n");
            }
        }
        Ok(lines)
    }
}

/// Adds the folders that the server of a site writes, as far as they are there.
fn written(dir: &Path, config: &Config, folders: &mut BTreeSet<PathBuf>) {
    let files = [
        config.database.file().map(Path::to_owned),
        config.access_log.clone(),
        config.warm_list(dir),
        config.admin.and_then(|_| config.history(dir)),
    ];
    let parents = files.iter().flatten().filter_map(|file| file.parent());
    let parents = parents.map(Path::to_owned).collect::<Vec<_>>();
    let all = [dir.to_owned()]
        .into_iter()
        .chain(parents)
        .chain(config.tls.storage.clone());
    folders.extend(all.filter_map(|folder| fs::canonicalize(folder).ok()));
}

/// Rights that no site needs, also for the template unit of packages.
const HARDENED: &str = include_str!("../../../../packaging/hardened.conf");
