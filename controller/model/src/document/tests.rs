//! Tests of the shared vocabulary.

use std::time::Duration;

use super::*;
use crate::Problems;
use crate::pattern::Pattern;

crate::toml_table! {
    /// A document for these tests.
    struct RawSample {
        /// Version.
        version: u32 = required,
        /// A time.
        wait: Duration = required,
        /// A size.
        size: ByteSize = optional,
        /// A pattern.
        pattern: Pattern = optional,
        /// Words.
        words: Vec<Located<String>> = optional,
        /// Tables.
        part: Vec<Located<RawPart>> = optional,
        /// A keyword as a key.
        r#do: String = optional,
    }
    /// A part.
    struct RawPart {
        /// Its name.
        name: crate::ConsoleName = required,
    }
}

fn read(text: &str) -> Result<RawSample, Problems> {
    let findings = Findings::new();
    let raw = open::<RawSample>("sample", 1, text, &findings).map(|raw| raw.value);
    findings.finish("sample", "sample.toml", text, raw)
}

fn problems(text: &str) -> Vec<(&'static str, String, String)> {
    let problems = read(text).unwrap_err();
    let caret = |span: &Option<std::ops::Range<usize>>| {
        span.clone().map_or(String::new(), |s| problems.source[s].to_owned())
    };
    problems.list.iter().map(|p| (p.check, caret(&p.span), p.help.clone())).collect()
}

#[test]
fn everything_is_reported_at_once_and_in_order() {
    let text = "version = 1\nsise = 1\nsize = 'x'\nwords = ['a', 1, 2]\n[[part]]\n[[part]]\nname = 'a b'\n";
    let found: Vec<_> = problems(text).into_iter().map(|(c, at, _)| (c, at)).collect();
    let expected = [
        ("document::missing-key", ""),
        ("document::unknown-key", "sise"),
        ("document::bad-value", "'x'"),
        ("document::wrong-type", "1"),
        ("document::wrong-type", "2"),
        ("document::missing-key", "[[part]]"),
        ("document::bad-name", "'a b'"),
    ];
    assert_eq!(found, expected.map(|(c, at)| (c, at.to_owned())));
}

#[test]
fn a_good_document_is_read() {
    let raw =
        read("version = 1\nwait = '250ms'\nsize = '4K'\ndo = 'x'\npart = [{name='a'}]").unwrap();
    assert_eq!(raw.version.unwrap().value, 1);
    assert!(raw.pattern.is_none() && raw.words.is_none());
    assert_eq!(raw.wait.unwrap().value, Duration::from_millis(250));
    assert_eq!(raw.size.unwrap().value, ByteSize(4096));
    assert_eq!(raw.r#do.unwrap().value, "x");
    assert_eq!(raw.part.unwrap().value[0].value.name.as_ref().unwrap().value.as_str(), "a");
}

#[test]
fn another_version_is_the_only_problem() {
    let found = problems("version = 2\nnew_key = 1");
    assert_eq!(found.len(), 1);
    assert_eq!((found[0].0, found[0].1.as_str()), ("document::version", "2"));
    assert!(found[0].2.contains("this jig reads version 1"), "{}", found[0].2);
    assert_eq!(problems("version = 'x'\nnew_key = 1").len(), 1);
    assert_eq!(problems("")[0].0, "document::version");
}

#[test]
fn the_caret_stands_inside_the_pattern() {
    for (quoted, at) in [
        ("'ab(c'", "("),
        ("\"ab(c\"", "("),
        (r#""\\d\u00e9(c""#, "("),
        ("'''\nab(c'''", "("),
        ("\"\"\"ab(c\"\"\"", "("),
    ] {
        let found = problems(&format!("version = 1\nwait = '1s'\npattern = {quoted}"));
        assert_eq!((found[0].0, found[0].1.as_str()), ("document::bad-pattern", at), "{quoted}");
    }
}

#[test]
fn syntax_errors_are_reported_alone() {
    let found = problems("version = 1\nwait = 10s\n[part\nx = 1");
    assert!(found.iter().all(|(check, ..)| *check == "document::syntax"), "{found:?}");
    assert!(found.len() >= 2, "{found:?}");
}

#[test]
fn quantities() {
    assert_eq!(parse_duration("5m"), Ok(Duration::from_secs(300)));
    assert_eq!(parse_duration("30d"), Ok(Duration::from_secs(2_592_000)));
    for bad in ["", "s", "10", "1.5s", "-1s", "1 s", "1S", "99999999999999999999s"] {
        assert!(parse_duration(bad).is_err(), "{bad}");
    }
    assert_eq!(parse_size("0x10"), Ok(ByteSize(16)));
    assert_eq!(parse_size("2GiB"), Ok(ByteSize(2 << 30)));
    for bad in ["", "K", "1k", "0x", "0x+1", "-1", "1T", "99999999999G"] {
        assert!(parse_size(bad).is_err(), "{bad}");
    }
}

#[test]
fn suggestions_are_near_or_a_list() {
    assert_eq!(did_you_mean("bard", ["name", "baud"]), "did you mean `baud`?");
    assert_eq!(did_you_mean("zzz", ["name", "baud"]), "use one of: name, baud");
}

#[test]
fn a_flood_of_problems_is_bounded() {
    use std::fmt::Write as _;
    let mut text = "version = 1\n".to_owned();
    for n in 0..10_000 {
        let _ = writeln!(text, "key{n} = 1");
    }
    assert_eq!(read(&text).unwrap_err().list.len(), 100);
}

#[test]
fn places_of_dotted_tables_are_shown() {
    let found = problems("version = 1\nwait = '1s'\npart.name = 'x'\nlimits.flood = 1\n");
    let found: Vec<_> = found.into_iter().map(|(check, at, _)| (check, at)).collect();
    let expected = [("document::wrong-type", "part"), ("document::unknown-key", "limits")];
    assert_eq!(found, expected.map(|(check, at)| (check, at.to_owned())));
}

#[test]
fn hostile_documents_cost_little() {
    for unit in [
        "=",
        "\"",
        "'",
        "[",
        "{",
        "a.",
        "a=1\n",
        "[[part]]\n",
        "x = [\n",
        "\\",
        "a\n",
        "{a=",
        "[a.a]\n",
        "é",
    ] {
        let started = std::time::Instant::now();
        let text = format!("version = 1\n{}", unit.repeat(200_000 / unit.len()));
        let problems = read(&text).unwrap_err();
        assert!(problems.list.len() <= 100);
        // Milliseconds in truth; something quadratic would take minutes.
        assert!(!problems.to_string().is_empty());
        assert!(started.elapsed().as_secs() < 20, "{unit:?} took {:?}", started.elapsed());
    }
    assert_eq!(problems(&"#".repeat(1 << 19))[0].0, "document::size");
}

#[test]
fn a_key_by_its_old_name_is_told_the_new_one() {
    crate::toml_table! {
        /// A device.
        struct RawDevice {
            /// Its version.
            version: u32 = optional,
            /// Time between two commands.
            min_interval: String = optional,
        }
    }
    let (text, findings) = ("version = 1\ngap = '1s'\nstorm = '2M'\n", Findings::new());
    let raw = open::<RawDevice>("device", 1, text, &findings);
    let problems = findings.finish("device", "device.toml", text, raw).unwrap_err();
    let said: Vec<_> = problems.list.iter().map(|p| (p.check, p.message.as_str())).collect();
    assert_eq!(
        said,
        [
            ("document::renamed-key", "`gap` is now called `min_interval`"),
            ("document::unknown-key", "unknown key `storm`"),
        ]
    );
}
