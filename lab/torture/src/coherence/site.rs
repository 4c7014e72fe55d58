//! The site that the nodes serve: one page for each way in which a page can depend on a table.

use std::fs;
use std::io;
use std::path::Path;

use crate::coherence::rules;

/// A page: a JSON endpoint, or a template that lists the columns of each row.
pub(crate) struct PageScript {
    pub(crate) name: &'static str,
    pub(crate) json: bool,
    params: &'static str,
    pub(crate) queries: &'static [Query],
}

/// A query: its name, how many rows it gives, its columns in order, its text.
pub(crate) struct Query(
    pub(crate) &'static str,
    pub(crate) &'static str,
    pub(crate) &'static [&'static str],
    pub(crate) &'static str,
);

const fn page(name: &'static str, params: &'static str, queries: &'static [Query]) -> PageScript {
    PageScript {
        name,
        json: false,
        params,
        queries,
    }
}

const ID: &str = "-- param: id integer\n";
const NUMBER: &str = "-- param: place integer\n";

/// All pages but the form.
pub(crate) const PAGES: [PageScript; 17] = [
    // A join by the primary key.
    page(
        "account",
        ID,
        &[Query(
            "account",
            "one",
            &["version", "stamp", "mirrored", "mirror_stamp"],
            "select a.version, a.stamp, m.version as mirrored, m.stamp as mirror_stamp \
             from account a join mirror m on m.account_id = a.id where a.id = :id",
        )],
    ),
    // Two queries that must agree in every state.
    PageScript {
        name: "pair",
        json: true,
        params: ID,
        queries: &[
            Query(
                "account",
                "one",
                &["version", "stamp"],
                "select version, stamp from account where id = :id",
            ),
            Query(
                "mirror",
                "one",
                &["version", "stamp"],
                "select version, stamp from mirror where account_id = :id",
            ),
        ],
    },
    // Whole tables.
    page(
        "total",
        "",
        &[
            Query(
                "accounts",
                "one",
                &["accounts", "balance", "versions"],
                "select count(*) as accounts, sum(balance) as balance, sum(version) as versions from account",
            ),
            Query(
                "mirrors",
                "one",
                &["versions"],
                "select sum(version) as versions from mirror",
            ),
        ],
    ),
    // Rows that are added and removed by a column that is no key: a text; first with old values in
    // the feed, then without.
    page(
        "owner",
        "-- param: place text\n",
        &[Query(
            "rows",
            "many",
            &["id", "version"],
            "select id, version from account where owner = :place order by id",
        )],
    ),
    page(
        "shelf",
        NUMBER,
        &[Query(
            "rows",
            "many",
            &["id", "version"],
            "select id, version from item where shelf = :place order by id",
        )],
    ),
    page(
        "box",
        NUMBER,
        &[Query(
            "rows",
            "many",
            &["id", "version"],
            "select id, version from box where shelf = :place order by id",
        )],
    ),
    // A primary key that changes.
    page(
        "seat",
        NUMBER,
        &[Query(
            "rows",
            "many",
            &["guest", "version"],
            "select guest, version from seat where id = :place",
        )],
    ),
    page(
        "top",
        "",
        &[Query(
            "rows",
            "many",
            &["id", "version"],
            "select id, version from account order by version desc, id limit 5",
        )],
    ),
    page(
        "some",
        "-- param: id integer[]\n",
        &[Query(
            "rows",
            "many",
            &["id", "version"],
            "select id, version from account where id in (:id) order by id",
        )],
    ),
    page(
        "view",
        ID,
        &[Query(
            "state",
            "one",
            &["version", "mirrored"],
            "select version, mirrored from account_state where id = :id",
        )],
    ),
    page(
        "label",
        ID,
        &[Query(
            "label",
            "one",
            &["label"],
            "select label from label where id = :id",
        )],
    ),
    page(
        "entries",
        ID,
        &[Query(
            "newest",
            "one",
            &["number"],
            "select coalesce(max(number), 0) as number from entry where account_id = :id",
        )],
    ),
    page(
        "scrap",
        "",
        &[Query(
            "scrap",
            "one",
            &["pieces", "oldest", "newest"],
            "select count(*) as pieces, coalesce(min(round), 0) as oldest, coalesce(max(round), 0) as newest from scrap",
        )],
    ),
    // Four tables along keys: the parameter narrows the first, and witnesses narrow the others.
    page(
        "record",
        ID,
        &[Query(
            "record",
            "one",
            &[
                "version",
                "copied",
                "album",
                "album_version",
                "album_copied",
                "artist",
                "artist_version",
                "artist_copied",
                "publisher",
                "publisher_version",
            ],
            "select s.version, s.copied, \
             b.id as album, b.version as album_version, b.copied as album_copied, \
             r.id as artist, r.version as artist_version, r.copied as artist_copied, \
             p.id as publisher, p.version as publisher_version \
             from song s join album b on b.id = s.album join artist r on r.id = b.artist \
             join publisher p on p.id = r.publisher where s.id = :id",
        )],
    ),
    // A view with a join: the parameter narrows one table behind it, and a witness the other.
    page(
        "releases",
        NUMBER,
        &[Query(
            "rows",
            "many",
            &["id", "version", "copied", "artist", "artist_version"],
            "select id, version, copied, artist, artist_version from release where publisher = :place order by id",
        )],
    ),
    // What the catalog says, which SQLite does not have: there each version stays 0.
    page(
        "rules",
        "",
        &[Query(
            "rules",
            "one",
            &[
                "rule_0", "rule_1", "rule_2", "rule_3", "rule_4", "rule_5", "rule_6",
            ],
            RULES,
        )],
    ),
    page(
        "secret",
        "",
        &[Query("secret", "one", &["version"], SECRET_STATE)],
    ),
];

