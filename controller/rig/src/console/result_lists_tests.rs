//! Lists with a failed row, and output that only resembles one.

use proptest::prelude::*;

use super::super::candidate_lines::candidate;
use super::*;

/// Finds the failed row of some output, as the search of a log does.
pub(in crate::console) fn failed(output: &str) -> Option<&str> {
    let lines: Vec<&str> = output.split(" / ").collect();
    (0..lines.len()).find_map(|at| {
        let behind = failed_in_list(&lines[..at], lines[at], &lines[at + 1..])?;
        assert!(may_fail_in_list(lines[at]), "{}", lines[at]);
        assert!(candidate(format!("{}\n", lines[at]).as_bytes()).is_some(), "{}", lines[at]);
        Some(lines[at + behind])
    })
}

#[test]
fn a_word_is_a_verdict_where_a_row_beside_it_passes() {
    for (output, row) in [
        ("BIST RAM  ok / BIST ROM  ok / BIST FLASH  fail / BIST end", "BIST FLASH  fail"),
        ("BIST RAM ok / BIST FLASH fail / BIST ROM ok", "BIST FLASH fail"),
        ("ram ok / rom ok / flash bad", "flash bad"),
        ("name,result / ring,pass / spi,fail / end", "spi,fail"),
        ("name,result / spi,fail", "spi,fail"),
        ("ring;ok;12 / spi;error;3", "spi;error;3"),
        ("| 1 | ring | ok | / | 2 | spi | failed |", "| 2 | spi | failed |"),
        ("[PASS] uart0 / [PASS] rtc / [fail] eth: no link", "[fail] eth: no link"),
        ("[ ok ] uart0 / [nok ] eth", "[nok ] eth"),
        ("pass: uart / fail: rtc", "fail: rtc"),
        ("ok - uart / ok - spi / fail - rtc", "fail - rtc"),
        ("ram: ok / rom: ok / flash: fail (-5)", "flash: fail (-5)"),
        ("ram: ok / rom: ok / flash: not ok", "flash: not ok"),
        ("ram ..... ok / flash ... fail", "flash ... fail"),
        ("ram [ok] / flash [error]", "flash [error]"),
        ("ram passed / rom passed / flash failed", "flash failed"),
        (
            "QueueTest: pass / SemTest: pass / BlockTim: ERROR DETECTED IN BLOCK TIME TEST",
            "BlockTim: ERROR DETECTED IN BLOCK TIME TEST",
        ),
        ("uart  OK / spi  OK / eth  TIMEOUT", "eth  TIMEOUT"),
        (
            "I (30) post: ram: ok / I (31) post: rom: ok / E (32) post: eth: fail",
            "E (32) post: eth: fail",
        ),
        ("sensor 1: ok / sensor 2: ok / sensor 3: fail", "sensor 3: fail"),
        // A list that comes again has rows of the same names.
        ("[i2c] / probe  ok / read  fail / [spi] / probe  ok / read  ok", "read  fail"),
        ("gain  ok / offset  fail /  / gain  ok / offset  ok", "offset  fail"),
        ("Port 1 / gain  fail / link  ok / Port 2 / gain  ok / link  ok", "gain  fail"),
        ("mic passed / jack failed / mic passed / jack passed", "jack failed"),
        // A value stands beside the verdict, or a number in front of the name.
        ("3v3 3.29 pass / 1v8 1.81 pass / 5v0 4.20 fail", "5v0 4.20 fail"),
        ("3v3 is ok / 1v8 is ok / 5v0 is bad", "5v0 is bad"),
        ("ram test ok / rom test ok / flash test fail", "flash test fail"),
        ("ram  ok 12 ms / rom  ok 3 ms / flash  fail 40 ms", "flash  fail 40 ms"),
        ("1. ram ok / 2. rom ok / 3. flash fail", "3. flash fail"),
        ("(1/3) ram ok / (2/3) rom ok / (3/3) flash fail", "(3/3) flash fail"),
        ("ram  OK / rom  OK / eth  ERR", "eth  ERR"),
        ("ram: OK / rom: OK / imu: error -5", "imu: error -5"),
        // As minunit prints it.
        (
            "ring.c:31: error: pop(r) != 3 / test_can.c:31:test_filter:PASS",
            "ring.c:31: error: pop(r) != 3",
        ),
        ("ram: OK / rom: OK / imu: error: no answer", "imu: error: no answer"),
        ("crc32: correct / edn: correct / aha: incorrect", "aha: incorrect"),
        // A value in front of the one that is right, and a tally of none.
        ("Int_Glob:   7 /         should be:   5", "        should be:   5"),
        ("start / Passed: 0 Failed: 0", "Passed: 0 Failed: 0"),
        // The failed row comes first.
        ("ADC    NG / RAM   OK", "ADC    NG"),
        ("self test / ADC    NG / RAM   OK / done", "ADC    NG"),
        ("ADC  NG / RAM  OK / ROM  OK", "ADC  NG"),
        ("ADC: NG / RAM: OK", "ADC: NG"),
        ("[NG] ADC / [OK] RAM", "[NG] ADC"),
        // A detail stands behind the failed verdict.
        (
            "walking ones      OK / address lines     FAIL at 0x80401000: wrote 0x55 read 0x51",
            "address lines     FAIL at 0x80401000: wrote 0x55 read 0x51",
        ),
        (
            "POST cache PASSED / POST memory FAILED at 0x80001000 (read 0x0) / POST rtc PASSED",
            "POST memory FAILED at 0x80001000 (read 0x0)",
        ),
        (
            "RAM ............ OK / EEPROM ......... FAIL no ACK from 0x50",
            "EEPROM ......... FAIL no ACK from 0x50",
        ),
        ("addr bus: PASS / data bus: FAIL bit 3 stuck at 0", "data bus: FAIL bit 3 stuck at 0"),
        ("addr bus PASS / data bus FAIL @0x20001000", "data bus FAIL @0x20001000"),
        (
            "BIST: ram        ok / BIST: flash crc  fail: read 0x1, want 0x5 / BIST: adc        ok  (1.210 V)",
            "BIST: flash crc  fail: read 0x1, want 0x5",
        ),
        ("Test 1: SDRAM: PASS / Test 2: QSPI: error 0x12", "Test 2: QSPI: error 0x12"),
        ("LED ............ OK / Button ......... timeout", "Button ......... timeout"),
        // Rows of one name, and rows that all fail.
        ("loop  ok / loop  ok / loop  ok / loop  fail", "loop  fail"),
        ("loop  ok / loop  ok / loop  ok / loop  fail / loop  ok", "loop  fail"),
        ("ram: failed / rom: failed / flash: failed / bye", "ram: failed"),
        // By the head of the table.
        (
            "suite     pass fail skip / ring        12    0    0 / spi          3    1    1",
            "spi          3    1    1",
        ),
        ("suite,passed,failed / ring,12,0 / spi,3,1", "spi,3,1"),
        ("| test | ok | errors | / |------|----|--------| / | spi | 3 | 1 |", "| spi | 3 | 1 |"),
        ("total  pass  fail / 12     11    1 / done", "12     11    1"),
        ("total,passed,failed,skipped / 12,10,1,1", "12,10,1,1"),
        ("| total | pass | fail | / |-------|------|------| / | 12 | 11 | 1 |", "| 12 | 11 | 1 |"),
        ("pass fail / 11 1", "11 1"),
        ("suite tests errors / ring 12 1 / queue 4 0", "ring 12 1"),
        ("tests passed failed / spi 3 1", "spi 3 1"),
        ("I (1) t: name pass fail / I (2) t: ring buffer 3 1", "I (2) t: ring buffer 3 1"),
        // By its sum.
        (
            "module run pass fail skip / alloc 12 12 0 0 / sched 10 8 0 0 / total 22 20 0 0",
            "sched 10 8 0 0",
        ),
        ("total pass fail skip / 12 11 0 0", "12 11 0 0"),
        ("suite,tests,passed,failed / ring,4,5,0", "ring,4,5,0"),
        // By a share.
        ("Prove superate: 9/10 / fine", "Prove superate: 9/10"),
        ("vectors ok: 9/10 / done", "vectors ok: 9/10"),
        ("ok = 3 of 4", "ok = 3 of 4"),
    ] {
        assert_eq!(failed(output), Some(row), "{output}");
    }
}

