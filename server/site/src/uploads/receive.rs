//! A form with files while it arrives: the connection gives pieces, the parser makes parts of them,
//! and each part is text or a file that is checked and passed on at once.
//!
//! The parser is a library that asks for its input; here it is polled once after each piece, and
//! finds no more. So where the pieces are cut changes nothing.

use std::borrow::Cow;
use std::cell::Cell;
use std::collections::VecDeque;
use std::convert::Infallible;
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use base_clock::Boottime;
use bytes::Bytes;
use multer::{Field, Multipart};
use parking_lot::Mutex;

use crate::{
    form::{Fields, MAX_FIELDS, unix_lines},
    uploads::{
        Received, UploadPermit, Uploads,
        disk::{StoredFiles, Transfer},
        drain::{Drain, THROWN_AWAY},
        names::new_name,
        received::{FileContent, ReceivedFile, not_stored},
    },
};
use millpond_site_compile::{
    page::Form,
    refusal::{fault_kind, upload::UploadRefusal},
};
use millpond_site_format::{
    config::{UPLOAD_FOLDER, in_units},
    file_name::{of_form_data, safe_name},
    file_type::{FileType, SNIFFED},
    script::FilePlace,
};

/// Bytes of the name of a part.
const LONGEST_NAME: usize = 256;
/// Bytes that bring the parser no further: the head of a part, or what stands before the first.
const LONGEST_HEAD: usize = 32 << 10;
/// The longest boundary; RFC 2046 section 5.1.1 allows 70 characters.
const LONGEST_BOUNDARY: usize = 200;
/// Bytes that the body may have beside files and text: boundaries and heads of parts.
const MARGIN: usize = 1 << 20;

/// Takes the body of a form with files.
pub(crate) struct FileReceiver {
    pieces: Arc<Mutex<Pieces>>,
    parsing: Pin<Box<dyn Future<Output = Result<Gathered, UploadRefusal>>>>,
    gathered: Option<Gathered>,
    transfer: Arc<Transfer>,
    drain: Drain,
    /// Bytes since the parser came further.
    idle_bytes: Rc<Cell<usize>>,
    limit: u64,
}

impl FileReceiver {
    /// Begins with a form whose head is there, or refuses it. `length` is that of the body, if it
    /// is known.
    pub(crate) fn begin(
        (form, leads_back): (&Arc<Form>, bool),
        length: Option<u64>,
        boundary: &str,
        uploads: &Arc<Uploads>,
    ) -> Result<Self, UploadRefusal> {
        if boundary.len() > LONGEST_BOUNDARY {
            return Err(UploadRefusal::new(
                400,
                "The boundary of the form is too long.",
            ));
        }
        let most_held = limit(form, uploads);
        let thrown_away = if leads_back { THROWN_AWAY } else { 0 };
        let limit = most_held.saturating_add(thrown_away);
        let length = length.unwrap_or_default();
        if length > limit {
            let sentence = format!(
                "The form is too large: at most {} are taken.",
                megabytes(limit)
            );
            return Err(UploadRefusal::new(413, sentence));
        }
        let permit = uploads.admit(length.min(most_held))?;
        let Some(disk) = uploads.disk() else {
            return Err(UploadRefusal::new(500, "The file could not be stored."));
        };
        let stored = disk.begin();
        let transfer = Arc::clone(&stored.transfer);
        let (idle_bytes, drain) = (Rc::new(Cell::new(0)), Drain::default());
        let pieces = Arc::default();
        let parts = Multipart::new(PieceStream(Arc::clone(&pieces)), boundary);
        let gathering = Gathering {
            form: Arc::clone(form),
            leads_back,
            most_held,
            idle_bytes: Rc::clone(&idle_bytes),
            most_text: uploads.limits.text,
            drain: drain.clone(),
            drain_time: uploads.limits.drain,
            text: 0,
            bytes: 0,
            gathered: Gathered {
                fields: Fields::new(),
                files: Vec::new(),
                refused: Vec::new(),
                stored,
                permit,
            },
        };
        Ok(Self {
            pieces,
            parsing: Box::pin(gathering.all(parts)),
            gathered: None,
            transfer,
            drain,
            idle_bytes,
            limit,
        })
    }

