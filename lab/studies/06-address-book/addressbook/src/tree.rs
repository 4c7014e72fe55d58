//! By tree: the whole file becomes a tree in memory, and the page is made from its nodes.

use std::fs;
use std::path::Path;

use roxmltree::{Document, Node};

use crate::entry::{BookEntry, BookView, Contact, Job, PostalAddress, Town};
use crate::lists::{ListItem, Lists};
use crate::{BookError, html::MainContent};

/// The content of a page; `base` is the address that the address of each entry begins with. `None`
/// if the view is of an entry that is not there.
///
/// # Errors
/// The file cannot be read or is not well-formed.
pub fn render(file: &Path, base: &str, view: BookView<'_>) -> Result<Option<String>, BookError> {
    let text = fs::read_to_string(file).map_err(|error| BookError::new(file, 0, error))?;
    let document = Document::parse(&text).map_err(|error| {
        let line = usize::try_from(error.pos().row).unwrap_or(0);
        BookError::new(file, line, error)
    })?;
    let book = document.root_element();
    let mut page = MainContent::new(base, view);
    if !book.has_tag_name("addressbook") {
        return Ok(page.finish());
    }
    let lists = lists(book);
    for node in children(book, "entry") {
        if !page.offer(&entry(node, &lists)) {
            break;
        }
    }
    Ok(page.finish())
}

fn lists(book: Node<'_, '_>) -> Lists {
    let mut lists = Lists::default();
    for (list, element, within) in [
        ("countries", "country", ""),
        ("cities", "city", "country"),
        ("organisations", "organisation", "city"),
        ("groups", "group", ""),
    ] {
        for node in children(book, list).flat_map(|list| children(list, element)) {
            let is_text = within.is_empty();
            let item = ListItem {
                id: attribute(node, "id").unwrap_or_default(),
                within: attribute(node, within).unwrap_or_default(),
                name: if is_text {
                    Some(string_value(node))
                } else {
                    child_text(node, "name")
                },
                code: child_text(node, "code"),
                street: child_text(node, "street"),
            };
            lists.add(element, item);
        }
    }
    lists
}

fn entry(node: Node<'_, '_>, lists: &Lists) -> BookEntry {
    let name = |part| {
        let mut nodes = node.children().filter_map(|child| {
            if child.has_tag_name("name") {
                children(child, part).next()
            } else {
                Some(child).filter(|child| child.has_tag_name(part))
            }
        });
        nodes.next().map(string_value)
    };
    BookEntry {
        id: attribute(node, "id").unwrap_or_default(),
        first: name("first"),
        last: name("last"),
        jobs: children(node, "work")
            .map(|work| job(work, lists))
            .collect(),
        own: PostalAddress {
            kind: None,
            street: child_text(node, "street"),
            town: town(node),
        },
        addresses: children(node, "address")
            .map(|address| postal_address(address, lists))
            .collect(),
        phones: children(node, "phone").map(contact).collect(),
        emails: children(node, "email").map(contact).collect(),
        groups: children(node, "member")
            .filter_map(|member| lists.group(&attribute(member, "group")?))
            .collect(),
        birthday: child_text(node, "birthday"),
        note: child_text(node, "note"),
    }
}

fn job(work: Node<'_, '_>, lists: &Lists) -> Job {
    Job {
        title: child_text(work, "title"),
        employer: lists.organisation(&attribute(work, "organisation").unwrap_or_default()),
    }
}

fn postal_address(address: Node<'_, '_>, lists: &Lists) -> PostalAddress {
    PostalAddress {
        kind: attribute(address, "kind"),
        street: child_text(address, "street"),
        town: match attribute(address, "city") {
            Some(city) => lists.town(&city),
            None => town(address),
        },
    }
}

fn town(node: Node<'_, '_>) -> Town {
    Town {
        code: child_text(node, "code"),
        city: child_text(node, "city"),
        country: child_text(node, "country"),
    }
}

fn contact(node: Node<'_, '_>) -> Contact {
    Contact {
        kind: attribute(node, "kind"),
        text: Some(string_value(node)),
    }
}

fn children<'a, 'input: 'a>(
    node: Node<'a, 'input>,
    name: &'static str,
) -> impl Iterator<Item = Node<'a, 'input>> {
    node.children()
        .filter(move |child| child.has_tag_name(name))
}

fn child_text(node: Node<'_, '_>, name: &'static str) -> Option<String> {
    children(node, name).next().map(string_value)
}

/// All text within a node, as XPath defines it.
fn string_value(node: Node<'_, '_>) -> String {
    let texts = node.descendants().filter(Node::is_text);
    texts.filter_map(|text| text.text()).collect()
}

fn attribute(node: Node<'_, '_>, name: &str) -> Option<String> {
    node.attribute(name).map(str::to_owned)
}
