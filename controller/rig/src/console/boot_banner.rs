//! Tells whether a line is the banner that a boot loader or a system prints at each start. Pure.
//!
//! # Design
//! A banner behind the end of a report shows a boot that nothing asked for. Behind a text that a plan
//! waits for it may be the next stage of the same boot: U-Boot prints its banner, then Linux does. So
//! each banner has a stage. A stage comes again, or comes behind a later one, only in another boot.
//!
//! Banners are printed at information level, so no crash word is in them, and what is printed at each
//! start stands in front of each report, too. Hence only output behind the end is looked at.
//! `boot_banner_lines.toml` holds an example and a near miss of each.

use std::ops::Range;
use std::sync::LazyLock;

use regex_automata::meta::Regex;
use regex_automata::util::syntax;

use super::log_prefix::texts;
use super::readable;
use super::scan::searched_once;

/// Part of a boot, in the order in which the parts run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum BannerStage {
    /// The boot ROM, or the first code that is loaded: nothing of a boot runs before it.
    First,
    /// A boot loader or secure firmware.
    Loader,
    /// The system that the boot loader starts.
    System,
    /// The greeting of a shell that a system begins when the program that it runs at its start has ended.
    Shell,
}

/// A banner: whose it is, when it comes, and how a line with it begins.
type Banner = (&'static str, BannerStage, &'static str);

/// Of several that a line begins with, the first one counts.
const BANNERS: &[Banner] = &[
    (
        "esp-rom",
        BannerStage::First,
        r"rst:0x[0-9a-fA-F]+ \(|ESP-ROM:|ets [A-Z][a-z]{2} +\d+ 20\d\d",
    ),
    ("tf-a-bl1", BannerStage::First, r"(?:NOTICE|INFO):\s+(?:BL1: |Booting Trusted Firmware)"),
    ("u-boot-spl", BannerStage::First, r"U-Boot (?:SPL|TPL|VPL) \d{4}\.\d\d"),
    ("coreboot", BannerStage::First, r"coreboot-\S+ .*bootblock starting"),
    ("tf-a", BannerStage::Loader, r"NOTICE:\s+BL(?:2|31|32): v\d"),
    ("op-tee", BannerStage::Loader, r"[ID]/TC:.* OP-TEE version: "),
    ("tf-m", BannerStage::Loader, r"Booting TF-M v\d"),
    ("u-boot", BannerStage::Loader, r"U-Boot \d{4}\.\d\d"),
    ("barebox", BannerStage::Loader, r"barebox \d{4}\.\d\d\.\d"),
    ("opensbi", BannerStage::Loader, r"OpenSBI v\d"),
    ("mcuboot", BannerStage::Loader, r"\*{3} Booting MCUboot|Starting bootloader\b|MCUboot v?\d"),
    ("esp-idf-bootloader", BannerStage::Loader, r"(?:boot: )?ESP-IDF \S+ 2nd stage bootloader"),
    ("uefi", BannerStage::Loader, r"UEFI firmware \(version "),
    ("zephyr", BannerStage::System, r"\*{3,5} ?(?:Booting|BOOTING) [^*\r\n]+ \*{3,5}"),
    ("riot", BannerStage::System, r"main\(\): This is RIOT!"),
    (
        "linux",
        BannerStage::System,
        r"Linux version \d+\.\d|Booting Linux on (?:physical CPU|hartid)",
    ),
    ("nuttx", BannerStage::System, r"NuttShell \(NSH\)"),
    ("rt-thread", BannerStage::System, r"- RT -\s+Thread Operating System"),
    ("contiki", BannerStage::System, r"Starting Contiki"),
    ("micropython", BannerStage::Shell, r"(?:MicroPython v?|Adafruit CircuitPython )\d+\.\d"),
    ("sel4", BannerStage::System, r"Bootstrapping kernel"),
];

/// Finds a banner anywhere in some output.
pub(super) static ANYWHERE: LazyLock<Option<Regex>> = LazyLock::new(|| {
    let ascii = syntax::Config::new().unicode(false).utf8(false);
    // Some loggers put a level or a tag in brackets in front, also one of no known form.
    let tagged = |pattern: &str| format!(r"(?:\[[A-Z]+[^\]\r\n]*\] *)?(?:{pattern})");
    let patterns: Vec<String> = BANNERS.iter().map(|(_, _, pattern)| tagged(pattern)).collect();
    Regex::builder().configure(searched_once()).syntax(ascii).build_many(&patterns).ok()
});

/// A banner that was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FoundBanner {
    /// Whose it is.
    pub(crate) name: &'static str,
    /// When it comes in a boot.
    pub(crate) stage: BannerStage,
}

/// Returns the banner that a readable line begins with, behind what loggers put there.
pub(crate) fn boot_banner(line: &str) -> Option<FoundBanner> {
    let found = |text: &str| {
        let found = ANYWHERE.as_ref()?.find(text).filter(|found| found.start() == 0)?;
        let (name, stage, _) = BANNERS.get(found.pattern().as_usize())?;
        Some(FoundBanner { name, stage: *stage })
    };
    texts(line, true).find_map(found)
}

/// Finds the first line with a banner in a block of output that passes a check, and where it stands.
pub(crate) fn find_banner(
    block: &[u8],
    mut counts: impl FnMut(FoundBanner, Range<usize>) -> bool,
) -> Option<(FoundBanner, Range<usize>)> {
    let regex = ANYWHERE.as_ref()?;
    let mut from = 0;
    while let Some(hit) = block.get(from..).and_then(|rest| regex.find(rest)) {
        let hit = from + hit.start();
        let start = memchr::memrchr2(b'\n', b'\r', &block[..hit]).map_or(0, |end| end + 1);
        let end = memchr::memchr2(b'\n', b'\r', &block[hit..]).map_or(block.len(), |n| hit + n);
        let banner = boot_banner(&readable(&block[start..end]));
        if let Some(banner) = banner.filter(|&banner| counts(banner, start..end)) {
            return Some((banner, start..end));
        }
        from = end + 1;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(serde::Deserialize)]
    struct Lines {
        banner: Vec<Line>,
    }

    #[derive(serde::Deserialize)]
    struct Line {
        name: String,
        examples: Vec<String>,
        near_miss: String,
    }

    #[test]
    fn each_banner_has_an_example_and_a_near_miss() {
        let Lines { banner: lines } =
            toml::from_str(include_str!("boot_banner_lines.toml")).unwrap();
        let names: Vec<_> = lines.iter().map(|line| line.name.as_str()).collect();
        assert_eq!(names, BANNERS.iter().map(|(name, ..)| *name).collect::<Vec<_>>());
        for Line { name, examples, near_miss } in &lines {
            for example in examples {
                let found = boot_banner(example).map(|found| found.name);
                assert_eq!(found, Some(name.as_str()), "{example:?}");
            }
            assert_eq!(boot_banner(near_miss), None, "{near_miss:?}");
        }
    }

    #[test]
    fn the_line_of_a_banner_is_found_in_a_block() {
        let block = b"bye\r\n[    0.000000] Linux version 6.1.0 (gcc)\r\nThis is U-Boot 2024.01\n\
                      U-Boot 2024.01 (Jan 01 2024)";
        let all = find_banner(block, |_, _| true).unwrap();
        assert_eq!((all.0.name, &block[all.1]), ("linux", &block[5..45]));
        let loader = find_banner(block, |found, _| found.stage == BannerStage::Loader).unwrap();
        assert_eq!((loader.0.name, loader.1), ("u-boot", 70..block.len()));
        assert_eq!(find_banner(b"bye\n", |_, _| true), None);
    }
}
