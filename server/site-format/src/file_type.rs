//! The types of files, known by their content.
//!
//! What a client says of a file is not believed: a page of HTML may be called a picture. Only among
//! texts, and among the formats that are ZIP archives inside, does the ending of the name choose,
//! and there it does no harm.

/// Bytes at the beginning of a file that tell its type.
pub const SNIFFED: usize = 512;

/// Policy under which a file has an origin of its own, no scripts and no forms.
pub const SANDBOX: &str = "sandbox; default-src 'none'";

/// A type of files.
#[derive(Debug, PartialEq, Eq)]
pub struct FileType {
    /// Its media type.
    pub name: &'static str,
    /// The ending of names, with which the file is stored.
    pub ending: &'static str,
    /// True if a browser shows it in a page without harm. What is not is sent as an attachment.
    pub is_shown: bool,
    /// True if a browser may run what is in it: it is taken only where it is named.
    pub is_active: bool,
}

const fn shown(name: &'static str, ending: &'static str) -> FileType {
    FileType {
        name,
        ending,
        is_shown: true,
        is_active: false,
    }
}

const fn attached(name: &'static str, ending: &'static str) -> FileType {
    FileType {
        is_shown: false,
        ..shown(name, ending)
    }
}

const fn active(name: &'static str, ending: &'static str) -> FileType {
    FileType {
        is_active: true,
        ..attached(name, ending)
    }
}

static TYPES: [FileType; 32] = [
    shown("image/png", "png"),
    shown("image/jpeg", "jpg"),
    shown("image/gif", "gif"),
    shown("image/webp", "webp"),
    shown("image/avif", "avif"),
    shown("image/heic", "heic"),
    active("image/svg+xml", "svg"),
    shown("application/pdf", "pdf"),
    attached("application/zip", "zip"),
    attached("application/gzip", "gz"),
    attached("application/epub+zip", "epub"),
    attached(
        "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
        "docx",
    ),
    attached(
        "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
        "xlsx",
    ),
    attached(
        "application/vnd.openxmlformats-officedocument.presentationml.presentation",
        "pptx",
    ),
    attached("application/vnd.oasis.opendocument.text", "odt"),
    attached("application/vnd.oasis.opendocument.spreadsheet", "ods"),
    shown("video/mp4", "mp4"),
    shown("video/quicktime", "mov"),
    shown("video/webm", "webm"),
    shown("audio/mpeg", "mp3"),
    shown("audio/mp4", "m4a"),
    shown("audio/ogg", "ogg"),
    shown("audio/wav", "wav"),
    shown("audio/flac", "flac"),
    shown("text/plain", "txt"),
    attached("text/csv", "csv"),
    attached("text/markdown", "md"),
    attached("application/json", "json"),
    active("text/html", "html"),
    active("application/xml", "xml"),
    attached("text/calendar", "ics"),
    attached("application/octet-stream", "bin"),
];

/// Type of a file that cannot be told.
const UNKNOWN: &str = "application/octet-stream";
const ZIP: &str = "application/zip";
const TEXT: &str = "text/plain";

