//! The evidence bundle: what an agent is given, the same for each. Pure: files in, files out.
//!
//! Owns the names of the files, the share of the budget that each has, and the marks that say what is
//! left out. What targets and logs say stands in files of its own, so that it is never part of the task.
//!
//! # Design
//! Each file has a share of the budget that no other file can take, so that two hundred suspects leave
//! no agent without the log. What a file does not need of its share goes to the others, in the order of
//! [`BundlePart::ALL`].

use serde_json::{Value, json};

use crate::redact::Redactor;

/// Bytes of text for one token, roughly: English and C have three to four.
const BYTES_PER_TOKEN: usize = 4;

/// Smallest part of a file that is worth keeping, in bytes.
const MIN_PART: usize = 200;

/// Bytes that are kept for the note in the task that names the files that are cut: ten names.
const NOTE: usize = 400;

/// What a file of a bundle is, in the order in which the budget is given out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum BundlePart {
    /// What is to be reached, and in which form a proposal is expected.
    Task,
    /// What may change.
    Policy,
    /// What failed: cause, signature, first bad line and where it stands.
    Failure,
    /// Lines that may hold the fault.
    Suspects,
    /// What was tried, and how it ended.
    Attempts,
    /// What a model takes for the cause: a claim.
    Analysis,
    /// Lines of source around the suspects.
    Source,
    /// Output of the last build that failed.
    Build,
    /// Output of the board: the beginning, what is around the first bad line, the end.
    Log,
    /// What helped with a failure like this one.
    Similar,
    /// Files that exist.
    Files,
}

/// The part of a list that is kept where it has to be cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kept {
    First,
    Last,
}

impl BundlePart {
    /// Lists all, in their order.
    pub const ALL: [Self; 11] = [
        Self::Task,
        Self::Policy,
        Self::Failure,
        Self::Suspects,
        Self::Attempts,
        Self::Analysis,
        Self::Source,
        Self::Build,
        Self::Log,
        Self::Similar,
        Self::Files,
    ];

    /// Returns the name of its file.
    pub fn file_name(self) -> &'static str {
        match self {
            Self::Task => "TASK.md",
            Self::Policy => "policy.md",
            Self::Failure => "failure.json",
            Self::Suspects => "ranked.json",
            Self::Attempts => "attempts.json",
            Self::Analysis => "analysis.json",
            Self::Source => "source.txt",
            Self::Build => "build.txt",
            Self::Log => "log.txt",
            Self::Similar => "similar.json",
            Self::Files => "files.txt",
        }
    }

    /// Returns the percentage of the budget that no other file can take: together 100.
    fn share(self) -> usize {
        match self {
            Self::Task | Self::Policy | Self::Analysis | Self::Similar | Self::Files => 4,
            Self::Failure | Self::Build => 8,
            Self::Suspects => 12,
            Self::Attempts => 16,
            Self::Source | Self::Log => 18,
        }
    }

    /// Tells whether its text is that of source files.
    fn is_source(self) -> bool {
        // What is said of an attempt has lost its secrets as a row of the journal; its patch is source.
        matches!(self, Self::Source | Self::Attempts)
    }

    /// Returns the rows that are kept where the list is too long: of attempts the last.
    fn kept(self) -> Kept {
        if self == Self::Attempts { Kept::Last } else { Kept::First }
    }
}

/// What a file of a bundle is made of.
#[derive(Debug, Clone, PartialEq)]
pub enum BundleContent {
    /// Text, which is cut in its middle, at line ends.
    Text(String),
    /// A JSON array with a line for each item, which is cut by items and stays JSON.
    Rows(Vec<Value>),
}

/// A file of a bundle.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BundleFile {
    /// What it is.
    pub part: BundlePart,
    /// Its text.
    pub text: String,
    /// Whether something was left out.
    pub truncated: bool,
}

/// A bundle that fits its budget.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bundle {
    /// Its files, in order.
    pub files: Vec<BundleFile>,
    /// What has no file, because the budget is too small for it.
    pub dropped: Vec<BundlePart>,
}

