//! A statement that SQLite has accepted.

use std::sync::Arc;

use parking_lot::Mutex;

use super::analysis::Analysis;
use crate::query::{PreparedQuery, QueryAnalysis};

/// One prepared statement, with its analysis for the schema that was seen last.
pub(crate) struct Statement {
    analysis: Mutex<Arc<Analysis>>,
}

impl Statement {
    pub(crate) fn new(analysis: Analysis) -> Self {
        Self {
            analysis: Mutex::new(Arc::new(analysis)),
        }
    }

    pub(crate) fn analysis(&self) -> Arc<Analysis> {
        Arc::clone(&self.analysis.lock())
    }

    pub(crate) fn set_analysis(&self, analysis: Arc<Analysis>) {
        *self.analysis.lock() = analysis;
    }
}

impl PreparedQuery for Statement {
    fn analysis(&self) -> Arc<dyn QueryAnalysis> {
        self.analysis()
    }
}
