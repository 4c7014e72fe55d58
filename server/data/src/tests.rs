//! Each format, and what is wrong with files.

use std::fmt::Write as _;

use expect_test::{Expect, expect};
use proptest::prelude::*;

use crate::{FieldValue, Format, Inference, NameParts, ReadError, RowName, field_line, read};

/// The rows of a file, one a line, or what is wrong with it.
fn shown(format: Format, bytes: &[u8]) -> String {
    let mut out = String::new();
    let mut inference = Inference::default();
    let outcome = read(format, bytes, Some(&stem()), &mut |row| {
        inference.add(row);
        let place = match (row.place.line, row.place.row) {
            (Some(line), _) => format!("line {line}"),
            (_, row) => format!("row {}", row.unwrap_or(0)),
        };
        let _ = write!(out, "{place}:");
        for (name, value) in row.names.iter().zip(row.values) {
            match value {
                FieldValue::Null => {}
                value => drop(write!(out, " {name}={value:?}")),
            }
        }
        out.push('\n');
        Ok(())
    });
    match outcome {
        Ok(digest) => {
            for column in inference.columns() {
                let kind = column
                    .kind
                    .map_or("-".to_owned(), |kind| format!("{kind:?}"));
                let key = if column.is_key { " key" } else { "" };
                let _ = write!(out, "[{} {kind}{key}]", column.name);
            }
            let _ = writeln!(out, " {} rows", digest.rows);
        }
        Err(ReadError::Data(error)) => {
            let _ = writeln!(out, "{error}");
            if let Some(remedy) = error.remedy {
                let _ = writeln!(out, "  {remedy}");
            }
        }
        Err(ReadError::Stopped) => out.push_str("stopped\n"),
    }
    out
}

fn stem() -> RowName {
    RowName::of("stem", NameParts::default())
}

fn check(format: Format, text: &str, expected: &Expect) {
    expected.assert_eq(&shown(format, text.as_bytes()));
}

fn error(format: Format, bytes: &[u8]) -> String {
    let shown = shown(format, bytes);
    let skip = shown
        .lines()
        .filter(|line| !line.starts_with("line 1:") || !line.contains('='));
    skip.collect::<Vec<_>>().join("\n")
}

