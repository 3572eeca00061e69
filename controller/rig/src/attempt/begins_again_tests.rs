//! Boots that begin again behind the end, and output that only resembles one.

use std::io::Write as _;

use super::*;

#[derive(Clone, Copy)]
struct Case<'a> {
    front: &'a str,
    behind: &'a str,
    end_of: EndOf,
    resets_told: bool,
    allowed: &'a str,
}

impl Case<'_> {
    fn look<T>(self, look: impl FnOnce(&BootOutput<'_>) -> T) -> T {
        let allowed = match self.allowed {
            "" => PatternSet::new(&[]),
            pattern => PatternSet::new(&[pattern.parse().unwrap()]),
        };
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(self.front.as_bytes()).unwrap();
        file.write_all(self.behind.as_bytes()).unwrap();
        look(&BootOutput {
            log: &file,
            from: 0,
            end: self.front.len() as u64,
            end_of: self.end_of,
            resets_told: self.resets_told,
            allowed: &allowed.unwrap(),
            known: &[],
        })
    }

    /// Returns where the first line comes again, counted from the end.
    fn found(self) -> Option<Range<u64>> {
        let end = self.front.len() as u64;
        let found = self.look(|output| output.first_line_again().unwrap());
        found.map(|(span, _)| span.start - end..span.end - end)
    }

    fn banner(self) -> Option<String> {
        self.look(|output| output.banner_behind().unwrap()).map(|(_, text)| text)
    }
}

fn behind_report<'a>(front: &'a str, behind: &'a str) -> Case<'a> {
    Case { front, behind, end_of: EndOf::Report, resets_told: false, allowed: "" }
}

fn behind_text<'a>(front: &'a str, behind: &'a str) -> Case<'a> {
    Case { end_of: EndOf::AwaitedText, ..behind_report(front, behind) }
}

#[test]
fn a_first_line_that_comes_again_is_found() {
    let report = "*** app 1.2\r\nuart up\r\na.c:1:t:PASS\r\n1 Tests 0 Failures 0 Ignored\r\nOK\r\n";
    let behind = |behind| behind_report(report, behind);
    assert_eq!(behind("*** app 1.2\r\nuart up\r\n").found(), Some(0..11));
    assert_eq!(behind("bye\n\x1b[0m*** app 1.2\n").found(), Some(4..19));
    assert_eq!(behind("uart up\r\n").found(), None);
    assert_eq!(Case { allowed: "^.*app", ..behind("*** app 1.2\r\n") }.found(), None);
    assert_eq!(behind("*** app 1.2").found(), Some(0..11));
    assert_eq!(behind("").found(), None);
}

#[test]
fn a_prompt_and_a_rule_begin_no_boot() {
    let front = "> \n-----\nring self test\nok\n";
    assert_eq!(behind_report(front, "> \n-----\n").found(), None);
    assert_eq!(behind_report(front, "ring self test\n").found(), Some(0..14));
}

#[test]
fn a_cycle_begins_no_boot() {
    assert_eq!(behind_text("LED on\nLED off\n", "LED on\nLED off\n").found(), None);
    let twice = "app v1.2\nsample\napp v1.2\nsample\n";
    assert_eq!(behind_text(twice, "app v1.2\n").found(), None);
    assert_eq!(behind_text("app v1.2\nready\n", "app v1.2\nready\n").found(), Some(0..8));
}

#[test]
fn a_line_that_recurs_on_a_board_that_tells_of_resets_begins_no_boot() {
    let told = |front, behind| Case { resets_told: true, ..behind_report(front, behind) };
    let report = "tick\na.c:1:t:PASS\n1 Tests 0 Failures 0 Ignored\nOK\n";
    for behind in ["tick\n", "tick\ntick\n", "tick", "idle\ntick\nidle\n"] {
        assert_eq!(told(report, behind).found(), None, "{behind:?}");
    }
    // Nothing tells of the reset of a board on a serial port.
    assert_eq!(behind_report(report, "tick\n").found(), Some(0..4));
    // More lines, and a banner, are no line that only recurs.
    assert_eq!(told(report, "tick\na.c:1:t:PASS\n").found(), Some(0..4));
    assert_eq!(told("hello\nuart up\nOK\n", "hello\nuart up\n").found(), Some(0..5));
    assert_eq!(
        told("hello\nuart up\nOK\n", "hello\nworld\nhello\nuart up\n").found(),
        Some(12..17)
    );
    assert_eq!(told("app v1.2\nuart up\nOK\n", "app v1.2\n").found(), Some(0..8));
}

