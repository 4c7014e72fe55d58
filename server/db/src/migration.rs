//! Migrations: scripts that each run once, in order, each in a transaction.

/// One migration.
#[derive(Clone, Debug)]
pub struct Migration {
    /// Its name, such as the name of its file. It runs once per database.
    pub name: String,
    /// Its statements.
    pub sql: String,
}

/// Line and column of a byte offset, from 1, in characters.
pub(crate) fn place(sql: &str, offset: usize) -> (usize, usize) {
    let before = &sql[..sql.floor_char_boundary(offset)];
    let line_start = before.rfind('\n').map_or(0, |at| at + 1);
    (
        before.matches('\n').count() + 1,
        before[line_start..].chars().count() + 1,
    )
}

/// A hash of the script that is the same in every version of this program: FNV-1a with 128 bits. It
/// detects edits, not forgeries. Carriage returns are ignored, as version control may change line
/// ends.
pub(crate) fn fingerprint(sql: &str) -> String {
    let bytes = sql.bytes().filter(|byte| *byte != b'\r');
    let hash = bytes.fold(
        0x6c62_272e_07bb_0142_62b8_2175_6295_c58d_u128,
        |hash, byte| {
            (hash ^ u128::from(byte)).wrapping_mul(0x0000_0000_0100_0000_0000_0000_0000_013b)
        },
    );
    format!("{hash:032x}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_lines_and_characters() {
        assert_eq!(place("ab\ncéd", 6), (2, 3));
        assert_eq!(place("", 0), (1, 1));
        assert_eq!(place("ab", 99), (1, 3));
    }

    #[test]
    fn the_fingerprint_is_fixed_and_ignores_line_ends() {
        assert_eq!(fingerprint(""), "6c62272e07bb014262b821756295c58d");
        assert_eq!(fingerprint("a\r\nb"), fingerprint("a\nb"));
        assert_ne!(fingerprint("a"), fingerprint("b"));
    }
}
