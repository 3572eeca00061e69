//! Problems as they are found.

use std::cell::RefCell;
use std::ops::Range;

use crate::{Problem, Problems};

/// Most problems of one document that are kept: more than a user corrects in one go, and few enough
/// that a hostile document costs little to report on.
const MAX_FINDINGS: usize = 100;

/// Collects the problems of one document while it is read and lowered.
///
/// Shared by reference between readers, hence the cell.
#[derive(Debug, Default)]
pub struct Findings {
    list: RefCell<Vec<Problem>>,
}

impl Findings {
    /// Starts with nothing found.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a problem. `check` is the stable name of the check, `message` says what is
    /// wrong, `help` what to do.
    pub fn add(
        &self,
        check: &'static str,
        span: Option<Range<usize>>,
        message: impl Into<String>,
        help: impl Into<String>,
    ) {
        let mut list = self.list.borrow_mut();
        if list.len() < MAX_FINDINGS {
            let (message, help) = (message.into(), help.into());
            list.push(Problem { check, message, span, help });
        }
    }

    /// Tells whether nothing was found so far.
    pub fn is_empty(&self) -> bool {
        self.list.borrow().is_empty()
    }

    /// Hands out the lowered document if nothing was found, else all problems in
    /// document order.
    ///
    /// # Errors
    /// All problems. A missing value without any problem becomes one, too.
    pub fn finish<T>(
        self,
        kind: &'static str,
        origin: &str,
        text: &str,
        value: Option<T>,
    ) -> Result<T, Problems> {
        let mut list = self.list.into_inner();
        match value {
            Some(value) if list.is_empty() => return Ok(value),
            None if list.is_empty() => list.push(Problem {
                check: "document::incomplete",
                message: format!("the {kind} is incomplete"),
                span: None,
                help: "compare it with one that is shipped".to_owned(),
            }),
            Some(_) | None => {}
        }
        list.sort_by_key(|problem| problem.span.as_ref().map_or(0, |span| span.start));
        list.dedup();
        Err(Problems { kind, origin: origin.to_owned(), source: text.to_owned(), list })
    }
}
