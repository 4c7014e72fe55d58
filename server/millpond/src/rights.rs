//! The rights of a server: its user, and the files that it may use.

use std::env;
use std::fs::{self, DirBuilder};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use millpond_process::Inherited;
use millpond_process::privileges::{User, give_up_new_ones, is_root};
use millpond_process::sandbox::{self, Reach};
use millpond_site::{Config, DatabaseUrl, Problem};

use crate::failure::{CommandFailure, CommandResult};
use crate::output::note;

/// Files that every process reads.
const COMMON: [&str; 8] = [
    "/dev/null",
    "/dev/urandom",
    // The local time of SQLite.
    "/etc/localtime",
    "/usr/share/zoneinfo",
    "/proc/self",
    // The time that the machine's cores were busy.
    "/proc/stat",
    "/proc/sys/net/core",
    "/sys/fs/cgroup",
];
/// Folders for files without a name: of bodies, of copies, and of SQLite.
const TEMPORARY: [&str; 3] = ["/var/tmp", "/usr/tmp", "/tmp"];
/// Files that it takes to look up a name and to check a certificate. The files in `/etc` are often
/// replaced by a program of the system, so the folder is named.
const NAMES: [&str; 9] = [
    "/etc",
    "/var/lib/ca-certificates",
    "/run/systemd/resolve",
    "/lib",
    "/lib64",
    "/usr/lib",
    "/usr/lib64",
    "/usr/share",
    "/nix/store",
];

/// Often a link to a folder of the program that writes it.
const RESOLVER: &str = "/etc/resolv.conf";

/// Becomes the user of the configuration, or of the site's folder, if root has started the process.
pub(crate) fn become_user(dir: &Path, config: &Config) -> CommandResult {
    let refused = |error| CommandFailure::new(format!("cannot give up rights: {error}"));
    give_up_new_ones().map_err(refused)?;
    if !is_root() {
        return Ok(());
    }
    let user = match &config.user {
        Some(user) => User::find(user).map_err(|message| {
            CommandFailure::new(format!("server.user: {message}"))
                .hint("name a user of this machine, or `root` to stay root")
        })?,
        None => User::owner(dir).map_err(|error| {
            CommandFailure::new(format!(
                "cannot find the owner of {}: {error}",
                dir.display()
            ))
        })?,
    };
    if !user.is_root() {
        user.assume().map_err(refused)?;
        note(format_args!(
            "note: the server has become the user {}",
            user.name
        ));
    } else if config.user.is_none() {
        note(
            "note: the server stays root, because root owns the site's folder; another owner (chown -R), or \
             server.user, makes a fault of it less dangerous",
        );
    }
    Ok(())
}

/// Keeps the sandbox of a server whose place this process takes: code that is in there may have
/// written the settings.
pub(crate) fn keep_sandbox(config: &mut Config, inherited: &Inherited) {
    if inherited.is_confined() && !config.sandbox {
        config.sandbox = true;
        note(
            "note: server.sandbox = false counts from the next restart on; a process that takes the place of one in the \
             sandbox is in it too",
        );
    }
}

/// Confines the process to what the configuration needs and the folder of `reports`, unless it says
/// otherwise.
pub(crate) fn confine(
    dir: &Path,
    config: &Config,
    reports: Option<&Path>,
    is_dev: bool,
) -> CommandResult {
    if !config.sandbox {
        return Ok(());
    }
    let mut reach = reach(dir, config, is_dev)?;
    reach.write.extend(reports.map(Path::to_owned));
    let missing = sandbox::enter(&reach).map_err(|error| {
        CommandFailure::new(format!("cannot enter the sandbox: {error}"))
            .hint("server.sandbox = false serves without it")
    })?;
    if !missing.is_empty() {
        note(format_args!(
            "note: this kernel has no {}, so the server is confined by the rest alone",
            missing.join(" and no ")
        ));
    }
    Ok(())
}

