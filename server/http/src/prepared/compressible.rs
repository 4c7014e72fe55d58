//! Which media types are worth compressing.

/// True if compressing content of this media type is worth while: text is, and so are fonts that
/// are not packed. Images, sound, video and archives are compressed already. Parameters such as a
/// charset, and the case of letters, make no difference.
#[must_use]
pub fn is_compressible(media_type: &str) -> bool {
    let essence = media_type.split(';').next().unwrap_or_default().trim();
    let essence = essence.to_ascii_lowercase();
    let Some((kind, subtype)) = essence.split_once('/') else {
        return false;
    };
    let format = subtype.rsplit('+').next().unwrap_or_default();
    match kind {
        "text" => true,
        "application" => PACKABLE.split(' ').any(|known| known == format),
        "font" => matches!(format, "otf" | "ttf"),
        // RFC 6839: a structured syntax says more than the kind, as in image/svg+xml.
        _ => subtype.contains('+') && matches!(format, "json" | "xml"),
    }
}

/// Formats that are text, and a few that are bytes and not packed; the last part of a subtype.
const PACKABLE: &str = "\
    font-sfnt graphql javascript json json-seq ndjson rtf sql toml vnd.ms-fontobject wasm \
    x-javascript x-ndjson x-sql xml yaml";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_and_what_is_packed_is_not() {
        for media_type in [
            "text/html; charset=utf-8",
            "TEXT/plain",
            "application/json",
            "Application/Problem+JSON;charset=utf-8",
            "application/xml",
            "application/atom+xml",
            "image/svg+xml",
            "model/gltf+json",
            "application/javascript",
            "application/x-ndjson",
            "application/yaml",
            "application/wasm",
            "application/vnd.ms-fontobject",
            "font/ttf",
        ] {
            assert!(is_compressible(media_type), "{media_type}");
        }
        for media_type in [
            "",
            "text",
            "image/png",
            "image/xml",
            "font/woff2",
            "application/zip",
            "application/epub+zip",
            "application/octet-stream",
            "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
        ] {
            assert!(!is_compressible(media_type), "{media_type}");
        }
    }
}
