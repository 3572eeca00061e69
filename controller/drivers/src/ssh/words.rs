//! Command lines as text: words quoted for a POSIX shell, and a text split into words.
//!
//! The far side's SSH server hands a command to the user's shell, so words must be quoted there.
//! On this side no shell is involved: `--ssh-command` is split here.

use jig_model::shell::posix_line;

/// Says why words do not make a command line, or a text no words.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum WordsError {
    /// There is no program.
    #[error("the command is empty (expected a program and its arguments)")]
    Empty,
    /// No program can be given such an argument.
    #[error("an argument holds a NUL character")]
    Nul,
    /// A quote has no partner.
    #[error("the quote {0} is not closed")]
    Open(char),
    /// A backslash quotes nothing.
    #[error("there is nothing behind the last backslash")]
    Backslash,
}

/// Joins words into a command line that a POSIX shell splits into the same words.
///
/// # Errors
/// There is no word, or one holds a NUL character.
pub(crate) fn shell_line(words: &[String]) -> Result<String, WordsError> {
    if words.first().is_none_or(String::is_empty) {
        return Err(WordsError::Empty);
    }
    if words.iter().any(|word| word.contains('\0')) {
        return Err(WordsError::Nul);
    }
    Ok(posix_line(words))
}

/// Splits a text into words at spaces; quotes and backslashes keep spaces in a word, as in a
/// shell. Nothing else has a meaning.
///
/// # Errors
/// There is no word, a quote is not closed, or a NUL character is there.
pub fn split_words(text: &str) -> Result<Vec<String>, WordsError> {
    let mut words = Vec::new();
    // A word that has begun; it may be empty, between quotes.
    let mut word: Option<String> = None;
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        match c {
            '\0' => return Err(WordsError::Nul),
            '\'' => {
                let inner = word.get_or_insert_default();
                loop {
                    match chars.next().ok_or(WordsError::Open('\''))? {
                        '\'' => break,
                        c => inner.push(c),
                    }
                }
            }
            '"' => {
                let inner = word.get_or_insert_default();
                loop {
                    match chars.next().ok_or(WordsError::Open('"'))? {
                        '"' => break,
                        '\\' => match chars.next().ok_or(WordsError::Open('"'))? {
                            c @ ('"' | '\\' | '$' | '`') => inner.push(c),
                            c => inner.extend(['\\', c]),
                        },
                        c => inner.push(c),
                    }
                }
            }
            '\\' => {
                let quoted = chars.next().ok_or(WordsError::Backslash)?;
                word.get_or_insert_default().push(quoted);
            }
            c if c.is_ascii_whitespace() => words.extend(word.take()),
            c => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    match words.first().is_none_or(String::is_empty) {
        true => Err(WordsError::Empty),
        false if words.iter().any(|word| word.contains('\0')) => Err(WordsError::Nul),
        false => Ok(words),
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use proptest::prelude::*;

    use super::*;

    fn words(all: &[&str]) -> Vec<String> {
        all.iter().map(|&word| word.to_owned()).collect()
    }

    #[test]
    fn plain_words_stay_as_they_are() {
        let line = shell_line(&words(&["/opt/jig", "rpc", "--stdio"])).unwrap();
        assert_eq!(line, "/opt/jig rpc --stdio");
        assert_eq!(shell_line(&words(&["a b", "", "it's"])).unwrap(), r"'a b' '' 'it'\''s'");
        assert_eq!(shell_line(&[]), Err(WordsError::Empty));
        assert_eq!(shell_line(&words(&["a\0"])), Err(WordsError::Nul));
    }

    #[test]
    fn shell_reads_the_words_that_were_quoted() {
        let hard =
            ["", " ", "a b", "it's", "\"", "$HOME", "`id`", "a\nb", "\\", "!x", "~", "*", "ä"];
        let all: Vec<_> = ["printf", "%s\\0"].iter().chain(&hard).copied().collect();
        let line = shell_line(&words(&all)).unwrap();
        let output = Command::new("sh").arg("-c").arg(line).output().unwrap();
        let said = String::from_utf8(output.stdout).unwrap();
        assert_eq!(said.split_terminator('\0').collect::<Vec<_>>(), hard);
    }

    #[test]
    fn quotes_keep_spaces_in_a_word() {
        let split = |text| split_words(text).unwrap();
        assert_eq!(split("ssh -F file"), words(&["ssh", "-F", "file"]));
        assert_eq!(split(r#" ssh  -F 'my file' "" "#), words(&["ssh", "-F", "my file", ""]));
        assert_eq!(split(r#"a\ b"c \"d\" \e"'f'"#), words(&[r#"a bc "d" \ef"#]));
        assert_eq!(split_words("  "), Err(WordsError::Empty));
        assert_eq!(split_words("''"), Err(WordsError::Empty));
        assert_eq!(split_words("ssh 'a"), Err(WordsError::Open('\'')));
        assert_eq!(split_words("ssh \"a"), Err(WordsError::Open('"')));
        assert_eq!(split_words("ssh \\"), Err(WordsError::Backslash));
    }

    proptest! {
        #[test]
        fn what_is_quoted_is_split_into_the_same(all in proptest::collection::vec("[^\0]{0,9}", 1..5)) {
            if let Ok(line) = shell_line(&all) {
                prop_assert_eq!(split_words(&line), Ok(all));
            }
        }

        #[test]
        fn any_text_is_split_or_refused(text in any::<String>()) {
            let _ = split_words(&text);
        }
    }
}
