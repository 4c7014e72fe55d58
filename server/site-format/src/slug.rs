//! Parts of addresses that can be read.

/// Returns a text as a part of an address: small letters and digits with hyphens between.
pub fn slug(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut is_gap = false;
    for letter in text.chars().flat_map(char::to_lowercase) {
        let plain = plain_letters(letter);
        if plain.is_empty() && !letter.is_alphanumeric() {
            // An apostrophe and an accent of its own stand within a word.
            is_gap |= !matches!(letter, '\'' | '’' | '\u{300}'..='\u{36f}');
            continue;
        }
        if is_gap && !out.is_empty() {
            out.push('-');
        }
        is_gap = false;
        if plain.is_empty() {
            out.push(letter);
        } else {
            out.push_str(plain);
        }
    }
    out
}

/// How a Latin letter with a mark is written without; empty for other letters.
fn plain_letters(letter: char) -> &'static str {
    match letter {
        'ä' | 'æ' => "ae",
        'ö' | 'œ' => "oe",
        'ü' => "ue",
        'ß' => "ss",
        'þ' => "th",
        'à' | 'á' | 'â' | 'ã' | 'ā' | 'ă' | 'ą' => "a",
        'å' => "a",
        'ç' | 'ć' | 'ĉ' | 'ċ' | 'č' => "c",
        'ð' | 'ď' | 'đ' => "d",
        'è' | 'é' | 'ê' | 'ë' | 'ē' | 'ĕ' | 'ė' | 'ę' | 'ě' => "e",
        'ĝ' | 'ğ' | 'ġ' | 'ģ' => "g",
        'ĥ' | 'ħ' => "h",
        'ì' | 'í' | 'î' | 'ï' | 'ĩ' | 'ī' | 'ĭ' | 'į' | 'ı' => "i",
        'ĵ' => "j",
        'ķ' => "k",
        'ĺ' | 'ļ' | 'ľ' | 'ł' => "l",
        'ñ' | 'ń' | 'ņ' | 'ň' => "n",
        'ò' | 'ó' | 'ô' | 'õ' | 'ø' | 'ō' | 'ŏ' | 'ő' => "o",
        'ŕ' | 'ŗ' | 'ř' => "r",
        'ś' | 'ŝ' | 'ş' | 'š' | 'ș' => "s",
        'ţ' | 'ť' | 'ŧ' | 'ț' => "t",
        'ù' | 'ú' | 'û' | 'ũ' | 'ū' | 'ŭ' | 'ů' | 'ű' | 'ų' => "u",
        'ŵ' => "w",
        'ý' | 'ÿ' | 'ŷ' => "y",
        'ź' | 'ż' | 'ž' => "z",
        _ => "",
    }
}
