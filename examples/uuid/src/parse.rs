//! The XML of a request, read as it arrives.

use std::{error::Error, io::BufRead};

use millpond::{Failure, NamedValues};
use quick_xml::{Reader, XmlVersion, escape::unescape, events::Event};

use crate::uuids::{Uuids, order};

/// The orders of a request. No event is longer than a body may be, so memory is bounded.
pub(crate) fn orders(body: impl BufRead) -> Result<Vec<Uuids>, Failure> {
    let mut reader = Reader::from_reader(body);
    reader.config_mut().expand_empty_elements = true;
    read(&mut reader).map_err(|error| {
        let at = reader.buffer_position();
        Failure::bad_request(format!("before byte {at}: {error}"))
    })
}

fn read(reader: &mut Reader<impl BufRead>) -> Result<Vec<Uuids>, Box<dyn Error>> {
    let (mut orders, mut values, mut name) = (None, NamedValues::new(), String::new());
    let (mut depth, mut buffer) = (0, Vec::new());
    let is_utf8 = |name: &str| name.eq_ignore_ascii_case("utf-8");
    loop {
        buffer.clear();
        match (depth, reader.read_event_into(&mut buffer)?) {
            (_, Event::Decl(it)) if it.encoding().transpose()?.is_none_or(|it| is_utf8(&it)) => {}
            (0, Event::Start(it)) if orders.is_none() && it.name().as_ref() == "request" => {
                (orders, depth) = (Some(Vec::new()), 1);
            }
            (1, Event::Start(it)) if it.name().as_ref() == "generate-uuid" => {
                (values, depth) = (NamedValues::new(), 2);
                for it in it.attributes() {
                    let (it, version) = (it?, XmlVersion::Implicit1_0);
                    let value = it.normalized_value(version)?.into_owned();
                    values.push(it.key.as_ref().to_owned(), value);
                }
            }
            (2, Event::End(_)) => {
                if !name.is_empty() {
                    values.push("name", std::mem::take(&mut name));
                }
                orders.get_or_insert_default().push(order(&values)?);
                depth = 1;
            }
            (_, Event::End(_)) => depth = 0,
            (2, Event::Text(it)) => name += &it.xml10_content(),
            (2, Event::CData(it)) => name += &it.xml10_content(),
            (2, Event::GeneralRef(it)) => name += &unescape(&format!("&{};", &*it.into_inner()))?,
            (_, Event::Text(it)) if it.trim_ascii().is_empty() => {}
            (_, Event::Comment(_) | Event::PI(_)) => {}
            (0, Event::Eof) if orders.is_some() => return Ok(orders.unwrap_or_default()),
            (_, Event::Start(it)) => Err(format!("<{:.40}> is not expected", it.name().as_ref()))?,
            (_, Event::Eof) => Err("the end is not expected")?,
            (_, event) => Err(format!("{:.40?} is not expected", &*event))?,
        }
    }
}
