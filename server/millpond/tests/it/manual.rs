//! The example that serves the documents of the project, on SQLite and on PostgreSQL: every link in
//! them leads somewhere, and the search finds their words.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use crate::support::{Server, copy_folder};
use crate::visitors::{are_kept, on_both};

fn project() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.join("../..").canonicalize().unwrap()
}

/// A copy of the example; the documents are those of the project.
fn manual() -> TempDir {
    let dir = lab_testkit::fast_dir();
    copy_folder(&project().join("examples/manual"), dir.path());
    let settings = dir.path().join("millpond.toml");
    let text = fs::read_to_string(&settings).unwrap();
    let docs = format!("{:?}", project().join("docs"));
    let text = text.replace("\"../../docs\"", &docs);
    assert!(text.contains(&docs));
    fs::write(settings, text).unwrap();
    dir
}

/// The addresses of all documents in a folder and in its folders.
fn documents(folder: &Path, address: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for entry in fs::read_dir(folder).unwrap().flatten() {
        let name = entry.file_name().into_string().unwrap();
        if entry.path().is_dir() {
            found.extend(documents(&entry.path(), &format!("{address}/{name}")));
        } else if let Some(stem) = name.strip_suffix(".md") {
            found.insert(format!("{address}/{stem}"));
        }
    }
    found
}

/// The addresses that a page names, without those of other sites.
fn links(page: &str, body: &str) -> BTreeSet<String> {
    // A sign `<` in an example is an entity.
    let attributes = ["<a href=\"", "<img src=\"", "rel=\"stylesheet\" href=\""].into_iter();
    let links = attributes.flat_map(|attribute| body.split(attribute).skip(1));
    let links = links.filter_map(|rest| rest.split('"').next());
    let own = links.filter(|link| !link.contains(':'));
    own.map(|link| resolved(page, &link.replace("&amp;", "&")))
        .collect()
}

/// The address that a link on a page leads to, as browsers read it.
fn resolved(page: &str, link: &str) -> String {
    let (path, rest) = link.split_at(link.find(['?', '#']).unwrap_or(link.len()));
    if path.is_empty() {
        return format!("{page}{rest}");
    }
    let mut parts: Vec<&str> = match path.starts_with('/') {
        true => Vec::new(),
        false => page[1..].split('/').collect(),
    };
    parts.pop();
    for part in path.trim_start_matches('/').split('/') {
        match part {
            ".." => drop(parts.pop()),
            "." => {}
            part => parts.push(part),
        }
    }
    format!("/{}{rest}", parts.join("/"))
}

/// Describes the faults in the links of a page.
fn dead_ends(server: &Server, page: &str, bodies: &mut BTreeMap<String, String>) -> String {
    let mut said = String::new();
    let body = server.get(page).text();
    for link in links(page, &body) {
        let (path, fragment) = link.split_once('#').unwrap_or((&link, ""));
        let target = bodies.entry(path.to_owned()).or_insert_with(|| {
            let answer = server.get(path);
            match answer.status {
                200 => answer.text(),
                _ => String::new(),
            }
        });
        let is_there = !target.is_empty();
        let is_named = fragment.is_empty() || target.contains(&format!("id=\"{fragment}\""));
        let is_elsewhere = target.contains("<h1>A file of the project</h1>");
        let is_of_the_project = project().join(&path[1..]).exists();
        if !is_there || is_elsewhere && !is_of_the_project || !is_elsewhere && !is_named {
            said += &format!("{page} has a link to {link}\n");
        }
    }
    said
}

/// A search for these words has a result at this address.
fn leads_to(server: &Server, words: &str, address: &str) {
    let found = server.get(&format!("/search?q={words}")).text();
    assert!(found.contains(&format!("href=\"{address}\"")), "{found}");
    assert!(found.contains("<mark>"), "{found}");
}

#[test]
fn every_link_of_every_document_leads_somewhere() {
    let documents = documents(&project().join("docs"), "");
    assert!(documents.len() > 50);
    on_both(manual, |server, _| {
        let pages: Vec<&str> = documents.iter().map(String::as_str).collect();
        let others = ["/", "/contributors", "/search?q=cache", "/search?q=page"];
        let pages = [&others, &*pages].concat();
        are_kept(server, &pages);
        let mut bodies = BTreeMap::new();
        let said: String = pages
            .iter()
            .map(|page| dead_ends(server, page, &mut bodies))
            .collect();
        assert_eq!(said, "");
        let front = server.get("/").text();
        let internal = server.get("/contributors").text();
        for page in &documents {
            let link = format!("href=\"{page}\"");
            let is_internal = ["coherence/", "/catalogs", "/notes/"]
                .iter()
                .any(|part| page.contains(part));
            assert!(!is_internal || !front.contains(&link), "{page}");
            assert!(front.contains(&link) || internal.contains(&link), "{page}");
        }
        assert!(bodies.contains_key("/notes/2026-11-22-hit.svg"));
        assert_eq!(server.get("/guide/none").status, 404);
        assert_eq!(server.get("/reference/site/none").status, 404);
    });
}

#[test]
fn the_search_leads_to_the_heading() {
    on_both(manual, |server, _| {
        leads_to(server, "lost+fill", "/reference/coherence/fills");
        let heading = "/reference/site/databases#other-programs-on-sqlite";
        leads_to(server, "vacuum+restored+copy", heading);
        // Lines of an example that begin with the sign of a heading stand above it.
        let heading = "/reference/experiments#figures-for-graphs";
        leads_to(server, "string+shell+odd+characters", heading);
        for hostile in [
            "%22",
            "*",
            "AC%2FDC+%22%27%28%3A*",
            "-",
            "NEAR(",
            "%00a",
            "%01",
        ] {
            let status = server.get(&format!("/search?q={hostile}")).status;
            assert!([200, 400].contains(&status), "{hostile}: {status}");
        }
    });
}

#[test]
fn old_addresses_lead_to_the_pages_that_have_taken_their_place() {
    on_both(manual, |server, _| {
        for old in ["/reference/site", "/reference/coherence"] {
            let answer = server.get(old);
            assert_eq!(answer.status, 308, "{old}");
            let page = format!("{old}/README");
            assert_eq!(answer.field("location"), Some(&*page), "{old}");
            assert_eq!(server.get(&page).status, 200);
        }
    });
}