#[test]
fn words_and_numbers_of_logs_are_no_rows() {
    for output in [
        // Errors of a kernel and of a library beside rows of an init system and of tests.
        "mmc0: error -110 whilst initialising SD card / Starting syslogd: OK / Starting network: OK",
        "lfs.c:1369:error: Corrupted dir pair / test_foc.c:31:test_clarke:PASS / test_foc.c:40:test_park:PASS",
        // Nothing beside it passes in the same place.
        "flash  fail",
        "spi,fail",
        "[fail] eth: no link",
        "mqtt: fail / wifi: ok",
        "mqtt fail / wifi ok",
        "wifi connect ok / mqtt publish ok / sd mount fail",
        "ram: ok / rom: ok / flash - fail",
        "1: ok / 2: ok / 3: fail",
        "a.c:1:t1:PASS / pci 0000:00:01.0: BAR 6: failed to assign [mem size 0x00040000 pref]",
        "Int_Glob:   5 /         should be:   5",
        "Passed: 0 Failed: 0 / Passed: 3 Failed: 0",
        // Tried again.
        "wifi: ok / dns: ok / mqtt: fail / mqtt: ok",
        "connect 1: fail / connect 2: ok / connect 3: ok",
        "link: ok / dhcp: fail / dns: ok / dhcp: ok / mqtt: ok",
        "link: ok / link: fail / link: ok",
        "wifi: failed / mqtt: failed / going on without a network",
        "wifi init ok / nvs init ok / sd init fail",
        "rx ok 12 / tx ok 3 / crc fail 2",
        "link: ok / phy: ok / mqtt: fail, retrying",
        "link: ok / phy: ok / nvs: fail, using default",
        // Levels and counters.
        "ok: sensor / ok: rtc / error: no device",
        "rx ok: 12 / tx ok: 3 / rx fail: 2",
        "I: sensor ok / I: rtc ok / E: i2c fail",
        "hb ok / hb ok / sd fail",
        "rx  ok 12 / tx  ok 3 / crc  fail 2",
        "ram: ok / rom: ok / link: fail over to eth1",
        "wifi: ok / dns: ok / mqtt: error connecting to the broker",
        "read ..... 5 s / poll ..... timeout",
        // Heads of other tables, and tables without a failure.
        "total pass fail / 12 12 0",
        "module run pass fail skip / a 12 12 0 0 / b 10 8 0 2 / c 8 8 0 2",
        "module total run pass fail / a 12 10 10 0",
        "run pass fail / 1 100 0 / 200 100 0",
        "module total pass fail warn / a 12 10 0 2",
        "module total pass fail blocked / a 12 10 0 2",
        "module errors tests ok / a 0 12 12",
        "total pass fail / 12 11 1 0",
        "total pass fail / a b c / 1.5 2 1",
        "total ok errors / 12 11 1",
        "suite tests errors / ring 12 0",
        "iface total errors / eth0 12 1",
        "rx ok fail / 12 11 1",
        "iface rx errors drop / eth0 12 3 1",
        "cmd ok fail / login 3 1",
        "suite pass fail skip / ring 12 0 0 / spi 4 0 1",
        "suite pass fail skip / loaded 3 1 of 4 modules",
        "pass and fail are words / spi 3 1 1",
        "suite pass fail / a / b / c / d / spi 3 1",
        "name,result / ring,pass",
        // Progress.
        "sectors ok: 3/10 / sectors ok: 10/10",
        "vectors ok: 10/10",
        "block ok: 3/10",
        "battery: 3/10",
        "fail over links ok",
        "not not é..ok",
        "not NOT éok",
    ] {
        assert_eq!(failed(output), None, "{output}");
    }
}

