//! By streaming and by tree.

use std::path::Path;

use lab_addressbook::{BookError, BookView, stream, tree, xslt};

use crate::{VIEWS, data};

/// Both ways, which must agree.
fn both(path: &Path, view: BookView<'_>) -> Option<String> {
    let stream = stream::render(path, "/base", view).unwrap();
    let tree = tree::render(path, "/base", view).unwrap();
    assert!(stream == tree, "{view:?}: {stream:?} is not {tree:?}");
    stream
}

fn written(xml: &str) -> tempfile::NamedTempFile {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), xml).unwrap();
    file
}

#[test]
fn streaming_and_tree_give_the_same_pages() {
    let (_folder, files) = data();
    for (file, path) in &files {
        for view in VIEWS {
            both(path, view);
        }
        let list = both(path, BookView::List).unwrap();
        assert_eq!(list.matches("<li>").count(), file.entries);
        let count = format!("<p class=\"count\">{} found</p></main>", file.entries);
        assert!(list.ends_with(&count));
    }
}

#[test]
fn a_search_finds_names_and_an_entry_is_found_by_its_id() {
    let (_folder, files) = data();
    for (_, path) in &files {
        let found = both(path, BookView::Search("wILLow")).unwrap();
        assert!(found.matches("Willow</a>").count() >= 1, "{found}");
        assert_eq!(
            found.matches("<li>").count(),
            found.matches("Willow</a>").count()
        );
        let nothing = both(path, BookView::Search("no such name")).unwrap();
        assert_eq!(nothing, "<main><p class=\"count\">0 found</p></main>");
        let entry = both(path, BookView::Entry("17")).unwrap();
        assert_eq!(entry.matches("<h2>").count(), 1);
        assert_eq!(both(path, BookView::Entry("100000")), None);
    }
}

/// Everything that an XML file may do to the same content.
pub(crate) const AWKWARD: &str = r#"<?xml version="1.0" encoding="UTF-8"?>
<?hint for another program?>
<!-- before --><addressbook extra="1" model='complex'>
  <countries><country id="k1">A &amp; B</country><country id="k1">second</country><country id="k2"/></countries>
  <cities>
    <city id="c1" country="k1"><name>C<!-- within -->ity</name><code>&#49;&#x32;</code><unknown>x</unknown></city>
    <city id="c2" country="nowhere"><name/></city>
    <village id="c3"><name>no city</name></village>
  </cities>
  <organisations><organisation id="o1" city="c1"><name>O<![CDATA[<&>]]>O</name></organisation></organisations>
  <groups><group id="g1">G1</group><group id="g2"></group><group id="g3">G3</group></groups>
  <entry id="1">
    <first>A<b>n<i>n</i></b>a</first><first>second</first>
    <last>&lt;script&gt;alert("&quot;'")&lt;/script&gt;</last>
    <street>own
street</street>
    <address city="c1"><street>s</street><code>ignored</code><city>ignored</city></address>
    <address kind="" city="c2"/>
    <address kind="a&#10;b&quot;&amp;"><city>x</city><city>y</city></address>
    <address/>
    <work organisation="o1"><title>T</title></work><work/>
    <phone kind="p">+1 2  3</phone><phone/><phone></phone>
    <email>"&gt;&lt;b&gt;@x&#9;y&#13;</email>
    <member group="g2"/><member group="g1"/><member group="gone"/><member/><member group="g3"/>
    <birthday/><birthday>2000-01-01</birthday>
    <note>]]&gt; &amp;amp; ünïcödé 😀</note>
  </entry>
  <entry id='a"&amp;&lt;b'><name><first>N</first><last>L</last></name><note></note></entry>
  <entry/>
  <entry id="1"><last>second with this id</last></entry>
  <deep><entry id="9"><last>not an entry</last></entry></deep>
</addressbook>
<!-- after -->
"#;

