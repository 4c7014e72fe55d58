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
