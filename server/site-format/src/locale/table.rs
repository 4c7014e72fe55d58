//! The locales that there are. Separators, places and words are those of Unicode's CLDR.

use super::{CurrencyPlace, Locale, Words};

const NO_BREAK: &str = "\u{a0}";
const THIN: &str = "\u{202f}";

/// A row of the table: tag, decimal sign, grouping, currency, date, words.
const fn locale(
    tag: &'static str,
    (decimal, group, grouped_from): (&'static str, &'static str, usize),
    currency: CurrencyPlace,
    date: &'static str,
    words: &'static Words,
) -> Locale {
    Locale {
        tag,
        decimal,
        group,
        grouped_from,
        currency,
        date,
        time: "%H:%M",
        words,
    }
}

/// All locales; the first is the default.
pub static LOCALES: [Locale; 15] = {
    use CurrencyPlace::{After, Before, BeforeWithSpace};
    [
        locale("", (".", THIN, 4), Before, "%-d %B %Y", &ENGLISH),
        locale("en", (".", ",", 4), Before, "%-d %B %Y", &ENGLISH),
        Locale {
            time: "%-I:%M %p",
            ..locale("en-US", (".", ",", 4), Before, "%B %-d, %Y", &ENGLISH)
        },
        locale("en-GB", (".", ",", 4), Before, "%-d %B %Y", &ENGLISH),
        locale("de", (",", ".", 4), After, "%-d. %B %Y", &GERMAN),
        locale(
            "de-CH",
            (".", "’", 4),
            BeforeWithSpace,
            "%-d. %B %Y",
            &GERMAN,
        ),
        locale("fr", (",", THIN, 4), After, "%-d %B %Y", &FRENCH),
        locale("es", (",", ".", 5), After, "%-d de %B de %Y", &SPANISH),
        locale("it", (",", ".", 4), After, "%-d %B %Y", &ITALIAN),
        locale(
            "pt-PT",
            (",", NO_BREAK, 5),
            After,
            "%-d de %B de %Y",
            &PORTUGUESE,
        ),
        locale(
            "pt-BR",
            (",", ".", 4),
            BeforeWithSpace,
            "%-d de %B de %Y",
            &PORTUGUESE,
        ),
        locale("nl", (",", ".", 4), BeforeWithSpace, "%-d %B %Y", &DUTCH),
        locale("da", (",", ".", 4), After, "%-d. %B %Y", &DANISH),
        locale("nb", (",", NO_BREAK, 4), After, "%-d. %B %Y", &NORWEGIAN),
        locale("sv", (",", NO_BREAK, 4), After, "%-d %B %Y", &SWEDISH),
    ]
};

/// English, which is also the language of formats that programs read.
#[rustfmt::skip]
pub static ENGLISH: Words = Words {
    months: ["January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November", "December"],
    short_months: ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"],
    days: ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"],
    short_days: ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"],
    now: "just now", past: "{} ago", future: "in {}",
    units: [("minute", "minutes"), ("hour", "hours"), ("day", "days"), ("month", "months"), ("year", "years")],
};

#[rustfmt::skip]
static GERMAN: Words = Words {
    months: ["Januar", "Februar", "März", "April", "Mai", "Juni", "Juli", "August", "September", "Oktober", "November", "Dezember"],
    short_months: ["Jan.", "Feb.", "März", "Apr.", "Mai", "Juni", "Juli", "Aug.", "Sept.", "Okt.", "Nov.", "Dez."],
    days: ["Montag", "Dienstag", "Mittwoch", "Donnerstag", "Freitag", "Samstag", "Sonntag"],
    short_days: ["Mo", "Di", "Mi", "Do", "Fr", "Sa", "So"],
    now: "gerade eben", past: "vor {}", future: "in {}",
    units: [("Minute", "Minuten"), ("Stunde", "Stunden"), ("Tag", "Tagen"), ("Monat", "Monaten"), ("Jahr", "Jahren")],
};

#[rustfmt::skip]
static FRENCH: Words = Words {
    months: ["janvier", "février", "mars", "avril", "mai", "juin", "juillet", "août", "septembre", "octobre", "novembre", "décembre"],
    short_months: ["janv.", "févr.", "mars", "avr.", "mai", "juin", "juil.", "août", "sept.", "oct.", "nov.", "déc."],
    days: ["lundi", "mardi", "mercredi", "jeudi", "vendredi", "samedi", "dimanche"],
    short_days: ["lun.", "mar.", "mer.", "jeu.", "ven.", "sam.", "dim."],
    now: "à l’instant", past: "il y a {}", future: "dans {}",
    units: [("minute", "minutes"), ("heure", "heures"), ("jour", "jours"), ("mois", "mois"), ("an", "ans")],
};

#[rustfmt::skip]
static SPANISH: Words = Words {
    months: ["enero", "febrero", "marzo", "abril", "mayo", "junio", "julio", "agosto", "septiembre", "octubre", "noviembre", "diciembre"],
    short_months: ["ene", "feb", "mar", "abr", "may", "jun", "jul", "ago", "sept", "oct", "nov", "dic"],
    days: ["lunes", "martes", "miércoles", "jueves", "viernes", "sábado", "domingo"],
    short_days: ["lun", "mar", "mié", "jue", "vie", "sáb", "dom"],
    now: "ahora mismo", past: "hace {}", future: "dentro de {}",
    units: [("minuto", "minutos"), ("hora", "horas"), ("día", "días"), ("mes", "meses"), ("año", "años")],
};

