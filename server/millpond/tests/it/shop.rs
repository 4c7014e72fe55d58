//! The example of a shop on SQLite and on PostgreSQL: the same pages, kept; its basket, orders and
//! editor's desk.

use std::path::Path;

use tempfile::TempDir;

use crate::support::{Server, copy_folder};
use crate::visitors::{Visitor, alike_on_both, are_kept, on_both};

/// A copy of the example, with its database in the same folder.
fn shop() -> TempDir {
    let dir = lab_testkit::fast_dir();
    let example = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/shop");
    copy_folder(&example, dir.path());
    dir
}

/// Addresses that no link of a visitor's pages leads to.
const UNLINKED: [&str; 24] = [
    "/?utm_source=x",
    "/albums?genre=1&genre=3&decade=2010&sort=artist",
    "/albums?genre=&decade=&sort=newest&page=",
    "/albums?page=99",
    "/albums?page=0",
    "/reviews?page=-1",
    "/search?q=a%00b",
    "/albums?sort=price",
    "/albums/999999",
    "/albums/x",
    "/artists?sort=albums",
    "/tracks?genre=2&most=99&length=long&sort=-length",
    "/tracks?length=endless",
    "/search?q=",
    "/search?q=LUNA",
    "/search?q=rio+cla",
    "/search?q=%C3%A9mile+br%C3%A9",
    "/search?q=AC%2FDC+%22%27%28%3A*",
    "/search?q=lumen%2Flux",
    "/search?q=lux",
    "/api/albums/7",
    "/api/albums?genre=2&size=50&page=2",
    "/robots.txt",
    "/sitemap.xml",
];

#[test]
fn every_address_is_answered_alike_on_both_databases() {
    let pages = alike_on_both(shop, &[&["/"] as &[_], &UNLINKED].concat());
    for (target, (status, body)) in &pages {
        let expected = match target.as_str() {
            "/albums/999999" | "/albums/x" | "/albums?page=99" => 404,
            "/albums?sort=price" | "/tracks?length=endless" => 400,
            "/albums?page=0" | "/reviews?page=-1" | "/search?q=a%00b" => 400,
            "/account" | "/editor" => 303,
            _ => 200,
        };
        assert_eq!(*status, expected, "{target}: {body}");
    }
    assert!(pages.len() > 350, "{}", pages.len());
    assert!(pages["/albums?sort=price"].1.contains("That did not work"));
    assert!(pages["/albums/x"].1.contains("The needle found no groove"));
    // The menu of genres is on every page that has rows.
    for page in ["/", "/albums/5", "/artists", "/search?q="] {
        let link = "<a href=\"/albums?genre=8\" style=\"--hue: 186\">Ambient</a>";
        assert!(pages[page].1.contains(link), "{page}");
    }
    assert!(pages["/search?q=rio+cla"].1.contains("Río Claro"));
    assert!(pages["/search?q=lux"].1.contains("Lumen"));
    assert!(pages["/feed.rss"].1.starts_with("<?xml"));
}

/// Each kind of page, with its dynamic part for the catalogue's first rows.
const KINDS: [&str; 17] = [
    "/",
    "/albums?genre=1&genre=2&sort=title&page=2",
    "/albums/5",
    "/albums/5/cover.svg",
    "/artists",
    "/artists/3",
    "/tracks?most=99&length=short",
    "/charts",
    "/reviews",
    "/search?q=high",
    "/login",
    "/register",
    "/feed.rss",
    "/sitemap.xml",
    "/albums.csv",
    "/api/albums",
    "/api/albums/5",
];

/// The numbers of the tracks on the page of an album.
fn tracks(page: &str) -> Vec<String> {
    let rows = page.split("<tr id=\"track-").skip(1);
    rows.filter_map(|rest| rest.split('"').next().map(str::to_owned))
        .collect()
}

#[test]
fn each_kind_of_page_comes_from_memory_the_second_time() {
    on_both(shop, |server, _| {
        are_kept(server, &KINDS);
        assert_eq!(server.get("/no/such/page").status, 404);
        let mut visitor = Visitor::new(server);
        visitor.post("/basket", "track=1");
        visitor.get("/basket");
        let kept = visitor.get("/basket");
        assert_eq!(kept.field("cache-status"), Some("millpond; hit"));
        assert!(
            kept.field("cache-control")
                .is_some_and(|said| said.contains("private"))
        );
    });
}

