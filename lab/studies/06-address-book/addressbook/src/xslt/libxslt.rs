//! The few functions of libxslt and libxml2 that a transformation needs, and their rules.
// The functions are C's. Each block says which rule of theirs it keeps.
#![allow(unsafe_code)]

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::ptr::{self, NonNull};
use std::slice;

use libloading::Library;

/// Debian's name of the library, without the version of the package.
const LIBRARY: &str = "libxslt.so.1";

/// No messages on standard error, no access to the network.
const PARSE_OPTIONS: c_int = (1 << 5) | (1 << 6) | (1 << 11);

/// Message of a fault, and its line (0 if the line is not known).
type Failure = (usize, String);

/// The beginning of `xmlError`.
#[repr(C)]
struct XmlError {
    domain: c_int,
    code: c_int,
    message: *const c_char,
    level: c_int,
    file: *const c_char,
    line: c_int,
}

type Object = *mut c_void;
type CText = *const c_char;
type Free = unsafe extern "C" fn(Object);

/// The functions, by their names in C. They are valid as long as the library is loaded.
struct Functions {
    xml_read_memory: unsafe extern "C" fn(CText, c_int, CText, CText, c_int) -> Object,
    xml_get_int_subset: unsafe extern "C" fn(Object) -> Object,
    xml_get_last_error: unsafe extern "C" fn() -> *const XmlError,
    xml_free_doc: Free,
    /// A variable in C.
    xml_free: *const Free,
    xslt_parse_stylesheet_doc: unsafe extern "C" fn(Object) -> Object,
    xslt_new_transform_context: unsafe extern "C" fn(Object, Object) -> Object,
    xslt_free_transform_context: Free,
    xslt_quote_one_user_param: unsafe extern "C" fn(Object, CText, CText) -> c_int,
    xslt_apply_stylesheet_user:
        unsafe extern "C" fn(Object, Object, *const CText, CText, Object, Object) -> Object,
    xslt_save_result_to_string:
        unsafe extern "C" fn(*mut Object, *mut c_int, Object, Object) -> c_int,
    _library: Library,
}

impl Functions {
    fn load() -> Result<Self, libloading::Error> {
        // SAFETY: the initializers of libxslt, libxml2 and what these use want nothing of the
        // caller. Each type above is that of the function of this name in the headers of libxslt
        // 1.1 and libxml2 2, whose interfaces in C have not changed since 1.1.25 and 2.7.
        unsafe {
            let library = Library::new(LIBRARY)?;
            let init = library.get::<unsafe extern "C" fn()>("xmlInitParser")?;
            init();
            Ok(Self {
                xml_read_memory: *library.get("xmlReadMemory")?,
                xml_get_int_subset: *library.get("xmlGetIntSubset")?,
                xml_get_last_error: *library.get("xmlGetLastError")?,
                xml_free_doc: *library.get("xmlFreeDoc")?,
                xml_free: *library.get("xmlFree")?,
                xslt_parse_stylesheet_doc: *library.get("xsltParseStylesheetDoc")?,
                xslt_new_transform_context: *library.get("xsltNewTransformContext")?,
                xslt_free_transform_context: *library.get("xsltFreeTransformContext")?,
                xslt_quote_one_user_param: *library.get("xsltQuoteOneUserParam")?,
                xslt_apply_stylesheet_user: *library.get("xsltApplyStylesheetUser")?,
                xslt_save_result_to_string: *library.get("xsltSaveResultToString")?,
                _library: library,
            })
        }
    }

    /// The tree of a document.
    fn parse(&self, xml: &[u8]) -> Result<Owned, Failure> {
        let too_long = |_| (0, "longer than 2 GB".to_owned());
        let length = c_int::try_from(xml.len()).map_err(too_long)?;
        // SAFETY: the text is read up to `length` and not kept; URL and encoding may be null.
        let tree = unsafe {
            (self.xml_read_memory)(
                xml.as_ptr().cast(),
                length,
                ptr::null(),
                ptr::null(),
                PARSE_OPTIONS,
            )
        };
        let free = self.xml_free_doc;
        let document = Owned::new(tree, free).ok_or_else(|| self.last_error())?;
        // SAFETY: the document is live.
        let document_type = unsafe { (self.xml_get_int_subset)(document.as_ptr()) };
        if !document_type.is_null() {
            // Its entities could be of any size where they are used.
            return Err((0, "a document type is declared; leave it out".to_owned()));
        }
        Ok(document)
    }

    /// Returns the last fault that libxml2 found in this thread.
    fn last_error(&self) -> Failure {
        // SAFETY: the error is null or lives until this thread calls libxml2 again; its message is
        // null or ends with a zero.
        unsafe {
            let Some(error) = (self.xml_get_last_error)().as_ref() else {
                return (0, "cannot be read".to_owned());
            };
            let message = match error.message.is_null() {
                true => "cannot be read".into(),
                false => CStr::from_ptr(error.message).to_string_lossy(),
            };
            let line = usize::try_from(error.line).unwrap_or(0);
            (line, message.trim_end().to_owned())
        }
    }
}

