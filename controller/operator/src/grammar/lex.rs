//! From text to words.

/// Longest request in bytes. A longer one is no everyday request, and is not searched for one.
pub(super) const MAX_TEXT: usize = 4096;

/// Most words of a request.
pub(super) const MAX_WORDS: usize = 200;

/// A word.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Token {
    /// As it was written.
    pub(super) text: String,
    /// In lower case.
    pub(super) word: String,
    /// It stood between quotes: it is a name or a text, and never a verb.
    pub(super) quoted: bool,
    /// A comma, semicolon, colon or full stop stands in front of it.
    pub(super) after_stop: bool,
}

impl Token {
    /// Tells whether it is one of these words, unquoted.
    pub(super) fn is(&self, words: &[&str]) -> bool {
        !self.quoted && words.contains(&self.word.as_str())
    }

    /// Tells whether it names a file.
    pub(super) fn is_path(&self) -> bool {
        let (file, _) = self.text.split_once('@').unwrap_or((&self.text, ""));
        let name = file.rsplit('/').next().unwrap_or_default().to_ascii_lowercase();
        let suffix = name.rsplit_once('.').is_some_and(|(stem, suffix)| {
            let known = ["elf", "axf", "hex", "ihex", "bin", "uf2", "img", "out", "toml"];
            !stem.is_empty() && known.contains(&suffix)
        });
        suffix || (file.contains('/') && !name.is_empty())
    }

    /// Tells whether it names a test plan.
    pub(super) fn is_plan(&self) -> bool {
        self.is_path() && self.word.ends_with(".toml")
    }

    /// Tells whether it may name a place or a kind of board.
    pub(super) fn is_name(&self) -> bool {
        let inside =
            |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | ':' | '+');
        self.text.len() <= 64
            && self.text.chars().all(inside)
            && self.text.starts_with(|c: char| c.is_ascii_alphanumeric())
    }

    /// Tells whether it is the id of a run, or the beginning of one: eight digits and more.
    pub(super) fn is_run_id(&self) -> bool {
        let head = self.text.get(..8);
        let digits = head.is_some_and(|head| head.bytes().all(|byte| byte.is_ascii_digit()));
        let inside = |c: char| c.is_ascii_alphanumeric() || c == '-';
        digits && self.text.len() <= 64 && self.text.chars().all(inside)
    }
}

/// Takes a text apart. Returns nothing for a text that is too long.
pub(super) fn words(text: &str) -> Option<Vec<Token>> {
    if text.len() > MAX_TEXT {
        return None;
    }
    let mut tokens = Vec::new();
    let mut rest = text.trim_start();
    let mut after_stop = false;
    while let Some(first) = rest.chars().next() {
        if tokens.len() == MAX_WORDS {
            return None;
        }
        let closing = match first {
            '"' | '`' => Some(first),
            '\u{201c}' => Some('\u{201d}'),
            // An apostrophe within a word begins no quotation.
            '\'' => Some('\''),
            _ => None,
        };
        let inner = closing.and_then(|closing| {
            let (inner, behind) = rest[first.len_utf8()..].split_once(closing)?;
            Some((inner, behind))
        });
        if let Some((inner, behind)) = inner {
            let word = inner.to_lowercase();
            tokens.push(Token { text: inner.to_owned(), word, quoted: true, after_stop });
            after_stop = false;
            rest = behind;
        } else {
            let end = rest.find(char::is_whitespace).unwrap_or(rest.len());
            let (piece, behind) = rest.split_at(end);
            let stops = |c: char| matches!(c, ',' | ';' | ':' | '.' | '?' | '!' | ')' | '"');
            let bare = piece.trim_end_matches(stops).trim_start_matches(['(', ',', ';']);
            if !bare.is_empty() {
                let word = bare.to_lowercase().replace('\u{2019}', "'");
                tokens.push(Token { text: bare.to_owned(), word, quoted: false, after_stop });
                after_stop = false;
            }
            after_stop |= piece.ends_with(stops);
            rest = behind;
        }
        rest = rest.trim_start();
    }
    Some(tokens)
}
