//! The texts of the table, each with the places of its values.

/// One row of the table.
pub(super) struct Row {
    pub(super) what: &'static str,
    /// With `{}` for each value.
    pub(super) amount: &'static str,
    pub(super) places: &'static [Place],
    pub(super) past: &'static str,
}

/// Place of a value in the source text.
#[derive(Clone, Copy)]
pub(super) struct Place {
    /// A crate, or a folder or a file in it without its ending.
    pub(super) folder: &'static str,
    /// `const`, or text after which the field `name` is the value.
    pub(super) after: &'static str,
    pub(super) name: &'static str,
    pub(super) unit: Unit,
}

/// How a value is written.
#[derive(Clone, Copy)]
pub(super) enum Unit {
    Bytes,
    Count,
    /// The source has a `Duration`.
    Time,
}

impl Unit {
    pub(super) fn show(self, value: u64) -> String {
        match self {
            Self::Bytes => bytes(value),
            Self::Count => grouped(value),
            Self::Time if value.is_multiple_of(1000) => format!("{} s", grouped(value / 1000)),
            Self::Time => format!("{} ms", grouped(value)),
        }
    }
}

/// In the largest unit that leaves a whole number.
fn bytes(value: u64) -> String {
    let units = [(1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")];
    for (size, unit) in units {
        if value >= size && value.is_multiple_of(size) {
            return format!("{} {unit}", grouped(value / size));
        }
    }
    format!("{} bytes", grouped(value))
}

/// With a comma between thousands.
fn grouped(value: u64) -> String {
    let digits = value.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

const fn constant(folder: &'static str, name: &'static str, unit: Unit) -> Place {
    Place {
        folder,
        after: "const",
        name,
        unit,
    }
}

const fn field(folder: &'static str, after: &'static str, name: &'static str, unit: Unit) -> Place {
    Place {
        folder,
        after,
        name,
        unit,
    }
}

const HTTP: &str = "server/http";
const LIBRARY: &str = "server/library";
const SECURE: &str = "server/http/src/conn/secure_socket";
const ACME: &str = "server/certificates/src/acme";
const SITE: &str = "server/site";
const DB: &str = "server/db";
const POSTGRES: &str = "server/db/src/postgres";
const STORE: &str = "server/store";

const fn request(name: &'static str, unit: Unit) -> Place {
    field(HTTP, "impl Default for Limits", name, unit)
}

const fn client(name: &'static str, unit: Unit) -> Place {
    field(HTTP, "impl Default for ClientLimits", name, unit)
}

const fn store(name: &'static str, unit: Unit) -> Place {
    field(STORE, "impl Default for Config", name, unit)
}

const fn option(name: &'static str, unit: Unit) -> Place {
    field("server/db/src/postgres/options", "pub fn new(", name, unit)
}

use Unit::{Bytes, Count, Time};

pub(super) const ROWS: &[Row] = &[
    Row {
        what: "request target, head, fields, body",
        amount: "{}, {}, {}, {}",
        places: &[
            request("target", Bytes),
            request("head", Bytes),
            constant(HTTP, "FIELDS", Count),
            request("body", Bytes),
        ],
        past: "414, 431, 431, 413",
    },
    Row {
        what: "time for a head; time without progress of a body or response; time of an idle connection",
        amount: "{}; {}, and {} a second on average; {}",
        places: &[
            request("head_timeout", Time),
            request("progress_timeout", Time),
            constant(HTTP, "MIN_RATE", Bytes),
            request("idle_timeout", Time),
        ],
        past: "408; 408 or closed; closed",
    },
    Row {
        what: "connections",
        amount: "{}, or as many as file descriptors are left for",
        places: &[request("connections", Count)],
        past: "503, closed",
    },
    Row {
        what: "connections of one client; its requests, writes and bytes a second, of which as many come at once as in a burst",
        amount: "{}; {}, {}, {}; {}",
        places: &[
            client("connections", Count),
            client("requests", Count),
            client("writes", Count),
            client("bytes", Bytes),
            constant(HTTP, "BURST", Time),
        ],
        past: "503, closed (counter `over_client_connections`); 429 with Retry-After (`over_client_requests`, `over_client_writes`); its connections pause (`client_pauses`)",
    },
    Row {
        what: "shares of one client for the clients of a network of 56 bits of IPv6 together",
        amount: "{}",
        places: &[constant(HTTP, "SITE_SHARE", Count)],
        past: "as for one client",
    },
    Row {
        what: "clients that are counted, or twice the open connections if that is more; requests that one connection takes at once",
        amount: "{}; {}",
        places: &[
            constant(HTTP, "CLIENTS", Count),
            constant(HTTP, "CLIENT_BATCH", Count),
        ],
        past: "those without connections are forgotten, idle ones first; it asks again",
    },
    Row {
        what: "a header of the PROXY protocol; of version 1",
        amount: "{}; {}",
        places: &[
            constant(HTTP, "PROXY_HEADER", Bytes),
            constant(HTTP, "LONGEST_LINE", Bytes),
        ],
        past: "closed (counter `proxy_headers_missing`)",
    },
    Row {
        what: "memory of requests that have not arrived whole, per worker; a complete body that is never refused for others",
        amount: "{}; {}",
        places: &[
            constant(HTTP, "REQUEST_MEMORY", Bytes),
            constant(HTTP, "SMALL_BODY", Bytes),
        ],
        past: "the heaviest of the client that holds most end: a head with 408 (counter `heads_ended`), a body with 503 (`bodies_ended`)",
    },
    Row {
        what: "a body that stays in memory; bodies in files, per worker; their bytes, or `limits.body` if that is more",
        amount: "{}; {}, or 1 for {} connections; {}",
        places: &[
            constant(HTTP, "BODY_IN_MEMORY", Bytes),
            constant(HTTP, "BODY_FILES", Count),
            constant(HTTP, "CONNECTIONS_PER_BODY_FILE", Count),
            constant(HTTP, "BODY_DISK", Bytes),
        ],
        past: "in a file (counter `bodies_in_files`); the slowest of the client that holds most end with 503 (`bodies_ended`)",
    },
    Row {
        what: "a large body that is taken before others have their turn",
        amount: "{}",
        places: &[constant(HTTP, "BODY_TURN", Bytes)],
        past: "the connection waits for its next turn",
    },
    Row {
        what: "responses cached for repeated requests, per worker; the longest of them",
        amount: "{}; {}",
        places: &[
            constant(HTTP, "REPEATED_BYTES", Bytes),
            constant(HTTP, "REPEATED_ANSWER", Bytes),
        ],
        past: "those that were not requested lately are dropped; not cached",
    },
    Row {
        what: "ranges in one request; bytes of their parts together",
        amount: "{}; {}",
        places: &[
            constant(HTTP, "RANGES", Count),
            constant(HTTP, "OUTPUT", Bytes),
        ],
        past: "the whole file is sent",
    },
    Row {
        what: "output that waits on one connection; while more than a few have news",
        amount: "{}; {} with more than {}",
        places: &[
            constant(HTTP, "OUTPUT", Bytes),
            constant(HTTP, "BUSY_OUTPUT", Bytes),
            constant(HTTP, "FEW_CONNECTIONS", Count),
        ],
        past: "no further request of the connection is evaluated before others have their turn",
    },
    Row {
        what: "trailer section; chunk extensions of one body",
        amount: "{}; {}",
        places: &[
            constant(HTTP, "TRAILERS", Bytes),
            constant(HTTP, "CHUNK_EXTENSIONS", Bytes),
        ],
        past: "refused and closed",
    },
    Row {
        what: "input read after a refused request",
        amount: "{} for {}",
        places: &[
            constant(HTTP, "LINGER_BYTES", Bytes),
            constant(HTTP, "LINGER", Time),
        ],
        past: "closed",
    },
    Row {
        what: "of a program: threads on which handlers may block; requests that wait for one",
        amount: "{}; {}",
        places: &[
            constant(LIBRARY, "BLOCKING_THREADS", Count),
            constant(LIBRARY, "BLOCKING_QUEUE", Count),
        ],
        past: "503 with Retry-After",
    },
    Row {
        what: "of a program: a body before its handler begins to read it; how far its client may be ahead; how far a response that is written may be",
        amount: "{}; {}; {}",
        places: &[
            constant(LIBRARY, "BODY_BEGIN", Bytes),
            constant(LIBRARY, "BODY_AHEAD", Bytes),
            constant(LIBRARY, "WRITER_AHEAD", Bytes),
        ],
        past: "the handler, the client or the writer waits",
    },
    Row {
        what: "of a program: reads of a page, one after the other; times that it is made while rows change that it has read",
        amount: "{}; {}",
        places: &[
            constant(LIBRARY, "PAGE_READS", Count),
            constant(LIBRARY, "PAGE_ATTEMPTS", Count),
        ],
        past: "500, which names `Page::queries`; 503 with Retry-After",
    },
    Row {
        what: "of a program: things of one kind that a page names",
        amount: "{}",
        places: &[constant(LIBRARY, "PAGE_IDS", Count)],
        past: "the page depends on the kind",
    },
    Row {
        what: "reads, and writes, that wait for a database connection",
        amount: "{}",
        places: &[option("queue", Count)],
        past: "503 with Retry-After",
    },
    Row {
        what: "one statement",
        amount: "{}",
        places: &[option("statement_timeout", Time)],
        past: "interrupted and rolled back; 503",
    },
    Row {
        what: "one result of a query",
        amount: "{}",
        places: &[constant(DB, "MAX_RESULT", Bytes)],
        past: "refused",
    },
    Row {
        what: "an SQLite database that `check` copies with its rows to try migrations",
        amount: "{}, and half of what is free",
        places: &[constant(SITE, "MAX_COPY", Bytes)],
        past: "tried without rows, with a note",
    },
    Row {
        what: "narrow dependencies of one table in one transaction",
        amount: "{}",
        places: &[constant(DB, "MAX_NARROW", Count)],
        past: "counts as a change to all rows of the table",
    },
    Row {
        what: "sets of columns that queries on one table of PostgreSQL read",
        amount: "{}",
        places: &[constant(DB, "MAX_COLUMN_SETS", Count)],
        past: "a query that reads another set counts as reading all columns",
    },
    Row {
        what: "values of a list or a join key by which rows are selected",
        amount: "{}",
        places: &[constant("server/db/src/precision", "MAX_VALUES", Count)],
        past: "all rows of the table count",
    },
    Row {
        what: "rows in which the values of a join key are looked for",
        amount: "{}",
        places: &[constant("server/db/src/precision", "MAX_ROWS", Count)],
        past: "all rows of the table count",
    },
    Row {
        what: "unread changes of other programs on SQLite with triggers",
        amount: "{}",
        places: &[constant(
            "server/db/src/sqlite/triggers",
            "MAX_UNREAD",
            Count,
        )],
        past: "not recorded: a new epoch when they are read",
    },
    Row {
        what: "memory of the store; its share for stored 404s",
        amount: "{}; {} %",
        places: &[store("memory", Bytes), store("negative_percent", Count)],
        past: "eviction",
    },
    Row {
        what: "age of the change feed at which hits end",
        amount: "{}",
        places: &[store("max_staleness", Time)],
        past: "no hits: requests ask the database",
    },
    Row {
        what: "lag of a replica that is read",
        amount: "{}",
        places: &[constant(POSTGRES, "LONGEST_LAG", Time)],
        past: "the primary reads",
    },
    Row {
        what: "one statement on a replica; one read on a replica; the pause after a failure",
        amount: "{}; {}; {} to {}",
        places: &[
            constant(POSTGRES, "STATEMENT", Time),
            constant(POSTGRES, "ATTEMPT", Time),
            constant(POSTGRES, "FIRST", Time),
            constant(POSTGRES, "LAST", Time),
        ],
        past: "the primary reads",
    },
    Row {
        what: "silence of a connection to PostgreSQL",
        amount: "{}",
        places: &[constant("server/db/src/postgres/liveness", "SILENCE", Time)],
        past: "closed",
    },
    Row {
        what: "statements that a connection to PostgreSQL keeps prepared, of reads and of writes",
        amount: "{} each",
        places: &[constant(POSTGRES, "MAX_STATEMENTS", Count)],
        past: "all of that kind are dropped",
    },
    Row {
        what: "the table of changes that triggers fill; rows of one look at the table",
        amount: "{}; {}",
        places: &[
            constant(POSTGRES, "MAX_BYTES", Bytes),
            constant("server/db/src/postgres/feed/triggers", "MAX_ROWS", Count),
        ],
        past: "the feed begins again; a new epoch",
    },
    Row {
        what: "large transactions that PostgreSQL streams at a time; dependencies in them",
        amount: "{}; {}",
        places: &[
            constant(POSTGRES, "MAX_STREAMED", Count),
            constant(POSTGRES, "MAX_STREAMED_TAGS", Count),
        ],
        past: "the feed begins again; counts as a change to everything",
    },
    Row {
        what: "changes kept for running fills; dependencies in them",
        amount: "{}; {}",
        places: &[store("logged_changes", Count), store("logged_tags", Count)],
        past: "a new epoch",
    },
    Row {
        what: "a session's cookie; its claims",
        amount: "{}; {}",
        places: &[
            constant("server/site/src/session/token", "LONGEST", Bytes),
            constant("server/site-format/src/access", "MOST_CLAIMS", Count),
        ],
        past: "the form that begins the session fails and the log says so; a cookie with more is no session",
    },
    Row {
        what: "what a refused form is shown with again: its cookie, how long; what the answer to the form shows where that has no room",
        amount: "{}; {}; {}",
        places: &[
            constant("server/site/src/session/flash", "LONGEST", Bytes),
            constant("server/site/src/session/flash", "LIFETIME", Time),
            constant(SITE, "MAX_SHOWN", Bytes),
        ],
        past: "the answer to the form; the page shows an empty form; a plain error",
    },
    Row {
        what: "answers of error pages that are prepared; their sentences",
        amount: "{}; {}",
        places: &[
            constant(SITE, "MOST_PREPARED", Count),
            constant(
                "server/site/src/core/error_answer",
                "LONGEST_SENTENCE",
                Bytes,
            ),
        ],
        past: "each answer is rendered anew",
    },
    Row {
        what: "attempts at one account; from one address",
        amount: "{}, then 1 in {}; {}, then 1 in {}",
        places: &[
            field(SITE, "const ACCOUNT", "burst", Count),
            field(SITE, "const ACCOUNT", "interval", Time),
            field(SITE, "const ADDRESS", "burst", Count),
            field(SITE, "const ADDRESS", "interval", Time),
        ],
        past: "429 with Retry-After",
    },
    Row {
        what: "accounts and addresses whose attempts are counted",
        amount: "{} sets of {}",
        places: &[
            constant("server/site/src/session/attempts", "SETS", Count),
            constant("server/site/src/session/attempts", "WAYS", Count),
        ],
        past: "the one that waited longest is forgotten",
    },
    Row {
        what: "refused connections that linger, per worker",
        amount: "{}",
        places: &[constant(HTTP, "REFUSALS_LINGERING", Count)],
        past: "closed without an answer; where descriptors are used up, the oldest is closed for the next client",
    },
    Row {
        what: "passwords that wait for a hash",
        amount: "{}",
        places: &[constant(
            "server/site/src/session/passwords",
            "QUEUE",
            Count,
        )],
        past: "503 with Retry-After",
    },
    Row {
        what: "names in a listing; entries of one kind in `millpond.toml`",
        amount: "{}; {}",
        places: &[
            constant("server/site/src/service/listing", "MAX_ROWS", Count),
            constant("server/site-format/src/config/tables", "MAX_ENTRIES", Count),
        ],
        past: "the rest is counted, not shown; an error",
    },
    Row {
        what: "fields of a form, members of a JSON body",
        amount: "{}",
        places: &[constant(SITE, "MAX_FIELDS", Count)],
        past: "400",
    },
    Row {
        what: "levels of a JSON body; its values",
        amount: "{}; {}",
        places: &[
            constant(SITE, "MAX_NESTING", Count),
            constant(SITE, "MAX_JSON_VALUES", Count),
        ],
        past: "400",
    },
    Row {
        what: "one row of a file of data, and a file that is not read in pieces; its columns; depth of its values; values that YAML aliases repeat",
        amount: "{}; {}; {}; {}",
        places: &[
            constant("server/data/src/lib", "MAX_ROW", Bytes),
            constant("server/data/src/lib", "MAX_COLUMNS", Count),
            constant("server/data/src/lib", "MAX_DEPTH", Count),
            constant("server/data/src/yaml", "MAX_ALIASED", Count),
        ],
        past: "the file is not applied, and its former rows stay",
    },
    Row {
        what: "different rows without a key that a file of data has more than once, on SQLite",
        amount: "{}",
        places: &[constant(
            "server/db/src/sqlite/file_rows",
            "MAX_REPEATED",
            Count,
        )],
        past: "the file is not applied, and its former rows stay",
    },
    Row {
        what: "folders within the folder of a table, one in another",
        amount: "{}",
        places: &[constant(
            "server/site/src/data/scan",
            "MAX_FOLDER_DEPTH",
            Count,
        )],
        past: "what is deeper is not read, and its rows stay; the log and `check` say so",
    },
    Row {
        what: "files of data that share a transaction; their rows; bytes of their values",
        amount: "{}; {}; {}",
        places: &[
            constant("server/site/src/data/batch", "MAX_FILES", Count),
            constant("server/site/src/data/batch", "MAX_ROWS", Count),
            constant("server/site/src/data/batch", "MAX_BYTES", Bytes),
        ],
        past: "another transaction; a larger file has its own, and is read twice",
    },
    Row {
        what: "files of data that are being written at a time",
        amount: "{}",
        places: &[constant("server/site/src/data/inbox", "MAX_OPEN", Count)],
        past: "all files are looked at once they are unchanged for a quarter of a second",
    },
    Row {
        what: "forms with files at once, their bytes: `limits.uploads`, `limits.upload_disk`; memory of their files that go into statements; bytes of \
               one form that wait for the disk",
        amount: "100; 4 GiB; {}; {}",
        places: &[
            constant("server/site/src/uploads", "MEMORY", Bytes),
            constant("server/site/src/uploads", "QUEUED", Bytes),
        ],
        past: "503, with Retry-After; the client is read no further",
    },
    Row {
        what: "a file that goes into a folder, or into a statement, and the number of files, where the `-- file:` line does not say it; most files of a \
               list; boundary; head of a part",
        amount: "{}, {}, {}; {}; {}; {}",
        places: &[
            constant("server/site-format/src/script/files", "IN_FOLDER", Bytes),
            constant("server/site-format/src/script/files", "AS_BYTES", Bytes),
            constant("server/site-format/src/script/files", "COUNT", Count),
            constant("server/site-format/src/script/files", "MOST_FILES", Count),
            constant("server/site/src/uploads", "LONGEST_BOUNDARY", Bytes),
            constant("server/site/src/uploads", "LONGEST_HEAD", Bytes),
        ],
        past: "413; 400",
    },
    Row {
        what: "what is read and thrown away of files that a form does not take, to lead the visitor back; for how long",
        amount: "{}; {}",
        places: &[
            constant("server/site/src/uploads", "THROWN_AWAY", Bytes),
            request("progress_timeout", Time),
        ],
        past: "413; what the file is refused with (413, 415 or 400)",
    },
    Row {
        what: "values of a parameter that is a list; of these, those whose rows count one by one",
        amount: "{}; {}",
        places: &[
            constant("server/site-format", "MAX_LIST", Count),
            constant("server/db/src/precision", "MAX_VALUES", Count),
        ],
        past: "400; every change of the table counts",
    },
    Row {
        what: "ranges of `Accept-Language` by which a `-- language:` is chosen",
        amount: "{}",
        places: &[constant("server/site-compile", "MOST_RANGES", Count)],
        past: "the ranges before",
    },
    Row {
        what: "statements of one query with `-- order:`",
        amount: "{}",
        places: &[constant(
            "server/site-compile/src/compile/statements",
            "MAX_STATEMENTS",
            Count,
        )],
        past: "an error",
    },
    Row {
        what: "fills; requests that wait for fills",
        amount: "{}; {}",
        places: &[store("flights", Count), store("waiters", Count)],
        past: "503 with Retry-After",
    },
    Row {
        what: "pages that wait to be made ahead; pages in the list for the next start",
        amount: "{}; {} in {}",
        places: &[
            constant("server/site/src/ahead/mod", "QUEUE", Count),
            constant(SITE, "PAGES", Count),
            constant("server/site/src/ahead/list", "BYTES", Bytes),
        ],
        past: "the hottest stay",
    },
    Row {
        what: "names of hot entries for the next sweep",
        amount: "{}",
        places: &[constant("server/store/src/watched", "MOST", Count)],
        past: "the sweep looks at all entries",
    },
    Row {
        what: "static files in memory; the largest of them",
        amount: "{}; {}",
        places: &[
            field(
                "server/site-format",
                "impl Default for StaticOptions",
                "memory",
                Bytes,
            ),
            field(
                "server/site-format",
                "impl Default for StaticOptions",
                "in_memory",
                Bytes,
            ),
        ],
        past: "sent from disk",
    },
    Row {
        what: "descriptors for static files",
        amount: "{}, or 1/{} of the limit of the process",
        places: &[
            constant(SITE, "MAX_DESCRIPTORS", Count),
            constant("server/site/src/statics", "SHARE", Count),
        ],
        past: "opened for each request",
    },
    Row {
        what: "names in `static/`; folders within folders",
        amount: "{}; {}",
        places: &[
            constant(SITE, "MAX_NAMES", Count),
            constant("server/site/src/statics/scan", "MAX_DEPTH", Count),
        ],
        past: "refused, and the log says so",
    },
    Row {
        what: "access log in memory",
        amount: "{}",
        places: &[constant("server/access-log", "LIMIT", Bytes)],
        past: "lines are dropped and counted",
    },
    Row {
        what: "different lines of the log that requests bring about; time in which each is written once",
        amount: "{}; {}",
        places: &[
            constant("server/site/src/log", "MOST", Count),
            constant("server/site/src/log", "PERIOD", Time),
        ],
        past: "counted, and the count is written",
    },
    Row {
        what: "bytes that a client of TLS sends beside plaintext: handshakes, heads and paddings of records, new keys",
        amount: "{}, and {} for each byte of plaintext",
        places: &[
            constant(SECURE, "OVERHEAD", Bytes),
            constant(SECURE, "OVERHEAD_PER_BYTE", Bytes),
        ],
        past: "closed",
    },
    Row {
        what: "of a TLS connection: message of a handshake that has not arrived whole; records that wait for a slow reader",
        amount: "{}; {}",
        places: &[
            constant(SECURE, "HELD", Bytes),
            constant(SECURE, "SENT", Bytes),
        ],
        past: "closed; the response waits",
    },
    Row {
        what: "memory of an HTTP/2 connection that does not count as unfinished",
        amount: "{}",
        places: &[constant(
            "server/http/src/conn/http2_unfinished",
            "UNCOUNTED",
            Bytes,
        )],
        past: "shares the memory for unfinished requests",
    },
    Row {
        what: "streams of an HTTP/2 connection at a time; fields of their heads, each cookie counted",
        amount: "{}; {}",
        places: &[
            constant(HTTP, "HTTP2_STREAMS", Count),
            constant(HTTP, "HTTP2_FIELDS", Count),
        ],
        past: "refused (REFUSED_STREAM); 431",
    },
    Row {
        what: "window for the body of one HTTP/2 request; for all of a connection",
        amount: "{}; {}",
        places: &[
            constant(HTTP, "STREAM_WINDOW", Bytes),
            constant(HTTP, "CONNECTION_WINDOW", Bytes),
        ],
        past: "the client waits; more is FLOW_CONTROL_ERROR",
    },
    Row {
        what: "work of an HTTP/2 connection that brings no request and no response forward",
        amount: "{} units; a frame is 1, an answer 2, a reset 4, a fault 8; a response gives {} back",
        places: &[
            constant("server/http/src/h2/waste", "FULL", Count),
            constant("server/http/src/h2/waste", "EARNED", Count),
        ],
        past: "ENHANCE_YOUR_CALM, closed",
    },
    Row {
        what: "of that work, before others have their turn",
        amount: "{} units",
        places: &[constant("server/http/src/h2/waste", "FOR_A_TURN", Count)],
        past: "the connection waits for its next turn",
    },
    Row {
        what: "acknowledgements and resets of an HTTP/2 connection that wait to be sent",
        amount: "{}",
        places: &[constant(HTTP, "CONTROL_FRAMES", Bytes)],
        past: "closed",
    },
    Row {
        what: "use of one key for session tickets",
        amount: "{}",
        places: &[constant("server/certificates/src/tickets", "PERIOD", Time)],
        past: "accepted for as long again, then forgotten",
    },
    Row {
        what: "response of an ACME authority; time for one request",
        amount: "{}; {}",
        places: &[
            constant(ACME, "LARGEST_RESPONSE", Bytes),
            constant(ACME, "REQUEST_TIMEOUT", Time),
        ],
        past: "the try fails; the certificate in use stays",
    },
    Row {
        what: "answer of the database that stores certificates",
        amount: "{}",
        places: &[constant(
            "server/millpond/src/certificate_storage",
            "LIMIT",
            Time,
        )],
        past: "reported, tried again; the certificate in use stays",
    },
    Row {
        what: "lock of the node that asks for certificates, without being prolonged; wait for its end when the server stops",
        amount: "{}; {}",
        places: &[
            field(ACME, "impl Default for AcmeTiming", "lease", Time),
            constant(ACME, "STOP_TIMEOUT", Time),
        ],
        past: "another node asks; the lock is left to its end",
    },
    Row {
        what: "pause after a failed try for a certificate",
        amount: "{}, doubled up to {}; at most {} if the authority asks for it",
        places: &[
            field(ACME, "impl Default for AcmeTiming", "first_retry", Time),
            field(ACME, "impl Default for AcmeTiming", "longest_retry", Time),
            constant("server/certificates/src/acme/retry_after", "LONGEST", Time),
        ],
        past: "tried again",
    },
];

#[cfg(test)]
mod tests {
    use super::Unit;

    #[test]
    fn values_are_written_in_their_units() {
        for (unit, value, text) in [
            (Unit::Bytes, 64 << 10, "64 KiB"),
            (Unit::Bytes, 3_800, "3,800 bytes"),
            (Unit::Count, 262_144, "262,144"),
            (Unit::Count, 999, "999"),
            (Unit::Time, 60_000, "60 s"),
            (Unit::Time, 1_500, "1,500 ms"),
        ] {
            assert_eq!(unit.show(value), text);
        }
    }
}
