//! Tells whether a line says that a boot loader starts another image than the newest one, or has found
//! an image damaged, or that the firmware is not the wanted version. Pure.
//!
//! # Design
//! A pass that another image prints is none of the image that was put on the board. Words of boot
//! loaders are also words of drivers (`falling back to polling`), so each pattern names an image, a
//! slot or a version, or is a whole message of a known loader.
//! `failed_result_lines.toml` holds examples.

use std::sync::LazyLock;

use regex_automata::meta::Regex;
use regex_automata::util::syntax;

use super::scan::searched_once;
use super::words::{listed, words};

/// Parts of patterns, by the name that they are put in for.
const PARTS: &[(&str, &str)] = &[
    (
        "OLDER",
        r"(?:(?:previous(?:ly \w+)?|last|known|good|old|older|backup|golden|fallback|recovery|rescue|alternate|alternative|working)[ -])+",
    ),
    (
        "IMAGE",
        r"(?:images?|firmware|fw|slot|partition|bank|version|app|application|software|build|rootfs|kernel|bundle)",
    ),
    ("DIGEST", r"(?:hash|crc|crc32|checksum|digest|signature|sha|sha256|header|magic)"),
    (
        "BAD",
        r"(?:mismatch(?:ed)?|does not match|did not match|invalid|not valid|incorrect|wrong|bad|corrupt(?:ed)?)",
    ),
    ("VALUE", r"([\w.+-]+)"),
];

/// Patterns in lower case, of ASCII in any case.
const PATTERNS: &[&str] = &[
    // Any loader
    r"\b(?:roll(?:ing|ed)?|fall(?:ing|en)?|fell|switch(?:ing|ed)|revert(?:ing|ed)?)[ -]?(?:back )?(?:to|on) (?:the |an? |using )?OLDERIMAGE\b",
    r"\b(?:roll(?:ing|ed)?|fall(?:ing|en)?|fell|revert(?:ing|ed)?)[ -]?(?:back )?to (?:the )?(?:IMAGE )?v?\d+\.\d",
    r"\broll(?:ing|ed)?[ -]?back to (?:the )?(?:OLDER)?IMAGE\b",
    r"\bboot(?:ing|ed|s) (?:from |into |the |up )*OLDERIMAGE\b",
    r"\bIMAGE(?: DIGEST)?(?: is| was)? (?:BAD|failed(?: \S+ check)?)[,;:. -]+(?:boot|start|try|us|runn|load|fall|keep|roll|revert)(?:ing|s|ed)?\b",
    r"\b(?:images?|firmware|fw|app|application|bundle|kernel|rootfs)(?: [\w-]+)? DIGEST[ :]*(?:check |verification |validation )?BAD\b",
    // MCUboot
    r"\bimage in the (?:primary|secondary) slot is not valid\b",
    r"\bswap type: revert\b",
    r"\b(?:unable to find|no) bootable (?:image|app|partition|slot)",
    r"\binsufficient version in secondary slot\b|\bdue to downgrade prevention\b",
    // U-Boot
    r"^(?:warning: )?bootlimit \(\d+\) exceeded|\busing altbootcmd\b",
    r"^bad hash value for '|^bad (?:data hash|data crc|header checksum|magic number)$",
    r"\b(?:crc32|md5|sha1|sha256|sha384|sha512)(?:,\S+)? ?(?:[-+] ?)?error!",
    r"^error: can't get kernel image!?$",
    // ESP-IDF
    r"\b(?:ota app partition slot \d+|factory app partition) is not bootable\b",
    r"\bimage hash failed - image is corrupt\b|\bchecksum failed\. calculated 0x",
    // RAUC, SWUpdate, Android, TF-A
    r"\bmark(?:ed|ing) (?:slot )?\S+ (?:as )?bad\b|\bno valid rauc slot found\b",
    r"\bslot \S+ (?:is |marked (?:as )?)?unbootable\b|\bswupdate failed\b",
    r"\bfailed to load image id \d",
];