/// The files that the server of the site in `dir` may use.
fn reach(dir: &Path, config: &Config, is_dev: bool) -> Result<Reach, Problem> {
    let mut reach = Reach::default();
    add_paths(&mut reach.read, COMMON);
    add_paths(&mut reach.write, TEMPORARY);
    for name in ["TMPDIR", "SQLITE_TMPDIR"] {
        reach.write.extend(env::var_os(name).map(PathBuf::from));
    }
    if is_dev {
        // The key that lets the developer in.
        let home = env::var_os("HOME").map(|home| Path::new(&home).join(".local/state"));
        let state = env::var_os("XDG_STATE_HOME").map(PathBuf::from).or(home);
        reach
            .write
            .extend(state.into_iter().inspect(|path| make(path)));
    }
    add_site(&mut reach, dir, config);
    if let Some(history) = config.admin.and_then(|_| config.history(dir)) {
        // SQLite keeps files of its own beside it.
        add_folders(&mut reach.write, &history);
    }
    if config.otlp.is_some() {
        add_names(&mut reach);
    }
    for host in &config.hosts {
        add_site(&mut reach, &host.site, &host.read()?);
    }
    Ok(reach)
}

/// Adds what one site needs.
fn add_site(reach: &mut Reach, dir: &Path, config: &Config) {
    reach.write.push(dir.to_owned());
    // What the owner keeps elsewhere, as `uploads` on another disk.
    let entries = fs::read_dir(dir).into_iter().flatten().flatten();
    let links = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_symlink()));
    reach.write.extend(links.map(|link| link.path()));
    if config.statics.follow_links {
        reach.read.push("/".into());
    }
    reach
        .read
        .extend(config.data.iter().map(|data| data.folder.clone()));
    let list = config.warm_list(dir);
    for written in config.access_log.iter().chain(&list) {
        add_folders(&mut reach.write, written);
    }
    match &config.database {
        // SQLite keeps files of its own beside it.
        DatabaseUrl::Sqlite(file) => add_folders(&mut reach.write, file),
        DatabaseUrl::Postgres(url) => {
            add_paths(&mut reach.read, NAMES);
            add_folders(&mut reach.read, Path::new(RESOLVER));
            let (_, query) = url.reveal().split_once('?').unwrap_or_default();
            let options = form_urlencoded::parse(query.as_bytes());
            for (_, file) in options.filter(|(name, _)| name == "sslrootcert") {
                add_folders(&mut reach.read, Path::new(&*file));
            }
        }
    }
    let tls = &config.tls;
    let posts = config.alerts.iter().any(|rule| rule.webhook.is_some());
    if !tls.domains.is_empty() || posts {
        add_names(reach);
    }
    // Without it certificates are in the site's folder, or in the database.
    if let Some(storage) = &tls.storage {
        make(storage);
        reach.write.push(storage.clone());
    }
    let files = config
        .certificate_files()
        .into_iter()
        .flat_map(<[_; 2]>::from);
    let files = files.chain(tls.client_authorities.clone());
    for file in files.chain(tls.acme_trust.clone()) {
        add_folders(&mut reach.read, &file);
    }
}

/// Adds what it takes to ask another server by its name.
fn add_names(reach: &mut Reach) {
    add_paths(&mut reach.read, NAMES);
    add_folders(&mut reach.read, Path::new(RESOLVER));
    for name in ["SSL_CERT_FILE", "SSL_CERT_DIR"] {
        reach.read.extend(env::var_os(name).map(PathBuf::from));
    }
}

/// Adds the folder of a file, and that of the file to which it leads: it may be replaced in both.
fn add_folders(to: &mut Vec<PathBuf>, file: &Path) {
    let leads_to = file.canonicalize().ok();
    let folders = [Some(file), leads_to.as_deref()];
    let folders = folders.into_iter().flatten().filter_map(Path::parent);
    to.extend(folders.map(Path::to_owned));
}

fn add_paths<const N: usize>(to: &mut Vec<PathBuf>, paths: [&str; N]) {
    to.extend(paths.map(PathBuf::from));
}

/// Makes a folder for secrets where it is missing. If that fails, who needs it says so.
fn make(folder: &Path) {
    let _ = DirBuilder::new().recursive(true).mode(0o700).create(folder);
}