/// Stands for [`rules::query`].
const RULES: &str = "rules";
const SECRET_STATE: &str = "select version from secret_state where id = 1";

impl Query {
    /// The text for one of the databases.
    pub(crate) fn text(&self, on_postgres: bool) -> String {
        match self.3 {
            RULES | SECRET_STATE if !on_postgres => {
                let columns = self.2.iter().map(|column| format!("0 as {column}"));
                format!("select {}", columns.collect::<Vec<_>>().join(", "))
            }
            RULES => rules::query(),
            text => text.to_owned(),
        }
    }
}

/// All nodes have the same secret, so each node can read another node's cookie of a visitor's
/// write.
const SECRET: &str = "the-nodes-of-one-site-share-a-secret";

/// The form that raises an account's version, and its mirror's.
const RAISE: &str = "-- param: id integer

-- name: account :one
update account set version = version + 1, stamp = 0 where id = :id returning version;

-- name: mirror :exec
update mirror set version = version + 1, stamp = 0 where account_id = :id;

-- redirect: /account?id=:id&version=:version
";

/// The tables that are joined along keys: each with the next, and with the one before.
const KEYS: [(&str, &str, &str); 4] = [
    ("song", "album", ""),
    ("album", "artist", "song"),
    ("artist", "publisher", "album"),
    ("publisher", "", "artist"),
];

/// The forms `rename_TABLE` and `move_TABLE`, which do what other programs do to these tables.
fn shop_forms() -> Vec<(String, String)> {
    let mut forms = Vec::new();
    for (table, key, before) in KEYS {
        let copy = match before {
            "" => String::new(),
            before => format!(
                "-- name: copies :exec\nupdate {before} set copied = (select version from {table} where id = :id) where {table} = :id;\n"
            ),
        };
        let redirect = "-- redirect: /record?id=:id&version=:version\n";
        let renamed = format!(
            "{ID}-- name: row :one\nupdate {table} set version = version + 1 where id = :id returning version;\n{copy}{redirect}"
        );
        forms.push((format!("rename_{table}"), renamed));
        if !key.is_empty() {
            // The first statement takes the lock of the row whose version is copied.
            let moved = format!(
                "{ID}{NUMBER}-- name: lock :exec\nupdate {key} set version = version where id = :place;\n\
                 -- name: row :one\nupdate {table} set {key} = :place, copied = (select version from {key} where id = :place), \
                 version = version + 1 where id = :id returning version;\n{copy}{redirect}"
            );
            forms.push((format!("move_{table}"), moved));
        }
    }
    forms
}

impl PageScript {
    fn script(&self, on_postgres: bool) -> String {
        let queries = self.queries.iter().map(|query| {
            let (Query(name, rows, ..), sql) = (query, query.text(on_postgres));
            format!("\n-- name: {name} :{rows}\n{sql};\n")
        });
        format!("-- live\n{}{}", self.params, queries.collect::<String>())
    }

    /// `#NAME` for each query, then a line for each of its rows.
    fn template(&self) -> String {
        let queries = self.queries.iter().map(|Query(name, rows, columns, _)| {
            let row = |of: &str| {
                let columns = columns
                    .iter()
                    .map(|column| format!("{{{{ {of}.{column} }}}} "));
                columns.collect::<String>() + "\n"
            };
            match *rows {
                "many" => format!(
                    "#{name}\n{{% for row in {name} %}}{}{{% endfor %}}",
                    row("row")
                ),
                _ => format!("#{name}\n{}", row(name)),
            }
        });
        queries.collect()
    }
}

/// Writes the site into an empty folder, with `database` as the settings of that table, for
/// PostgreSQL or SQLite.
///
/// # Errors
/// A file cannot be written.
pub(crate) fn write(
    folder: &Path,
    database: &str,
    max_staleness: &str,
    on_postgres: bool,
) -> io::Result<()> {
    let pages = folder.join("pages");
    fs::create_dir_all(&pages)?;
    fs::write(
        folder.join("millpond.toml"),
        format!(
            "[database]\n{database}\n[cache]\nmax_staleness = \"{max_staleness}\"\n[session]\nsecret = \"{SECRET}\"\n"
        ),
    )?;
    fs::write(pages.join("raise.post.sql"), RAISE)?;
    for (name, form) in shop_forms() {
        fs::write(pages.join(format!("{name}.post.sql")), form)?;
    }
    for page in PAGES {
        fs::write(
            pages.join(format!("{}.sql", page.name)),
            page.script(on_postgres),
        )?;
        if !page.json {
            fs::write(pages.join(format!("{}.html", page.name)), page.template())?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::PAGES;

    #[test]
    fn a_page_is_a_script_and_a_template_that_lists_its_columns() {
        let page = PAGES.iter().find(|page| page.name == "shelf").unwrap();
        assert_eq!(
            page.script(true),
            "-- live\n-- param: place integer\n\n-- name: rows :many\nselect id, version from item where shelf = :place order by id;\n"
        );
        assert_eq!(
            page.template(),
            "#rows\n{% for row in rows %}{{ row.id }} {{ row.version }} \n{% endfor %}"
        );
    }
}
