//! Files that are sent from disk: larger than what is copied, or too many to keep open.

use super::*;

fn big() -> Vec<u8> {
    (0..(OPTIONS.in_memory as u32 + 1000) / 4)
        .flat_map(u32::to_be_bytes)
        .collect()
}

#[test]
fn a_big_file_is_sent_from_disk() {
    let big = big();
    let temp = folder(&[
        ("big.html", &big),
        ("small.html", &big[..OPTIONS.in_memory]),
    ]);
    let statics = load(&temp, None);
    let file = statics.find("/big.html").unwrap();
    assert!(file.looks && !statics.find("/small.html").unwrap().looks);
    let response = respond(file, "GET", &[("Accept-Encoding", "gzip")]);
    assert!(matches!(response.body(), Body::File { .. }));
    assert_eq!((response.status(), body(&response) == big), (200, true));
    for (name, value) in [
        ("content-type", "text/html; charset=utf-8"),
        ("content-length", &big.len().to_string()),
        ("cache-control", "no-cache"),
        ("x-content-type-options", "nosniff"),
        ("accept-ranges", "bytes"),
    ] {
        assert_eq!(response.field(name), Some(value));
    }
    let part = respond(file, "GET", &[("Range", "bytes=65530-65540")]);
    assert_eq!(
        (part.status(), body(&part)),
        (206, big[65_530..=65_540].to_vec())
    );
    let total = format!("bytes 65530-65540/{}", big.len());
    assert_eq!(part.field("content-range"), Some(&total[..]));
    assert_eq!(part.field("content-length"), Some("11"));
    assert_eq!(part.field("etag"), response.field("etag"));
    let suffix = respond(file, "GET", &[("Range", "bytes=-5")]);
    assert_eq!(body(&suffix), big[big.len() - 5..]);

    let again = load(&temp, Some(&statics));
    let (a, b) = (
        prepared(&statics, "/big.html"),
        prepared(&again, "/big.html"),
    );
    assert!(Arc::ptr_eq(a, b), "the open file is kept");
}

/// A file on disk must answer as one in memory does: the same requests to both.
#[test]
fn conditions_and_ranges_mean_the_same_on_disk_and_in_memory() {
    let temp = folder(&[("x.bin", &[b'x'; 1000])]);
    let dir = temp.path().join("static");
    let memory = load(&temp, None);
    let options = StaticOptions {
        in_memory: 0,
        ..OPTIONS
    };
    let disk = Statics::load(&dir, &options, &settings(), None).unwrap();
    let files = [memory.find("/x.bin").unwrap(), disk.find("/x.bin").unwrap()];
    let date = respond(files[0], "GET", &[])
        .field("last-modified")
        .unwrap()
        .to_owned();
    let earlier = httpdate::parse_http_date(&date).unwrap() - Duration::from_secs(1);
    let earlier = httpdate::fmt_http_date(earlier);
    let values = [
        "TAG",
        "W/TAG",
        "\"other\", TAG",
        "W/\"o\" ,\t,TAG",
        "\"other\"",
        "*",
        "TAG",
        "nonsense",
        "nonsense, TAG",
        "\"",
        "W/",
        "",
        "\"a,b\",TAG",
        &date,
        &earlier,
        "yesterday",
    ];
    let ranges = [
        None,
        Some("bytes=0-9"),
        Some("BYTES=990-"),
        Some("bytes=-1"),
        Some("bytes=-0"),
        Some("bytes=-99999"),
        Some("bytes=1000-"),
        Some("bytes=999-99999999999999999999999"),
        Some("bytes=9-1"),
        Some("bytes=0-1,4-2"),
        Some("bytes=-"),
        Some("lines=1-2"),
        Some("bytes= 1-2 "),
        Some("bytes=+1-2"),
        Some("bytes"),
        Some("bytes=99999999999999999999999-"),
    ];
    let names = [
        "if-match",
        "if-none-match",
        "if-modified-since",
        "if-unmodified-since",
        "if-range",
    ];
    let mut seen = std::collections::BTreeSet::new();
    let mut ask = |method: &str, name: &str, value: &str, range: Option<&str>| {
        let answers = files.map(|file| {
            let etag = respond(file, "GET", &[]);
            let value = value.replace("TAG", etag.field("etag").unwrap());
            let mut fields = vec![(name, &value[..])];
            fields.extend(range.map(|range| ("Range", range)));
            let response = respond(file, method, &fields);
            let field = |name| response.field(name).map(str::to_owned);
            let has_tag = matches!(response.status(), 200 | 206 | 304);
            assert_eq!(field("etag").is_some(), has_tag);
            let fields = [
                "content-type",
                "content-range",
                "content-length",
                "last-modified",
                "cache-control",
                "accept-ranges",
            ];
            (response.status(), fields.map(field), body(&response))
        });
        assert_eq!(
            answers[0], answers[1],
            "{method} {name}: {value:?} {range:?}"
        );
        seen.insert(answers[0].0);
    };
    for method in ["GET", "HEAD", "POST"] {
        for name in names {
            for value in values {
                for range in ranges {
                    ask(method, name, value, range);
                }
            }
        }
    }
    assert_eq!(
        seen.into_iter().collect::<Vec<_>>(),
        [200, 206, 304, 412, 416]
    );
}

