//! The imports between the files of a crate, read from their text.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
};

use super::{files::File, rust_text};

/// Re-exports that are followed from one file to the next.
const MOST_STEPS: usize = 5;

/// The product's files of a crate: those that are compiled without its tests.
pub(super) struct Crate {
    files: Vec<Module>,
    by_name: BTreeMap<Vec<String>, usize>,
}

/// One file.
struct Module {
    path: PathBuf,
    /// Its module's path, from the crate's root.
    name: Vec<String>,
    /// Its text without comments, literals and tests; lines stay.
    code: String,
    imports: Vec<ImportPath>,
}

/// A path that a file uses.
struct ImportPath {
    /// From 1.
    line: usize,
    path: Vec<String>,
    /// The name that it has in the file, if it is imported.
    name: Option<String>,
    /// True if others find it here under that name.
    is_shown: bool,
}

/// A file that uses another of its crate.
pub(super) struct Import {
    pub(super) from: usize,
    pub(super) to: usize,
    /// From 1.
    pub(super) line: usize,
}

impl Crate {
    /// Reads the crate in `folder`: its root, and what the root declares, without tests.
    pub(super) fn read(files: &[File], folder: &str) -> Self {
        let by_path: BTreeMap<&Path, &File> =
            files.iter().map(|file| (&*file.path, file)).collect();
        let src = Path::new(folder).join("src");
        let mut read = Self {
            files: Vec::new(),
            by_name: BTreeMap::new(),
        };
        let roots = ["lib.rs", "main.rs"].map(|root| src.join(root));
        let root = roots.into_iter().find(|root| by_path.contains_key(&**root));
        let mut open = Vec::from_iter(root.map(|root| (Vec::new(), root, src)));
        while let Some((name, path, folder)) = open.pop() {
            let Some(file) = by_path.get(&*path) else {
                continue;
            };
            let code = without_tests(rust_text::parts(&file.text).code);
            for child in declared(&code) {
                let below = folder.join(&child);
                let paths = [below.with_extension("rs"), below.join("mod.rs")];
                let path = paths.into_iter().find(|path| by_path.contains_key(&**path));
                let name = [&name[..], &[child]].concat();
                open.extend(path.map(|path| (name, path, below)));
            }
            read.by_name.insert(name.clone(), read.files.len());
            let imports = Vec::new();
            read.files.push(Module {
                path,
                name,
                code,
                imports,
            });
        }
        let all: Vec<_> = read.files.iter().map(|file| read.paths_of(file)).collect();
        for (file, imports) in read.files.iter_mut().zip(all) {
            file.imports = imports;
        }
        read
    }

    pub(super) fn len(&self) -> usize {
        self.files.len()
    }

    pub(super) fn path(&self, file: usize) -> &Path {
        &self.files[file].path
    }

    /// Returns the path of the file's module, such as `dev::report`.
    pub(super) fn name(&self, file: usize) -> String {
        self.files[file].name.join("::")
    }

    /// Returns the folder of a file; `x.rs` is of the folder `x`, if there is one.
    pub(super) fn folder(&self, file: usize) -> PathBuf {
        let path = &self.files[file].path;
        let own = path.with_extension("");
        let has_own = self
            .files
            .iter()
            .any(|other| other.path.parent() == Some(&own));
        match path.parent() {
            Some(parent) if !has_own => parent.to_owned(),
            _ => own,
        }
    }

    /// Returns each pair of files of which one uses the other, with the first line that does.
    pub(super) fn imports(&self) -> Vec<Import> {
        let mut found = BTreeMap::new();
        for (from, file) in self.files.iter().enumerate() {
            for import in &file.imports {
                let to = self.file_of(file, &import.path, 0);
                if let Some(to) = to.filter(|to| *to != from) {
                    found.entry((from, to)).or_insert(import.line);
                }
            }
        }
        let found = found.into_iter();
        found
            .map(|((from, to), line)| Import { from, to, line })
            .collect()
    }

