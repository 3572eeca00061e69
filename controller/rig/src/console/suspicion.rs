//! Tells whether a line looks like a crash, a failed assertion or a failed test, although no fault
//! signature and no result format knows it. Pure.
//!
//! # Design
//! The words of a crash are few and every system uses them; the words that take an alarm back
//! (`0 faults`, `panic handler installed`, `exception test: OK`) are few, too. So a line is cut into
//! words, and a crash word near its start counts unless a denial stands in the right place: before
//! the word, as its value, or as the result at the line's end. A wrong alarm makes a green run
//! inconclusive and can be allowed by a pattern; a missed crash is a false pass. In doubt a line
//! is suspicious.
//!
//! Behind the end of a report each line is looked at, so a line costs microseconds here; in front of the
//! end, only lines around the stems of these words are.
//! `suspicion_lines.toml` holds the lines that the words were chosen by.

use super::crash_pairs::{NEGATIONS, RESULTS, is_beside, is_crash_pair};
use super::cut_headline::is_torn_headline;
use super::failed_result::{is_hex_dump, is_of_none, tells_failure};
use super::fatal_phrases::tells_end;
use super::foreign_crash::tells_foreign_crash;
use super::log_prefix::without_context;
use super::structured_counts::labelled_failures;
use super::supervision::tells_intervention;
use super::words::{Word, is_zero, listed, words};

/// Most prefixes taken off one line.
const MAX_PREFIXES: usize = 6;
/// A crash word counts among so many words at the start of a message: `The system has run into an
/// exception`. Behind them it is part of a sentence.
const LEAD: usize = 9;
/// A negation reaches over so many words: `no fatal errors`, `did not even panic`.
const REACH: usize = 3;

/// Words of which one near the start of a line makes it suspicious.
const CRASH: &str = "\
    fault faults faulted faulting hardfault busfault usagefault memfault memmanage \
    securefault segfault segfaulted pagefault doublefault panic panics panicked panicking \
    kpanic assert asserts asserted assertion assertions abort aborted aborting aborts \
    exception exceptions guru oops fatal trap trapped traps crash crashed crashing crashes \
    lockup deadlock deadlocked smashing smashed corrupt corrupted corruption backtrace \
    traceback stacktrace coredump unhandled uncaught sigsegv sigabrt sigbus sigill sigfpe \
    sigtrap sigrtred sigrtmem sigpvfn sigcppl sigstak sigoutofheap died bugcheck corruption stackoverflow error_handler os_error osrtxerrornotify unreachable unrecoverable uncorrectable nullpointerexception hardfaulthandler";

/// Crash words that tell of an event, wherever they stand: `the worker for packet 12 has crashed`.
const EVENTS: &str = "\
    faulted hardfault hardfaulted panicked panicking crashed aborted segfault segfaulted smashed \
    corrupted deadlocked died bugcheck unhandled uncaught unrecoverable sigsegv sigabrt sigbus sigill";

/// Words of what a test provokes: restarts, and the backtraces of its own calls.
const PROVOKED: &str = "\
    reset resetting reboot rebooting restart restarting backtrace traceback stacktrace";

/// Words of an end, which a line with the level of an error is about.
const ENDS: &str = "\
    resetting rebooting restarting terminating terminated exiting dying killed halting halted suspended \
    powering critical";

/// Neighbours of a crash word that name a part of the machine and no event.
const THINGS: &str = "\
    vector vectors table tables level levels injection detection detector protection support \
    tolerance tolerant counter counters statistics priority mask test tests testing stack \
    entry entries button line pin input signal class classes path log logs logging reporting \
    tracking reports storage partition delegation threshold thresholds limit limits above below";

/// Electric signals: `CS asserted`, `nRESET asserted by host`.
const SIGNALS: &str = "\
    line pin signal irq reset rst cs ss dtr rts cts dsr dcd wp hold en enable int req ack strobe \
    gpio select wake busy";

/// Words that begin a list of what is set up: `Enabling fault handlers: MemManage, BusFault`.
const SET_UP: &str = "enabling enabled enable installing installed install registering registered";

/// Words between a crash word and its value: `fault count: 0`.
const MEASURES: &str = "\
    count counts counter status flags register total number code errors address pebs blocks \
    sectors pages";

