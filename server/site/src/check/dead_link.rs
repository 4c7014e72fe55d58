//! What a link in a Markdown file that leads nowhere is said to be, and what was probably meant.

use super::{HintedNote, documents::DocumentSite};
use crate::data::DocumentFile;
use millpond_site_format::suggest::closest;

/// A link or a picture in a document that leads nowhere.
pub(super) enum DeadLink<'d> {
    /// To a page; with its note.
    Page(HintedNote),
    /// To a file for visitors.
    File { path: String, is_picture: bool },
    /// To a picture that is looked for beside the page, at this address.
    PictureBeside { file: String, address: String },
    /// To a document that is not there.
    Document(String),
    /// To a document, and no template lets such links lead to pages.
    AsWritten(String),
    /// To a document whose row is in another table.
    OtherTable(&'d DocumentFile),
    /// To a document whose address is another than the name of its file.
    OwnSlug(&'d DocumentFile),
}

impl DeadLink<'_> {
    pub(super) fn file(path: &str, is_picture: bool) -> Self {
        Self::File {
            path: path.to_owned(),
            is_picture,
        }
    }

    pub(super) fn note(self, site: &DocumentSite<'_>, document: &DocumentFile) -> HintedNote {
        match self {
            Self::Page(note) => note,
            Self::File { path, is_picture } => {
                let verb = match is_picture {
                    true => "shows",
                    false => "leads to",
                };
                let message = format!("{verb} {path}, and there is no such file");
                (message, hint_of_file(site, &path, is_picture))
            }
            Self::PictureBeside { file, address } => {
                let message = format!(
                    "shows {file}, which is looked for beside the page, and {address} is no picture"
                );
                if site.generation.statics.find(&address).is_some() {
                    let hint = "a page answers at this address: put the picture into another folder of static/";
                    return (message, hint.to_owned());
                }
                let mut name = &*file;
                while let Some(rest) = name.strip_prefix("./").or_else(|| name.strip_prefix("../")) {
                    name = rest;
                }
                (message, hint_of_file(site, &format!("/{name}"), true))
            }
            Self::Document(file) => {
                let hint = hint_of_document(site, document, &file);
                (format!("leads to {file}, and there is no such file"), hint)
            }
            Self::AsWritten(file) => (
                format!("leads to {file} as it is written, at which nothing answers"),
                "with `markdown(document = post.slug)` in the template, links between files lead to pages"
                    .to_owned(),
            ),
            Self::OtherTable(found) => {
                let (shown, table) = (found.shown.display(), &found.table);
                let message = format!(
                    "leads to {shown}, which is of the table {table}: only links to files of the same table lead to pages"
                );
                (message, hint_of_address(site.address(found)))
            }
            Self::OwnSlug(found) => {
                let slug = found.slug.as_deref().unwrap_or_default();
                let message = format!(
                    "leads to {}, whose slug is {slug}: a link to a file leads to the name of the file",
                    found.shown.display()
                );
                (message, hint_of_address(site.address(found)))
            }
        }
    }
}

fn hint_of_address(address: Option<String>) -> String {
    match address {
        Some(address) => format!("write the address of its page: {address}"),
        None => "write the address of its page in place of the file".to_owned(),
    }
}

fn hint_of_file(site: &DocumentSite<'_>, path: &str, is_picture: bool) -> String {
    let what = match is_picture {
        true => "the picture",
        false => "the file",
    };
    match near_file(site, path) {
        Some(near) => format!("did you mean {near}?"),
        None => {
            let name = path.strip_prefix("/static").unwrap_or(path);
            format!("put {what} into static/ and write {name}")
        }
    }
}

/// The file for visitors that was probably meant. Its address is without the folder `static`.
pub(super) fn near_file<'g>(site: &DocumentSite<'g>, path: &str) -> Option<&'g str> {
    let path = path.strip_prefix("/static").unwrap_or(path);
    let (_, ending) = path.rsplit_once('.')?;
    let files = || site.generation.statics.files().map(|(path, _)| path);
    let mut same = files().filter(|file| *file == path);
    let same_ending = |file: &&str| file.rsplit_once('.').is_some_and(|(_, it)| it == ending);
    same.next()
        .or_else(|| closest(path, files().filter(same_ending)))
}

fn hint_of_document(site: &DocumentSite<'_>, document: &DocumentFile, file: &str) -> String {
    let name = file.rsplit('/').next().unwrap_or(file);
    let elsewhere = site.documents.named(name).next();
    if let Some(other) = elsewhere.filter(|other| other.table != document.table) {
        let shown = other.shown.display();
        let address = hint_of_address(site.address(other));
        return format!("did you mean {shown}? {}", capitalized(&address));
    }
    match closest(name, site.documents.names_of(&document.table)) {
        Some(near) => format!("did you mean {near}?"),
        None => "a link to another file names it from the folder of this one".to_owned(),
    }
}

fn capitalized(text: &str) -> String {
    let mut letters = text.chars();
    let first = letters.next().map(|first| first.to_uppercase().to_string());
    format!("{}{}", first.unwrap_or_default(), letters.as_str())
}
