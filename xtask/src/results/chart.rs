//! The picture of the README, drawn from the stored run that it speaks of.

use std::fmt::Write as _;

use serde_json::Value;

use super::page::list;

/// Ending of the stored runs of which the newest is drawn.
pub(super) const EXPERIMENT: &str = "-article-legacy.json";
/// File of the picture, from the project's root.
pub(super) const PICTURE: &str = "docs/article-page.svg";

/// Servers of the experiment with their names on the picture.
const BARS: [(&str, &str); 5] = [
    ("php-plain", "nginx, PHP-FPM, PostgreSQL"),
    ("php-apcu", "the same, objects in APCu"),
    ("php-fastcgi-cache", "the same, fastcgi_cache for 1 s"),
    ("millpond-database", "Millpond, from the database"),
    ("millpond", "Millpond, from memory"),
];

const COLOURS: &str = "\
rect.b{fill:#fff}text{fill:#1c2024}.q{fill:#5c636b}.g{stroke:#d8dce0}.o{fill:#8a8f98}.m{fill:#0f6b4f}\
@media(prefers-color-scheme:dark){rect.b{fill:#0d1117}text{fill:#e6e8eb}.q{fill:#9aa3ad}.g{stroke:#30363d}.o{fill:#7d858f}.m{fill:#3fa37f}}";

const LEFT: f64 = 236.0;
const WIDTH: f64 = 404.0;

/// Returns the picture of a stored run of `date`: requests per second for each server, medians.
pub(super) fn picture(date: &str, json: &str) -> Result<String, String> {
    let lab: Value = serde_json::from_str(json).map_err(|error| format!("is no JSON: {error}"))?;
    let rate = |server: &str| {
        let mut findings = list(&lab["findings"]).iter();
        let found = findings.find(|finding| finding["server"] == *server);
        found.and_then(|finding| finding["throughput"]["median"].as_f64())
    };
    let mut bars = Vec::new();
    for (server, label) in BARS {
        let rate = rate(server).ok_or_else(|| format!("has no throughput of {server}"))?;
        bars.push((server, label, rate));
    }
    let most = bars.iter().map(|bar| bar.2).fold(1.0, f64::max);
    let step = 25_000.0;
    let end = (most / step).ceil() * step;
    let bottom = 52 + 38 * bars.len();
    let described: Vec<String> = bars
        .iter()
        .map(|(_, label, rate)| format!("{label}: {}", thousands(*rate)))
        .collect();
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 720 {height}\" width=\"720\" height=\"{height}\" \
         font-family=\"system-ui, sans-serif\" font-size=\"13\" role=\"img\" aria-labelledby=\"t d\">\n\
         <title id=\"t\">An article page: requests per second</title>\n\
         <desc id=\"d\">{}. Linear axis from 0, all of one run.</desc>\n<style>{COLOURS}</style>\n\
         <rect class=\"b\" width=\"720\" height=\"{height}\"/>\n\
         <text x=\"16\" y=\"26\" font-size=\"15\" font-weight=\"600\">An article page: requests per second</text>\n",
        described.join("; "),
        height = bottom + 54,
    );
    let mut at = 0.0;
    while at <= end {
        let x = LEFT + WIDTH * at / end;
        let _ = writeln!(
            svg,
            "<path class=\"g\" d=\"M{x:.1} 44V{bottom}\"/><text class=\"q\" x=\"{x:.1}\" y=\"{}\" text-anchor=\"middle\">{}</text>",
            bottom + 16,
            thousands(at)
        );
        at += step;
    }
    for (place, (server, label, rate)) in bars.iter().enumerate() {
        let (y, width) = (52 + 38 * place, WIDTH * rate / end);
        let class = if server.starts_with("millpond") {
            "m"
        } else {
            "o"
        };
        let _ = writeln!(
            svg,
            "<text x=\"226\" y=\"{line}\" text-anchor=\"end\">{label}</text>\
             <rect class=\"{class}\" x=\"{LEFT}\" y=\"{y}\" width=\"{width:.1}\" height=\"24\"/>\
             <text x=\"{:.1}\" y=\"{line}\" font-weight=\"600\">{}</text>",
            LEFT + width + 6.0,
            thousands(*rate),
            line = y + 17,
        );
    }
    let _ = writeln!(
        svg,
        "<text class=\"q\" x=\"16\" y=\"{}\" font-size=\"12\">{date}, one run: the same page, server and PostgreSQL on one core, {} connections from the other.</text></svg>",
        bottom + 40,
        lab["levels"][0]["connections"],
    );
    Ok(svg)
}

/// Writes a rate with three digits that count, and commas.
fn thousands(rate: f64) -> String {
    let unit = 10_f64.powf((rate.max(1.0).log10().floor() - 2.0).max(0.0));
    let digits = format!("{:.0}", (rate / unit).round() * unit);
    let mut text = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::{BARS, picture, thousands};

    #[test]
    fn a_rate_has_three_digits_that_count() {
        let written = [0.0, 7.0, 1590.4, 24_949.0, 98_951.0, 128_400.0].map(thousands);
        assert_eq!(written, ["0", "7", "1,590", "24,900", "99,000", "128,000"]);
    }

    #[test]
    fn a_run_without_a_server_is_an_error_with_its_name() {
        let findings = BARS[1..].iter().map(|(server, _)| {
            format!("{{\"server\":\"{server}\",\"throughput\":{{\"median\":100000.0}}}}")
        });
        let of = |findings: &str| {
            picture(
                "2026-11-29",
                &format!("{{\"findings\":[{findings}],\"levels\":[{{\"connections\":32}}]}}"),
            )
        };
        let mut findings: Vec<String> = findings.collect();
        let reason = of(&findings.join(",")).expect_err("a server is missing");
        assert_eq!(reason, "has no throughput of php-plain");
        findings.push("{\"server\":\"php-plain\",\"throughput\":{\"median\":1000.0}}".to_owned());
        let svg = of(&findings.join(",")).expect("all are there");
        assert!(
            svg.contains("width=\"4.0\"") && svg.contains("width=\"404.0\""),
            "{svg}"
        );
    }
}