/// Words that say that all is well, where they stand behind a crash word.
const STATES: &str = "\
    installed registered enabled disabled configured initialized initialised initializing \
    initialising setup ready armed attached loaded supported available linked cleared \
    expected ignored skipped recovered simulated injected tested masked delegated mapped \
    suppressed remapped relocated refused rejected";

/// States that take back even something that failed.
const WANTED: &str = "expected ignored skipped recovered simulated injected suppressed handled";

/// Words that say that something failed.
const FAILED: &str = "fail failed failure failures fails testfailed";

/// Words at the start of a line that make it the result of a test.
const VERDICTS: &str = "ok okay pass passed passes xfail skip";

/// Words in front of a crash word that announce a test or a part of the set-up.
const ANNOUNCEMENTS: &str = "\
    test tests testing check checking checks verify verifying install installing enable \
    enabling register registering configure configuring init initializing initialising set \
    setting clear clearing cleared disable disabling simulate simulating simulated inject \
    injecting expect expecting expected ignore ignoring previous last save mapping \
    relocating delegated delegating default waiting if on should non-fatal";

/// Registers of which two in a row make a dump.
const REGISTERS: &str = "\
    pc lr sp psr xpsr cpsr spsr ra gp tp fp ip msp psp epc elr eip rip esp rsp ebp rbp eax \
    ebx ecx edx rax rbx rcx rdx rsi rdi eflags rflags cs ss ps sar lbeg lend lcount nip msr \
    ctr xer status cause hi lo retpc apsr ipsr depc dfsr afsr";

/// Registers that are only printed because of a fault.
const FAULT_REGISTERS: &str = "\
    cfsr hfsr mmfsr bfsr ufsr mmfar bfar mmar bfa mcause mepc mtval scause sepc stval \
    excvaddr exccause epc1 esr esr_el1 esr_el2 esr_el3 far_el1 elr_el1 badvaddr dfar ifar \
    ifsr cr2 sfsr sfar exc_return shcsr";

/// Words that go on behind a crash word, and begin no help of a command.
const EVENT: &str = "\
    in at on is was has of from by while during due because detected occurred happened caused \
    failed the a an";

/// Tells whether a line, colours removed, looks like a crash, an assertion or a failed test.
pub(crate) fn is_suspicious(line: &str) -> bool {
    let dire = |text| heads_error(text) || is_dire_level(text) || is_torn_headline(text);
    if messages(line).any(dire) || tells_foreign_crash(line) {
        return true;
    }
    let (text, calm) = message(line);
    if messages(line).any(is_hex_dump) {
        return false;
    }
    let words = words(text);
    // It is also printed at each start, for information.
    let image = !calm && text.starts_with("ELF file SHA");
    if image || dumps_registers(&words) {
        return true;
    }
    match likeness(line, text, &words) {
        Likeness::End => true,
        Likeness::Ordinary => false,
        Likeness::Open => {
            frames_reset(text, &words)
                || names_bad_reset(&words)
                || announces_suite(&words)
                || tells_intervention(text)
                || is_alarming(line, &words, calm, Place::Behind)
        }
    }
}

/// Tells whether a line says in words that something crashed or failed. Among the lines of tests, which
/// provoke errors and restarts and log what they caught, that is all that counts.
pub(super) fn words_tell_crash(line: &str) -> bool {
    let (text, calm) = message(line);
    let words = words(text);
    if messages(line).any(is_dire_level) {
        return true;
    }
    // `[INFO] FAILED once, retrying`: a test of what is tried again.
    let again = calm && words.iter().any(|word| listed("retry retrying", &word.text));
    matches!(likeness(line, text, &words), Likeness::Open)
        && !again
        && is_alarming(line, &words, calm, Place::Among)
}

/// Where a line stands.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    /// Behind the end of a report.
    Behind,
    /// Among its results.
    Among,
}

/// What a line looks like before its words are weighed.
enum Likeness {
    /// An end of its own kind, whatever its words are.
    End,
    /// The result of a test, an item of a list, a count of zero.
    Ordinary,
    /// Its words decide.
    Open,
}

