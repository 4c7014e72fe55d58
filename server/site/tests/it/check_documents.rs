//! What `millpond check` notes of links and pictures in Markdown files.

use millpond_site::{Config, Problem, check};

use crate::support::folder;

/// The notes on a site with these files.
fn notes(files: &[(&str, &str)]) -> Vec<String> {
    let dir = folder(files);
    let config = Config::read(dir.path()).unwrap();
    let report = check(dir.path(), &config).unwrap();
    report.notes.iter().map(Problem::to_string).collect()
}

const TABLES: (&str, &str) = (
    "migrations/0009_posts.sql",
    "create table posts (slug text primary key, title text, link text, body text, _file text not null);
     create table pages (slug text primary key, title text, body text, _file text not null);",
);
const POST_SQL: (&str, &str) = (
    "pages/p/[slug].sql",
    "-- name: post :one\nselect slug, body from posts where slug = :slug;\n",
);
const POST: (&str, &str) = (
    "pages/p/[slug].html",
    "{{ post.body | markdown(document = post.slug, folders = false) }}",
);
const PAGE_SQL: (&str, &str) = (
    "pages/pages/[slug].sql",
    "-- name: page :one\nselect slug, body from pages where slug = :slug;\n",
);
const PAGE: (&str, &str) = (
    "pages/pages/[slug].html",
    "{{ page.body | markdown(document = page.slug) }}",
);

/// The notes on posts and the other files.
fn noted(files: &[(&str, &str)]) -> Vec<String> {
    let site = [TABLES, POST_SQL, POST, PAGE_SQL, PAGE];
    notes(&[&site, files].concat())
}

const LEADS_NOWHERE: &str = "---\ntitle: A\nlink: \"[x](none.md)\"\n---\n\n[ok](b.md) [far](../b.md#x) [page](/p/b) \
     [site](https://x.example/a.md)\n![ok](/cup.jpg) ![below](../in/deep.jpg)\n\n\
     [gone](c.md)\n![beside](cup.jpg) ![none](/cupp.jpg)\n\n    [code](none.md)\n\n\
     ![missing](tea.jpg) [nowhere](/q/b) [pdf](/static/a.pdf)\n";

#[test]
fn links_and_pictures_in_markdown_files_lead_somewhere() {
    let files = [
        ("data/posts/a.md", LEADS_NOWHERE),
        ("data/posts/in/b.md", "# B\n"),
        ("static/cup.jpg", "x"),
        ("static/a.pdf", "x"),
        ("static/in/deep.jpg", "x"),
    ];
    let expected = [
        "data/posts/a.md:9:1: leads to c.md, and there is no such file\n  hint: did you mean b.md?",
        "data/posts/a.md:10:1: shows cup.jpg, which is looked for beside the page, and /p/cup.jpg is no picture\n  hint: did you mean /cup.jpg?",
        "data/posts/a.md:10:20: shows /cupp.jpg, and there is no such file\n  hint: did you mean /cup.jpg?",
        "data/posts/a.md:14:1: shows tea.jpg, which is looked for beside the page, and /p/tea.jpg is no picture\n  hint: put the picture into static/ and write /tea.jpg",
        "data/posts/a.md:14:21: leads to /q/b, and there is no such page\n  hint: no page, file or rule has this address",
        "data/posts/a.md:14:37: leads to /static/a.pdf, and there is no such file\n  hint: did you mean /a.pdf?",
    ];
    assert_eq!(noted(&files), expected);
    let plain = [TABLES, POST_SQL, ("pages/p/[slug].html", "{{ post.body }}")];
    assert!(notes(&[&plain[..], &files].concat()).is_empty());
}

