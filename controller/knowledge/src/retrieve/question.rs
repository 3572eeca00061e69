//! What is asked, and what it is taken for.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::index::{DocFacts, TermWeight};
use crate::text::{EntityKind, Synonyms, each_token, entities};
use crate::unit::VerificationStatus;

/// Weight of a word that only means the same as one of the question.
const SYNONYM: f32 = 0.3;

/// Most bytes of a question. What is longer is a log; its beginning says what failed.
const MOST: usize = 64 << 10;

/// Most different terms.
const TERMS: usize = 600;

/// Files of a question that are looked at.
const FILES: usize = 32;

/// Who asks. The time-outs are upper bounds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum KnowledgeCaller {
    /// Work on code, before it is changed.
    Code,
    /// A test that failed.
    Test,
    /// The search for a root cause.
    Analysis,
    /// Capture at the end of a task.
    Capture,
    /// A person.
    Person,
}

impl KnowledgeCaller {
    /// Returns the longest that this caller may wait.
    pub fn bound(self) -> Duration {
        Duration::from_secs(match self {
            Self::Code | Self::Test | Self::Person => 30,
            Self::Analysis => 60,
            Self::Capture => 120,
        })
    }
}

/// A search and its limits.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RetrievalContext {
    /// The question: words, a line, or a whole log.
    pub query: String,
    /// The line of products that units must belong to.
    pub product_line: Option<String>,
    /// The kind of board that units must be about, or about none.
    pub board: Option<String>,
    /// Tags that units must have.
    pub tags: Vec<String>,
    /// Files that the question is about; those that its text names count, too.
    pub files: Vec<String>,
    /// Signature of a failure: units that have it come first.
    pub signature: Option<String>,
    /// Units must not be older.
    pub since: Option<Timestamp>,
    /// Units must be older.
    pub until: Option<Timestamp>,
    /// Least confidence of units.
    pub min_confidence: f64,
    /// Most units of the answer.
    pub max_results: usize,
    /// Whether expired units count.
    pub include_expired: bool,
    /// Whether archived units count.
    pub include_archived: bool,
    /// How long the search may take, within the bound of the caller.
    pub timeout: Duration,
    /// Who asks.
    pub caller: KnowledgeCaller,
}

impl RetrievalContext {
    /// A question with the default limits.
    pub fn new(query: impl Into<String>) -> Self {
        Self {
            query: query.into(),
            product_line: None,
            board: None,
            tags: Vec::new(),
            files: Vec::new(),
            signature: None,
            since: None,
            until: None,
            min_confidence: 0.5,
            max_results: 10,
            include_expired: false,
            include_archived: false,
            timeout: Duration::from_millis(100),
            caller: KnowledgeCaller::Person,
        }
    }

    /// Returns how long the search may take.
    pub fn limit(&self) -> Duration {
        self.timeout.min(self.caller.bound())
    }

    /// Tells whether a unit may be in the answer, as far as its facts say.
    pub(crate) fn admits(&self, facts: &DocFacts) -> bool {
        let expired = VerificationStatus::ALL.get(usize::from(facts.status))
            == Some(&VerificationStatus::Expired);
        let archived = facts.archived && !(expired && self.include_expired);
        (!archived || self.include_archived)
            && (!expired || self.include_expired || self.include_archived)
            && f64::from(facts.confidence) >= self.min_confidence * 1000.0 - 0.5
            && self.since.is_none_or(|since| facts.created >= since.as_second())
            && self.until.is_none_or(|until| facts.created < until.as_second())
    }

    /// Returns terms of metadata that units must hold.
    pub(crate) fn required(&self) -> Vec<String> {
        let tags = self.tags.iter().map(|tag| format!("=tag:{}", tag.trim().to_lowercase()));
        let line = self.product_line.iter().map(|line| format!("=line:{line}"));
        tags.chain(line).collect()
    }
}

/// A question, prepared.
#[derive(Debug, Clone, Default)]
pub(crate) struct Question {
    /// Terms to look for.
    pub(crate) terms: Vec<TermWeight>,
    /// The terms of its text, and whether each stands in its first line.
    pub(crate) words: BTreeMap<String, bool>,
    /// Files that it is about.
    pub(crate) files: Vec<String>,
}

impl Question {
    pub(crate) fn of(context: &RetrievalContext, synonyms: &Synonyms) -> Self {
        let text = context.query.trim_start();
        let text = &text[..text.floor_char_boundary(MOST)];
        let (first, rest) = text.split_once('\n').unwrap_or((text, ""));
        let mut words: BTreeMap<String, bool> = BTreeMap::new();
        for (line, is_first) in [(first, true), (rest, false)] {
            each_token(line, |token| {
                if words.len() < TERMS && !words.contains_key(token) {
                    words.insert(token.to_owned(), is_first);
                }
            });
        }
        let mut terms: BTreeMap<String, f32> =
            words.keys().map(|word| (word.clone(), 1.0)).collect();
        for word in words.keys() {
            for other in synonyms.of(word) {
                terms.entry(other.clone()).or_insert(SYNONYM);
            }
        }
        let terms = terms.into_iter().map(|(term, weight)| TermWeight { term, weight }).collect();
        let mut files = context.files.clone();
        let named = entities(text).into_iter().filter(|entity| entity.kind == EntityKind::File);
        // A name without a folder is no path of a file, and is found as a word.
        files.extend(named.map(|entity| entity.name).filter(|name| name.contains('/')));
        files.sort();
        files.dedup();
        files.truncate(FILES);
        Self { terms, words, files }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_question_has_its_words_their_synonyms_and_its_files() {
        let context = RetrievalContext::new("hang in uart\nsee src/ring.c, twice");
        let question = Question::of(&context, &Synonyms::built_in().unwrap());
        assert_eq!(question.files, ["src/ring.c"]);
        assert_eq!(question.words.get("hang"), Some(&true));
        assert_eq!(question.words.get("twice"), Some(&false));
        let weight = |term: &str| question.terms.iter().find(|t| t.term == term).map(|t| t.weight);
        assert_eq!(weight("hang"), Some(1.0));
        assert_eq!(weight("freeze"), Some(SYNONYM));
    }

    #[test]
    fn a_question_of_any_length_has_bounds() {
        let text: String = (0..100_000).map(|n| format!("w{n}q ")).collect();
        let question = Question::of(&RetrievalContext::new(text), &Synonyms::default());
        assert_eq!(question.words.len(), TERMS);
    }

    #[test]
    fn expired_and_archived_units_are_found_on_demand() {
        let plain = RetrievalContext::new("x");
        let expired = RetrievalContext { include_expired: true, ..plain.clone() };
        let archived = RetrievalContext { include_archived: true, ..plain.clone() };
        let facts = |status: u8, archived| DocFacts {
            status,
            archived,
            confidence: 500,
            ..DocFacts::default()
        };
        let all = [facts(0, false), facts(0, true), facts(3, true)];
        let found = |context: &RetrievalContext| all.map(|facts| context.admits(&facts));
        assert_eq!(found(&plain), [true, false, false]);
        assert_eq!(found(&expired), [true, false, true]);
        assert_eq!(found(&archived), [true, true, true]);
        let sure = RetrievalContext { min_confidence: 0.6, ..plain };
        assert_eq!(found(&sure), [false; 3]);
    }
}
