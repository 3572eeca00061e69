//! What the reranker looks at.

use std::collections::BTreeSet;

use jiff::Timestamp;

use super::question::{Question, RetrievalContext};
use super::terms::folder_of;
use crate::index::LexicalIndex;
use crate::text::each_token;
use crate::unit::{KnowledgeUnit, VerificationStatus};

/// Names of the features, in the order of [`Features`]. Each lies between 0 and 1.
pub const FEATURES: [&str; 13] = [
    // BM25 score, as a share of the best one.
    "words",
    // Share of the title's terms that the question has, by their rarity.
    "title_in_question",
    // Share of the question's first line that the title has.
    "question_in_title",
    // Share of the question's files that the unit is about, by their rarity.
    "files",
    // The same as a share of the files of both.
    "same_files",
    // Whether it is about a file in the same folder.
    "folder",
    // Cosine of the embeddings; 0 without a model.
    "meaning",
    // Whether the signature is the one that is asked for.
    "signature",
    // Whether it is about the board that is asked for.
    "board",
    // Whether it is verified.
    "verified",
    // Whether it was refuted.
    "rejected",
    // How often it was seen: 0 for once, 1 for a hundred times.
    "seen",
    // How old it is: 0 for today, 1 for ten years.
    "age",
];

/// Values of the features of one unit.
pub type Features = [f32; FEATURES.len()];

/// Days that count as old.
const OLD: f32 = 3650.0;

/// Returns an age as a share of ten years, on a logarithmic scale.
fn age_share(created: Timestamp, now: Timestamp) -> f32 {
    let days = (now.as_second() - created.as_second()).max(0) as f32 / 86_400.0;
    ((1.0 + days).ln() / (1.0 + OLD).ln()).min(1.0)
}

/// What all units of one answer are compared with.
pub(crate) struct FeatureSource<'a> {
    context: &'a RetrievalContext,
    question: &'a Question,
    index: &'a LexicalIndex,
    first_line: f32,
    best: f32,
    now: Timestamp,
    folders: BTreeSet<&'a str>,
    /// Rarity of the files of the question, together.
    files: f32,
}

impl<'a> FeatureSource<'a> {
    pub(crate) fn new(
        context: &'a RetrievalContext,
        question: &'a Question,
        index: &'a LexicalIndex,
        best: f32,
        now: Timestamp,
    ) -> Self {
        let first_line = question.words.iter().filter(|(_, first)| **first);
        let first_line = first_line.filter_map(|(word, _)| index.rarity(word)).sum();
        let folders = question.files.iter().filter_map(|file| folder_of(file)).collect();
        let files = question.files.iter().map(|file| file_rarity(index, file)).sum();
        Self { context, question, index, first_line, best, now, folders, files }
    }

    /// Returns the features of a unit with a BM25 score and a cosine.
    pub(crate) fn of(&self, unit: &KnowledgeUnit, score: f32, cosine: f32) -> Features {
        let share = |part: f32, of: f32| if of > 0.0 { (part / of).clamp(0.0, 1.0) } else { 0.0 };
        let flag = f32::from;
        let (mut title, mut asked, mut covered) = (0.0, 0.0, 0.0);
        let mut seen = BTreeSet::new();
        each_token(&unit.content.title, |token| {
            if seen.contains(token) {
                return;
            }
            seen.insert(token.to_owned());
            let Some(rarity) = self.index.rarity(token) else { return };
            title += rarity;
            if let Some(first) = self.question.words.get(token) {
                asked += rarity;
                covered += if *first { rarity } else { 0.0 };
            }
        });
        let metadata = &unit.metadata;
        let (mut shared, mut others) = (0.0, 0.0);
        if !self.question.files.is_empty() {
            for file in &metadata.files {
                let rarity = file_rarity(self.index, file);
                match self.question.files.contains(file) {
                    true => shared += rarity,
                    false => others += rarity,
                }
            }
        }
        let folder = metadata.files.iter().filter_map(|file| folder_of(file));
        let folder =
            !self.folders.is_empty() && folder.into_iter().any(|f| self.folders.contains(f));
        let equal = |one: &Option<String>, other: &Option<String>| one.is_some() && one == other;
        let seen = (unit.audit.count.max(1) as f32).log10() / 2.0;
        [
            share(score, self.best),
            share(asked, title),
            share(covered, self.first_line),
            share(shared, self.files),
            share(shared, self.files + others),
            flag(u8::from(folder)),
            cosine.clamp(0.0, 1.0),
            flag(u8::from(equal(&metadata.signature, &self.context.signature))),
            flag(u8::from(equal(&metadata.board, &self.context.board))),
            flag(u8::from(unit.standing.status == VerificationStatus::Verified)),
            flag(u8::from(unit.standing.status == VerificationStatus::Rejected)),
            seen.clamp(0.0, 1.0),
            age_share(unit.audit.created_at, self.now),
        ]
    }
}

/// A file of which there are thousands of units says little.
fn file_rarity(index: &LexicalIndex, file: &str) -> f32 {
    index.rarity(&format!("=file:{file}")).unwrap_or(1.0)
}
