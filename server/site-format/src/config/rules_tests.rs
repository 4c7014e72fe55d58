//! Entries that are read, and entries that are refused.

use std::{path::Path, time::Duration};

use expect_test::{Expect, expect};

use super::{Config, HostName, manual, read, tables::TABLES};
use crate::rules::Scope;

fn parse(text: &str) -> Result<Config, String> {
    read::read(text, Path::new("/site")).map_err(|problem| problem.to_string())
}

fn refused(text: &str, expected: &Expect) {
    expected.assert_eq(&parse(text).expect_err("accepted"));
}

#[test]
fn every_example_can_be_read() {
    for table in TABLES {
        let example = manual::example(table);
        parse(example).unwrap_or_else(|error| panic!("{}: {error}", table.name));
        for (key, _) in table.keys {
            let known = example.contains(key) || manual::is_optional(table, key);
            assert!(known, "{}.{key}", table.name);
        }
    }
}

#[test]
fn entries_are_read_in_their_order() {
    let config = parse(
        "[[redirect]]\nfrom = \"/a\"\nto = \"/b\"\n\n[[redirect]]\nfrom = \"/c/*\"\nto = \"https://h/*\"\nstatus = 301\n\
         [[fields]]\npath = \"/*\"\nset = { B = \"1\", A = \"2\" }\n[static]\nlisting = [\"/x/*\", \"/y/\"]\nimmutable = true\n",
    )
    .unwrap();
    let redirects = &config.rules.redirects;
    let shown: Vec<_> = redirects
        .iter()
        .map(|rule| (rule.from.to_string(), rule.status, rule.place.line))
        .collect();
    assert_eq!(
        shown,
        [("/a".to_owned(), 308, 1), ("/c/*".to_owned(), 301, 5)]
    );
    let names: Vec<_> = config.rules.fields[0]
        .set
        .iter()
        .map(|(name, _)| &**name)
        .collect();
    assert_eq!(names, ["B", "A"]);
    assert!(config.files.lists("/y/") && config.files.lists("/x/z/") && !config.files.lists("/"));
    assert_eq!(config.files.immutable, Scope::Everywhere);
    assert_eq!(config.files.index, ["index.html"]);
    // None of it needs a restart.
    assert_eq!(config.differences(&parse("").unwrap()), [""; 0]);
}

#[test]
fn hosts_are_read() {
    let text = "[[host]]\nnames = [\"A.example\", \"*.a.example\"]\nsite = \"a\"\n[[host]]\nnames = [\"*\"]\nsite = \"b\"\n";
    let config = parse(text).unwrap();
    assert_eq!(
        config.hosts[0].names,
        [
            HostName::Exact("a.example".to_owned()),
            HostName::Below("a.example".to_owned())
        ]
    );
    assert_eq!(config.hosts[0].site, Path::new("/site/a"));
    assert_eq!(config.hosts[1].names, [HostName::Any]);
    assert_eq!(config.differences(&parse("").unwrap()), ["host"]);
}

#[test]
fn alerts_are_read() {
    let config = parse(
        "[[alert]]\nof = \"hit_rate\"\nlimit = \"62.5 %\"\nfor = \"0s\"\n\
         [[alert]]\nof = \"certificate\"\nlimit = \"7d\"\nwebhook = \"http://[::1]:80/x?y\"\n",
    )
    .unwrap();
    let [share, time] = &config.alerts[..] else {
        panic!("{:?}", config.alerts);
    };
    assert_eq!(share.name, "hit_rate below 62.5 %");
    assert_eq!((share.limit, share.lasts), (625_000, Duration::ZERO));
    assert_eq!(time.name, "certificate below 7d for 5min");
    assert_eq!(
        (time.limit, time.lasts),
        (604_800_000, Duration::from_mins(5))
    );
    assert_eq!(time.webhook.as_deref(), Some("http://[::1]:80/x?y"));
    assert_eq!(config.differences(&parse("").unwrap()), ["alert"]);
}

