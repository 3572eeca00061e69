//! Text that a terminal shows, and text that neither it nor the bytes hold.

use proptest::prelude::*;

use jig_model::pattern::Pattern;

use super::*;

fn set(pattern: &str) -> PatternSet {
    PatternSet::new(&[Pattern::new(pattern).unwrap()]).unwrap()
}

/// Returns the parts of a log that print what a pattern matches, as it was fed.
fn found(log: &[u8], pattern: &str, chunk: usize) -> Vec<Vec<u8>> {
    let mut search = ShownSearch::new(&set(pattern), 100);
    let mut found: Vec<ShownMatch> = Vec::new();
    log.chunks(chunk).for_each(|bytes| found.append(&mut search.feed(bytes)));
    found.append(&mut search.begun(true));
    let part = |at: u64| usize::try_from(at - 100).unwrap();
    found
        .iter()
        .map(|ShownMatch { printed, line, .. }| {
            assert!(line.start <= printed.start && printed.end <= line.end);
            log[part(printed.start)..part(printed.end)].to_vec()
        })
        .collect()
}

#[test]
fn what_a_terminal_shows_is_found_and_nothing_else() {
    for (line, pattern, part) in [
        ("warn: over\x1b[0mrun of fifo", "overrun", Some("over\x1b[0mrun")),
        ("\x1b[31mERROR\x1b[0m: sd", "^ERROR", Some("ERROR")),
        ("\x1b[31mERROR\x1b[0m: sd", "^ERROR: sd$", Some("ERROR\x1b[0m: sd")),
        ("E\x1b[1m42\x1b[0m sd", "E42", Some("E\x1b[1m42")),
        ("ERR|\x08-42 sd card", "ERR-42", Some("ERR|\x08-42")),
        ("ERX\x08R-42 sd", "^ERR-42 sd$", Some("ERX\x08R-42 sd")),
        ("ERX\x08R-42 sd", "ERX$", Some("ERX")),
        ("ERR-42\x1b[2D17", "ERR-42", Some("ERR-42")),
        ("ERR-42\x1b[2D17", "ERR-17", Some("ERR-42\x1b[2D17")),
        ("  0 %\x1b[5GERROR\x1b[K", "0 ERROR", Some("0 %\x1b[5GERROR")),
        ("\x1b[2K\x1b[GERROR: sd", "^ERROR", Some("ERROR")),
        ("\x1b[5;1Hok\x1b[6;1HERROR\x1b[H", "^ERROR$", Some("ERROR")),
        ("\x1b]0;title\x07ERR\x1b[0mOR", "^ERROR", Some("ERR\x1b[0mOR")),
        ("E\x11R\0ROR", "ERROR", Some("E\x11R\0ROR")),
        ("\0\x7fERROR", "^ERROR", Some("ERROR")),
        ("grün: E\x1b[0m42 °", "E42", Some("E\x1b[0m42")),
        // The letters do not stand beside each other there, or are gone before the others come.
        ("warn: over\x1b[0m run of fifo", "overrun", None),
        ("over\x1b[2Crun", "overrun", None),
        ("over\x1b[2;1Hrun", "overrun", None),
        ("ER\x1b[2DR", "ER R|ERR", None),
        ("ERR|\x08\x08\x08-42", "ERR-42", None),
        ("ERR\x0b\x08-42", "ERR-42", None),
        ("sd: \x1b[31mERROR\x1b[0m", "^ERROR", None),
        ("\x1b[31mERROR\x1b[0m: sd", "ERROR$", None),
        ("E\x1b[1m42\x1b[0m sd", "E421", None),
        ("\x1b]0;E\x1b[0m42\x07", "E42", None),
        ("\x1b[31mok\x1b[0m", "1mok|31", None),
        // The bytes as they came are searched elsewhere.
        ("ERROR: sd", "ERROR", None),
    ] {
        for (before, after) in [("", ""), ("up\n", "\r\n"), ("\x1b[1mup\x1b[0m\r\n", "\nE\r4\n")] {
            let log = [before, line, after].concat();
            for chunk in [1, 3, 1000] {
                let part: Vec<_> = part.iter().map(|part| part.as_bytes().to_vec()).collect();
                assert_eq!(found(log.as_bytes(), pattern, chunk), part, "{log:?} {pattern}");
            }
        }
    }
    // An introducer of 8 bits, text in another encoding.
    assert_eq!(found(b"\xb0E\x9b1m4\x9bm2", "E42", 9), [b"E\x9b1m4\x9bm2"]);
    assert_eq!(found(b"4\x1b[0m2 \xb0C", "42 \\xB0", 9), [b"4\x1b[0m2 \xb0"]);
}

#[test]
fn a_line_that_goes_on_shows_what_is_certain() {
    let begun = |line: &[u8], pattern: &str| {
        let mut search = ShownSearch::new(&set(pattern), 0);
        assert_eq!(search.feed(line), []);
        search.begun(false).len()
    };
    assert_eq!(begun(b"E\x1b[1m42 e", "E42"), 1);
    assert_eq!(begun(b"E\x1b[1m42", "E42$"), 0);
    assert_eq!(begun(b"E\x1b[1m42", r"E42\b"), 0);
    assert_eq!(begun(b"E\x1b[1m4", "E42"), 0);
}

#[test]
fn text_in_front_of_a_search_is_shown_and_not_found() {
    let behind = |head: &[u8], rest: &[u8], pattern: &str| {
        let mut search = ShownSearch::behind(&set(pattern), head, true, 50);
        search.feed(rest).iter().map(|found| (found.printed.start, found.printed.end)).collect()
    };
    let none: [(u64, u64); 0] = [];
    let found: Vec<_> = behind(b"> E\x1b[1m42", b" ok\n", "E42");
    assert_eq!(found, none);
    let found: Vec<_> = behind(b"\x1b[1m> \x1b[m", b"E\x1b[1m42\n", "^E42");
    assert_eq!(found, none);
    let found: Vec<_> = behind(b"> E42 ", b"E\x1b[1m42\n", "E42");
    assert_eq!(found, [(50, 57)]);
    let found: Vec<_> = behind(b"ERX", b"\x08R-42\n", "R-42");
    assert_eq!(found, [(51, 55)]);
}

#[test]
fn long_lines_are_searched_in_pieces() {
    let hidden = b"E\x1b[1mRR\x1b[0m-42";
    for fill in [PIECE - 20, PIECE - 8, PIECE, PIECE + 8, 5 * PIECE] {
        for dots in [".".to_owned(), "\x1b[0m.".to_owned()] {
            let fill = dots.repeat(fill / dots.len());
            let log = [fill.as_bytes(), hidden, fill.as_bytes(), hidden, b"\n"].concat();
            for chunk in [4096, PIECE, log.len()] {
                let wanted = vec![hidden.to_vec(); 2];
                assert_eq!(found(&log, "ERR-42", chunk), wanted, "{} {chunk}", fill.len());
                assert_eq!(found(&log, "^ERR|[0-9]m", chunk), [b""; 0]);
            }
        }
    }
}

proptest! {
    #[test]
    fn what_was_fed_together_changes_nothing(
        log in r"(E|R|4|2| |\x08|\x1b\[m|\x1b\[2D|\x1b\[C|\x1b\[K|\n|\r|\x9b){0,30}",
        chunk in 1_usize..9,
    ) {
        for pattern in ["E42", "^R", "R$", "ER? 4"] {
            let whole = found(log.as_bytes(), pattern, 1000);
            prop_assert_eq!(whole, found(log.as_bytes(), pattern, chunk));
        }
    }
}