    /// Lets the parser go on as far as the pieces reach.
    fn parse(&mut self) -> Result<(), UploadRefusal> {
        if let Some(failure) = self.transfer.failure() {
            return Err(not_stored(failure));
        }
        if let Some(refusal) = self.drain.ended(Boottime::now) {
            return Err(refusal);
        }
        if self.gathered.is_some() {
            // What follows the last boundary is ignored (RFC 2046 section 5.1.1).
            self.pieces.lock().waiting.clear();
            return Ok(());
        }
        let mut context = Context::from_waker(Waker::noop());
        match self.parsing.as_mut().poll(&mut context) {
            Poll::Ready(gathered) => self.gathered = Some(gathered?),
            Poll::Pending if self.idle_bytes.get() > LONGEST_HEAD => {
                let sentence = "The head of a part of the form is too long.";
                return Err(UploadRefusal::new(400, sentence));
            }
            Poll::Pending => {}
        }
        Ok(())
    }

    /// The most bytes that are taken.
    pub(crate) fn limit(&self) -> u64 {
        self.limit
    }

    /// Waits until there is room for more.
    pub(crate) fn poll_ready(&self, context: &mut Context<'_>) -> Poll<()> {
        self.transfer.poll_room(context)
    }

    /// Takes a piece of the body.
    pub(crate) fn receive(&mut self, piece: &[u8]) -> Result<(), UploadRefusal> {
        let piece = Bytes::copy_from_slice(piece);
        self.idle_bytes.set(self.idle_bytes.get() + piece.len());
        self.pieces.lock().waiting.push_back(piece);
        self.parse()
    }

    /// Returns the fields and the files, once the body is there.
    pub(crate) fn finish(mut self) -> Result<(Fields<'static>, Received), UploadRefusal> {
        self.pieces.lock().is_complete = true;
        self.parse()?;
        let gathered = self.gathered.ok_or_else(broken)?;
        let received = Received {
            files: gathered.files,
            refused: gathered.refused,
            stored: Some(gathered.stored),
            _permit: Some(gathered.permit),
        };
        Ok((gathered.fields, received))
    }
}

/// The most bytes that the body of a form may have.
fn limit(form: &Form, uploads: &Uploads) -> u64 {
    let files = form.uploads.iter().map(|field| {
        let (max, count) = (field.line.max as u64, field.line.count as u64);
        max.saturating_mul(count)
    });
    let files = files.fold(0, u64::saturating_add);
    files.saturating_add((uploads.limits.text + MARGIN) as u64)
}

/// A size for a visitor, rounded up.
fn megabytes(bytes: u64) -> String {
    format!("{} MB", bytes.div_ceil(1_000_000))
}

fn broken() -> UploadRefusal {
    UploadRefusal::new(400, "The form cannot be read.")
}

/// The pieces that the parser has not taken.
#[derive(Default)]
struct Pieces {
    waiting: VecDeque<Bytes>,
    is_complete: bool,
}

/// The pieces as the stream that the parser wants.
struct PieceStream(Arc<Mutex<Pieces>>);

impl futures_core::Stream for PieceStream {
    type Item = Result<Bytes, Infallible>;

    fn poll_next(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let mut pieces = self.0.lock();
        match pieces.waiting.pop_front() {
            Some(piece) => Poll::Ready(Some(Ok(piece))),
            None if pieces.is_complete => Poll::Ready(None),
            None => Poll::Pending,
        }
    }
}

/// Parts of a form so far.
struct Gathered {
    fields: Fields<'static>,
    files: Vec<ReceivedFile>,
    refused: Vec<UploadRefusal>,
    stored: StoredFiles,
    permit: UploadPermit,
}

