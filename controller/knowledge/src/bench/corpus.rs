//! Documents and questions.

use std::collections::HashSet;
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

use flate2::read::MultiGzDecoder;
use serde::Deserialize;
use serde::de::DeserializeOwned;

/// Most bytes of a file, uncompressed.
const MOST: u64 = 4 << 30;

/// Longest line.
const LINE: u64 = 16 << 20;

/// A document.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct CorpusDocument {
    /// Its name.
    pub id: String,
    /// Seconds since 1970.
    pub time: i64,
    /// One line.
    pub title: String,
    /// The rest.
    #[serde(default)]
    pub text: String,
    /// Files that it is about.
    #[serde(default)]
    pub files: Vec<String>,
}

/// A question and the documents that answer it.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct CorpusQuestion {
    /// Its name.
    pub id: String,
    /// Seconds since 1970.
    pub time: i64,
    /// The question.
    pub text: String,
    /// Files that it is about.
    #[serde(default)]
    pub files: Vec<String>,
    /// Names of the documents that answer it.
    pub relevant: Vec<String>,
}

/// Documents and questions, each ordered by time.
#[derive(Debug, Clone, PartialEq)]
pub struct Corpus {
    /// The documents.
    pub documents: Vec<CorpusDocument>,
    /// The questions that an older document answers.
    pub questions: Vec<CorpusQuestion>,
    /// Questions that no older document answers: they are left out.
    pub unanswerable: usize,
}

/// Says why files cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum CorpusError {
    /// The system refused.
    #[error("could not read {}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// A line is not of the form.
    #[error("{}:{line}: not a line of such a file", path.display())]
    Line {
        /// The file.
        path: PathBuf,
        /// The line.
        line: usize,
        /// Why.
        #[source]
        source: serde_json::Error,
    },
    /// There is nothing to measure.
    #[error("{} has fewer than four questions that older documents answer", path.display())]
    TooFew {
        /// The file of questions.
        path: PathBuf,
    },
}

impl Corpus {
    /// Reads both files.
    ///
    /// # Errors
    /// One of them cannot be read, or there is nothing to measure.
    pub fn read(documents: &Path, questions: &Path) -> Result<Self, CorpusError> {
        let mut all: Vec<CorpusDocument> = lines(documents)?;
        all.sort_by(|one, other| one.time.cmp(&other.time).then(one.id.cmp(&other.id)));
        let mut found: Vec<CorpusQuestion> = lines(questions)?;
        found.sort_by(|one, other| one.time.cmp(&other.time).then(one.id.cmp(&other.id)));
        let count = found.len();
        let times: std::collections::HashMap<&str, i64> =
            all.iter().map(|document| (document.id.as_str(), document.time)).collect();
        for question in &mut found {
            let mut seen = HashSet::new();
            let time = question.time;
            let older = |id: &String| times.get(id.as_str()).is_some_and(|at| *at < time);
            question.relevant.retain(|id| older(id) && seen.insert(id.clone()));
        }
        found.retain(|question| !question.relevant.is_empty());
        if found.len() < 4 {
            return Err(CorpusError::TooFew { path: questions.to_owned() });
        }
        Ok(Self { unanswerable: count - found.len(), documents: all, questions: found })
    }
}

/// Reads questions alone, for measurements that need no answers.
///
/// # Errors
/// The file cannot be read, or holds no question.
pub fn read_questions(path: &Path) -> Result<Vec<CorpusQuestion>, CorpusError> {
    let found: Vec<CorpusQuestion> = lines(path)?;
    if found.is_empty() {
        return Err(CorpusError::TooFew { path: path.to_owned() });
    }
    Ok(found)
}

fn lines<T: DeserializeOwned>(path: &Path) -> Result<Vec<T>, CorpusError> {
    let failed = |source| CorpusError::Io { path: path.to_owned(), source };
    if !fs::metadata(path).map_err(failed)?.is_file() {
        return Err(failed(io::Error::other("it is no file")));
    }
    let file = File::open(path).map_err(failed)?;
    let compressed = path.extension().is_some_and(|end| end == "gz");
    let plain: Box<dyn Read> =
        if compressed { Box::new(MultiGzDecoder::new(file)) } else { Box::new(file) };
    let mut reader = BufReader::new(plain.take(MOST));
    let mut found = Vec::new();
    for number in 1.. {
        let mut line = Vec::new();
        let read = (&mut reader).take(LINE).read_until(b'\n', &mut line).map_err(failed)?;
        if read == 0 {
            break;
        }
        if line.iter().all(u8::is_ascii_whitespace) {
            continue;
        }
        let read = serde_json::from_slice(&line);
        found.push(read.map_err(|source| CorpusError::Line {
            path: path.to_owned(),
            line: number,
            source,
        })?);
    }
    Ok(found)
}