#[rustfmt::skip]
static ITALIAN: Words = Words {
    months: ["gennaio", "febbraio", "marzo", "aprile", "maggio", "giugno", "luglio", "agosto", "settembre", "ottobre", "novembre", "dicembre"],
    short_months: ["gen", "feb", "mar", "apr", "mag", "giu", "lug", "ago", "set", "ott", "nov", "dic"],
    days: ["lunedì", "martedì", "mercoledì", "giovedì", "venerdì", "sabato", "domenica"],
    short_days: ["lun", "mar", "mer", "gio", "ven", "sab", "dom"],
    now: "adesso", past: "{} fa", future: "tra {}",
    units: [("minuto", "minuti"), ("ora", "ore"), ("giorno", "giorni"), ("mese", "mesi"), ("anno", "anni")],
};

#[rustfmt::skip]
static PORTUGUESE: Words = Words {
    months: ["janeiro", "fevereiro", "março", "abril", "maio", "junho", "julho", "agosto", "setembro", "outubro", "novembro", "dezembro"],
    short_months: ["jan.", "fev.", "mar.", "abr.", "mai.", "jun.", "jul.", "ago.", "set.", "out.", "nov.", "dez."],
    days: ["segunda-feira", "terça-feira", "quarta-feira", "quinta-feira", "sexta-feira", "sábado", "domingo"],
    short_days: ["seg.", "ter.", "qua.", "qui.", "sex.", "sáb.", "dom."],
    now: "agora mesmo", past: "há {}", future: "dentro de {}",
    units: [("minuto", "minutos"), ("hora", "horas"), ("dia", "dias"), ("mês", "meses"), ("ano", "anos")],
};

#[rustfmt::skip]
static DUTCH: Words = Words {
    months: ["januari", "februari", "maart", "april", "mei", "juni", "juli", "augustus", "september", "oktober", "november", "december"],
    short_months: ["jan", "feb", "mrt", "apr", "mei", "jun", "jul", "aug", "sep", "okt", "nov", "dec"],
    days: ["maandag", "dinsdag", "woensdag", "donderdag", "vrijdag", "zaterdag", "zondag"],
    short_days: ["ma", "di", "wo", "do", "vr", "za", "zo"],
    now: "zojuist", past: "{} geleden", future: "over {}",
    units: [("minuut", "minuten"), ("uur", "uur"), ("dag", "dagen"), ("maand", "maanden"), ("jaar", "jaar")],
};

#[rustfmt::skip]
static DANISH: Words = Words {
    months: ["januar", "februar", "marts", "april", "maj", "juni", "juli", "august", "september", "oktober", "november", "december"],
    short_months: ["jan.", "feb.", "mar.", "apr.", "maj", "jun.", "jul.", "aug.", "sep.", "okt.", "nov.", "dec."],
    days: ["mandag", "tirsdag", "onsdag", "torsdag", "fredag", "lørdag", "søndag"],
    short_days: ["man.", "tirs.", "ons.", "tors.", "fre.", "lør.", "søn."],
    now: "lige nu", past: "for {} siden", future: "om {}",
    units: [("minut", "minutter"), ("time", "timer"), ("dag", "dage"), ("måned", "måneder"), ("år", "år")],
};

#[rustfmt::skip]
static NORWEGIAN: Words = Words {
    months: ["januar", "februar", "mars", "april", "mai", "juni", "juli", "august", "september", "oktober", "november", "desember"],
    short_months: ["jan.", "feb.", "mars", "apr.", "mai", "juni", "juli", "aug.", "sep.", "okt.", "nov.", "des."],
    days: ["mandag", "tirsdag", "onsdag", "torsdag", "fredag", "lørdag", "søndag"],
    short_days: ["man.", "tir.", "ons.", "tor.", "fre.", "lør.", "søn."],
    now: "akkurat nå", past: "for {} siden", future: "om {}",
    units: [("minutt", "minutter"), ("time", "timer"), ("dag", "dager"), ("måned", "måneder"), ("år", "år")],
};

#[rustfmt::skip]
static SWEDISH: Words = Words {
    months: ["januari", "februari", "mars", "april", "maj", "juni", "juli", "augusti", "september", "oktober", "november", "december"],
    short_months: ["jan.", "feb.", "mars", "apr.", "maj", "juni", "juli", "aug.", "sep.", "okt.", "nov.", "dec."],
    days: ["måndag", "tisdag", "onsdag", "torsdag", "fredag", "lördag", "söndag"],
    short_days: ["mån", "tis", "ons", "tors", "fre", "lör", "sön"],
    now: "just nu", past: "för {} sedan", future: "om {}",
    units: [("minut", "minuter"), ("timme", "timmar"), ("dag", "dagar"), ("månad", "månader"), ("år", "år")],
};
