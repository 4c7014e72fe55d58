//! Messages as the manual has them, whole, cut and mutilated.

use super::*;

/// Builds a message.
#[derive(Default)]
struct Bytes(Vec<u8>);

impl Bytes {
    fn tag(tag: u8) -> Self {
        Self(vec![tag])
    }

    fn u8(mut self, value: u8) -> Self {
        self.0.push(value);
        self
    }

    fn u16(mut self, value: u16) -> Self {
        self.0.extend(value.to_be_bytes());
        self
    }

    fn u32(mut self, value: u32) -> Self {
        self.0.extend(value.to_be_bytes());
        self
    }

    fn u64(mut self, value: u64) -> Self {
        self.0.extend(value.to_be_bytes());
        self
    }

    fn text(mut self, text: &str) -> Self {
        self.0.extend(text.as_bytes());
        self.u8(0)
    }

    fn field(self, text: &str) -> Self {
        let mut with = self.u8(b't').u32(u32::try_from(text.len()).unwrap());
        with.0.extend(text.as_bytes());
        with
    }
}

fn relation() -> Vec<u8> {
    let head = Bytes::tag(b'R').u32(16_400).text("public").text("article");
    let first = head.u8(b'd').u16(2).u8(1).text("id").u32(23).u32(u32::MAX);
    first.u8(0).text("title").u32(25).u32(u32::MAX).0
}

/// One message of each kind, in an order in which they may come outside a stream block.
fn messages() -> Vec<Vec<u8>> {
    vec![
        Bytes::tag(b'B').u64(100).u64(0).u32(733).0,
        Bytes::tag(b'O').u64(1).text("origin").0,
        Bytes::tag(b'Y').u32(1).text("public").text("mood").0,
        relation(),
        Bytes::tag(b'I')
            .u32(16_400)
            .u8(b'N')
            .u16(2)
            .field("1")
            .u8(b'n')
            .0,
        Bytes::tag(b'U')
            .u32(16_400)
            .u8(b'N')
            .u16(2)
            .field("1")
            .u8(b'u')
            .0,
        Bytes::tag(b'U')
            .u32(16_400)
            .u8(b'K')
            .u16(2)
            .field("1")
            .u8(b'n')
            .u8(b'N')
            .u16(2)
            .field("2")
            .u8(b'u')
            .0,
        Bytes::tag(b'U')
            .u32(16_400)
            .u8(b'O')
            .u16(1)
            .field("1")
            .u8(b'N')
            .u16(1)
            .field("2")
            .0,
        Bytes::tag(b'D').u32(16_400).u8(b'K').u16(1).field("1").0,
        Bytes::tag(b'D').u32(16_400).u8(b'O').u16(1).field("1").0,
        Bytes::tag(b'T').u32(2).u8(3).u32(16_400).u32(16_401).0,
        Bytes::tag(b'M')
            .u8(1)
            .u64(90)
            .text("millpond")
            .u32(2)
            .u8(b'h')
            .u8(b'i')
            .0,
        Bytes::tag(b'C').u8(0).u64(100).u64(110).u64(0).0,
        Bytes::tag(b'c').u32(733).u8(0).u64(100).u64(120).u64(0).0,
        Bytes::tag(b'A').u32(733).u32(734).0,
        Bytes::tag(b'E').0,
    ]
}

#[test]
fn each_kind_is_understood() {
    let messages = messages();
    let mut decoder = Decoder::default();
    let events: Vec<Event<'_>> = messages
        .iter()
        .map(|message| decoder.decode(message).unwrap())
        .collect();
    let one = Field::Text(b"1");
    assert_eq!(events[0], Event::Begin { transaction: 733 });
    let Event::Relation(16_400, relation) = &events[3] else {
        panic!("{:?}", events[3]);
    };
    assert_eq!(relation.columns[0].name, "id");
    assert!(relation.columns[0].key && !relation.columns[1].key);
    assert_eq!(
        events[5],
        Event::Update {
            relation: 16_400,
            old: OldRow::Same,
            new: vec![one, Field::Unchanged],
        }
    );
    assert_eq!(
        events[8],
        Event::Delete {
            relation: 16_400,
            old: OldRow::Key(vec![one]),
        }
    );
    assert_eq!(
        events[10],
        Event::Truncate {
            relations: vec![16_400, 16_401],
        }
    );
    assert_eq!(
        events[11],
        Event::Message {
            transactional: true,
            prefix: "millpond",
            content: b"hi",
        }
    );
    assert_eq!(events[12], Event::Commit { end: 110 });
    assert_eq!(
        events[14],
        Event::StreamAbort {
            transaction: 733,
            part: 734,
        }
    );
}

#[test]
fn within_a_stream_block_changes_carry_a_transaction() {
    let mut decoder = Decoder::default();
    let start = Bytes::tag(b'S').u32(733).u8(1).0;
    let started = Event::StreamStart { transaction: 733 };
    assert_eq!(decoder.decode(&start), Ok(started));
    let insert = Bytes::tag(b'I').u32(734).u32(16_400);
    let insert = insert.u8(b'N').u16(1).field("1").0;
    let inserted = Event::Insert {
        relation: 16_400,
        new: vec![Field::Text(b"1")],
    };
    assert_eq!(decoder.decode(&insert), Ok(inserted.clone()));
    assert_eq!(decoder.decode(b"E"), Ok(Event::StreamStop));
    assert_ne!(decoder.decode(&insert), Ok(inserted));
}

#[test]
fn what_is_cut_short_or_too_long_is_malformed() {
    for message in messages() {
        // Origins and types are skipped as a whole.
        let skipped = matches!(message[0], b'O' | b'Y');
        for cut in 0..message.len() {
            let cut_short = Decoder::default().decode(&message[..cut]).is_err();
            assert!(cut_short || (skipped && cut > 0), "{message:?} at {cut}");
        }
        let longer = [&message[..], &[0]].concat();
        assert!(skipped || Decoder::default().decode(&longer).is_err());
    }
}

#[test]
fn garbage_never_panics() {
    let mut random = lab_testkit::Random::new(1);
    let messages = messages();
    for _ in 0..200_000 {
        let mut message = random.pick(&messages).clone();
        for _ in 0..=random.below(3) {
            let at = random.index(message.len());
            message[at] = random.byte();
        }
        message.truncate(1 + random.index(message.len() + 8));
        let mut decoder = Decoder {
            in_stream: random.below(2) == 0,
        };
        let _ = decoder.decode(&message);
    }
}
