//! The table `[streams]` of a plan.

use super::section::Field;
use super::{Common, PlanError, steps};
use crate::RequestPlan;
use crate::request::check_method;
use crate::streams::{MOST_STREAMS, StreamsPlan};

pub(super) fn streams(written: Field<'_>, common: &Common<'_>) -> Result<StreamsPlan, PlanError> {
    let mut section = written.section("[streams]")?;
    let count = section.need("count")?.whole(1..=MOST_STREAMS as i64)?;
    let rate = section.need("rate")?;
    let target = section.need("target")?;
    let field = section.need("write")?;
    let mut write = field.section("write")?;
    let own = steps::headers(&mut section)?;
    section.finish()?;
    let mut both = common.base.headers.clone();
    for (name, value) in own {
        both.push((name.to_owned(), value.text()?.to_owned()));
    }
    let mut headers = both.clone();
    for (name, value) in steps::headers(&mut write)? {
        headers.push((name.to_owned(), value.text()?.to_owned()));
    }
    let body = write.find("body").map_or(Ok(""), |body| body.text())?;
    let method = write.find("method").map_or(Ok("POST"), |method| {
        let text = method.text()?;
        check_method(text).map_err(|why| method.error(why))?;
        Ok(text)
    })?;
    let to = write.need("target")?;
    write.finish()?;
    both.push(("Accept".to_owned(), "text/event-stream".to_owned()));
    if rate.number()? == 0.0 {
        return Err(rate.error("the streams have nothing to tell without a write"));
    }
    let at = |field: Field<'_>| match field.text()? {
        path if path.starts_with('/') => Ok(vec![path.to_owned()]),
        _ => Err(field.error("a target begins with /; the server is said once, by url")),
    };
    Ok(StreamsPlan {
        count: count as usize,
        rate: rate.number()?,
        request: RequestPlan {
            urls: at(target)?,
            headers: both,
            ..RequestPlan::default()
        },
        write: RequestPlan {
            urls: at(to)?,
            method: method.to_owned(),
            headers,
            body: body.as_bytes().to_vec(),
            ..RequestPlan::default()
        },
    })
}
