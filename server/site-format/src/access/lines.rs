//! The lines of a `.sql` file that speak of sessions and passwords.
//!
//! ```sql
//! -- require: claims.role = 'editor' else /login
//! -- require: member else /teams
//! -- verify: account.password_hash = :password else /login?failed=1
//! -- hash: password_hash = :password
//! -- claims: user = account.id, name = account.name
//! -- logout
//! ```

use super::{
    Condition, Require,
    condition::{superfluous, word},
    guard::{GuardLine, guard},
};
use crate::{
    access::MOST_CLAIMS,
    parameter_names::{foreign_parameter, is_name},
};

/// The words that such lines begin with.
pub const WORDS: &[&str] = &["require", "verify", "hash", "claims", "logout"];

/// A line as it was written, to name the place of a fault.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DirectiveLine {
    pub number: usize,
    pub text: String,
}

impl DirectiveLine {
    /// Line and column of a word in it; the line's beginning if it is not there.
    pub fn place(&self, word: &str) -> (usize, usize) {
        let is_part = |byte: Option<&u8>| {
            byte.is_some_and(|byte| byte.is_ascii_alphanumeric() || *byte == b'_')
        };
        let bytes = self.text.as_bytes();
        let mut found = self.text.match_indices(word).map(|(at, _)| at);
        let whole = found.find(|at| {
            let before = at.checked_sub(1).and_then(|at| bytes.get(at));
            !is_part(before) && !is_part(bytes.get(at + word.len()))
        });
        let column = whole.or_else(|| self.text.find(word)).unwrap_or(0);
        (self.number, self.text[..column].chars().count() + 1)
    }
}

/// `query.column = :password`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VerifyLine {
    pub query: String,
    pub column: String,
    pub password: String,
    /// Address for a visitor whose password is wrong.
    pub otherwise: Option<String>,
    /// How many queries stand above it.
    pub after: usize,
    pub line: DirectiveLine,
}

/// `name = :password`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HashLine {
    pub name: String,
    pub password: String,
    pub line: DirectiveLine,
}

/// `name = query.column`, `name = :param` or `name = :claims.name`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClaimLine {
    pub name: String,
    pub from: From,
    pub line: DirectiveLine,
}

/// Source of a claim's value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum From {
    Column {
        query: String,
        column: String,
    },
    Param(String),
    /// A claim of the session that there is.
    Claim(String),
}

/// All of them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SessionLines {
    pub require: Vec<Require>,
    /// The line of each.
    pub require_lines: Vec<DirectiveLine>,
    /// The queries that say who may enter.
    pub guards: Vec<GuardLine>,
    /// The claims of `-- vary:`.
    pub vary: Vec<String>,
    pub verify: Option<VerifyLine>,
    pub hashes: Vec<HashLine>,
    pub claims: Vec<ClaimLine>,
    pub logout: Option<DirectiveLine>,
    /// The parameter of `-- redirect: :next else /path`.
    pub next: Option<(String, DirectiveLine)>,
}

/// Fault: the word, a message, a hint.
pub type LineFault = (String, String, String);

impl SessionLines {
    /// The first line that only a form may have.
    pub fn of_forms(&self) -> Option<&DirectiveLine> {
        let verify = self.verify.as_ref().map(|verify| &verify.line);
        let hash = self.hashes.first().map(|hash| &hash.line);
        let claims = self.claims.first().map(|claim| &claim.line);
        [verify, hash, claims, self.logout.as_ref()]
            .into_iter()
            .flatten()
            .min_by_key(|line| line.number)
    }

    /// True if one of the lines takes the parameter of a form.
    pub fn uses(&self, name: &str) -> bool {
        let in_verify = self.verify.as_ref().is_some_and(|verify| {
            let colon = |path: &str| path.contains(&format!(":{name}"));
            verify.password == name || verify.otherwise.as_deref().is_some_and(colon)
        });
        let in_claims = |claim: &ClaimLine| matches!(&claim.from, From::Param(of) if of == name);
        in_verify
            || self.hashes.iter().any(|hash| hash.password == name)
            || self.claims.iter().any(in_claims)
            || self.next.as_ref().is_some_and(|(next, _)| next == name)
    }