#[test]
fn links_that_lead_somewhere_are_not_noted() {
    let text = "---\ntitle: A\n---\n[p](/p/b?x=1#y) [q](/p/B%20c) [r](B%20c.md) [s](d.MD) [t](f.markdown)\n\
                [old](/2019/05/17/tea/) [former](former.md) [rewritten](/files/x.txt) ![r](photo/x.jpg)\n\
                [feed](/feed.atom) [home](/) [folder](/guide/) [page](/about.html) [up](../about)\n\
                [anchor](#x) [query](?a=b) [mail](mailto:a@b.md) <me@b.md> [tel](tel:1) [o](//x.example/y)\n\
                ![data](data:image/png;base64,xx) ![up](/uploads/x.jpg) ![up](../uploads/x.jpg)\n\
                [outside](../../notes.md) [braces]({{x}}/a.md) [b c](<B c.md>) [fixed](special.md) ![made](/made/1)\n\
                ![made](../made/1) [encoded](/%61bout.html) [csv](/p/none)\n";
    let files = [
        ("data/posts/a.md", text),
        ("data/posts/in/b.md", "# B\n"),
        ("data/posts/d.MD", "D"),
        ("data/posts/f.markdown", "F"),
        (
            "data/posts/B c.md",
            "\n\n---\ntitle: \"[x](none.md)\"\n---\n",
        ),
        ("notes.md", "x"),
        ("static/guide/index.html", "x"),
        ("static/about.html", "x"),
        ("pages/index.html", "x"),
        ("pages/feed.atom.html", "x"),
        ("pages/p/special.html", "x"),
        (
            "pages/made/[id].sql",
            "-- param: id integer\n-- bytes: picture.p type image/png\n-- name: picture :one\nselect x'00' as p where :id = :id;\n",
        ),
        (
            "millpond.toml",
            "[[redirect]]\nfrom = \"/:year/:month/:day/:slug/\"\nto = \"/p/:slug\"\n\
            [[redirect]]\nfrom = \"/p/former\"\nto = \"/p/b\"\n[[rewrite]]\nfrom = \"/files/*\"\nto = \"/guide/*\"\n\
            [[rewrite]]\nfrom = \"/p/photo/*\"\nto = \"/guide/*\"\n",
        ),
    ];
    let found = noted(&files);
    let found: Vec<&String> = found
        .iter()
        .filter(|note| note.starts_with("data/"))
        .collect();
    assert!(found.is_empty(), "{found:#?}");
}

#[test]
fn a_link_to_a_file_of_another_table_is_told_the_address_of_its_page() {
    let files = [
        (
            "data/posts/a.md",
            "[x](../pages/about.md)\n\n[y](about.md) [z](own.md)\n",
        ),
        ("data/posts/own.md", "---\nslug: other\n---\n"),
        (
            "data/pages/about.md",
            "[back](../posts/a.md) [mine](own.md)\n\n![none](x.jpg)\n",
        ),
        ("data/pages/own.md", "x"),
    ];
    let expected = [
        "data/pages/about.md:1:1: leads to data/posts/a.md, which is of the table posts: only links to files of the same table lead to pages\n  hint: write the address of its page: /p/a",
        "data/pages/about.md:3:1: shows x.jpg, which is looked for beside the page, and /pages/x.jpg is no picture\n  hint: put the picture into static/ and write /x.jpg",
        "data/posts/a.md:1:1: leads to data/pages/about.md, which is of the table pages: only links to files of the same table lead to pages\n  hint: write the address of its page: /pages/about",
        "data/posts/a.md:3:1: leads to about.md, and there is no such file\n  hint: did you mean data/pages/about.md? Write the address of its page: /pages/about",
        "data/posts/a.md:3:15: leads to data/posts/own.md, whose slug is other: a link to a file leads to the name of the file\n  hint: write the address of its page: /p/other",
    ];
    assert_eq!(noted(&files), expected);
    // A path with the folder of the table leads to the others, where the addresses are those of
    // the folders.
    let posts = "{{ post.body | markdown(document = \"p/\" ~ post.slug) }}";
    let tree = [
        TABLES,
        POST_SQL,
        ("pages/p/[slug].html", posts),
        PAGE_SQL,
        PAGE,
    ];
    let links = ("data/posts/a.md", "[x](../pages/about.md)\n");
    assert!(
        notes(&[&tree[..], &[links, files[3], ("data/pages/about.md", "x")]].concat()).is_empty()
    );
}

#[test]
fn a_template_that_leaves_links_to_files_as_they_are_is_noted_once() {
    let plain = [
        TABLES,
        POST_SQL,
        ("pages/p/[slug].html", "{{ post.body | markdown }}"),
    ];
    let posts = [
        ("data/posts/a.md", "[x](b.md) [y](a.md)"),
        ("data/posts/b.md", "[x](a.md)"),
    ];
    let expected = [
        "data/posts/a.md:1:1: leads to b.md as it is written, at which nothing answers\n  \
         hint: with `markdown(document = post.slug)` in the template, links between files lead to pages",
    ];
    assert_eq!(notes(&[&plain[..], &posts].concat()), expected);
}

#[test]
fn of_many_dead_links_the_first_are_noted_and_the_rest_are_counted() {
    let text = "[x](/none) ![y](/none.jpg)\n\n".repeat(5_000);
    let found = noted(&[("data/posts/a.md", &text), ("static/some.jpg", "x")]);
    assert_eq!(found.len(), 101);
    assert_eq!(
        found[100],
        "data: 9900 more links and pictures in Markdown files lead nowhere\n  hint: correct those above to see them"
    );
}