#[test]
fn a_basket_goes_along_to_the_account_and_becomes_one_order() {
    on_both(shop, |server, _| {
        let (mut ines, mut otto) = (Visitor::new(server), Visitor::new(server));
        assert_eq!(ines.post("/basket", "track=1&track=2&track=1"), "/basket");
        otto.post("/basket", "track=3");
        ines.shows("/basket", "2 tracks");
        otto.shows("/basket", "1 track<");
        assert_eq!(
            ines.get("/account").field("location"),
            Some("/login?next=%2Faccount")
        );
        assert_eq!(ines.get("/orders/1").status, 303);
        ines.post("/register", "name=Ines&password=long+enough");
        ines.shows("/basket", "Order as Ines");
        ines.post("/basket", "track=3&track=4&track=999999");
        ines.shows("/basket", "4 tracks");
        ines.post("/basket/remove", "track=1");
        otto.post("/basket/remove", "track=2");
        ines.shows("/basket", "3 tracks");
        assert_eq!(ines.post("/order", "country=&note=Call+me"), "/basket");
        let refused = ines.get("/basket").text();
        assert!(refused.contains("A country has 1 to 80"), "{refused}");
        assert!(refused.contains("Call me</textarea>"), "{refused}");
        assert!(!ines.get("/basket").text().contains("Call me"));
        let thanks = ines.post("/order", "country=Ireland&note=Thanks");
        let order = thanks.strip_suffix("?thanks=true").unwrap();
        ines.shows(&thanks, "Thank you");
        ines.shows("/account", &format!("<a href=\"{order}\">"));
        ines.shows("/basket", "Nothing is in it yet");
        assert_eq!(ines.post("/order", "country=Ireland"), "/basket");
        ines.shows("/basket", "The basket is empty.");
        otto.post("/register", "name=Otto&password=long+enough");
        assert_eq!(otto.get(order).status, 404);
        otto.shows("/basket", "1 track<");
        // The basket of an account waits for the next sign-in, on any browser.
        let mut elsewhere = Visitor::new(server);
        elsewhere.post("/basket", "track=9");
        let failed = elsewhere.post("/login", "name=Otto&password=not+the+one&next=/basket");
        assert_eq!(failed, "/login");
        let again = elsewhere.get("/login").text();
        assert!(again.contains("password is wrong"), "{again}");
        assert!(again.contains("value=\"Otto\""), "{again}");
        let next = elsewhere.post("/login", "name=Otto&password=long+enough&next=/basket");
        assert_eq!(next, "/basket");
        elsewhere.shows("/basket", "2 tracks");
        // A basket's number is not taken from the form.
        Visitor::new(server).post("/basket", "track=5&basket_id=1&id=1&claims.basket=1");
        elsewhere.shows("/basket", "2 tracks");
        ines.shows("/basket", "Nothing is in it yet");
    });
}

/// A visitor with an account, first without and then with the rights of an editor.
fn editor<'s>(server: &'s Server, run: &mut dyn FnMut(&str)) -> Visitor<'s> {
    let mut editor = Visitor::new(server);
    editor.post("/register", "name=Ada+L&password=long+enough");
    assert_eq!(editor.get("/editor").status, 403);
    assert_eq!(editor.refused("/editor/albums/1/delete", ""), 403);
    run("update account set role = 'editor' where name = 'Ada L'");
    editor.post("/logout", "");
    editor.post("/login", "name=Ada+L&password=long+enough");
    editor
}

