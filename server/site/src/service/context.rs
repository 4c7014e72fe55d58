//! A request on its way through the service.

use std::{path::PathBuf, sync::Arc};

use millpond_http::Request;

use crate::{
    core::{Core, Generation},
    dev::refusals::files_of,
    labels::KnownRoute,
};
use millpond_site_compile::page::{Form, Page};
use millpond_site_format::{access::SessionRequirements, route::Match};

/// Context of a request from the moment at which its path is known.
#[derive(Clone, Copy)]
pub(crate) struct RequestContext<'r> {
    pub(crate) generation: &'r Arc<Generation>,
    pub(crate) request: &'r Request<'r>,
    /// The path in its normal form, at which an answer is looked for.
    pub(crate) path: &'r str,
    /// Place for the route whose page or form answers.
    pub(crate) route: &'r KnownRoute,
}

impl RequestContext<'_> {
    /// Notes the route that answers.
    #[inline]
    pub(crate) fn note_route(self, found: &Match<'_>) {
        let number = self.generation.routes.get(found.page);
        self.route.set(number.copied().unwrap_or_default());
    }
}

/// Thing that a visitor is to enter.
#[derive(Clone, Copy)]
pub(super) enum Entered<'e> {
    Page(&'e Page),
    Form(&'e Form),
}

impl<'e> Entered<'e> {
    pub(super) fn needs(self) -> &'e SessionRequirements {
        match self {
            Self::Page(page) => &page.needs,
            Self::Form(form) => &form.needs,
        }
    }

    /// Returns whether this client is answered as a program.
    pub(super) fn is_api_for(self, request: &Request<'_>) -> bool {
        match self {
            Self::Page(page) => page.is_api_for(request),
            Self::Form(form) => !form.is_for_people(),
        }
    }

    /// Returns the files of which it is made, for the developer.
    pub(super) fn files(self, core: &Core) -> Vec<PathBuf> {
        match self {
            Self::Page(page) => files_of(core, page),
            Self::Form(form) => vec![form.file.clone()],
        }
    }
}
