//! Tells whether a line gives the name of an error as the result of a test. Pure.
//!
//! # Design
//! Drivers print names of errors in healthy systems, too: `i2c: probe 0x51: -ENXIO`. So a line counts
//! only if it consists of the name of a test, a joint and a code: `spi selftest: -EIO`. What stands
//! between them (`spi selftest: read: -EIO`) may be what the test has read and wanted. A name of a test
//! that tries what is wrong (`test_bad_addr`) wants an error, and a line that goes on in another way
//! (`-EIO, retrying`) is no result. `error_code_lines.toml` holds examples and near misses.

use std::sync::LazyLock;

use regex_automata::meta::Regex;
use regex_automata::util::syntax;

use super::result_rows::goes_on;
use super::scan::searched_once;
use super::words::{listed, names_test, words};

/// Parts of the patterns, by the name that they are put in for.
const PARTS: &[(&str, &str)] = &[
    // Errors of POSIX, of vendors' libraries, and of a form that many use
    (
        "CODE",
        r"(?:-?(?:ERRNO)\b|ESP_FAIL|ESP_ERR_[A-Z0-9_]+|HAL_(?:ERROR|BUSY|TIMEOUT)|kStatus_[A-Za-z0-9_]+|FR_(?:DISK_ERR|INT_ERR|NOT_READY|NO_[A-Z]+|INVALID_[A-Z]+|DENIED|EXIST|WRITE_PROTECTED|NOT_[A-Z_]+|MKFS_ABORTED|TIMEOUT|LOCKED)|osError[A-Za-z]*|pdFAIL|err[A-Z]+_[A-Z_]+|(?:[A-Z][A-Z0-9]*_)+(?:ERR|ERROR|FAIL|FAILED|FAILURE|TIMEOUT|TIMED_OUT|BUSY|INVALID|CORRUPT|MISMATCH|NACK|NAK)(?:_[A-Z0-9]+)*|ERR_[A-Z0-9_]+|-?[0-9]+ ?\(-?(?:ERRNO)\)|-(?:0x)?[0-9A-Fa-f]+ ?\((?:ESP|HAL|ERR)_[A-Z_]+\))",
    ),
    (
        "ERRNO",
        "EPERM|ENOENT|EINTR|EIO|ENXIO|E2BIG|EBADF|EAGAIN|EWOULDBLOCK|ENOMEM|EACCES|EFAULT|EBUSY|EEXIST|\
         ENODEV|EINVAL|ENOSPC|EROFS|EPIPE|ERANGE|EDOM|ENOSYS|ENOTSUP|EOPNOTSUPP|ETIMEDOUT|ETIME|EPROTO|\
         EILSEQ|EBADMSG|EMSGSIZE|EOVERFLOW|ENODATA|ECANCELED|ECONNREFUSED|ECONNRESET|ECONNABORTED|\
         EHOSTUNREACH|ENETUNREACH|ENETDOWN|ENOTCONN|EALREADY|EREMOTEIO|ENOLINK|ENOBUFS|ECOMM|ECHRNG",
    ),
    (
        "KEY",
        r"(?:(?:rc|ret|retval|err|error|errno|code|status|result|failed|returned|with)[ =:]+){0,2}",
    ),
    ("JOINT", r"(?: ?(?::|=|=>|->|\.{2,}) ?| -+ | )"),
    ("NAME", r"[A-Za-z0-9_][\w./+-]*(?: [\w./+-]+){0,3}?(?:\(\))?"),
];

/// What such a line looks like, as a whole.
const PATTERNS: &[&str] = &[
    r"^(NAME)JOINTKEYCODE(?: ?[(\[][^)\]]*[)\]])?[.!]*$",
    // `spi selftest: err -5`
    r"^(NAME)JOINT(?:rc|ret|retval|err|error|errno)[ =:]+-0*[1-9][0-9]*[.!]*$",
    r"^(NAME)(?:\(\))? returned -0*[1-9][0-9]*[.!]*$",
    r"^CODE (?:in|from|by|during) (NAME)[.!]*$",
];

/// Text of which one stands in each such line, unless a word of results does.
pub(super) const HINTS: &str = r"(?-i:[:= .(-]-?E[A-Z0-9]{2,}|ESP_|HAL_|kStatus_|FR_|osError|pdFAIL|_ERR|ERR_|_TIME|_BUSY|_INVAL|_CORRUPT|_NAC?K)|\b(?:rc|ret|retval|errno)[ =:]+-|returned -";

