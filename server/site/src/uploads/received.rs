//! The files of a form that has arrived, as values of its statements.

use millpond_db::{Error, Value};
use serde_json::{Value as Json, json};

use super::{
    UploadPermit,
    disk::{StoreFailure, StoredFiles},
};
use millpond_site_compile::{
    page::UploadField,
    refusal::{fault_kind, upload::UploadRefusal},
};
use millpond_site_format::file_type::FileType;

/// A file that has arrived.
pub(super) struct ReceivedFile {
    /// Its place among the files that the form declares.
    pub(super) field: usize,
    /// The name that the visitor gave, made safe.
    pub(super) name: String,
    pub(super) kind: &'static FileType,
    pub(super) size: usize,
    pub(super) content: FileContent,
}

/// Place of the content.
pub(super) enum FileContent {
    /// At this address.
    Stored(String),
    Bytes(Vec<u8>),
}

/// The files of a form. Those that are stored are removed when this is dropped, unless the
/// transaction of the form has happened, or may have.
#[derive(Default)]
pub(crate) struct Received {
    pub(super) files: Vec<ReceivedFile>,
    /// Refusals of files that were not taken: one for a field.
    pub(super) refused: Vec<UploadRefusal>,
    /// None for a form that did not come as `multipart/form-data`.
    pub(super) stored: Option<StoredFiles>,
    pub(super) _permit: Option<UploadPermit>,
}

impl Received {
    /// Sets the values of files among those of the form's parameters. What text fields of these
    /// names said is gone.
    pub(crate) fn fill(&mut self, fields: &[UploadField], values: &mut [Value]) {
        let mut files = std::mem::take(&mut self.files);
        for (at, field) in fields.iter().enumerate() {
            let line = &field.line;
            let of_field = files.extract_if(.., |file| file.field == at);
            let of_field: Vec<ReceivedFile> = of_field.collect();
            if line.is_list {
                let all = of_field.iter().map(in_list).collect();
                values[field.place] = Value::from(Json::Array(all));
                continue;
            }
            let further = line.declarations().len();
            values[field.place..field.place + further].fill(Value::Null);
            if let Some(file) = of_field.into_iter().next() {
                let size = i64::try_from(file.size).unwrap_or(i64::MAX);
                values[field.place] = match file.content {
                    FileContent::Stored(address) => Value::from(address.as_str()),
                    FileContent::Bytes(bytes) => Value::Blob(bytes.into()),
                };
                values[field.place + 1] = Value::from(file.name.as_str());
                values[field.place + 2] = Value::from(file.kind.name);
                values[field.place + 3] = Value::Integer(size);
            }
        }
    }

    /// Lists the faults of the files: they were not taken, or are missing. A form that has the name
    /// of a file in place of the file is refused. *Counterexample*: counted as a form without a
    /// file, it would remove the file that is there.
    pub(crate) fn refusals(
        &self,
        uploads: &[UploadField],
        gives: impl Fn(&str) -> bool,
    ) -> Vec<UploadRefusal> {
        let refusals = uploads.iter().enumerate().filter_map(|(at, field)| {
            let line = &field.line;
            let mut refused = self.refused.iter();
            let of_field = |refusal: &&UploadRefusal| refusal.field_name() == Some(&line.name);
            if let Some(refusal) = refused.find(of_field) {
                return Some(refusal.clone());
            }
            let is_named = self.stored.is_none() && gives(&line.name);
            let is_there = self.files.iter().any(|file| file.field == at);
            (is_named || !(is_there || line.is_optional)).then(|| self.missing(&line.name))
        });
        refusals.collect()
    }

    fn missing(&self, name: &str) -> UploadRefusal {
        let wrong = match self.stored {
            Some(_) => "is missing",
            None => {
                "is missing. What has a file is sent as multipart/form-data: a form needs enctype=\"multipart/form-data\""
            }
        };
        UploadRefusal::of_file(400, name, fault_kind::MISSING, wrong.to_owned())
    }

    /// Gives the files their names, durably: to be called before the transaction.
    pub(crate) async fn publish(&self) -> Result<(), UploadRefusal> {
        let Some(stored) = &self.stored else {
            return Ok(());
        };
        stored.publish().await.map_err(|failure| {
            stored.discard();
            not_stored(failure)
        })?;
        // From here to the outcome of the transaction, rows that name the files may be there.
        stored.keep();
        Ok(())
    }

    /// The transaction has failed. The files go if it has certainly not happened; true if that is
    /// not known.
    pub(crate) fn failed(&self, error: &Error) -> bool {
        // A statement that the database has ended is named; a commit that does not return is not.
        let is_unknown = matches!(
            error,
            Error::OutcomeUnknown { .. } | Error::Timeout { sql: None }
        );
        if let Some(stored) = &self.stored {
            if is_unknown {
                return stored.is_used();
            }
            stored.discard();
        }
        false
    }
}

/// A file in a list: with its address, or with its content in hexadecimal digits, from which both
/// databases make bytes.
fn in_list(file: &ReceivedFile) -> Json {
    let (member, content) = match &file.content {
        FileContent::Stored(address) => ("file", address.clone()),
        FileContent::Bytes(bytes) => ("bytes", hexadecimal(bytes)),
    };
    json!({ member: content, "name": file.name, "type": file.kind.name, "size": file.size })
}

fn hexadecimal(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let digits = bytes
        .iter()
        .flat_map(|byte| [byte >> 4, byte & 15])
        .map(|digit| char::from(DIGITS[usize::from(digit)]));
    digits.collect()
}

/// The refusal of what the disk does not take.
pub(super) fn not_stored(failure: StoreFailure) -> UploadRefusal {
    match failure {
        StoreFailure::Full => UploadRefusal::new(507, "The server has no room for files just now."),
        StoreFailure::Broken => UploadRefusal::new(500, "The file could not be stored."),
    }
}
