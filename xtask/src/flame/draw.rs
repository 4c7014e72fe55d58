//! A tree of samples as a flame graph: an SVG without scripts, whose boxes say what they are when
//! one points at them.

use std::fmt::Write as _;

use super::stacks::{Frame, Tree};

const WIDTH: f64 = 1200.0;
const ROW: f64 = 17.0;
/// Room for the title.
const TOP: f64 = 30.0;
/// Narrower boxes are left out: a thousandth and less of all samples.
const NARROWEST: f64 = WIDTH / 1000.0;
/// Width of a letter of the font.
const LETTER: f64 = 6.6;

/// The graph, outermost functions at the bottom.
pub(super) fn svg(tree: &Tree, title: &str) -> String {
    let rows = depth(tree);
    let height = TOP + ROW * rows as f64 + 10.0;
    let mut text = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" font-family=\"monospace\" font-size=\"11\">\n\
         <style>.u{{fill:#e8a33d}}.k{{fill:#8fb3d9}}rect{{stroke:#fff;stroke-width:.5}}text{{pointer-events:none}}</style>\n\
         <rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n\
         <text x=\"8\" y=\"19\" font-size=\"14\">{} (orange: the server, blue: the kernel)</text>\n",
        escaped(title)
    );
    let scale = WIDTH / tree.samples().max(1) as f64;
    let bottom = height - 10.0 - ROW;
    boxes(
        tree,
        &Place {
            left: 0.0,
            top: bottom,
            scale,
            all: tree.samples(),
        },
        &mut text,
    );
    text + "</svg>\n"
}

/// Place of a box: its beginning, and the width of a sample.
struct Place {
    left: f64,
    top: f64,
    scale: f64,
    all: u64,
}

fn is_wide(tree: &Tree, scale: f64) -> bool {
    tree.samples() as f64 * scale >= NARROWEST
}

/// Rows that the graph needs.
fn depth(tree: &Tree) -> usize {
    fn below(tree: &Tree, scale: f64) -> usize {
        let wide = tree.called().filter(|(_, called)| is_wide(called, scale));
        wide.map(|(_, called)| 1 + below(called, scale))
            .max()
            .unwrap_or(0)
    }
    below(tree, WIDTH / tree.samples().max(1) as f64)
}

fn boxes(tree: &Tree, place: &Place, text: &mut String) {
    let mut left = place.left;
    for (frame, called) in tree.called() {
        let width = called.samples() as f64 * place.scale;
        if is_wide(called, place.scale) {
            one_box(frame, called, left, width, place, text);
            let above = Place {
                left,
                top: place.top - ROW,
                ..*place
            };
            boxes(called, &above, text);
        }
        left += width;
    }
}

fn one_box(frame: &Frame, tree: &Tree, left: f64, width: f64, place: &Place, text: &mut String) {
    let class = if frame.is_kernel { 'k' } else { 'u' };
    let share = tree.samples() as f64 * 100.0 / place.all.max(1) as f64;
    let name = escaped(&frame.name);
    let _ = write!(
        text,
        "<g><title>{name}: {share:.1} %, {} samples</title><rect class=\"{class}\" x=\"{left:.1}\" y=\"{:.1}\" width=\"{width:.1}\" height=\"{ROW}\"/>",
        tree.samples(),
        place.top
    );
    let letters = ((width - 4.0) / LETTER) as usize;
    if letters >= 3 {
        let shown = shortened(&frame.name, letters);
        let (x, y) = (left + 2.0, place.top + 12.5);
        let _ = write!(
            text,
            "<text x=\"{x:.1}\" y=\"{y:.1}\">{}</text>",
            escaped(&shown)
        );
    }
    *text += "</g>\n";
}

/// The end of a path says most.
fn shortened(name: &str, letters: usize) -> String {
    let count = name.chars().count();
    if count <= letters {
        return name.to_owned();
    }
    let last = name.rsplit("::").next().unwrap_or(name);
    if last.chars().count() <= letters {
        return last.to_owned();
    }
    let start: String = last.chars().take(letters - 1).collect();
    start + "…"
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::{Tree, shortened, svg};

    #[test]
    fn boxes_are_as_wide_as_their_share() {
        let script =
            "w \n\t1 a<b> (/x)\n\t2 run (/x)\n\nw \n\t1 tcp ([kernel.kallsyms])\n\t2 run (/x)\n\n";
        let graph = svg(&Tree::of_thread(script, "w"), "T");
        assert!(
            graph.contains("<title>run: 100.0 %, 2 samples</title><rect class=\"u\" x=\"0.0\""),
            "{graph}"
        );
        assert!(
            graph.contains("<title>a&lt;b&gt;: 50.0 %, 1 samples</title>"),
            "{graph}"
        );
        assert!(graph.contains("<rect class=\"k\" x=\"600.0\""), "{graph}");
        assert_eq!(graph.matches("<g>").count(), graph.matches("</g>").count());
    }

    #[test]
    fn what_is_too_narrow_is_left_out() {
        let rare = "w \n\t1 rare (/x)\n\n".to_owned();
        let script = rare + &"w \n\t1 often (/x)\n\n".repeat(2000);
        let graph = svg(&Tree::of_thread(&script, "w"), "T");
        assert!(
            graph.contains("often") && !graph.contains("rare"),
            "{graph}"
        );
    }

    #[test]
    fn names_fit_their_boxes() {
        assert_eq!(shortened("a::b::send", 20), "a::b::send");
        assert_eq!(shortened("a::b::send", 5), "send");
        assert_eq!(shortened("a::b::sendmsg", 5), "send…");
    }
}
