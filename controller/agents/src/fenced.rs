//! Fenced blocks in what a model says.

/// A block of text between two fences.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FencedBlock<'a> {
    /// What stands behind the first fence: `diff`, `json`.
    pub info: &'a str,
    /// The text, with a line end behind each line.
    pub text: String,
}

/// Returns what a model says behind what it thinks: that may hold drafts.
pub fn spoken(answer: &str) -> &str {
    answer.rsplit_once("</think>").map_or(answer, |(_, said)| said)
}

/// Lists the fenced blocks. A fence begins its line: in a diff, no line of a file does.
pub fn blocks(text: &str) -> Vec<FencedBlock<'_>> {
    let mut blocks = Vec::new();
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        let ticks = line.len() - line.trim_start_matches('`').len();
        if ticks < 3 {
            continue;
        }
        let closes = |line: &str| {
            line.trim_end().len() >= ticks
                && line.trim_end_matches([' ', '\r']).bytes().all(|b| b == b'`')
        };
        let mut inside = String::new();
        for line in lines.by_ref().take_while(|line| !closes(line)) {
            inside.push_str(line);
            inside.push('\n');
        }
        blocks.push(FencedBlock { info: line[ticks..].trim(), text: inside });
    }
    blocks
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_end_at_a_fence_of_their_length_or_at_the_end() {
        let text = "a\n```json\n{}\n```\n````\n```\nb\n````\n```diff\nc";
        let found: Vec<_> =
            blocks(text).into_iter().map(|block| (block.info, block.text)).collect();
        let block = |info, text: &str| (info, text.to_owned());
        assert_eq!(found, [block("json", "{}\n"), block("", "```\nb\n"), block("diff", "c\n")]);
    }

    #[test]
    fn what_is_thought_is_not_said() {
        assert_eq!(spoken("<think>no</think>yes"), "yes");
        assert_eq!(spoken("yes"), "yes");
    }
}
