//! How well and how fast retrieval is, on documents and questions with known answers.
//!
//! # Input
//! Two files of JSON lines, the first one also compressed by gzip. A document is
//! `{"id","time","title","text","files"}`, `time` in seconds since 1970. A question is
//! `{"id","time","text","files","relevant"}`: `relevant` names the documents that answer it, and only
//! documents older than the question count.
//!
//! Questions are ordered by time. What is learnt is learnt on the older half; all figures are those of
//! the newer half. Intervals are those of a bootstrap over questions.

mod corpus;
mod fts;
mod measures;
mod run;
mod scale;
mod table;
mod timing;

pub use corpus::{Corpus, CorpusDocument, CorpusError, CorpusQuestion, read_questions};
pub use measures::{Interval, Quality};
pub use run::{BenchError, BenchTable, SystemRow, run};
pub use scale::{ScaleBuild, ScaleTiming, fill, measure};
pub use table::{scale_table, table};
pub use timing::{Percentiles, Timing, timing};
