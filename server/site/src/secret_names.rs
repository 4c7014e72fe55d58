//! Names that say that a value is secret: it is neither shown to the developer nor sent back to a
//! visitor.

/// Parts of names of secret values.
const SECRETS: [&str; 14] = [
    "password",
    "passwort",
    "passwd",
    "passphrase",
    "secret",
    "token",
    "hash",
    "apikey",
    "privatekey",
    "credential",
    "authorization",
    "cookie",
    "session",
    "csrf",
];
/// Whole names of secret values.
const SECRET_NAMES: [&str; 6] = ["pw", "pwd", "pass", "pin", "otp", "totp"];

/// Whether a value of this name is secret.
pub(crate) fn is_secret(name: &str) -> bool {
    let letters = name.chars().filter(|letter| letter.is_alphanumeric());
    let plain: String = letters.flat_map(char::to_lowercase).collect();
    SECRETS.iter().any(|part| plain.contains(part)) || SECRET_NAMES.contains(&&*plain)
}

/// Whether a value of this name is a password as a visitor types it. `password_hash` is none, and
/// `token` need not be one.
pub(crate) fn is_password(name: &str) -> bool {
    const WORDS: [&str; 5] = ["password", "passwort", "passwd", "passphrase", "kennwort"];
    const SHORT: [&str; 2] = ["pw", "pwd"];
    const AROUND: [&str; 6] = [
        "repeat",
        "repeated",
        "again",
        "confirm",
        "confirmation",
        "new",
    ];
    let lower = name.to_ascii_lowercase();
    let numbers: &[_] = &['0', '1', '2', '3', '4', '5', '6', '7', '8', '9', '_'];
    let mut plain = lower.trim_end_matches(numbers);
    for word in AROUND {
        plain = plain.strip_suffix(word).unwrap_or(plain);
        plain = plain.trim_end_matches(numbers);
    }
    let last = plain.rsplit('_').next().unwrap_or(plain);
    WORDS.iter().any(|word| last.ends_with(word)) || SHORT.contains(&last)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passwords_are_known_by_their_names() {
        for name in [
            "password",
            "Password",
            "new_password",
            "password2",
            "password_repeat",
            "userpassword",
            "confirm_password",
            "password_confirmation",
            "pw",
            "old_pw",
            "passphrase",
        ] {
            assert!(is_password(name), "{name}");
        }
        for name in [
            "password_hash",
            "token",
            "passed",
            "compass",
            "pass_id",
            "password_changed_at",
            "bypass",
        ] {
            assert!(!is_password(name), "{name}");
        }
    }
}
