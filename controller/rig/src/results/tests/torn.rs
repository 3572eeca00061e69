//! Reports of which a line was torn by other output, or has noise in front.

use super::{brief, could_be_green, read, read_chunks};

#[test]
fn ok_behind_the_not_of_a_torn_point_is_no_pass() {
    for torn in [
        "not I (812) wifi: connected\n",
        "not [wifi] connected\n",
        "not [   12.3] usb 1-1: new device\n",
        "not # heap 1200 free\n",
        "not \n",
        "not \r\n",
        "not \n[wifi] connected\n",
        "I (812) wifi: connected not \n",
    ] {
        for report in [
            ["1..3\nok 1 - a\n", "ok 2 - b\nok 3 - c\n"],
            ["TAP version 13\n1..2\n", "ok 1 - a\nok 2 - b\n"],
            ["1..2\nok 1 - a\n", "ok 2 - b\n"],
            ["", "ok 1 - a\nok 2 - b\n1..2\n"],
        ] {
            let whole = read(&report.concat());
            assert!(could_be_green(&whole), "{}", brief(&whole));
            // In front of the first line only the line above is looked at.
            if report[0].is_empty() && torn.lines().count() > 1 {
                continue;
            }
            let text = format!("{}{torn}{}", report[0], report[1]);
            let read = read(&text);
            assert!(!could_be_green(&read), "{text:?}: {}", brief(&read));
        }
    }
}

#[test]
fn log_that_begins_with_not_tears_nothing() {
    for log in [
        "not found: /etc/config\n",
        "not enough memory, a smaller buffer is used\n",
        "the cache is used or not\n",
        "cannot\n",
        "not ok\n",
    ] {
        let report = read(&format!("1..2\nok 1 - a\n{log}ok 2 - b\n"));
        assert_eq!(could_be_green(&report), log != "not ok\n", "{log}: {}", brief(&report));
    }
    // What failed anyway, and what was skipped.
    let report = read("1..2\nok 1 - a\nnot \nok 2 - b # SKIP no net\n");
    assert!(could_be_green(&report), "{}", brief(&report));
}

#[test]
fn noise_in_front_of_the_first_line_is_no_part_of_it() {
    let tap = "1..2\nok 1 - a\nok 2 - b\n";
    let unity = "a.c:1:t:PASS\na.c:9:u:PASS\n2 Tests 0 Failures 0 Ignored\nOK\n";
    let libtest = "running 1 test\ntest a ... ok\n\ntest result: ok. 1 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out\n";
    for noise in [&b"\xf8\x00"[..], b"\x80\xfe\xff", b"\x00\xff\xfe\x80\x00\xf8", b"\xf8\r\n\x80"] {
        for text in [tap, unity, libtest] {
            let report = read_chunks(&[noise, text.as_bytes()]).1;
            assert!(could_be_green(&report), "{noise:?} {text}: {}", brief(&report));
        }
        for text in [
            "not ok 1 - a\nok 2 - b\n1..2\n",
            "a.c:1:t:FAIL: x\na.c:9:u:PASS\n2 Tests 0 Failures 0 Ignored\nOK\n",
            // The noise may have been a `not`.
            "ok 1 - a\nok 2 - b\n1..2\n",
        ] {
            let report = read_chunks(&[noise, text.as_bytes()]).1;
            assert!(!could_be_green(&report), "{noise:?} {text}: {}", brief(&report));
        }
        // In the middle of a report it may hide what stood there.
        let text = [b"1..2\nok 1 - a\n", noise, b"ok 2 - b\n"];
        let report = read_chunks(&text).1;
        assert!(!could_be_green(&report), "{noise:?}: {}", brief(&report));
    }
}
