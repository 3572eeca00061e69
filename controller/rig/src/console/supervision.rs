//! Tells whether a line says that something within the firmware stepped in: a software watchdog, a
//! guard of the memory, a monitor that brings a product into its safe state, a dump of a core. Pure.
//!
//! # Design
//! Such a line names no crash. What it names (`safe state`, `heartbeat`) is also a setting, so it
//! counts where it tells of an event: alone in its line, or with a verb. Only output behind an
//! end is looked at, and the line of an awaited text. `suspicion_lines.toml` holds examples.

use std::sync::LazyLock;

use regex_automata::meta::Regex;
use regex_automata::util::syntax;

use super::scan::searched_once;
use super::words::{Word, listed, words};

/// Patterns of such lines, of ASCII in any case.
const PATTERNS: &[&str] = &[
    // Watchdogs of tasks
    r"^\W*(?:watchdog|wdt|swdt) ?!",
    r"\b(?:watchdog|wdt)\W{1,2}pre-?timeout\b",
    r"\b(?:task|thread|process|worker|job|core|cpu) \S{1,24} (?:is |was |has |got |seems )?(?:stuck|hung|starved|unresponsive|not responding)\b",
    r"\b(?:did not|didn't|failed to|has not) (?:check|checked) in\b",
    r"\bmissed (?:its |the |a )?(?:heartbeat|deadline|check-?in)s?(?:$|[ ,.!(]+[^0 ]|: *[^0 ])",
    r"\b(?:heartbeat|deadline|check-?in) (?:was |is )?(?:missed|lost)\b(?:$|[ ,.!(]+[^0 ]|: *[^0 ])",
    // Hooks of OSEK and AUTOSAR, a drive's own codes, and what trips a power stage
    r"\b(?:shutdownos|(?:protection|error|shutdown)hook)\b.{1,24}\be_os_",
    r"\bfault_code_[a-z0-9]",
    r"\b(?:over|under)[- ]?(?:current|voltage|temp(?:erature)?|speed) trip(?:ped)?(?:$|[,.!;]| at |: *[^0-9 ])",
    r"\bover-? ?(?:current|voltage|temperature|speed)\b.*\b(?:shutting down|shut ?down|outputs? off)\b",
    // A safe state
    r"^\W*(?:safe[ -](?:state|mode)|fail-?safe(?: (?:state|mode))?|emergency stop)\W*$",
    r"\b(?:enter|entering|entered|enters|switch(?:ing|ed)? to|going (?:in)?to|fall(?:ing)? back to|into) (?:the |a )?(?:safe[ -](?:state|mode)|fail-?safe|limp mode|degraded mode)\b",
    r"\b(?:safe[ -]?(?:state|mode)|fail-?safe|emergency stop)\W{1,3}(?:was |is )?(?:entered|reached|triggered|activated|engaged|latched)\b",
    r"\bboot ?loop (?:was )?(?:detected|found)\b",
    // Memory
    r"\b(?:state|context|stack|heap) (?:is |was |has been )?destroyed\b",
    r"stack\w*\b.*\b(?:used|usage|full)\W{1,3}100 ?%",
    r"^\W*(?:\w+: )?(?:heap|stack|memory|pool)(?: is| was)? exhausted\b",
    r"\bout of (?:heap|stack|ram)\b",
    r"\buse[ -]after[ -]free\b",
    r"\bstack (?:guard (?:hit|violated|violation|corrupted)|ovf|exceeded)\b",
    r"\b(?:guard|canary)(?: (?:word|bytes?|pattern|value|zone|region))?\b(?: (?:of|in|at|for|on) [^.,;:]{1,24}?)? (?:is |was |were |got |has been |have been )?(?:overwritten|clobbered|trampled|destroyed|damaged|corrupted|corrupt|dead|smashed|hit|violated|tripped)\b",
    r"\bbuffer over(?:run|flow) (?:detected|in|at)\b",
    r"^overflow in (?:task |thread )?\W?\w+\W*$",
    // Hardware
    r"\bdouble[ -]bit (?:ecc|error)\b",
    r"\b(?:lost interrupt|interrupt lost)\b",
    r"\b(?:ecc|parity) error(?:$|[ !.]| *: *[^0 ])",
    r"^\W*brown-?out(?: (?:detected|reset))?\W*$",
    r"^\W*(?:cpu|core \d|mcu|processor) (?:is )?halted\W*$",
    r"^\W*mem(?:ory)?[ _]?manage handler\b",
    r"\bnmi[_ ]handler\b",
    r"\bwatchdog\b.*\bfired\b",
    r"\bexit(?:ing|ed|s)? with (?:status|code|error) -?0*[1-9]|\b_?x?exit ?\(?-0*[1-9]",
    // Assertions of kernels
    r"\bconfig_?assert(?: failed| at| in| line|\W+\w+\.[ch]:)",
    r"^\W*(?:config_?assert|bug_on|warn_on)\b",
    r"\bcpu: \d+ (?:uid: \d+ )?pid: \d+ at \S",
    // Languages and their runtimes
    r"^(?:unhandled|uncaught) (?:\w+ )?(?:exception|error|rejection): \S",
    r"^terminate called\b",
    r"^ubsan: [a-z-]+ by 0x",
    // Dumps of a core: Zephyr, ESP-IDF; of registers: NuttX
    r"^\W*(?:\w+: )?dump(?:ing)? (?:\w+ )?registers\b",
    r"^#CD:(?:BEGIN|END|ERROR)",
    r"^=+ CORE DUMP START =+",
];