#[test]
fn csv_has_names_types_and_quotes() {
    check(
        Format::Csv,
        "\u{feff}id,Country Name,rate,since,code,on\r\n1,\"a, \"\"b\"\"\nc\",1.5,2026-01-31,007,true\r\n2,,2,2024-02-29,010,false\r\n",
        &expect![[r#"
            line 2: id=Plain("1") country_name=Plain("a, \"b\"\nc") rate=Plain("1.5") since=Plain("2026-01-31") code=Plain("007") on=Plain("true")
            line 4: id=Plain("2") rate=Plain("2") since=Plain("2024-02-29") code=Plain("010") on=Plain("false")
            [id Integer key][country_name Text][rate Real][since Date][code Text][on Boolean] 2 rows
        "#]],
    );
    check(
        Format::Tsv,
        "a\tb\nx\ty",
        &expect![[r#"
        line 2: a=Plain("x") b=Plain("y")
        [a Text][b Text] 1 rows
    "#]],
    );
    for empty in ["", "\n", "a,b", "a,b\n"] {
        assert!(
            shown(Format::Csv, empty.as_bytes()).ends_with(" 0 rows\n"),
            "{empty:?}"
        );
    }
}

#[test]
fn what_is_wrong_with_a_csv_file_is_said_with_its_line() {
    for (bytes, expected) in [
        (
            &b"a,b\n1\n"[..],
            "line 2: the row has 1 fields, and there are 2 columns",
        ),
        (
            b"a,b\n1,2,3\n",
            "line 2: the row has 3 fields, and there are 2 columns",
        ),
        (
            b"a\n1\n\"x\n2\n",
            "line 3: a quote is opened here and never closed",
        ),
        (b"a\n\"x", "line 2: a quote is opened here and never closed"),
        (b"a,a\n1,2\n", "line 1: the column \"a\" is there twice"),
        (b"a,A\n1,2\n", "line 1: the column \"A\" is there twice"),
        (
            b"a b,a_b\n1,2\n",
            "line 1: the columns \"a b\" and \"a_b\" are both named a_b",
        ),
        (
            b"a,b\n\"x\ny\",1\n1,\"12\" pipe\"\n",
            "line 4: there is text behind a closing quote",
        ),
        (
            b"a,b\n1,12\" pipe\n2,\"x\"\n",
            "line 2: there is a quote within a field without quotes",
        ),
        (
            b"a,b\n1,x\ry\n",
            "line 2: there is a line break within a field without quotes",
        ),
        (b"a,,b\n", "line 1: the name of column 2 is empty"),
        (b"a\n\xff\n", "line 2: the file is not UTF-8"),
        (b"a,b\n\xc3,\xa4\n", "line 2: the file is not UTF-8"),
        (
            b"a\nx\0y\n",
            "line 2: the value of \"column 1\" has a character of code zero",
        ),
        (b"\xff\xfea\0", "line 1: the file is UTF-16"),
    ] {
        let said = error(Format::Csv, bytes);
        assert!(said.contains(expected), "{bytes:?}: {said}");
        assert!(said.lines().count() >= 2, "no remedy: {said}");
    }
    let mut wide = vec!["c"; 501].join(",");
    for at in 0..501 {
        wide = wide.replacen('c', &format!("d{at}"), 1);
    }
    assert!(error(Format::Csv, wide.as_bytes()).contains("more than 500 columns"));
}

#[test]
fn a_line_of_a_zero_byte_does_not_end_a_csv_file() {
    for text in [
        "a\n1\n\0\n2\n",
        "a\n1\n\0",
        "a\n1\n\0\r",
        "a\n1\n\0\r\n",
        "a\n\n\n\0\n",
        "\u{feff}a\n1\n\0\n",
        "\u{feff}a\n1\n\0",
        "a,b\n1,2\n,\0\n3,4\n",
        "a,b\n1,2\n,\0",
        "a,b\n1,2\n\0,\n",
        "\0\na\n",
        "\0",
    ] {
        let said = error(Format::Csv, text.as_bytes());
        assert!(
            said.contains("code zero") || said.contains("closed"),
            "{text:?}: {said}"
        );
    }
}

#[test]
fn a_quote_without_an_end_costs_bounded_memory() {
    let mut bytes = b"a\n\"".to_vec();
    bytes.resize(20 << 20, b'x');
    let said = error(Format::Csv, &bytes);
    assert!(
        said.contains("line 2: a row has more than 16 MiB"),
        "{said}"
    );
    let mut bytes = b"[{\"a\":\"".to_vec();
    bytes.resize(20 << 20, b'x');
    let said = error(Format::Json, &bytes);
    assert!(said.contains("a row has more than 16 MiB"), "{said}");
    let mut bytes = b"<r><a>".to_vec();
    bytes.resize(20 << 20, b'x');
    let said = error(Format::Xml, &bytes);
    assert!(said.contains("a row has more than 16 MiB"), "{said}");
    // Many rows together may be larger.
    let row = format!("{{\"a\":\"{}\"}}\n", "x".repeat(1 << 20));
    let many = row.repeat(20);
    assert!(shown(Format::Ndjson, many.as_bytes()).ends_with(" 20 rows\n"));
    let array = format!("[{}]", vec![row.trim_end(); 20].join(",\n"));
    assert!(shown(Format::Json, array.as_bytes()).ends_with(" 20 rows\n"));
}

#[test]
fn json_is_an_array_an_object_or_lines() {
    check(
        Format::Json,
        " \n[{\"id\": 1, \"a\": null, \"b\": [1, {\"c\": 2}], \"d\": \"2026-01-31T10:00:00Z\"},\n {\"id\": 2.5, \"e\": true}]",
        &expect![[r#"
            row 1: id=Integer(1) b=Json(Array [Number(1), Object {"c": Number(2)}]) d=Text("2026-01-31T10:00:00Z")
            row 2: id=Real(2.5) e=Boolean(true)
            [id Real][a -][b Json][d Moment][e Boolean] 2 rows
        "#]],
    );
    check(
        Format::Json,
        "{\"a\": 1}",
        &expect![[r#"
        line 1: slug=Text("stem") a=Integer(1)
        [slug Text key][a Integer] 1 rows
    "#]],
    );
    check(
        Format::Ndjson,
        "{\"a\": 1}\n\n{\"a\": \"x\"}",
        &expect![[r#"
        line 1: a=Integer(1)
        line 3: a=Text("x")
        [a Text] 2 rows
    "#]],
    );
    for (text, expected) in [
        (
            "[{\"a\": 1}, {\"a\": }]",
            "line 1, column 18: a value is expected here",
        ),
        (
            "\n\n[{\"a\": 1,\n \"a\": 2}]",
            "line 4, column 8: \"a\" is given twice",
        ),
        ("[{\"a\": {\"b\": 1, \"b\": 2}}]", "\"b\" is given twice"),
        ("[1]", "a row is no object"),
        ("[{\"a\": 1}", "the file ends within a value"),
        ("[{\"a\": 1}] x", "there is more behind the end"),
        ("7", "the file is neither an array of objects nor an object"),
        ("", "the file is neither an array of objects nor an object"),
        (
            "[{\"a\": \"\\u0000\"}]",
            "row 1: the value of \"a\" has a character of code zero",
        ),
        ("[{\"a\": 1e999}]", "a number is too large"),
        ("[{\"a\": 1, \"A\": 2}]", "\"A\" is given twice"),
        (
            "[{\"a\": nope}]",
            "line 1, column 9: a value is expected here",
        ),
        ("[{a: 1}]", "a name stands without quotes"),
        ("[{\"a\": 1,}]", "a comma stands behind the last value"),
        ("[{\"a\" 1}]", "there is no : behind a name"),
        ("[{\"a\": 1 \"b\": 2}]", "there is no , between two values"),
        ("[{\"a\": \"\\x\"}]", "a \\ in a text"),
    ] {
        let said = error(Format::Json, text.as_bytes());
        assert!(said.contains(expected), "{text}: {said}");
    }
    assert!(error(Format::Json, b"[{\"a\": \"\xff\"}]").contains("save it as UTF-8"));
    assert!(error(Format::Ndjson, b"{}\n{\"a\"\n").contains("line 2"));
}

#[test]
fn deep_nesting_is_refused_in_each_format() {
    let deep = |open: &str, close: &str| format!("{}1{}", open.repeat(5_000), close.repeat(5_000));
    for (format, text) in [
        (Format::Json, format!("[{{\"a\": {}}}]", deep("[", "]"))),
        (
            Format::Json,
            format!("[{{\"a\": {}}}]", deep("{\"b\":", "}")),
        ),
        (Format::Ndjson, format!("{{\"a\": {}}}", deep("[", "]"))),
        (Format::Yaml, format!("a: {}", deep("[", "]"))),
        (Format::Toml, format!("a = {}", deep("[", "]"))),
        (
            Format::Xml,
            format!("<r><a>{}</a></r>", deep("<b>", "</b>")),
        ),
    ] {
        let said = error(format, text.as_bytes());
        assert!(
            said.contains("deep") || said.contains("recursion"),
            "{format:?}: {said}"
        );
    }
}

#[test]
fn toml_is_an_array_of_tables_or_a_table() {
    check(
        Format::Toml,
        "[[rate]]\nid = 1\nname = \"a\"\n\n[[rate]]\nid = 2\nday = 2026-01-31\n",
        &expect![[r#"
            row 1: id=Integer(1) name=Text("a")
            row 2: id=Integer(2) day=Text("2026-01-31")
            [id Integer key][name Text][day Date] 2 rows
        "#]],
    );
    check(
        Format::Toml,
        "title = \"Menu\"\ntags = [\"a\"]\n",
        &expect![[r#"
        line 1: slug=Text("stem") tags=Json(Array [String("a")]) title=Text("Menu")
        [slug Text key][tags Json][title Text] 1 rows
    "#]],
    );
    assert!(error(Format::Toml, b"a = 1\na = 2\n").contains("line 2"));
    assert!(error(Format::Toml, b"a = inf\n").contains("inf is a number that no database keeps"));
}

#[test]
fn yaml_is_a_list_or_a_map() {
    check(
        Format::Yaml,
        "- id: 1\n  name: &n \"007\"\n  on: true\n- id: 0x10\n  name: *n\n  big: 1.5\n  list: [1, two, ~]\n",
        &expect![[r#"
            line 1: id=Integer(1) name=Text("007") on=Boolean(true)
            line 4: id=Integer(16) name=Text("007") big=Real(1.5) list=Json(Array [Number(1), String("two"), Null])
            [id Integer key][name Text][on Boolean][big Real][list Json] 2 rows
        "#]],
    );
    check(
        Format::Yaml,
        "---\ntitle: Hello: no\n",
        &expect![[r#"
        line 2, column 13: mapping values are not allowed in this context
          put a text with a colon and a blank in it into quotes: title: "Tea: a start"
    "#]],
    );
    for (text, expected) in [
        ("a: 1\na: 2\n", "line 2, column 1: \"a\" is given twice"),
        ("- 1\n", "a row is a map of names and values"),
        ("a: 1\n---\nb: 2\n", "a second document begins here"),
        ("a: .inf\n", ".inf is a number that no database keeps"),
        ("a: *b\n", "line 1"),
        ("a: &x [*x]\n", "line 1"),
        ("? [1]\n: 2\n", "a name is expected here"),
    ] {
        let said = error(Format::Yaml, text.as_bytes());
        assert!(said.contains(expected), "{text}: {said}");
    }
    assert!(shown(Format::Yaml, b"").ends_with(" 0 rows\n"));
}

#[test]
fn no_digit_of_a_number_is_lost() {
    let read = |format: Format, value: &str| match format {
        Format::Yaml => shown(format, format!("a: {value}\n").as_bytes()),
        _ => shown(format, format!("{{\"a\": {value}}}\n").as_bytes()),
    };
    for format in [Format::Yaml, Format::Json, Format::Ndjson] {
        let found = read(format, "-9223372036854775808");
        assert!(found.contains("Integer(-9223372036854775808)"), "{found}");
        let found = read(format, "9223372036854775808");
        assert!(found.contains("9223372036854775808"), "{found}");
        assert!(found.contains("put it in quotes"), "{found}");
        let found = read(format, "[18446744073709551615]");
        assert!(found.contains("18446744073709551615"), "{found}");
    }
    for nested in [
        "-123123123123123123123123123123",
        "18446744073709551616",
        "{\"b\": 1e30}",
    ] {
        let found = read(Format::Ndjson, &format!("[{nested}]"));
        assert!(
            found.contains("last digits are lost\n  put it in quotes"),
            "{found}"
        );
    }
    for code in ["01234", "-007", "00", "00.5"] {
        let found = read(Format::Yaml, code);
        assert!(found.contains(&format!("Text({code:?})")), "{found}");
    }
    for (number, expected) in [
        ("0", "Integer(0)"),
        ("-0", "Integer(0)"),
        ("0.5", "Real(0.5)"),
        ("0o17", "Integer(15)"),
    ] {
        let found = read(Format::Yaml, number);
        assert!(found.contains(expected), "{number}: {found}");
    }
    assert!(read(Format::Yaml, "123456789012345678901234567890").contains("in quotes"));
}

#[test]
fn a_bomb_of_aliases_is_refused() {
    let mut text = "a0: &a0 [1, 2, 3, 4, 5, 6, 7, 8, 9]\n".to_owned();
    for level in 1..30 {
        let before = vec![format!("*a{}", level - 1); 9].join(", ");
        let _ = writeln!(text, "a{level}: &a{level} [{before}]");
    }
    let said = error(Format::Yaml, text.as_bytes());
    assert!(
        said.contains("aliases repeat more than 100000 values"),
        "{said}"
    );
    // Few values of much text.
    let long = "x".repeat(64 << 10);
    let text = format!("a: &a {long}\nb: [{}]\n", vec!["*a"; 90_000].join(", "));
    let said = error(Format::Yaml, text.as_bytes());
    assert!(said.contains("aliases repeat more than 16 MiB"), "{said}");
    let text = format!(
        "a: &a\n  ? {long}\n  : 1\nb: [{}]\n",
        vec!["*a"; 1_000].join(", ")
    );
    let said = error(Format::Yaml, text.as_bytes());
    assert!(said.contains("aliases repeat more than 16 MiB"), "{said}");
    let anchors: String = (0..60).map(|level| format!("&a{level} [")).collect();
    let text = format!("a: {anchors}{}{}", "y".repeat(1 << 20), "]".repeat(60));
    let said = error(Format::Yaml, text.as_bytes());
    assert!(said.contains("aliases repeat more than 16 MiB"), "{said}");
}

#[test]
fn xml_rows_are_the_children_of_the_root() {
    check(
        Format::Xml,
        "<?xml version=\"1.0\"?>\n<book>\n <entry id=\"1\"><name>A &amp; B</name><phone>1</phone><phone>2</phone></entry>\n <entry id=\"2\"><address kind=\"home\"><town>X</town></address><empty/><![CDATA[<t>]]></entry>\n</book>\n",
        &expect![[r#"
            line 3: id=Plain("1") name=Plain("A & B") phone=Json(Array [String("1"), String("2")])
            line 4: id=Plain("2") address=Json(Object {"kind": String("home"), "town": String("X")}) text=Plain("<t>")
            [id Integer key][name Text][phone Json][address Json][empty -][text Text] 2 rows
        "#]],
    );
    for (text, expected) in [
        ("<r><a></r>", "line 1, column"),
        ("<r><a>", "<a> has no end"),
        ("<r><a/><b/></r>", "the rows are <a>, and this is <b>"),
        ("<r>x</r>", "there is text outside of the rows"),
        ("<r><a>&x;</a></r>", "the entity &x; is not known"),
        (
            "<!DOCTYPE r [<!ENTITY x \"y\">]><r><a>&x;</a></r>",
            "declares its own entities",
        ),
        ("<r/><s/>", "a second root begins here"),
        ("", "there is no element"),
        ("<r><a b=\"1\" b=\"2\"/></r>", "an attribute of <a>"),
    ] {
        let said = error(Format::Xml, text.as_bytes());
        assert!(said.contains(expected), "{text}: {said}");
    }
    assert!(error(Format::Xml, b"<r><a>\xff</a></r>").contains("UTF-8"));
}

#[test]
fn the_rows_of_xml_may_be_elements_of_a_name() {
    let read_as = |text: &str, element: &str| {
        let mut found = Vec::new();
        let name = stem().with_element(Some(element));
        let outcome = read(Format::Xml, text.as_bytes(), Some(&name), &mut |row| {
            found.push(format!("{:?}", row.values));
            Ok(())
        });
        (
            outcome
                .map_err(|error| format!("{error:?}"))
                .map(|digest| digest.rows),
            found,
        )
    };
    let atom = "<feed xmlns=\"http://www.w3.org/2005/Atom\"><title>x</title> y <author><name>z</name></author>\
                <entry><id>1</id></entry><entry><id>2</id></entry><link/></feed>";
    let (rows, found) = read_as(atom, "entry");
    assert_eq!((rows, &*found[1]), (Ok(2), "[Plain(\"2\")]"));
    let opml =
        "<opml><head/><body><outline text=\"a\"><outline text=\"b\"/></outline></body></opml>";
    let (rows, found) = read_as(opml, "outline");
    assert_eq!(rows, Ok(1));
    assert!(
        found[0].contains("Plain(\"a\")") && found[0].contains("\"b\""),
        "{found:?}"
    );
    let (rows, _) = read_as(atom, "entri");
    assert!(
        rows.unwrap_err()
            .contains("there is no <entri> in the document")
    );
    assert_eq!(read_as("<feed/>", "entry").0, Ok(0));
}

#[test]
fn markdown_is_front_matter_and_a_body() {
    check(
        Format::Markdown,
        "---\ntitle: Hello\ndate: 2026-01-31\ntags: [a, b]\n---\n\n# Text\n",
        &expect![[r##"
            line 1: slug=Text("stem") title=Text("Hello") date=Text("2026-01-31") tags=Json(Array [String("a"), String("b")]) body=Text("# Text\n")
            [slug Text key][title Text][date Date][tags Json][body Text] 1 rows
        "##]],
    );
    check(
        Format::Markdown,
        "+++\ntitle = \"A\"\nslug = \"own\"\n+++\nText",
        &expect![[r#"
        line 1: slug=Text("own") title=Text("A") body=Text("Text")
        [slug Text key][title Text][body Text] 1 rows
    "#]],
    );
    check(
        Format::Markdown,
        "Only text",
        &expect![[r#"
        line 1: slug=Text("stem") body=Text("Only text")
        [slug Text key][body Text] 1 rows
    "#]],
    );
    assert!(error(Format::Markdown, b"---\na: 1\n").contains("the front matter has no end"));
    assert!(error(Format::Markdown, b"---\na: 1\na: 2\n---\n").contains("line 3, column 1"));
    assert!(error(Format::Markdown, b"---\nbody: x\n---\n").contains("has a body"));
    let colon = error(Format::Markdown, b"---\ntitle: No: colon\n---\n");
    assert!(colon.contains("into quotes: title:"), "{colon}");
}

#[test]
fn empty_lines_in_front_of_front_matter_are_passed_over() {
    check(
        Format::Markdown,
        "\u{feff}\n  \r\n---\r\ntitle: Hello\r\n---\r\nText",
        &expect![[r#"
            line 1: slug=Text("stem") title=Text("Hello") body=Text("Text")
            [slug Text key][title Text][body Text] 1 rows
        "#]],
    );
    check(
        Format::Markdown,
        "\n---\nText",
        &expect![[r#"
            line 1: slug=Text("stem") body=Text("\n---\nText")
            [slug Text key][body Text] 1 rows
        "#]],
    );
    assert!(error(Format::Markdown, b"\n\n---\na: 1\na: 2\n---\n").contains("line 5, column 1"));
    let text = "\n---\ntitle: A\n  Draft: x\n\"Is Draft\": yes\n---\nday: x\n";
    let line = |column| field_line(Format::Markdown, text.as_bytes(), column);
    assert_eq!((line("title"), line("is_draft")), (Some(3), Some(5)));
    assert_eq!((line("draft"), line("day")), (None, None));
}

#[test]
fn endings_are_known_in_either_case() {
    assert_eq!(Format::of_name("a/b.MD"), Some(("a/b", Format::Markdown)));
    assert_eq!(Format::of_name("b.markdown"), Some(("b", Format::Markdown)));
    assert_eq!(Format::of_name("b.jpg"), None);
    assert_eq!(Format::of_name("b.txt"), None);
    assert_eq!(Format::of_named("a/b.MDX"), Some(("a/b", Format::Markdown)));
    assert_eq!(Format::of_named("stops.txt"), Some(("stops", Format::Csv)));
    assert_eq!(Format::of_named("b.jpg"), None);
}

#[test]
fn dates_and_times_of_each_habit_are_found_as_such() {
    for (values, expected) in [
        (&["2026-01-31", "2024-02-29"][..], "Date"),
        (
            &["2013-05-06 02:12:52 +0200", "2013-05-06 00:12 UTC"],
            "Moment",
        ),
        (&["2026-01-01 00:00:00", "2026-01-31"], "Moment"),
        (
            &["2026-01-31", "2026-01-31T10:00", "2026-1-3 1:00:00"],
            "Moment",
        ),
        (&["2026-01-31", "2026-02-30"], "Text"),
        (&["2026-1-3"], "Text"),
        (&["Jan 5, 2026"], "Text"),
    ] {
        for format in [Format::Csv, Format::Yaml] {
            let (head, item) = match format {
                Format::Csv => ("at\n", ""),
                _ => ("", "- at: "),
            };
            let lines = values.iter().map(|value| format!("{item}{value}\n"));
            let mut text = head.to_owned();
            text.extend(lines);
            let found = shown(format, text.replace("Jan 5, ", "Jan 5 ").as_bytes());
            assert!(found.contains(&format!("[at {expected}")), "{found}");
        }
    }
}

/// The columns of the one row of a file.
fn row(format: Format, text: &str, path: &str) -> String {
    row_of(format, text, &RowName::of(path, NameParts::default()))
}

fn row_of(format: Format, text: &str, name: &RowName) -> String {
    let mut said = String::new();
    read(format, text.as_bytes(), Some(name), &mut |row| {
        let values = row.names.iter().zip(row.values);
        let values: Vec<String> = values
            .map(|(name, value)| match value {
                FieldValue::Text(text) => format!("{name}={text}"),
                other => format!("{name}={other:?}"),
            })
            .collect();
        said = values.join(" ");
        Ok(())
    })
    .unwrap();
    said
}

#[test]
fn the_title_of_a_text_may_be_its_first_heading() {
    for (text, expected) in [
        ("# A title\n\nText", "title=A title body=Text"),
        ("\n\n#\tA `b` ##\r\n\r\nText", "title=A `b` body=Text"),
        ("# C#", "title=C# body="),
        ("---\ndate: x\n---\n\n# A\nText", "title=A date=x body=Text"),
        ("---\ntitle: B\n---\n# A\nText", "title=B body=# A\nText"),
        ("---\nTitle: B\n---\n# A", "title=B body=# A"),
        ("#A\nText", "body=#A\nText"),
        ("#\nText", "body=#\nText"),
        ("# #\nText", "body=# #\nText"),
        ("## A\nText", "body=## A\nText"),
        ("Text\n# A", "body=Text\n# A"),
    ] {
        let said = row(Format::Markdown, text, "a");
        assert_eq!(said, format!("slug=a {expected}"), "{text:?}");
    }
}

#[test]
fn the_path_of_a_file_is_its_slug_and_its_folder() {
    for (format, text, path, expected) in [
        (Format::Markdown, "x", "a", "slug=a body=x"),
        (Format::Markdown, "x", "b/c/a", "folder=b/c slug=a body=x"),
        (
            Format::Markdown,
            "---\nfolder: d\nslug: e\n---\nx",
            "b/a",
            "slug=e folder=d body=x",
        ),
        (Format::Json, "{\"n\": \"x\"}", "b/a", "folder=b slug=a n=x"),
        (Format::Json, "[{\"n\": \"x\"}]", "b/a", "n=x"),
        (Format::Yaml, "n: x", "b/a", "folder=b slug=a n=x"),
        (Format::Toml, "n = \"x\"", "b/a", "folder=b slug=a n=x"),
        (Format::Csv, "n\nx\n", "b/a", "n=Plain(\"x\")"),
    ] {
        assert_eq!(row(format, text, path), expected, "{text:?}");
    }
}

#[test]
fn the_name_of_a_file_may_be_a_date_and_a_slug_or_that_of_its_folder() {
    for (date, folder, text, path, expected) in [
        (
            true,
            false,
            "x",
            "2014-05-06-hello",
            "slug=hello date=2014-05-06 body=x",
        ),
        (
            false,
            true,
            "x",
            "2014-05-06-hello",
            "slug=2014-05-06-hello body=x",
        ),
        (
            true,
            false,
            "x",
            "a/2014-05-06-hello",
            "folder=a slug=hello date=2014-05-06 body=x",
        ),
        (
            true,
            false,
            "x",
            "2014-05-36-hello",
            "slug=2014-05-36-hello body=x",
        ),
        (true, false, "x", "2014-05-06-", "slug=2014-05-06- body=x"),
        (
            true,
            true,
            "x",
            "2014-05-06-hello/index",
            "slug=hello date=2014-05-06 body=x",
        ),
        (
            false,
            true,
            "x",
            "a/hello/index",
            "folder=a slug=hello body=x",
        ),
        (false, true, "x", "index", "slug=index body=x"),
        (
            true,
            true,
            "---\nDate: 2015-01-01\nSlug: own\n---\nx",
            "2014-05-06-hello",
            "slug=own date=2015-01-01 body=x",
        ),
    ] {
        let name = RowName::of(
            path,
            NameParts {
                date,
                folder,
                address: true,
            },
        );
        assert_eq!(row_of(Format::Markdown, text, &name), expected, "{path}");
    }
    let text = "---\npath: \"blog/2014/05/06/hello\"\n---\nx";
    let parts = NameParts {
        address: true,
        ..NameParts::default()
    };
    let said = row_of(Format::Markdown, text, &RowName::of("own", parts));
    assert_eq!(
        said,
        "slug=own date=2014-05-06 path=blog/2014/05/06/hello body=x"
    );
    assert!(!row(Format::Markdown, text, "own").contains("date="));
}

#[test]
fn keys_of_front_matter_may_be_in_any_case() {
    let text = "---\nSlug: own\nTITLE: T\nDate: d\n---\nx";
    assert_eq!(
        row(Format::Markdown, text, "a"),
        "slug=own title=T date=d body=x"
    );
    let said = error(Format::Markdown, b"---\nSlug: a\nslug: b\n---\n");
    assert!(said.contains("\"slug\" is given twice"), "{said}");
    assert!(error(Format::Markdown, b"---\nBody: x\n---\n").contains("has a body"));
    let rows = shown(Format::Ndjson, b"{\"Id\": 1}\n{\"id\": 2}\n");
    assert!(
        rows.contains("line 1: id=Integer(1)\nline 2: id=Integer(2)"),
        "{rows}"
    );
}

#[test]
fn a_csv_file_is_divided_as_it_is() {
    for text in [
        "id;name\n1;\"a;b\"\n",
        "id\tname\n1\ta;b\n",
        "sep=;\nid;name\n1;\"a;b\"\n",
        "sep=\t\r\nid\tname\r\n1\ta;b\r\n",
        "sep=|\nid|name\n1|a;b\n",
        "id,name\n1,a;b\n",
        "id;\"name\"\r1;\"a;b\"\r",
        "\"id\",\"name\"\n1,a;b",
    ] {
        let found = shown(Format::Csv, text.as_bytes());
        let expected = "id=Plain(\"1\") name=Plain(\"a;b\")\n[id Integer key][name Text] 1 rows";
        assert!(found.contains(expected), "{text:?}: {found}");
    }
    let names = shown(Format::Csv, b"id,\"a;b;c;d\"\n1,x\n");
    assert!(
        names.contains("id=Plain(\"1\") a_b_c_d=Plain(\"x\")"),
        "{names}"
    );
    // Tabs are all that divide, and a quote in the middle is one.
    let inches = shown(Format::Tsv, b"a\tb\n1,5\t12\" pipe\n");
    assert!(
        inches.contains("a=Plain(\"1,5\") b=Plain(\"12\\\" pipe\")"),
        "{inches}"
    );
}

#[test]
fn yaml_that_other_programs_take_is_taken() {
    for (text, expected) in [
        ("x: [\n  'a'\n]\n", "Json(Array [String(\"a\")])"),
        (
            "x: [\na, \"b\nc\",\n{d: 1\n}\n]\n",
            "[String(\"a\"), String(\"b c\"), Object",
        ),
        ("x: \"a\nb\"\n", "Text(\"a b\")"),
        ("x: 'it''s\n[b'\n", "Text(\"it's [b\")"),
        ("x: {\n\"a\": 1,\n\"b\": [2]\n}\n", "Object"),
        ("t: |\n  \"[\n  x\nx: [\n'a'\n]\n", "String(\"a\")"),
        ("- x: [\n'a'\n]\n", "String(\"a\")"),
    ] {
        let found = shown(Format::Yaml, text.as_bytes());
        assert!(found.contains(expected), "{text}: {found}");
    }
    let said = error(Format::Yaml, b"x: [\n'a'\ny: 1\n");
    assert!(said.contains("line "), "{said}");
}

#[test]
fn the_hash_is_that_of_the_whole_file() {
    let hash = |bytes: &[u8]| {
        read(Format::Csv, bytes, None, &mut |_| Ok(()))
            .unwrap()
            .hash
    };
    assert_eq!(hash(b"a\n1\n"), hash(b"a\n1\n"));
    assert_ne!(hash(b"a\n1\n"), hash(b"a\n1\n\n"));
    assert_ne!(hash(b"\xef\xbb\xbfa\n1\n"), hash(b"a\n1\n"));
}

proptest! {
    /// No bytes make any reader panic, and what is read once is read alike twice.
    #[test]
    fn any_bytes_are_rows_or_an_error(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        all_formats(&bytes);
    }

    /// Reads texts of the letters that have a meaning in some format.
    #[test]
    fn any_text_is_rows_or_an_error(text in "[\\[\\]{}<>&;:,\"'a-c0-2 \n\t#*!=+./~|%@-]{0,80}") {
        all_formats(text.as_bytes());
        let fenced = format!("---\n{text}\n---\nbody");
        all_formats(fenced.as_bytes());
    }

    /// Reads rows that were written as CSV as they were.
    #[test]
    fn csv_is_read_as_it_was_written(rows in prop::collection::vec(prop::collection::vec("[a\",\n\r ä]{0,5}", 2), 0..20)) {
        let mut writer = csv::Writer::from_writer(Vec::new());
        writer.write_record(["x", "y"]).unwrap();
        for row in &rows {
            writer.write_record(row).unwrap();
        }
        let bytes = writer.into_inner().unwrap();
        let mut found = Vec::new();
        read(Format::Csv, &bytes[..], None, &mut |row| {
            let text = |value: &FieldValue<'_>| match value {
                FieldValue::Plain(text) => text.to_string(),
                _ => String::new(),
            };
            found.push(row.values.iter().map(text).collect::<Vec<_>>());
            Ok(())
        })
        .unwrap();
        prop_assert_eq!(found, rows);
    }
}

fn all_formats(bytes: &[u8]) {
    for format in [
        Format::Csv,
        Format::Tsv,
        Format::Json,
        Format::Ndjson,
        Format::Toml,
        Format::Yaml,
        Format::Xml,
        Format::Markdown,
    ] {
        assert_eq!(shown(format, bytes), shown(format, bytes));
    }
}

/// The text of the first block of a language in the manual.
fn block(language: &str) -> &'static str {
    const MANUAL: &str = include_str!("../../../docs/reference/data.md");
    let start = format!("```{language}\n");
    let from = MANUAL.find(&start).map(|at| at + start.len()).unwrap();
    let length = MANUAL[from..].find("```").unwrap();
    &MANUAL[from..from + length]
}

#[test]
fn the_examples_of_the_manual_are_the_same_rows() {
    let rows = |format: Format, language: &str| {
        let mut rows = Vec::new();
        read(format, block(language).as_bytes(), None, &mut |row| {
            let mut fields: Vec<(String, String)> = Vec::new();
            for (name, value) in row.names.iter().zip(row.values) {
                let text = match value {
                    FieldValue::Null => continue,
                    FieldValue::Integer(integer) => integer.to_string(),
                    FieldValue::Text(text) | FieldValue::Plain(text) => text.to_string(),
                    FieldValue::Json(json) => json.to_string(),
                    other => panic!("{other:?}"),
                };
                fields.push((name.clone(), text));
            }
            fields.sort();
            rows.push(fields);
            Ok(())
        })
        .unwrap();
        rows
    };
    let expected = rows(Format::Csv, "csv");
    assert_eq!(expected.len(), 2);
    for (format, language) in [
        (Format::Json, "json"),
        (Format::Ndjson, "ndjson"),
        (Format::Toml, "toml"),
        (Format::Yaml, "yaml"),
        (Format::Xml, "xml"),
    ] {
        assert_eq!(rows(format, language), expected, "{language}");
    }
    let post = shown(Format::Markdown, block("markdown").as_bytes());
    assert!(
        post.contains("title=Text(\"Hello\")") && post.contains("The **body**."),
        "{post}"
    );
}