#[test]
fn a_big_file_that_grows_is_described_as_it_is() {
    let temp = folder(&[("big", &big())]);
    let statics = load(&temp, None);
    let file = statics.find("/big").unwrap();
    let before = respond(file, "GET", &[]);
    let path = temp.path().join("static/big");
    File::options()
        .write(true)
        .open(path)
        .unwrap()
        .set_len(2 * OPTIONS.in_memory as u64)
        .unwrap();
    let after = respond(file, "GET", &[]);
    assert_eq!(after.field("content-length"), Some("131072"));
    assert_ne!(before.field("etag"), after.field("etag"));
    File::options()
        .write(true)
        .open(temp.path().join("static/big"))
        .unwrap()
        .set_len(0)
        .unwrap();
    let empty = respond(file, "GET", &[("Range", "bytes=0-")]);
    assert_eq!(empty.status(), 416);
    assert_eq!(respond(file, "GET", &[]).field("content-length"), Some("0"));
}

#[test]
fn a_file_that_is_replaced_or_written_is_never_sent_under_another_ones_head() {
    let temp = folder(&[("big", &[b'1'; 100_000])]);
    let statics = load(&temp, None);
    let file = statics.find("/big").unwrap();
    let first = respond(file, "GET", &[]);
    // The file is replaced: a client that began with the old one gets the old one, and so does
    // every client until the folder is loaded again.
    write(&temp, "new", &[b'2'; 100_000]);
    let at = |name: &str| temp.path().join("static").join(name);
    fs::rename(at("new"), at("big")).unwrap();
    assert_eq!(body(&first), [b'1'; 100_000]);
    assert_eq!(body(&respond(file, "GET", &[])), [b'1'; 100_000]);
    let statics = load(&temp, Some(&statics));
    let file = statics.find("/big").unwrap();
    let second = respond(file, "GET", &[]);
    assert_eq!(body(&second), [b'2'; 100_000]);
    assert_ne!(first.field("etag"), second.field("etag"));
    // Written in place, with the same length, and before any event arrived.
    let before = second.field("etag").unwrap();
    write(&temp, "big", &[b'3'; 100_000]);
    let third = respond(file, "GET", &[("If-Range", before), ("Range", "bytes=0-9")]);
    assert_eq!((third.status(), body(&third)), (200, vec![b'3'; 100_000]));
    // While it may still be written within one step of its time, no two responses claim to be the
    // same.
    assert_ne!(third.field("etag"), respond(file, "GET", &[]).field("etag"));
}

#[test]
fn a_file_that_was_written_long_ago_keeps_its_tag() {
    let temp = folder(&[("big", &[b'1'; 100_000])]);
    let (one, other) = (load(&temp, None), load(&temp, None));
    let tag = |statics: &Statics| {
        let response = respond(statics.find("/big").unwrap(), "GET", &[]);
        response.field("etag").unwrap().to_owned()
    };
    assert_eq!(tag(&one), tag(&other));
    let same = [("If-None-Match", &tag(&other)[..])];
    let unchanged = respond(one.find("/big").unwrap(), "GET", &same);
    assert_eq!(unchanged.status(), 304);
}

#[test]
fn files_that_are_too_many_are_opened_when_they_are_asked_for() {
    let temp = folder(&[
        ("copy", &[b'0'; 20_000]),
        ("a", &[b'1'; 100_000]),
        ("b", &[b'2'; 100_001]),
    ]);
    let statics = load_open(&temp, 2, None);
    let held = |path| statics.find(path).unwrap().loaded.plain.descriptors();
    assert_eq!((held("/copy"), held("/a"), held("/b")), (1, 1, 0));
    assert_eq!(
        statics.notes()[0].message,
        "1 of its large files are opened for each request, because no more than 2 are kept open"
    );
    let file = statics.find("/b").unwrap();
    let response = respond(file, "GET", &[("Range", "bytes=0-9")]);
    assert_eq!((response.status(), body(&response)), (206, vec![b'2'; 10]));
    let tag = response.field("etag").unwrap().to_owned();
    assert_eq!(
        respond(file, "GET", &[("If-None-Match", &tag)]).status(),
        304
    );
    write(&temp, "b", &[b'3'; 70_000]);
    assert_eq!(body(&respond(file, "GET", &[])), [b'3'; 70_000]);
    fs::remove_file(temp.path().join("static/b")).unwrap();
    assert_eq!(respond(file, "GET", &[]).status(), 404);
    rustix::fs::mknodat(
        rustix::fs::CWD,
        temp.path().join("static/b"),
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::from_raw_mode(0o600),
        0,
    )
    .unwrap();
    assert_eq!(
        respond(file, "GET", &[]).status(),
        404,
        "nobody waits for a writer"
    );
    // With more of them, it is kept open like any other.
    fs::remove_file(temp.path().join("static/b")).unwrap();
    write(&temp, "b", &[b'4'; 100_001]);
    let again = load_open(&temp, 10, Some(&statics));
    assert_eq!(again.find("/b").unwrap().loaded.plain.descriptors(), 1);
    assert!(again.notes().is_empty());
}
