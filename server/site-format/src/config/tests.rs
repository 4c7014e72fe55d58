//! Settings that are read, and settings that are refused.

use std::{path::Path, time::Duration};

use expect_test::{Expect, expect};
use millpond_db::FeedKind;
use millpond_http::{Limits, Network};

use super::{Config, KeptFile, keys, read, value};

fn parse(text: &str) -> Result<Config, String> {
    read::read(text, Path::new("/site")).map_err(|problem| problem.to_string())
}

fn refused(text: &str, expected: &Expect) {
    expected.assert_eq(&parse(text).expect_err("accepted"));
}

#[test]
fn an_empty_file_is_all_defaults() {
    let config = parse("").unwrap();
    assert_eq!(config.limits, Limits::default());
    assert_eq!(config.listen.to_string(), "127.0.0.1:8080");
    assert_eq!((config.workers, config.pool, config.cache), (0, 8, true));
    assert_eq!(
        (config.memory, config.max_staleness),
        (256_000_000, Duration::from_secs(1))
    );
    assert_eq!(config.database.file(), Some(Path::new("/site/site.db")));
    assert_eq!(config.publication, "millpond");
    assert_eq!(config.access_log, None);
    assert_eq!(config.refresh_ahead, 25);
    assert_eq!(config.warm_list, KeptFile::Beside);
}

#[test]
fn every_default_and_every_example_can_be_read() {
    let mut config = Config::defaults(Path::new("/site"));
    for key in &keys::KEYS {
        value::set_default(&mut config, key, Path::new("/site"))
            .unwrap_or_else(|error| panic!("{}: {error}", key.path));
        assert!(
            keys::SECTIONS
                .iter()
                .any(|(section, _)| *section == key.parts().0),
            "{}",
            key.path
        );
        let partner = match key.parts() {
            ("tls", "certificate") => "key = \"a.key\"",
            ("tls", "key") => "certificate = \"a.pem\"",
            _ => "",
        };
        parse(&format!("[{}]\n{}\n{partner}\n", key.parts().0, key.line()))
            .unwrap_or_else(|error| panic!("{error}"));
    }
}

#[test]
fn settings_are_read() {
    let config = parse(
        "[server]\nlisten = \"[::1]:0\"\nworkers = 2\n[database]\nurl = \"sqlite:///data/a.db\"\npool = 3\n\
         [cache]\nenabled = false\nmemory = \"64 KiB\"\nmax_staleness = \"10min\"\n[log]\naccess = \"-\"\n[limits]\nhead = 4096\ntarget = \"1KB\"\n"
            .replace("\"64 KiB\"", "\"2 MiB\"")
            .as_str(),
    )
    .unwrap();
    assert_eq!(config.listen.to_string(), "[::1]:0");
    assert_eq!(
        (config.workers, config.pool, config.cache, config.memory),
        (2, 3, false, 2 << 20)
    );
    assert_eq!(config.max_staleness, Duration::from_secs(600));
    assert_eq!(config.database.file(), Some(Path::new("/data/a.db")));
    assert_eq!(config.access_log.as_deref(), Some(Path::new("-")));
    assert_eq!((config.limits.head, config.limits.target), (4096, 1000));
    let before = parse("").unwrap();
    assert_eq!(config.differences(&before).len(), 10);
    assert_eq!(before.differences(&before), [""; 0]);
    let log = parse("log.access = \"logs/access.log\"").unwrap();
    assert_eq!(
        log.access_log.as_deref(),
        Some(Path::new("/site/logs/access.log"))
    );
    assert_eq!(log.differences(&before), ["log.access"]);
}

#[test]
fn how_long_and_how_many_may_wait_has_limits() {
    let config = parse("").unwrap();
    let five_s = Duration::from_secs(5);
    assert_eq!((config.queue, config.statement_timeout), (1_024, five_s));
    let config = parse("[database]\nqueue = 16\nstatement_timeout = \"30s\"\n").unwrap();
    let half_a_minute = Duration::from_secs(30);
    assert_eq!(
        (config.queue, config.statement_timeout),
        (16, half_a_minute)
    );
    for wrong in [
        "queue = 0",
        "queue = 65537",
        "queue = \"many\"",
        "statement_timeout = \"50ms\"",
        "statement_timeout = \"2h\"",
        "statement_timeout = 5",
    ] {
        let said = parse(&format!("[database]\n{wrong}\n")).unwrap_err();
        assert!(said.starts_with("millpond.toml:2:"), "{said}");
        assert!(said.contains("hint:"), "{said}");
    }
}

