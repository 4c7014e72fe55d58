//! The sites that `millpond new` can make: which there are, and their files.

use clap::ValueEnum;

/// A site to start from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Template {
    /// Notes with a form to write them: the smallest site with all of its parts
    #[default]
    Notes,
    /// A blog of Markdown files: tags, search, feed and sitemap
    Blog,
    /// A catalogue with search and filters, a basket, accounts, orders and an editor's desk
    Shop,
    /// Tasks as JSON, each account with its own
    Api,
}

/// Names below a folder beside this module, and what is in the files.
macro_rules! files {
    ($folder:literal: $($name:literal,)*) => {
        &[$(($name, include_str!(concat!($folder, "/", $name))),)*]
    };
}

/// A path below the new folder, and the text of the file.
type File = (&'static str, &'static str);

impl Template {
    /// The files in two parts: those of the template alone, and those of an example of the project.
    const fn parts(self) -> [&'static [File]; 2] {
        match self {
            Self::Notes => [NOTES, &[]],
            Self::Blog => [BLOG, &[]],
            Self::Shop => [SHOP, EXAMPLE_SHOP],
            Self::Api => [API, &[]],
        }
    }

    /// Iterates over the files: the path of each below the new folder, and its content.
    pub fn files(self) -> impl Iterator<Item = File> {
        let ignored = (".gitignore", include_str!("files/gitignore"));
        let parts = self.parts().into_iter().flatten().copied();
        std::iter::once(ignored).chain(parts)
    }
}

const NOTES: &[File] = files!("files/notes":
    "README.md",
    "migrations/0001_notes.postgres.sql",
    "migrations/0001_notes.sql",
    "millpond.toml",
    "pages/index.html",
    "pages/index.sql",
    "pages/note.post.postgres.sql",
    "pages/note.post.sql",
    "pages/notes/[id].html",
    "pages/notes/[id].sql",
    "static/style.css",
    "templates/layout.html",
);

const BLOG: &[File] = files!("files/blog":
    "README.md",
    "data/pages/about.md",
    "data/pages/imprint.md",
    "data/posts/hello.md",
    "data/posts/how-it-looks.md",
    "migrations/0001_posts.postgres.sql",
    "migrations/0001_posts.sql",
    "migrations/0002_search.postgres.sql",
    "migrations/0002_search.sqlite.sql",
    "millpond.toml",
    "pages/404.html",
    "pages/4xx.html",
    "pages/5xx.html",
    "pages/pages/[slug].html",
    "pages/pages/[slug].sql",
    "pages/feed.atom.html",
    "pages/feed.atom.sql",
    "pages/index.html",
    "pages/index.sql",
    "pages/posts/[slug].html",
    "pages/posts/[slug].postgres.sql",
    "pages/posts/[slug].sql",
    "pages/preview/[word].html",
    "pages/preview/[word].sql",
    "pages/robots.txt.html",
    "pages/search.html",
    "pages/search.postgres.sql",
    "pages/search.sqlite.sql",
    "pages/sitemap.xml.html",
    "pages/sitemap.xml.sql",
    "pages/tags.html",
    "pages/tags.postgres.sql",
    "pages/tags.sql",
    "pages/tags/[tag].html",
    "pages/tags/[tag].postgres.sql",
    "pages/tags/[tag].sql",
    "static/favicon.svg",
    "static/style.css",
    "templates/excerpt.html",
    "templates/footer.html",
    "templates/layout.html",
    "templates/list.html",
    "templates/menu.html",
    "templates/menu.sql",
    "templates/pager.html",
    "templates/post.html",
    "templates/site.html",
    "templates/words.html",
);

/// Files that differ from the example: less to sell.
const SHOP: &[File] = files!("files/shop":
    "README.md",
    "migrations/0002_catalogue.sql",
    "millpond.toml",
);

