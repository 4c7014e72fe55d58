//! Which error page of the site answers: `pages/404.html` for the whole site, and
//! `pages/[lang]/404.html` for the addresses of a folder.
//!
//! The nearest folder that has a page for the status, or for its kind, wins. A part of the path
//! that a folder names is a parameter of its error pages. It takes the values that the pages of the
//! folder take for it: what one of them leaves open is open.

use std::collections::BTreeSet;

use millpond_db::ValueKind;
use millpond_http::reason_phrase;

use crate::page::Endpoint;
use millpond_site_format::{
    Problem,
    params::Param,
    route::{Pattern, Segment},
    suggest::closest,
};

/// An error page for one request.
#[derive(Clone, Debug, Default)]
pub struct ErrorPage {
    /// The template's name: `pages/[lang]/404.html`.
    pub template: String,
    /// The parameters in its folder's path.
    pub names: Vec<String>,
    /// Their values.
    pub values: Vec<String>,
    /// True if each of the values is one of a list.
    pub has_known_values: bool,
}

/// The site's own error pages.
#[derive(Debug, Default)]
pub struct ErrorPages {
    site: BTreeSet<String>,
    /// Nearest first.
    folders: Vec<ErrorFolder>,
}

/// The error pages of a folder.
#[derive(Debug)]
struct ErrorFolder {
    /// As it is written: `[lang]/plays`.
    name: String,
    pattern: Pattern,
    /// `404`, `5xx`.
    names: BTreeSet<String>,
    /// The texts that each parameter of the pattern may be; any if there are none.
    choices: Vec<Vec<String>>,
}

impl ErrorPages {
    /// True if a page of this name, without its ending, is an error page.
    pub fn is_name(stem: &str) -> bool {
        let name = stem.rsplit('/').next().unwrap_or_default();
        let status = name.parse::<u16>().ok().filter(|_| name.len() == 3);
        status.is_some_and(|status| (400..600).contains(&status)) || matches!(name, "4xx" | "5xx")
    }

    /// Adds the error page of this name. Returns the parameters in its folder's path.
    ///
    /// # Errors
    /// HTTP has no such status, or the folder is no part of a path.
    pub fn add(&mut self, stem: &str) -> Result<Vec<Param>, Problem> {
        let (folder, name) = stem.rsplit_once('/').unwrap_or(("", stem));
        if let Some(status) = name.parse().ok().filter(|status| !is_known(*status)) {
            return Err(without_status(stem, name, status));
        }
        if folder.is_empty() {
            self.site.insert(name.to_owned());
            return Ok(Vec::new());
        }
        let file = format!("pages/{stem}.html");
        let mut pattern = Pattern::parse(file.as_ref(), stem)?;
        pattern.segments.pop();
        let params = pattern.params().enumerate().map(|(at, name)| Param {
            in_path: Some(at),
            ..Param::new(name, ValueKind::Text)
        });
        let params = params.collect();
        let known = self.folders.iter().position(|known| known.name == folder);
        let at = known.unwrap_or_else(|| {
            self.folders.push(ErrorFolder {
                name: folder.to_owned(),
                pattern,
                names: BTreeSet::new(),
                choices: Vec::new(),
            });
            self.folders.len() - 1
        });
        self.folders[at].names.insert(name.to_owned());
        Ok(params)
    }

    /// Puts the nearest folder first, and lets each take the values in its path that its pages
    /// take.
    pub fn finish(&mut self, endpoints: &[Endpoint]) {
        let rank = |folder: &ErrorFolder| {
            let segments = &folder.pattern.segments;
            let params = segments.iter();
            let params = params.map(|segment| segment.param().is_some());
            (usize::MAX - segments.len(), params.collect::<Vec<_>>())
        };
        self.folders.sort_by_cached_key(rank);
        for folder in &mut self.folders {
            folder.choices = choices(&folder.pattern, endpoints);
        }
    }

    /// Lets the parameters of an error page's folder be the values that its pages take.
    pub fn choose(&self, template: &str, params: &mut [Param]) {
        let stem = template.strip_prefix("pages/").unwrap_or_default();
        let folder = stem.rsplit_once('/').map(|(folder, _)| folder);
        let known = self.folders.iter();
        let Some(folder) = known.into_iter().find(|known| Some(&*known.name) == folder) else {
            return;
        };
        for (param, texts) in params.iter_mut().zip(&folder.choices) {
            param.choices = texts.iter().map(|text| text.as_str().into()).collect();
        }
    }

    /// True if a folder has error pages.
    pub fn has_folders(&self) -> bool {
        !self.folders.is_empty()
    }