#[test]
fn a_feed_is_one_of_two() {
    assert_eq!(parse("").unwrap().feed, FeedKind::Logical);
    let config = parse("database.feed = \"triggers\"").unwrap();
    assert_eq!(config.feed, FeedKind::Triggers);
    let said = parse("database.feed = \"trigger\"").unwrap_err();
    assert!(
        said.contains("there are `logical` and `triggers`"),
        "{said}"
    );
}

#[test]
fn replicas_are_hosts_and_nothing_more() {
    let config = parse("database.replicas = [\"db2:5433\", \"db3\"]").unwrap();
    assert_eq!(config.replicas, ["db2:5433", "db3"]);
    for wrong in [
        "\"db2\"",
        "[\"postgres://u:secret@db2/site\"]",
        "[\"db2\", \"db2\"]",
    ] {
        let said = parse(&format!("database.replicas = {wrong}")).unwrap_err();
        assert!(said.contains("db2.example.com:5432"), "{said}");
    }
}

#[test]
fn networks_of_proxies_are_read() {
    let config =
        parse("[proxies]\nforwarded = [\"10.0.0.0/8\", \"::1\"]\nx_forwarded = []\n").unwrap();
    let proxies = config.limits.proxies;
    let networks = ["10.0.0.0/8", "::1"].map(|text| text.parse::<Network>().unwrap());
    assert_eq!(proxies.forwarded, networks);
    assert_eq!(
        (proxies.protocol, proxies.x_forwarded),
        (Vec::new(), Vec::new())
    );
    refused(
        "[proxies]\nprotocol = [\"10.0.0.1/8\"]\n",
        &expect![[r#"
            millpond.toml:2:12: proxies.protocol: `10.0.0.1/8` has bits behind its prefix; did you mean 10.0.0.0/8?
              hint: for example: protocol = ["10.0.0.2"]"#]],
    );
}

#[test]
fn a_misspelt_key_has_its_place_and_the_right_one() {
    refused(
        "[server]\n  lisen = \"127.0.0.1:80\"\n",
        &expect![[r#"
        millpond.toml:2:3: unknown key `lisen` in [server]
          hint: did you mean `listen`?"#]],
    );
    refused(
        "[cashe]\nmemory = \"1GB\"\n",
        &expect![[r#"
        millpond.toml:1:2: unknown section `cashe`
          hint: did you mean [cache]?"#]],
    );
    refused(
        "[metrics]\nlisten = \"127.0.0.1:9180\"\n",
        &expect![[r#"
            millpond.toml:1:2: unknown section `metrics`
              hint: there are [server], [tls], [database], [cache], [live], [site], [session], [static], [admin], [log], [proxies], [limits], [[redirect]], [[rewrite]], [[fields]], [[require]], [[alert]], [[data]] and [[host]]"#]],
    );
    refused(
        "listen = \"127.0.0.1:80\"\n",
        &expect![[r#"
        millpond.toml:1:1: unknown setting `listen`
          hint: it belongs under [server]"#]],
    );
    refused(
        "[server]\nmemory = \"1GB\"\n",
        &expect![[r#"
        millpond.toml:2:1: unknown key `memory` in [server]
          hint: it belongs under [cache]"#]],
    );
    refused(
        "[cache]\nzzz = 1\n",
        &expect![[r#"
        millpond.toml:2:1: unknown key `zzz` in [cache]
          hint: [cache] has `enabled`, `memory`, `max_staleness`, `stale_if_error`, `refresh_ahead` and `warm_list`"#]],
    );
    refused(
        "server = 1\n",
        &expect![[r#"
        millpond.toml:1:1: `server` is a section and not a setting
          hint: write [server] on a line of its own"#]],
    );
}

#[test]
fn the_first_mistake_in_the_file_is_reported() {
    refused(
        "[server]\nworkers = -1\n[cache]\nmemory = 1\n",
        &expect![[r#"
        millpond.toml:2:11: server.workers: a number below zero makes no sense here
          hint: for example: workers = 0"#]],
    );
}

#[test]
fn a_bad_value_is_shown_a_good_one() {
    for (line, said) in [
        ("server.listen = 8080", "text in quotes is expected"),
        (
            "server.listen = \"localhost:8080\"",
            "localhost is 127.0.0.1",
        ),
        ("server.listen = \":8080\"", "0.0.0.0 is every"),
        ("server.listen = \"8080\"", "did you mean 127.0.0.1:8080?"),
        ("server.listen = \"127.0.0.1\"", "no IP address with a port"),
        (
            "server.workers = 1025",
            "1025 is too much, the most is 1024",
        ),
        ("server.workers = 99999999999999999999999", "too large"),
        ("server.workers = 1.5", "a whole number is expected"),
        (
            "database.url = \"postgres://u:p@h:x/d\"",
            "URL is not right",
        ),
        ("database.url = \"mysql://h/d\"", "it serves SQLite"),
        ("database.url = \"site.db\"", "no URL"),
        ("database.url = \"sqlite:\"", "names no file"),
        ("database.url = \"sqlite::memory:\"", "it must be a file"),
        ("database.url = \"sqlite:a.db?mode=ro\"", "no options"),
        ("database.pool = 0", "the least is 1"),
        ("cache.enabled = \"yes\"", "true or false is expected"),
        ("cache.memory = \"1\"", "is no size"),
        ("cache.memory = \"MB\"", "is no size"),
        ("cache.memory = \"1TB\"", "is no size"),
        (
            "cache.memory = \"99999999999GB\"",
            "more than any machine has",
        ),
        ("cache.memory = \"1KB\"", "the least is 1MiB"),
        ("cache.max_staleness = 1", "has a unit"),
        (
            "cache.max_staleness = \"1 fortnight\"",
            "is no span of time",
        ),
        ("cache.max_staleness = \"0s\"", "the least is 50ms"),
        ("cache.max_staleness = 1979-05-27", "this is a date"),
        ("log.access = \"\"", "names no file"),
        ("limits.body = \"2GiB\"", "the most is 1GiB"),
        (
            "limits.target = \"128KiB\"",
            "more than limits.head (64KiB)",
        ),
        (
            "limits.head = \"1KiB\"",
            "limits.target (8KiB) is more than",
        ),
        ("server.listen = ", "not TOML"),
        ("server.workers = 1\nserver.workers = 2", "not TOML"),
    ] {
        let error = parse(line).expect_err(line);
        assert!(error.contains(said), "{line}: {error}");
        assert!(error.contains("\n  hint: "), "{line}: {error}");
        assert!(
            error.starts_with("millpond.toml:1:") || error.starts_with("millpond.toml:2:"),
            "{line}: {error}"
        );
    }
}

#[test]
fn what_is_no_site_says_so() {
    let dir = lab_testkit::fast_dir();
    let problem = Config::read(dir.path()).unwrap_err().to_string();
    assert!(
        problem.contains("not a site") && problem.contains("millpond new"),
        "{problem}"
    );
    let problem = Config::read(&dir.path().join("none"))
        .unwrap_err()
        .to_string();
    assert!(problem.contains("no such folder"), "{problem}");
    std::fs::write(dir.path().join(crate::problem::SETTINGS), b"# caf\xe9\n").unwrap();
    let problem = Config::read(dir.path()).unwrap_err().to_string();
    assert!(
        problem.contains("millpond.toml:1:6: the file is not UTF-8"),
        "{problem}"
    );
    let problem = Config::read(&dir.path().join(crate::problem::SETTINGS))
        .unwrap_err()
        .to_string();
    assert!(problem.contains("is a file"), "{problem}");
}

#[test]
fn paths_are_absolute_for_every_name_of_the_folder() {
    let dir = lab_testkit::fast_dir();
    std::fs::write(
        dir.path().join(crate::problem::SETTINGS),
        "log.access = \"a.log\"",
    )
    .unwrap();
    let config = Config::read(dir.path()).unwrap();
    let file = config.database.file().unwrap();
    assert!(file.is_absolute() && file.ends_with("site.db"));
    assert!(config.access_log.is_some_and(|log| log.is_absolute()));
}
