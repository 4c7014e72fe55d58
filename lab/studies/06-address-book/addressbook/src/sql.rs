//! By SQL: the same entries in tables of SQLite, read with a connection for each request or with
//! connections that are kept.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use rusqlite::{Connection, OpenFlags, Row, params};

use crate::entry::{BookEntry, BookView, Contact, Job, Organisation, PostalAddress, Town};
use crate::{DataFile, html::MainContent};

const SCHEMA: &str = "
    pragma journal_mode = wal;
    pragma synchronous = off;
    pragma foreign_keys = on;
    create table if not exists entry (
        key integer primary key, file text not null, place integer not null, id text not null,
        first text, last text, street text, code text, city text, country text,
        birthday text, note text
    );
    create unique index if not exists entry_place on entry (file, place);
    create index if not exists entry_id on entry (file, id);
    create table if not exists job (
        entry integer references entry on delete cascade, place integer,
        title text, name text, street text, code text, city text, country text,
        primary key (entry, place)
    ) without rowid;
    create table if not exists address (
        entry integer references entry on delete cascade, place integer,
        kind text, street text, code text, city text, country text,
        primary key (entry, place)
    ) without rowid;
    create table if not exists contact (
        entry integer references entry on delete cascade, place integer,
        medium text, kind text, value text,
        primary key (entry, medium, place)
    ) without rowid;
    create table if not exists member (
        entry integer references entry on delete cascade, place integer, name text,
        primary key (entry, place)
    ) without rowid;
";

/// Connections that are kept at most; further ones are closed after their request.
const MAX_IDLE: usize = 32;

/// A database with the entries of all files.
pub struct BookDatabase {
    path: PathBuf,
    writer: Mutex<Connection>,
    idle: Mutex<Vec<Connection>>,
}

impl BookDatabase {
    /// Opens the database, or makes it.
    ///
    /// # Errors
    /// The file cannot be opened or is no database.
    pub fn open(path: &Path) -> rusqlite::Result<Self> {
        let writer = Connection::open(path)?;
        writer.execute_batch(SCHEMA)?;
        Ok(Self {
            path: path.to_owned(),
            writer: Mutex::new(writer),
            idle: Mutex::default(),
        })
    }

    /// Replaces the entries of a file, in one transaction.
    ///
    /// # Errors
    /// The database cannot be written.
    pub fn replace(&self, file: DataFile, entries: &[BookEntry]) -> rusqlite::Result<()> {
        let mut writer = self.writer.lock().unwrap_or_else(PoisonError::into_inner);
        let transaction = writer.transaction()?;
        let file = file.name();
        transaction.execute("delete from entry where file = ?1", [&file])?;
        for (place, entry) in (1_i64..).zip(entries) {
            insert(&transaction, &file, place, entry)?;
        }
        transaction.commit()
    }

    /// The content of a page, with a connection of its own.
    ///
    /// # Errors
    /// The database cannot be read.
    pub fn render_by_connection(
        &self,
        file: DataFile,
        base: &str,
        view: BookView<'_>,
    ) -> rusqlite::Result<Option<String>> {
        render(&self.connect()?, file, base, view)
    }

    /// The content of a page, with a connection that is kept and its prepared statements.
    ///
    /// # Errors
    /// The database cannot be read.
    pub fn render_by_pool(
        &self,
        file: DataFile,
        base: &str,
        view: BookView<'_>,
    ) -> rusqlite::Result<Option<String>> {
        let idle = || self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        let kept = idle().pop();
        let connection = match kept {
            Some(connection) => connection,
            None => self.connect()?,
        };
        let page = render(&connection, file, base, view)?;
        let mut idle = idle();
        if idle.len() < MAX_IDLE {
            idle.push(connection);
        }
        Ok(page)
    }

    fn connect(&self) -> rusqlite::Result<Connection> {
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        Connection::open_with_flags(&self.path, flags)
    }
}

fn insert(
    connection: &Connection,
    file: &str,
    place: i64,
    entry: &BookEntry,
) -> rusqlite::Result<()> {
    let own = &entry.own;
    connection
        .prepare_cached(
            "insert into entry (file, place, id, first, last, street, code, city, country,
                birthday, note)
            values (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)",
        )?
        .execute(params![
            file,
            place,
            entry.id,
            entry.first,
            entry.last,
            own.street,
            own.town.code,
            own.town.city,
            own.town.country,
            entry.birthday,
            entry.note
        ])?;
    let key = connection.last_insert_rowid();
    let mut job =
        connection.prepare_cached("insert into job values (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)")?;
    for (place, each) in (1_i64..).zip(&entry.jobs) {
        let employer = &each.employer;
        let town = &employer.town;
        job.execute(params![
            key,
            place,
            each.title,
            employer.name,
            employer.street,
            town.code,
            town.city,
            town.country
        ])?;
    }
    let mut address =
        connection.prepare_cached("insert into address values (?1, ?2, ?3, ?4, ?5, ?6, ?7)")?;
    for (place, each) in (1_i64..).zip(&entry.addresses) {
        let town = &each.town;
        address.execute(params![
            key,
            place,
            each.kind,
            each.street,
            town.code,
            town.city,
            town.country
        ])?;
    }
    let mut contact =
        connection.prepare_cached("insert into contact values (?1, ?2, ?3, ?4, ?5)")?;
    for (medium, contacts) in [("phone", &entry.phones), ("email", &entry.emails)] {
        for (place, each) in (1_i64..).zip(contacts) {
            contact.execute(params![key, place, medium, each.kind, each.text])?;
        }
    }
    let mut member = connection.prepare_cached("insert into member values (?1, ?2, ?3)")?;
    for (place, name) in (1_i64..).zip(&entry.groups) {
        member.execute(params![key, place, name])?;
    }
    Ok(())
}

