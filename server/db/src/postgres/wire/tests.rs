//! Answers that are cut, disordered, too long or nonsense, from a server that a script plays.

use bytes::BytesMut;
use proptest::prelude::*;
use tokio::io::AsyncWriteExt as _;
use tokio::net::UnixStream;
use tokio::runtime::{Builder, Runtime};

use super::answers::{Answers, StatementRows};
use super::batch::{BatchError, Item, exchange};
use super::stream::{Io, Stream};
use crate::Value;
use crate::postgres::run::RunError;
use crate::postgres::server_error::DatabaseError;
use crate::postgres::shape::Shape;

pub(super) fn runtime() -> Runtime {
    Builder::new_current_thread().enable_all().build().unwrap()
}

pub(super) fn message(tag: u8, body: &[u8]) -> Vec<u8> {
    let length = u32::try_from(body.len() + 4).unwrap().to_be_bytes();
    [&[tag][..], &length, body].concat()
}

fn row(values: &[Option<&str>]) -> Vec<u8> {
    let mut body = u16::try_from(values.len()).unwrap().to_be_bytes().to_vec();
    for value in values {
        match value {
            None => body.extend_from_slice(&[0xff; 4]),
            Some(text) => {
                body.extend_from_slice(&u32::try_from(text.len()).unwrap().to_be_bytes());
                body.extend_from_slice(text.as_bytes());
            }
        }
    }
    message(b'D', &body)
}

fn description(columns: &[(&str, u32)]) -> Vec<u8> {
    let mut body = u16::try_from(columns.len()).unwrap().to_be_bytes().to_vec();
    for (name, kind) in columns {
        body.extend_from_slice(name.as_bytes());
        body.extend_from_slice(&[0; 7]);
        body.extend_from_slice(&kind.to_be_bytes());
        body.extend_from_slice(&[0; 8]);
    }
    message(b'T', &body)
}

const TEXT: u32 = 25;

pub(super) fn refusal(code: &str) -> Vec<u8> {
    message(b'E', format!("SERROR\0C{code}\0Mno\0\0").as_bytes())
}

pub(super) fn ready() -> Vec<u8> {
    message(b'Z', b"I")
}

fn ended() -> Vec<u8> {
    message(b'C', b"SELECT 1\0")
}

/// A batch of two: one that the connection forgets another for and meets first, and one that it
/// knows.
struct Script {
    shapes: [Shape; 2],
}

impl Script {
    fn new() -> Self {
        Self {
            shapes: [
                Shape::of_texts("select 1", &["a", "b"]),
                Shape::of_texts("select 2", &["c"]),
            ],
        }
    }

    /// The good answer.
    fn messages() -> Vec<Vec<u8>> {
        vec![
            message(b'3', b""),
            message(b'1', b""),
            message(b'2', b""),
            description(&[("a", TEXT), ("b", TEXT)]),
            row(&[Some("one"), None]),
            row(&[Some(""), Some("two")]),
            ended(),
            message(b'2', b""),
            ended(),
            ready(),
        ]
    }

    fn tables() -> Vec<StatementRows> {
        vec![
            vec![
                vec![Value::from("one"), Value::Null],
                vec![Value::from(""), Value::from("two")],
            ],
            vec![],
        ]
    }

    /// Reads an answer of which the first bytes have been read already. Then the server is gone.
    fn play(&self, read: &[u8], rest: &[u8]) -> Result<Vec<StatementRows>, BatchError> {
        let items = self
            .shapes
            .each_ref()
            .map(|shape| Item { shape, params: &[] });
        let fresh = [self.shapes[0].id];
        let mut answers = Answers::new(&items, &fresh, 1);
        runtime().block_on(async {
            let (ours, mut theirs) = UnixStream::pair().unwrap();
            theirs.write_all(rest).await.unwrap();
            drop(theirs);
            let mut io = Io::new(Stream::File(ours));
            io.input.extend_from_slice(read);
            exchange(&mut io, &mut BytesMut::new(), &mut answers).await
        })?;
        answers.outcome()
    }
}

fn is_gone(wrong: &BatchError) -> bool {
    matches!(
        wrong,
        BatchError::Failed(RunError::Database(DatabaseError::Gone(_)))
    )
}

#[test]
fn an_answer_is_understood_however_it_is_cut() {
    let script = Script::new();
    let answer = Script::messages().concat();
    for cut in 0..=answer.len() {
        let outcome = script.play(&answer[..cut], &answer[cut..]);
        assert_eq!(outcome.as_ref(), Ok(&Script::tables()), "{cut}");
    }
}

#[test]
fn an_answer_that_ends_early_is_a_connection_that_is_lost() {
    let script = Script::new();
    let answer = Script::messages().concat();
    for cut in 0..answer.len() {
        let wrong = script.play(&[], &answer[..cut]).unwrap_err();
        assert!(is_gone(&wrong), "{cut}: {wrong:?}");
    }
}

#[test]
fn an_answer_in_another_order_is_none() {
    let script = Script::new();
    let messages = Script::messages();
    for left_out in 0..messages.len() {
        // But a row may always be one less.
        let is_row = messages[left_out][0] == b'D';
        let mut some = messages.clone();
        some.remove(left_out);
        let outcome = script.play(&[], &some.concat());
        assert_eq!(outcome.is_ok(), is_row, "without {left_out}: {outcome:?}");
    }
    for twice in 0..messages.len() {
        let is_row_or_last = matches!(messages[twice][0], b'D' | b'Z');
        let mut some = messages.clone();
        some.insert(twice, messages[twice].clone());
        let outcome = script.play(&[], &some.concat());
        assert_eq!(
            outcome.is_ok(),
            is_row_or_last,
            "{twice} twice: {outcome:?}"
        );
    }
}

