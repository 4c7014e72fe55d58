//! A log in blocks of whole lines, decompressed.

use std::fs::File;
use std::io::{self, BufReader, Cursor, Read};
use std::path::Path;

use flate2::bufread::MultiGzDecoder;

use crate::entry::LONGEST;

/// Bytes that are read at once.
const BLOCK: usize = 1 << 20;

/// Reads a log from its first line to its last.
pub struct LogInput {
    source: Box<dyn Read + Send>,
    /// The beginning of a line whose end was not in the last block.
    begun: Vec<u8>,
    next_line: u64,
    next_number: u64,
    is_at_end: bool,
    error: Option<io::Error>,
}

/// Whole lines of a log.
#[derive(Default)]
pub struct LogBlock {
    bytes: Vec<u8>,
    first_line: u64,
    /// Place of the block in its log, from 0.
    pub number: u64,
}

impl LogInput {
    /// Opens a file, or standard input for `-`. Its first bytes say if it is compressed by gzip or
    /// zstd.
    ///
    /// # Errors
    /// The error of the operating system.
    pub fn open(path: &Path) -> io::Result<Self> {
        if path == Path::new("-") {
            Self::new(io::stdin())
        } else {
            Self::new(File::open(path)?)
        }
    }

    /// Reads from `source`, decompressed if its first bytes say so.
    ///
    /// # Errors
    /// Any error of the source.
    pub fn new(mut source: impl Read + Send + 'static) -> io::Result<Self> {
        let mut first = Vec::new();
        (&mut source).take(4).read_to_end(&mut first)?;
        let kind = first.clone();
        let all = Cursor::new(first).chain(source);
        let source: Box<dyn Read + Send> = if kind.starts_with(&[0x1f, 0x8b]) {
            Box::new(MultiGzDecoder::new(BufReader::with_capacity(1 << 16, all)))
        } else if kind.starts_with(&[0x28, 0xb5, 0x2f, 0xfd]) {
            Box::new(zstd::stream::read::Decoder::new(all)?)
        } else {
            Box::new(all)
        };
        Ok(Self {
            source,
            begun: Vec::new(),
            next_line: 1,
            next_number: 0,
            is_at_end: false,
            error: None,
        })
    }

    /// Puts the next lines into `block`; `false` at the end. Of a line that is longer than a block
    /// only the beginning is kept, which is damaged by its length.
    ///
    /// # Errors
    /// An error of the source, after all lines before it.
    pub fn next_block(&mut self, block: &mut LogBlock) -> io::Result<bool> {
        block.bytes.clear();
        block.bytes.append(&mut self.begun);
        loop {
            self.fill(&mut block.bytes);
            if let Some(end) = memchr::memrchr(b'\n', &block.bytes) {
                self.begun.extend_from_slice(&block.bytes[end + 1..]);
                block.bytes.truncate(end + 1);
                break;
            }
            if self.is_at_end {
                break;
            }
            // One line and no end of it: its beginning says enough.
            block.bytes.truncate(LONGEST + 1);
        }
        if block.bytes.is_empty() {
            return self.error.take().map_or(Ok(false), Err);
        }
        block.first_line = self.next_line;
        block.number = self.next_number;
        self.next_line += memchr::memchr_iter(b'\n', &block.bytes).count() as u64;
        self.next_number += 1;
        Ok(true)
    }

    /// Reads until there is a block.
    fn fill(&mut self, bytes: &mut Vec<u8>) {
        let missing = BLOCK.saturating_sub(bytes.len()) as u64;
        if self.is_at_end || missing == 0 {
            return;
        }
        match (&mut self.source).take(missing).read_to_end(bytes) {
            Ok(count) => {
                self.is_at_end = (count as u64) < missing;
                let new = bytes.len() - count;
                end_lines(&mut bytes[new.saturating_sub(1)..]);
            }
            Err(error) => {
                self.error = Some(error);
                self.is_at_end = true;
                // The last line was cut.
                bytes.truncate(memchr::memrchr(b'\n', bytes).map_or(0, |end| end + 1));
            }
        }
    }
}

/// Ends the lines by LF that end by CR alone: servers escape one within a line.
fn end_lines(bytes: &mut [u8]) {
    let mut at = 0;
    while let Some(found) = memchr::memchr(b'\r', &bytes[at..]) {
        at += found + 1;
        match bytes.get(at) {
            Some(b'\n') => {}
            Some(_) => bytes[at - 1] = b'\n',
            None => break,
        }
    }
}

