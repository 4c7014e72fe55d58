//! A request head: found line by line, then parsed and judged (RFC 9112 sections 2 to 6, RFC 9110
//! section 7.2).

use memchr::memchr;

use super::Refusal;
use super::framing::{Framing, FramingFields};
use super::request_line::{self, RequestLine, absolute_form, is_authority};
use crate::limits::{FIELDS, Limits, METHOD};
use crate::request::Version;
use crate::syntax::{FieldSpan, Span, is_token};

/// A parsed head. Spans are relative to `start`, which the decoder moves when it compacts its
/// buffer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Head {
    pub(crate) start: usize,
    pub(crate) len: usize,
    pub(crate) method: Span,
    pub(crate) target: Span,
    pub(crate) path: Span,
    pub(crate) query: Option<Span>,
    /// The authority that the client addressed: of the target in absolute form, else Host.
    pub(crate) host: Option<Span>,
    pub(crate) version: Version,
    /// True if the client wants the connection kept (RFC 9112 section 9.3).
    pub(crate) keep_alive: bool,
    pub(crate) is_head: bool,
    pub(crate) framing: Framing,
    pub(crate) expects_continue: bool,
    /// True if it came through TLS.
    pub(crate) is_secured: bool,
    /// Its field lines in the decoder's arena.
    pub(crate) fields: (usize, usize),
}

/// Looks for the end of a head, however it arrives, and stops at the first line that is wrong.
#[derive(Clone, Copy, Debug)]
pub(super) struct Scanner {
    scanned: usize,
    line_start: usize,
    fields: usize,
    line: Option<RequestLine>,
}

impl Scanner {
    pub(super) const fn new() -> Self {
        Self {
            scanned: 0,
            line_start: 0,
            fields: 0,
            line: None,
        }
    }

    /// True if it has not looked at anything yet.
    pub(super) const fn is_fresh(&self) -> bool {
        self.scanned == 0
    }

    /// The length of the head at the beginning of `input`, once it is complete.
    pub(super) fn scan(
        &mut self,
        input: &[u8],
        is_secured: bool,
        limits: &Limits,
    ) -> Result<Option<usize>, Refusal> {
        loop {
            let Some(found) = memchr(b'\n', &input[self.scanned..]) else {
                self.scanned = input.len();
                self.check_size(input, limits)?;
                return Ok(None);
            };
            let end = self.scanned + found;
            self.scanned = end + 1;
            self.check_size(&input[..=end], limits)?;
            // RFC 9112 section 2.2 lets a recipient take a bare LF as a line end; a peer that does
            // not would see another request, so it is refused. Bare CRs are refused by the parsers
            // of both kinds of line.
            let Some(line) = input[self.line_start..end].strip_suffix(b"\r") else {
                return Err(Refusal::Malformed("a line ends with a bare LF"));
            };
            if self.line.is_none() {
                let absolute = |target: &[u8]| absolute_form(target, is_secured);
                self.line = Some(request_line::parse(line, absolute)?);
            } else if line.is_empty() {
                return Ok(Some(end + 1));
            } else {
                self.fields += 1;
                if self.fields > FIELDS {
                    return Err(Refusal::HeadTooLarge);
                }
            }
            self.line_start = end + 1;
        }
    }

    /// `input` ends with the newest byte looked at; it only grows, so the first excess decides.
    fn check_size(&self, input: &[u8], limits: &Limits) -> Result<(), Refusal> {
        if self.line.is_some() {
            return if input.len() > limits.head.min(u32::MAX as usize) {
                Err(Refusal::HeadTooLarge)
            } else {
                Ok(())
            };
        }
        match memchr(b' ', &input[..input.len().min(METHOD + 1)]) {
            // RFC 9112 section 3: 501 for a method longer than any that is known, if it is one.
            None if input.len() > METHOD => Err(if input[..METHOD].iter().copied().all(is_token) {
                Refusal::NotImplemented("the method is longer than any that this server knows")
            } else {
                Refusal::Malformed("the request line has no target")
            }),
            Some(space) if input.len() - (space + 1) > limits.target + " HTTP/1.1\r\n".len() => {
                Err(Refusal::TargetTooLong)
            }
            _ => Ok(()),
        }
    }

