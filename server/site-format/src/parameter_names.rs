//! How parameters are named, in `.sql` files and in addresses.

/// Returns true for letters, digits and `_`, not beginning with a digit.
pub fn is_name(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && name
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

/// Returns what is wrong with an address that has a parameter as other programs or the names of
/// files write it: `/{lang}/admin/*`, `/[lang]/admin/*`. The signs would stand for themselves.
pub fn foreign_parameter(address: &str) -> Option<String> {
    let pairs = [('{', '}'), ('[', ']'), ('<', '>')].into_iter();
    let mut found = pairs.filter_map(|(open, close)| {
        let (before, rest) = address.split_once(open)?;
        let (name, after) = rest.split_once(close)?;
        // Brackets are in names of a query too: `?tag[]=rust`.
        let is_end = after.is_empty() || after.starts_with(['/', '?', '#']);
        let is_part = before.ends_with('/') && is_end && is_name(name);
        let meant = if is_name(name) { name } else { "name" };
        (open == '{' || is_part).then(|| {
            format!(
                "`{open}{name}{close}` in `{address}` means nothing here: a parameter is written `:{meant}`"
            )
        })
    });
    found.next()
}