impl LogBlock {
    /// The lines with their numbers in the log, from 1.
    pub fn lines(&self) -> impl Iterator<Item = (u64, &[u8])> {
        let ends = memchr::memchr_iter(b'\n', &self.bytes);
        let last = (!self.bytes.ends_with(b"\n")).then_some(self.bytes.len());
        let mut begin = 0;
        ends.chain(last)
            .zip(self.first_line..)
            .map(move |(end, number)| {
                let line = &self.bytes[begin..end];
                begin = end + 1;
                (number, line)
            })
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    /// The lines of a log, then the error at its end.
    fn read(bytes: &[u8]) -> (Vec<(u64, Vec<u8>)>, Option<io::ErrorKind>) {
        let mut input = LogInput::new(Cursor::new(bytes.to_vec())).unwrap();
        let (mut block, mut lines) = (LogBlock::default(), Vec::new());
        loop {
            match input.next_block(&mut block) {
                Ok(true) => {
                    lines.extend(block.lines().map(|(number, line)| (number, line.to_vec())))
                }
                Ok(false) => return (lines, None),
                Err(error) => return (lines, Some(error.kind())),
            }
        }
    }

    fn sample() -> Vec<u8> {
        (0..100_000)
            .flat_map(|n| format!("line {n} of the log\n").into_bytes())
            .collect()
    }

    #[test]
    fn every_line_comes_once_with_its_number() {
        let (lines, error) = read(&sample());
        assert_eq!((lines.len(), error), (100_000, None));
        for (n, (number, line)) in lines.iter().enumerate() {
            assert_eq!(
                (*number, line),
                (n as u64 + 1, &format!("line {n} of the log").into_bytes())
            );
        }
        let three = [(1, b"a".to_vec()), (2, Vec::new()), (3, b"b".to_vec())];
        assert_eq!(read(b"a\n\nb").0, three);
        assert_eq!(read(b"a\n\nb\n").0, three);
        assert_eq!(read(b"").0, []);
        assert_eq!(read(b"a").0, three[..1]);
    }

    #[test]
    fn lines_end_in_any_of_three_ways() {
        for end in ["\n", "\r\n", "\r"] {
            let log = sample();
            let log = String::from_utf8(log).unwrap().replace('\n', end);
            let (lines, error) = read(log.as_bytes());
            assert_eq!((lines.len(), error), (100_000, None), "{end:?}");
            let trimmed = |line: &(u64, Vec<u8>)| line.1.trim_ascii().to_vec();
            assert_eq!(trimmed(&lines[77]), b"line 77 of the log");
            assert_eq!(trimmed(&lines[99_999]), b"line 99999 of the log");
        }
    }

    #[test]
    fn gzip_and_zstd_are_found_by_their_first_bytes() {
        let sample = sample();
        let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        gzip.write_all(&sample).unwrap();
        let gzip = gzip.finish().unwrap();
        let zstd = zstd::encode_all(&sample[..], 1).unwrap();
        for packed in [gzip, zstd] {
            assert_eq!(read(&packed).0.len(), 100_000);
            assert_eq!(
                read(&packed.repeat(2)).0.len(),
                200_000,
                "one behind the other"
            );
            let (lines, error) = read(&packed[..packed.len() / 2]);
            assert!(lines.len() > 10_000 && error.is_some(), "{}", lines.len());
            assert_eq!(
                lines.last().unwrap().1,
                format!("line {} of the log", lines.len() - 1).into_bytes()
            );
            let mut broken = packed.clone();
            let middle = broken.len() / 2;
            broken[middle..].fill(0);
            assert!(read(&broken).1.is_some());
        }
    }

    #[test]
    fn an_endless_line_is_one_line() {
        let long = [&vec![b'x'; 5 * BLOCK][..], b"\nshort\n"].concat();
        let (lines, _) = read(&long);
        assert_eq!((lines.len(), &lines[1]), (2, &(2, b"short".to_vec())));
        assert!(lines[0].1.len() > LONGEST && lines[0].1.len() <= BLOCK);
        assert_eq!(read(&long[..3 * BLOCK]).0.len(), 1);
    }
}