fn render(
    connection: &Connection,
    file: DataFile,
    base: &str,
    view: BookView<'_>,
) -> rusqlite::Result<Option<String>> {
    let mut page = MainContent::new(base, view);
    for entry in entries(connection, file, view)? {
        if !page.offer(&entry) {
            break;
        }
    }
    Ok(page.finish())
}

/// The entries that a view shows, all read in one snapshot.
fn entries(
    connection: &Connection,
    file: DataFile,
    view: BookView<'_>,
) -> rusqlite::Result<Vec<BookEntry>> {
    let (condition, value) = match view {
        BookView::List => ("?2 = ''", ""),
        // As in `BookView::shows`: SQLite's `lower` changes ASCII letters only.
        BookView::Search(text) => (
            "instr(lower(coalesce(e.first, '') || ' ' || coalesce(e.last, '')), lower(?2)) > 0",
            text,
        ),
        BookView::Entry(id) => ("e.id = ?2", id),
    };
    let snapshot = connection.unchecked_transaction()?;
    let mut selection = Selection {
        connection: &snapshot,
        file: file.name(),
        condition,
        value,
        places: HashMap::new(),
        entries: Vec::new(),
    };
    selection.read_entries()?;
    selection.read_details(
        "job",
        "title, name, d.street, d.code, d.city, d.country",
        |entry, row| {
            entry.jobs.push(Job {
                title: row.get(1)?,
                employer: Organisation {
                    name: row.get(2)?,
                    street: row.get(3)?,
                    town: town(row, 4)?,
                },
            });
            Ok(())
        },
    )?;
    selection.read_details(
        "address",
        "kind, d.street, d.code, d.city, d.country",
        |entry, row| {
            entry.addresses.push(PostalAddress {
                kind: row.get(1)?,
                street: row.get(2)?,
                town: town(row, 3)?,
            });
            Ok(())
        },
    )?;
    selection.read_details("contact", "kind, d.value, d.medium", |entry, row| {
        let contact = Contact {
            kind: row.get(1)?,
            text: row.get(2)?,
        };
        match row.get_ref(3)?.as_str()? {
            "phone" => entry.phones.push(contact),
            _ => entry.emails.push(contact),
        }
        Ok(())
    })?;
    selection.read_details("member", "name", |entry, row| {
        entry.groups.push(row.get(1)?);
        Ok(())
    })?;
    Ok(selection.entries)
}

/// Rows that one view selects of a file, while it is read.
struct Selection<'a> {
    connection: &'a Connection,
    file: String,
    condition: &'static str,
    value: &'a str,
    /// Index of an entry by its key.
    places: HashMap<i64, usize>,
    entries: Vec<BookEntry>,
}

impl Selection<'_> {
    fn read_entries(&mut self) -> rusqlite::Result<()> {
        let sql = format!(
            "select e.key, e.id, e.first, e.last, e.birthday, e.note,
                e.street, e.code, e.city, e.country
            from entry e where e.file = ?1 and {} order by e.place",
            self.condition
        );
        let mut statement = self.connection.prepare_cached(&sql)?;
        let mut rows = statement.query(params![self.file, self.value])?;
        while let Some(row) = rows.next()? {
            self.places.insert(row.get(0)?, self.entries.len());
            self.entries.push(BookEntry {
                id: row.get(1)?,
                first: row.get(2)?,
                last: row.get(3)?,
                birthday: row.get(4)?,
                note: row.get(5)?,
                own: PostalAddress {
                    kind: None,
                    street: row.get(6)?,
                    town: town(row, 7)?,
                },
                ..BookEntry::default()
            });
        }
        Ok(())
    }

    /// Adds the rows of a table to their entries.
    fn read_details(
        &mut self,
        table: &str,
        columns: &str,
        add: impl Fn(&mut BookEntry, &Row<'_>) -> rusqlite::Result<()>,
    ) -> rusqlite::Result<()> {
        let sql = format!(
            "select d.entry, d.{columns} from entry e join {table} d on d.entry = e.key
            where e.file = ?1 and {} order by e.place, d.place",
            self.condition
        );
        let mut statement = self.connection.prepare_cached(&sql)?;
        let mut rows = statement.query(params![self.file, self.value])?;
        while let Some(row) = rows.next()? {
            if let Some(at) = self.places.get(&row.get(0)?) {
                add(&mut self.entries[*at], row)?;
            }
        }
        Ok(())
    }
}

/// A town from three columns, of which `first` is the code.
fn town(row: &Row<'_>, first: usize) -> rusqlite::Result<Town> {
    Ok(Town {
        code: row.get(first)?,
        city: row.get(first + 1)?,
        country: row.get(first + 2)?,
    })
}