    /// True if the site has a page for exactly this status.
    pub fn has(&self, status: u16) -> bool {
        self.site.contains(&status.to_string())
    }

    /// The page of the whole site for a status, or for its kind.
    pub fn of_site(&self, status: u16) -> Option<ErrorPage> {
        let name = page_for(&self.site, status)?;
        Some(ErrorPage {
            template: format!("pages/{name}.html"),
            has_known_values: true,
            ..ErrorPage::default()
        })
    }

    /// The page for a status at a path in its normal form.
    pub fn at(&self, path: &str, status: u16) -> Option<ErrorPage> {
        let of_folder = self.in_folder(path, status);
        of_folder.or_else(|| self.of_site(status))
    }

    /// The page of a folder for a status at a path in its normal form.
    pub fn in_folder(&self, path: &str, status: u16) -> Option<ErrorPage> {
        let parts: Vec<&str> = path.strip_prefix('/')?.split('/').collect();
        self.folders.iter().find_map(|folder| {
            let name = page_for(&folder.names, status)?;
            let values = folder.values(&parts)?;
            Some(folder.page(name, values))
        })
    }

    /// Each page with a status for which it is shown, and values that its folder takes: each value
    /// of a list once.
    pub fn samples(&self) -> impl Iterator<Item = (ErrorPage, u16)> {
        let of_site = self.site.iter().filter_map(|name| {
            let status = sample_status(name);
            Some((self.of_site(status)?, status))
        });
        let of_folders = self.folders.iter().flat_map(|folder| {
            let most = folder.choices.iter().map(Vec::len).max();
            let most = most.unwrap_or_default().max(1);
            let names = folder.names.iter();
            names.flat_map(move |name| {
                let pages = (0..most).map(move |number| folder.page(name, folder.sample(number)));
                pages.map(move |page| (page, sample_status(name)))
            })
        });
        of_site.chain(of_folders)
    }
}

impl ErrorFolder {
    /// The values of its parameters, if it is a folder of the path with these parts.
    fn values(&self, parts: &[&str]) -> Option<Vec<String>> {
        let parts = parts.get(..self.pattern.segments.len())?;
        let mut values = Vec::new();
        for (segment, part) in self.pattern.segments.iter().zip(parts) {
            match segment {
                Segment::Literal(text) if text == part => {}
                Segment::Param(_) if self.takes(values.len(), part) => {
                    values.push((*part).to_owned());
                }
                // A folder is no rest of a path.
                Segment::Literal(_) | Segment::Param(_) | Segment::Rest(_) => return None,
            }
        }
        Some(values)
    }

    fn takes(&self, at: usize, part: &str) -> bool {
        let texts = self.choices.get(at).map_or(&[][..], Vec::as_slice);
        let is_one = texts.is_empty() || texts.iter().any(|text| text == part);
        !part.is_empty() && is_one
    }

    fn page(&self, name: &str, values: Vec<String>) -> ErrorPage {
        ErrorPage {
            template: format!("pages/{}/{name}.html", self.name),
            names: self.pattern.params().map(str::to_owned).collect(),
            values,
            has_known_values: self.choices.iter().all(|texts| !texts.is_empty()),
        }
    }

    /// The values of this number, from the beginning again where there are fewer.
    fn sample(&self, number: usize) -> Vec<String> {
        let samples = self.choices.iter().map(|texts| match texts.len() {
            0 => "x".to_owned(),
            count => texts[number % count].clone(),
        });
        samples.collect()
    }
}

/// The texts that the pages of a folder take for each parameter of its path; any if there are none.
fn choices(folder: &Pattern, endpoints: &[Endpoint]) -> Vec<Vec<String>> {
    let count = folder.params().count();
    let of_folder = endpoints.iter().filter(|endpoint| {
        let segments = &endpoint.pattern.segments;
        segments.starts_with(&folder.segments)
    });
    let of_folder: Vec<&Endpoint> = of_folder.collect();
    let texts = (0..count).map(|at| {
        let mut all = BTreeSet::new();
        for endpoint in &of_folder {
            match endpoint.choices.get(at) {
                Some(texts) if !texts.is_empty() => all.extend(texts.iter().cloned()),
                _ => return Vec::new(),
            }
        }
        all.into_iter().collect()
    });
    texts.collect()
}

/// The name among these of the page for a status, or for its kind.
fn page_for(names: &BTreeSet<String>, status: u16) -> Option<&str> {
    let of_kind = format!("{}xx", status / 100);
    let wanted = [status.to_string(), of_kind];
    let found = wanted.iter().find_map(|name| names.get(name));
    found.map(String::as_str)
}

