//! The line in which an agent says what it takes for the cause.

/// What the line begins with.
pub(super) const MARK: &str = "HYPOTHESIS:";

/// Most characters of it.
const MAX_CHARS: usize = 500;

/// Returns what the last such line of a text says; nothing where there is none.
pub(super) fn hypothesis(text: &str) -> String {
    // Models like to set it in bold or as a list item.
    let plain = |line: &str| {
        let said = line.trim_start_matches(['*', '#', '-', '>', ' ', '\t']).strip_prefix(MARK)?;
        let said = said.trim_start_matches("**").trim().trim_end_matches("**");
        Some(said.chars().filter(|c| !c.is_control()).take(MAX_CHARS).collect())
    };
    text.lines().rev().find_map(plain).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_line_counts_however_it_is_set() {
        let text = "HYPOTHESIS: first\nnot HYPOTHESIS: this\n**HYPOTHESIS:** the index\x07 wraps\n";
        assert_eq!(hypothesis(text), "the index wraps");
        assert_eq!(hypothesis("no such line"), "");
        assert_eq!(hypothesis(&format!("{MARK} {}", "x".repeat(1 << 20))).len(), MAX_CHARS);
    }
}
