//! Names that say that a value is secret: it is neither shown to the developer nor sent back to a
//! visitor.

/// Parts of names of secret values, wherever they stand.
const SECRETS: [&str; 9] = [
    "password",
    "passwort",
    "passwd",
    "passphrase",
    "apikey",
    "privatekey",
    "credential",
    "authorization",
    "csrf",
];
/// Last words of names of secret values: `reset_token`, and no `token_count`.
const LAST_WORDS: [&str; 4] = ["token", "hash", "secret", "cookie"];
/// Whole names of secret values.
const SECRET_NAMES: [&str; 8] = [
    "pw",
    "pwd",
    "pass",
    "pin",
    "otp",
    "totp",
    "session",
    "sessionkey",
];
/// First words of names that are about a secret and are none: `has_password`,
/// `password_changed_at`.
const FIRST_WORDS: [&str; 7] = ["has", "is", "needs", "must", "max", "min", "used"];
const ABOUT: [&str; 6] = ["at", "on", "date", "count", "expires", "changed"];

/// True if a value of this name is secret.
pub fn is_secret(name: &str) -> bool {
    let words = words(name);
    let (Some(first), Some(last)) = (words.first(), words.last()) else {
        return false;
    };
    let is_about = words.len() > 1 && (FIRST_WORDS.contains(&&**first) || ABOUT.contains(&&**last));
    let plain = words.concat();
    let has_part = SECRETS.iter().any(|part| plain.contains(part));
    let last = last.strip_suffix('s').unwrap_or(last);
    let ends = LAST_WORDS.iter().any(|word| last.ends_with(word));
    let begins = words.len() > 1 && words.iter().any(|word| word == "secret");
    !is_about && (has_part || ends || begins || SECRET_NAMES.contains(&&*plain))
}

/// The words of a name, in lower case: `apiToken2` and `API_Token` have two.
fn words(name: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut was_lower = false;
    for letter in name.chars() {
        let begins = was_lower && letter.is_uppercase() || !letter.is_alphabetic();
        if begins && words.last().is_some_and(|word| !word.is_empty()) {
            words.push(String::new());
        }
        was_lower = letter.is_lowercase();
        if let Some(word) = words.last_mut().filter(|_| letter.is_alphabetic()) {
            word.extend(letter.to_lowercase());
        }
    }
    words.retain(|word| !word.is_empty());
    words
}

/// True if the name says whose password it is otherwise than of a visitor's account:
/// `wifi_password` and `smtp_password` may be data of the site.
pub fn is_of_something(name: &str) -> bool {
    const OF_ACCOUNTS: &str = "\
        account admin again agent author buyer change changed child client confirm confirmation \
        contact current customer driver editor employee first friend guest initial login manager \
        member moderator my new next old operator own owner parent patient person plain player \
        raw register repeat repeated reset seller signin signup staff student subscriber teacher \
        temporary user vendor visitor worker";
    let words = words(name);
    words.split_last().is_some_and(|(_, before)| {
        before
            .iter()
            .any(|word| !OF_ACCOUNTS.split(' ').any(|known| known == word) && !is_password(word))
    })
}

/// True if the name is that of a password that is typed a second time.
pub fn is_repetition(name: &str) -> bool {
    let words = words(name);
    let again = [
        "again",
        "confirm",
        "confirmation",
        "repeat",
        "repeated",
        "retype",
        "verify",
    ];
    words.iter().any(|word| again.contains(&&**word))
}

/// True if a value of this name is a password as a visitor types it. `password_hash` is none, and
/// `token` need not be one.
pub fn is_password(name: &str) -> bool {
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

    #[test]
    fn secrets_are_known_by_their_names() {
        for name in [
            "password_hash",
            "passwordHash",
            "API_Token",
            "authtoken",
            "reset_token",
            "client_secret",
            "secret_key",
            "access_tokens",
            "pin",
            "session",
            "api_key",
            "wifi_password",
            "token2",
            "password_repeat",
        ] {
            assert!(is_secret(name), "{name}");
        }
        for name in [
            "hashtag",
            "hashtags",
            "session_id",
            "token_count",
            "max_tokens",
            "cookie_consent",
            "secretary",
            "has_password",
            "password_changed_at",
            "pinned",
            "title",
            "",
            "session_title",
            "tokenizer",
        ] {
            assert!(!is_secret(name), "{name}");
        }
    }

    #[test]
    fn a_password_may_be_one_of_something_else() {
        for name in [
            "wifi_password",
            "smtp_password",
            "hotelWifiPassword",
            "new_wifi_password",
        ] {
            assert!(is_password(name) && is_of_something(name), "{name}");
        }
        for name in [
            "password",
            "user_password",
            "new_password2",
            "password_repeat",
            "my_pw",
            "userpassword",
        ] {
            assert!(!is_of_something(name), "{name}");
        }
        assert!(is_repetition("password_repeat") && !is_repetition("new_password"));
    }
}