fn sample_status(name: &str) -> u16 {
    name.replace("xx", "00").parse().unwrap_or(500)
}

fn is_known(status: u16) -> bool {
    reason_phrase(status) != "Unknown"
}

fn without_status(stem: &str, name: &str, status: u16) -> Problem {
    let known = (400..600).filter(|status| is_known(*status));
    let known: Vec<String> = known.map(|status| status.to_string()).collect();
    let message = format!("there is no status {status}, so this error page is never shown");
    let problem = Problem::new(format!("pages/{stem}.html"), message);
    let folder = &stem[..stem.len() - name.len()];
    match closest(name, known.iter().map(String::as_str)) {
        Some(near) => problem.hint(format!("did you mean `pages/{folder}{near}.html`?")),
        None => problem.hint(format!(
            "`pages/{folder}4xx.html` is shown for those without a page"
        )),
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn names_of_error_pages() {
        for (stem, is_one) in [
            ("404", true),
            ("422", true),
            ("4xx", true),
            ("5xx", true),
            ("399", false),
            ("600", false),
            ("0404", false),
            ("+404", false),
            ("3xx", false),
            ("errors/404", true),
            ("[lang]/plays/5xx", true),
            ("404/index", false),
            ("2024", false),
        ] {
            assert_eq!(ErrorPages::is_name(stem), is_one, "{stem}");
        }
    }

    #[test]
    fn the_page_of_the_status_comes_before_that_of_its_kind() {
        let mut pages = ErrorPages::default();
        let template = |pages: &ErrorPages, status| pages.of_site(status).map(|page| page.template);
        assert_eq!(template(&pages, 404), None);
        for stem in ["4xx", "422"] {
            pages.add(stem).unwrap();
        }
        assert_eq!(template(&pages, 422).as_deref(), Some("pages/422.html"));
        assert_eq!(template(&pages, 404).as_deref(), Some("pages/4xx.html"));
        assert_eq!(template(&pages, 503), None);
        let unknown = pages.add("419").unwrap_err().to_string();
        assert!(unknown.contains("there is no status 419"), "{unknown}");
        let unknown = pages.add("[lang]/419").unwrap_err().to_string();
        assert!(
            unknown.contains("did you mean `pages/[lang]/4"),
            "{unknown}"
        );
    }

    fn endpoint(stem: &str, choices: &[&[&str]]) -> Endpoint {
        let pattern = Pattern::parse(Path::new("x"), stem).unwrap();
        let texts = |texts: &&[&str]| texts.iter().map(|text| (*text).to_owned()).collect();
        let mut endpoint = Endpoint::new(pattern, None, Vec::new());
        endpoint.choices = choices.iter().map(texts).collect();
        endpoint
    }

    #[test]
    fn the_nearest_folder_with_a_page_for_the_status_wins() {
        let mut pages = ErrorPages::default();
        for stem in [
            "404",
            "5xx",
            "[lang]/404",
            "[lang]/4xx",
            "[lang]/plays/403",
            "en/404",
            "[lang]/[id]/404",
            "index/404",
        ] {
            pages.add(stem).unwrap();
        }
        pages.finish(&[
            endpoint("[lang]/index", &[&["en", "de"]]),
            endpoint("[lang]/plays/[slug]", &[&["de", "für"], &[]]),
            endpoint("[lang]/[id]/x", &[&["de"], &[]]),
        ]);
        for (path, status, expected) in [
            ("/", 404, "404 "),
            ("/xx/plays", 404, "404 "),
            ("/robots.txt", 404, "404 "),
            ("/de", 404, "[lang]/404 de"),
            ("/de/", 404, "[lang]/404 de"),
            ("/für/plays/a/b", 405, "[lang]/4xx für"),
            ("/de/plays", 403, "[lang]/plays/403 de"),
            ("/de/plays", 404, "[lang]/[id]/404 de,plays"),
            ("/en", 404, "en/404 "),
            ("/en", 422, "[lang]/4xx en"),
            ("/de/x", 503, "5xx "),
            ("/index/x", 404, "index/404 "),
            ("", 404, "404 "),
        ] {
            let page = pages.at(path, status).unwrap();
            let name = page.template.strip_prefix("pages/").unwrap();
            let name = name.strip_suffix(".html").unwrap();
            let found = format!("{name} {}", page.values.join(","));
            assert_eq!(found, expected, "{path} {status}");
        }
        assert!(pages.at("/de", 404).unwrap().has_known_values);
        assert!(!pages.at("/de/plays", 404).unwrap().has_known_values);
        assert!(pages.at("/", 422).is_none());
    }
}
