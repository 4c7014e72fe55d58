//! Header blocks of HTTP/2, held against a second reading of RFC 7541.

use lab_torture::Choices;

use crate::h2::hpack::encoder::push_field;
use crate::h2::hpack::huffman_codes::{CODE, END, LENGTHS};
use crate::h2::hpack::{FieldSink, HpackDecoder, static_table};

type FieldList = Vec<(Vec<u8>, Vec<u8>)>;

/// Takes all fields.
#[derive(Default)]
struct Collected(FieldList);

impl FieldSink for Collected {
    fn field(&mut self, name: &[u8], value: &[u8]) {
        self.0.push((name.to_vec(), value.to_vec()));
    }
}

/// The second reading: slow, with a table that is a list.
struct SlowDecoder {
    /// The newest first.
    table: FieldList,
    limit: usize,
}

impl SlowDecoder {
    fn decode(&mut self, mut block: &[u8]) -> Option<FieldList> {
        let mut fields = FieldList::new();
        let mut may_resize = true;
        while let Some(&first) = block.first() {
            if first & 0xe0 == 0x20 {
                self.limit = integer(&mut block, 5).filter(|&limit| may_resize && limit <= 4096)?;
                self.evict();
                continue;
            }
            may_resize = false;
            if first >= 0x80 {
                let index = integer(&mut block, 7)?;
                fields.push(self.entry(index)?);
                continue;
            }
            let is_added = first >= 0x40;
            let index = integer(&mut block, if is_added { 6 } else { 4 })?;
            let name = match index {
                0 => string(&mut block)?,
                index => self.entry(index)?.0,
            };
            let field = (name, string(&mut block)?);
            if is_added {
                self.table.insert(0, field.clone());
                self.evict();
            }
            fields.push(field);
        }
        Some(fields)
    }

    fn entry(&self, index: usize) -> Option<(Vec<u8>, Vec<u8>)> {
        if let Some((name, value)) = static_table::entry(index) {
            return Some((name.into(), value.into()));
        }
        self.table.get(index.checked_sub(62)?).cloned()
    }

    fn evict(&mut self) {
        let size = |(name, value): &(Vec<u8>, Vec<u8>)| name.len() + value.len() + 32;
        while self.table.iter().map(size).sum::<usize>() > self.limit {
            self.table.pop();
        }
    }
}

fn integer(block: &mut &[u8], prefix: u32) -> Option<usize> {
    let (&first, mut rest) = block.split_first()?;
    let most = 2_u64.pow(prefix) - 1;
    let mut value = u64::from(first) & most;
    if value == most {
        for at in 0..4 {
            let (&byte, behind) = rest.split_first()?;
            rest = behind;
            value += u64::from(byte % 128) * 128_u64.pow(at);
            if byte < 128 {
                break;
            }
            // More than any length that is accepted.
            if at == 3 {
                return None;
            }
        }
    }
    *block = rest;
    usize::try_from(value).ok()
}

fn string(block: &mut &[u8]) -> Option<Vec<u8>> {
    let is_coded = block.first()? & 0x80 != 0;
    let len = integer(block, 7)?;
    let (text, rest) = block.split_at_checked(len)?;
    *block = rest;
    if is_coded {
        return huffman(text);
    }
    Some(text.to_vec())
}

/// Bit by bit.
fn huffman(coded: &[u8]) -> Option<Vec<u8>> {
    let (mut text, mut code, mut len) = (Vec::new(), 0_u32, 0_u8);
    for bit in coded
        .iter()
        .flat_map(|byte| (0..8).rev().map(move |at| byte >> at & 1))
    {
        code = code << 1 | u32::from(bit);
        len += 1;
        let symbol = (0..=END).find(|&at| LENGTHS[at] == len && CODE.codes[at] == code);
        if let Some(symbol) = symbol {
            text.push(u8::try_from(symbol).ok()?);
            (code, len) = (0, 0);
        } else if len > 30 {
            return None;
        }
    }
    (len < 8 && code == 2_u32.pow(len.into()) - 1).then_some(text)
}

/// A block of pieces that are well-formed, most of the time.
fn write_block(choices: &mut Choices<'_>) -> Vec<u8> {
    let mut block = Vec::new();
    for _ in 0..choices.below(12) {
        match choices.below(8) {
            0 => block.extend(choices.bytes(8)),
            1 => block.push(0x20 | choices.byte() & 0x1f),
            2..=4 => block.push(0x80 | choices.byte()),
            5 => push_field(&mut block, &choices.bytes(20), &choices.bytes(40)),
            kind => {
                let prefix = if kind == 6 {
                    0x40 | choices.byte() & 0x3f
                } else {
                    0x40
                };
                block.push(prefix);
                for _ in 0..=usize::from(prefix == 0x40) {
                    let len = choices.byte() & 0x3f;
                    block.push(len);
                    block.extend((0..len).map(|_| choices.byte()));
                }
            }
        }
    }
    block
}

/// Several blocks of one connection.
#[test]
fn header_blocks() {
    bolero::check!(name = "header_blocks")
        .with_max_len(1024)
        .for_each(|engine: &[u8]| {
            let mut choices = Choices::of(engine);
            let mut decoder = HpackDecoder::new();
            let mut slow = SlowDecoder {
                table: FieldList::new(),
                limit: 4096,
            };
            let mut blocks: Vec<_> = (0..4).map(|_| write_block(&mut choices)).collect();
            blocks.push(engine.to_vec());
            // Some come again, perhaps at the same generation.
            for _ in 0..4 {
                blocks.push(blocks[choices.below(blocks.len())].clone());
            }
            let mut repeatable: Vec<(u64, Vec<u8>, FieldList)> = Vec::new();
            for block in blocks {
                let mut fields = Collected::default();
                let generation = decoder.generation();
                let decoded = decoder.decode(&block, 1 << 20, &mut Vec::new(), &mut fields);
                let expected = slow.decode(&block);
                assert_eq!(decoded.ok().map(|()| &fields.0), expected.as_ref());
                assert!(decoder.memory() <= 5 * 4096);
                let Some(expected) = expected else {
                    break;
                };
                // The same block at the same generation is the same request.
                for (known, bytes, fields) in &repeatable {
                    assert!((*known, bytes) != (generation, &block) || *fields == expected);
                }
                if decoder.generation() == generation {
                    repeatable.push((generation, block, expected.clone()));
                }
                let mut own = Vec::new();
                for (name, value) in &expected {
                    push_field(&mut own, name, value);
                }
                let mut again = Collected::default();
                let read = HpackDecoder::new().decode(&own, 1 << 20, &mut Vec::new(), &mut again);
                assert!(read.is_ok() && again.0 == expected);
            }
        });
}