proptest! {
    #[test]
    fn any_lines_are_answered(lines in prop::collection::vec("\\PC{0,40}", 1..6)) {
        let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
        for at in 0..lines.len() {
            let found = failed_in_list(&lines[..at], lines[at], &lines[at + 1..]);
            prop_assert!(found.is_none_or(|behind| at + behind < lines.len()));
        }
    }

    #[test]
    fn parts_of_rows_in_any_order_are_answered(
        lines in prop::collection::vec(prop::collection::vec(
            prop::sample::select(vec!["ok", "fail", "FAIL", "not ", "pass", " ", "  ", ": ", ",", "|", "[", "]", "ram", "é", "3", "/", "of", "..", "(", ")", "s"]),
            0..10,
        ), 1..5)
    ) {
        let lines: Vec<String> = lines.iter().map(|parts| parts.concat()).collect();
        let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
        for at in 0..lines.len() {
            failed_in_list(&lines[..at], lines[at], &lines[at + 1..]);
        }
    }

    /// What stands beside a list of passes makes no failure of it.
    #[test]
    fn a_list_of_passes_holds_no_failure(names in prop::collection::vec("[a-z]{1,8}", 1..8)) {
        let rows: Vec<String> = names.iter().map(|name| format!("{name}: ok")).collect();
        let list = rows.join(" / ");
        prop_assert_eq!(failed(&list), None);
    }
}
