//! XML: the children of the root are rows. Attributes, and children without anything but text, are
//! columns; what is nested or comes more than once is JSON.

use std::io::Read;

use quick_xml::events::{BytesStart, Event};
use quick_xml::{Reader, XmlVersion};
use serde_json::{Map, Value as Json};

use crate::MAX_DEPTH;
use crate::error::{DataError, FilePlace, ReadError};
use crate::row::{FieldValue, RowWriter, too_deep};
use crate::source::{Source, too_large};

/// An element whose end has not come.
struct Element {
    name: String,
    members: Map<String, Json>,
    text: String,
    place: FilePlace,
}

impl Element {
    /// Its value: nothing, its text, or an object.
    fn into_json(self) -> Json {
        let text = self.text.trim();
        if self.members.is_empty() {
            return match text {
                "" => Json::Null,
                text => text.into(),
            };
        }
        let mut members = self.members;
        if !text.is_empty() {
            let text = text.into();
            add(&mut members, "text".to_owned(), text);
        }
        Json::Object(members)
    }

    /// Its members as the fields of a row.
    fn into_fields(mut self) -> Vec<(String, FieldValue<'static>)> {
        let text = self.text.trim();
        if !text.is_empty() {
            let text = text.into();
            add(&mut self.members, "text".to_owned(), text);
        }
        let fields = self.members.into_iter();
        let value = |json| match json {
            Json::Null => FieldValue::Null,
            Json::String(text) => FieldValue::Plain(text.into()),
            nested => FieldValue::Json(nested),
        };
        fields.map(|(name, json)| (name, value(json))).collect()
    }
}

/// Adds a member; what comes more than once becomes a list.
fn add(members: &mut Map<String, Json>, name: String, value: Json) {
    match members.get_mut(&name) {
        None => drop(members.insert(name, value)),
        Some(Json::Array(list)) => list.push(value),
        Some(known) => {
            let first = known.take();
            *known = Json::Array(vec![first, value]);
        }
    }
}

pub(crate) fn read<R: Read>(
    source: &mut Source<R>,
    element: Option<&str>,
    rows: &mut RowWriter<'_>,
) -> Result<(), ReadError> {
    let mut reader = Reader::from_reader(source);
    reader.config_mut().expand_empty_elements = true;
    let mut tree = OpenElements {
        wanted: element.map(str::to_owned),
        ..OpenElements::default()
    };
    let mut buffer = Vec::new();
    loop {
        buffer.clear();
        let place = reader.get_mut().place();
        let event = reader
            .read_event_into(&mut buffer)
            .map_err(|error| fault(&error, place))?;
        match event {
            Event::Start(start) => tree.open(&start, place)?,
            Event::End(_) => {
                let Some(row) = tree.close() else { continue };
                let place = row.place;
                rows.named(place, row.into_fields())?;
                reader.get_mut().begin_row();
            }
            Event::Text(text) => tree.text(&text.xml10_content(), place)?,
            Event::CData(text) => tree.text(&text.xml10_content(), place)?,
            Event::GeneralRef(name) => {
                let letter = match name.resolve_char_ref() {
                    Ok(Some(letter)) => letter.to_string(),
                    Ok(None) => entity(&name.xml10_content(), place)?.to_owned(),
                    Err(error) => return Err(fault(&error, place).into()),
                };
                tree.text(&letter, place)?;
            }
            Event::DocType(text) if text.xml10_content().contains('[') => {
                let message = "the document declares its own entities or elements";
                return Err(DataError::new(place, message)
                    .remedy("take the declarations out; entities are not read")
                    .into());
            }
            Event::Eof if tree.is_done => return Ok(tree.found(place)?),
            Event::Eof => return Err(tree.unfinished(place).into()),
            // Given as a start and an end.
            Event::Empty(_) => {}
            Event::Decl(_) | Event::PI(_) | Event::Comment(_) | Event::DocType(_) => {}
        }
    }
}

/// The five entities that each document has.
fn entity(name: &str, place: FilePlace) -> Result<&'static str, DataError> {
    match name {
        "lt" => Ok("<"),
        "gt" => Ok(">"),
        "amp" => Ok("&"),
        "apos" => Ok("'"),
        "quot" => Ok("\""),
        _ => Err(
            DataError::new(place, format!("the entity &{name}; is not known"))
                .remedy("write the character itself"),
        ),
    }
}

