//! YAML: a list of maps is rows, one map is one row. Values follow the core schema of YAML 1.2.

use std::borrow::Cow;
use std::collections::HashMap;

use saphyr_parser::{Event, Marker, Parser, ScalarStyle, Span, StrInput};
use serde_json::{Map, Number, Value as Json};

use crate::error::{DataError, FilePlace, ReadError};
use crate::row::{RowWriter, too_deep};
use crate::row_name::{RowName, with_name};
use crate::toml_rows::no_number;
use crate::{MAX_DEPTH, MAX_ROW};

/// The number of values that aliases may add to those that are written out.
const MAX_ALIASED: usize = 100_000;

/// Size of a value.
#[derive(Clone, Copy, Default)]
struct Size {
    /// The number of values in it, itself among them.
    values: usize,
    /// The bytes of texts and names in it.
    bytes: u64,
}

impl Size {
    fn of(text: &str) -> Self {
        Self {
            values: 1,
            bytes: text.len() as u64,
        }
    }

    fn add(&mut self, other: Self) {
        self.values += other.values;
        self.bytes += other.bytes;
    }
}

pub(crate) fn read(
    text: &str,
    name: Option<&RowName>,
    rows: &mut RowWriter<'_>,
) -> Result<(), ReadError> {
    let text = &*readable(text);
    let mut document = Document::new(text);
    document.open()?;
    match document.next()? {
        None => Ok(()),
        Some((Event::SequenceStart(..), _)) => {
            loop {
                let (event, mark) = document.expect()?;
                let place = place(mark);
                match event {
                    Event::SequenceEnd => break,
                    event => {
                        let fields = document.map(event, mark, 1)?;
                        rows.named(place, with_name(None, fields))?;
                    }
                }
            }
            Ok(document.close()?)
        }
        Some((event, mark)) => {
            if is_null(&event) {
                return Ok(document.close()?);
            }
            let fields = document.map(event, mark, 0)?;
            document.close()?;
            rows.named(place(mark), with_name(name, fields))
        }
    }
}

/// The members of a document that is one map, or nothing.
pub(crate) fn object(text: &str) -> Result<Vec<(String, Json)>, DataError> {
    let text = &*readable(text);
    let mut document = Document::new(text);
    document.open()?;
    let fields = match document.next()? {
        None => Vec::new(),
        Some((event, _)) if is_null(&event) => Vec::new(),
        Some((event, mark)) => document.map(event, mark, 0)?,
    };
    document.close()?;
    Ok(fields)
}

/// The text, or the text with lines indented that libyaml and go-yaml take as they are.
fn readable(text: &str) -> Cow<'_, str> {
    let is_bad = |text: &str| Parser::new_from_str(text).any(|event| event.is_err());
    // Most texts have nothing to indent, and are parsed once.
    let indented = indented(text);
    match indented != text && is_bad(text) && !is_bad(&indented) {
        true => Cow::Owned(indented),
        false => Cow::Borrowed(text),
    }
}

/// Indents the lines that go on within brackets or quotes up to where these begin: the standard
/// wants them deeper than the name in front of the value.
fn indented(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 64);
    // Open brackets, the open quote, where the first of them stands, and the indentation of a line
    // with `|` or `>`.
    let (mut depth, mut quote, mut start, mut block) = (0_usize, None, 0, None);
    for line in text.split_inclusive('\n') {
        let indent = line.len() - line.trim_start_matches(' ').len();
        if block.is_some_and(|of| indent > of || line.trim().is_empty()) {
            out.push_str(line);
            continue;
        }
        block = None;
        if depth > 0 || quote.is_some() {
            out.extend(std::iter::repeat_n(' ', start));
        }
        // A sign far to the right, and many lines behind it: that is no text of a person.
        if out.len() > 4 * text.len() + (64 << 10) {
            return text.to_owned();
        }
        let (mut is_value, mut before) = (true, ' ');
        let mut letters = line.chars().enumerate().peekable();
        while let Some((at, letter)) = letters.next() {
            match (quote, letter) {
                (Some('"'), '\\') => drop(letters.next()),
                (Some('\''), '\'') if letters.next_if(|it| it.1 == '\'').is_some() => {}
                (Some(open), letter) if open == letter => (quote, is_value) = (None, false),
                (Some(_), _) => {}
                (None, ' ' | '\t') => is_value |= [':', '-'].contains(&before),
                (None, '#') if [' ', '\t'].contains(&before) => break,
                (None, '[' | '{') if is_value => {
                    start = if depth == 0 { at + 1 } else { start };
                    (depth, is_value) = (depth + 1, true);
                }
                (None, ']' | '}') if depth > 0 => (depth, is_value) = (depth - 1, false),
                (None, ',') if depth > 0 => is_value = true,
                (None, '"' | '\'') if is_value => {
                    start = if depth == 0 { at + 1 } else { start };
                    quote = Some(letter);
                }
                (None, '|' | '>') if is_value && depth == 0 => {
                    block = Some(indent);
                    break;
                }
                _ => is_value = false,
            }
            before = letter;
        }
        out.push_str(line);
    }
    out
}