#[test]
fn numbers_of_first_lines_may_differ() {
    let stamped = "[    0.000012] app v1.2\n[    0.100000] uart up\nOK\n";
    assert_eq!(behind_report(stamped, "[   11.300000] app v1.2\n").found(), Some(0..23));
    let counted = "boot 1\nready\nOK\n";
    assert_eq!(behind_report(counted, "boot 2\nready\n").found(), Some(0..6));
    // A number that differs is no time stamp of a banner.
    assert_eq!(behind_report("LED 1 on\nready\nOK\n", "LED 2 on\n").found(), None);
    assert_eq!(behind_report("LED 1 on\nready\nOK\n", "LED 2 on\nready\n").found(), Some(0..8));
    assert_eq!(behind_report("12 34\n56 78\nOK\n", "13 35\n57 79\n").found(), None);
    // A line that recurs in front is none of a boot.
    let ticks = "[1] tick\n[2] tick\nOK\n";
    assert_eq!(behind_report(ticks, "[3] tick\n[4] tick\n").found(), None);
}

#[test]
fn each_banner_behind_a_report_begins_a_boot() {
    for banner in [
        "U-Boot 2024.01 (Jan 01 2024 - 00:00:00 +0000)",
        "*** Booting Zephyr OS build v3.6.0 ***",
        "I (27) boot: ESP-IDF v5.1.2 2nd stage bootloader",
    ] {
        let behind = format!("bye\r\n{banner}\r\n");
        let case = behind_report("hello\nOK\n", &behind);
        assert_eq!(case.banner().as_deref(), Some(banner));
        assert_eq!(Case { allowed: "U-Boot|Zephyr|ESP-IDF", ..case }.banner(), None);
    }
    assert_eq!(behind_report("OK\n", "U-Boot environment saved\n").banner(), None);
}

#[test]
fn the_next_stage_behind_an_awaited_text_is_no_new_boot() {
    let (spl, loader, linux) =
        ("U-Boot SPL 2024.01 (x)\n", "U-Boot 2024.01 (x)\n", "[    0.0] Linux version 6.1.0\n");
    let zephyr = "*** Booting Zephyr OS build v3.6.0 ***\n";
    for (front, behind, new) in [
        (format!("{spl}{loader}=> "), linux, false),
        (format!("{spl}{loader}=> "), loader, true),
        (format!("{spl}{loader}=> "), spl, true),
        (format!("{loader}{linux}login: "), loader, true),
        ("ready\n".to_owned(), spl, true),
        ("ready\n".to_owned(), zephyr, true),
        ("mode: 3\nJumping to the application\n".to_owned(), zephyr, false),
        ("Starting kernel".to_owned(), linux, false),
        (format!("I: Starting bootloader\n{zephyr}done\n"), "I: Starting bootloader\n", true),
    ] {
        assert_eq!(behind_text(&front, behind).banner().is_some(), new, "{front:?} {behind:?}");
    }
}

#[test]
fn a_second_core_that_boots_on_another_console_is_no_new_boot() {
    let zephyr = "*** Booting Zephyr OS build v3.6.0 ***\n";
    let elsewhere = |front, behind| Case { end_of: EndOf::Elsewhere, ..behind_text(front, behind) };
    assert_eq!(elsewhere("", zephyr).banner(), None);
    assert!(elsewhere(zephyr, zephyr).banner().is_some());
    // Its own first line, where that is a banner and has not come again in front.
    assert_eq!(elsewhere("net v3.1 start\nup\n", "net v3.1 start\n").found(), Some(0..14));
    assert_eq!(
        elsewhere("net v3.1 start\n", "bye\r\n\x1b[0mnet v3.1 start\r\n").found(),
        Some(5..23)
    );
    // Both came in one moment with the end, or three times: a cycle.
    assert_eq!(elsewhere("", "net v3.1 start\nup\nnet v3.1 start\n").found(), Some(18..32));
    for (front, behind) in [
        ("", "fw 1.2 alive\nfw 1.2 alive\nfw 1.2 alive\n"),
        ("net start\nup\n", "net start\nup\n"),
        ("net v3.1 start\nup\n", "net v3.1 stop\n"),
        ("fw 1.2 alive\nfw 1.2 alive\n", "fw 1.2 alive\n"),
        ("", "net v3.1 start\n"),
    ] {
        assert_eq!(elsewhere(front, behind).found(), None, "{front:?} {behind:?}");
    }
    assert!(elsewhere("", "rst:0x7 (TG0WDT_SYS_RESET),boot:0x13\n").banner().is_some());
}