    /// The file in which what a path names is defined.
    fn file_of(&self, from: &Module, path: &[String], steps: usize) -> Option<usize> {
        let mut name = match path.first()?.as_str() {
            "crate" => Vec::new(),
            "self" => from.name.clone(),
            "super" => from.name.clone(),
            first => {
                let child = [&from.name[..], &[first.to_owned()]].concat();
                if !self.by_name.contains_key(&child) {
                    return self.file_by_import(from, path, steps);
                }
                from.name.clone()
            }
        };
        let mut rest = path
            .iter()
            .skip_while(|part| *part == "crate" || *part == "self");
        let mut next = rest.next();
        while next.is_some_and(|part| part == "super") {
            name.pop()?;
            next = rest.next();
        }
        while let Some(part) = next {
            name.push(part.clone());
            if !self.by_name.contains_key(&name) {
                name.pop();
                break;
            }
            next = rest.next();
        }
        let at = *self.by_name.get(&name)?;
        let Some(item) = next.filter(|_| steps < MOST_STEPS) else {
            return Some(at);
        };
        let file = &self.files[at];
        let mut shown = file.imports.iter();
        let shown = shown.find(|import| import.is_shown && import.name.as_ref() == Some(item));
        let followed = shown.and_then(|import| self.file_of(file, &import.path, steps + 1));
        Some(followed.unwrap_or(at))
    }

    /// Returns the file of a path that begins with an imported module.
    fn file_by_import(&self, from: &Module, path: &[String], steps: usize) -> Option<usize> {
        let mut imports = from.imports.iter();
        let import = imports.find(|import| import.name.as_ref() == path.first())?;
        let is_itself = import.path.first() == path.first();
        let whole = [&import.path[..], &path[1..]].concat();
        let is_followed = !is_itself && path.len() > 1 && steps < MOST_STEPS;
        is_followed.then(|| self.file_of(from, &whole, steps + 1))?
    }

    /// The paths in `use` items, and those in the code that begin at a module of the crate.
    fn paths_of(&self, file: &Module) -> Vec<ImportPath> {
        let mut paths = Vec::new();
        let mut code = file.code.clone();
        while let Some((at, end)) = use_item(&code) {
            let line = code[..at].matches('\n').count() + 1;
            let is_shown = code[..at].trim_end().ends_with([')', 'b']);
            let tree = code[at + 3..end].to_owned();
            expand(&tree, &mut |path, alias| {
                let name = alias.or(path.last().map(String::as_str)).map(str::to_owned);
                paths.push(ImportPath {
                    line,
                    name,
                    is_shown,
                    path,
                });
            });
            let blank: String = code[at..end]
                .chars()
                .map(|c| if c == '\n' { c } else { ' ' })
                .collect();
            code.replace_range(at..end, &blank);
        }
        for (line, text) in code.lines().enumerate() {
            let words = text.split(|c: char| !(c.is_alphanumeric() || c == '_' || c == ':'));
            for word in words.filter(|word| word.contains("::") && !word.starts_with("::")) {
                let path: Vec<String> = word
                    .split("::")
                    .filter(|part| !part.is_empty())
                    .map(str::to_owned)
                    .collect();
                let line = line + 1;
                paths.push(ImportPath {
                    line,
                    path,
                    name: None,
                    is_shown: false,
                });
            }
        }
        paths
    }
}

/// The place of a `use` item and of its semicolon.
fn use_item(code: &str) -> Option<(usize, usize)> {
    let mut places = code.match_indices("use ").map(|(at, _)| at);
    let at = places.find(|at| {
        let before = code[..*at].trim_end_matches([' ', '\t']);
        before.is_empty() || before.ends_with(['\n', ')', '{', '}', ';']) || before.ends_with("pub")
    })?;
    Some((at, at + code[at..].find(';')?))
}

