//! How a route is handled: on the worker, on a thread that may block, while the body arrives, or
//! from the store.

use crate::failure::Failure;
use crate::page::Page;
use crate::param::{Param, ParamTexts, Params, ReadParams};
use crate::reading::BodyReader;
use crate::request::Request;
use crate::response::{IntoResponse, Response};
use crate::store::Store;

/// Handler of a route: made by [`quick`], [`blocking`], [`reading`] or [`stored`].
pub struct Handler {
    pub(crate) call: HandlerCall,
    /// How many parameters its function takes.
    pub(crate) params: usize,
    pub(crate) body_limit: Option<u64>,
}

pub(crate) type RequestJob = Box<dyn FnOnce(&Request<'_>) -> Response + Send>;
pub(crate) type ReadingJob = Box<dyn FnOnce(&Request<'_>, BodyReader) -> Response + Send>;
/// Called again if the rows that it had read changed while it read on.
pub(crate) type PageJob = Box<dyn Fn(&mut Page) -> Response + Send>;

/// Reads the parameters, and gives what is to be called with them.
type Begin<J> = Box<dyn Fn(&ParamTexts<'_>) -> Result<J, Failure> + Send + Sync>;
type QuickCall =
    Box<dyn Fn(&Request<'_>, &ParamTexts<'_>) -> Result<Response, Failure> + Send + Sync>;

pub(crate) enum HandlerCall {
    Quick(QuickCall),
    Blocking(Begin<RequestJob>),
    Reading(Begin<ReadingJob>),
    Stored(Store, Begin<PageJob>),
}

impl Handler {
    /// Limits the body to this number of bytes, if that is less than `limits.body`; beyond it 413.
    #[must_use]
    pub fn body_limit(mut self, bytes: u64) -> Self {
        self.body_limit = Some(bytes);
        self
    }
}

/// A function of a request and of the parameters `P` of its route, in the order of the pattern.
pub trait HandleRequest<P>: Send + Sync + 'static {
    #[doc(hidden)]
    fn handle(&self, request: &Request<'_>, params: P) -> Response;
}

/// A function of a request, the reader of its body, and the parameters `P` of its route.
pub trait ReadRequest<P>: Send + Sync + 'static {
    #[doc(hidden)]
    fn handle(&self, request: &Request<'_>, body: BodyReader, params: P) -> Response;
}

/// A function of a page and of the parameters `P` of its route.
pub trait MakePage<P>: Send + Sync + 'static {
    #[doc(hidden)]
    fn make(&self, page: &mut Page, params: P) -> Response;
}

macro_rules! functions {
    ($($($name:ident)*;)*) => {
        $(
            impl<Function, Output, $($name: Param),*> HandleRequest<($($name,)*)> for Function
            where
                Function: Fn(&Request<'_>, $($name),*) -> Output + Send + Sync + 'static,
                Output: IntoResponse,
            {
                #[allow(non_snake_case, reason = "one name for type and value")]
                fn handle(&self, request: &Request<'_>, ($($name,)*): ($($name,)*)) -> Response {
                    request.answered(self(request, $($name),*).into_response())
                }
            }

            impl<Function, Output, $($name: Param),*> ReadRequest<($($name,)*)> for Function
            where
                Function:
                    Fn(&Request<'_>, BodyReader, $($name),*) -> Output + Send + Sync + 'static,
                Output: IntoResponse,
            {
                #[allow(non_snake_case, reason = "one name for type and value")]
                fn handle(
                    &self,
                    request: &Request<'_>,
                    body: BodyReader,
                    ($($name,)*): ($($name,)*),
                ) -> Response {
                    request.answered(self(request, body, $($name),*).into_response())
                }
            }

            impl<Function, Output, $($name: Param),*> MakePage<($($name,)*)> for Function
            where
                Function: Fn(&mut Page, $($name),*) -> Output + Send + Sync + 'static,
                Output: IntoResponse,
            {
                #[allow(non_snake_case, reason = "one name for type and value")]
                fn make(&self, page: &mut Page, ($($name,)*): ($($name,)*)) -> Response {
                    self(page, $($name),*).into_response()
                }
            }
        )*
    };
}

functions! {
    ;
    A;
    A B;
    A B C;
    A B C D;
    A B C D E;
    A B C D E F;
    A B C D E F G;
    A B C D E F G H;
}

/// A handler that is called on the worker, between other requests: it **must not block** and should
/// take less than a millisecond. It costs no change of threads.
///
/// The function gets the request, then the parameters of the route's pattern in their order. The
/// types are named: `|request: &Request, id: u64| …`.
#[must_use]
pub fn quick<P: Params>(function: impl HandleRequest<P>) -> Handler {
    let call = move |request: &Request<'_>, texts: &ParamTexts<'_>| {
        let params = P::read(&ReadParams(texts))?;
        Ok(function.handle(request, params))
    };
    Handler::of::<P>(HandlerCall::Quick(Box::new(call)))
}

/// A handler that may block, such as for a database or a file: it runs on a thread of a bounded
/// pool. If no thread is free and the queue is full, the answer is 503 at once.
///
/// The function is one as for [`quick`]. The request with its whole body is there before it runs.
#[must_use]
pub fn blocking<P: Params>(function: impl HandleRequest<P>) -> Handler {
    let function = std::sync::Arc::new(function);
    let begin = move |texts: &ParamTexts<'_>| {
        let params = P::read(&ReadParams(texts))?;
        let function = std::sync::Arc::clone(&function);
        let job = move |request: &Request<'_>| function.handle(request, params);
        Ok(Box::new(job) as RequestJob)
    };
    Handler::of::<P>(HandlerCall::Blocking(Box::new(begin)))
}

/// A handler that reads the body while it arrives: any media type, up to `limit` bytes, in bounded
/// memory. It runs on a thread of the pool, which it holds for as long as the client sends, so at
/// most half of the threads do this or [write](crate::Stream::writer) at a time; beyond that 503. A
/// body of up to 16 KiB is there before the function runs.
///
/// The function gets the request, the [`BodyReader`], then the parameters. If it returns before the
/// end of the body, the rest is not read.
#[must_use]
pub fn reading<P: Params>(limit: u64, function: impl ReadRequest<P>) -> Handler {
    let function = std::sync::Arc::new(function);
    let begin = move |texts: &ParamTexts<'_>| {
        let params = P::read(&ReadParams(texts))?;
        let function = std::sync::Arc::clone(&function);
        let job =
            move |request: &Request<'_>, body: BodyReader| function.handle(request, body, params);
        Ok(Box::new(job) as ReadingJob)
    };
    Handler::of::<P>(HandlerCall::Reading(Box::new(begin))).body_limit(limit)
}

/// A handler whose pages are kept in `store` until something that they
/// [depend on](Page::depends_on) changes. For GET.
///
/// The function gets a [`Page`] and the parameters, and **not the request**: what it makes is given
/// to every visitor who asks with the same parameters. It runs on a thread of the pool and may
/// block. However many ask for a page at once, it is made once; only a page of several
/// [reads](Page::query) may be made again if their rows change meanwhile.
#[must_use]
pub fn stored<P: Params + Clone>(store: &Store, function: impl MakePage<P>) -> Handler {
    let function = std::sync::Arc::new(function);
    let begin = move |texts: &ParamTexts<'_>| {
        let params = P::read(&ReadParams(texts))?;
        let function = std::sync::Arc::clone(&function);
        let job = move |page: &mut Page| function.make(page, params.clone());
        Ok(Box::new(job) as PageJob)
    };
    Handler::of::<P>(HandlerCall::Stored(store.clone(), Box::new(begin)))
}

impl Handler {
    fn of<P: Params>(call: HandlerCall) -> Self {
        Self {
            call,
            params: P::COUNT,
            body_limit: None,
        }
    }
}

impl std::fmt::Debug for Handler {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self.call {
            HandlerCall::Quick(_) => "quick",
            HandlerCall::Blocking(_) => "blocking",
            HandlerCall::Reading(_) => "reading",
            HandlerCall::Stored(..) => "stored",
        })
    }
}