impl FileType {
    /// All types.
    pub fn all() -> impl Iterator<Item = &'static Self> {
        TYPES.iter()
    }

    /// The type of files with an ending.
    pub fn of_ending(ending: &str) -> Option<&'static Self> {
        Self::all().find(|kind| kind.ending == ending)
    }

    fn named(name: &str) -> &'static Self {
        let mut all = Self::all();
        all.find(|kind| kind.name == name)
            .unwrap_or(&TYPES[TYPES.len() - 1])
    }

    /// Finds the type of a file by its first bytes ([`SNIFFED`], or all if it has fewer); `name` is
    /// the client's name for it.
    pub fn of(head: &[u8], name: &str) -> &'static Self {
        let found = match by_magic(head) {
            Some(found) => found,
            None => text(head).unwrap_or(UNKNOWN),
        };
        let kind = Self::named(found);
        let ending = name.rsplit_once('.').map_or("", |(_, ending)| ending);
        let named = Self::of_ending(&ending.to_ascii_lowercase());
        // A kind of the same family that the content alone does not tell.
        named.filter(|named| named.is_kind_of(kind)).unwrap_or(kind)
    }

    /// True if files of this type look like files of that one.
    fn is_kind_of(&self, wider: &Self) -> bool {
        match wider.name {
            ZIP => self.name == "application/epub+zip" || self.name.starts_with("application/vnd."),
            TEXT => matches!(
                self.name,
                "text/csv" | "text/markdown" | "text/calendar" | "application/json"
            ),
            _ => false,
        }
    }

    /// Returns the type that the file is taken for where only `taken` are; none if it is not taken.
    pub fn among(&'static self, taken: &[&'static Self]) -> Option<&'static Self> {
        if taken.is_empty() {
            return (!self.is_active).then_some(self);
        }
        let is_taken = |kind: &&&'static Self| self == **kind || self.is_kind_of(kind);
        let exact = taken.iter().find(|kind| self == **kind);
        exact.or_else(|| taken.iter().find(is_taken)).copied()
    }
}

/// The types that a name means: one, or all of `image/*`. None for an unknown name. What is active
/// is named by its own name only.
pub fn types_named(name: &str) -> Vec<&'static FileType> {
    let family = name
        .strip_suffix('*')
        .filter(|family| matches!(*family, "image/" | "audio/" | "video/"));
    let is_meant = |kind: &&'static FileType| match family {
        Some(family) => kind.name.starts_with(family) && !kind.is_active,
        None => kind.name == name,
    };
    FileType::all().filter(is_meant).collect()
}

fn by_magic(head: &[u8]) -> Option<&'static str> {
    const MAGIC: [(&[u8], &str); 14] = [
        (b"\x89PNG\r\n\x1a\n", "image/png"),
        (b"\xff\xd8\xff", "image/jpeg"),
        (b"GIF87a", "image/gif"),
        (b"GIF89a", "image/gif"),
        (b"%PDF-", "application/pdf"),
        (b"PK\x03\x04", ZIP),
        (b"PK\x05\x06", ZIP),
        (b"\x1f\x8b\x08", "application/gzip"),
        (b"OggS", "audio/ogg"),
        (b"fLaC", "audio/flac"),
        (b"ID3", "audio/mpeg"),
        (b"\xff\xfb", "audio/mpeg"),
        (b"\xff\xf3", "audio/mpeg"),
        (b"\xff\xf2", "audio/mpeg"),
    ];
    let at = |start: usize, bytes: &[u8]| head.get(start..).is_some_and(|at| at.starts_with(bytes));
    if let Some((_, name)) = MAGIC.iter().find(|(magic, _)| head.starts_with(magic)) {
        return Some(name);
    }
    if at(0, b"RIFF") {
        return match () {
            () if at(8, b"WEBP") => Some("image/webp"),
            () if at(8, b"WAVE") => Some("audio/wav"),
            () => None,
        };
    }
    if at(4, b"ftyp") {
        let brand = head.get(8..12)?;
        return Some(match brand {
            b"avif" | b"avis" => "image/avif",
            b"heic" | b"heix" | b"hevc" | b"mif1" | b"msf1" => "image/heic",
            b"qt  " => "video/quicktime",
            b"M4A " | b"M4B " => "audio/mp4",
            _ => "video/mp4",
        });
    }
    let is_webm = at(0, b"\x1a\x45\xdf\xa3")
        && head[..head.len().min(64)]
            .windows(4)
            .any(|part| part == b"webm");
    is_webm.then_some("video/webm")
}

