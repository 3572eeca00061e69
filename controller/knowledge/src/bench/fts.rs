//! Full-text search of SQLite, to compare with.

use rusqlite::{Connection, params};

use super::corpus::CorpusDocument;
use crate::text::each_token;

/// How text is given to FTS5.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FtsText {
    /// As it is, with the default tokenizer.
    Default,
    /// As tokens of this crate, the title twice.
    Prepared,
}

/// A full-text index in memory; the row of a document is its place in the order of time.
pub(super) struct FtsIndex {
    connection: Connection,
    text: FtsText,
}

fn prepared(text: &str) -> String {
    let mut words = String::new();
    each_token(text, |token| {
        words.push_str(token);
        words.push(' ');
    });
    words
}

impl FtsIndex {
    pub(super) fn build(documents: &[CorpusDocument], text: FtsText) -> rusqlite::Result<Self> {
        let mut connection = Connection::open_in_memory()?;
        let tokenizer = match text {
            FtsText::Default => "unicode61",
            FtsText::Prepared => "unicode61 tokenchars ''_''",
        };
        connection.execute_batch(&format!(
            "CREATE VIRTUAL TABLE words USING fts5 (text, content = '', tokenize = '{tokenizer}')"
        ))?;
        let change = connection.transaction()?;
        {
            let mut insert = change.prepare("INSERT INTO words (rowid, text) VALUES (?1, ?2)")?;
            for (row, document) in (1i64..).zip(documents) {
                let CorpusDocument { title, text: body, .. } = document;
                let text = match text {
                    FtsText::Default => format!("{title}\n{body}"),
                    FtsText::Prepared => {
                        let title = prepared(title);
                        format!("{title} {title} {}", prepared(body))
                    }
                };
                insert.execute(params![row, text])?;
            }
        }
        change.commit()?;
        Ok(Self { connection, text })
    }

    /// Returns the places of the documents that fit best among the first `before`.
    pub(super) fn best(
        &self,
        question: &str,
        before: usize,
        most: usize,
    ) -> rusqlite::Result<Vec<usize>> {
        let mut terms: Vec<String> = Vec::new();
        match self.text {
            FtsText::Default => {
                let words = question.split(|c: char| !c.is_alphanumeric());
                terms.extend(words.filter(|word| !word.is_empty()).map(str::to_lowercase));
            }
            FtsText::Prepared => each_token(question, |token| terms.push(token.to_owned())),
        }
        terms.sort();
        terms.dedup();
        if terms.is_empty() {
            return Ok(Vec::new());
        }
        let question =
            terms.iter().map(|term| format!("\"{term}\"")).collect::<Vec<_>>().join(" OR ");
        let select =
            "SELECT rowid FROM words WHERE words MATCH ?1 AND rowid <= ?2 ORDER BY rank LIMIT ?3";
        let mut query = self.connection.prepare(select)?;
        let rows = query
            .query_map(params![question, before as u64, most as u64], |row| row.get::<_, i64>(0))?;
        rows.map(|row| Ok(usize::try_from(row?).unwrap_or(1) - 1)).collect()
    }
}
