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
    "migrations/0002_requests.sql",
    "migrations/0003_alerts.sql",
    "migrations/0004_clock.sql",
    "pages/404.html",
    "pages/index.html",
    "pages/index.sql",
    "pages/now.html",
    "pages/now.sql",
    "pages/purge.html",
    "pages/purge.sql",
    "pages/requests.html",
    "pages/requests.sql",
    "pages/routes.html",
    "pages/routes.sql",
    "pages/routes/[id].html",
    "pages/routes/[id].sql",
    "pages/why.html",
    "pages/why.sql",
    "pages/why/[id].html",
    "pages/why/[id].sql",
    "static/console.css",
    "static/favicon.svg",
    "templates/layout.html",
    "templates/layout.sql",
    "templates/parts.html",
};

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use super::FILES;

    fn walk(dir: &Path, below: &str, found: &mut Vec<String>) {
        for entry in fs::read_dir(dir).unwrap() {
            let entry = entry.unwrap();
            let name = format!("{below}{}", entry.file_name().to_str().unwrap());
            match entry.path().is_dir() {
                true => walk(&entry.path(), &format!("{name}/"), found),
                false => found.push(name),
            }
        }
    }

    #[test]
    fn all_files_of_the_site_are_built_in() {
        let mut found = Vec::new();
        let site = concat!(env!("CARGO_MANIFEST_DIR"), "/site");
        walk(Path::new(site), "", &mut found);
        // What a server makes that shows the pages while they are worked on.
        found.retain(|name| name.contains('/') && !name.starts_with("uploads/"));
        found.sort_unstable();
        let listed: Vec<&str> = FILES.iter().map(|(path, _)| *path).collect();
        assert_eq!(found, listed);
    }
}
