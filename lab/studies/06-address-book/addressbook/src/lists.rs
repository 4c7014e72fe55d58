//! The lists at the head of a file of the complex model, which entries refer to by id.

use std::collections::HashMap;

use crate::entry::{Organisation, Town};

/// Shared elements of a file, each of which stands there once. The first of several with one id
/// counts, as in XSLT.
#[derive(Debug, Default)]
pub(crate) struct Lists {
    countries: HashMap<String, Option<String>>,
    cities: HashMap<String, Town>,
    organisations: HashMap<String, Organisation>,
    groups: HashMap<String, String>,
}

/// A member of any of the lists as the file has it.
#[derive(Debug, Default)]
pub(crate) struct ListItem {
    pub(crate) id: String,
    /// The id of what it belongs to: a city's country, an organisation's city.
    pub(crate) within: String,
    /// The text of a country or of a group, else the name.
    pub(crate) name: Option<String>,
    pub(crate) code: Option<String>,
    pub(crate) street: Option<String>,
}

impl Lists {
    /// Adds a member to the list that is named by its elements. Lists that it refers to are
    /// complete.
    pub(crate) fn add(&mut self, element: &str, item: ListItem) {
        let ListItem {
            id,
            within,
            name,
            code,
            street,
        } = item;
        match element {
            "country" => {
                self.countries.entry(id).or_insert(name);
            }
            "city" => {
                let country = self.countries.get(&within).cloned().flatten();
                self.cities.entry(id).or_insert(Town {
                    code,
                    city: name,
                    country,
                });
            }
            "organisation" => {
                let town = self.town(&within);
                self.organisations
                    .entry(id)
                    .or_insert(Organisation { name, street, town });
            }
            _ => {
                self.groups.entry(id).or_insert(name.unwrap_or_default());
            }
        }
    }

    /// The city with this id; empty if there is none.
    pub(crate) fn town(&self, city: &str) -> Town {
        self.cities.get(city).cloned().unwrap_or_default()
    }

    /// The organisation with this id; empty if there is none.
    pub(crate) fn organisation(&self, id: &str) -> Organisation {
        self.organisations.get(id).cloned().unwrap_or_default()
    }

    /// The name of a group, unless it is unknown or empty.
    pub(crate) fn group(&self, id: &str) -> Option<String> {
        self.groups.get(id).filter(|name| !name.is_empty()).cloned()
    }
}