impl Bundle {
    /// Says which files are cut, and which are missing; empty where all are whole.
    pub fn left_out(&self) -> String {
        let names = |parts: Vec<BundlePart>| {
            parts.into_iter().map(BundlePart::file_name).collect::<Vec<_>>().join(", ")
        };
        let cut = self.files.iter().filter(|file| file.truncated).map(|file| file.part);
        let (cut, dropped) = (names(cut.collect()), names(self.dropped.clone()));
        let said = [("cut", cut), ("left out", dropped)].into_iter();
        let said = said.filter(|(_, names)| !names.is_empty());
        said.map(|(what, names)| format!("{what}: {names}")).collect::<Vec<_>>().join("; ")
    }
}

/// A file before it is cut, without secrets.
enum Whole {
    Text(String),
    Rows(Vec<String>),
}

impl Whole {
    fn of(part: BundlePart, content: BundleContent, redactor: &Redactor) -> Self {
        match content {
            BundleContent::Text(text) if part.is_source() => Self::Text(redactor.source(&text)),
            BundleContent::Text(text) => Self::Text(redactor.text(&text)),
            BundleContent::Rows(rows) => {
                let row = |mut row: Value| {
                    if part.is_source() {
                        redactor.source_value(&mut row);
                    } else {
                        redactor.value(&mut row);
                    }
                    row.to_string()
                };
                Self::Rows(rows.into_iter().map(row).collect())
            }
        }
    }

    fn len(&self) -> usize {
        match self {
            Self::Text(text) => text.len(),
            Self::Rows(rows) => array_len(rows),
        }
    }

    /// Returns as much as fits, and whether that is all; nothing where too little would be left.
    fn within(self, part: BundlePart, most: usize) -> Option<(String, bool)> {
        let is_whole = self.len() <= most;
        let text = match self {
            Self::Text(text) if is_whole => text,
            Self::Text(text) => cut(&text, most)?,
            Self::Rows(rows) if is_whole => array(&rows),
            Self::Rows(rows) => array(&cut_rows(rows, part.kept(), most)?),
        };
        Some((text, is_whole))
    }
}

/// Makes a bundle that fits a number of tokens. Secrets are removed first; then each part gets its
/// share, and what it needs of what the others leave. What does not fit is cut, with a mark that says
/// how much is missing, and named at the end of the task.
pub fn bundle(
    mut parts: Vec<(BundlePart, BundleContent)>,
    tokens: usize,
    redactor: &Redactor,
) -> Bundle {
    parts.sort_by_key(|(part, _)| *part);
    let budget = tokens.saturating_mul(BYTES_PER_TOKEN);
    let parts: Vec<_> = parts
        .into_iter()
        .map(|(part, content)| (part, Whole::of(part, content, redactor)))
        .collect();
    let shared = budget.saturating_sub(NOTE);
    let mut rooms: Vec<_> =
        parts.iter().map(|(part, text)| text.len().min(shared / 100 * part.share())).collect();
    let mut left = shared.saturating_sub(rooms.iter().sum());
    for ((_, text), room) in parts.iter().zip(&mut rooms) {
        let more = (text.len() - *room).min(left);
        *room += more;
        left -= more;
    }
    let mut made = Bundle { files: Vec::new(), dropped: Vec::new() };
    for ((part, text), room) in parts.into_iter().zip(rooms) {
        match text.within(part, room) {
            Some((text, whole)) => {
                made.files.push(BundleFile { part, text, truncated: !whole });
            }
            None => made.dropped.push(part),
        }
    }
    let note = made.left_out();
    let task = made.files.first_mut().filter(|file| file.part == BundlePart::Task);
    if let Some(task) = task.filter(|_| !note.is_empty()) {
        task.text.push_str(&format!("\nNot all of the evidence fits: {note}.\n"));
    }
    made
}

