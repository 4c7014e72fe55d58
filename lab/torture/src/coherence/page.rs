//! The pages of a site, and a page's text as rows.

use crate::Choices;

use crate::coherence::schema::{ACCOUNTS, OWNERS, PUBLISHERS, SEATS, SHELVES, SONGS, ThingKind};
use crate::coherence::site::PAGES;

/// A page's rows, query by query, each row as its columns' numbers.
pub(crate) type PageRows = Vec<Vec<Vec<u64>>>;

/// One page for one set of parameters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Ask {
    Account(u32),
    Pair(u32),
    View(u32),
    Label(u32),
    Entries(u32),
    Total,
    Top,
    Some([u32; 3]),
    /// All that is in one place.
    Place(ThingKind, String),
    Scrap,
    /// A song with what its keys lead to.
    Record(u32),
    /// The albums of a publisher's artists.
    Releases(u32),
    /// The versions of the rules that the catalog has.
    Rules,
    /// A view whose owner may read only at times.
    Secret,
}

impl Ask {
    /// Any of them.
    pub(crate) fn any(choices: &mut Choices<'_>) -> Self {
        let mut number =
            |bound: u32| u32::try_from(choices.below(bound as usize)).unwrap_or_default();
        let page = number(17);
        let account = number(ACCOUNTS) + 1;
        let shelf = number(SHELVES).to_string();
        match page {
            0 => Self::Account(account),
            1 => Self::Pair(account),
            2 => Self::View(account),
            3 => Self::Label(account),
            4 => Self::Entries(account),
            5 => Self::Total,
            6 => Self::Top,
            7 => Self::Some([account, number(ACCOUNTS) + 1, number(ACCOUNTS) + 1]),
            8 => Self::Place(ThingKind::Item, shelf),
            9 => Self::Place(ThingKind::Boxed, shelf),
            10 => Self::Place(ThingKind::Guest, number(SEATS).to_string()),
            11 => Self::Place(
                ThingKind::Account,
                OWNERS[number(OWNERS.len() as u32) as usize].to_owned(),
            ),
            12 => Self::Scrap,
            13 => Self::Record(number(SONGS) + 1),
            14 => Self::Releases(number(PUBLISHERS) + 1),
            15 => Self::Rules,
            _ => Self::Secret,
        }
    }

    /// One that many writes change.
    pub(crate) fn popular(choices: &mut Choices<'_>) -> Self {
        match Self::any(choices) {
            ask @ (Self::Account(_)
            | Self::Place(..)
            | Self::Top
            | Self::Total
            | Self::Record(_)
            | Self::Releases(_)
            | Self::Rules
            | Self::Secret) => ask,
            _ => Self::Total,
        }
    }

    /// The request target.
    pub(crate) fn target(&self) -> String {
        let parameters: Vec<String> = self
            .parameters()
            .iter()
            .map(|(name, value)| format!("{name}={}", value.replace('\'', "%27")))
            .collect();
        format!("/{}?{}", self.page(), parameters.join("&"))
    }

    /// The name of its page.
    pub(crate) fn page(&self) -> &'static str {
        match self {
            Self::Account(_) => "account",
            Self::Pair(_) => "pair",
            Self::View(_) => "view",
            Self::Label(_) => "label",
            Self::Entries(_) => "entries",
            Self::Total => "total",
            Self::Top => "top",
            Self::Some(_) => "some",
            Self::Place(ThingKind::Item, _) => "shelf",
            Self::Place(ThingKind::Boxed, _) => "box",
            Self::Place(ThingKind::Guest, _) => "seat",
            Self::Place(..) => "owner",
            Self::Scrap => "scrap",
            Self::Record(_) => "record",
            Self::Releases(_) => "releases",
            Self::Rules => "rules",
            Self::Secret => "secret",
        }
    }

    fn parameters(&self) -> Vec<(&'static str, String)> {
        match self {
            Self::Account(id)
            | Self::Pair(id)
            | Self::View(id)
            | Self::Label(id)
            | Self::Entries(id)
            | Self::Record(id) => vec![("id", id.to_string())],
            Self::Total | Self::Top | Self::Scrap | Self::Rules | Self::Secret => Vec::new(),
            Self::Some(ids) => ids.iter().map(|id| ("id", id.to_string())).collect(),
            Self::Place(_, place) => vec![("place", place.clone())],
            Self::Releases(place) => vec![("place", place.to_string())],
        }
    }

    /// The page's rows; none if the text is not of such a page.
    pub(crate) fn read(&self, body: &str) -> Option<PageRows> {
        let page = PAGES.iter().find(|page| page.name == self.page())?;
        let rows = if page.json {
            from_json(body)?
        } else {
            from_text(body)?
        };
        let fits = rows.len() == page.queries.len()
            && rows.iter().zip(page.queries).all(|(rows, query)| {
                (query.1 == "many" || rows.len() == 1)
                    && rows.iter().all(|row| row.len() == query.2.len())
            });
        fits.then_some(rows)
    }
}