/// Finds the type of a text; none if the bytes are no text.
fn text(head: &[u8]) -> Option<&'static str> {
    let text = match std::str::from_utf8(head) {
        Ok(text) => text,
        // The last character may be cut.
        Err(error) if error.error_len().is_none() && head.len() >= SNIFFED => {
            std::str::from_utf8(&head[..error.valid_up_to()]).ok()?
        }
        Err(_) => return None,
    };
    let is_binary = |c: char| c.is_control() && !matches!(c, '\t' | '\n' | '\r' | '\x0c' | '\x1b');
    if text.contains(is_binary) {
        return None;
    }
    let start = text.trim_start_matches(|c: char| c == '\u{feff}' || c.is_whitespace());
    if !start.starts_with('<') {
        return Some(TEXT);
    }
    let start = start.to_ascii_lowercase();
    Some(match () {
        () if start.contains("<svg") => "image/svg+xml",
        () if start.starts_with("<?xml") && !start.contains("<html") => "application/xml",
        () => "text/html",
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(head: &[u8], name: &str) -> &'static str {
        FileType::of(head, name).name
    }

    #[test]
    fn the_content_tells_the_type_and_the_name_does_not() {
        for (head, expected) in [
            (&b"\x89PNG\r\n\x1a\n\0\0"[..], "image/png"),
            (b"\xff\xd8\xff\xe0", "image/jpeg"),
            (b"GIF89a;", "image/gif"),
            (b"RIFF\0\0\0\0WEBPVP8 ", "image/webp"),
            (b"RIFF\0\0\0\0WAVEfmt ", "audio/wav"),
            (b"RIFF\0\0\0\0AVI ", UNKNOWN),
            (b"\0\0\0\x20ftypavif", "image/avif"),
            (b"\0\0\0\x20ftypisom", "video/mp4"),
            (b"%PDF-1.7", "application/pdf"),
            (b"PK\x03\x04", ZIP),
            (b"ID3\x04", "audio/mpeg"),
            (
                b"\x1a\x45\xdf\xa3\x01\0\0\0\0\0\0\x1f\x42\x82\x84webm",
                "video/webm",
            ),
            (b"hello", TEXT),
            ("h\u{e9}llo".as_bytes(), TEXT),
            (b"\xff\xfe", UNKNOWN),
            (b"a\0b", UNKNOWN),
            (b" <!doctype html>", "text/html"),
            (b"<?xml version='1.0'?><SVG>", "image/svg+xml"),
            (b"\xef\xbb\xbf<?xml version='1.0'?><rss>", "application/xml"),
            (b"<script>", "text/html"),
        ] {
            for name in ["", "a.png", "a.html", "a.svg", "../../x.exe"] {
                assert_eq!(of(head, name), expected, "{name}");
            }
        }
        assert_eq!(of(b"a,b", "a.CSV"), "text/csv");
        assert_eq!(of(b"<b>,", "a.csv"), "text/html");
        assert!(of(b"PK\x03\x04", "a.docx").ends_with("wordprocessingml.document"));
        assert_eq!(of(b"%PDF-", "a.docx"), "application/pdf");
        // A character that is cut at the end of what is looked at.
        let mut cut = vec![b'x'; SNIFFED - 1];
        cut.push(0xc3);
        assert_eq!(of(&cut, ""), TEXT);
        assert_eq!(of(b"x\xc3", ""), UNKNOWN);
    }

    #[test]
    fn what_is_active_is_taken_only_where_it_is_named() {
        let svg = FileType::named("image/svg+xml");
        assert_eq!(svg.among(&[]), None);
        assert_eq!(svg.among(&types_named("image/*")), None);
        assert_eq!(svg.among(&types_named("image/svg+xml")), Some(svg));
        let csv = FileType::named("text/csv");
        assert_eq!(csv.among(&[]), Some(csv));
        let text = FileType::named(TEXT);
        assert_eq!(csv.among(&[text]), Some(text));
        assert_eq!(text.among(&[csv]), None);
        assert!(types_named("text/*").is_empty() && types_named("image/x").is_empty());
        for kind in FileType::all() {
            assert_eq!(types_named(kind.name), [kind]);
            assert_eq!(FileType::of_ending(kind.ending), Some(kind));
        }
    }
}
