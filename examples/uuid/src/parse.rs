//! The XML of a request, read as it arrives.

use std::collections::HashMap;
use std::error::Error;
use std::io::BufRead;

use millpond::Failure;
use quick_xml::{Reader, XmlVersion, escape::unescape, events::Event};

use crate::uuids::{Order, order};

/// The orders of a request. No event is longer than a body may be, so memory is bounded.
pub(crate) fn orders(body: impl BufRead) -> Result<Vec<Order>, Failure> {
    let mut reader = Reader::from_reader(body);
    reader.config_mut().expand_empty_elements = true;
    read(&mut reader).map_err(|error| {
        let at = reader.buffer_position();
        Failure::bad_request(format!("before byte {at}: {error}"))
    })
}

fn read(reader: &mut Reader<impl BufRead>) -> Result<Vec<Order>, Box<dyn Error>> {
    let (mut orders, mut values, mut buffer) = (None, HashMap::new(), Vec::new());
    let (mut name, mut depth) = (String::new(), 0);
    loop {
        buffer.clear();
        match (reader.read_event_into(&mut buffer)?, depth) {
            (Event::Decl(decl), _) if is_utf8(decl.encoding().transpose()?.as_deref()) => {}
            (Event::Start(tag), 0) if orders.is_none() && tag.name().as_ref() == "request" => {
                (orders, depth) = (Some(Vec::new()), 1);
            }
            (Event::Start(tag), 1) if tag.name().as_ref() == "generate-uuid" => {
                (values, name, depth) = (HashMap::new(), String::new(), 2);
                for it in tag.attributes().collect::<Result<Vec<_>, _>>()? {
                    let value = it.normalized_value(XmlVersion::Implicit1_0)?;
                    values.insert(it.key.as_ref().to_owned(), value.into_owned());
                }
            }
            (Event::End(_), _) => {
                if depth == 2 {
                    values.insert("name".to_owned(), std::mem::take(&mut name));
                    orders.get_or_insert_default().push(order(&values)?);
                }
                depth -= 1;
            }
            (Event::Text(text), 2) => name += &text.xml10_content(),
            (Event::CData(text), 2) => name += &text.xml10_content(),
            (Event::GeneralRef(entity), 2) => {
                name += &unescape(&format!("&{};", &*entity.into_inner()))?;
            }
            (Event::Text(text), _) if text.trim_ascii().is_empty() => {}
            (Event::Comment(_) | Event::PI(_), _) => {}
            (Event::Eof, 0) if orders.is_some() => return Ok(orders.unwrap_or_default()),
            (Event::Start(it), _) => Err(format!("<{:.40}> is not expected", it.name().as_ref()))?,
            (event, _) => Err(format!("{event:.80?} is not expected"))?,
        }
    }
}

fn is_utf8(encoding: Option<&str>) -> bool {
    encoding.is_none_or(|name| name.eq_ignore_ascii_case("utf-8"))
}