/// Calls `found` with each path of a tree such as `a::{b, c::{self, d as e}}`, and its other name.
fn expand(tree: &str, found: &mut dyn FnMut(Vec<String>, Option<&str>)) {
    let mut prefixes: Vec<Vec<String>> = vec![Vec::new()];
    let mut word = String::new();
    let mut end = |word: &mut String, prefix: &[String]| {
        let text = std::mem::take(word);
        let (path, alias) = match text.split_once(" as ") {
            Some((path, alias)) => (path, Some(alias.trim())),
            None => (&*text, None),
        };
        let parts = path
            .split("::")
            .map(str::trim)
            .filter(|part| !part.is_empty());
        let mut path: Vec<String> = prefix
            .iter()
            .cloned()
            .chain(parts.map(str::to_owned))
            .collect();
        if path.len() > prefix.len() {
            if path.len() > 1 && path.last().is_some_and(|last| last == "self") {
                path.pop();
            }
            found(path, alias);
        }
    };
    for c in tree.chars() {
        match c {
            '{' => {
                let last = prefixes.last().cloned().unwrap_or_default();
                let parts = word
                    .split("::")
                    .map(str::trim)
                    .filter(|part| !part.is_empty());
                prefixes.push(last.into_iter().chain(parts.map(str::to_owned)).collect());
                word.clear();
            }
            ',' | '}' => {
                end(&mut word, prefixes.last().map_or(&[], Vec::as_slice));
                if c == '}' {
                    prefixes.pop();
                }
            }
            c if c.is_whitespace() => word.push(' '),
            c => word.push(c),
        }
    }
    end(&mut word, prefixes.last().map_or(&[], Vec::as_slice));
}

/// The modules with files of their own that a file declares.
fn declared(code: &str) -> BTreeSet<String> {
    let items = code.split([';', '}', '{']);
    let names = items.filter_map(|item| {
        let words: Vec<&str> = item.split_whitespace().collect();
        match words[..] {
            [.., "mod", name] if code.contains(&format!("mod {name};")) => Some(name.to_owned()),
            _ => None,
        }
    });
    names.collect()
}

/// The code with blanks in place of the items that only tests compile.
fn without_tests(mut code: String) -> String {
    while let Some(at) = ["#[cfg(test)]", "#[cfg(any(test"]
        .iter()
        .filter_map(|mark| code.find(mark))
        .min()
    {
        let end = item_end(&code, at);
        let blank: String = code[at..end]
            .chars()
            .map(|c| if c == '\n' { c } else { ' ' })
            .collect();
        code.replace_range(at..end, &blank);
    }
    code
}

/// The end of the item that begins with attributes at `at`: its semicolon, or its last brace.
fn item_end(code: &str, at: usize) -> usize {
    let mut depth = 0_usize;
    let mut is_tree = false;
    for (place, c) in code[at..].char_indices() {
        match c {
            '{' => {
                is_tree |= depth == 0 && code[at..at + place].trim_end().ends_with("::");
                depth += 1;
            }
            '}' => {
                depth = depth.saturating_sub(1);
                if depth == 0 && !is_tree {
                    return at + place + 1;
                }
            }
            ';' if depth == 0 => return at + place + 1,
            _ => {}
        }
    }
    code.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(path: &str, text: &str) -> File {
        File {
            path: path.into(),
            text: text.to_owned(),
        }
    }

    #[test]
    fn imports_lead_to_the_file_that_defines_the_name() {
        let files = [
            file(
                "x/src/lib.rs",
                "mod a;\npub(crate) mod b;\n#[cfg(test)]\nmod t;\npub use a::One;",
            ),
            file(
                "x/src/a.rs",
                "use crate::{\n    b::{Deep as D, self},\n};\nfn h() { b::c::g() }\n#[cfg(test)]\nmod tests { use crate::t::X; }\npub struct One;",
            ),
            file(
                "x/src/b/mod.rs",
                "mod c;\npub(crate) use c::{Deep, other as Other};\nfn f(one: super::One) {}",
            ),
            file(
                "x/src/b/c.rs",
                "// use crate::a::One;\npub struct Deep; fn g() { crate::b::f(); }",
            ),
            file("x/src/t.rs", "use crate::a::One;"),
        ];
        let read = Crate::read(&files, "x");
        let imports = read.imports();
        let found: Vec<(String, String, usize)> = imports
            .iter()
            .map(|it| (read.name(it.from), read.name(it.to), it.line))
            .collect();
        let expected = [
            ("", "a", 5),
            ("a", "b", 1),
            ("a", "b::c", 1),
            ("b", "a", 3),
            ("b", "b::c", 2),
            ("b::c", "b", 2),
        ];
        let expected = expected.map(|(from, to, line)| (from.to_owned(), to.to_owned(), line));
        let mut sorted = found;
        sorted.sort();
        assert_eq!(sorted, expected);
        assert_eq!(read.len(), 4);
    }
}
