//! Passwords and TLS.

use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, chown};

use super::*;

/// A server on which every role needs a password, which the superuser has too.
fn with_passwords(method: &str) -> Postgres {
    let server = server(Options::new().set("password_encryption", method));
    let mut client = connect(&server.url());
    client
        .batch_execute(
            "alter role postgres password 'it''s'; create publication millpond for all tables",
        )
        .unwrap();
    demand(&server, &mut client, &format!("host all all all {method}"));
    server
}

/// Another pg_hba.conf.
fn demand(server: &Postgres, client: &mut Client, line: &str) {
    std::fs::write(server.data_folder().join("pg_hba.conf"), line).unwrap();
    client.batch_execute("select pg_reload_conf()").unwrap();
}

#[test]
fn passwords_are_given_as_the_server_wants_them() {
    for method in ["scram-sha-256", "md5"] {
        let server = with_passwords(method);
        let url = |password: &str| {
            server
                .url()
                .replace("postgres@", &format!("postgres:{password}@"))
        };
        let right = Feed::start(settings(&url("it's"), "00000000000000aa"));
        right.sink.settle();
        let wrong = Feed::start(settings(&url("its"), "00000000000000ab"));
        let said = wrong.wait_for_failure("password authentication failed");
        assert!(!said.contains("its"), "{said}");
        let none = Feed::start(settings(&server.url(), "00000000000000ac"));
        none.wait_for_failure("database.url has none");
        let mut client = connect(&url("it's"));
        demand(&server, &mut client, "host all all all password");
        Feed::start(settings(&url("it's"), "00000000000000ad"))
            .sink
            .settle();
        // So that the server's own clients get in again.
        demand(&server, &mut client, "host all all all trust");
    }
}

/// Gives the server a certificate for 127.0.0.1; the configuration that trusts this certificate
/// only.
fn with_certificate(server: &Postgres) -> Arc<rustls::ClientConfig> {
    let made = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).unwrap();
    let folder = server.data_folder();
    let owner = std::fs::metadata(&folder).unwrap();
    for (name, text) in [
        ("server.crt", made.cert.pem()),
        ("server.key", made.signing_key.serialize_pem()),
    ] {
        let path = folder.join(name);
        std::fs::write(&path, text).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
        chown(&path, Some(owner.uid()), Some(owner.gid())).unwrap();
    }
    let mut roots = rustls::RootCertStore::empty();
    roots.add(made.cert.der().clone()).unwrap();
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    Arc::new(config)
}

#[test]
fn tls_is_as_sslmode_asks() {
    let server = server(Options::new());
    let mut client = connect(&server.url());
    client
        .batch_execute("create publication millpond for all tables")
        .unwrap();
    let with = |mode: &str, tls: &Arc<rustls::ClientConfig>| {
        let url = format!("{}?sslmode={mode}", server.url());
        Feed::start(FeedSettings {
            tls: Arc::clone(tls),
            ..settings(&url, "00000000000000aa")
        })
    };
    with("require", &no_trust()).wait_for_failure("offers no TLS");
    let trust = with_certificate(&server);
    client.batch_execute("alter system set ssl = on").unwrap();
    client.batch_execute("select pg_reload_conf()").unwrap();
    wait_until(&mut client, "current_setting('ssl') = 'on'");
    let ours = "exists (select from pg_stat_ssl s join pg_stat_activity a using (pid) \
        where a.application_name = 'millpond_feed' and a.backend_type = 'walsender' and s.ssl = ";
    for (mode, encrypted) in [("require", true), ("prefer", true), ("disable", false)] {
        let feed = with(mode, &trust);
        feed.sink.settle();
        wait_until(&mut client, &format!("{ours}{encrypted})"));
        // More than one record.
        let seen = feed.sink.len();
        client
            .batch_execute(
                "drop table if exists long; create table long (t text); insert into long select repeat(md5(random()::text), 10000)",
            )
            .unwrap();
        feed.sink.wait_for_epoch(seen, "");
        feed.sink.settle();
        feed.handle.stop();
        wait_until(&mut client, &format!("not {ours}{encrypted})"));
    }
    with("require", &no_trust()).wait_for_failure("TLS: invalid peer certificate");
}