    /// Takes up one line; `queries` stand above it.
    pub fn apply_directive(
        &mut self,
        word: &str,
        rest: &str,
        line: DirectiveLine,
        queries: usize,
    ) -> Result<(), LineFault> {
        match word {
            "require" => match guard(rest, &line)? {
                Some(guard) => self.guards.push(guard),
                None => {
                    self.require.push(require(rest)?);
                    self.require_lines.push(line);
                }
            },
            "verify" => {
                let verify = verify(rest, line, queries)?;
                if self.verify.replace(verify).is_some() {
                    return Err(fault(
                        word,
                        "a second `verify`",
                        "a form verifies one password",
                    ));
                }
            }
            "hash" => self.hashes.push(hash(rest, line)?),
            "claims" => {
                for part in rest.split(',') {
                    let claim = claim(part.trim(), line.clone())?;
                    if self.claims.iter().any(|other| other.name == claim.name) {
                        let message = format!("claim `{}` is given twice", claim.name);
                        return Err(fault(part.trim(), message, "keep one of them"));
                    }
                    self.claims.push(claim);
                }
                if self.claims.len() > MOST_CLAIMS {
                    let message = format!("a session has at most {MOST_CLAIMS} claims");
                    return Err(fault(
                        word,
                        message,
                        "let a query find the rest by one of them",
                    ));
                }
            }
            _ => {
                if !rest.is_empty() {
                    return Err(fault(
                        rest,
                        "`logout` stands alone on its line",
                        "-- logout",
                    ));
                }
                self.logout = Some(line);
            }
        }
        Ok(())
    }

    /// `claims.name` of a `-- vary:` line; none if it is something else.
    pub fn vary(&mut self, field: &str) -> Option<Result<(), LineFault>> {
        let name = field.strip_prefix("claims.")?;
        if !is_name(name) {
            return Some(Err(fault(
                field,
                format!("`{field}` names no claim"),
                "for example: -- vary: claims.name",
            )));
        }
        self.vary.push(name.to_owned());
        Some(Ok(()))
    }

    /// The path of `:next else /path`, if there is one; none where the redirect does not begin with
    /// a parameter.
    pub fn next<'r>(
        &mut self,
        rest: &'r str,
        line: DirectiveLine,
    ) -> Option<Result<Option<&'r str>, LineFault>> {
        let after = rest.strip_prefix(':')?;
        let example = "for example: -- redirect: :next else /account";
        let (name, path) = match after.split_once(" else ") {
            Some((name, path)) => (name.trim(), Some(path.trim())),
            None => (after.trim(), None),
        };
        if !is_name(name) {
            return Some(Err(fault(
                name,
                format!("`:{name}` is no parameter"),
                example,
            )));
        }
        self.next = Some((name.to_owned(), line));
        Some(Ok(path))
    }
}

pub(super) fn fault(word: &str, message: impl Into<String>, hint: &str) -> LineFault {
    (word.to_owned(), message.into(), hint.to_owned())
}

const VERIFY: &str =
    "for example: -- verify: account.password_hash = :password else /login?failed=1";
const HASH: &str = "for example: -- hash: password_hash = :password";
const CLAIMS: &str = "for example: -- claims: user = account.id, name = account.name";

fn require(rest: &str) -> Result<Require, LineFault> {
    let (condition, rest) = Condition::read(rest)?;
    let otherwise = match word(rest) {
        ("", "") => None,
        ("else", path) => Some(own_path(path)?),
        _ => return Err(superfluous(rest)),
    };
    Ok(Require {
        condition,
        otherwise,
    })
}