/// Keeps the beginning and the end of a text; nothing where too little would be left.
fn cut(text: &str, most: usize) -> Option<String> {
    let mark = |bytes: usize| format!("[{bytes} bytes are left out here]\n");
    let room = most.checked_sub(mark(text.len()).len()).filter(|room| *room >= MIN_PART)?;
    let head = line_end(&text[..text.floor_char_boundary(room / 2)]);
    let tail = text.ceil_char_boundary(text.len() - room / 2);
    let tail = text[tail..].find('\n').map_or(tail, |end| tail + end + 1);
    Some(format!("{}{}{}", &text[..head], mark(tail - head), &text[tail..]))
}

/// Returns where the last complete line of a text ends; of a single long line, the whole.
fn line_end(text: &str) -> usize {
    text.rfind('\n').map_or(text.len(), |end| end + 1)
}

/// Keeps the first or the last rows of a list, with a row in place of the others.
fn cut_rows(mut rows: Vec<String>, kept: Kept, most: usize) -> Option<Vec<String>> {
    let mark = |rows: usize| json!({ "left_out": format!("{rows} items") }).to_string();
    let room = most.checked_sub(mark(rows.len()).len() + 4).filter(|room| *room >= MIN_PART)?;
    let all = rows.len();
    if kept == Kept::Last {
        rows.reverse();
    }
    let mut used = 0;
    let fitting = rows.iter().take_while(|row| {
        used += row.len() + 2;
        used <= room
    });
    let fitting = fitting.count();
    rows.truncate(fitting);
    rows.push(mark(all - fitting));
    if kept == Kept::Last {
        rows.reverse();
    }
    Some(rows)
}

/// Writes rows as a JSON array, a line each.
fn array(rows: &[String]) -> String {
    if rows.is_empty() { "[]\n".to_owned() } else { format!("[\n{}\n]\n", rows.join(",\n")) }
}

