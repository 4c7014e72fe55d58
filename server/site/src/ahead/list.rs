//! The list of hot pages that outlives a restart: which pages were hot, never their content.
//!
//! Each page is one line of JSON, the hottest first. The first line says what the file is and how
//! many lines follow, so the owner can read the file, and a truncated file is noticed. A line has
//! the route and the parameters by name, as a request would have them. Each page is checked when
//! the list is read; a page that is gone, or has other parameters now, is skipped.
//!
//! The file is untrusted input. A damaged list is not used and is replaced; a file that is no list
//! is left alone.

use std::fs::{self, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use millpond_db::Value;
use serde_json::{Map, Value as Json, json};

use super::{remake::Edition, values};
use millpond_site_compile::page::Page;

/// Pages in the list.
pub(super) const PAGES: usize = 10_000;
/// The longest line; a page with longer parameters is left out.
const LINE: usize = 2 << 10;
/// The largest file.
const BYTES: usize = 4 << 20;

const KIND: &str = "hot pages";
const VERSION: u64 = 1;

pub(super) struct List {
    path: PathBuf,
    /// True if there is a file that must not be replaced.
    is_foreign: bool,
    /// True if the owner was notified that the list cannot be written.
    has_told: bool,
    /// The file's text, if this process has written it.
    written: Option<String>,
}

/// Why there is nothing to read.
#[derive(Debug, PartialEq, Eq)]
enum Unused {
    Absent,
    /// It was a list.
    Damaged(&'static str),
    Foreign,
    Unreadable(String),
}

impl List {
    pub(super) fn new(path: PathBuf) -> Self {
        Self {
            path,
            is_foreign: false,
            has_told: false,
            written: None,
        }
    }

    /// The lines that were written last; none if they cannot be used, and then `report` is called
    /// with the reason.
    pub(super) fn read(&mut self, report: impl FnOnce(&str)) -> Vec<String> {
        let shown = self.path.display();
        let why = match load(&self.path) {
            Ok(lines) => return lines,
            Err(why) => why,
        };
        match &why {
            Unused::Absent => {}
            Unused::Damaged(what) => report(&format!(
                "the list of hot pages in {shown} is {what}; it is not used, and the next one takes its place"
            )),
            Unused::Foreign => report(&format!(
                "{shown} is no list of hot pages and stays as it is, so no list is kept; let cache.warm_list name another file"
            )),
            Unused::Unreadable(error) => report(&format!(
                "the list of hot pages in {shown} cannot be read, so pages are made as they are asked for: {error}"
            )),
        }
        self.is_foreign = why == Unused::Foreign;
        Vec::new()
    }

    /// Replaces the list, unless it is equal already or there is nothing to write. If that fails,
    /// `report` is called once.
    pub(super) fn write(&mut self, lines: &[String], report: impl FnOnce(&str)) {
        if self.is_foreign || lines.is_empty() {
            return;
        }
        let text = text_of(lines);
        if self.written.as_ref() == Some(&text) {
            return;
        }
        match replace(&self.path, &text) {
            Ok(()) => self.written = Some(text),
            Err(_) if self.has_told => {}
            Err(error) => {
                self.has_told = true;
                report(&format!(
                    "the list of hot pages cannot be written to {}, so after a restart they are made as they are asked for: {error}; \
                     let cache.warm_list name a file that the server may write, or be false",
                    self.path.display()
                ));
            }
        }
    }
}

fn text_of(lines: &[String]) -> String {
    let head = |count: usize| {
        json!({ "millpond": KIND, "version": VERSION, "pages": count }).to_string() + "\n"
    };
    let mut room = BYTES - head(usize::MAX).len();
    let fit = |line: &&String| {
        let fits = room > line.len();
        room = room.saturating_sub(line.len() + 1);
        fits
    };
    let fitting: Vec<&String> = lines.iter().take(PAGES).take_while(fit).collect();
    let mut text = head(fitting.len());
    for line in fitting {
        text.push_str(line);
        text.push('\n');
    }
    text
}

/// Replaces the file atomically. Only the owner may read it: parameters may be visitors' searches.
fn replace(path: &Path, text: &str) -> io::Result<()> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    // Hidden, so that the watch passes over it, and of this process.
    let draft = path.with_file_name(format!(".{name}.{}", std::process::id()));
    let _ = fs::remove_file(&draft);
    let written = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(&draft)
        .and_then(|mut file| file.write_all(text.as_bytes()))
        .and_then(|()| fs::rename(&draft, path));
    if written.is_err() {
        let _ = fs::remove_file(&draft);
    }
    written
}

fn load(path: &Path) -> Result<Vec<String>, Unused> {
    let unreadable = |error: io::Error| match error.kind() {
        io::ErrorKind::NotFound => Unused::Absent,
        _ => Unused::Unreadable(error.to_string()),
    };
    // A pipe would be waited for.
    if !fs::metadata(path).map_err(unreadable)?.is_file() {
        return Err(Unused::Foreign);
    }
    let mut bytes = Vec::new();
    let file = fs::File::open(path).map_err(unreadable)?;
    file.take(BYTES as u64 + 1)
        .read_to_end(&mut bytes)
        .map_err(unreadable)?;
    parse(&bytes)
}

fn parse(bytes: &[u8]) -> Result<Vec<String>, Unused> {
    if bytes.is_empty() {
        return Err(Unused::Damaged("empty"));
    }
    let (head, rest) = match bytes.iter().position(|byte| *byte == b'\n') {
        Some(end) => (&bytes[..end], &bytes[end + 1..]),
        None => (bytes, &[][..]),
    };
    let head: Json = serde_json::from_slice(head).map_err(|_| Unused::Foreign)?;
    if head["millpond"] != KIND {
        return Err(Unused::Foreign);
    }
    if head["version"] != VERSION {
        return Err(Unused::Damaged("of another version"));
    }
    if bytes.len() > BYTES {
        return Err(Unused::Damaged("too large"));
    }
    let text = std::str::from_utf8(rest).map_err(|_| Unused::Damaged("damaged"))?;
    let lines: Vec<String> = text.lines().map(str::to_owned).collect();
    let is_whole = text.is_empty() || text.ends_with('\n');
    if !is_whole || head["pages"] != lines.len() || lines.len() > PAGES {
        return Err(Unused::Damaged("cut off"));
    }
    if lines.iter().any(|line| read_line(line).is_none()) {
        return Err(Unused::Damaged("damaged"));
    }
    Ok(lines)
}

fn read_line(line: &str) -> Option<(String, Map<String, Json>)> {
    match serde_json::from_str(line).ok()? {
        Json::Object(mut fields) => match (fields.remove("page")?, fields.remove("with")?) {
            (Json::String(page), Json::Object(with)) => Some((page, with)),
            _ => None,
        },
        _ => None,
    }
}

/// The line of a page; none if no request could ask for it so.
pub(super) fn line_of(page: &Page, values: &[Value]) -> Option<String> {
    let with = page.params.iter().zip(values);
    let with: Map<String, Json> = with
        .map(|(param, value)| Some((param.name.clone(), values::to_json(value)?)))
        .collect::<Option<_>>()?;
    let line = json!({ "page": page.route, "with": with }).to_string();
    (line.len() <= LINE).then_some(line)
}

/// The page of a line, if there is one with these parameters.
pub(super) fn page_of(line: &str, edition: &Edition) -> Option<(Arc<Page>, Vec<Value>)> {
    let (route, with) = read_line(line)?;
    let page = edition.page(&route)?;
    if with.len() != page.params.len() {
        return None;
    }
    let values = page
        .params
        .iter()
        .map(|param| values::from_json(param, with.get(&param.name)?))
        .collect::<Option<_>>()?;
    Some((page.clone(), values))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(id: usize) -> String {
        json!({ "page": "/read", "with": { "id": id } }).to_string()
    }

    fn silent(list: &mut List) -> Vec<String> {
        list.read(|note| panic!("{note}"))
    }

    #[test]
    fn what_was_written_is_read_and_only_its_owner_may_read_it() {
        use std::os::unix::fs::PermissionsExt as _;
        let dir = lab_testkit::fast_dir();
        let path = dir.path().join("site.db.warm");
        let mut list = List::new(path.clone());
        assert!(silent(&mut list).is_empty());
        list.write(&[], |note| panic!("{note}"));
        assert!(!path.exists());
        let lines: Vec<_> = (0..3).map(line).collect();
        list.write(&lines, |note| panic!("{note}"));
        assert_eq!(silent(&mut List::new(path.clone())), lines);
        let mode = fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
    }

    #[test]
    fn it_has_an_end() {
        let many: Vec<_> = (0..2 * PAGES).map(line).collect();
        let read = parse(text_of(&many).as_bytes()).unwrap();
        assert_eq!(read, many[..PAGES]);
        let long = vec!["x".repeat(LINE); PAGES];
        let text = text_of(&long);
        assert!(text.len() <= BYTES && text.len() > BYTES - 2 * LINE);
    }

    #[test]
    fn a_damaged_list_is_not_used_and_is_replaced() {
        let good = text_of(&(0..3).map(line).collect::<Vec<_>>());
        let lines: Vec<&str> = good.lines().collect();
        let huge = good.clone() + &"x".repeat(BYTES);
        for bad in [
            "",
            &good[..good.len() - 1],
            &good[..good.len() - lines[3].len() - 1],
            &good.replace("{\"id\":1}", "{\"id\""),
            &good.replace("\"with\"", "\"without\""),
            &good.replace("\"version\":1", "\"version\":2"),
            &good.replace("\"pages\":3", "\"pages\":-1"),
            &(good.clone() + &line(4) + "\n"),
            &huge,
        ] {
            let dir = lab_testkit::fast_dir();
            let path = dir.path().join("w");
            fs::write(&path, bad).unwrap();
            let (mut list, mut reports) = (List::new(path.clone()), 0);
            assert!(list.read(|_| reports += 1).is_empty());
            assert_eq!(reports, 1);
            list.write(&[line(9)], |note| panic!("{note}"));
            assert_eq!(silent(&mut List::new(path)), [line(9)]);
        }
        let mut bytes = good.clone().into_bytes();
        bytes[good.len() - 4] = 0xff;
        assert_eq!(parse(&bytes), Err(Unused::Damaged("damaged")));
    }

    #[test]
    fn a_file_that_is_no_list_is_left_alone() {
        let dir = lab_testkit::fast_dir();
        for foreign in [
            "[database]\n",
            "{}\n",
            "null",
            "\u{0}\u{1}",
            "{\"millpond\":1}\n",
        ] {
            let path = dir.path().join("w");
            fs::write(&path, foreign).unwrap();
            let (mut list, mut reports) = (List::new(path.clone()), 0);
            assert!(list.read(|_| reports += 1).is_empty());
            list.write(&[line(9)], |note| panic!("{note}"));
            assert_eq!(
                (reports, fs::read_to_string(&path).unwrap()),
                (1, foreign.into())
            );
        }
    }

    #[test]
    fn an_unwritable_list_is_reported_once() {
        let dir = lab_testkit::fast_dir();
        let mut list = List::new(dir.path().join("no/such/folder/w"));
        let mut reports = 0;
        (0..3).for_each(|n| list.write(&[line(n)], |_| reports += 1));
        assert_eq!(reports, 1);
    }
}