/// An object of the library that is freed when it is dropped.
struct Owned {
    object: NonNull<c_void>,
    free: Free,
}

impl Owned {
    fn new(object: Object, free: Free) -> Option<Self> {
        NonNull::new(object).map(|object| Self { object, free })
    }

    fn as_ptr(&self) -> Object {
        self.object.as_ptr()
    }
}

impl Drop for Owned {
    fn drop(&mut self) {
        // SAFETY: this is the only owner, and `free` is the function for objects of this type.
        unsafe { (self.free)(self.as_ptr()) }
    }
}

/// A stylesheet that any thread may use. It is never freed: the program has one.
pub(super) struct CompiledStylesheet {
    functions: Functions,
    stylesheet: NonNull<c_void>,
}

// SAFETY: libxslt only reads a compiled stylesheet, whichever thread runs it, and counts references
// to its dictionary under a lock; each transformation has a context of its own. The functions and
// the address of `xmlFree` do not change.
unsafe impl Send for CompiledStylesheet {}
// SAFETY: as above.
unsafe impl Sync for CompiledStylesheet {}

impl CompiledStylesheet {
    /// Loads the library and compiles a stylesheet. `Err` says what to do.
    pub(super) fn compile(text: &str) -> Result<Self, String> {
        let functions = Functions::load().map_err(|error| {
            format!("XSLT needs libxslt, which comes with the program xsltproc: {error}")
        })?;
        let tree = functions.parse(text.as_bytes()).map_err(|(_, what)| what)?;
        // SAFETY: the tree is a document. If it compiles, it belongs to the stylesheet.
        let compiled = unsafe { (functions.xslt_parse_stylesheet_doc)(tree.as_ptr()) };
        let stylesheet = NonNull::new(compiled).ok_or("the stylesheet does not compile")?;
        std::mem::forget(tree);
        Ok(Self {
            functions,
            stylesheet,
        })
    }

    /// The result for a document, with parameters that are texts.
    pub(super) fn apply(&self, xml: &[u8], parameters: &[(&str, &str)]) -> Result<String, Failure> {
        let functions = &self.functions;
        let stylesheet = self.stylesheet.as_ptr();
        let document = functions.parse(xml)?;
        let failed = || (0, "the transformation failed".to_owned());
        // SAFETY: both are live, and the context is dropped before the document.
        let context =
            unsafe { (functions.xslt_new_transform_context)(stylesheet, document.as_ptr()) };
        let free = functions.xslt_free_transform_context;
        let context = Owned::new(context, free).ok_or_else(failed)?;
        for (name, value) in parameters {
            let zero = |_| (0, format!("a zero byte is in {name}"));
            let name_in_c = CString::new(*name).map_err(zero)?;
            let value = CString::new(*value).map_err(zero)?;
            // SAFETY: both texts end with a zero and are copied.
            let status = unsafe {
                (functions.xslt_quote_one_user_param)(
                    context.as_ptr(),
                    name_in_c.as_ptr(),
                    value.as_ptr(),
                )
            };
            if status != 0 {
                return Err(failed());
            }
        }
        // SAFETY: all three are live; parameters, output and profile may be null.
        let result = unsafe {
            (functions.xslt_apply_stylesheet_user)(
                stylesheet,
                document.as_ptr(),
                ptr::null(),
                ptr::null(),
                ptr::null_mut(),
                context.as_ptr(),
            )
        };
        let result = Owned::new(result, functions.xml_free_doc).ok_or_else(failed)?;
        self.serialize(&result)
    }

    /// The text of a result, as the stylesheet's `output` says.
    fn serialize(&self, result: &Owned) -> Result<String, Failure> {
        let functions = &self.functions;
        let (mut text, mut length) = (ptr::null_mut(), 0);
        // SAFETY: the result was made by this stylesheet; a text is stored at most once, and
        // `xmlFree` frees it.
        let (status, text) = unsafe {
            let status = (functions.xslt_save_result_to_string)(
                &raw mut text,
                &raw mut length,
                result.as_ptr(),
                self.stylesheet.as_ptr(),
            );
            (status, Owned::new(text, *functions.xml_free))
        };
        if status != 0 {
            return Err((0, "the result cannot be written".to_owned()));
        }
        let (Some(text), Ok(length)) = (text, usize::try_from(length)) else {
            return Ok(String::new());
        };
        // SAFETY: `length` bytes are there.
        let bytes = unsafe { slice::from_raw_parts(text.as_ptr().cast::<u8>(), length) };
        Ok(String::from_utf8_lossy(bytes).into_owned())
    }
}