/// Pairs of an image's version and the wanted one.
const PAIRS: &[&str] = &[
    r"\b(?:build[ -]?id|version|revision|git|commit|sha|hash|crc|fw|firmware)[^0-9a-z]{1,3}VALUE ?[(,;]+ ?(?:but )?(?:expected|want|wanted)[: ]+VALUE",
    r"\b(?:build|version|revision|git|commit|fw|firmware|image)\b.*\b(?:want|wanted|expected|required)[: ]+VALUE[,;]? (?:but )?(?:have|has|got|running|found|installed|actual)[: ]+VALUE",
];

/// Text of which one stands in each such line, unless a word of results does.
pub(super) const HINTS: &str = r"rol(?:l|ling|led)[ -]?back|revert|fall(?:ing|en)? back|fell back|switch(?:ing|ed) back|booting (?:from |into |the )*(?:previous|last|known|old|backup|golden|fallback|recovery|rescue|alternat)|bootlimit|altbootcmd|not valid|invalid|bootable|insufficient version|downgrade prev|bad (?:data|header|magic|hash)|error!|corrupt|(?:as|marked) bad|no valid rauc|\bwant(?:ed)?\b";

/// Words in front that make it a wish, a condition or a denial.
const UNREAL: &str = "\
    if when would unless no not never without can could should may might simulated simulate \
    simulating test testing";

pub(super) static FALLBACKS: LazyLock<Option<Regex>> = LazyLock::new(|| compiled(PATTERNS));
pub(super) static VERSIONS: LazyLock<Option<Regex>> = LazyLock::new(|| compiled(PAIRS));

fn compiled(patterns: &[&str]) -> Option<Regex> {
    let put = |text: String, (name, part): &(&str, &str)| text.replace(name, part);
    let patterns: Vec<String> =
        patterns.iter().map(|pattern| PARTS.iter().fold((*pattern).to_owned(), put)).collect();
    let ascii = syntax::Config::new().unicode(false).utf8(false).case_insensitive(true);
    Regex::builder().configure(searched_once()).syntax(ascii).build_many(&patterns).ok()
}

/// Tells whether a text says that another image may run than the one that was put on the board.
pub(crate) fn tells_fallback(text: &str) -> bool {
    let text = text.trim_ascii();
    let found = FALLBACKS.as_ref().and_then(|patterns| patterns.find(text));
    let real = |at: usize| {
        let before = text.get(..at).unwrap_or_default();
        !words(before).iter().rev().take(4).any(|word| listed(UNREAL, &word.text))
    };
    found.is_some_and(|found| real(found.start())) || is_other_version(text)
}

/// `build id: 3f2a (expected 9c1d)`, but not `version 1.2 (expected 1.2)`.
fn is_other_version(text: &str) -> bool {
    let Some(set) = &*VERSIONS else { return false };
    let mut captures = set.create_captures();
    set.captures(text, &mut captures);
    let value = |group: usize| {
        let text = captures.get_group(group).and_then(|span| text.get(span.range()))?;
        let text = text.trim_end_matches('.').to_ascii_lowercase();
        text.bytes().any(|b| b.is_ascii_digit()).then_some(text)
    };
    value(1).zip(value(2)).is_some_and(|(one, other)| {
        // One of them may be shortened.
        !(one.starts_with(&other) || other.starts_with(&one))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_patterns_compile() {
        assert!(FALLBACKS.is_some() && VERSIONS.is_some());
    }

    #[test]
    fn another_image_is_told_from_other_fallbacks() {
        for (line, fallback) in [
            ("boot: new image failed self check, rolling back to v1.1", true),
            ("W (512) esp_ota_ops: Rollback to previously working partition.", true),
            ("image not valid, booting previous", true),
            ("if the image is not valid, booting previous image", false),
            ("falling back to polling mode", false),
            ("falling back to the golden image", true),
            ("build id: 3f2a (expected 9c1d)", true),
            ("build id: 3f2a9912 (expected 3f2a)", false),
            ("no rollback to previous image needed", false),
        ] {
            assert_eq!(tells_fallback(line), fallback, "{line}");
        }
    }
}
