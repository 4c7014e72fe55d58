//! Why a form with files is not taken, in words for its visitor.

/// Why a form with files is refused: the status and the sentence for the visitor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UploadRefusal {
    pub status: u16,
    pub sentence: String,
    /// The field that it is about, if a visitor can fill it in.
    pub fault: Option<FileFault>,
}

/// Fault of the file of a field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileFault {
    pub field: String,
    pub kind: &'static str,
    /// To stand behind the field's name.
    pub wrong: String,
}

impl UploadRefusal {
    pub fn new(status: u16, sentence: impl Into<String>) -> Self {
        Self {
            status,
            sentence: sentence.into(),
            fault: None,
        }
    }

    /// The refusal of a file, by what is wrong with it.
    pub fn of_file(status: u16, field: &str, kind: &'static str, wrong: String) -> Self {
        Self {
            status,
            sentence: format!("The file \"{field}\" {}.", wrong.trim_end_matches('.')),
            fault: Some(FileFault {
                field: field.to_owned(),
                kind,
                wrong,
            }),
        }
    }

    /// The field that it is about.
    pub fn field_name(&self) -> Option<&str> {
        self.fault.as_ref().map(|fault| fault.field.as_str())
    }

    pub fn busy() -> Self {
        Self::new(503, "Too many files are being received just now.")
    }
}
