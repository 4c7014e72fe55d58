//! By streaming: the file is read event by event, and no more than one entry is in memory.

use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::path::Path;

use quick_xml::XmlVersion;
use quick_xml::escape::resolve_predefined_entity;
use quick_xml::events::{BytesRef, BytesStart, Event};
use quick_xml::reader::Reader;

use crate::entry::{BookEntry, BookView, Contact, Job, PostalAddress};
use crate::lists::{ListItem, Lists};
use crate::{BookError, html::MainContent};

/// Elements may be nested this deep; the models nest four.
const MAX_DEPTH: usize = 64;

/// The parts of a file, in their order: a reader that sees each part once has to know what entries
/// refer to before it reads them.
const PARTS: [&str; 5] = ["countries", "cities", "organisations", "groups", "entry"];

/// The content of a page; `base` is the address that the address of each entry begins with. `None`
/// if the view is of an entry that is not there.
///
/// # Errors
/// The file cannot be read, is not well-formed (as far as it is read), or has its lists behind
/// entries.
pub fn render(file: &Path, base: &str, view: BookView<'_>) -> Result<Option<String>, BookError> {
    let mut page = MainContent::new(base, view);
    for_each(file, |entry| page.offer(entry))?;
    Ok(page.finish())
}

/// Gives every entry to `take`, which says whether it wants another.
///
/// # Errors
/// As [`render`].
pub fn for_each(file: &Path, take: impl FnMut(&BookEntry) -> bool) -> Result<(), BookError> {
    let source = File::open(file).map_err(|error| BookError::new(file, 0, error))?;
    let mut reader = Reader::from_reader(BufReader::new(source));
    read(&mut reader, take).map_err(|what| {
        let line = line_at(file, reader.error_position().max(reader.buffer_position()));
        BookError::new(file, line, what)
    })
}

/// The number of the line that has the byte at `position`.
fn line_at(file: &Path, position: u64) -> usize {
    let bytes = fs::read(file).unwrap_or_default();
    let end = usize::try_from(position).map_or(bytes.len(), |end| end.min(bytes.len()));
    bytes[..end].iter().filter(|byte| **byte == b'\n').count() + 1
}

/// An `Err` says what is wrong at the reader's place.
fn read<R: BufRead>(
    reader: &mut Reader<R>,
    mut take: impl FnMut(&BookEntry) -> bool,
) -> Result<(), String> {
    let mut buffer = Vec::new();
    let mut state = ReaderState::default();
    loop {
        buffer.clear();
        let event = reader.read_event_into(&mut buffer).map_err(in_words)?;
        match event {
            Event::Start(tag) => state.start(&tag)?,
            Event::Empty(tag) => {
                state.start(&tag)?;
                if state.end(&mut take) {
                    return Ok(());
                }
            }
            Event::End(_) => {
                if state.end(&mut take) {
                    return Ok(());
                }
            }
            Event::Text(text) => state.text(&text.xml10_content())?,
            Event::CData(text) => state.text(&text.xml10_content())?,
            Event::GeneralRef(reference) => state.text(&resolve(&reference)?)?,
            Event::DocType(_) => {
                return Err("a document type is declared; leave it out".to_owned());
            }
            Event::Eof => return state.finish(),
            Event::Comment(_) | Event::Decl(_) | Event::PI(_) => {}
        }
    }
}

#[expect(clippy::needless_pass_by_value, reason = "given to `map_err` as it is")]
fn in_words(error: impl ToString) -> String {
    error.to_string()
}

/// The text that `&amp;`, `&#38;` or another such reference stands for.
fn resolve(reference: &BytesRef<'_>) -> Result<String, String> {
    if let Some(c) = reference.resolve_char_ref().map_err(in_words)? {
        return Ok(c.to_string());
    }
    let known = resolve_predefined_entity(reference);
    let unknown = || format!("the entity &{}; is not known", &**reference);
    Ok(known.ok_or_else(unknown)?.to_owned())
}

/// Position of the reader, and the values that it has gathered.
#[derive(Default)]
struct ReaderState {
    /// Names of the open elements, each behind a slash.
    path: String,
    /// How many elements are open.
    depth: usize,
    /// The depth of the element whose text is gathered, and the text.
    leaf: Option<(usize, String)>,
    has_root: bool,
    /// Index of the part that came last.
    part: usize,
    lists: Lists,
    item: ListItem,
    entry: BookEntry,
    /// True in an address whose city is in the list.
    has_listed_city: bool,
}

impl ReaderState {
    fn start(&mut self, tag: &BytesStart<'_>) -> Result<(), String> {
        if self.depth == 0 && self.has_root {
            return Err("a second root element begins".to_owned());
        }
        if self.depth == MAX_DEPTH {
            return Err(format!("elements are nested deeper than {MAX_DEPTH}"));
        }
        // Each is read, so that one that is given twice is found.
        tag.attributes()
            .try_for_each(|each| each.map(|_| ()).map_err(in_words))?;
        self.has_root = true;
        self.depth += 1;
        self.path.push('/');
        self.path.push_str(tag.name().as_ref());
        if self.leaf.is_some() {
            return Ok(());
        }
        self.begin(tag)?;
        if self.slot().is_some() {
            self.leaf = Some((self.depth, String::new()));
        }
        Ok(())
    }

