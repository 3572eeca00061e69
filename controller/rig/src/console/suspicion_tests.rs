//! Lines behind the end of a report that look like a crash, and those that do not.

use proptest::prelude::*;

use super::*;

fn lines(kind: &str) -> Vec<String> {
    let table: toml::Table = include_str!("suspicion_lines.toml").parse().unwrap();
    let lines = table[kind].as_array().unwrap().iter();
    lines.map(|line| line.as_str().unwrap().to_owned()).collect()
}

#[test]
fn crashes_are_suspicious() {
    let crashes = lines("crash");
    assert!(crashes.len() >= 60, "{}", crashes.len());
    let missed: Vec<_> = crashes.iter().filter(|line| !is_suspicious(line)).collect();
    assert!(missed.is_empty(), "{missed:#?}");
}

#[test]
fn harmless_lines_are_not_suspicious() {
    let harmless = lines("harmless");
    assert!(harmless.len() >= 60, "{}", harmless.len());
    let wrong: Vec<_> = harmless.iter().filter(|line| is_suspicious(line)).collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
}

proptest! {
    #[test]
    fn any_line_is_answered(line in "\\PC{0,120}") {
        is_suspicious(&line);
    }

    #[test]
    fn a_time_stamp_in_front_hides_no_crash(index in any::<prop::sample::Index>()) {
        let crashes = lines("crash");
        let line = &crashes[index.index(crashes.len())];
        let stamped = format!("[    1.204331] {}", line);
        prop_assert!(is_suspicious(&stamped));
    }
}