fn verify(rest: &str, line: DirectiveLine, after: usize) -> Result<VerifyLine, LineFault> {
    let (condition, otherwise) = otherwise(rest)?;
    let (hash, password) = assignment(condition, VERIFY)?;
    let (query, column) = column(hash, VERIFY)?;
    Ok(VerifyLine {
        query,
        column,
        password: param(password, VERIFY)?,
        otherwise,
        after,
        line,
    })
}

fn hash(rest: &str, line: DirectiveLine) -> Result<HashLine, LineFault> {
    let (name, password) = assignment(rest, HASH)?;
    if !is_name(name) {
        return Err(fault(
            name,
            format!("`{name}` is no name for a parameter"),
            HASH,
        ));
    }
    Ok(HashLine {
        name: name.to_owned(),
        password: param(password, HASH)?,
        line,
    })
}

fn claim(part: &str, line: DirectiveLine) -> Result<ClaimLine, LineFault> {
    let (name, from) = assignment(part, CLAIMS)?;
    if !is_name(name) || name.len() > 64 {
        return Err(fault(
            name,
            format!("`{name}` is no name for a claim"),
            CLAIMS,
        ));
    }
    let kept = from.strip_prefix(":claims.");
    let from = if let Some(kept) = kept.filter(|kept| is_name(kept)) {
        From::Claim(kept.to_owned())
    } else if from.starts_with(':') {
        From::Param(param(from, CLAIMS)?)
    } else {
        let (query, column) = column(from, CLAIMS)?;
        From::Column { query, column }
    };
    Ok(ClaimLine {
        name: name.to_owned(),
        from,
        line,
    })
}

/// Cuts `… else /path`.
fn otherwise(rest: &str) -> Result<(&str, Option<String>), LineFault> {
    let Some((condition, path)) = rest.split_once(" else ") else {
        return Ok((rest.trim(), None));
    };
    Ok((condition.trim(), Some(own_path(path)?)))
}

/// The path after `else`.
pub(super) fn own_path(path: &str) -> Result<String, LineFault> {
    let path = path.trim();
    if let Some(message) = foreign_parameter(path) {
        return Err(fault(path, message, "for example: else /:lang/login"));
    }
    if !is_path(path) {
        return Err(fault(
            path,
            format!("`{path}` is no path of this site"),
            "after `else` stands a path that begins with one `/`, such as /login",
        ));
    }
    Ok(path.to_owned())
}

fn assignment<'t>(text: &'t str, example: &str) -> Result<(&'t str, &'t str), LineFault> {
    let found = text.split_once('=');
    let (name, value) =
        found.ok_or_else(|| fault(text, format!("`{text}` has no `=`"), example))?;
    Ok((name.trim(), value.trim()))
}

fn column(text: &str, example: &str) -> Result<(String, String), LineFault> {
    let found = text.split_once('.');
    let found = found.filter(|(query, column)| is_name(query) && is_name(column));
    found
        .map(|(query, column)| (query.to_owned(), column.to_owned()))
        .ok_or_else(|| fault(text, format!("`{text}` is no column of a query"), example))
}

fn param(text: &str, example: &str) -> Result<String, LineFault> {
    let name = text.strip_prefix(':').filter(|name| is_name(name));
    name.map(str::to_owned)
        .ok_or_else(|| fault(text, format!("`{text}` is no parameter"), example))
}