fn likeness(line: &str, text: &str, words: &[Word<'_>]) -> Likeness {
    if text == "Killed" || tells_end(line) || dumps_state(text) {
        return Likeness::End;
    }
    let run = words.first().is_some_and(|first| first.text == "run" && text.starts_with('['));
    let verdict = run || words.first().is_some_and(|first| listed(VERDICTS, &first.text));
    let none = is_comment_of_todo(line) || labelled_failures(text) == Some(0);
    match is_in_list(text) || verdict || none {
        true => Likeness::Ordinary,
        false => Likeness::Open,
    }
}

fn is_alarming(line: &str, words: &[Word<'_>], calm: bool, place: Place) -> bool {
    let ends = || reports_error(line) && words.iter().any(|word| listed(ENDS, &word.text));
    if fails(words) || tells_failure(line) || ends() {
        return true;
    }
    // What a system tells for information is no crash, unless it says so in capitals or tells of
    // an event.
    let happened = |at: usize| {
        let place = words
            .get(at + 1)
            .is_some_and(|next| listed("at in", &next.text) && next.before.trim().is_empty());
        listed(EVENTS, &words[at].text) || place && listed(CRASH, &words[at].text)
    };
    (0..words.len()).any(|at| {
        let counts = at < LEAD && (!calm || words[at].capital) || happened(at);
        let provoked = place == Place::Among && listed(PROVOKED, &words[at].text);
        counts && !provoked && crashes(words, at)
    })
}

/// Lists a line and what is left of it as one prefix of a logger after another is taken off.
fn messages(line: &str) -> impl Iterator<Item = &str> {
    std::iter::successors(Some(line.trim_ascii()), |text| {
        let rest = without_context(text, true).map(str::trim_ascii);
        rest.filter(|rest| rest.len() < text.len())
    })
    .take(MAX_PREFIXES + 1)
}

/// Returns a line behind the prefixes of its logger, and whether these say that it is for information.
pub(super) fn message(line: &str) -> (&str, bool) {
    let calm = messages(line).take(MAX_PREFIXES).any(is_calm_level);
    (messages(line).last().unwrap_or_default(), calm)
}

/// `*** reset ***`, `!!! SYSTEM RESET !!!`: a line that says nothing else, between marks.
fn frames_reset(text: &str, words: &[Word<'_>]) -> bool {
    let framed = ["**", "!!", "##", "==", "--"].iter().any(|mark| text.starts_with(mark));
    let is_reset = |word: &Word<'_>| listed("reset reboot rebooting resetting", &word.text);
    let plain = |word: &Word<'_>| listed("system device board chip cpu mcu the now", &word.text);
    framed && words.iter().any(is_reset) && words.iter().all(|word| is_reset(word) || plain(word))
}

/// `Last reset cause: WDT_RESET`, `"RestartReason":"Hardware Watchdog"`: a second start says why there was one.
fn names_bad_reset(words: &[Word<'_>]) -> bool {
    const CAUSES: &str = "reason reasons cause causes caused info reas";
    const JOINED: &str = "\
        restartreason resetreason rebootreason resetcause reset_reason reset_cause reboot_reason \
        restart_reason resetreas";
    const BAD: &str = "\
        watchdog wdt wdg dog iwdg wwdg wdt_reset wdtrst iwdgrst wwdgrst wdog flt hrd fault hardfault panic \
        lockup exception abort assert";
    let pair = |pair: &[Word<'_>]| {
        listed("reset restart reboot", &pair[0].text) && listed(CAUSES, &pair[1].text)
    };
    let named = words.windows(2).position(pair).map(|at| at + 2);
    let named =
        named.or_else(|| words.iter().position(|word| listed(JOINED, &word.text)).map(|at| at + 1));
    let denied = |word: &&Word<'_>| listed("not no", &word.text);
    named.is_some_and(|at| {
        words[at..].iter().take_while(|word| !denied(word)).any(|word| listed(BAD, &word.text))
    })
}

/// `#   Failed (TODO) test 'dma'`: what TAP's producers say of a point that may fail.
fn is_comment_of_todo(line: &str) -> bool {
    let comment = line.trim_ascii_start().strip_prefix('#').map(str::trim_ascii_start);
    comment.is_some_and(|text| text.starts_with("Failed (TODO) test"))
}

/// `Suite 2 of 2: net`, `Running suite net (2/2)`: more tests than those that the report in front of it
/// has. A line that also says how they ended announces none.
fn announces_suite(words: &[Word<'_>]) -> bool {
    let number = |at: usize| words.get(at).and_then(|word| word.text.parse::<u32>().ok());
    let suite = words.iter().take(3).position(|word| listed("suite testsuite", &word.text));
    let Some(suite) = suite else { return false };
    let announced =
        words[..suite].iter().all(|word| listed("run running start starting test", &word.text));
    let share = (suite + 1..words.len()).any(|at| {
        let of = words.get(at + 1).is_some_and(|next| next.text == "of");
        let behind = number(at + 1 + usize::from(of));
        let joined = of || words.get(at + 1).is_some_and(|next| next.before == "/");
        let placed = at == suite + 1 || words[at].before.ends_with(['(', '[']);
        let part = number(at).filter(|_| placed && joined);
        part.is_some_and(|part| part > 0 && behind.is_some_and(|all| part <= all))
    });
    let ended = |word: &Word<'_>| {
        listed("ok pass passed done finished ended completed complete skipped", &word.text)
    };
    announced && share && !words.iter().any(ended)
}

/// `Error: x`, `FATAL: x`, `*** Fatal error`, `ERROR - x`, but not `error: 0` and `Error: none`.
fn heads_error(text: &str) -> bool {
    let words = words(text);
    let Some(first) = words.first() else { return false };
    let next = words.get(1);
    let named = matches!(first.text.as_str(), "error" | "fatal");
    let headed = next.is_none_or(|next| next.before.trim_start().starts_with([':', '!', ']']));
    // `ERROR in qf_dyn:120`, of QP.
    let placed = first.raw == "ERROR" && next.is_some_and(|next| listed("in at", &next.text));
    // `IntQ ERROR - tick count 25000`, of FreeRTOS' demonstrations.
    let told = words.iter().zip(words.iter().skip(1)).take(2).any(|(word, next)| {
        word.raw == "ERROR" && next.before == " - " && word.before.trim().is_empty()
    }) && words.first().is_none_or(|word| word.text != "no");
    (named && headed || placed || told) && !denied(&words, 0)
}

/// Words that begin a list of what there is.
const LIST_HEADS: &[&str] =
    &["Valid commands", "Available commands", "Available features", "Supported commands"];

/// A choice of ESP-IDF's test menu, and a command or an option with its help: `(1)  "panic" [heap]`,
/// `crash   provoke a hard fault`, `-e TEXT  show an error`.
pub(super) fn is_in_list(text: &str) -> bool {
    let choice = || {
        let (number, rest) = text.strip_prefix('(')?.split_once(')')?;
        let (_, tags) = rest.trim_ascii_start().strip_prefix('"')?.rsplit_once('"')?;
        let tags = tags.trim_ascii();
        let digits = !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit());
        Some(digits && (tags.is_empty() || tags.starts_with('[') && tags.ends_with(']')))
    };
    let command = || {
        let (name, help) = text.split_once("  ")?;
        // `panic on|off   reset on panic`
        let (name, usage) = name.split_once(' ').unwrap_or((name, "|"));
        let name = name.bytes().all(|b| b.is_ascii_lowercase() || matches!(b, b'_' | b'-'))
            && usage.contains(['|', '<', '[']);
        let help = help.trim_ascii().trim_end_matches('.');
        let plain = |b: u8| b.is_ascii_lowercase() || matches!(b, b' ' | b',' | b'-');
        let verb = help.split(' ').next().is_some_and(|first| !listed(EVENT, first));
        Some(name && verb && help.contains(' ') && help.bytes().all(plain))
    };
    let option = || {
        let (name, _) = text.split_once("  ")?;
        let name = name.split([' ', ',', '=']).next()?.strip_prefix('-')?;
        let letter = name.len() == 1 && name.starts_with(|c: char| c.is_ascii_alphabetic());
        let word = name.strip_prefix('-').is_some_and(|word| {
            word.starts_with(|c: char| c.is_ascii_lowercase())
                && word.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-')
        });
        Some(letter || word)
    };
    // `w    - calls a missing function.`
    let key = || {
        let (name, help) = text.split_once("  ")?;
        Some(name.len() == 1 && help.trim_ascii_start().starts_with("- "))
    };
    let holds = |item: Option<bool>| item.unwrap_or_default();
    let headed = LIST_HEADS.iter().any(|head| text.starts_with(head));
    headed || holds(choice()) || holds(command()) || holds(option()) || holds(key())
}

/// `<crit> x`, `[C] x`, `[FATAL] x`.
fn is_dire_level(text: &str) -> bool {
    const LEVELS: [&str; 16] = [
        "<crit>",
        "<emerg>",
        "<alert>",
        "<fatal>",
        "<0>",
        "<1>",
        "<2>",
        "[C] ",
        "[CRIT",
        "[crit",
        "[FATAL",
        "[fatal",
        "[EMERG",
        "[PANIC",
        "CRITICAL:",
        "FATAL:",
    ];
    LEVELS.iter().any(|level| text.starts_with(level))
}

/// `E (12) main: x`, `<err> app: x`, `[E][app:12]: x`, `ERROR | x`.
fn is_error_level(text: &str) -> bool {
    const LEVELS: [&str; 12] = [
        "E (", "E: ", "E/", "<err>", "<error>", "<3>", "[E]", "[ERR", "[error]", "[Error]",
        "ERROR:", "ERROR |",
    ];
    LEVELS.iter().any(|level| text.starts_with(level))
}

/// Tells whether a line has the level of an error.
pub(super) fn reports_error(line: &str) -> bool {
    messages(line).take(MAX_PREFIXES).any(is_error_level)
}

/// `I (12) main: x`, `<inf> app: x`, `[INFO] x`, `D: x`, `[I][wifi:012]: x`.
fn is_calm_level(text: &str) -> bool {
    const LEVELS: [&str; 13] = [
        "I (", "D (", "V (", "<inf>", "<dbg>", "<info>", "<debug>", "[INF]", "[INFO", "[DEBUG",
        "INFO", "DEBUG", "NOTICE:",
    ];
    let word = |level: &&str| {
        let behind = text.get(level.len()..).and_then(|rest| rest.chars().next());
        level.ends_with(['(', '>', ':']) || !behind.is_some_and(char::is_alphanumeric)
    };
    const MARKS: [&str; 11] =
        ["I: ", "D: ", "[I] ", "[D] ", "[I][", "[D][", "[C][", "I/TC:", "D/TC:", "<6>", "<7>"];
    // `I00003 main.c:12] x`, as OpenTitan prints it.
    let numbered = text.strip_prefix('I').is_some_and(|rest| {
        rest.len() > 5 && rest.as_bytes()[..5].iter().all(u8::is_ascii_digit) && rest.contains("] ")
    });
    LEVELS.iter().any(|level| text.starts_with(level) && word(level))
        || MARKS.iter().any(|mark| text.starts_with(mark))
        || numbered
}

/// Tells whether the word at an index stands for a crash.
fn crashes(words: &[Word<'_>], at: usize) -> bool {
    let word = words[at].text.as_str();
    let next = words.get(at + 1).filter(|next| is_beside(next));
    let bug = word == "bug" && words[at].capital && next.is_some_and(|next| next.before != "-");
    let begins = at == 0 || at == 1 && words[0].text == "in";
    let compound = || {
        begins
            && (word.split('_').any(|part| listed(CRASH, part)) || {
                let name = words[at].raw;
                let last = name.rfind(|c: char| c.is_ascii_uppercase()).map(|at| &name[at..]);
                !words[at].capital
                    && last.is_some_and(|last| listed(CRASH, &last.to_ascii_lowercase()))
            })
    };
    // `solo5_abort() called`
    let called = || {
        let name = word.rsplit('_').next().is_some_and(|last| listed("abort panic oops", last));
        name && words.get(at + 1).is_some_and(|next| next.text == "called")
    };
    (is_crash_pair(words, at) || bug || listed(CRASH, word) || compound() || called())
        && !denied(words, at)
}

/// Tells whether the crash word at an index is taken back.
pub(super) fn denied(words: &[Word<'_>], at: usize) -> bool {
    let plain = |word: &Word<'_>| !word.before.contains(['.', ',', ';', ':', '!', '(']);
    // `test failed`, `assertion failed: interrupts enabled`: it happened, and what stands behind it
    // is the condition.
    let failed = words[at..].iter().take(2).any(|word| listed(FAILED, &word.text));
    // In front: `no faults`, `did not panic`, `testing the exception`.
    for back in 1..=REACH.min(at) {
        let word = &words[at - back];
        // A system that was asked to stop, and a setting of a kernel's command line.
        if matches!((word.text.as_str(), words[at].text.as_str()), ("reboot", "system"))
            || word.text == "oops" && words[at].before == "="
        {
            return true;
        }
        if !plain(&words[at - back + 1]) {
            break;
        }
        // `CS line asserted` tells of a voltage.
        let electric = || {
            let low = word.raw.strip_prefix('n').map(str::to_ascii_lowercase);
            let low = low.filter(|_| word.raw.bytes().any(|b| b.is_ascii_uppercase()));
            listed(SIGNALS, &word.text) || low.is_some_and(|name| listed(SIGNALS, &name))
        };
        if back == 1 && words[at].text == "asserted" && electric() {
            return true;
        }
        let announced = || !failed && back <= 2 && listed(ANNOUNCEMENTS, &word.text);
        if listed(NEGATIONS, &word.text) && !numbers_part(words, at - back) || announced() {
            return true;
        }
    }
    if !failed && (counts_assertions(words, at) || lists_set_up(words, at)) {
        return true;
    }
    // Its value: `faults: 0`, `fault status = 0x00000000`, `panic: none`.
    let behind = || words.iter().enumerate().skip(at + 1);
    let named = |word: &&Word<'_>| listed(MEASURES, &word.text) && plain(word);
    let value = (at + 1..words.len()).find(|&index| !named(&&words[index]));
    if value.is_some_and(|index| {
        let word = &words[index];
        let set = word.before.contains([':', '=']);
        let counted = words[at].text.ends_with('s') || index > at + 1;
        set && (is_zero(&word.text) && !places_assertion(words, at) || word.text == "none")
            && (counted || ends_phrase(words, index))
            // A setting of a kernel's command line.
            || word.before.starts_with('=') && matches!(words[at].text.as_str(), "panic" | "oops")
    }) {
        return true;
    }
    // `assert 0, panic 0, watchdog 0`.
    let listed_zero =
        words.get(at + 1).is_some_and(|word| word.before == " " && is_zero(&word.text))
            && words.get(at + 2).is_none_or(|next| next.before.starts_with(','))
            && words.len() > 2;
    if listed_zero {
        return true;
    }
    // What it is: `exception vectors at 0x0`, `assert level 2`, but not `unhandled signal 11`.
    let thing = |word: &Word<'_>| listed(THINGS, &word.text) && plain(word);
    let quality = matches!(words[at].text.as_str(), "unhandled" | "uncaught");
    if !quality && behind().take(1).any(|(_, word)| thing(word)) {
        return true;
    }
    // How it is: `panic handler installed`, `fault was cleared`, `exception (3): handled`.
    let negated = |index: usize| {
        index > 0
            && (matches!(words[index - 1].text.as_str(), "not" | "never" | "un")
                // `FAULT: stack overflow (was: ready)`
                || words[index - 1].text == "was" && words[index].before.starts_with(':'))
    };
    // `ASSERT: expected 0 errors, got 3`.
    // `canary 0xdeadbe00 expected 0xdeadbeef`.
    let compared = |index: usize| {
        let is_value = |word: &Word<'_>| word.text.starts_with(|c: char| c.is_ascii_digit());
        words[index].text == "expected"
            && (words.get(index + 1).is_some_and(is_value) && is_value(&words[index - 1])
                // `TypeError: Expected a function`
                || words.get(index + 1).is_some_and(|next| listed("a an", &next.text))
                || words.get(index + 1).is_some_and(|next| listed("eq ne lt le gt ge", &next.text))
                || words[index + 1..]
                    .iter()
                    .any(|word| listed("got was actual but stored", &word.text))
                || words[..index].iter().any(|word| listed("differs differ", &word.text)))
    };
    let well =
        |word: &Word<'_>| listed(WANTED, &word.text) || !failed && listed(STATES, &word.text);
    if behind().any(|(index, word)| well(word) && !negated(index) && !compared(index)) {
        return true;
    }
    // How the line ends: `exception test ... OK`, but not `assertion failed: status == OK`.
    let last = words.len() - 1;
    let powers_off = last > 0 && words[last - 1].text == "powering";
    last > at
        && !powers_off
        && listed(RESULTS, &words[last].text)
        && !negated(last)
        && !words[last].before.contains(['=', '<', '>', '('])
        && !words.iter().any(|word| word.text.starts_with("fail"))
}

/// `device 0 fault`, `vcpu#0`, `0 panic: x`: a number that tells which one, and no count.
fn numbers_part(words: &[Word<'_>], at: usize) -> bool {
    const PARTS: &str =
        "device core cpu hart vcpu thread task channel bank unit node port slot bus";
    // `thr[1] wfi` tears `thread 0 panic: index out of bounds`.
    let headline = || {
        words.get(at + 1).is_some_and(|word| word.after == ": ")
            && words.get(at + 2).is_some_and(|word| word.text.parse::<u64>().is_err())
    };
    is_zero(&words[at].text)
        && (words[at].before.ends_with('#')
            || at > 0 && listed(PARTS, &words[at - 1].text)
            || headline())
}

/// `ASSERT:0@main.c,12`: the value is the condition, and a source file stands behind it.
fn places_assertion(words: &[Word<'_>], at: usize) -> bool {
    let file =
        |word: &Word<'_>| word.before == "." && listed("c h cc cpp cxx hpp rs ino s", &word.text);
    words[at].text.contains("assert") && words[at + 1..].iter().any(file)
}

/// Tells whether what stands behind a value belongs to something else: `panic: 0, resets: 1`, but not
/// `panic: 0 blocks left`.
fn ends_phrase(words: &[Word<'_>], value: usize) -> bool {
    let Some(next) = words.get(value + 1) else { return true };
    let names = words.get(value + 2).is_some_and(|word| word.before.contains([':', '=']));
    names || !next.before.trim().is_empty()
}

/// `2 tests, 5 assertions, 0 failures`, and a row of a table: `asserts  5  5  5  0  n/a`.
fn counts_assertions(words: &[Word<'_>], at: usize) -> bool {
    let is_number =
        |word: &Word<'_>| !word.text.is_empty() && word.text.bytes().all(|b| b.is_ascii_digit());
    let beside = |index: usize| {
        words.get(index).is_some_and(is_number) && words[index.max(at)].before.trim().is_empty()
    };
    listed("assertion assertions asserts", &words[at].text)
        && (at > 0 && beside(at - 1) || at == 0 && beside(1) && beside(2))
}

/// `Enabling fault handlers: MemManage, BusFault, UsageFault`.
fn lists_set_up(words: &[Word<'_>], at: usize) -> bool {
    let listed_here = words[at].before.contains([':', ',']);
    let kinds =
        |word: &Word<'_>| listed("handler handlers faults exceptions traps vectors", &word.text);
    listed_here
        && words.first().is_some_and(|first| listed(SET_UP, &first.text))
        && words[..at].iter().any(kinds)
        && words[at + 1..].iter().all(|word| word.before.contains([',']))
}

/// Tells whether a line reports a failed test in a format that no grammar knows.
fn fails(words: &[Word<'_>]) -> bool {
    const TESTS: [&str; 16] = [
        "passed",
        "test",
        "tests",
        "case",
        "cases",
        "testcase",
        "testcases",
        "suite",
        "suites",
        "check",
        "checks",
        "assertion",
        "assertions",
        "asserts",
        "spec",
        "specs",
    ];
    let checks = |word: &str| word.ends_with("_check") || word.ends_with("_assert");
    let about_tests =
        || words.iter().any(|word| TESTS.contains(&word.text.as_str()) || checks(&word.text));
    words.iter().enumerate().take(12).any(|(at, word)| {
        let next = words.get(at + 1);
        // `Fail-safe relay`, and the titles of a table: `Passed Failed Inactive`.
        let compound = word.after == "-"
            && next.is_some_and(|n| listed("safe over back soft open closed fast", &n.text));
        // `FAILURE MODE: open-drain`.
        let qualifier = word.after == " "
            && next.is_some_and(|n| listed("mode modes path paths rate rates", &n.text));
        let title = at > 0
            && matches!(words[at - 1].text.as_str(), "passed" | "pass")
            && word.before.trim().is_empty()
            && next.is_some_and(|n| !n.text.bytes().all(|b| b.is_ascii_digit()));
        // `1 expected failures`
        let wanted = at > 0 && words[at - 1].text == "expected" && word.text.ends_with('s');
        let none = wanted || is_of_none(words, at);
        if !listed(FAILED, &word.text) || compound || qualifier || title || none {
            return false;
        }
        // `<... RESULT=fail>`, `##teamcity[testFailed name='x']`.
        let result = at > 0 && words[at - 1].text == "result" && word.before.contains(['=', ':']);
        if result || word.text == "testfailed" {
            return true;
        }
        let number =
            |index: usize| words.get(index).filter(|w| w.text.bytes().all(|b| b.is_ascii_digit()));
        let before = at.checked_sub(1).and_then(number);
        // `Failed Assertions: 0`
        let noun = usize::from(next.is_some_and(|next| TESTS.contains(&next.text.as_str())));
        let after = number(at + 1 + noun).filter(|next| next.before.contains([':', '=']));
        if let Some(count) = after.or(before) {
            return !is_zero(&count.text) && (about_tests() || words.len() <= 4);
        }
        let alone = words.len() == 1 || at == 0 && word.capital;
        (alone || word.capital || about_tests()) && !denied(words, at)
    })
}

/// `>>>stack>>>`, `up_dump_register: ...`, and the packet in which a gdb stub says that the core has
/// stopped: `$T05thread:01;#07`.
fn dumps_state(text: &str) -> bool {
    const DUMPS: [&str; 8] = [
        ">>>stack>>>",
        "<<<stack<<<",
        "dump_register",
        "registerdump",
        "dump_stack",
        "stackdump",
        "dump_task",
        "dumpstate",
    ];
    let head = text.split_ascii_whitespace().next().unwrap_or_default();
    if DUMPS.iter().any(|dump| head.trim_end_matches(':').ends_with(dump)) {
        return true;
    }
    text.match_indices('$').any(|(at, _)| {
        let hex = |text: &str| text.bytes().all(|b| b.is_ascii_hexdigit());
        let Some((body, sum)) = text[at + 1..].split_once('#') else { return false };
        let signal = body.strip_prefix(['T', 'S']).and_then(|body| body.get(..2));
        signal.is_some_and(hex) && sum.get(..2).is_some_and(hex) && !body.contains(' ')
    })
}

/// Tells whether a line is a row of a register dump: `r0: deadbeef r1: 00000000`.
fn dumps_registers(words: &[Word<'_>]) -> bool {
    let hex = |text: &str| {
        let digits = text.strip_prefix("0x").unwrap_or(text);
        digits.len() >= 4 && digits.bytes().all(|b| b.is_ascii_hexdigit())
    };
    let numbered = |name: &str| {
        let digits = name.trim_start_matches(|c: char| "raxst".contains(c));
        name.len() - digits.len() == 1
            && matches!(digits.len(), 1 | 2)
            && digits.bytes().all(|b| b.is_ascii_digit())
    };
    let mut rows = 0;
    for (name, value) in words.iter().zip(words.iter().skip(1)) {
        let name = name.text.as_str();
        let gap = value.before.trim();
        if !hex(&value.text) || !matches!(gap, "" | ":" | "=" | "(" | "): " | "):" | "->") {
            continue;
        }
        if listed(FAULT_REGISTERS, name) && !is_zero(&value.text) {
            return true;
        }
        rows += usize::from(listed(REGISTERS, name) || numbered(name));
    }
    rows >= 2
}

#[cfg(test)]
#[path = "suspicion_tests.rs"]
mod tests;
