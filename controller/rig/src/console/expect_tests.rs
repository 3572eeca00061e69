//! Waiting for text that comes in pieces, late, or never.

use std::sync::Arc;

use proptest::prelude::*;
use tokio::sync::watch;

use super::super::clock::Stamp;
use super::super::disk::LogState;
use super::super::log::{LogPaths, LogWriter};
use super::super::search::{Capture, find_all, find_shown};
use super::*;

/// A log that a test writes by hand.
struct Fake {
    log: LogWriter,
    state: watch::Sender<LogState>,
    paths: LogPaths,
    _folder: tempfile::TempDir,
}

impl Fake {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let paths = LogPaths::new(folder.path(), &"uart0".parse().unwrap());
        let log = LogWriter::create(&paths).unwrap();
        Self { log, state: watch::channel(LogState::default()).0, paths, _folder: folder }
    }

    fn print(&mut self, bytes: &[u8]) {
        self.log.append(Stamp::default(), bytes).unwrap();
        self.state.send_modify(|s| s.len = self.log.len());
    }

    fn end(&self) {
        self.state.send_modify(|s| s.ended = Some(TransportEnd::Closed));
    }

    fn follow(&self) -> Follower {
        Follower::new(&self.paths.raw, self.state.subscribe(), Arc::default(), 0, 0).unwrap()
    }
}

fn set(texts: &[&str]) -> PatternSet {
    let patterns: Vec<Pattern> = texts.iter().map(|t| Pattern::new(t).unwrap()).collect();
    PatternSet::new(&patterns).unwrap()
}

fn soon() -> Instant {
    Instant::now() + Duration::from_secs(5)
}

#[tokio::test(start_paused = true)]
async fn a_match_consumes_up_to_its_end_and_captures() {
    let mut fake = Fake::new();
    fake.print(b"boot v1.2 ok\nlogin: ");
    let mut follower = fake.follow();
    let (any, none) = (set(&["nope", r"v(?P<a>\d)\.(\d) "]), set(&[]));
    let matched = expect(&mut follower, &any, &none, soon()).await.unwrap();
    assert_eq!((matched.pattern, matched.start, matched.end), (1, 5, 10));
    assert_eq!(
        matched.captures[0],
        Capture { name: Some("a".to_owned()), bytes: Some(b"1".to_vec()) }
    );
    // The rest of the line is still there, but its start is gone.
    let starts = set(&["^ok", "login: "]);
    let matched = expect(&mut follower, &starts, &none, soon()).await.unwrap();
    assert_eq!((matched.pattern, follower.cursor()), (1, 20));
}

#[tokio::test(start_paused = true)]
async fn a_time_out_says_what_was_awaited_and_seen_and_consumes_nothing() {
    let mut fake = Fake::new();
    let mut follower = fake.follow();
    let (any, none) = (set(&["login:"]), set(&[]));
    let error = expect(&mut follower, &any, &none, soon()).await.unwrap_err();
    assert_eq!(error.to_string(), "waited 5.0 s for `login:`; nothing was printed");
    fake.print(&b"x".repeat(1000));
    fake.print(b"log");
    let error = expect(&mut follower, &any, &none, soon()).await.unwrap_err();
    let ExpectError::TimedOut { printed, last_bytes, .. } = error else { panic!("{error}") };
    assert_eq!((printed, last_bytes.len(), &last_bytes[196..]), (1003, 200, "xlog"));
    fake.print(b"in:");
    // Committed before a deadline that has passed already: still found.
    assert_eq!(expect(&mut follower, &any, &none, Instant::now()).await.unwrap().start, 1000);
}

#[tokio::test(start_paused = true)]
async fn rejects_ends_and_storage_errors_end_the_wait() {
    let mut fake = Fake::new();
    fake.print(b"all panic ok");
    let (any, reject) = (set(&["ok", "fine$"]), set(&["panic"]));
    let mut follower = fake.follow();
    let error = expect(&mut follower, &any, &reject, soon()).await.unwrap_err();
    let ExpectError::Rejected { matched, text, .. } = error else { panic!("{error}") };
    assert_eq!((matched.start, matched.end, text.as_str(), follower.cursor()), (4, 9, "panic", 0));

    follower.seek(12);
    fake.end();
    let error = expect(&mut follower, &any, &reject, soon()).await.unwrap_err();
    assert!(matches!(error, ExpectError::Ended { printed: 0, .. }), "{error}");
    // What waited for one more byte is decided by the end.
    fake.print(b" fine");
    assert_eq!(expect(&mut follower, &any, &reject, soon()).await.unwrap().end, 17);

    fake.state.send_modify(|s| s.error = Some(Arc::from("disk full")));
    let error = expect(&mut follower, &any, &reject, soon()).await.unwrap_err();
    assert!(matches!(error, ExpectError::Storage(FollowError::Storage(_))), "{error}");
}