    /// Makes room for what an element brings.
    fn begin(&mut self, tag: &BytesStart<'_>) -> Result<(), String> {
        let value = |name| attribute(tag, name);
        match self.path.as_str() {
            "/addressbook/entry" => {
                self.entry = BookEntry {
                    id: value("id")?.unwrap_or_default(),
                    ..BookEntry::default()
                };
            }
            "/addressbook/entry/address" => {
                let city = value("city")?;
                self.has_listed_city = city.is_some();
                self.entry.addresses.push(PostalAddress {
                    kind: value("kind")?,
                    street: None,
                    town: city.map(|id| self.lists.town(&id)).unwrap_or_default(),
                });
            }
            "/addressbook/entry/work" => self.entry.jobs.push(Job {
                title: None,
                employer: self
                    .lists
                    .organisation(&value("organisation")?.unwrap_or_default()),
            }),
            "/addressbook/entry/phone" => self.entry.phones.push(contact(value("kind")?)),
            "/addressbook/entry/email" => self.entry.emails.push(contact(value("kind")?)),
            "/addressbook/entry/member" => {
                let name = value("group")?.and_then(|id| self.lists.group(&id));
                self.entry.groups.extend(name);
            }
            "/addressbook/countries/country"
            | "/addressbook/cities/city"
            | "/addressbook/organisations/organisation"
            | "/addressbook/groups/group" => {
                self.item = ListItem {
                    id: value("id")?.unwrap_or_default(),
                    within: value("country")?.or(value("city")?).unwrap_or_default(),
                    ..ListItem::default()
                };
            }
            _ => {}
        }
        self.check_order()
    }

    /// A list may not come behind what refers to it.
    fn check_order(&mut self) -> Result<(), String> {
        let name = self.path.strip_prefix("/addressbook/").unwrap_or_default();
        let Some(part) = PARTS.iter().position(|part| *part == name) else {
            return Ok(());
        };
        if part < self.part {
            return Err(format!(
                "<{name}> stands behind <{}>; the order is {}",
                PARTS[self.part],
                PARTS.join(", ")
            ));
        }
        self.part = part;
        Ok(())
    }

    /// Returns the field for the text of the innermost open element; `None` if it is of no use.
    fn slot(&mut self) -> Option<&mut Option<String>> {
        let place = self.path.strip_prefix("/addressbook/")?;
        let (entry, item) = (&mut self.entry, &mut self.item);
        Some(match place {
            "countries/country" | "groups/group" => &mut item.name,
            "cities/city/name" | "organisations/organisation/name" => &mut item.name,
            "cities/city/code" => &mut item.code,
            "organisations/organisation/street" => &mut item.street,
            "entry/first" | "entry/name/first" => &mut entry.first,
            "entry/last" | "entry/name/last" => &mut entry.last,
            "entry/street" => &mut entry.own.street,
            "entry/code" => &mut entry.own.town.code,
            "entry/city" => &mut entry.own.town.city,
            "entry/country" => &mut entry.own.town.country,
            "entry/address/street" => &mut entry.addresses.last_mut()?.street,
            "entry/address/code" if !self.has_listed_city => {
                &mut entry.addresses.last_mut()?.town.code
            }
            "entry/address/city" if !self.has_listed_city => {
                &mut entry.addresses.last_mut()?.town.city
            }
            "entry/address/country" if !self.has_listed_city => {
                &mut entry.addresses.last_mut()?.town.country
            }
            "entry/work/title" => &mut entry.jobs.last_mut()?.title,
            "entry/phone" => &mut entry.phones.last_mut()?.text,
            "entry/email" => &mut entry.emails.last_mut()?.text,
            "entry/birthday" => &mut entry.birthday,
            "entry/note" => &mut entry.note,
            _ => return None,
        })
    }

    fn text(&mut self, text: &str) -> Result<(), String> {
        if let Some((_, gathered)) = &mut self.leaf {
            gathered.push_str(text);
        } else if self.depth == 0 && !text.trim_ascii().is_empty() {
            return Err("a text stands outside of the root element".to_owned());
        }
        Ok(())
    }

    /// Closes the innermost element. True if no further entry is wanted.
    fn end(&mut self, take: &mut impl FnMut(&BookEntry) -> bool) -> bool {
        if self
            .leaf
            .as_ref()
            .is_some_and(|(depth, _)| *depth == self.depth)
        {
            let text = self.leaf.take().map(|(_, text)| text);
            // Of several elements the first counts, as in XSLT.
            if let Some(slot) = self.slot()
                && slot.is_none()
            {
                *slot = text;
            }
        }
        let mut is_done = false;
        let (parent, name) = self.path.rsplit_once('/').unwrap_or_default();
        match self.path.as_str() {
            "/addressbook/entry" => is_done = !take(&self.entry),
            "/addressbook/countries/country"
            | "/addressbook/cities/city"
            | "/addressbook/organisations/organisation"
            | "/addressbook/groups/group" => {
                self.lists.add(name, std::mem::take(&mut self.item));
            }
            _ => {}
        }
        self.depth -= 1;
        self.path.truncate(parent.len());
        is_done
    }

    fn finish(&self) -> Result<(), String> {
        match (self.has_root, self.depth) {
            (true, 0) => Ok(()),
            (false, _) => Err("the file has no element".to_owned()),
            (true, _) => Err(format!("the file ends within {}", self.path)),
        }
    }
}

fn contact(kind: Option<String>) -> Contact {
    Contact { kind, text: None }
}

fn attribute(tag: &BytesStart<'_>, name: &str) -> Result<Option<String>, String> {
    let Some(attribute) = tag.try_get_attribute(name).map_err(in_words)? else {
        return Ok(None);
    };
    let value = attribute.normalized_value(XmlVersion::Explicit1_0);
    Ok(Some(value.map_err(in_words)?.into_owned()))
}
