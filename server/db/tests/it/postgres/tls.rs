//! TLS and passwords.

use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, chown};

use lab_pgtest::{Options, Postgres};
use millpond_db::{Database, Error, Value};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use tempfile::TempDir;

use super::{options, prepare, try_read};

/// A server that takes only TLS and a password, and the certificate of who signed for it as `name`.
fn server(name: &str) -> (Postgres, TempDir) {
    let mut ca = CertificateParams::new(Vec::new()).unwrap();
    ca.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let ca = CertifiedIssuer::self_signed(ca, KeyPair::generate().unwrap()).unwrap();
    let key = KeyPair::generate().unwrap();
    let certificate = CertificateParams::new(vec![name.to_owned()]).unwrap();
    let certificate = certificate.signed_by(&key, &ca).unwrap();
    let roots = tempfile::tempdir().unwrap();
    fs::write(roots.path().join("ca.pem"), ca.pem()).unwrap();

    let mut server = Options::new().start().unwrap();
    let mut client = postgres::Client::connect(&server.url(), postgres::NoTls).unwrap();
    client
        .batch_execute("create role u login password 'secret'")
        .unwrap();
    drop(client);
    server.stop();
    let data = server.data_folder();
    let owner = fs::metadata(&data).unwrap();
    for (file, content) in [
        ("server.crt", certificate.pem()),
        ("server.key", key.serialize_pem()),
    ] {
        let path = data.join(file);
        fs::write(&path, content).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        chown(&path, Some(owner.uid()), Some(owner.gid())).unwrap();
    }
    let settings = data.join("postgresql.conf");
    let usual = fs::read_to_string(&settings).unwrap();
    fs::write(&settings, format!("{usual}\nssl = on\n")).unwrap();
    // The superuser stays as it is: by it the test's server is known to be ready.
    let access = "host all postgres 127.0.0.1/32 trust\nhostssl all u 127.0.0.1/32 scram-sha-256\n";
    fs::write(data.join("pg_hba.conf"), access).unwrap();
    server.restart().unwrap();
    (server, roots)
}

fn encrypted(url: String) -> Result<Value, Error> {
    let database = Database::connect(options(url))?;
    let query = prepare(
        &database,
        "select ssl from pg_stat_ssl where pid = pg_backend_pid()",
    );
    let read = try_read(&database, &query, vec![]);
    database.stop();
    Ok(read?.results[0].rows[0][0].clone())
}

fn unavailable(url: String) -> String {
    match encrypted(url) {
        Err(Error::Unavailable { message } | Error::Login { message }) => {
            assert!(!message.contains("secret"), "{message}");
            message
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn each_sslmode_asks_what_it_says() {
    let (server, roots) = server("localhost");
    let foreign = tempfile::tempdir().unwrap();
    let stranger = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
    fs::write(foreign.path().join("ca.pem"), stranger.cert.pem()).unwrap();
    let url = |host: &str, mode: &str, roots: Option<&TempDir>| {
        let port = server.port();
        let roots = roots.map_or_else(String::new, |roots| {
            format!("&sslrootcert={}", roots.path().join("ca.pem").display())
        });
        format!("postgres://u:secret@{host}:{port}/postgres?sslmode={mode}{roots}")
    };
    let yes = Value::Boolean(true);
    assert_eq!(encrypted(url("127.0.0.1", "prefer", None)).unwrap(), yes);
    assert_eq!(encrypted(url("127.0.0.1", "require", None)).unwrap(), yes);
    assert_eq!(
        encrypted(url("localhost", "verify-full", Some(&roots))).unwrap(),
        yes
    );
    assert_eq!(
        encrypted(url("127.0.0.1", "verify-ca", Some(&roots))).unwrap(),
        yes
    );
    // The name is another.
    unavailable(url("127.0.0.1", "verify-full", Some(&roots)));
    // No trusted authority has signed it.
    unavailable(url("localhost", "verify-full", Some(&foreign)));
    unavailable(url("localhost", "verify-ca", Some(&foreign)));
    // The server takes no connection without TLS, and no other password.
    unavailable(url("127.0.0.1", "disable", None));
    unavailable(url("127.0.0.1", "require", None).replace("secret", "wrong"));
}

#[test]
fn a_server_without_tls_is_refused_where_it_is_required() {
    let url = super::server().url();
    assert_eq!(
        encrypted(format!("{url}?sslmode=prefer")).unwrap(),
        Value::Boolean(false)
    );
    unavailable(format!("{url}?sslmode=require"));
    match encrypted(format!(
        "{url}?sslmode=verify-full&sslrootcert=/nowhere.pem"
    )) {
        Err(Error::Usage { message }) => assert!(message.contains("/nowhere.pem"), "{message}"),
        other => panic!("{other:?}"),
    }
}