#[tokio::test(start_paused = true)]
async fn a_prompt_without_a_line_end_ends_where_the_target_pauses() {
    let mut fake = Fake::new();
    fake.print(b"boot\r\njig> ");
    let mut follower = fake.follow();
    let (any, none) = (set(&["^jig> $"]), set(&[]));
    let began = Instant::now();
    assert_eq!(expect(&mut follower, &any, &none, soon()).await.unwrap().end, 11);
    assert_eq!(began.elapsed(), PAUSE);
    // What follows in time belongs to the line.
    follower.seek(6);
    let waited = async {
        tokio::time::sleep(PAUSE / 2).await;
        fake.print(b"busy");
        tokio::time::sleep(PAUSE * 2).await;
    };
    let (matched, ()) = tokio::join!(expect(&mut follower, &any, &none, soon()), waited);
    assert!(matches!(matched, Err(ExpectError::TimedOut { .. })), "{matched:?}");
    // So does what is refused, and it counts first; a time-out that is shorter ends the wait before.
    let (any, reject) = (set(&["busy"]), set(&["> busy$"]));
    assert_eq!(expect(&mut follower, &any, &reject, soon()).await.unwrap().end, 15);
    follower.seek(6);
    let (any, reject) = (set(&["busy$"]), set(&["> busy$"]));
    let refused = expect(&mut follower, &any, &reject, soon()).await.unwrap_err();
    assert!(matches!(refused, ExpectError::Rejected { .. }), "{refused}");
    let short = Instant::now() + PAUSE / 2;
    let early = expect(&mut follower, &any, &none, short).await.unwrap_err();
    assert!(matches!(early, ExpectError::TimedOut { .. }), "{early}");
}

#[tokio::test(start_paused = true)]
async fn a_prompt_ends_in_front_of_the_sequence_that_ends_its_colour() {
    let none = set(&[]);
    for (output, pattern, end) in [
        ("boot\r\n\x1b[32m> \x1b[0m", "> $", Some(13)),
        ("boot\r\n\x1b[1;32muart:~$ \x1b[m\x1b[K", r"uart:~\$ $", Some(21)),
        ("\x1b[32m> \x1b[0", "> $", Some(7)),
        ("boot\x1b[0m> ", "boot$", None),
        ("> \x1b[0mbusy", "> $", None),
        ("> \x1b[0m", "^>$", None),
    ] {
        let mut fake = Fake::new();
        fake.print(output.as_bytes());
        let mut follower = fake.follow();
        let began = Instant::now();
        let matched = expect(&mut follower, &set(&[pattern]), &none, soon()).await;
        assert_eq!(matched.as_ref().ok().map(|m| m.end), end, "{output:?} {matched:?}");
        assert_eq!(began.elapsed() == PAUSE, end.is_some(), "{output:?}");
        assert_eq!(follower.cursor(), end.unwrap_or(0));
    }
    // The sequence may come later than the prompt, and what is refused counts first.
    let mut fake = Fake::new();
    fake.print(b"\x1b[32m> ");
    let mut follower = fake.follow();
    let any = set(&["> $"]);
    let waited = async {
        tokio::time::sleep(PAUSE / 2).await;
        fake.print(b"\x1b[0m");
    };
    let (matched, ()) = tokio::join!(expect(&mut follower, &any, &none, soon()), waited);
    assert_eq!(matched.unwrap().end, 7);
    follower.seek(0);
    let refused = expect(&mut follower, &any, &set(&[">  ?$"]), soon()).await.unwrap_err();
    assert!(matches!(refused, ExpectError::Rejected { .. }), "{refused}");
}

#[tokio::test(start_paused = true)]
async fn a_dropped_wait_consumes_nothing() {
    let mut fake = Fake::new();
    fake.print(b"lo");
    let mut follower = fake.follow();
    let (any, none) = (set(&["login"]), set(&[]));
    let cancelled = expect(&mut follower, &any, &none, soon());
    assert!(tokio::time::timeout(Duration::from_secs(1), cancelled).await.is_err());
    fake.print(b"gin");
    assert_eq!(expect(&mut follower, &any, &none, soon()).await.unwrap().start, 0);
}