fn is_null(event: &Event<'_>) -> bool {
    matches!(event, Event::Scalar(text, ScalarStyle::Plain, _, None) if matches!(&**text, "" | "~" | "null"))
}

fn place(mark: Marker) -> FilePlace {
    FilePlace::at(mark.line() as u64, mark.col() as u64 + 1)
}

struct Document<'t> {
    parser: Parser<'t, StrInput<'t>>,
    /// The values with an anchor.
    anchors: HashMap<usize, (Json, Size)>,
    aliased: Size,
}

impl<'t> Document<'t> {
    fn new(text: &'t str) -> Self {
        Self {
            parser: Parser::new_from_str(text),
            anchors: HashMap::new(),
            aliased: Size::default(),
        }
    }

    /// Skips what stands before the first value.
    fn open(&mut self) -> Result<(), DataError> {
        loop {
            let before = match self.parser.peek() {
                Some(Ok((event, _))) => matches!(
                    event,
                    Event::StreamStart | Event::DocumentStart(_) | Event::Nothing
                ),
                _ => false,
            };
            if !before {
                return Ok(());
            }
            self.event()?;
        }
    }

    /// Only one document is read.
    fn close(&mut self) -> Result<(), DataError> {
        while let Some((event, span)) = self.event()? {
            if matches!(event, Event::DocumentStart(_)) {
                let message = "a second document begins here";
                return Err(DataError::new(place(span.start), message)
                    .remedy("write the rows as one list: - name: value"));
            }
        }
        Ok(())
    }

    fn event(&mut self) -> Result<Option<(Event<'t>, Span)>, DataError> {
        self.parser.next_event().transpose().map_err(|error| {
            let remedy = match error.info().contains("mapping values are not allowed") {
                true => {
                    "put a text with a colon and a blank in it into quotes: title: \"Tea: a start\""
                }
                false => "see https://yaml.org for the format; indent with spaces",
            };
            DataError::new(place(*error.marker()), error.info().to_owned()).remedy(remedy)
        })
    }

    /// The next event of a value; none at the end of the document.
    fn next(&mut self) -> Result<Option<(Event<'t>, Marker)>, DataError> {
        let next = self.event()?;
        let next = next.map(|(event, span)| (event, span.start));
        Ok(next.filter(|(event, _)| !matches!(event, Event::DocumentEnd | Event::StreamEnd)))
    }

    fn expect(&mut self) -> Result<(Event<'t>, Marker), DataError> {
        self.next()?
            .ok_or_else(|| DataError::new(FilePlace::default(), "the file ends within a value"))
    }

    /// A map as a list of its members.
    fn map(
        &mut self,
        event: Event<'t>,
        mark: Marker,
        depth: usize,
    ) -> Result<Vec<(String, Json)>, DataError> {
        match self.value(event, mark, depth)?.0 {
            Json::Object(map) => Ok(map.into_iter().collect()),
            _ => Err(
                DataError::new(place(mark), "a row is a map of names and values")
                    .remedy("write name: value"),
            ),
        }
    }

    /// A value and its size.
    fn value(
        &mut self,
        event: Event<'t>,
        mark: Marker,
        depth: usize,
    ) -> Result<(Json, Size), DataError> {
        if depth > MAX_DEPTH {
            return Err(too_deep(place(mark)));
        }
        let (anchor, value, size) = match event {
            Event::Scalar(text, style, anchor, tag) => {
                let size = Size::of(&text);
                let is_text = style != ScalarStyle::Plain
                    || tag.is_some_and(|tag| tag.is_yaml_core_schema() && tag.suffix == "str");
                let value = match is_text {
                    true => text.into_owned().into(),
                    false => plain(&text, place(mark))?,
                };
                (anchor, value, size)
            }
            Event::SequenceStart(anchor, _) => {
                let (list, size) = self.list(depth)?;
                (anchor, list, size)
            }
            Event::MappingStart(anchor, _) => {
                let (object, size) = self.object(depth)?;
                (anchor, object, size)
            }
            Event::Alias(anchor) => return self.alias(anchor, mark),
            _ => return Err(DataError::new(place(mark), "a value is expected here")),
        };
        if anchor > 0 {
            self.aliased.add(size);
            bound(&self.aliased, mark)?;
            self.anchors.insert(anchor, (value.clone(), size));
        }
        Ok((value, size))
    }

