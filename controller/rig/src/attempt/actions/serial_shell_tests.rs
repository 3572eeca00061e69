//! Lines that are typed at a serial console, read by a real `/bin/sh`.

use std::process::{Command, Stdio};

use proptest::prelude::*;

use super::*;

/// Types lines into a real shell; returns what stands between the two lines of Jig, and the status.
fn type_into_sh(script: &str, subshell: bool) -> (String, String) {
    use std::io::Write as _;
    let lines = typed(script, "0123", subshell);
    assert!(lines.iter().all(|line| line.len() <= LINE && !line.contains(['\n', '\t'])));
    // What a console repeats of the input is no end.
    assert!(lines.iter().all(|line| !line.contains("jig-begin") && !line.contains("jig-end")));
    let mut child = Command::new("/bin/sh");
    let child = child.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = child.spawn().unwrap();
    let mut input = child.stdin.take().unwrap();
    input.write_all(format!("{}\n", lines.join("\n")).as_bytes()).unwrap();
    drop(input);
    let output = String::from_utf8(child.wait_with_output().unwrap().stdout).unwrap();
    let (_, rest) = output.split_once("jig-begin-0123\n").unwrap();
    let (said, end) = rest.split_once("\njig-end-0123:").unwrap();
    (said.to_owned(), end.trim_end().trim_end_matches(':').to_owned())
}

fn words(all: &[&str]) -> String {
    posix_line(&all.iter().map(|&word| word.to_owned()).collect::<Vec<_>>())
}

#[test]
fn a_script_stands_between_two_lines_with_its_status() {
    assert_eq!(type_into_sh("echo one; echo two >&2", true), ("one\ntwo\n".into(), "0".into()));
    assert_eq!(type_into_sh("exit 7", true), (String::new(), "7".into()));
    assert_eq!(type_into_sh("printf x", false), ("x".into(), "0".into()));
    // It cannot take the input that is typed next.
    assert_eq!(type_into_sh("cat", true), (String::new(), "0".into()));
}

#[test]
fn no_two_ends_are_the_same() {
    let (one, other) = (token(), token());
    assert!(one != other && one.len() == 32, "{one} {other}");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn any_argument_comes_through_a_line_editor(
        args in prop::collection::vec(prop_oneof!["[ -~]{0,300}", "\\PC{0,20}", "[\t\n\r'\"\\\\$`!]{0,9}"], 1..4),
    ) {
        let mut all = vec!["printf", "%s|"];
        all.extend(args.iter().map(String::as_str));
        let (said, status) = type_into_sh(&words(&all), true);
        let expected: String = args.iter().map(|arg| format!("{arg}|")).collect();
        prop_assert_eq!((said, status), (expected, "0".to_owned()));
    }
}