/// A form that is being read.
struct Gathering {
    form: Arc<Form>,
    /// True if a form with a file that is not taken is read to its end.
    leads_back: bool,
    /// Bytes of a form all of which is kept; what comes beyond them is thrown away.
    most_held: u64,
    idle_bytes: Rc<Cell<usize>>,
    most_text: usize,
    text: usize,
    drain: Drain,
    drain_time: Duration,
    /// Of all parts so far.
    bytes: u64,
    gathered: Gathered,
}

impl Gathering {
    async fn all(mut self, mut parts: Multipart<'static>) -> Result<Gathered, UploadRefusal> {
        let mut count = 0;
        while let Some(mut part) = parts.next_field().await.map_err(|_| broken())? {
            self.idle_bytes.set(0);
            count += 1;
            if count > MAX_FIELDS {
                return Err(UploadRefusal::new(400, "The form has too many fields."));
            }
            let Some(name) = part.name() else {
                return Err(UploadRefusal::new(400, "A part of the form has no name."));
            };
            if name.len() > LONGEST_NAME {
                let sentence = "The name of a part of the form is too long.";
                return Err(UploadRefusal::new(400, sentence));
            }
            let name = name.to_owned();
            self.hold_text(name.len())?;
            let mut fields = self.form.uploads.iter();
            match fields.position(|field| field.line.name == name) {
                Some(at) => self.file(at, &mut part).await?,
                None => self.text(name, &mut part).await?,
            }
        }
        Ok(self.gathered)
    }

    /// The next bytes of a part; none at its end.
    async fn chunk(&mut self, part: &mut Field<'_>) -> Result<Option<Bytes>, UploadRefusal> {
        let chunk = part.chunk().await.map_err(|_| broken())?;
        self.idle_bytes.set(0);
        self.bytes += chunk.as_ref().map_or(0, Bytes::len) as u64;
        self.gathered.permit.hold(self.bytes.min(self.most_held))?;
        Ok(chunk)
    }

    /// Counts text and names, which stay in memory until the form is performed.
    fn hold_text(&mut self, more: usize) -> Result<(), UploadRefusal> {
        self.text += more;
        if self.text > self.most_text {
            return Err(UploadRefusal::new(413, "The form has too much text."));
        }
        self.gathered.permit.hold_memory(more)
    }

    async fn text(&mut self, name: String, part: &mut Field<'_>) -> Result<(), UploadRefusal> {
        let is_file = part.file_name().is_some();
        let mut text = Vec::new();
        while let Some(chunk) = self.chunk(part).await? {
            self.hold_text(chunk.len())?;
            text.extend_from_slice(&chunk);
        }
        let Ok(text) = String::from_utf8(text) else {
            let sentence = format!("The field \"{}\" is not UTF-8.", safe_name(&name));
            return Err(UploadRefusal::new(400, sentence));
        };
        let text = match is_file {
            true => Cow::from(text),
            false => unix_lines(Cow::from(text)),
        };
        self.gathered.fields.push((Cow::from(name), text));
        Ok(())
    }

    /// Takes a file. If it is not taken and the form leads back, the rest of it is thrown away, and
    /// so is what later files contain: nothing of the form will be stored.
    async fn file(&mut self, at: usize, part: &mut Field<'_>) -> Result<(), UploadRefusal> {
        let refusal = match self.whole_file(at, part).await {
            Err(refusal) if refusal.fault.is_some() && self.leads_back => refusal,
            taken => return taken,
        };
        if !self.drain.is_begun() {
            self.begin_drain(&refusal);
        }
        while self.chunk(part).await?.is_some() {}
        let refused = &mut self.gathered.refused;
        let of_field = |known: &UploadRefusal| known.field_name() == refusal.field_name();
        if !refused.iter().any(of_field) {
            refused.push(refusal);
        }
        Ok(())
    }