    /// Parses the complete head in `head`, whose first byte is at `start` of the buffer.
    pub(super) fn parse(
        &self,
        head: &[u8],
        start: usize,
        arena: &mut Vec<FieldSpan>,
        limits: &Limits,
    ) -> Result<Head, Refusal> {
        let line = self.line.ok_or(Refusal::Malformed("no request line"))?;
        if line.target.len as usize > limits.target {
            return Err(Refusal::TargetTooLong);
        }
        let from = memchr(b'\n', head).map_or(head.len(), |at| at + 1);
        // Most heads are small; a table of the full size costs 3 KiB of zeroing per request.
        if self.fields <= FEW_FIELDS {
            let mut fields = [httparse::EMPTY_HEADER; FEW_FIELDS];
            assemble(
                head,
                start,
                line,
                parse_fields(head, from, &mut fields)?,
                arena,
            )
        } else {
            let mut fields = [httparse::EMPTY_HEADER; FIELDS];
            assemble(
                head,
                start,
                line,
                parse_fields(head, from, &mut fields)?,
                arena,
            )
        }
    }
}

const FEW_FIELDS: usize = 16;

/// The usual case: a head that is all there, small and without a fault, in one pass over its bytes.
/// `None` is no verdict; then the [`Scanner`] decides.
pub(super) fn parse_at_once(
    input: &[u8],
    start: usize,
    arena: &mut Vec<FieldSpan>,
    limits: &Limits,
) -> Option<Head> {
    let end = memchr(b'\n', input)?;
    // A target in absolute form is rare: the scanner judges it.
    let absolute = |_: &[u8]| Err(Refusal::Misdirected);
    let line = request_line::parse(input[..end].strip_suffix(b"\r")?, absolute).ok()?;
    let mut fields = [httparse::EMPTY_HEADER; FEW_FIELDS];
    let (len, fields) = match httparse::parse_headers(&input[end + 1..], &mut fields) {
        Ok(httparse::Status::Complete((len, fields))) => (end + 1 + len, fields),
        _ => return None,
    };
    let head = &input[..len];
    // httparse takes a bare LF for the end of a line; the scanner knows what to say of it.
    let is_crlf = |end: usize| head.get(end.wrapping_sub(2)..end) == Some(b"\r\n");
    let has_bare_lf = !(is_crlf(len) && is_crlf(len - 2))
        || fields
            .iter()
            .any(|field| !is_crlf(offset(head, field.name.as_bytes())));
    let is_small = len <= limits.head && line.target.len as usize <= limits.target;
    if has_bare_lf || !is_small || line.method.len as usize > METHOD {
        return None;
    }
    let first = arena.len();
    let head = assemble(head, start, line, fields, arena);
    if head.is_err() {
        arena.truncate(first);
    }
    head.ok()
}

/// Parses the field lines of `head` from `from` on.
fn parse_fields<'f, 'h>(
    head: &'h [u8],
    from: usize,
    fields: &'f mut [httparse::Header<'h>],
) -> Result<&'f [httparse::Header<'h>], Refusal> {
    match httparse::parse_headers(&head[from..], fields) {
        Ok(httparse::Status::Complete((len, parsed))) if from + len == head.len() => Ok(parsed),
        Err(httparse::Error::TooManyHeaders) => Err(Refusal::HeadTooLarge),
        // Among them: a space before the colon (section 5.1), obs-fold (section 5.2), NUL and bare
        // CR.
        _ => Err(Refusal::Malformed("a field line is malformed")),
    }
}

/// Judges a head and puts its field lines into `arena`.
fn assemble(
    head: &[u8],
    start: usize,
    line: RequestLine,
    fields: &[httparse::Header<'_>],
    arena: &mut Vec<FieldSpan>,
) -> Result<Head, Refusal> {
    let known = KnownFields::gather(fields)?;
    known.judge_host(line.version)?;
    let framing = known.framing.decide(line.version)?;
    let expects_continue = known.expects_continue(line.version)?;
    if known.is_coded && framing != Framing::Length(0) {
        return Err(Refusal::ContentCoding);
    }
    let span = |bytes: &[u8]| Span::new(offset(head, bytes), bytes.len());
    let first = arena.len();
    arena.extend(fields.iter().map(|field| FieldSpan {
        name: span(field.name.as_bytes()),
        // An empty value may point anywhere.
        value: if field.value.is_empty() {
            Span::default()
        } else {
            span(field.value)
        },
    }));
    Ok(Head {
        start,
        len: head.len(),
        method: line.method,
        target: line.target,
        path: line.path,
        query: line.query,
        host: line.authority.or(known.host.map(span)),
        version: line.version,
        keep_alive: !known.close && (line.version == Version::Http11 || known.keep_alive),
        is_head: line.method.of(head) == b"HEAD",
        framing,
        expects_continue,
        is_secured: false,
        fields: (first, arena.len()),
    })
}

/// Returns the index at which `part` begins in `head`, of which it is a part.
fn offset(head: &[u8], part: &[u8]) -> usize {
    (part.as_ptr() as usize).saturating_sub(head.as_ptr() as usize)
}

/// The fields that concern the connection itself.
#[derive(Debug, Default)]
struct KnownFields<'a> {
    framing: FramingFields<'a>,
    host: Option<&'a [u8]>,
    close: bool,
    keep_alive: bool,
    expects_continue: bool,
    expects_other: bool,
    /// True if the body has a content coding.
    is_coded: bool,
}