/// True if a browser that is redirected to `text` stays on this site. A browser takes a backslash
/// for a slash and two slashes for another host, and leaves out tabs and line ends; so only a text
/// with none of them is a path.
pub fn is_path(text: &str) -> bool {
    let rest = text.strip_prefix('/');
    rest.is_some_and(|rest| !rest.starts_with('/'))
        && text
            .bytes()
            .all(|byte| byte.is_ascii_graphic() && byte != b'\\')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line() -> DirectiveLine {
        DirectiveLine::default()
    }

    #[test]
    fn lines_are_read() {
        let mut lines = SessionLines::default();
        for (word, rest) in [
            ("require", "claims.user else /login"),
            ("require", "claims.role = 'it''s'"),
            ("require", "claims.admin = true else /login?a=b"),
            ("require", "claims.role not in ('a', 'b else c') else /x"),
            (
                "verify",
                "account.password_hash = :password else /login?failed=1",
            ),
            ("hash", "hash = :new"),
            (
                "claims",
                "user = account.id,name=:name, visitor = :claims.visitor",
            ),
            ("logout", ""),
        ] {
            lines.apply_directive(word, rest, line(), 2).unwrap();
        }
        assert_eq!(lines.require[0].otherwise.as_deref(), Some("/login"));
        let conditions = lines.require.iter().map(|line| line.condition.to_string());
        let conditions: Vec<String> = conditions.collect();
        assert_eq!(
            conditions,
            [
                "claims.user",
                "claims.role = 'it''s'",
                "claims.admin = true",
                "claims.role not in ('a', 'b else c')",
            ]
        );
        assert_eq!(lines.require[3].otherwise.as_deref(), Some("/x"));
        let verify = lines.verify.as_ref().unwrap();
        assert_eq!(
            (
                &*verify.query,
                &*verify.column,
                &*verify.password,
                verify.after
            ),
            ("account", "password_hash", "password", 2)
        );
        assert_eq!(lines.hashes[0].name, "hash");
        assert_eq!(lines.claims[1].from, From::Param("name".to_owned()));
        assert_eq!(lines.claims[2].from, From::Claim("visitor".to_owned()));
        assert!(lines.logout.is_some());
        assert_eq!(lines.next(":next else /a", line()), Some(Ok(Some("/a"))));
        assert_eq!(lines.next(":next", line()), Some(Ok(None)));
        assert_eq!(lines.next("/a", line()), None);
        assert_eq!(lines.vary("claims.name"), Some(Ok(())));
        assert_eq!(lines.vary("accept-language"), None);
    }

    #[test]
    fn faults_name_the_word() {
        for (word, rest, at) in [
            ("require", "user = 1", "user"),
            ("require", "claims.", "claims."),
            ("require", "claims.role = editor", "editor"),
            ("require", "claims.role in ('a'", "('a'"),
            ("require", "claims.user and claims.role", "and claims.role"),
            ("require", "claims.user elsewhere", "elsewhere"),
            ("require", "claims.user else login", "login"),
            (
                "require",
                "claims.user else //evil.example",
                "//evil.example",
            ),
            ("verify", "password_hash = :password", "password_hash"),
            ("verify", "account.password_hash = password", "password"),
            ("verify", "account.password_hash", "account.password_hash"),
            ("hash", "a-b = :p", "a-b"),
            ("hash", "a = p", "p"),
            ("claims", "user", "user"),
            ("claims", "user = 7", "7"),
            ("claims", "user = :claims.", ":claims."),
            ("claims", "user = a.id, user = b.id", "user = b.id"),
            ("logout", "now", "now"),
        ] {
            let found = SessionLines::default().apply_directive(word, rest, line(), 0);
            assert_eq!(found.unwrap_err().0, at, "{word}: {rest}");
        }
        let mut lines = SessionLines::default();
        for rest in [":", ":next else", ":a-b else /x"] {
            assert!(lines.next(rest, line()).unwrap().is_err(), "{rest}");
        }
        let shown = DirectiveLine {
            number: 3,
            text: "-- é hash: a = p".to_owned(),
        };
        assert_eq!(shown.place("p"), (3, 16));
    }

    #[test]
    fn only_paths_of_this_site() {
        for (text, good) in [
            ("/", true),
            ("/a?b=c#d", true),
            ("/%2F%2Fevil.example", true),
            ("", false),
            ("a", false),
            ("//evil.example", false),
            ("/\\evil.example", false),
            ("/\t/evil.example", false),
            ("/\n/evil.example", false),
            ("https://evil.example", false),
            ("/a b", false),
            ("/é", false),
        ] {
            assert_eq!(is_path(text), good, "{text:?}");
        }
    }
}
