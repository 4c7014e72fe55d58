//! Codings in the same folder as their files.

use super::*;

fn gzip(content: &[u8]) -> Vec<u8> {
    Coding::Gzip.compress(content).unwrap()
}

fn brotli(content: &[u8]) -> Vec<u8> {
    Coding::Brotli.compress(content).unwrap()
}

/// Six bits of chance in each byte, so that no coding takes less than three quarters of it.
fn noise(len: usize, seed: u64) -> Vec<u8> {
    let mut random = lab_testkit::Random::new(seed);
    (0..len).map(|_| b'0' + random.byte() / 4).collect()
}

/// The coding of the response to a client that reads `accept`, and its content.
fn get(statics: &Statics, path: &str, accept: &str) -> (Option<String>, Vec<u8>) {
    let file = statics.find(path).unwrap();
    let response = respond(file, "GET", &[("Accept-Encoding", accept)]);
    assert_eq!(response.status(), 200);
    let coding = response.field("content-encoding").map(str::to_owned);
    (coding, body(&response))
}

fn set_time(temp: &TempDir, name: &str, seconds_ago: u64) {
    let file = File::options()
        .write(true)
        .open(temp.path().join("static").join(name))
        .unwrap();
    let time = SystemTime::UNIX_EPOCH + Duration::from_secs(1_700_000_000 - seconds_ago);
    file.set_modified(time).unwrap();
}

#[test]
fn a_file_beside_another_is_its_coding() {
    // In memory, in the kernel, and on disk.
    for len in [1000, 30_000, 200_000] {
        let plain = noise(len, 1);
        let [br, zst, gz] = Coding::ALL.map(|coding| coding.compress(&plain).unwrap());
        let temp = folder(&[
            ("app.js", &plain),
            ("app.js.br", &br),
            ("app.js.zst", &zst),
            ("app.js.gz", &gz),
        ]);
        ["app.js", "app.js.br", "app.js.zst", "app.js.gz"]
            .iter()
            .for_each(|name| set_time(&temp, name, 0));
        let statics = load(&temp, None);
        // Among equals it is the shortest.
        let [(zst_or_gz, short), (all, shortest)] = [
            &[("zstd", &zst), ("gzip", &gz)][..],
            &[("br", &br), ("zstd", &zst), ("gzip", &gz)],
        ]
        .map(|codings| *codings.iter().min_by_key(|(_, coded)| coded.len()).unwrap());
        for (accept, coding, content) in [
            ("br", Some("br"), &br),
            ("zstd", Some("zstd"), &zst),
            ("gzip", Some("gzip"), &gz),
            ("x-gzip", Some("gzip"), &gz),
            ("gzip, deflate, br, zstd", Some(all), shortest),
            ("*", Some(all), shortest),
            ("gzip;q=1, br;q=0.5", Some("gzip"), &gz),
            ("br;q=0, *", Some(zst_or_gz), short),
            ("gzip;q=0.2, identity;q=0.5", None, &plain),
            ("*;q=0", None, &plain),
            ("identity;q=0, gzip;q=0.1", Some("gzip"), &gz),
            ("", None, &plain),
        ] {
            let (found, sent) = get(&statics, "/app.js", accept);
            assert_eq!(found.as_deref(), coding, "{len} {accept}");
            assert!(sent == *content, "{len} {accept}");
        }
        let file = statics.find("/app.js").unwrap();
        let plain_response = respond(file, "GET", &[]);
        assert_eq!(plain_response.field("vary"), Some("Accept-Encoding"));
        let coded = respond(file, "GET", &[("Accept-Encoding", "br")]);
        let content_type = Some("text/javascript; charset=utf-8");
        assert_eq!(coded.field("content-type"), content_type);
        let tag = coded.field("etag").unwrap();
        assert_ne!(Some(tag), plain_response.field("etag"));
        let fields = [("Accept-Encoding", "br"), ("If-None-Match", tag)];
        let unchanged = respond(file, "GET", &fields);
        assert_eq!(unchanged.status(), 304);
        assert_eq!(unchanged.field("vary"), Some("Accept-Encoding"));
        // By its own name it is a file like any other.
        assert_eq!(get(&statics, "/app.js.gz", "gzip"), (None, gz));
        let own = respond(statics.find("/app.js.gz").unwrap(), "GET", &[]);
        assert_eq!(own.field("content-type"), Some("application/gzip"));
        assert_eq!(own.field("vary"), None);
    }
}

#[test]
fn an_older_one_is_of_another_version() {
    let text = [b't'; 1000];
    let temp = folder(&[("a.png", &text), ("a.png.gz", &gzip(&text))]);
    set_time(&temp, "a.png", 10);
    for (ago, coding) in [(10, Some("gzip")), (9, Some("gzip")), (11, None)] {
        set_time(&temp, "a.png.gz", ago);
        let found = get(&load(&temp, None), "/a.png", "gzip").0;
        assert_eq!(found.as_deref(), coding, "{ago}");
    }
}

