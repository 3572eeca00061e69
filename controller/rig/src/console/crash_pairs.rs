//! Tells whether neighbouring words name a crash. Pure.

use super::words::{Word, listed};

/// A first word, its second words and, where these say too little, its third words.
const PAIRS: &[(&str, &str, &str)] = &[
    ("mesh", "error", ""),
    ("stack", "overflow overflowed underflow dump canary error corrupted", ""),
    ("canary", "overwritten damaged corrupted destroyed violated dead mismatch", ""),
    ("guard", "overwritten damaged corrupted destroyed violated", ""),
    ("bad", "pointer", ""),
    ("buffer", "overflow", ""),
    ("heap", "overflow", ""),
    ("core", "dumped", ""),
    ("core", "dump", "written saved"),
    ("bit", "flip flips", ""),
    ("checksum", "error mismatch", ""),
    ("crc", "error mismatch", ""),
    ("brown", "out", "detected event occurred triggered"),
    ("brownout", "detected event", ""),
    ("register", "dump", ""),
    ("registers", "dump", ""),
    ("crash", "dump", ""),
    ("segmentation", "violation", ""),
    ("access", "violation", ""),
    ("illegal", "instruction", ""),
    ("stack", "trace", ""),
    ("undefined", "instruction", ""),
    ("invalid", "opcode", ""),
    ("bus", "error", ""),
    ("memory", "error", ""),
    ("hardware", "error", ""),
    ("critical", "error", ""),
    ("seriously", "wrong", ""),
    ("infinite", "loop", ""),
    ("blown", "stack", ""),
    ("divide", "by", "zero 0"),
    ("division", "by", "zero 0"),
    ("null", "pointer dereference", ""),
    ("out", "of", "memory"),
    ("double", "free", ""),
    ("watchdog", "timeout expired reset fired triggered bite got", ""),
    ("wdt", "reset timeout", ""),
    ("internal", "error", ""),
    ("reset", "reason cause due because", ""),
    ("reset", "by", "watchdog wdt iwdg wwdg"),
    ("resetting", "due because", ""),
    ("reboot", "due because", ""),
    ("rebooting", "due because", ""),
    ("restart", "due because", ""),
    ("restarting", "due because", ""),
    ("call", "trace stack", ""),
    ("runtime", "error", ""),
    ("unexpected", "interrupt", ""),
    ("spurious", "interrupt", ""),
    ("machine", "check", ""),
    ("memory", "violation", ""),
    ("mpu", "violation", ""),
    ("thread", "died", ""),
    ("system", "halted", ""),
];

/// Words behind a pair that name a part of the machine: `stack overflow detection: active`.
const THINGS: &str = "\
    detection detector protection check checks checking counter counters handler support polling \
    rate correctly corrected";

/// Words that say that all is well at the start or the end of a line.
pub(super) const RESULTS: &str = "\
    ok okay pass passed passes success successful successfully succeeded done complete \
    completed good healthy clean fine none xfail skip no off n/a nil";

/// Words that deny the crash word behind them.
pub(super) const NEGATIONS: &str = "\
    no not without 0 zero none never non nor cannot can't didn't doesn't won't any";

/// Causes of a reset that no crash has.
const PLAIN_RESETS: &str = "por pin external poweron power_on";

/// Tells whether the words at an index name a crash.
pub(super) fn is_crash_pair(words: &[Word<'_>], at: usize) -> bool {
    let Some(next) = words.get(at + 1).filter(|next| is_beside(next)) else { return false };
    let third = |list| words.get(at + 2).is_some_and(|word| listed(list, &word.text));
    let named = PAIRS.iter().any(|(first, seconds, thirds)| {
        *first == words[at].text
            && listed(seconds, &next.text)
            && (thirds.is_empty() || third(thirds))
    });
    named && !is_harmless(words, at)
}

/// Tells whether nothing but a blank or a hyphen stands in front of a word.
pub(super) fn is_beside(word: &Word<'_>) -> bool {
    word.before == "-" || word.before.len() == word.before.trim().len() + 1
}

/// Tells whether the pair of words at an index names a part of the machine, a plain reset, or the halt
/// at a good end: `All done. System halted.`
fn is_harmless(words: &[Word<'_>], at: usize) -> bool {
    let ended = |word: &Word<'_>| word.text == "finished" || listed(RESULTS, &word.text);
    let denied = |at: usize| at > 0 && listed(NEGATIONS, &words[at - 1].text);
    if words[at].text == "system" && (0..at).any(|end| ended(&words[end]) && !denied(end)) {
        return true;
    }
    let Some(third) = words.get(at + 2) else { return false };
    let joined = third.before.trim();
    let reset = words[at].text == "reset" && matches!(joined, ":" | "=");
    // `reset due to power-on`, `reset because of a request`.
    let due = listed("due because", &words[at + 1].text) && listed("to of", &third.text);
    let (reset, cause) = if due { (true, at + 3) } else { (reset, at + 2) };
    let word = |at: usize| words.get(at).map_or("", |word| word.text.as_str());
    matches!(joined, "" | "-") && listed(THINGS, &third.text)
        || reset && listed(PLAIN_RESETS, word(cause))
        || reset && word(cause) == "power" && word(cause + 1) == "on"
}