#[test]
fn what_is_wrong_has_its_place_and_advice() {
    refused(
        "[[redirect]]\nform = \"/a\"\n",
        &expect![[r#"
            millpond.toml:2:1: unknown key `form` in [[redirect]]
              hint: did you mean `from`?"#]],
    );
    refused(
        "\n[[redirect]]\nfrom = \"/a\"\n",
        &expect![[r#"
            millpond.toml:2:1: [[redirect]] without `to`
              hint: for example: to = "/new/*""#]],
    );
    refused(
        "[redirect]\nfrom = \"/a\"\nto = \"/b\"\n",
        &expect![[r#"
            millpond.toml:1:2: `redirect` is a list of entries
              hint: write [[redirect]] with two brackets, once for each"#]],
    );
    refused(
        "[[redirects]]\nfrom = \"/a\"\n",
        &expect![[r#"
            millpond.toml:1:3: unknown section `redirects`
              hint: did you mean [[redirect]]?"#]],
    );
    refused(
        "[[fields]]\npath = \"/*\"\nset = { X-A = \"1\", Content-Length = \"0\" }\n",
        &expect![[r#"
            millpond.toml:3:20: fields.set: Content-Length is the server's own
              hint: leave it out"#]],
    );
    refused(
        "[[host]]\nnames = [\"a\"]\nsite = \"a\"\n[static]\nclean_urls = true\n",
        &expect![[r#"
            millpond.toml:4:2: `static` beside [[host]] applies to no site
              hint: write it into the millpond.toml of the site that it is for"#]],
    );
}

#[test]
fn a_bad_value_is_shown_a_good_one() {
    for (text, said) in [
        ("redirect = 1", "two brackets"),
        ("redirect = [1]", "two brackets"),
        ("[[redirect]]\nfrom = 1\nto = \"/b\"", "text in quotes"),
        (
            "[[redirect]]\nfrom = \"a\"\nto = \"/b\"",
            "begin with a slash",
        ),
        ("[[redirect]]\nfrom = \"/a\"\nto = \"//h\"", "another host"),
        ("[[redirect]]\nfrom = \"/a\"\nto = \"/:x\"", "does not give"),
        (
            "[[redirect]]\nfrom = \"/a\"\nto = \"/b\"\nstatus = 303",
            "none of 301",
        ),
        (
            "[[redirect]]\nfrom = \"/a\"\nto = \"/b\"\nstatus = \"308\"",
            "whole number",
        ),
        (
            "[[rewrite]]\nfrom = \"/a\"\nto = \"https://h/\"",
            "stays on this site",
        ),
        ("[[rewrite]]\nfrom = \"/a\"\nto = \"/b#c\"", "no fragment"),
        ("[[alert]]\nof = \"error\"", "there are `hit_rate`"),
        ("[[alert]]\nof = \"weather\"", "there are `hit_rate`"),
        (
            "[[alert]]\nof = \"errors\"\nlimit = \"1s\"",
            "is no share from",
        ),
        (
            "[[alert]]\nof = \"errors\"\nlimit = \"100%\"",
            "is no share from",
        ),
        (
            "[[alert]]\nof = \"hit_rate\"\nlimit = \"0%\"",
            "is no share from",
        ),
        (
            "[[alert]]\nof = \"hit_rate\"\nlimit = \"NaN%\"",
            "is no share from",
        ),
        ("[[alert]]\nof = \"p99\"\nlimit = \"5%\"", "span of time"),
        (
            "[[alert]]\nof = \"p99\"\nlimit = \"0s\"",
            "not within 1ms and 398d",
        ),
        (
            "[[alert]]\nof = \"p99\"\nlimit = \"1s\"\nfor = \"2d\"",
            "not within 0ms and 1d",
        ),
        (
            "[[alert]]\nof = \"p99\"\nlimit = \"1s\"\nwebhook = \"ftp://h/\"",
            "begins with https://",
        ),
        (
            "[[alert]]\nof = \"p99\"\nlimit = \"1s\"\n[[alert]]\nof = \"p99\"\nlimit = \"1s\"",
            "is there twice",
        ),
        ("[[fields]]\npath = \"/a\"\nset = 1", "a table such as"),
        ("[[fields]]\npath = \"/a\"\nset = {}", "no field is named"),
        (
            "[[fields]]\npath = \"/a\"\nset = { X = 1 }",
            "text in quotes",
        ),
        (
            "[[fields]]\npath = \"/a\"\nset = { X = \"a\\nb\" }",
            "cannot stand",
        ),
        (
            "[[fields]]\npath = \"/a\"\nset = { Cache-Control = \"x\" }",
            "static.immutable",
        ),
        ("[[host]]\nnames = []\nsite = \"a\"", "no name leads to"),
        ("[[host]]\nnames = \"a\"\nsite = \"a\"", "a list of names"),
        (
            "[[host]]\nnames = [\"a\", \"A\"]\nsite = \"a\"",
            "named twice",
        ),
        (
            "[[host]]\nnames = [\"a:80\"]\nsite = \"a\"",
            "neither scheme nor port",
        ),
        (
            "[[host]]\nnames = [\"a.*.b\"]\nsite = \"a\"",
            "neither scheme nor port",
        ),
        (
            "[[host]]\nnames = [\"b\u{fc}cher.example\"]\nsite = \"a\"",
            "xn--",
        ),
        ("[[host]]\nnames = [\"a\"]\nsite = \".\"", "another folder"),
        ("static.index = [\"a/b\"]", "no name of a file"),
        ("static.index = \"a\"", "a list of names"),
        ("static.listing = [\"a\"]", "begin with a slash"),
        ("static.listing = 1", "true, false or a list"),
        ("static.clean_urls = \"yes\"", "true or false"),
    ] {
        let error = parse(text).expect_err(text);
        assert!(error.contains(said), "{text}: {error}");
        assert!(error.contains("\n  hint: "), "{text}: {error}");
        assert!(error.starts_with("millpond.toml:"), "{text}: {error}");
    }
}
