//! A generated book as XML, in the form of each model.

use std::io::{self, Write};

use quick_xml::events::{BytesDecl, BytesText, Event};
use quick_xml::writer::Writer;

use crate::files::Model;
use crate::generate::{Book, Person};
use crate::names;

/// The book as the text of a file.
///
/// # Errors
/// None in practice: a vector takes everything.
pub(crate) fn xml(model: Model, book: &Book) -> io::Result<Vec<u8>> {
    let mut xml = Writer::new_with_indent(Vec::new(), b' ', 2);
    xml.write_event(Event::Decl(BytesDecl::new("1.0", Some("UTF-8"), None)))?;
    xml.create_element("addressbook")
        .with_attribute(("model", model.name()))
        .write_inner_content(|xml| {
            if let Model::Complex = model {
                lists(xml, book)?;
            }
            book.people.iter().try_for_each(|person| match model {
                Model::Simple => simple(xml, person),
                Model::Medium => medium(xml, book, person),
                Model::Complex => complex(xml, person),
            })
        })?;
    let mut bytes = xml.into_inner();
    bytes.push(b'\n');
    Ok(bytes)
}

/// One flat record, as a row of a single table.
fn simple<W: Write>(xml: &mut Writer<W>, person: &Person) -> io::Result<()> {
    entry(xml, person, |xml| {
        leaf(xml, "first", &[], person.first)?;
        leaf(xml, "last", &[], person.last)?;
        leaf(xml, "street", &[], &person.street)?;
        city(xml, person.city)?;
        leaf(xml, "phone", &[], &person.phone)?;
        leaf(xml, "email", &[], &private_mailbox(person))
    })
}

/// Writes an entry in which each repeated value has an element of its own.
fn medium<W: Write>(xml: &mut Writer<W>, book: &Book, person: &Person) -> io::Result<()> {
    let work = &book.premises[person.organisation];
    entry(xml, person, |xml| {
        full_name(xml, person)?;
        for (kind, street, at) in [
            ("home", &person.street, person.city),
            ("work", &work.street, work.city),
        ] {
            xml.create_element("address")
                .with_attribute(("kind", kind))
                .write_inner_content(|xml| {
                    leaf(xml, "street", &[], street)?;
                    town(xml, at)
                })?;
        }
        leaf(xml, "phone", &[("kind", "mobile")], &person.mobile)?;
        leaf(xml, "email", &[("kind", "home")], &private_mailbox(person))?;
        leaf(xml, "birthday", &[], &person.birthday)
    })
}

/// Writes an entry that refers to lists of shared values.
fn complex<W: Write>(xml: &mut Writer<W>, person: &Person) -> io::Result<()> {
    let city = id('c', person.city);
    let organisation = id('o', person.organisation);
    let (_, domain) = names::ORGANISATIONS[person.organisation];
    let work_mailbox = format!("{}@{domain}.example.org", person.mailbox);
    entry(xml, person, |xml| {
        full_name(xml, person)?;
        xml.create_element("address")
            .with_attributes([("kind", "home"), ("city", &city)])
            .write_inner_content(|xml| leaf(xml, "street", &[], &person.street))?;
        xml.create_element("work")
            .with_attribute(("organisation", organisation.as_str()))
            .write_inner_content(|xml| leaf(xml, "title", &[], person.title))?;
        leaf(xml, "phone", &[("kind", "mobile")], &person.mobile)?;
        leaf(xml, "phone", &[("kind", "home")], &person.phone)?;
        leaf(xml, "email", &[("kind", "home")], &private_mailbox(person))?;
        leaf(xml, "email", &[("kind", "work")], &work_mailbox)?;
        for group in &person.groups {
            xml.create_element("member")
                .with_attribute(("group", id('g', *group).as_str()))
                .write_empty()?;
        }
        leaf(xml, "birthday", &[], &person.birthday)?;
        leaf(xml, "note", &[], person.note)
    })
}

fn lists<W: Write>(xml: &mut Writer<W>, book: &Book) -> io::Result<()> {
    list(xml, "countries", |xml| {
        let mut countries = names::COUNTRIES.iter().enumerate();
        countries.try_for_each(|(at, name)| leaf(xml, "country", &[("id", &id('k', at))], name))
    })?;
    list(xml, "cities", |xml| {
        let mut cities = names::CITIES.iter().enumerate();
        cities.try_for_each(|(at, (name, code, country))| {
            let attributes = [("id", id('c', at)), ("country", id('k', *country))];
            parent(xml, "city", &attributes, |xml| {
                leaf(xml, "name", &[], name)?;
                leaf(xml, "code", &[], code)
            })
        })
    })?;
    list(xml, "organisations", |xml| {
        let organisations = names::ORGANISATIONS.iter().zip(&book.premises);
        let mut organisations = organisations.enumerate();
        organisations.try_for_each(|(at, ((name, _), premises))| {
            let attributes = [("id", id('o', at)), ("city", id('c', premises.city))];
            parent(xml, "organisation", &attributes, |xml| {
                leaf(xml, "name", &[], name)?;
                leaf(xml, "street", &[], &premises.street)
            })
        })
    })?;
    list(xml, "groups", |xml| {
        let mut groups = names::GROUPS.iter().enumerate();
        groups.try_for_each(|(at, name)| leaf(xml, "group", &[("id", &id('g', at))], name))
    })
}

fn id(kind: char, at: usize) -> String {
    format!("{kind}{}", at + 1)
}

fn private_mailbox(person: &Person) -> String {
    format!("{}@example.org", person.mailbox)
}

fn full_name<W: Write>(xml: &mut Writer<W>, person: &Person) -> io::Result<()> {
    list(xml, "name", |xml| {
        leaf(xml, "first", &[], person.first)?;
        leaf(xml, "last", &[], person.last)
    })
}

fn town<W: Write>(xml: &mut Writer<W>, at: usize) -> io::Result<()> {
    let (_, _, country) = names::CITIES[at];
    city(xml, at)?;
    leaf(xml, "country", &[], names::COUNTRIES[country])
}

fn city<W: Write>(xml: &mut Writer<W>, at: usize) -> io::Result<()> {
    let (name, code, _) = names::CITIES[at];
    leaf(xml, "code", &[], code)?;
    leaf(xml, "city", &[], name)
}

fn entry<W: Write>(
    xml: &mut Writer<W>,
    person: &Person,
    content: impl FnOnce(&mut Writer<W>) -> io::Result<()>,
) -> io::Result<()> {
    parent(xml, "entry", &[("id", person.id.to_string())], content)
}

fn list<W: Write>(
    xml: &mut Writer<W>,
    name: &str,
    content: impl FnOnce(&mut Writer<W>) -> io::Result<()>,
) -> io::Result<()> {
    parent(xml, name, &[], content)
}

fn parent<W: Write>(
    xml: &mut Writer<W>,
    name: &str,
    attributes: &[(&str, String)],
    content: impl FnOnce(&mut Writer<W>) -> io::Result<()>,
) -> io::Result<()> {
    let attributes = attributes
        .iter()
        .map(|(name, value)| (*name, value.as_str()));
    xml.create_element(name)
        .with_attributes(attributes)
        .write_inner_content(content)?;
    Ok(())
}

fn leaf<W: Write>(
    xml: &mut Writer<W>,
    name: &str,
    attributes: &[(&str, &str)],
    text: &str,
) -> io::Result<()> {
    xml.create_element(name)
        .with_attributes(attributes.iter().copied())
        .write_text_content(BytesText::new(text))?;
    Ok(())
}