#[test]
fn an_editor_changes_the_catalogue_and_every_page_follows() {
    on_both(shop, |server, run| {
        let mut editor = editor(server, run);
        editor.shows("/editor?q=luna", "Luna");
        let artist = editor.post(
            "/editor/artists/new",
            "name=Zo%C3%AB+%26+Co&country=Malta&since=2020&about=*New*",
        );
        editor.shows(&artist, "<em>New</em>");
        let artist = artist.rsplit('/').next().unwrap();
        let new = format!("title=Fresh+%3CPaint%3E&artist={artist}&genre=2&released=2026-11-25");
        assert_eq!(server.get("/search?q=fresh").status, 200);
        let album = editor.post("/editor/albums/new", &new);
        editor.post(
            &format!("{album}/tracks"),
            "position=1&name=First+Coat&seconds=200&price=99",
        );
        editor.post(
            &format!("{album}/tracks"),
            "position=2&name=Second+Coat&seconds=200&price=99",
        );
        let page = editor.post(
            &format!("{album}/review"),
            "headline=Wet&body=**Do+not+touch**",
        );
        let public = page.split('#').next().unwrap().to_owned();
        let review = page.rsplit('-').next().unwrap();
        for (target, expected) in [
            ("/", "Fresh &lt;Paint&gt;"),
            (&public, "<strong>Do not touch</strong>"),
            ("/search?q=fresh+pai", "Fresh &lt;Paint&gt;"),
            ("/search?q=second+co", "Second Coat"),
            ("/feed.rss", "Fresh &lt;Paint&gt;"),
        ] {
            Visitor::new(server).shows(target, expected);
        }
        editor.shows(&format!("/editor/reviews/{review}"), "**Do not touch**");
        editor.post(&album, &new.replace("Fresh", "Dry"));
        assert!(server.get(&public).text().contains("Dry &lt;Paint&gt;"));
        assert!(!server.get("/search?q=fresh").text().contains("Paint"));
        editor.post(
            &format!("/editor/reviews/{review}"),
            "headline=Dry&body=Touch+it",
        );
        assert!(server.get(&public).text().contains("Touch it"));
        editor.post(&format!("/editor/reviews/{review}/delete"), "");
        let tracks = tracks(&server.get(&public).text());
        editor.post(
            &format!("{album}/remove"),
            &format!("track={}&track=1", tracks[0]),
        );
        assert!(!server.get(&public).text().contains("First Coat"));
        assert!(server.get("/albums/1").text().contains("track-1\""));
        // What was sold stays.
        editor.post("/basket", &format!("track={}", tracks[1]));
        editor.post("/order", "country=Malta");
        assert_eq!(editor.refused(&format!("{album}/delete"), ""), 409);
        editor.shows(&album, "this album stays");
        editor.shows("/editor/sales.csv", "Second Coat");
        assert_eq!(server.get("/editor/sales.csv").status, 401);
        let gone = editor.post("/editor/albums/new", &new);
        editor.post(&format!("{gone}/delete"), "");
        assert_eq!(server.get(&gone.replace("/editor", "")).status, 404);
    });
}

#[test]
fn what_an_editor_typed_and_was_refused_is_in_the_form_again() {
    on_both(shop, |server, run| {
        let mut editor = editor(server, run);
        let new = "title=Fresh+%3CPaint%3E&artist=1&genre=2&released=2026-11-25";
        let album = editor.post("/editor/albums/new", new);
        for (form, sentence) in [
            (new.to_owned(), "This artist has an album of this title."),
            (new.replace("2026-11-25", "today"), "A date is year, month"),
        ] {
            // What was typed is in the form again, for this visitor and once.
            let form_page = "/editor/albums/new";
            assert_eq!(editor.post(form_page, &form), form_page);
            let refused = editor.get(form_page).text();
            assert!(refused.contains(sentence), "{refused}");
            assert!(refused.contains("Fresh &lt;Paint&gt;"), "{refused}");
            assert!(refused.contains("aria-invalid=\"true\""), "{refused}");
            assert!(!editor.get(form_page).text().contains("Fresh"));
        }
        editor.post(
            &format!("{album}/tracks"),
            "position=1&name=First+Coat&seconds=200&price=99",
        );
        let taken = editor.post(
            &format!("{album}/tracks"),
            "position=1&name=Third+Coat&seconds=200&price=99",
        );
        assert_eq!(taken, format!("{album}?part=tracks#tracks"));
        let refused = editor.get(taken.split('#').next().unwrap()).text();
        assert!(refused.contains("a track of this number"), "{refused}");
        assert!(refused.contains("value=\"Third Coat\""), "{refused}");
    });
}

/// The address of an album's own picture, as the API says it.
fn cover(server: &Server, album: &str) -> Option<String> {
    let json = server.get(&format!("/api/albums/{album}")).text();
    let (_, rest) = json.split_once("\"cover\":\"")?;
    Some(rest.split('"').next()?.to_owned())
}

