//! `millpond unit`: units that systemd accepts, with no more rights than the site needs.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::support::{fail, new_site, run, text, write};

/// Prints the unit of the site.
fn unit(site: &Path, args: &[&str]) -> String {
    let output = run(site, &[&["unit", ".", "--user", "daemon"], args].concat());
    assert!(output.status.success(), "{}", text(&output.stderr));
    text(&output.stdout)
}

/// Values of a setting, in order.
fn values<'a>(unit: &'a str, key: &str) -> Vec<&'a str> {
    let lines = unit.lines();
    lines
        .filter_map(|line| line.strip_prefix(key)?.strip_prefix('='))
        .collect()
}

#[test]
fn a_unit_gives_a_site_what_it_needs_and_no_more() {
    let site = new_site();
    let folder = site.path().canonicalize().unwrap();
    let folder = folder.to_str().unwrap();
    let plain = unit(site.path(), &[]);
    assert_eq!(values(&plain, "ReadWritePaths"), [folder]);
    assert_eq!(values(&plain, "CapabilityBoundingSet"), [""]);
    assert_eq!(values(&plain, "PrivateUsers"), ["yes"]);
    assert_eq!(values(&plain, "LimitNOFILE"), ["65536"]);
    assert_eq!(values(&plain, "User"), ["daemon"]);
    assert!(values(&plain, "ExecStart")[0].ends_with(&format!("millpond serve {folder}")));

    let elsewhere = lab_testkit::fast_dir();
    let data = elsewhere.path().canonicalize().unwrap();
    let settings = format!(
        "server.listen = \"0.0.0.0:80\"\ndatabase.url = \"sqlite:{}/a.db\"\nlog.access = \"log/access.log\"\n\
         limits.connections = 100000\nlimits.drain_timeout = \"1min\"\n",
        data.display()
    );
    write(site.path(), "millpond.toml", &settings);
    fs::create_dir(site.path().join("log")).unwrap();
    let wide = unit(site.path(), &[]);
    let mut paths = vec![folder, data.to_str().unwrap()];
    paths.sort_unstable();
    assert_eq!(values(&wide, "ReadWritePaths"), paths);
    assert_eq!(
        values(&wide, "CapabilityBoundingSet"),
        ["CAP_NET_BIND_SERVICE"]
    );
    assert_eq!(
        values(&wide, "AmbientCapabilities"),
        ["CAP_NET_BIND_SERVICE"]
    );
    assert_eq!(values(&wide, "PrivateUsers"), ["no"]);
    assert_eq!(values(&wide, "LimitNOFILE"), ["131072"]);
    assert_eq!(values(&wide, "TimeoutStopSec"), ["80"]);
}

#[test]
fn a_socket_unit_has_the_addresses_of_the_server() {
    let site = new_site();
    assert_eq!(
        values(&unit(site.path(), &["--socket"]), "ListenStream"),
        ["127.0.0.1:8080"]
    );
    let https = unit(site.path(), &["--socket", "--domain", "example.org"]);
    assert_eq!(values(&https, "ListenStream"), ["443", "80"]);
    let service = unit(
        site.path(),
        &["--domain", "example.org", "--domain", "www.example.org"],
    );
    assert!(
        values(&service, "ExecStart")[0]
            .ends_with(" --domain example.org --domain www.example.org")
    );
    assert_eq!(
        values(&service, "CapabilityBoundingSet"),
        ["CAP_NET_BIND_SERVICE"]
    );
}

#[test]
fn names_that_would_mean_something_else_are_refused() {
    let site = new_site();
    let odd = site.path().join("a site");
    fs::create_dir(&odd).unwrap();
    write(&odd, "millpond.toml", "");
    let (status, said) = fail(&odd, &["unit"]);
    assert!(status == 1 && said.contains("letters, digits"), "{said}");
    let (status, said) = fail(site.path(), &["unit", "--user", "me\nExecStart=x"]);
    assert!(status == 1 && said.contains("the user"), "{said}");
    let (status, said) = fail(site.path(), &["unit", "--domain", "no name"]);
    assert!(status == 1 && said.contains("--domain"), "{said}");
}

#[test]
fn systemd_accepts_the_units_and_finds_little_exposed() {
    let version = Command::new("systemd-analyze").arg("--version").output();
    if version.is_err() {
        eprintln!("left out: there is no systemd-analyze");
        return;
    }
    let site = new_site();
    let units = tempfile::tempdir().unwrap();
    for (args, most) in [(&[][..], "13"), (&["--domain", "example.org"], "17")] {
        for (ending, more) in [("service", None), ("socket", Some("--socket"))] {
            let args: Vec<&str> = args.iter().copied().chain(more).collect();
            write(
                units.path(),
                &format!("site.{ending}"),
                &unit(site.path(), &args),
            );
        }
        let (service, socket) = (
            units.path().join("site.service"),
            units.path().join("site.socket"),
        );
        let analyze = |args: &[&str]| {
            let output = Command::new("systemd-analyze").args(args).output().unwrap();
            let said = text(&output.stdout) + &text(&output.stderr);
            assert!(output.status.success(), "{said}");
            said
        };
        let said = analyze(&[
            "verify",
            service.to_str().unwrap(),
            socket.to_str().unwrap(),
        ]);
        assert!(!said.contains("site."), "{said}");
        // Tenths of a point, of a hundred.
        let threshold = format!("--threshold={most}");
        analyze(&[
            "security",
            "--offline=true",
            &threshold,
            service.to_str().unwrap(),
        ]);
    }
}