    fn list(&mut self, depth: usize) -> Result<(Json, Size), DataError> {
        let (mut list, mut size) = (Vec::new(), Size::of(""));
        loop {
            let (event, mark) = self.expect()?;
            if event == Event::SequenceEnd {
                return Ok((list.into(), size));
            }
            let (value, inner) = self.value(event, mark, depth + 1)?;
            size.add(inner);
            list.push(value);
        }
    }

    fn object(&mut self, depth: usize) -> Result<(Json, Size), DataError> {
        let (mut object, mut size) = (Map::new(), Size::of(""));
        loop {
            let (event, mark) = self.expect()?;
            let name = match event {
                Event::MappingEnd => return Ok((object.into(), size)),
                Event::Scalar(name, ..) => name.into_owned(),
                _ => {
                    return Err(DataError::new(place(mark), "a name is expected here")
                        .remedy("write name: value; a name is a text"));
                }
            };
            if object.contains_key(&name) {
                let message = format!("{name:?} is given twice");
                return Err(DataError::new(place(mark), message).remedy("take one of them out"));
            }
            let (event, mark) = self.expect()?;
            let (value, inner) = self.value(event, mark, depth + 1)?;
            size.add(inner);
            size.bytes += name.len() as u64;
            object.insert(name, value);
        }
    }

    fn alias(&mut self, anchor: usize, mark: Marker) -> Result<(Json, Size), DataError> {
        let Some((value, size)) = self.anchors.get(&anchor) else {
            return Err(DataError::new(
                place(mark),
                "the alias names a value that is not complete",
            )
            .remedy("write the value out"));
        };
        let (aliased, size) = (&mut self.aliased, *size);
        aliased.add(size);
        bound(aliased, mark)?;
        Ok((value.clone(), size))
    }
}

fn bound(aliased: &Size, mark: Marker) -> Result<(), DataError> {
    let message = if aliased.values > MAX_ALIASED {
        format!("aliases repeat more than {MAX_ALIASED} values")
    } else if aliased.bytes > MAX_ROW {
        format!("aliases repeat more than {} MiB", MAX_ROW >> 20)
    } else {
        return Ok(());
    };
    Err(DataError::new(place(mark), message).remedy("write the values out"))
}

/// A scalar without quotes.
fn plain(text: &str, place: FilePlace) -> Result<Json, DataError> {
    Ok(match text {
        "" | "~" | "null" | "Null" | "NULL" => Json::Null,
        "true" | "True" | "TRUE" => true.into(),
        "false" | "False" | "FALSE" => false.into(),
        _ => match number(text) {
            Some(Ok(number)) => Json::Number(number),
            Some(Err(())) => return Err(no_number(place, text)),
            None => text.into(),
        },
    })
}

/// A number of the core schema; an error if no database keeps it.
fn number(text: &str) -> Option<Result<Number, ()>> {
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    if [".inf", ".Inf", ".INF"].contains(&unsigned) || [".nan", ".NaN", ".NAN"].contains(&text) {
        return Some(Err(()));
    }
    let based = |prefix, base| {
        let digits = text.strip_prefix(prefix)?;
        let is_number = digits.chars().all(|digit| digit.is_digit(base));
        i64::from_str_radix(digits, base).ok().filter(|_| is_number)
    };
    if let Some(number) = based("0x", 16).or_else(|| based("0o", 8)) {
        return Some(Ok(number.into()));
    }
    if !unsigned.starts_with(|first: char| first.is_ascii_digit() || first == '.')
        || !unsigned.contains(|letter: char| letter.is_ascii_digit())
        || !unsigned
            .bytes()
            .all(|byte| byte.is_ascii_digit() || b".eE+-".contains(&byte))
    {
        return None;
    }
    // Zeros in front belong to a code, such as that of a town.
    let mut digits = unsigned.bytes();
    if digits.next() == Some(b'0') && digits.next().is_some_and(|next| next.is_ascii_digit()) {
        return None;
    }
    if let Ok(integer) = text.parse::<i64>() {
        return Some(Ok(integer.into()));
    }
    if unsigned.bytes().all(|byte| byte.is_ascii_digit()) {
        return Some(Err(()));
    }
    let real = text.parse::<f64>().ok()?;
    Some(Number::from_f64(real).ok_or(()))
}