#[tokio::test(start_paused = true)]
async fn a_line_starts_at_a_boot_although_the_last_one_died_within_a_line() {
    let mut fake = Fake::new();
    fake.print(b"dying he");
    fake.print(b"ready");
    let mut follower = fake.follow();
    let (any, none) = (set(&["^ready"]), set(&[]));
    follower.seek(8);
    assert!(expect(&mut follower, &any, &none, soon()).await.is_err());
    follower.begin_boot(8);
    assert_eq!(expect(&mut follower, &any, &none, soon()).await.unwrap().start, 8);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn chunking_changes_nothing(text in "[ab\r\n]{0,24}", cuts in prop::collection::vec(0usize..24, 0..4)) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
        let (any, reject) = (set(&["ab+a", r"b$", "^aa"]), set(&[r"b\b", "ba", r"\n\n"]));
        let run = |mut cuts: Vec<usize>| runtime.block_on(async {
            let mut fake = Fake::new();
            let mut follower = fake.follow();
            cuts.retain(|&c| c < text.len());
            cuts.extend([0, text.len()]);
            cuts.sort_unstable();
            let waiting = tokio::spawn({
                let (any, reject) = (any.clone(), reject.clone());
                async move { (format!("{:?}", expect(&mut follower, &any, &reject, soon()).await), follower.cursor()) }
            });
            for pair in cuts.windows(2) {
                tokio::time::sleep(Duration::from_millis(1)).await;
                fake.print(&text.as_bytes()[pair[0]..pair[1]]);
            }
            tokio::time::sleep(Duration::from_millis(1)).await;
            fake.end();
            waiting.await.unwrap()
        });
        prop_assert_eq!(run(Vec::new()), run(cuts));
    }
}

#[tokio::test]
async fn earlier_output_is_searched_without_overlap() {
    let mut fake = Fake::new();
    let line = [b"ok 12\n".as_slice(), &b".".repeat(70_000), b"\n"].concat();
    for _ in 0..5 {
        fake.print(&line);
    }
    fake.print(b"ok 7");
    let follower = fake.follow();
    let end = follower.state().len;
    let set = set(&[r"^ok (\d+)$", "zzz"]);
    let all = find_all(&follower, &set, 0..end, 100).await.unwrap();
    assert_eq!(all.len(), 6);
    assert_eq!(all[1].start, line.len() as u64);
    assert_eq!(all[5].captures[0].bytes.as_deref(), Some(b"7".as_slice()));
    assert_eq!(find_all(&follower, &set, 0..end, 2).await.unwrap().len(), 2);
    let behind_first = find_all(&follower, &set, 1..end, 100).await.unwrap();
    assert_eq!(behind_first.len(), 5);
    let digits = self::set(&[r"\d"]);
    assert_eq!(find_all(&follower, &digits, 0..end, 100).await.unwrap().len(), 11);
}

/// A prompt in colour is found as a reader sees it; the match is its line.
#[tokio::test(start_paused = true)]
async fn a_line_is_also_searched_without_its_control_sequences() {
    for (printed, pattern, found) in [
        (&b"boot\n\x1b[1;32muart:~$ \x1b[m"[..], r"^uart:~\$ ", Some((5, 23))),
        (b"boot\n\x1b[32mv1.\x1b[0m2\nx", r"^v1\.(\d)$", Some((5, 18))),
        (b"boot\n\x1b[32mv1\x1b[0m\n", r"^v2$", None),
        (b"boot\nv1\n", r"^v2$", None),
    ] {
        let mut fake = Fake::new();
        fake.print(printed);
        let mut follower = fake.follow();
        let (any, none) = (set(&[pattern]), set(&[]));
        let matched = expect(&mut follower, &any, &none, soon()).await.ok();
        assert_eq!(matched.as_ref().map(|m| (m.start, m.end)), found, "{pattern}");
        assert_eq!(follower.cursor(), found.map_or(0, |(_, end)| end));
        // A text that is rejected wins.
        let mut follower = fake.follow();
        let refused = expect(&mut follower, &any, &any, soon()).await;
        let refused = matches!(refused, Err(ExpectError::Rejected { .. }));
        assert_eq!(refused, found.is_some(), "{pattern}");
    }
    let mut fake = Fake::new();
    fake.print(b"\x1b[32mv1.\x1b[0m2\n");
    let (any, none) = (set(&[r"^v1\.(\d)$"]), set(&[]));
    let matched = expect(&mut fake.follow(), &any, &none, soon()).await.unwrap();
    let digit = Capture { name: None, bytes: Some(b"2".to_vec()) };
    assert_eq!(matched.captures, [digit]);
}