#[test]
fn a_picture_of_a_cover_takes_the_place_of_the_drawing() {
    on_both(shop, |server, run| {
        let mut editor = editor(server, run);
        let fields = [
            ("title", "Avenue"),
            ("artist", "1"),
            ("genre", "1"),
            ("released", "2024-08-15"),
        ];
        // By its content this is a WebP picture, more or less.
        let pictures = ["RIFF    WEBP and one", "RIFF    WEBP and another"];
        let drawing = "src=\"/albums/1/cover.svg\"";
        assert!(server.get("/albums/1").text().contains(drawing));
        assert!(server.get("/artists/1").text().contains(drawing));
        for picture in pictures {
            editor.upload("/editor/albums/1", &fields, picture);
            let address = cover(server, "1").unwrap();
            assert!(address.starts_with("/uploads/covers/"), "{address}");
            let file = server.get(&address);
            assert_eq!((file.status, &*file.text()), (200, picture));
            assert_eq!(file.field("content-type"), Some("image/webp"));
            for page in ["/albums/1", "/artists/1", "/albums?sort=title"] {
                let page = server.get(page).text();
                let name = address.rsplit('/').next().unwrap();
                assert!(page.contains(name), "{address}: {page}");
                assert!(!page.contains(drawing), "{page}");
            }
        }
        let other = editor.send_as(
            "POST /editor/albums/1",
            "multipart/form-data; boundary=part",
            "--part\r\nContent-Disposition: form-data; name=\"title\"\r\n\r\nBoulevard\r\n\
             --part\r\nContent-Disposition: form-data; name=\"cover\"; filename=\"a.png\"\r\n\r\nno picture\r\n--part--\r\n",
        );
        assert_eq!(other.status, 303);
        let again = [
            "<a href=\"#cover\">A picture is PNG, JPEG or WebP.</a>",
            "<span class=\"error\" id=\"cover-error\">",
            "value=\"Boulevard\"",
            "<a href=\"#artist\">Choose an artist of the list.</a>",
        ];
        let page = editor.get("/editor/albums/1").text();
        for part in again {
            assert!(page.contains(part), "{part}: {page}");
        }
        // Without a file the picture stays; the box takes it away.
        editor.post(
            "/editor/albums/1",
            "title=Avenue&artist=1&genre=1&released=2024-08-15",
        );
        assert!(cover(server, "1").is_some());
        editor.post(
            "/editor/albums/1",
            "title=Avenue&artist=1&genre=1&released=2024-08-15&drawn=true",
        );
        assert_eq!(cover(server, "1"), None);
        assert!(server.get("/albums/1").text().contains(drawing));
    });
}

#[test]
fn what_a_program_writes_is_on_the_pages_at_once() {
    on_both(shop, |server, run| {
        let mut editor = editor(server, run);
        let mut ask = |head: &str, body: &str| editor.send_as(head, "application/json", body);
        let new = "{\"title\":\"Sent\",\"artist_id\":1,\"genre_id\":2,\"released\":\"2026-11-26\"}";
        assert!(!server.get("/artists/1").text().contains("Sent"));
        let made = ask("POST /api/albums", new);
        assert_eq!(made.status, 201, "{}", made.text());
        let address = made.field("location").unwrap().to_owned();
        let page = address.replace("/api", "");
        assert!(server.get("/artists/1").text().contains("Sent"));
        assert!(server.get(&page).text().contains("<h1>Sent</h1>"));
        for (head, body, status) in [
            ("POST /api/albums", new, 409),
            ("POST /api/albums", "{\"title\":\"Sent\"}", 400),
            (&*format!("PATCH {address}"), "{\"released\":\"soon\"}", 400),
            ("DELETE /api/albums/2", "", 409),
            ("DELETE /api/albums/999999", "", 404),
        ] {
            let refused = ask(head, body);
            assert_eq!(refused.status, status, "{head}: {}", refused.text());
            let kind = refused.field("content-type");
            assert_eq!(kind, Some("application/problem+json"), "{head}");
        }
        let changed = ask(&format!("PATCH {address}"), "{\"title\":\"Sent again\"}");
        assert_eq!(changed.status, 200, "{}", changed.text());
        assert!(server.get(&page).text().contains("<h1>Sent again</h1>"));
        let json = server.get(&address).text();
        assert!(json.contains("\"released\":\"2026-11-26\""), "{json}");
        let mut visitor = Visitor::new(server);
        let refused = visitor.send_as(&format!("DELETE {address}"), "application/json", "");
        assert_eq!(refused.status, 401);
        assert_eq!(ask(&format!("DELETE {address}"), "").status, 200);
        assert_eq!(server.get(&page).status, 404);
        assert!(!server.get("/artists/1").text().contains("Sent"));
    });
}