#[test]
fn one_that_is_empty_or_saves_nothing_is_not_used() {
    let text = [b't'; 1000];
    let temp = folder(&[
        ("a.png", &text),
        ("a.png.gz", b""),
        ("a.png.br", &text),
        ("a.png.zst", &text[1..]),
        ("b.png.gz", b"without its file"),
    ]);
    let statics = load(&temp, None);
    let codings = "gzip, br, zstd";
    assert_eq!(get(&statics, "/a.png", codings), (None, text.to_vec()));
    assert!(statics.find("/b.png").is_none());
}

#[test]
fn its_changes_are_changes_of_the_representation() {
    let text = [b't'; 1000];
    let one = gzip(&text);
    // Of the same content, but from another second, as the fifth byte says.
    let mut two = one.clone();
    two[4] ^= 1;
    let temp = folder(&[("a.css", &text), ("a.css.gz", &one), ("b.css", &text)]);
    let tag = |statics: &Statics| {
        let response = respond(statics.find("/a.css").unwrap(), "GET", &[]);
        response.field("etag").unwrap().to_owned()
    };
    let before = load(&temp, None);
    let same = load(&temp, Some(&before));
    assert!(Arc::ptr_eq(
        prepared(&before, "/a.css"),
        prepared(&same, "/a.css")
    ));
    write(&temp, "a.css.gz", &two);
    let after = load(&temp, Some(&same));
    assert_ne!(tag(&before), tag(&after));
    assert_eq!(get(&after, "/a.css", "gzip").1, two);
    // The other codings are made as of any file.
    assert!(prepared(&after, "/a.css").make(Coding::Brotli) > 0);
    assert_eq!(get(&after, "/a.css", "br").0.as_deref(), Some("br"));
    fs::remove_file(temp.path().join("static/a.css.gz")).unwrap();
    let without = load(&temp, Some(&after));
    assert_eq!(get(&without, "/a.css", "gzip"), (None, text.to_vec()));
}

#[test]
fn one_that_is_half_written_is_not_used() {
    // In memory, and in the kernel.
    for len in [1000, 60_000] {
        let text = noise(len, 1);
        for coding in Coding::ALL {
            let coded = coding.compress(&text).unwrap();
            let name = format!("app.js.{}", ["br", "zst", "gz"][coding as usize]);
            let temp = folder(&[("app.js", &text), (&name, &coded[..coded.len() / 2])]);
            let half = load(&temp, None);
            assert_eq!(get(&half, "/app.js", coding.name()), (None, text.clone()));
            let [note] = half.notes() else {
                panic!("{:?}", half.notes())
            };
            assert_eq!(
                note.to_string(),
                format!(
                    "static/{name}: does not decode to `app.js` beside it, and is not sent in its place\n  hint: make it again from that file, or take it away"
                )
            );
            write(&temp, &name, &coded);
            let whole = load(&temp, Some(&half));
            assert_eq!(get(&whole, "/app.js", coding.name()).1, coded);
            assert!(whole.notes().is_empty());
        }
    }
}

#[test]
fn a_file_put_back_to_an_older_version_is_not_sent_as_the_newer_one() {
    let (older, newer) = (noise(1000, 1), noise(1000, 2));
    let coded = brotli(&newer);
    let temp = folder(&[("app.js", &newer), ("app.js.br", &coded)]);
    let before = load(&temp, None);
    assert_eq!(get(&before, "/app.js", "br").1, coded);
    write(&temp, "app.js", &older);
    set_time(&temp, "app.js", 1000);
    let after = load(&temp, Some(&before));
    assert_eq!(get(&after, "/app.js", "br"), (None, older));
}

#[test]
fn one_that_was_decoded_is_not_decoded_again() {
    let text = noise(1000, 1);
    let temp = folder(&[("app.js", &text), ("app.js.br", &brotli(&text))]);
    let before = load(&temp, None);
    let file = before.find("/app.js").unwrap();
    let [br, _, _] = &file.precompressed;
    let br = br.as_ref().unwrap();
    assert!(file.has(&file.loaded, Coding::Brotli, br));
    assert!(!file.has(&file.loaded, Coding::Gzip, br));
    assert!(!file.has(br, Coding::Brotli, br));
    let after = load(&temp, Some(&before));
    let file = after.find("/app.js").unwrap();
    assert!(file.has(&file.loaded, Coding::Brotli, br));
}

#[test]
fn a_coding_on_disk_that_is_written_is_not_sent_under_its_old_head() {
    let text = noise(200_000, 1);
    let coded = brotli(&text);
    let temp = folder(&[("a.css", &text), ("a.css.br", &coded)]);
    let statics = load(&temp, None);
    assert_eq!(get(&statics, "/a.css", "br").0.as_deref(), Some("br"));
    write(&temp, "a.css.br", &noise(coded.len(), 2));
    assert_eq!(get(&statics, "/a.css", "br"), (None, text.clone()));
    // Nor is a coding that was written just now, because another program may still be writing it.
    let fresh = load(&temp, Some(&statics));
    assert_eq!(get(&fresh, "/a.css", "br"), (None, text));
}
