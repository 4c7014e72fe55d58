//! What `check` and the compiler say of lines about files.

use super::*;

#[test]
fn check_knows_the_lines() {
    let with = |line: &str, sql: &str| {
        let rows = if sql.contains("returning") {
            "one"
        } else {
            "exec"
        };
        let form = format!("{line}\n-- name: a :{rows}\n{sql};\n-- redirect: /\n");
        problems(&[("pages/f.post.sql", &form)])
    };
    let insert = "insert into article (title) values (:picture)";
    for (line, sql, expected) in [
        ("-- file: picture into uploads", insert, ""),
        (
            "-- file: picture into ../x",
            insert,
            "pages/f.post.sql:1:1: `../x` is no folder for files",
        ),
        (
            "-- file: picture into uploads max 5MB typs (image/png)",
            insert,
            "did you mean `types`?",
        ),
        (
            "-- file: picture into uploads types (image/jpg)",
            insert,
            "did you mean `image/jpeg`?",
        ),
        (
            "-- file: picture into uploads",
            "insert into article (title, body) values (:picture, :picture_typ)",
            "did you mean `:picture_type`?",
        ),
        (
            "-- file: picture into uploads",
            "insert into article (title) values ('x')",
            "nothing uses the parameter `picture`",
        ),
        (
            "-- param: picture_name text\n-- file: picture into uploads",
            insert,
            "parameter `picture_name` is declared twice",
        ),
        (
            "-- file: picture into uploads\n-- delete-file: :picture",
            insert,
            "`:picture` names no column",
        ),
        (
            "-- file: picture into uploads\n-- delete-file: picture.name",
            insert,
            "there is no query `picture` here",
        ),
        (
            "-- file: picture into uploads\n-- delete-file: a.body",
            insert,
            "query `a` has no column `body`",
        ),
        (
            "-- file: picture into uploads\n-- delete-file: a.bodi",
            "insert into article (title) values (:picture) returning body",
            "did you mean `a.body`?",
        ),
        (
            "-- fil: picture into uploads",
            insert,
            "did you mean `-- file: picture into uploads`?",
        ),
        (
            "-- delete-fille: old.a",
            insert,
            "did you mean `-- delete-file: old.a`?",
        ),
    ] {
        let found = with(line, sql);
        match expected {
            "" => assert_eq!(found, ""),
            _ => assert!(found.contains(expected), "{line}: {found}"),
        }
    }
    let dir = support::folder(&[
        (
            "pages/f.post.sql",
            "-- file: picture into uploads/a\n-- name: a :exec\ninsert into article (title) values (:picture);\n-- redirect: /\n",
        ),
        (
            "pages/f.html",
            "<form method=post>\n<input type=file name=picture></form>",
        ),
        ("uploads", "a file"),
    ]);
    let config = millpond_site::Config::read(dir.path()).unwrap();
    let report = millpond_site::check(dir.path(), &config).unwrap();
    let notes: Vec<String> = report.notes.iter().map(ToString::to_string).collect();
    let has = |text: &str| notes.iter().any(|note| note.starts_with(text));
    assert!(
        has("pages/f.post.sql:1:1: `uploads` is a file"),
        "{notes:?}"
    );
    assert!(has("pages/f.html:1:1: this form has a file"), "{notes:?}");
    let page = problems(&[(
        "pages/p.sql",
        "-- file: a into uploads\n-- name: a :one\nselect :a as x\n",
    )]);
    assert!(
        page.contains("pages/p.sql:1:1: only a form takes"),
        "{page}"
    );
}