fn fault(error: &quick_xml::Error, place: FilePlace) -> DataError {
    let said = error.to_string();
    if said.contains("larger than a row") {
        return too_large(place);
    }
    let said = said.replace('\n', " ");
    DataError::new(place, format!("the file is no XML: {said}"))
        .remedy("each element is closed, & is written &amp; and the file is UTF-8")
}

/// The elements that are open, and what may follow.
#[derive(Default)]
struct OpenElements {
    /// The name of the root, once it is open.
    root: Option<String>,
    /// Within the root.
    open: Vec<Element>,
    /// The name of the rows.
    row: Option<String>,
    is_done: bool,
    /// The name of the rows that was asked for: they may be anywhere in the document.
    wanted: Option<String>,
    /// Open elements outside of the rows, without the root.
    outside: usize,
    /// True if there were some.
    is_passed: bool,
}

impl OpenElements {
    fn open(&mut self, start: &BytesStart<'_>, place: FilePlace) -> Result<(), DataError> {
        let name = start.local_name().as_ref().to_owned();
        if self.is_done {
            return Err(DataError::new(place, "a second root begins here")
                .remedy("an XML document has one root"));
        }
        if self.root.is_none() {
            self.root = Some(name);
            return Ok(());
        }
        if self.open.is_empty() && self.wanted.as_ref().is_some_and(|wanted| *wanted != name) {
            self.outside += 1;
            self.is_passed = true;
            return Ok(());
        }
        if self.open.is_empty() {
            let row = self.row.get_or_insert_with(|| name.clone());
            if *row != name {
                let message = format!("the rows are <{row}>, and this is <{name}>");
                return Err(DataError::new(place, message).remedy(
                    "the children of the root are the rows, all of one name; \
                         `element` of [[data]] in millpond.toml names another one",
                ));
            }
        }
        if self.open.len() > MAX_DEPTH {
            return Err(too_deep(place));
        }
        let mut members = Map::new();
        for attribute in start.attributes() {
            let failed = |said: String| {
                DataError::new(place, format!("an attribute of <{name}>: {said}"))
                    .remedy("write name=\"value\", each name once")
            };
            let attribute = attribute.map_err(|error| failed(error.to_string()))?;
            let key = attribute.key.local_name().as_ref().to_owned();
            if attribute.key.as_ref().starts_with("xmlns") {
                continue;
            }
            let value = attribute
                .normalized_value(XmlVersion::Explicit1_0)
                .map_err(|error| failed(error.to_string()))?;
            let value = match &*value {
                "" => Json::Null,
                value => value.into(),
            };
            add(&mut members, key, value);
        }
        self.open.push(Element {
            name,
            members,
            text: String::new(),
            place,
        });
        Ok(())
    }

    /// Closes the innermost element; gives it if it is a row.
    fn close(&mut self) -> Option<Element> {
        let Some(element) = self.open.pop() else {
            self.is_done = self.outside == 0;
            self.outside = self.outside.saturating_sub(1);
            return None;
        };
        let Some(parent) = self.open.last_mut() else {
            return Some(element);
        };
        let name = element.name.clone();
        add(&mut parent.members, name, element.into_json());
        None
    }

    fn text(&mut self, text: &str, place: FilePlace) -> Result<(), DataError> {
        if let Some(element) = self.open.last_mut() {
            element.text.push_str(text);
            return Ok(());
        }
        if text.trim().is_empty() || self.wanted.is_some() {
            return Ok(());
        }
        Err(DataError::new(place, "there is text outside of the rows")
            .remedy("the children of the root are the rows"))
    }

    /// The end of a document; an error if it has none of the elements that are to be the rows.
    fn found(&self, place: FilePlace) -> Result<(), DataError> {
        match &self.wanted {
            Some(wanted) if self.is_passed && self.row.is_none() => Err(DataError::new(
                place,
                format!("there is no <{wanted}> in the document"),
            )
            .remedy("correct `element` of [[data]] in millpond.toml")),
            _ => Ok(()),
        }
    }

    fn unfinished(&self, place: FilePlace) -> DataError {
        let open = self.open.last().map(|element| &element.name);
        match open.or(self.root.as_ref()) {
            Some(name) => DataError::new(place, format!("<{name}> has no end"))
                .remedy(format!("close it: </{name}>")),
            None => {
                DataError::new(place, "there is no element").remedy("write a root with rows in it")
            }
        }
    }
}
