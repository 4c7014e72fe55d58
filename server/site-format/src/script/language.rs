//! `-- language:` lines: a parameter whose value a visitor's browser chooses.
//!
//! ```sql
//! -- language: lang in (en, de)
//! ```

use super::{
    Complaint,
    declare::{Declaration, complain, declaration},
};

/// Reads what stands behind `-- language:`.
pub(super) fn language(rest: &str, line: usize) -> Result<Declaration, Complaint> {
    const EXAMPLE: &str = "for example: -- language: lang in (en, de)";
    let Some((name, list)) = rest.split_once(char::is_whitespace) else {
        return complain("a language needs a name and its values", EXAMPLE);
    };
    let declared = declaration(&format!("{name} text {list}"), line)
        .map_err(|(message, _)| (message, Some(EXAMPLE.to_owned())))?;
    if declared.choices.is_empty() {
        return complain(format!("`{list}` is no list of languages"), EXAMPLE);
    }
    if declared.default.is_some() {
        return complain(
            "a language has no default: the first is for visitors who ask for none of them",
            EXAMPLE,
        );
    }
    Ok(declared)
}
