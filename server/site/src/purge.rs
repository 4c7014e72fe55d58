//! The end of one address in memory, by the owner.

use std::iter;

use millpond_db::Value;
use millpond_http::path;

use crate::{
    Site,
    answer::cached::{bundle_key, object_key, push_page_address},
};
use millpond_site_format::params::Given;

impl Site {
    /// Ends what is in memory of the page at `target` (a path, with or without a query string): the
    /// page for all visitors and in all languages, and the results that it is made of for a visitor
    /// without a session. Returns how many ended; `None` if no page is there.
    pub fn purge_address(&self, target: &str) -> Option<usize> {
        let generation = self.core().current.load_full();
        let plain = |target: &str| {
            let (raw, query) = target.split_once('?').unzip();
            let path = path::normalize(raw.unwrap_or(target)).ok()?;
            Some((path.into_owned(), query.map(str::to_owned)))
        };
        let (mut path, mut query) = plain(target)?;
        let rules = generation.rules.as_ref();
        if let Some(to) = rules.and_then(|rules| rules.rewrite(&path, query.as_deref())) {
            (path, query) = plain(&to)?;
        }
        let query = query.as_deref();
        let found = generation.pages.router.find(&path)?;
        let page = generation.pages.endpoints[found.page].page.as_ref()?;
        let languages = page.language.map(|at| &page.params[at].choices);
        let languages = languages
            .into_iter()
            .flatten()
            .filter_map(|value| match value {
                Value::Text(tag) => Some(&**tag),
                _ => None,
            });
        // Keys of pages go on with what is a visitor's own.
        let (mut pages, mut results) = (Vec::new(), Vec::new());
        for language in iter::once("").chain(languages) {
            let chosen = page.with_language(query, language);
            let given = Given {
                path: &found.values,
                form: &[],
                query: chosen.as_deref().or(query),
            };
            let mut values = given.values(&page.params).ok()?;
            let mut address = Vec::new();
            push_page_address(&mut address, generation.number, page, &given).ok()?;
            pages.extend([address, bundle_key(generation.number, page, &values)]);
            values.extend(page.needs.values(None));
            let queries = page.queries.iter();
            results.extend(queries.map(|query| object_key(generation.number, query, &values)));
        }
        self.log(&format!("the owner ends {target} in memory"));
        let store = &self.core().store;
        Some(store.end(|key| {
            let is_page = pages.iter().any(|page| key.starts_with(page));
            is_page || results.iter().any(|result| result == key)
        }))
    }
}
