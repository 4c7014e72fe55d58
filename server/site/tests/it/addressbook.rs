//! A file of XML as a table, as the address book of a study has it.

use std::{fs, path::Path};

use crate::support::{TestSite, folder, write};

const ENTRIES: &str = r#"<?xml version="1.0" encoding="UTF-8"?>
<addressbook model="simple">
  <entry id="1"><first>Ada</first><last>O&apos;Hill</last><street>1 Mill Lane</street><code>10</code><city>Rome</city><phone>1</phone><email>a@example.org</email></entry>
  <entry id="2"><first>Ben</first><last>Ash</last><street>2 Mill Lane</street><code>20</code><city>Oslo</city><phone>2</phone><email>b@example.org</email></entry>
</addressbook>
"#;

#[test]
fn a_changed_entry_is_on_its_page_and_others_stay() {
    let example = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../lab/studies/06-address-book/addressbook/tables");
    let files = [
        "migrations/0001_data_entries.sql",
        "pages/index.sql",
        "pages/index.html",
        "pages/entry/[id].sql",
        "pages/entry/[id].html",
    ];
    let texts = files.map(|name| (name, fs::read_to_string(example.join(name)).unwrap()));
    let mut files: Vec<_> = texts.iter().map(|(name, text)| (*name, &**text)).collect();
    files.push(("data/entries.xml", ENTRIES));
    let dir = folder(&files);
    let path = dir.path().to_owned();
    let site = TestSite::open(dir, millpond_site::SiteOptions::default());
    let front = site.get("/");
    assert_eq!(front.status, 200, "{}", front.body);
    let at = |name| front.body.find(name).unwrap();
    assert!(at("Ash, Ben") < at("O&#x27;Hill, Ada"), "{}", front.body);
    assert!(!site.get("/?name=ben").body.contains("Ada"));
    assert!(site.get("/?name=x").body.contains("No entry"));
    for _ in 0..2 {
        assert!(site.get("/entry/1").body.contains("1 Mill Lane"));
        assert!(site.get("/entry/2").body.contains("2 Mill Lane"));
    }
    let changed = ENTRIES.replace("1 Mill Lane", "3 Quarry Steps");
    write(&path, &[("data/entries.new~", &changed)]);
    fs::rename(
        path.join("data/entries.new~"),
        path.join("data/entries.xml"),
    )
    .unwrap();
    site.until("the change shows", || {
        site.get("/entry/1").body.contains("3 Quarry Steps")
    });
    assert_eq!(site.get("/entry/2").cache(), "hit");
    assert_eq!(site.get("/entry/3").status, 404);
}
