//! Facts of a file's rows beside its content: what its name says, where the file is one
//! row, and which element of XML is a row.

use serde_json::Value as Json;

use crate::moment::Moment;
use crate::name::column_name;
use crate::row::{FieldValue, of_json};

/// Parts of a file's name that say more than a slug.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NameParts {
    /// `2014-05-06-hello` is the slug `hello` of that date.
    pub date: bool,
    /// `hello/index` is the slug `hello`.
    pub folder: bool,
    /// The address in the front matter, as in `path: 2014/05/06/hello`, has the date.
    pub address: bool,
}

/// The fields of a row that the name of its file gives, unless the file gives them itself; and the
/// element of XML that is a row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RowName {
    slug: String,
    folder: Option<String>,
    date: Option<String>,
    /// True if an address in the file has the date, where neither the file nor its name gives one.
    is_dated_by_address: bool,
    pub(crate) element: Option<String>,
}

impl RowName {
    /// The name of a file by its path below the folder of its table, without the ending.
    #[must_use]
    pub fn of(path: &str, parts: NameParts) -> Self {
        let split = |path: &str| match path.rsplit_once('/') {
            Some((folder, slug)) => (Some(folder.to_owned()), slug.to_owned()),
            None => (None, path.to_owned()),
        };
        let (mut folder, mut slug) = split(path);
        if let Some(of) = folder.take_if(|_| parts.folder && slug.eq_ignore_ascii_case("index")) {
            (folder, slug) = split(&of);
        }
        let dated = slug.split_at_checked(10).and_then(|(day, rest)| {
            let rest = rest
                .strip_prefix(['-', '_'])
                .filter(|rest| !rest.is_empty())?;
            Moment::parse(day).map(|_| (day.to_owned(), rest.to_owned()))
        });
        let date = dated.filter(|_| parts.date).map(|(day, rest)| {
            slug = rest;
            day
        });
        Self {
            slug,
            folder,
            date,
            is_dated_by_address: parts.address,
            element: None,
        }
    }

    /// Names the element of XML that is a row, wherever it is in the document.
    #[must_use]
    pub fn with_element(mut self, element: Option<&str>) -> Self {
        self.element = element.map(str::to_owned);
        self
    }

    /// True if there is a folder between the file and that of its table.
    #[must_use]
    pub const fn is_nested(&self) -> bool {
        self.folder.is_some()
    }
}

/// True if a name in a file is that of a column.
pub(crate) fn is_named(name: &str, column: &str) -> bool {
    column_name(name).as_deref() == Some(column)
}

/// The fields of one object, with what the name of its file gives where it has none.
pub(crate) fn with_name<'a>(
    name: Option<&'a RowName>,
    fields: Vec<(String, Json)>,
) -> Vec<(String, FieldValue<'a>)> {
    let addressed = name.filter(|name| name.is_dated_by_address && name.date.is_none());
    let addressed = addressed.and_then(|_| day_of_address(&fields));
    let given = name.into_iter().flat_map(|name| {
        let slug = Some(&name.slug);
        [
            ("folder", name.folder.as_ref()),
            ("slug", slug),
            ("date", name.date.as_ref().or(addressed.as_ref())),
        ]
    });
    let given = given.filter_map(|(column, value)| Some((column, value?)));
    let has = |column: &str| fields.iter().any(|(name, _)| is_named(name, column));
    let given = given.filter(|(column, _)| !has(column));
    let given: Vec<_> = given
        .map(|(column, value)| (column.to_owned(), FieldValue::Text(value.clone().into())))
        .collect();
    let fields = fields.into_iter().map(|(name, json)| {
        // MkDocs has the dates of a post in one field.
        let created = json.get("created").filter(|created| created.is_string());
        let created = created.filter(|_| is_named(&name, "date")).cloned();
        (name, of_json(created.unwrap_or(json)))
    });
    given.into_iter().chain(fields).collect()
}

/// The day in an address of the front matter.
fn day_of_address(fields: &[(String, Json)]) -> Option<String> {
    let is_address = |name: &str| {
        ["path", "permalink", "url"]
            .iter()
            .any(|it| is_named(name, it))
    };
    let mut addresses = fields.iter().filter(|(name, _)| is_address(name));
    let (_, address) = addresses.next()?;
    let parts: Vec<&str> = address.as_str()?.split('/').collect();
    let days = parts.windows(3).map(|parts| parts.join("-"));
    let mut days = days.filter(|day| Moment::parse(day).is_some());
    days.next()
}
