//! Which program a folder was made for, and where it has its posts.

use std::path::{Path, PathBuf};

use millpond_data::{Format, NameParts};
use serde_json::Value as Json;

use super::{FrontFields, fields, walk};

/// A folder with posts.
pub struct Origin {
    pub(super) generator: &'static str,
    settings: FrontFields,
    /// The folder of the posts.
    pub(super) posts: PathBuf,
    /// Folders with files for visitors, and the folder below `static/` that each becomes.
    pub(super) statics: Vec<(PathBuf, String)>,
    /// Meaning of the names of the files.
    pub(super) names: NameParts,
    /// The address of a post in the words of Jekyll and Hugo, with `:path` for that of its file.
    pub(super) address: String,
    /// The path of the posts in addresses, with a slash at its end.
    pub(super) section: String,
}

const BY_NAME: NameParts = NameParts {
    date: true,
    folder: true,
    address: false,
};

impl Origin {
    pub(super) fn of(dir: &Path) -> Option<Self> {
        Self::jekyll(dir)
            .or_else(|| Self::mkdocs(dir))
            .or_else(|| Self::eleventy(dir))
            .or_else(|| Self::hugo_or_zola(dir))
            .or_else(|| Self::plain(dir))
    }

    fn new(generator: &'static str, settings: FrontFields, posts: PathBuf) -> Self {
        Self {
            generator,
            settings,
            posts,
            statics: Vec::new(),
            names: BY_NAME,
            address: "/:path/".to_owned(),
            section: "/".to_owned(),
        }
    }

    fn jekyll(dir: &Path) -> Option<Self> {
        let posts = dir.join("_posts");
        if !posts.is_dir() {
            return None;
        }
        let settings = settings(dir, "_config.yml _config.yaml _config.toml");
        let mut origin = Self::new("Jekyll", settings.unwrap_or_default(), posts);
        let style = origin.setting(&["permalink"]).unwrap_or_default();
        let posts = origin
            .settings
            .get("collections")
            .and_then(|all| all.get("posts"));
        let own = posts.and_then(|posts| posts.get("permalink")?.as_str());
        origin.address = match own.unwrap_or(&style) {
            "" | "date" => "/:categories/:year/:month/:day/:title.html".to_owned(),
            "pretty" => "/:categories/:year/:month/:day/:title/".to_owned(),
            "none" => "/:categories/:title.html".to_owned(),
            own => format!("/{}", own.replace(":output_ext", ".html")),
        };
        let folders = ["assets", "images", "img", "files", "uploads", "downloads"];
        origin.statics_of(dir, &folders);
        Some(origin)
    }

    fn mkdocs(dir: &Path) -> Option<Self> {
        let settings = settings(dir, "mkdocs.yml mkdocs.yaml")?;
        let folder = settings
            .get("docs_dir")
            .and_then(Json::as_str)
            .unwrap_or("docs");
        let posts = dir.join(folder);
        let mut origin = Self::new("MkDocs", settings, posts);
        origin.names.date = false;
        Some(origin)
    }

    fn eleventy(dir: &Path) -> Option<Self> {
        const NAMES: &str = ".eleventy.js eleventy.config.js eleventy.config.mjs \
                             eleventy.config.cjs eleventy.config.ts";
        NAMES.split(' ').find(|name| dir.join(name).is_file())?;
        let inputs = [dir.join("content"), dir.join("src"), dir.to_owned()];
        let folders = ["posts", "blog", "articles", "notes", "writing"];
        let mut all = inputs
            .iter()
            .flat_map(|input| folders.map(|name| (input.join(name), name)));
        let (posts, name) = all.find(|(folder, _)| folder.is_dir())?;
        let mut origin = Self::new("Eleventy", FrontFields::new(), posts);
        origin.section = format!("/{name}/");
        origin.statics_of(dir, &["assets", "images", "img", "static", "public"]);
        Some(origin)
    }

    fn hugo_or_zola(dir: &Path) -> Option<Self> {
        const NAMES: &str = "hugo.toml hugo.yaml hugo.yml hugo.json config.toml config.yaml \
            config.yml config.json zola.toml config/_default/hugo.toml config/_default/config.toml \
            config/_default/hugo.yaml config/_default/config.yaml";
        let settings = settings(dir, NAMES)?;
        let is_zola = settings.contains_key("base_url");
        let folder = settings
            .get("contentdir")
            .and_then(Json::as_str)
            .unwrap_or("content");
        let mut posts = dir.join(folder);
        let english = posts.join("en");
        if english.is_dir() {
            posts = english;
        }
        if !posts.is_dir() {
            return None;
        }
        let mut origin = Self::new(if is_zola { "Zola" } else { "Hugo" }, settings, posts);
        (origin.names.date, origin.names.address) = (is_zola, true);
        origin.statics.push((dir.join("static"), String::new()));
        Some(origin)
    }

    /// A folder of Markdown files.
    fn plain(dir: &Path) -> Option<Self> {
        let mut files = Vec::new();
        walk(dir, "", 0, &mut files);
        let is_text = |name: &str| Format::of_name(name).is_some_and(|it| it.1 == Format::Markdown);
        files.iter().any(|(name, _)| is_text(name)).then(|| {
            Self::new(
                "a folder of Markdown files",
                FrontFields::new(),
                dir.to_owned(),
            )
        })
    }

    fn statics_of(&mut self, dir: &Path, names: &[&str]) {
        let folders = names
            .iter()
            .map(|name| (dir.join(name), (*name).to_owned()));
        self.statics
            .extend(folders.filter(|(folder, _)| folder.is_dir()));
    }

    /// A text of the settings; the first of some names that is there.
    pub(super) fn setting(&self, names: &[&str]) -> Option<String> {
        let mut found = names
            .iter()
            .filter_map(|name| self.settings.get(*name)?.as_str());
        found
            .next()
            .filter(|text| !text.is_empty())
            .map(str::to_owned)
    }

    /// The address of the posts of a section, as Hugo's settings have it.
    pub(super) fn address_of(&self, path: &str) -> &str {
        if self.generator == "MkDocs" && path.starts_with("blog/posts/") {
            return "/blog/:year/:month/:day/:title/";
        }
        let section = path.split_once('/').map_or("", |(section, _)| section);
        let own = self.settings.get("permalinks").and_then(|all| {
            all.get("page")
                .and_then(|page| page.get(section))
                .or_else(|| all.get(section))
        });
        own.and_then(Json::as_str).unwrap_or(&self.address)
    }

    /// Parts of the folder that have no place in the new site.
    pub(super) fn left(&self, dir: &Path) -> Vec<String> {
        const PARTS: [(&str, &str); 9] = [
            ("_layouts", "layouts"),
            ("_includes", "includes"),
            ("layouts", "layouts"),
            ("themes", "themes"),
            ("overrides", "overrides of the theme"),
            ("_plugins", "plugins"),
            ("_data", "tables; copy them into data/"),
            ("data", "tables; copy them into data/"),
            (
                "_drafts",
                "drafts; copy them into data/posts/ with the line draft: true",
            ),
        ];
        let parts = PARTS.iter().filter(|(name, _)| dir.join(name).is_dir());
        parts
            .map(|(name, what)| format!("{name}/: {what}"))
            .collect()
    }
}

/// The settings in the first of some files that is there.
fn settings(dir: &Path, names: &str) -> Option<FrontFields> {
    let name = names.split(' ').find(|name| dir.join(name).is_file())?;
    let bytes = std::fs::read(dir.join(name)).ok()?;
    let (_, format) = Format::of_name(name)?;
    Some(fields(format, &bytes, None).unwrap_or_default())
}