/// What is rejected is seen at once, as a terminal shows it.
#[tokio::test(start_paused = true)]
async fn rejected_text_is_seen_through_control_characters_without_a_pause() {
    for (printed, pattern, part) in [
        (&b"start\r\nE\x1b[1m42\x1b[0m sd\r\nend\r\n"[..], "E42", Some((7, 14))),
        (b"start\r\n\x1b[31mERROR\x1b[0m: sd\r\nend\r\n", "^ERROR", Some((12, 17))),
        (b"ERX\x08R-42 sd\nend\n", "ERR-42", Some((0, 8))),
        // Within the line of what is awaited, in front of it.
        (b"\x1b[31mERR\x1b[0mOR end\n", "^ERROR", Some((5, 14))),
        (b"end \x1b[31mERR\x1b[0mOR\n", "ERROR", None),
        (b"E\x1b[1m4end\n2\n", "E42", None),
        (b"sd: \x1b[31mERROR\x1b[0m\nend\n", "^ERROR", None),
        (b"E\x1b[1m43\x1b[0m sd\nend\n", "E42", None),
    ] {
        for chunk in [1, 7, 100] {
            let mut fake = Fake::new();
            let mut follower = fake.follow();
            printed.chunks(chunk).for_each(|bytes| fake.print(bytes));
            let began = Instant::now();
            let outcome = expect(&mut follower, &set(&["end"]), &set(&[pattern]), soon()).await;
            let rejected = match &outcome {
                Err(ExpectError::Rejected { matched, .. }) => Some((matched.start, matched.end)),
                _ => None,
            };
            assert_eq!(rejected, part, "{pattern} {outcome:?}");
            assert_eq!((outcome.is_ok(), began.elapsed()), (part.is_none(), Duration::ZERO));
        }
    }
    // What an earlier wait has consumed is not rejected, but stands in front of the rest.
    let mut fake = Fake::new();
    fake.print(b"\x1b[1mE42> \x1b[mERROR\n");
    let mut follower = fake.follow();
    follower.seek(9);
    let outcome = expect(&mut follower, &set(&["R\n"]), &set(&["E42", "^ERR"]), soon()).await;
    assert!(outcome.is_ok(), "{outcome:?}");
    // A prompt that a pause ends: its line shows what is rejected.
    let mut fake = Fake::new();
    fake.print(b"E\x1b[1m42\x1b[0m> ");
    let outcome = expect(&mut fake.follow(), &set(&["> $"]), &set(&["E42"]), soon()).await;
    assert!(matches!(outcome, Err(ExpectError::Rejected { .. })), "{outcome:?}");
}

#[tokio::test]
async fn earlier_output_is_searched_as_a_terminal_shows_it() {
    let mut fake = Fake::new();
    let line = [b"E\x1b[1m42\n".as_slice(), &b".".repeat(70_000), b"\n"].concat();
    for _ in 0..5 {
        fake.print(&line);
    }
    fake.print(b"E42\nE\x1b[0m4\x082");
    let follower = fake.follow();
    let end = follower.state().len;
    let set = set(&["^E42$", "E2$"]);
    let all = find_shown(&follower, &set, 0..end, 100).await.unwrap();
    let line = line.len() as u64;
    let ranges: Vec<_> = all.iter().map(|m| (m.pattern, m.start, m.end)).collect();
    let lines = (0..5).map(|n| (0, n * line, n * line + 7));
    let last = (1, end - 8, end);
    assert_eq!(ranges, lines.chain([last]).collect::<Vec<_>>());
    assert_eq!(find_shown(&follower, &set, 0..end, 2).await.unwrap().len(), 2);
    assert_eq!(find_shown(&follower, &set, 1..end, 100).await.unwrap().len(), 5);
    assert_eq!(find_shown(&follower, &set, 0..6, 100).await.unwrap().len(), 0);
}