/// Patterns of lines whose event is that something is absent.
const ABSENCES: &[&str] = &[
    r"^\W*(?:sw|task |software )?(?:watchdog|wdt|wd)\b.*\bno (?:feed|kick|pet|refresh|heartbeat|response|answer|reply|check-?in|sign of life)\b",
    r"^\W*(?:sw|task |software )?(?:watchdog|wdt|wd)\b.*\bnot (?:responding|answering|fed|kicked|refreshed|alive)\b",
];

/// Words of a line that takes the event back.
const DENIALS: &str = "\
    no not_set without never none if when test tests testing enabled disabled armed configured \
    supported expected simulated simulating injected injecting cleared previous last counter count \
    handled corrected off ok needed required";

/// Denials that are also what follows from an event: `deadline missed, outputs off`.
const SWITCHED: &str = "off disabled";

/// Ends of `FAULT_CODE_x` that name no fault.
const NO_CODES: &str = "\
    none ok no no_fault no_error clear cleared count mask reset reg register status last success undefined";

/// Words that do not take back what is absent.
const ABSENT: &str = "no not";

pub(super) static EVENTS: LazyLock<Option<Regex>> = LazyLock::new(|| compiled(PATTERNS));
pub(super) static ABSENT_EVENTS: LazyLock<Option<Regex>> = LazyLock::new(|| compiled(ABSENCES));

fn compiled(patterns: &[&str]) -> Option<Regex> {
    let ascii = syntax::Config::new().unicode(false).utf8(false).case_insensitive(true);
    Regex::builder().configure(searched_once()).syntax(ascii).build_many(patterns).ok()
}

