//! Draws a view: the most important parts first, as long as the terminal has rows.

use millrace_client::Progress as Run;
use millrace_report::number;
use millrace_stats::Latency;
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::symbols::Marker;
use ratatui::text::{Line, Span};
use ratatui::widgets::{
    Axis, Block, Borders, Cell, Chart, Dataset, GraphType, LineGauge, Row, Sparkline, Table,
};

use super::view::{Steps, View, ViewPosition, doing, remaining};

/// Rows of the graph of rates, with its title.
const SPARKS: u16 = 5;
/// Columns that a graph beside the table of steps needs, and rows.
const GRAPH: (u16, u16) = (70, 6);

/// Draws the whole view.
pub(super) fn draw(frame: &mut Frame<'_>, view: &View) {
    let mut rows = Rows::of(frame.area());
    title(frame, rows.take(1), view);
    let Some((place, run)) = &view.now else {
        return;
    };
    gauge(frame, rows.take(1), place, run);
    if let Some(area) = rows.take(1) {
        frame.render_widget(counts(run), area);
    }
    if let Some(area) = rows.take(1) {
        frame.render_widget(errors(run), area);
    }
    latencies(frame, &mut rows, run);
    if !view.steps.columns.is_empty() && rows.left.height > SPARKS + 4 {
        let below = rows.split_off(rows.left.height - SPARKS - 1);
        sparks(frame, below, view, run);
        steps(frame, rows.left, &view.steps);
    } else {
        let height = rows.left.height.min(SPARKS + 3);
        let area = rows.split_first(height);
        sparks(frame, area, view, run);
    }
}

/// The rows of a terminal, given out from the top.
struct Rows {
    left: Rect,
}

impl Rows {
    fn of(area: Rect) -> Self {
        Self { left: area }
    }

    /// The next rows, if enough are left.
    fn take(&mut self, height: u16) -> Option<Rect> {
        (self.left.height >= height).then(|| self.split_first(height))
    }

    fn split_first(&mut self, height: u16) -> Rect {
        let [first, rest] =
            Layout::vertical([Constraint::Length(height), Constraint::Min(0)]).areas(self.left);
        self.left = rest;
        first
    }

    /// The rows below the next `height` rows.
    fn split_off(&mut self, height: u16) -> Rect {
        let [first, rest] =
            Layout::vertical([Constraint::Length(height), Constraint::Min(0)]).areas(self.left);
        self.left = first;
        rest
    }
}

fn bold() -> Style {
    Style::new().add_modifier(Modifier::BOLD)
}

fn dim() -> Style {
    Style::new().add_modifier(Modifier::DIM)
}

fn title(frame: &mut Frame<'_>, area: Option<Rect>, view: &View) {
    if let Some(area) = area {
        frame.render_widget(Line::styled(view.title.as_str(), bold()), area);
    }
}

/// Draws the name of the command, its progress, and the time that it will take.
fn gauge(frame: &mut Frame<'_>, area: Option<Rect>, place: &ViewPosition, run: &Run) {
    let Some(area) = area else { return };
    let mut words = Vec::new();
    if !place.part.is_empty() {
        words.push(place.part.clone());
    }
    words.push(doing(run.phase).to_owned());
    if let Some(left) = place.remaining {
        words.push(format!("{} left", remaining(left)));
    }
    let fraction = place.fraction.clamp(0.0, 1.0);
    words.push(format!("{:.0} %", fraction * 100.0));
    let gauge = LineGauge::default()
        .label(words.join(", "))
        .filled_style(Style::new().fg(Color::Cyan))
        .unfilled_style(dim())
        // Without colours too.
        .filled_symbol("━")
        .unfilled_symbol("─")
        .ratio(if fraction.is_finite() { fraction } else { 0.0 });
    frame.render_widget(gauge, area);
}

/// Requests, connections and the client's own CPU.
fn counts(run: &Run) -> Line<'static> {
    let glimpse = &run.so_far;
    Line::from(format!(
        "{} requests  {} of {} connections  client {} of a core",
        number::count(run.finished),
        number::count(glimpse.connected),
        number::count(run.connections),
        number::percent(glimpse.busiest_thread)
    ))
}

fn errors(run: &Run) -> Line<'static> {
    if run.errors == 0 {
        return Line::styled("no errors", dim());
    }
    let mut kinds: Vec<String> = Vec::new();
    for (kind, count) in run.so_far.errors.iter().flatten() {
        kinds.push(format!(
            "{} {}",
            number::count(*count),
            kind.replace('_', " ")
        ));
    }
    let named = kinds.join(", ");
    let total = Span::styled(
        format!("{} errors", number::count(run.errors)),
        bold().fg(Color::Red),
    );
    Line::from(vec![total, Span::raw(format!("  {named}"))])
}