#[test]
fn unsolicited_messages_may_come_anywhere() {
    let script = Script::new();
    let messages = Script::messages();
    for place in 0..messages.len() {
        for aside in [
            message(b'N', b"SWARNING\0Mmind\0\0"),
            message(b'S', b"TimeZone\0UTC\0"),
            message(b'A', b"\0\0\0\x01channel\0\0"),
        ] {
            let mut some = messages.clone();
            some.insert(place, aside);
            assert_eq!(script.play(&[], &some.concat()), Ok(Script::tables()));
        }
    }
}

#[test]
fn the_first_error_is_reported_and_the_rest_is_skipped() {
    let script = Script::new();
    let messages = Script::messages();
    let at = |place: usize, error: Vec<u8>| {
        let mut some = messages[..place].to_vec();
        some.extend([error, ready()]);
        script.play(&[], &some.concat()).unwrap_err()
    };
    // It may fit the schema of now if it is described anew, also one whose types were fixed when it
    // was parsed.
    assert!(matches!(at(1, refusal("42601")), BatchError::Unparsed(_)));
    assert!(matches!(at(2, refusal("42883")), BatchError::Unparsed(_)));
    // A lock timeout says nothing about the statement.
    assert!(matches!(at(1, refusal("57014")), BatchError::Failed(_)));
    for place in [2, 3, 4, 5, 6, 7, 8, 9] {
        match at(place, refusal("22012")) {
            BatchError::Failed(RunError::Database(DatabaseError::Server(error))) => {
                assert_eq!(error.code, "22012")
            }
            other => panic!("{place}: {other:?}"),
        }
    }
    // What is parsed behind an error was not told to begin with.
    let more = [
        &messages[..2],
        &[
            refusal("22012"),
            message(b'1', b""),
            message(b'1', b""),
            ready(),
        ],
    ];
    let outcome = script.play(&[], &more.concat().concat());
    assert!(matches!(outcome, Err(BatchError::Failed(_))), "{outcome:?}");
    // The server is going: nothing more is waited for.
    match script.play(&[], &refusal("57P01")) {
        Err(BatchError::Failed(RunError::Database(trouble))) => assert!(trouble.is_lost()),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_value_that_cannot_be_read_costs_no_connection() {
    let script = Script::new();
    let mut messages = Script::messages();
    let place = messages[4].len() - "one".len() - 4;
    messages[4][place] = 0xff;
    let outcome = script.play(&[], &messages.concat());
    assert_eq!(outcome, Err(BatchError::Failed(RunError::Unreadable(0))));
}

#[test]
fn columns_that_are_not_those_of_the_description_are_noticed() {
    let script = Script::new();
    for columns in [
        &[("a", TEXT)][..],
        &[("a", TEXT), ("b", 23)],
        &[("a", TEXT), ("x", TEXT)],
        &[("a", TEXT), ("b", TEXT), ("c", TEXT)],
        &[],
    ] {
        let mut messages = Script::messages();
        messages[3] = description(columns);
        // The rows are those of the new columns; they are not looked at.
        messages[4] = row(&[Some("x"); 5]);
        assert_eq!(
            script.play(&[], &messages.concat()),
            Err(BatchError::Changed)
        );
    }
    let mut messages = Script::messages();
    messages[3] = message(b'n', b"");
    assert_eq!(
        script.play(&[], &messages.concat()),
        Err(BatchError::Changed)
    );
}

#[test]
fn what_is_no_query_is_refused_and_so_is_a_transaction_that_lasts() {
    let script = Script::new();
    for (word, status) in [
        (&b"COMMIT\0"[..], b"I"),
        (b"BEGIN\0", b"T"),
        (b"CALL\0", b"I"),
    ] {
        let mut messages = Script::messages();
        messages[6] = message(b'C', word);
        messages[9] = message(b'Z', status);
        assert_eq!(
            script.play(&[], &messages.concat()),
            Err(BatchError::NoQuery)
        );
    }
    let mut messages = Script::messages();
    messages[9] = message(b'Z', b"T");
    assert_eq!(
        script.play(&[], &messages.concat()),
        Err(BatchError::NoQuery)
    );
}

#[test]
fn a_length_is_looked_at_before_there_is_room_for_it() {
    let script = Script::new();
    let begun = Script::messages()[..4].concat();
    let outcome = |tag: u8, length: u32| {
        let head = [&begun[..], &[tag], &length.to_be_bytes()].concat();
        script.play(&[], &head).unwrap_err()
    };
    let huge = 0x7fff_ffff;
    assert_eq!(outcome(b'D', huge), BatchError::Failed(RunError::TooLarge));
    assert!(is_gone(&outcome(b'C', huge)));
    assert!(is_gone(&outcome(b'D', 3)));
    assert!(is_gone(&outcome(b'E', 0)));
    // A length that might be one makes room only for what comes.
    assert!(is_gone(&outcome(b'D', 60 << 20)));
    // Rows whose values are longer than they are.
    for body in [
        &b""[..],
        b"\0\x02",
        b"\0\x02\0\0\0\x09a",
        b"\0\x01\0\0\0\0",
        b"\0\x02\0\0\0\0\0\0\0\0x",
    ] {
        let answer = [&begun[..], &message(b'D', body)].concat();
        assert!(is_gone(&script.play(&[], &answer).unwrap_err()), "{body:?}");
    }
}

proptest! {
    #[test]
    fn nonsense_is_an_error_and_never_a_panic(
        places in proptest::collection::vec((any::<proptest::sample::Index>(), any::<u8>()), 1..6),
    ) {
        let mut answer = Script::messages().concat();
        for (place, byte) in places {
            let place = place.index(answer.len());
            answer[place] = byte;
        }
        let _ = Script::new().play(&[], &answer);
    }
}