fn from_text(body: &str) -> Option<PageRows> {
    // The script of a live page stands at its end.
    let (body, _) = body.split_once("<script").unwrap_or((body, ""));
    let mut queries = Vec::<Vec<Vec<u64>>>::new();
    for line in body.lines().filter(|line| !line.trim().is_empty()) {
        if line.starts_with('#') {
            queries.push(Vec::new());
        } else {
            let row = line.split_whitespace().map(|word| word.parse().ok());
            queries.last_mut()?.push(row.collect::<Option<_>>()?);
        }
    }
    Some(queries)
}

/// Each query of a JSON page here gives one row.
fn from_json(body: &str) -> Option<PageRows> {
    let all: serde_json::Value = serde_json::from_str(body).ok()?;
    let rows = all.as_object()?.values().map(|row| {
        let columns = row.as_object()?.values().map(serde_json::Value::as_u64);
        Some(vec![columns.collect::<Option<Vec<u64>>>()?])
    });
    rows.collect()
}

#[cfg(test)]
impl Ask {
    /// The page as queries to a database, with values in the place of parameters.
    pub(crate) fn statements(&self) -> Vec<(&'static str, &'static str, String)> {
        let page = PAGES.iter().find(|page| page.name == self.page()).unwrap();
        let parameters = self.parameters();
        let queries = page.queries.iter().map(|query| {
            let mut sql = query.text(true);
            for (name, _) in &parameters {
                let values = parameters.iter().filter(|(other, _)| other == name);
                let values = values.map(|(_, value)| format!("'{}'", value.replace('\'', "''")));
                let values = values.collect::<Vec<_>>().join(", ");
                sql = sql.replace(&format!(":{name}"), &values);
            }
            (query.0, query.1, sql)
        });
        queries.collect()
    }

    /// Returns the page that a request target asks for.
    pub(crate) fn of_target(target: &str) -> Option<Self> {
        let (page, query) = target.strip_prefix('/')?.split_once('?')?;
        let values: Vec<String> = query
            .split('&')
            .filter_map(|pair| Some(pair.split_once('=')?.1.replace("%27", "'")))
            .collect();
        let number = |at: usize| values.get(at)?.parse().ok();
        let place = |kind| Some(Self::Place(kind, values.first()?.clone()));
        match page {
            "account" => number(0).map(Self::Account),
            "pair" => number(0).map(Self::Pair),
            "view" => number(0).map(Self::View),
            "label" => number(0).map(Self::Label),
            "entries" => number(0).map(Self::Entries),
            "total" => Some(Self::Total),
            "top" => Some(Self::Top),
            "some" => Some(Self::Some([number(0)?, number(1)?, number(2)?])),
            "shelf" => place(ThingKind::Item),
            "box" => place(ThingKind::Boxed),
            "seat" => place(ThingKind::Guest),
            "owner" => place(ThingKind::Account),
            "scrap" => Some(Self::Scrap),
            "record" => number(0).map(Self::Record),
            "releases" => number(0).map(Self::Releases),
            "rules" => Some(Self::Rules),
            "secret" => Some(Self::Secret),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::Choices;

    use super::Ask;
    use crate::coherence::schema::ThingKind;

    #[test]
    fn every_target_names_its_page() {
        let mut choices = Choices::seeded(1);
        for _ in 0..1000 {
            let ask = Ask::any(&mut choices);
            assert_eq!(Ask::of_target(&ask.target()), Some(ask));
        }
    }

    #[test]
    fn only_pages_are_read_as_rows() {
        let shelf = Ask::Place(ThingKind::Item, "1".to_owned());
        assert_eq!(shelf.read("#rows\n"), Some(vec![vec![]]));
        let two = shelf.read("#rows\n1 5 \n4 2 \n");
        assert_eq!(two, Some(vec![vec![vec![1, 5], vec![4, 2]]]));
        assert_eq!(
            shelf.read("#rows\n1 5 <script src=x>"),
            Some(vec![vec![vec![1, 5]]])
        );
        assert_eq!(shelf.read("<h1>Not found</h1>"), None);
        assert_eq!(shelf.read("#rows\n1\n"), None);
        let total = Ask::Total.read("#accounts\n12 12000 7\n#mirrors\n7\n");
        assert_eq!(total, Some(vec![vec![vec![12, 12000, 7]], vec![vec![7]]]));
        assert_eq!(Ask::Total.read("#accounts\n12 12000 7\n"), None);
        let pair = r#"{"account":{"version":3,"stamp":9},"mirror":{"version":3,"stamp":9}}"#;
        let pair = Ask::Pair(1).read(pair);
        assert_eq!(pair, Some(vec![vec![vec![3, 9]], vec![vec![3, 9]]]));
    }
}