/// Percentiles so far, if there are rows for them.
fn latencies(frame: &mut Frame<'_>, rows: &mut Rows, run: &Run) {
    let known = [
        ("response", run.so_far.response),
        ("service", run.so_far.service),
    ];
    let lines: Vec<Row<'_>> = known
        .into_iter()
        .filter_map(|(name, latency)| Some(latency_row(name, &latency?)))
        .collect();
    // A blank row before it and its head.
    let height = lines.len() as u16 + 2;
    if lines.is_empty() {
        return;
    }
    let Some(area) = rows.take(height) else {
        return;
    };
    let head =
        ["", "50 %", "90 %", "99 %", "99.9 %", "longest"].map(|title| right(title.to_owned()));
    let widths = [Constraint::Length(8)]
        .into_iter()
        .chain([Constraint::Length(9); 5]);
    let table = Table::new(lines, widths)
        .header(Row::new(head).style(dim()))
        .block(
            Block::new()
                .borders(Borders::NONE)
                .padding(ratatui::widgets::Padding::top(1)),
        );
    frame.render_widget(table, area);
}

fn latency_row(name: &'static str, latency: &Latency) -> Row<'static> {
    let times = [
        latency.p50,
        latency.p90,
        latency.p99,
        latency.p999,
        Some(latency.max),
    ];
    let cells = times.map(|time| right(time.map_or_else(|| "–".to_owned(), number::micros)));
    Row::new([Cell::from(name)].into_iter().chain(cells))
}

fn right(text: String) -> Cell<'static> {
    Cell::from(Line::from(text).right_aligned())
}

/// The rate over the last minute, under its name and the newest figure.
fn sparks(frame: &mut Frame<'_>, area: Rect, view: &View, run: &Run) {
    if area.height < 2 || area.width < 2 {
        return;
    }
    let mut title = format!("{} now", number::rate(run.rate));
    if let Some(offered) = run.offered_rate {
        title.push_str(&format!(" of {} asked for", number::rate(offered)));
    }
    let width = usize::from(area.width);
    let skip = view.rates.len().saturating_sub(width);
    let rates: Vec<u64> = view.rates.iter().skip(skip).copied().collect();
    let line = Sparkline::default()
        .data(&rates)
        .style(Style::new().fg(Color::Cyan))
        .block(Block::new().borders(Borders::TOP).title(title));
    frame.render_widget(line, area);
}

/// The last steps as a table, and all steps as a graph if there is room.
fn steps(frame: &mut Frame<'_>, area: Rect, steps: &Steps) {
    if area.height < 3 || area.width == 0 {
        return;
    }
    let has_graph = area.width >= GRAPH.0 && area.height >= GRAPH.1 && steps.points.len() > 1;
    let share = if has_graph { 60 } else { 100 };
    let [left, beside] =
        Layout::horizontal([Constraint::Percentage(share), Constraint::Fill(1)]).areas(area);
    let block = Block::new().borders(Borders::TOP).title("steps");
    let room = usize::from(left.height).saturating_sub(2);
    let skip = steps.rows.len().saturating_sub(room);
    let rows = steps.rows.iter().skip(skip).map(|row| {
        let cells = row.iter().map(|cell| right(cell.clone()));
        Row::new(cells)
    });
    let widths = steps.columns.iter().enumerate().map(|(n, title)| {
        let cells = steps.rows.iter().filter_map(|row| row.get(n));
        let widest = cells.map(|cell| cell.chars().count()).max().unwrap_or(0);
        Constraint::Length(widest.max(title.chars().count()).min(60) as u16)
    });
    let head = steps.columns.iter().map(|title| right(title.clone()));
    let table = Table::new(rows, widths)
        .header(Row::new(head).style(dim()))
        .column_spacing(2)
        .block(block);
    frame.render_widget(table, left);
    if has_graph {
        graph(frame, beside, steps);
    }
}

fn graph(frame: &mut Frame<'_>, area: Rect, steps: &Steps) {
    let ends = |of: fn(&(f64, f64)) -> f64| {
        steps
            .points
            .iter()
            .map(of)
            .fold([0.0, 0.0], |[low, high], value| {
                [f64::min(low, value), f64::max(high, value)]
            })
    };
    let axis = |title: &'static str, [low, high]: [f64; 2]| {
        Axis::default()
            .title(title)
            .bounds([low, if high > low { high } else { low + 1.0 }])
            .labels([number::plain(low), number::plain(high)])
            .style(dim())
    };
    let data = Dataset::default()
        .marker(Marker::Braille)
        .graph_type(GraphType::Line)
        .style(Style::new().fg(Color::Cyan))
        .data(&steps.points);
    let chart = Chart::new(vec![data])
        .x_axis(axis(steps.axes[0], ends(|point| point.0)))
        .y_axis(axis(steps.axes[1], ends(|point| point.1)))
        .block(Block::new().borders(Borders::TOP));
    frame.render_widget(chart, area);
}

#[cfg(test)]
#[path = "draw_tests.rs"]
mod tests;