fn array_len(rows: &[String]) -> usize {
    let commas = rows.len().saturating_sub(1) * 2;
    if rows.is_empty() { 3 } else { rows.iter().map(String::len).sum::<usize>() + commas + 5 }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn text(part: BundlePart, text: impl Into<String>) -> (BundlePart, BundleContent) {
        (part, BundleContent::Text(text.into()))
    }

    fn size(made: &Bundle) -> usize {
        made.files.iter().map(|file| file.text.len()).sum()
    }

    fn file(made: &Bundle, part: BundlePart) -> &BundleFile {
        made.files.iter().find(|file| file.part == part).unwrap()
    }

    #[test]
    fn the_shares_are_the_whole_budget() {
        assert_eq!(BundlePart::ALL.iter().map(|part| part.share()).sum::<usize>(), 100);
    }

    #[test]
    fn what_fits_is_whole_and_in_order() {
        let parts = vec![text(BundlePart::Files, "a.c\n"), text(BundlePart::Task, "mend it\n")];
        let made = bundle(parts, 1000, &Redactor::default());
        let names: Vec<_> = made.files.iter().map(|file| file.part.file_name()).collect();
        assert_eq!(names, ["TASK.md", "files.txt"]);
        assert!(made.files.iter().all(|file| !file.truncated) && made.left_out().is_empty());
        assert_eq!(made.files[0].text, "mend it\n");
    }

    #[test]
    fn no_file_takes_the_share_of_another_one() {
        let row = json!({ "file": "src/ring.c", "line": 7, "names": "x".repeat(200) });
        let log: String = (0..2000).map(|line| format!("line {line:05}\n")).collect();
        let parts = vec![
            text(BundlePart::Task, "mend it\n"),
            (BundlePart::Suspects, BundleContent::Rows(vec![row; 2000])),
            text(BundlePart::Source, "int x;\n".repeat(100_000)),
            text(BundlePart::Log, log),
            text(BundlePart::Similar, "like it\n"),
            text(BundlePart::Files, "a.c\n".repeat(10_000)),
        ];
        let made = bundle(parts, 32_000, &Redactor::default());
        assert!(size(&made) <= 128_000, "{}", size(&made));
        assert_eq!(made.dropped, []);
        for part in [BundlePart::Suspects, BundlePart::Source, BundlePart::Files] {
            assert!(file(&made, part).truncated, "{part:?}");
        }
        let log = &file(&made, BundlePart::Log).text;
        assert!(log.starts_with("line 00000\n") && log.ends_with("line 01999\n"));
        assert_eq!(file(&made, BundlePart::Similar).text, "like it\n");
        let task = &made.files[0].text;
        assert!(task.contains("cut: ranked.json, source.txt, files.txt"), "{task}");
    }

    #[test]
    fn the_middle_of_a_text_is_left_out_and_said() {
        let log: String = (0..1000).map(|line| format!("line {line}\n")).collect();
        let made = bundle(vec![text(BundlePart::Log, log)], 500, &Redactor::default());
        let log = &made.files[0];
        assert!(
            log.truncated && log.text.starts_with("line 0\n") && log.text.ends_with("line 999\n")
        );
        assert_eq!(log.text.lines().filter(|line| line.contains("are left out here]")).count(), 1);
    }

    #[test]
    fn a_list_that_is_cut_stays_json_and_keeps_its_best_rows() {
        for (part, first, last) in
            [(BundlePart::Suspects, json!(0), None), (BundlePart::Attempts, Value::Null, Some(999))]
        {
            let rows = (0..1000).map(|number| json!({ "number": number })).collect();
            let parts = vec![(part, BundleContent::Rows(rows))];
            let made = bundle(parts, 500, &Redactor::default());
            let rows: Vec<Value> = serde_json::from_str(&made.files[0].text).unwrap();
            assert_eq!(rows[0]["number"], first, "{part:?}");
            assert_eq!(rows.last().unwrap()["number"].as_u64(), last, "{part:?}");
            let marks: Vec<_> = rows.iter().filter_map(|row| row["left_out"].as_str()).collect();
            assert_eq!(marks, [format!("{} items", 1001 - rows.len())]);
        }
        let none = vec![(BundlePart::Suspects, BundleContent::Rows(Vec::new()))];
        assert_eq!(bundle(none, 500, &Redactor::default()).files[0].text, "[]\n");
    }

    #[test]
    fn a_file_for_which_there_is_no_room_is_named() {
        let parts = vec![
            text(BundlePart::Task, "mend it\n".repeat(300)),
            text(BundlePart::Files, "x\n".repeat(300)),
        ];
        let made = bundle(parts, 250, &Redactor::default());
        assert_eq!(made.dropped, [BundlePart::Files]);
        assert!(made.files[0].text.ends_with("cut: TASK.md; left out: files.txt.\n"));
    }

    #[test]
    fn secrets_do_not_reach_an_agent() {
        let redactor = Redactor::new([("TOKEN".to_owned(), "s3cr3t-value".to_owned())]);
        let parts = vec![
            (BundlePart::Attempts, BundleContent::Rows(vec![json!({ "why": "s3cr3t-value" })])),
            text(BundlePart::Source, "unsigned shared_secret = compute_secret(r->count);\n"),
            text(BundlePart::Log, "key s3cr3t-value\n"),
        ];
        let made = bundle(parts, 1000, &redactor);
        assert_eq!(
            made.files.iter().map(|file| file.text.as_str()).collect::<Vec<_>>(),
            [
                "[\n{\"why\":\"[removed: TOKEN]\"}\n]\n",
                "unsigned shared_secret = compute_secret(r->count);\n",
                "key [removed: TOKEN]\n"
            ]
        );
    }

    proptest! {
        #[test]
        fn a_bundle_fits_its_budget(texts in prop::collection::vec("(\\PC{0,40}\n){0,40}", 4), tokens in 0usize..1600) {
            let parts = [BundlePart::Task, BundlePart::Attempts, BundlePart::Log, BundlePart::Files];
            let parts = parts.into_iter().zip(texts).map(|(part, text)| match part {
                BundlePart::Attempts => {
                    (part, BundleContent::Rows(text.lines().map(|line| json!(line)).collect()))
                }
                _ => (part, BundleContent::Text(text)),
            });
            let made = bundle(parts.collect(), tokens, &Redactor::default());
            prop_assert!(size(&made) <= (tokens * BYTES_PER_TOKEN).max(NOTE));
        }
    }
}
