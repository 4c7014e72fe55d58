//! Tokens of both dialects.

use proptest::prelude::*;

use super::{Dialect, Lexer, TokenKind, TokenKind::*, place_of_name, statements};

const BOTH: [Dialect; 2] = [Dialect::Sqlite, Dialect::Postgres];

/// The tokens without blanks, and whether all are closed.
fn lex(sql: &str, dialect: Dialect) -> (Vec<(TokenKind, &str)>, bool) {
    let tokens: Vec<_> = Lexer::new(sql, dialect).collect();
    let is_closed = tokens.iter().all(|token| token.is_closed);
    let seen = tokens.iter().filter(|token| token.kind != Blank);
    let seen = seen.map(|token| (token.kind, token.text));
    (seen.collect(), is_closed)
}

#[track_caller]
fn check(dialect: Dialect, sql: &str, expected: &[(TokenKind, &str)]) {
    assert_eq!(lex(sql, dialect), (expected.to_vec(), true), "{sql}");
}

#[test]
fn what_both_databases_read_alike() {
    for dialect in BOTH {
        check(
            dialect,
            "select a$1 , 'it''s' as \"a \"\"b\" from été -- :c",
            &[
                (Word, "select"),
                (Word, "a$1"),
                (Sign, ","),
                (Text, "'it''s'"),
                (Word, "as"),
                (Name, "\"a \"\"b\""),
                (Word, "from"),
                (Word, "été"),
                (Comment, "-- :c"),
            ],
        );
        check(
            dialect,
            ":a::b:=:c/**/;x'00'",
            &[
                (Parameter, ":a"),
                (Sign, "::"),
                (Word, "b"),
                (Sign, ":="),
                (Parameter, ":c"),
                (Comment, "/**/"),
                (Semicolon, ";"),
                (Text, "x'00'"),
            ],
        );
        check(
            dialect,
            "1 1.5e-3 .5 0x1F a.b 1..2 1e+x",
            &[
                (Number, "1"),
                (Number, "1.5e-3"),
                (Number, ".5"),
                (Number, "0x1F"),
                (Word, "a"),
                (Sign, "."),
                (Word, "b"),
                (Number, "1"),
                (Sign, "."),
                (Number, ".2"),
                (Number, "1e"),
                (Sign, "+"),
                (Word, "x"),
            ],
        );
    }
}

#[test]
fn what_only_sqlite_reads_so() {
    check(
        Dialect::Sqlite,
        "[a '] `b``` @c $d :1 ? ?2 E'\\' $",
        &[
            (Name, "[a ']"),
            (Name, "`b```"),
            (Parameter, "@c"),
            (Parameter, "$d"),
            (Parameter, ":1"),
            (Positional, "?"),
            (Positional, "?2"),
            (Word, "E"),
            (Text, "'\\'"),
            (Sign, "$"),
        ],
    );
    check(
        Dialect::Sqlite,
        "/* /* */ a '\u{feff}'\n'b'",
        &[
            (Comment, "/* /* */"),
            (Word, "a"),
            (Text, "'\u{feff}'"),
            (Text, "'b'"),
        ],
    );
}

#[test]
fn what_only_postgresql_reads_so() {
    check(
        Dialect::Postgres,
        "/* /* */ */ E'\\'' U&'\\' u&\"a\" N'x' $$'$$ $f$ $$ $f$ $1 @c a[1]",
        &[
            (Comment, "/* /* */ */"),
            (Text, "E'\\''"),
            (Text, "U&'\\'"),
            (Name, "u&\"a\""),
            (Text, "N'x'"),
            (Text, "$$'$$"),
            (Text, "$f$ $$ $f$"),
            (Positional, "$1"),
            (Sign, "@"),
            (Word, "c"),
            (Word, "a"),
            (Sign, "["),
            (Number, "1"),
            (Sign, "]"),
        ],
    );
    // A string goes on in the next line, by the rule of its beginning.
    let sql = "e'a' -- it's\n 'b\\'' 'c' ? :1";
    check(
        Dialect::Postgres,
        sql,
        &[
            (Text, "e'a' -- it's\n 'b\\''"),
            (Text, "'c'"),
            (Sign, "?"),
            (Sign, ":"),
            (Number, "1"),
        ],
    );
}

#[test]
fn what_is_left_open_is_said_so_and_ends_with_the_text() {
    for open in ["'a", "\"a", "/* a", "'", "'''", "x'"] {
        for dialect in BOTH {
            let (tokens, is_closed) = lex(open, dialect);
            assert_eq!((tokens.len(), is_closed), (1, false), "{open}");
        }
    }
    for open in ["$$a", "$a$b$", "E'\\'", "/* /* */", "u&\"", "'a'\n'"] {
        let (tokens, is_closed) = lex(open, Dialect::Postgres);
        assert_eq!((tokens.len(), is_closed), (1, false), "{open}");
    }
    for open in ["`a", "[a", "/*/"] {
        assert!(!lex(open, Dialect::Sqlite).1, "{open}");
    }
}

#[test]
fn the_content_of_a_token_has_no_quotes() {
    let sql = "\"a\"\"b\" `c``` [d] 'it''s' e 'open";
    let tokens = Lexer::new(sql, Dialect::Sqlite).significant();
    let contents: Vec<_> = tokens.iter().map(|token| token.content()).collect();
    assert_eq!(contents, ["a\"b", "c`", "d", "it's", "e", "'open"]);
}

#[test]
fn a_name_is_found_outside_strings_and_comments() {
    let sql = "select 'nix', nixx -- nix\n from \"Nix\"";
    for dialect in BOTH {
        assert_eq!(place_of_name(sql, dialect, "nix"), sql.find("\"Nix"));
        assert_eq!(place_of_name(sql, dialect, "none"), None);
    }
}

/// The tokens cover the text, and the statements lie in it, in order.
fn assert_covered(sql: &str) {
    for dialect in BOTH {
        let mut end = 0;
        for token in Lexer::new(sql, dialect) {
            assert_eq!(token.start, end, "{sql:?}");
            assert!(!token.text.is_empty(), "{sql:?}");
            end = token.end();
            let _ = token.content();
        }
        assert_eq!(end, sql.len(), "{sql:?}");
        let mut end = 0;
        for piece in statements(sql, dialect) {
            assert!(piece.start >= end, "{sql:?}");
            end = piece.start + piece.text.len();
            assert_eq!(&sql[piece.start..end], piece.text);
        }
    }
}

fn pieces() -> impl Strategy<Value = String> {
    let piece = prop::sample::select(vec![
        "'", "\"", "`", "[", "]", "(", ")", "$", "$a$", "$$", "--", "/*", "*/", "\n", "\r", " ",
        ";", ":", "::", ":=", "?", "@", "\\", "E'", "U&", "U&\"", "x'", "n'", ".", "1", "1e", "+",
        "0x", "a", "é", "\u{feff}", "create", "trigger", "begin", "atomic", "case", "end", "\0",
    ]);
    prop::collection::vec(piece, 0..40).prop_map(|pieces| pieces.concat())
}

proptest! {
    #[test]
    fn the_tokens_of_any_text_cover_it(sql in pieces(), any in ".*") {
        assert_covered(&sql);
        assert_covered(&any);
    }

    #[test]
    fn odd_bytes_are_no_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        assert_covered(&String::from_utf8_lossy(&bytes));
    }
}
