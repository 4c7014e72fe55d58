//! Answers by the rules of the configuration: redirects, rewrites, guards and fields.

use millpond_http::Reply;

use super::{SiteService, admission::Admission, context::RequestContext};
use millpond_site_format::rules::{Rules, split};

impl SiteService {
    /// The answer at a target that the client does not see. It is never a redirect: if the rewrite
    /// applied to the new address too, the client would be redirected for ever.
    fn rewritten(&self, at: RequestContext<'_>, key: &mut Vec<u8>, target: &str) -> Reply {
        let generation = at.generation;
        let (path, query) = split(target);
        let path = generation.place_of(&path);
        // What a page sees of the request is what it would see if the client had asked for this.
        let mut inner = at.request.clone();
        inner.path = target.split_once('?').map_or(target, |(path, _)| path);
        inner.query = query;
        inner.target = target;
        let at = RequestContext {
            generation,
            request: &inner,
            path,
            route: at.route,
        };
        if let Some(found) = generation.pages.router.find(path) {
            return self.page(at, key, &found);
        }
        match generation.addresses.behind(&generation.statics, path) {
            Some(found) => self.file(at, &found),
            None => self.nothing(at).into(),
        }
    }

    /// The answer where the configuration has rules: redirects, then rewrites, then the page; and
    /// fields on all of them.
    pub(super) fn answer_by_rules(
        &self,
        rules: &Rules,
        at: RequestContext<'_>,
        key: &mut Vec<u8>,
    ) -> Reply {
        let (request, path) = (at.request, at.path);
        let admission = match &rules.guards {
            None => Ok(Admission::default()),
            Some(_) => at.generation.admit_at(request, path),
        };
        let reply = match admission {
            Err(refused) => self.rule_explained(at, refused).into(),
            Ok(admission) => {
                let reply = if let Some(response) = rules.redirect(path, request.query) {
                    response.into()
                } else if let Some(target) = rules.rewrite(path, request.query) {
                    self.rewritten(at, key, &target)
                } else {
                    self.answer(at, key)
                };
                admission.apply(reply)
            }
        };
        rules.with_fields(path, reply)
    }
}
