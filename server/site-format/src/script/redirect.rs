//! The status of a page's `-- redirect:` line: `-- redirect: 301 /plays/:id`.

use super::Complaint;

/// Cuts the status off what stands behind `-- redirect:`.
pub(super) fn status(rest: &str) -> Result<(Option<u16>, &str), Complaint> {
    const KNOWN: [u16; 5] = [301, 302, 303, 307, 308];
    let (word, behind) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
    if word.is_empty() || !word.bytes().all(|byte| byte.is_ascii_digit()) {
        return Ok((None, rest));
    }
    match word.parse().ok().filter(|status| KNOWN.contains(status)) {
        Some(status) => Ok((Some(status), behind.trim_start())),
        None => Err((
            format!("`{word}` is no status of a redirect"),
            Some(
                "one of 301, 302, 303, 307, 308; 301 and 308 say that the address has changed for good"
                    .to_owned(),
            ),
        )),
    }
}