/// Returns true if a value of Content-Encoding is not `identity` alone: such a body would be read
/// as what it is not (RFC 9110 section 8.4).
pub(crate) fn is_coded(value: &[u8]) -> bool {
    let mut codings = value.split(|&b| b == b',').map(<[u8]>::trim_ascii);
    codings.any(|coding| !coding.is_empty() && !coding.eq_ignore_ascii_case(b"identity"))
}

impl<'a> KnownFields<'a> {
    fn gather(fields: &[httparse::Header<'a>]) -> Result<Self, Refusal> {
        let mut known = Self::default();
        for field in fields {
            let (name, value) = (field.name.as_bytes(), field.value);
            match name.len() {
                4 if name.eq_ignore_ascii_case(b"host") => {
                    if known.host.replace(value).is_some() {
                        return Err(Refusal::Malformed("Host is repeated"));
                    }
                    if !is_authority(value) {
                        return Err(Refusal::Malformed("Host is not a host"));
                    }
                }
                6 if name.eq_ignore_ascii_case(b"expect") => known.expect(value),
                10 if name.eq_ignore_ascii_case(b"connection") => known.connection(value),
                14 if name.eq_ignore_ascii_case(b"content-length") => {
                    known.framing.content_length(value);
                }
                16 if name.eq_ignore_ascii_case(b"content-encoding") => {
                    known.is_coded |= is_coded(value);
                }
                17 if name.eq_ignore_ascii_case(b"transfer-encoding") => {
                    known.framing.transfer_encoding(value);
                }
                _ => {}
            }
        }
        Ok(known)
    }

    /// A list of options (RFC 9110 section 7.6.1). `upgrade` is none of ours: what a client would
    /// rather speak is ignored (section 7.8), and the answer is HTTP/1.1.
    fn connection(&mut self, value: &[u8]) {
        // What most clients that send it say.
        if value.eq_ignore_ascii_case(b"keep-alive") {
            self.keep_alive = true;
            return;
        }
        for option in value.split(|&b| b == b',').map(<[u8]>::trim_ascii) {
            self.close |= option.eq_ignore_ascii_case(b"close");
            self.keep_alive |= option.eq_ignore_ascii_case(b"keep-alive");
        }
    }

    /// A list (RFC 9110 section 10.1.1), whose empty elements say nothing (section 5.6.1.2).
    fn expect(&mut self, value: &[u8]) {
        for expectation in value.split(|&b| b == b',').map(<[u8]>::trim_ascii) {
            if expectation.eq_ignore_ascii_case(b"100-continue") {
                self.expects_continue = true;
            } else if !expectation.is_empty() {
                self.expects_other = true;
            }
        }
    }

    /// RFC 9112 section 3.2: 400 for an HTTP/1.1 request without Host.
    fn judge_host(&self, version: Version) -> Result<(), Refusal> {
        match self.host {
            None if version == Version::Http11 => Err(Refusal::Malformed("Host is missing")),
            _ => Ok(()),
        }
    }

    /// RFC 9110 section 10.1.1; an expectation in HTTP/1.0 is ignored.
    fn expects_continue(&self, version: Version) -> Result<bool, Refusal> {
        match version {
            Version::Http10 => Ok(false),
            Version::Http11 if self.expects_other => Err(Refusal::Expectation),
            Version::Http11 | Version::Http2 => Ok(self.expects_continue),
        }
    }
}
