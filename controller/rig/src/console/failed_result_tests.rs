//! Lines that say that a test failed, and those that only resemble them.

use proptest::prelude::*;

use super::super::candidate_lines::candidate;
use super::*;

fn lines(kind: &str) -> Vec<String> {
    let table: toml::Table = include_str!("failed_result_lines.toml").parse().unwrap();
    let lines = table[kind].as_array().unwrap().iter();
    lines.map(|line| line.as_str().unwrap().to_owned()).collect()
}

#[test]
fn failed_results_are_found_in_unknown_formats() {
    let failed = lines("failed");
    let missed: Vec<_> = failed.iter().filter(|line| !tells_failure(line)).collect();
    assert!(missed.is_empty(), "{missed:#?}");
    let skipped: Vec<_> = failed.iter().filter(|l| candidate(l.as_bytes()).is_none()).collect();
    assert!(skipped.is_empty(), "not searched: {skipped:#?}");
}

#[test]
fn a_number_of_an_error_is_a_result_where_it_stands_alone() {
    for line in lines("failed_alone") {
        assert!(tells_failure(&line) && candidate(line.as_bytes()).is_some(), "{line}");
        assert!(!tells_failure(&format!("E (12) nvs: {line}")), "{line}");
    }
}

#[test]
fn logs_of_systems_that_start_hold_no_failed_result() {
    let boot = lines("boot_log");
    let wrong: Vec<_> = boot.iter().filter(|line| tells_failure(line)).collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn logs_of_passing_tests_hold_no_failed_result() {
    let harmless = lines("harmless");
    let wrong: Vec<_> = harmless.iter().filter(|line| tells_failure(line)).collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn most_of_a_log_is_passed_over() {
    for line in
        ["hello world", "boot ok in 12 ms", "T=25 C, p=1013 hPa", "[ RUN      ] Queue.Pop", ""]
    {
        assert_eq!(candidate(line.as_bytes()), None, "{line}");
    }
    for (line, at) in [(&b"ab Failed"[..], 3), (b"F\0A\0", 1), (b"a\x08a", 1), (b"\xff\xfe ko", 3)]
    {
        assert_eq!(candidate(line), Some(at), "{line:?}");
    }
}

proptest! {
    #[test]
    fn any_line_is_answered(line in "\\PC{0,120}") {
        tells_failure(&line);
    }

    #[test]
    fn words_of_results_in_any_order_are_answered(
        parts in prop::collection::vec(
            prop::sample::select(vec!["failed", "FAIL", "1", "of", "/", ":", " ", "tests", "not", "ok", "passed", "%", "(", "]", "a.", "::", "-EIO", "false", "=", "leaked", "bytes", "returned", "expected", "0", "-1"]),
            0..12,
        )
    ) {
        tells_failure(&parts.concat());
    }

    #[test]
    fn a_log_prefix_hides_no_failed_result(
        index in any::<prop::sample::Index>(),
        prefix in prop::sample::select(vec!["[    1.204331] ", "I (123) app: ", "<inf> test: ", "<3>", "12:30:01.5 "]),
    ) {
        let failed = lines("failed");
        let line = &failed[index.index(failed.len())];
        let stamped = format!("{prefix}{line}");
        prop_assert!(tells_failure(&stamped), "{}", stamped);
    }
}

/// Run it with optimisation and `--ignored`.
#[test]
#[ignore = "a measurement"]
fn searching_ten_megabytes_of_log() {
    let logs: [(&str, &str); 3] = [
        (
            "zephyr",
            "[00:00:01.234,000] <inf> app: sensor 12 reads 31337 (raw 0x7a69)\r\n[00:00:01.235,000] <dbg> net_core: rx: len 128, queue 3: ok\r\n[00:00:01.236,000] <wrn> i2c_nrfx: retry 2 of 5 on bus 1, main.c:120\r\n",
        ),
        (
            "linux",
            "[   12.345678] usb 1-1: new high-speed USB device number 2 using xhci_hcd\n[   12.345999] systemd[1]: Started Network Time Synchronization.\n",
        ),
        (
            "plain",
            "temperature=23.5 humidity=41.2 pressure=1013.2\nsrc/drivers/adc.c:88: channel 3 settled after 12 us\n2026-11-23 07:31:12.123 INFO  worker started: id=7\n0x20001000: 00 11 22 33 44 55 66 77 88 99 aa bb cc dd ee ff\n",
        ),
    ];
    for (name, lines) in logs {
        let bytes = lines.repeat((10 << 20) / lines.len()).into_bytes();
        let round = || {
            let start = std::time::Instant::now();
            let (mut from, mut hits) = (0, 0);
            while let Some(hit) = candidate(&bytes[from..]) {
                let end = memchr::memchr(b'\n', &bytes[from + hit..]).unwrap_or(0);
                (from, hits) = (from + hit + end + 1, hits + 1);
            }
            (start.elapsed(), hits)
        };
        let (time, hits) = (0..5).map(|_| round()).min().unwrap();
        println!("{name:8} {:6.1} ms, {hits} lines looked at", time.as_secs_f64() * 1e3);
    }
}
