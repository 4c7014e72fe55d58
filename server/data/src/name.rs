//! The names of columns and tables.

/// The longest name of a column or a table, in bytes: PostgreSQL cuts longer ones.
pub const MAX_NAME: usize = 63;

/// The name of a column for a name in a file: lower-case letters, digits and `_`; each run of other
/// characters is one `_`. None if nothing is left.
///
/// `Country Name` is `country_name`, `2024` is `c2024`.
pub(crate) fn column_name(text: &str) -> Option<String> {
    let mut name = String::with_capacity(text.len());
    for letter in text.trim().chars() {
        if letter.is_alphanumeric() {
            name.extend(letter.to_lowercase());
        } else if letter == '_' || !name.ends_with('_') {
            name.push('_');
        }
    }
    let kept = name.trim_end_matches('_').len();
    if !text.ends_with('_') {
        name.truncate(kept);
    }
    // A name that begins with `_` is the server's.
    let start = name.len() - name.trim_start_matches('_').len();
    name.drain(..start);
    if name.starts_with(|first: char| first.is_numeric()) {
        name.insert(0, 'c');
    }
    (!name.is_empty()).then_some(name)
}

/// The table of a file or a folder whose name, without its ending, is `stem`.
///
/// # Errors
/// What is wrong with the name, and a name that would do.
pub fn table_name(stem: &str) -> Result<&str, (String, String)> {
    let is_name = stem
        .bytes()
        .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_');
    let problem = if stem.starts_with('_') {
        "names that begin with _ are the server's"
    } else if stem.starts_with("sqlite_") || stem.starts_with("pg_") {
        "names that begin with sqlite_ or pg_ are the database's"
    } else if stem.len() > MAX_NAME {
        "a table's name has at most 63 bytes"
    } else if !is_name || stem.starts_with(|first: char| first.is_ascii_digit()) {
        "a table's name has lower-case letters, digits and _, and begins with a letter"
    } else {
        return Ok(stem);
    };
    let ascii: String = stem
        .chars()
        .map(|letter| if letter.is_ascii() { letter } else { '_' })
        .collect();
    let mut better = column_name(&ascii).unwrap_or_else(|| "rows".to_owned());
    for taken in ["sqlite_", "pg_"] {
        if let Some(rest) = better.strip_prefix(taken) {
            better = format!("my_{rest}");
        }
    }
    better.truncate(MAX_NAME);
    Err((problem.to_owned(), better))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_columns_can_be_written_in_sql() {
        for (text, name) in [
            ("id", Some("id")),
            (" Country Name ", Some("country_name")),
            ("price (EUR)", Some("price_eur")),
            ("2024", Some("c2024")),
            ("_file", Some("file")),
            ("__", None),
            ("", None),
            ("\"; drop table x; --", Some("drop_table_x")),
            ("Größe", Some("größe")),
            ("a_b", Some("a_b")),
            ("firstName", Some("firstname")),
        ] {
            assert_eq!(column_name(text).as_deref(), name, "{text}");
        }
    }

    #[test]
    fn names_of_tables_are_plain_or_a_better_one_is_named() {
        assert_eq!(table_name("rates_2026"), Ok("rates_2026"));
        assert_eq!(table_name("order"), Ok("order"));
        for (stem, better) in [
            ("2026 rates", "c2026_rates"),
            ("Rates", "rates"),
            ("_millpond_data", "millpond_data"),
            ("sqlite_master", "my_master"),
            ("pg_class", "my_class"),
            ("rates-old", "rates_old"),
            ("größe", "gr__e"),
            ("", "rows"),
        ] {
            if stem.is_empty() {
                continue;
            }
            assert_eq!(table_name(stem).unwrap_err().1, better, "{stem}");
        }
        assert_eq!(table_name(&"x".repeat(64)).unwrap_err().1.len(), 63);
    }
}