    /// Lets go of all that is held for files.
    fn begin_drain(&mut self, refusal: &UploadRefusal) {
        self.drain.begin(refusal, Boottime::now(), self.drain_time);
        let gathered = &mut self.gathered;
        for file in &mut gathered.files {
            file.content = FileContent::Bytes(Vec::new());
        }
        gathered.stored.remove();
        gathered.permit.release(self.text);
    }

    async fn whole_file(&mut self, at: usize, part: &mut Field<'_>) -> Result<(), UploadRefusal> {
        let given = of_form_data(part.file_name().unwrap_or_default());
        let mut head = Vec::new();
        let mut is_complete = false;
        while head.len() < SNIFFED && !is_complete {
            match self.chunk(part).await? {
                Some(chunk) => head.extend_from_slice(&chunk),
                None => is_complete = true,
            }
        }
        let form = Arc::clone(&self.form);
        let line = &form.uploads[at].line;
        let refuse =
            |status, kind, what| Err(UploadRefusal::of_file(status, &line.name, kind, what));
        // An empty field of a form sends a part without a name and without content.
        if head.is_empty() && given.is_empty() {
            return Ok(());
        }
        if part.file_name().is_none() {
            return refuse(400, fault_kind::TYPE, "is a text and no file".to_owned());
        }
        if head.is_empty() {
            return refuse(400, fault_kind::SIZE, "is empty".to_owned());
        }
        let same = self.gathered.files.iter().filter(|file| file.field == at);
        if same.count() >= line.count {
            let most = format!("may be given {}", times(line.count));
            return refuse(400, fault_kind::COUNT, most);
        }
        let found = FileType::of(&head[..head.len().min(SNIFFED)], &given);
        let Some(kind) = found.among(&line.kinds) else {
            let taken: Vec<&str> = line.kinds.iter().map(|kind| kind.name).collect();
            let instead = match taken.is_empty() {
                true => String::new(),
                false => format!("; it must be {}", taken.join(", ")),
            };
            let what = format!("is {}{instead}", found.name);
            return refuse(415, fault_kind::TYPE, what);
        };
        let is_kept = !self.drain.is_begun();
        let mut sink = match is_kept {
            true => self.sink(&line.place, kind)?,
            false => FileContent::Bytes(Vec::new()),
        };
        let mut size = 0;
        let mut next = Some(Bytes::from(head));
        while let Some(chunk) = next {
            size += chunk.len();
            if size > line.max {
                let what = format!("has more than {}", in_units(line.max));
                return refuse(413, fault_kind::SIZE, what);
            }
            match &mut sink {
                _ if !is_kept => {}
                FileContent::Stored(_) => self.gathered.stored.write(chunk),
                FileContent::Bytes(bytes) => {
                    self.gathered.permit.hold_memory(chunk.len())?;
                    bytes.extend_from_slice(&chunk);
                }
            }
            next = match is_complete {
                true => None,
                false => self.chunk(part).await?,
            };
        }
        self.gathered.files.push(ReceivedFile {
            field: at,
            name: match safe_name(&given) {
                name if name.is_empty() => "file".to_owned(),
                name => name,
            },
            kind,
            size,
            content: sink,
        });
        Ok(())
    }

    fn sink(&mut self, place: &FilePlace, kind: &FileType) -> Result<FileContent, UploadRefusal> {
        let FilePlace::Folder(folder) = place else {
            return Ok(FileContent::Bytes(Vec::new()));
        };
        let Some(name) = new_name(kind) else {
            return Err(UploadRefusal::new(500, "The file could not be stored."));
        };
        let address = format!("/{folder}/{name}");
        let path = address.strip_prefix(&format!("/{UPLOAD_FOLDER}/"));
        self.gathered
            .stored
            .create(path.unwrap_or(&name).to_owned());
        Ok(FileContent::Stored(address))
    }
}

fn times(count: usize) -> String {
    match count {
        1 => "once".to_owned(),
        count => format!("{count} times"),
    }
}
