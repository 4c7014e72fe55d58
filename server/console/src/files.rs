//! The site of the console, as it is in `site/`.

use millpond_site::EmbeddedFiles;

/// The settings of the site.
pub(crate) const SETTINGS: &str = include_str!("../site/millpond.toml");

macro_rules! files {
    ($($path:literal,)+) => {
        &[$(($path, include_str!(concat!("../site/", $path))),)+]
    };
}

/// The files of the site but for its settings, by their paths in it.
pub const FILES: EmbeddedFiles = files! {
    "migrations/0001_history.sql",
    "pages/404.html",
    "pages/index.html",
    "pages/index.sql",
    "pages/now.html",
    "pages/now.sql",
    "pages/purge.html",
    "pages/purge.sql",
    "pages/routes.html",
    "pages/routes.sql",
    "pages/routes/[id].html",
    "pages/routes/[id].sql",
    "pages/why.html",
    "pages/why.sql",
    "pages/why/[id].html",
    "pages/why/[id].sql",
    "static/console.css",
    "templates/layout.html",
    "templates/layout.sql",
    "templates/parts.html",
};