/// Tells whether a text says that something within the firmware stepped in.
pub(super) fn tells_intervention(text: &str) -> bool {
    let text = text.trim_ascii();
    // What a runtime says of an exception is no denial, and neither is the number of a processor.
    let thrown = || {
        let small = text.to_ascii_lowercase();
        ["unhandled ", "uncaught "].iter().any(|start| small.starts_with(start))
            || small.contains("cpu: 0 ")
    };
    let told = |events: &Option<Regex>| events.as_ref().is_some_and(|events| events.is_match(text));
    let absent = told(&ABSENT_EVENTS);
    let denies = |word: &str| listed(DENIALS, word) && !(absent && listed(ABSENT, word));
    // `missed heartbeats (net): 0`, but not `heap exhausted: 0 of 4096 free`.
    let counts_none = |word: &Word<'_>| {
        word.text == "0" && word.before.contains([':', '=']) && word.after.trim().is_empty()
    };
    let follows = |word: &str| {
        let unswitched = |part: &str| !words(part).iter().any(|word| listed(SWITCHED, &word.text));
        listed(SWITCHED, word)
            && text.split([',', ';', '.', '!']).flat_map(|part| part.split(" - ")).any(|part| {
                EVENTS.as_ref().is_some_and(|events| events.is_match(part)) && unswitched(part)
            })
    };
    if !absent && !told(&EVENTS) {
        return false;
    }
    let words = words(text);
    // Of the names of a code, those that name none.
    let no_code = |word: &str| {
        let code = word.strip_prefix("fault_code_");
        code.is_some_and(|code| listed(NO_CODES, code))
    };
    if words.iter().any(|word| no_code(&word.text)) {
        return false;
    }
    let none = words.last().is_some_and(counts_none);
    let denied = none || words.iter().any(|word| denies(&word.text) && !follows(&word.text));
    thrown() || !denied
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_patterns_compile() {
        assert!(EVENTS.is_some() && ABSENT_EVENTS.is_some());
    }

    #[test]
    fn an_event_is_told_from_a_setting() {
        for (line, event) in [
            ("SAFE STATE", true),
            ("entering safe mode", true),
            ("safe mode: off", false),
            ("fail-safe mode: off", false),
            ("failsafe output = 0", false),
            ("missed heartbeat: net", true),
            ("missed heartbeats: 0", false),
            ("no missed deadline", false),
            ("sched: task ctrl deadline missed: 71 us > 50 us limit, PWM outputs off", true),
            ("heap exhausted, logging disabled", true),
            ("stack guard hit detection off, canary check off", false),
            ("fail-safe mode: off, watchdog off", false),
            ("missed deadlines: 0, outputs off", false),
            ("Os: ShutdownOS(E_OS_STACKFAULT)", true),
            ("Os: ProtectionHook(E_OS_STACKFAULT) in task OsTask_10ms", true),
            ("ErrorHook: E_OS_LIMIT", true),
            ("ErrorHook installed", false),
            ("ShutdownOS(E_OK)", false),
            ("foc: FAULT_CODE_ABS_OVER_CURRENT, phase A 48.2 A", true),
            ("foc: FAULT_CODE_NONE", false),
            ("last fault: FAULT_CODE_OVER_VOLTAGE", false),
            ("foc: overcurrent trip, PWM outputs disabled", true),
            ("overcurrent trip level: 20 A", false),
            ("over-voltage trip at 60 V configured", false),
            ("task net stuck", true),
            ("task net: stack 40%", false),
            ("watchdog: no feed for 5 s, restarting", true),
            ("WDT: task net not responding, no feed", true),
            ("watchdog: no feed needed in this mode", false),
            ("watchdog test: no feed", false),
            ("no watchdog", false),
            ("heap exhausted: 0 of 4096 free", true),
            ("task 0 is stuck", true),
            ("missed deadlines (net): 0", false),
            ("parity errors: 0", false),
            ("parity error: 0", false),
            ("uncaught exception: TypeError: Expected a function.", true),
            ("Guard word of task 3 was overwritten", true),
            ("canary of stack main is dead", true),
            ("kernel stopped: stack guard of thread 'net' was hit", true),
            ("heap: guard bytes of block 7 clobbered", true),
            ("canary ok, none corrupted", false),
            ("canary not corrupted", false),
            ("guard bytes were not overwritten", false),
            ("guard zones intact, 0 corrupted", false),
            ("canary check: 0 overwritten", false),
            ("canary: dead beef", false),
            ("stack guard region enabled", false),
            ("guard test: corrupted on purpose", false),
        ] {
            assert_eq!(tells_intervention(line), event, "{line}");
        }
    }
}
