//! An entry of the address book as a page shows it: the same for all three models.

/// Someone in the address book. What the file does not say is empty or missing.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct BookEntry {
    /// Unique in its file; part of the entry's address.
    pub id: String,
    /// First name.
    pub first: Option<String>,
    /// Last name.
    pub last: Option<String>,
    /// Employments of this person.
    pub jobs: Vec<Job>,
    /// The address that stands in the entry itself (simple model).
    pub own: PostalAddress,
    /// Addresses in elements of their own (medium and complex model).
    pub addresses: Vec<PostalAddress>,
    /// Numbers as people write them.
    pub phones: Vec<Contact>,
    /// Addresses of mailboxes.
    pub emails: Vec<Contact>,
    /// Names of the groups that this person belongs to.
    pub groups: Vec<String>,
    /// A date such as `1974-03-09`.
    pub birthday: Option<String>,
    /// Free text.
    pub note: Option<String>,
}

/// A postal address. It is shown if its street or its kind is known.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PostalAddress {
    /// Such as `home`.
    pub kind: Option<String>,
    /// Street and number.
    pub street: Option<String>,
    /// The rest of the address.
    pub town: Town,
}

/// The last line of a postal address.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Town {
    /// Postal code.
    pub code: Option<String>,
    /// City.
    pub city: Option<String>,
    /// Country.
    pub country: Option<String>,
}

/// A job at an organisation, whose address is this person's address at work.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Job {
    /// Role of the person there.
    pub title: Option<String>,
    /// Name and address of the employer.
    pub employer: Organisation,
}

/// A firm or a public body.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Organisation {
    /// Its name.
    pub name: Option<String>,
    /// Street and number.
    pub street: Option<String>,
    /// The rest of its address.
    pub town: Town,
}

/// A phone number or a mailbox.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Contact {
    /// Such as `mobile`.
    pub kind: Option<String>,
    /// The number or the address.
    pub text: Option<String>,
}

/// View of a file on a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BookView<'a> {
    /// Every entry.
    List,
    /// Entries whose name (first, space, last) contains this text. Upper and lower case of ASCII
    /// letters are the same.
    Search(&'a str),
    /// The entry with this id, the first if there are several.
    Entry(&'a str),
}

impl BookView<'_> {
    /// True if the page shows this entry.
    pub fn shows(&self, entry: &BookEntry) -> bool {
        match self {
            BookView::List => true,
            BookView::Search(text) => entry
                .name()
                .to_ascii_lowercase()
                .contains(&text.to_ascii_lowercase()),
            BookView::Entry(id) => entry.id == *id,
        }
    }
}

impl BookEntry {
    /// First and last name.
    pub fn name(&self) -> String {
        let [first, last] = [&self.first, &self.last].map(|name| name.as_deref().unwrap_or(""));
        format!("{first} {last}")
    }
}