/// Words of a name that names a test.
const TESTS: &str = "\
    test tests testcase selftest unittest check bist post spec scenario verification";

/// Parts of a name of a test that wants an error.
const WANTS_ERROR: &[&str] = &[
    "bad", "invalid", "wrong", "null", "neg", "err", "fail", "reject", "expect", "timeout",
    "overflow", "denied", "missing", "unknown", "without", "busy", "full", "empty", "nack",
    "inject",
];

/// Words of a line that takes the error back.
const EXCUSES: &str = "ok pass passed expected wanted ignored skipped todo known allowed simulated";

/// What stands behind a verdict that such a code takes back: `mount done|: -EIO`, `done| with ESP_FAIL`.
const BEHIND: &str = r"^[ :=>,;(-]*(?:in )?KEYCODE[)\].!]*$";

pub(super) static CODES: LazyLock<Option<Regex>> = LazyLock::new(|| compiled(PATTERNS));

static CODES_BEHIND: LazyLock<Option<Regex>> = LazyLock::new(|| compiled(&[BEHIND]));

fn compiled(patterns: &[&str]) -> Option<Regex> {
    let ascii = syntax::Config::new().unicode(false).utf8(false);
    let put = |text: String, (name, part): &(&str, &str)| text.replace(name, part);
    let patterns: Vec<String> =
        patterns.iter().map(|text| PARTS.iter().fold((*text).to_owned(), put)).collect();
    Regex::builder().configure(searched_once()).syntax(ascii).build_many(&patterns).ok()
}

/// Tells whether the name of an error follows a verdict directly, in what stands behind it.
pub(super) fn takes_back(behind: &str) -> bool {
    let Some(codes) = &*CODES_BEHIND else { return false };
    codes.is_match(behind.trim_ascii_end()) && !is_success(behind)
}

/// Tells whether a text gives the name of an error as the result of a test.
pub(super) fn is_failed_code(text: &str) -> bool {
    let text = text.trim_ascii();
    let Some(codes) = &*CODES else { return false };
    if !codes.is_match(text) || goes_on(text) || is_success(text) {
        return false;
    }
    let mut captures = codes.create_captures();
    codes.captures(text, &mut captures);
    let name = captures.get_group(1).and_then(|span| text.get(span.range())).unwrap_or_default();
    let excused = words(text).iter().any(|word| listed(EXCUSES, &word.text));
    names_a_test(name) && !excused
}

/// `ESP_ERR_NONE`, `kStatus_Success`, `NO_ERROR`: no errors.
fn is_success(text: &str) -> bool {
    words(text).iter().any(|word| {
        let last = word.raw.rsplit('_').next().unwrap_or_default();
        let none = word.raw.starts_with("NO_") || word.raw.contains("_NO_ERR");
        word.raw.contains('_') && (none || matches!(last, "OK" | "NONE" | "SUCCESS" | "Success"))
    })
}

/// `spi selftest`, `test_spi`, `flash check`, but not `test_bad_addr`.
fn names_a_test(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    let parts = || name.split(|c: char| !c.is_ascii_alphanumeric());
    let wants = parts().any(|part| WANTS_ERROR.iter().any(|other| part.starts_with(other)));
    let tests = parts().any(|part| listed(TESTS, part) || names_test(part));
    tests && !wants
}

#[cfg(test)]
mod tests {
    use super::super::candidate_lines::candidate;
    use super::super::tells_failure;
    use super::*;

    #[derive(serde::Deserialize)]
    struct Lines {
        failed: Vec<String>,
        near_misses: Vec<String>,
    }

    #[test]
    fn an_error_is_the_result_of_a_test_that_is_named() {
        assert!(CODES.is_some());
        let lines: Lines = toml::from_str(include_str!("error_code_lines.toml")).unwrap();
        let missed: Vec<_> = lines.failed.iter().filter(|line| !tells_failure(line)).collect();
        assert!(missed.is_empty(), "{missed:#?}");
        let skipped: Vec<_> =
            lines.failed.iter().filter(|line| candidate(line.as_bytes()).is_none()).collect();
        assert!(skipped.is_empty(), "not searched: {skipped:#?}");
        let wrong: Vec<_> = lines.near_misses.iter().filter(|line| tells_failure(line)).collect();
        assert!(wrong.is_empty(), "{wrong:#?}");
    }
}