#[test]
fn awkward_files_give_the_same_pages() {
    let file = written(AWKWARD);
    let list = both(file.path(), BookView::List).unwrap();
    for part in [
        "<a href=\"/base/1\">Anna &lt;script&gt;alert(\"\"'\")&lt;/script&gt;</a>",
        "<a href=\"/base/a&quot;&amp;&lt;b\">N L</a>",
        "<p class=\"address\">s<br/>12 City, A &amp; B</p>",
        "<p class=\"address\"><br/> </p>",
        "<p class=\"work\">T, O&lt;&amp;&gt;O</p>",
        "<p class=\"groups\">G1, G3</p>",
        "<a href=\"mailto:&quot;&gt;&lt;b&gt;@x&#9;y&#13;\">",
        "<p class=\"count\">4 found</p>",
    ] {
        assert!(list.contains(part), "{part} is not in {list}");
    }
    for view in [
        BookView::Entry("1"),
        BookView::Entry("a\"&<b"),
        BookView::Entry(""),
        BookView::Search("<SCRIPT>"),
    ] {
        assert!(both(file.path(), view).is_some(), "{view:?}");
    }
    for empty in [
        "\u{feff}<addressbook/>",
        "<addressbook/>",
        "<other><entry id='1'/></other>",
    ] {
        let list = both(written(empty).path(), BookView::List);
        assert_eq!(list.unwrap(), "<main><p class=\"count\">0 found</p></main>");
    }
}

#[test]
fn broken_files_are_errors_with_file_and_line() {
    for (xml, line) in [
        ("<addressbook>\n<entry>\n</addressbook>", 3),
        (
            "<addressbook>\n\n<entry>&unknown;<first>&unknown;</first></entry></addressbook>",
            3,
        ),
        ("<addressbook>\n<entry id='1'", 2),
        ("<!DOCTYPE a [<!ENTITY b 'c'>]>\n<addressbook/>", 1),
        ("", 1),
        ("<addressbook/>\n<addressbook/>", 2),
        ("<addressbook/>\ntext", 2),
        ("<addressbook>\n<entry id='1' id='2'/></addressbook>", 2),
    ] {
        let file = written(xml);
        let said = |result: Result<Option<String>, BookError>| match result {
            Err(error) => error.to_string(),
            Ok(page) => panic!("{xml} gives {page:?}"),
        };
        let name = file.path().display().to_string();
        let streamed = said(stream::render(file.path(), "", BookView::List));
        assert!(
            streamed.starts_with(&format!("{name}:{line}: ")),
            "{streamed}"
        );
        // A tree that is not complete has no place where it is wrong.
        let tree = said(tree::render(file.path(), "", BookView::List));
        assert!(tree.starts_with(&format!("{name}:")), "{tree}");
        // libxml2 gives the place of the last of its errors.
        if xslt::is_available().is_ok() {
            let error = said(xslt::render(file.path(), "", BookView::List));
            assert!(error.starts_with(&format!("{name}:")), "{error}");
        }
    }
    let missing = Path::new("no/such/file.xml");
    for error in [
        stream::render(missing, "", BookView::List).unwrap_err(),
        tree::render(missing, "", BookView::List).unwrap_err(),
    ] {
        assert!(
            error.to_string().starts_with("no/such/file.xml: "),
            "{error}"
        );
    }
}

#[test]
fn a_reader_that_streams_says_where_a_list_comes_too_late() {
    let file = written("<addressbook>\n<entry/>\n<cities><city/></cities></addressbook>");
    let error = stream::render(file.path(), "", BookView::List).unwrap_err();
    assert!(
        error
            .to_string()
            .contains(":3: <cities> stands behind <entry>; the order is countries, "),
        "{error}"
    );
    let deep = format!("<addressbook>{}", "<a>".repeat(100_000));
    let deep = written(&deep);
    let error = stream::render(deep.path(), "", BookView::List).unwrap_err();
    assert!(tree::render(deep.path(), "", BookView::List).is_err());
    assert!(
        error.to_string().contains("nested deeper than 64"),
        "{error}"
    );
}