const EXAMPLE_SHOP: &[File] = files!("../../../../examples/shop":
    "migrations/0001_shop.postgres.sql",
    "migrations/0001_shop.sql",
    "migrations/0003_search.postgres.sql",
    "migrations/0003_search.sqlite.sql",
    "migrations/0004_cover.sql",
    "pages/403.html",
    "pages/404.html",
    "pages/4xx.html",
    "pages/5xx.html",
    "pages/account.html",
    "pages/account.sql",
    "pages/albums.csv.sql",
    "pages/albums.html",
    "pages/albums.sql",
    "pages/albums/[id].html",
    "pages/albums/[id].sql",
    "pages/albums/[id]/cover.svg.html",
    "pages/albums/[id]/cover.svg.sql",
    "pages/api/albums.post.sql",
    "pages/api/albums.sql",
    "pages/api/albums/[id].delete.sql",
    "pages/api/albums/[id].patch.sql",
    "pages/api/albums/[id].sql",
    "pages/artists.html",
    "pages/artists.sql",
    "pages/artists/[id].html",
    "pages/artists/[id].sql",
    "pages/basket.html",
    "pages/basket.post.sql",
    "pages/basket.sql",
    "pages/basket/remove.post.sql",
    "pages/charts.html",
    "pages/charts.sql",
    "pages/editor.html",
    "pages/editor.sql",
    "pages/editor/albums/[id].html",
    "pages/editor/albums/[id].post.sql",
    "pages/editor/albums/[id].sql",
    "pages/editor/albums/[id]/delete.post.sql",
    "pages/editor/albums/[id]/remove.post.sql",
    "pages/editor/albums/[id]/review.post.sql",
    "pages/editor/albums/[id]/tracks.post.sql",
    "pages/editor/albums/new.html",
    "pages/editor/albums/new.post.sql",
    "pages/editor/albums/new.sql",
    "pages/editor/artists/new.html",
    "pages/editor/artists/new.post.sql",
    "pages/editor/artists/new.sql",
    "pages/editor/reviews/[id].html",
    "pages/editor/reviews/[id].post.sql",
    "pages/editor/reviews/[id].sql",
    "pages/editor/reviews/[id]/delete.post.sql",
    "pages/editor/sales.csv.sql",
    "pages/feed.rss.html",
    "pages/feed.rss.sql",
    "pages/index.html",
    "pages/index.sql",
    "pages/login.html",
    "pages/login.post.sql",
    "pages/login.sql",
    "pages/logout.post.sql",
    "pages/order.post.sql",
    "pages/orders/[id].html",
    "pages/orders/[id].sql",
    "pages/register.html",
    "pages/register.post.sql",
    "pages/reviews.html",
    "pages/reviews.sql",
    "pages/robots.txt.html",
    "pages/search.html",
    "pages/search.postgres.sql",
    "pages/search.sqlite.sql",
    "pages/sitemap.xml.html",
    "pages/sitemap.xml.sql",
    "pages/tracks.html",
    "pages/tracks.sql",
    "static/favicon.svg",
    "static/style.css",
    "templates/address.html",
    "templates/album_fields.html",
    "templates/layout.html",
    "templates/macros.html",
    "templates/menu.html",
    "templates/menu.sql",
    "templates/track_table.html",
);

const API: &[File] = files!("files/api":
    "README.md",
    "migrations/0001_tasks.postgres.sql",
    "migrations/0001_tasks.sql",
    "millpond.toml",
    "pages/404.html",
    "pages/5xx.html",
    "pages/api/login.post.sql",
    "pages/api/logout.post.sql",
    "pages/api/me.sql",
    "pages/api/register.post.sql",
    "pages/api/tasks.csv.sql",
    "pages/api/tasks.post.sql",
    "pages/api/tasks.sql",
    "pages/api/tasks/[id].delete.sql",
    "pages/api/tasks/[id].patch.sql",
    "pages/api/tasks/[id].sql",
    "pages/index.html",
    "static/style.css",
    "templates/layout.html",
);

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::path::Path;

    use super::*;

    /// The paths of the files below a folder, without what `millpond serve` makes there.
    fn below(folder: &Path, prefix: &str, found: &mut BTreeSet<String>) {
        for entry in std::fs::read_dir(folder).unwrap() {
            let entry = entry.unwrap();
            let name = format!("{prefix}{}", entry.file_name().to_str().unwrap());
            let is_made =
                name.starts_with("site.db") || ["session.key", "uploads"].contains(&&*name);
            if is_made {
                continue;
            }
            if entry.path().is_dir() {
                below(&entry.path(), &format!("{name}/"), found);
            } else {
                found.insert(name);
            }
        }
    }

    #[test]
    fn no_file_is_forgotten() {
        let here = Path::new(env!("CARGO_MANIFEST_DIR"));
        for (template, folders) in [
            (Template::Notes, &["src/new_site/files/notes"] as &[_]),
            (Template::Blog, &["src/new_site/files/blog"]),
            (
                Template::Shop,
                &["src/new_site/files/shop", "../../examples/shop"],
            ),
            (Template::Api, &["src/new_site/files/api"]),
        ] {
            let mut found = BTreeSet::from([".gitignore".to_owned()]);
            for folder in folders {
                below(&here.join(folder), "", &mut found);
            }
            let listed = template.files().map(|(name, _)| name.to_owned());
            assert_eq!(listed.collect::<BTreeSet<_>>(), found, "{template:?}");
        }
    }

    #[test]
    fn all_together_are_small() {
        let bytes =
            |template: &Template| template.files().map(|(_, text)| text.len()).sum::<usize>();
        let all: usize = Template::value_variants().iter().map(bytes).sum();
        assert!(all < 200_000, "{all}");
    }
}
