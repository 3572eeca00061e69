//! Words for a POSIX shell. Pure.

/// Quotes a word for a POSIX shell.
pub fn posix_word(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:@%+,".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        return word.to_owned();
    }
    // POSIX: between single quotes each character is itself, and no single quote can be there.
    format!("'{}'", word.replace('\'', r"'\''"))
}

/// Joins words into a command line that a POSIX shell splits into the same words. No word may hold a
/// NUL character.
pub fn posix_line(words: &[String]) -> String {
    words.iter().map(|word| posix_word(word)).collect::<Vec<_>>().join(" ")
}
