//! Answers by the rules of the configuration: redirects, rewrites, guards and fields.

use std::sync::Arc;

use millpond_http::{Reply, Request};

use super::{SiteService, admission::Admission};
use crate::core::Generation;
use millpond_site_format::rules::{Rules, split};

impl SiteService {
    /// The answer at a target that the client does not see. It is never a redirect: if the rewrite
    /// applied to the new address too, the client would be redirected for ever.
    fn rewritten(
        &self,
        generation: &Arc<Generation>,
        key: &mut Vec<u8>,
        request: &Request<'_>,
        target: &str,
    ) -> Reply {
        let (path, query) = split(target);
        let path = generation.place_of(&path);
        // What a page sees of the request is what it would see if the client had asked for this.
        let mut inner = request.clone();
        inner.path = target.split_once('?').map_or(target, |(path, _)| path);
        inner.query = query;
        inner.target = target;
        if let Some(found) = generation.pages.router.find(path) {
            return self.page(generation, key, &inner, path, &found);
        }
        match generation.addresses.behind(&generation.statics, path) {
            Some(found) => self.file(generation, &inner, &found),
            None => self.nothing(generation, &inner).into(),
        }
    }

    /// The answer where the configuration has rules: redirects, then rewrites, then the page; and
    /// fields on all of them.
    pub(super) fn answer_by_rules(
        &self,
        rules: &Rules,
        generation: &Arc<Generation>,
        key: &mut Vec<u8>,
        request: &Request<'_>,
        path: &str,
    ) -> Reply {
        let admission = match &rules.guards {
            None => Ok(Admission::default()),
            Some(_) => generation.admit_at(request, path),
        };
        let reply = match admission {
            Err(refused) => self
                .rule_explained(generation, request, path, refused)
                .into(),
            Ok(admission) => {
                let reply = if let Some(response) = rules.redirect(path, request.query) {
                    response.into()
                } else if let Some(target) = rules.rewrite(path, request.query) {
                    self.rewritten(generation, key, request, &target)
                } else {
                    self.answer(generation, key, request, path)
                };
                admission.apply(reply)
            }
        };
        rules.with_fields(path, reply)
    }
}
