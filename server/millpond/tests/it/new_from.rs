//! `millpond new --from`: blogs of other programs, as they are.

use std::path::Path;

use tempfile::TempDir;

use crate::support::{fail, run, serve, text, write};

/// The new blog of some files, and the report.
fn imported(files: &[(&str, &str)]) -> (TempDir, String) {
    let dir = lab_testkit::fast_dir();
    for (name, text) in files {
        write(dir.path(), &format!("old/{name}"), text);
    }
    let output = run(
        dir.path(),
        &["new", "new", "--template", "blog", "--from", "old"],
    );
    assert!(output.status.success(), "{}", text(&output.stderr));
    let report = text(&output.stdout);
    assert!(report.lines().count() <= 30, "{report}");
    (dir, report)
}

/// Asks for pages, and for where old addresses lead.
fn leads(dir: &Path, pages: &[(&str, &str)], old: &[(&str, &str)]) {
    let server = serve(&dir.join("new"));
    for (target, part) in pages {
        let page = server.get(target);
        assert_eq!(page.status, 200, "{target}: {}", page.text());
        assert!(page.text().contains(part), "{target}: {}", page.text());
    }
    for (from, to) in old {
        let answer = server.get(from);
        assert_eq!(answer.status, 308, "{from}: {}", answer.text());
        assert_eq!(answer.field("location"), Some(*to), "{from}");
        assert_eq!(server.get(to).status, 200, "{to}");
    }
}

#[test]
fn a_blog_of_jekyll_keeps_its_dates_drafts_and_addresses() {
    let (dir, report) = imported(&[
        (
            "_config.yml",
            "title: The old blog\ntimezone: Europe/Vienna\n",
        ),
        ("_layouts/post.html", "{{ content }}"),
        (
            "_posts/2014-05-06-hello.md",
            "---\nlayout: post\ntitle: Hello\ndate: 2014-05-06 02:12:52 +0200\n---\n<b>Bold</b>\n",
        ),
        (
            "_posts/2014-05-07-tea.md",
            "---\ntitle: Tea\npermalink: /about-tea/\n---\n## Hot {#hot}\n",
        ),
        (
            "_posts/2014-05-08-news.md",
            "---\ntitle: News\ncategories: [a, B]\n---\n{% include x %}\n",
        ),
        (
            "_posts/2014-05-09-hidden.md",
            "---\ntitle: Hidden\npublished: false\n---\n",
        ),
        ("_posts/2014-05-10-bad.md", "---\ntitle: [\n---\n"),
        ("_posts/2014-05-11-old.textile", "h1. Old"),
        ("assets/a.png", "picture"),
    ]);
    for part in [
        "From Jekyll:",
        "5 posts in data/posts/",
        "_layouts/: layouts",
        "1 files .textile, such as 2014-05-11-old.textile",
        "shortcodes and tags of templates in 1 posts",
        "data/posts/2014-05-10-bad.md:3:1",
    ] {
        assert!(report.contains(part), "{part} is not in {report}");
    }
    let pages = [
        ("/", "The old blog"),
        ("/posts/hello", "<b>Bold</b>"),
        ("/posts/hello", "2014-05-06"),
        ("/posts/tea", "id=\"hot\""),
        ("/assets/a.png", "picture"),
    ];
    let old = [
        ("/2014/05/06/hello.html", "/posts/hello"),
        ("/about-tea/", "/posts/tea"),
        ("/a/b/2014/05/08/news.html", "/posts/news"),
    ];
    leads(dir.path(), &pages, &old);
    let server = serve(&dir.path().join("new"));
    assert_eq!(server.get("/posts/hidden").status, 404);
}

#[test]
fn other_programs_are_known_by_their_settings() {
    for (files, name, target, part, old) in [
        (
            &[
                (
                    "hugo.toml",
                    "title = \"H\"\n[permalinks]\npost = \"/:year/:month/:slug/\"\n",
                ),
                ("content/post/_index.md", "---\ntitle: All\n---\n"),
                (
                    "content/post/tea/index.md",
                    "+++\ntitle = \"Tea\"\ndate = 2014-05-06T10:00:00Z\naliases = [\"/old/tea\"]\n+++\n",
                ),
                (
                    "content/post/Second.md",
                    "+++\ntitle = \"Second\"\ndate = 2014-05-07\ndraft = false\n+++\n",
                ),
                (
                    "content/post/later.md",
                    "+++\ntitle = \"Later\"\npublishDate = 2999-01-01\n+++\n",
                ),
            ][..],
            "Hugo",
            "/posts/tea",
            "Tea",
            &[("/2014/05/tea/", "/posts/tea"), ("/old/tea", "/posts/tea")][..],
        ),
        (
            &[
                ("config.toml", "base_url = \"https://x.example\"\n"),
                (
                    "content/blog/2014-05-06-tea.md",
                    "+++\ntitle = \"Tea\"\n+++\n",
                ),
            ],
            "Zola",
            "/posts/tea",
            "2014-05-06",
            &[("/blog/tea/", "/posts/tea")],
        ),
        (
            &[
                ("eleventy.config.js", "export default 1"),
                ("src/posts/2014-05-06-tea.md", "---\ntitle: Tea\n---\n"),
            ],
            "Eleventy",
            "/posts/tea",
            "Tea",
            &[],
        ),
        (
            &[
                ("mkdocs.yml", "site_name: Docs\nx: !!python/name:a.b\n"),
                ("docs/guide/start.md", "# Start\n\n!!! note\n"),
                ("docs/other/start.md", "# Other start\n"),
            ],
            "MkDocs",
            "/posts/other-start",
            "Other start",
            &[
                ("/guide/start/", "/posts/start"),
                ("/other/start/", "/posts/other-start"),
            ],
        ),
        (
            &[("a/b.md", "# Title\n")],
            "a folder of Markdown files",
            "/posts/b",
            "Title",
            &[("/a/b/", "/posts/b")],
        ),
    ] {
        let (dir, report) = imported(files);
        assert!(report.contains(&format!("From {name}:")), "{report}");
        assert!(!report.contains("fault"), "{report}");
        leads(dir.path(), &[(target, part)], old);
    }
}

#[test]
fn a_folder_without_posts_is_refused_and_makes_nothing() {
    let dir = lab_testkit::fast_dir();
    write(dir.path(), "old/a.txt", "");
    let (_, said) = fail(
        dir.path(),
        &["new", "new", "--template", "blog", "--from", "old"],
    );
    assert!(said.contains("nor Markdown files"), "{said}");
    assert!(!dir.path().join("new").exists());
    let (_, said) = fail(dir.path(), &["new", "new", "--from", "old"]);
    assert!(said.contains("--from is for --template blog"), "{said}");
}
