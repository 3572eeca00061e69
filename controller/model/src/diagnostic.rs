//! Everything that is wrong with a document, at once, with a caret under each value.

use std::ops::Range;

use miette::{Diagnostic, LabeledSpan, NamedSource, SourceCode};
use serde::{Deserialize, Serialize};

/// One thing that is wrong in a document, where, and what to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// Stable name of the check that found it, such as `profile::unknown-key`.
    pub check: &'static str,
    /// What is wrong: lower case, no full stop.
    pub message: String,
    /// Where, in bytes of the document; `None` where the document as a whole is meant.
    pub span: Option<Range<usize>>,
    /// What to do next.
    pub help: String,
}

/// All problems of one document. Never empty.
#[derive(Debug, Clone)]
pub struct Problems {
    /// What kind of document, such as `board profile`.
    pub kind: &'static str,
    /// Where the document came from: a path, or `built-in NAME`.
    pub origin: String,
    /// The document's text.
    pub source: String,
    /// In document order.
    pub list: Vec<Problem>,
}

impl Problems {
    /// Returns the 1-based line and column (in characters) of a problem.
    pub fn position(&self, problem: &Problem) -> Option<(usize, usize)> {
        let start = problem.span.as_ref()?.start.min(self.source.len());
        let before = self.source.get(..start)?;
        let line = before.matches('\n').count() + 1;
        let column = before.rsplit('\n').next().map_or(0, |l| l.chars().count()) + 1;
        Some((line, column))
    }

    /// Returns each problem with its position, without the text of the document.
    pub fn located(&self) -> Vec<LocatedProblem> {
        let one = |problem: &Problem| {
            let (line, column) = self.position(problem).unzip();
            LocatedProblem {
                file: self.origin.clone(),
                line,
                column,
                check: problem.check.to_owned(),
                message: problem.message.clone(),
                help: problem.help.clone(),
            }
        };
        self.list.iter().map(one).collect()
    }

    /// Returns one renderable diagnostic per problem.
    pub fn diagnostics(&self) -> Vec<ProblemDiagnostic> {
        self.list
            .iter()
            .map(|problem| ProblemDiagnostic {
                problem: problem.clone(),
                source: NamedSource::new(&self.origin, self.source.clone()),
            })
            .collect()
    }
}

impl std::fmt::Display for Problems {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let n = self.list.len();
        let s = if n == 1 { "" } else { "s" };
        write!(f, "{} {} has {n} problem{s}", self.kind, self.origin)?;
        for problem in &self.list {
            match self.position(problem) {
                Some((line, column)) => write!(f, "\n  {}:{line}:{column}: ", self.origin)?,
                None => write!(f, "\n  {}: ", self.origin)?,
            }
            write!(f, "{} ({})", problem.message, problem.help)?;
        }
        Ok(())
    }
}

impl std::error::Error for Problems {}

/// One problem as data, for JSON.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LocatedProblem {
    /// Where the document came from.
    pub file: String,
    /// Line, from 1; nothing where the document as a whole is meant.
    pub line: Option<usize>,
    /// Column in characters, from 1.
    pub column: Option<usize>,
    /// Stable name of the check that found it.
    pub check: String,
    /// What is wrong.
    pub message: String,
    /// What to do next.
    pub help: String,
}

/// One problem with its source, ready for a renderer.
#[derive(Debug)]
pub struct ProblemDiagnostic {
    problem: Problem,
    source: NamedSource<String>,
}

impl std::fmt::Display for ProblemDiagnostic {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.problem.message)
    }
}

impl std::error::Error for ProblemDiagnostic {}

impl Diagnostic for ProblemDiagnostic {
    fn code<'a>(&'a self) -> Option<Box<dyn std::fmt::Display + 'a>> {
        Some(Box::new(self.problem.check))
    }
    fn help<'a>(&'a self) -> Option<Box<dyn std::fmt::Display + 'a>> {
        Some(Box::new(&self.problem.help))
    }
    fn source_code(&self) -> Option<&dyn SourceCode> {
        Some(&self.source)
    }
    fn labels(&self) -> Option<Box<dyn Iterator<Item = LabeledSpan> + '_>> {
        let span = self.problem.span.clone()?;
        Some(Box::new(std::iter::once(LabeledSpan::underline(span))))
    }
}
