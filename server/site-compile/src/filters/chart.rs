//! `chart`: rows as lines over time.

use base_chart::{Axis, Line, LineChart, Scale, Unit, Width, lines};
use minijinja::{
    Error,
    value::{Kwargs, Value, ValueKind},
};

use super::fault::{unfit, unfit_argument};

/// The units that an axis may have, each by its name.
const UNITS: [(&str, Unit); 6] = [
    ("bytes", Unit::Bytes),
    ("count", Unit::Count),
    ("number", Unit::Plain),
    ("percent", Unit::Percent),
    ("rate", Unit::Rate),
    ("seconds", Unit::Seconds),
];

/// The columns `y` of rows as lines over their column `x`, seconds since 1970. Two drawings, one
/// for a column of a page and one for a phone; without rows nothing.
pub(super) fn chart(rows: &Value, options: &Kwargs) -> Result<Value, Error> {
    const TAKES: &str = "a list of rows";
    let title: String = options.get("title")?;
    let columns: Vec<String> = options.get("y")?;
    let x: Option<String> = options.get("x")?;
    let unit: Option<String> = options.get("unit")?;
    options.assert_all_used()?;
    let (x, unit) = (x.as_deref().unwrap_or("at"), unit.as_deref());
    let unit = unit.unwrap_or("number");
    let found = UNITS.iter().find(|(name, _)| *name == unit);
    let (_, unit) = found.ok_or_else(|| {
        let names = UNITS.map(|(name, _)| name).join(", ");
        unfit_argument("chart", &format!("`{unit}` is no unit"), &names)
    })?;
    if !matches!(rows.kind(), ValueKind::Seq | ValueKind::Iterable) {
        return Err(unfit("chart", rows, TAKES));
    }
    let mut drawn: Vec<Line> = Vec::with_capacity(columns.len());
    for name in &columns {
        let points = Vec::with_capacity(rows.len().unwrap_or(0));
        let name = name.clone();
        drawn.push(Line { name, points });
    }
    for row in rows.try_iter()? {
        let at = number(&row, x)?.ok_or_else(|| unfit("chart", &row, TAKES))?;
        for line in &mut drawn {
            let value = number(&row, &line.name)?;
            line.points.push((at, value));
        }
    }
    if drawn.iter().all(|line| line.points.is_empty()) {
        return Ok(Value::from(""));
    }
    let chart = LineChart {
        title: title.clone(),
        note: String::new(),
        x: Axis {
            title: String::new(),
            unit: Unit::Moment,
            scale: Scale::Time,
        },
        y: Axis::linear("", *unit),
        lines: drawn,
    };
    let drawings = [Width::Panel, Width::Narrow];
    let drawings = drawings.map(|width| lines(&chart, width).inline(width.class(), &title));
    Ok(Value::from_safe_string(drawings.concat()))
}

/// A column of a row as a number; none where it is null.
fn number(row: &Value, column: &str) -> Result<Option<f64>, Error> {
    let value = row.get_attr(column)?;
    if value.is_none() {
        return Ok(None);
    }
    f64::try_from(value.clone())
        .map(Some)
        .map_err(|_| unfit("chart", &value, "numbers in the columns that it draws"))
}
