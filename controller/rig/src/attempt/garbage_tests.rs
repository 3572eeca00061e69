//! Noise of bad wires, and text in encodings other than UTF-8.

use proptest::prelude::*;

use super::*;

fn scan(text: &[u8], cuts: &[usize]) -> Option<(u64, u64)> {
    scanned(text, cuts).found()
}

fn scanned(text: &[u8], cuts: &[usize]) -> GarbageScanner {
    let mut scanner = GarbageScanner::new(0);
    let (mut offset, mut rest, mut cuts) = (0, text, cuts.iter());
    while !rest.is_empty() {
        let (piece, behind) = rest.split_at(*cuts.next().unwrap_or(&rest.len()).min(&rest.len()));
        scanner.feed(offset, piece);
        (offset, rest) = (offset + piece.len() as u64, behind);
    }
    scanner
}

#[test]
fn text_in_other_encodings_is_no_garbage() {
    for text in [
        &b"boot\nT=25\xb0C\r\n"[..],
        b"hello \xf0 world\n",
        b"\xff\x80\xff\x80boot\n",
        b"boot\nGr\xfc\xdfe aus M\xfcnchen, \xc4rger \xfcber \xd6l\r\n",
        // Frames and a progress bar in code page 437.
        b"boot\n\xc9\xcd\xcd\xcd\xcd\xcd\xcd\xcd\xcd\xcd\xcd\xcd\xcd\xcd\xcd\xcd\xcd\xcd\xcd\xbb\r\n\xba x \xba\r\n",
        b"boot\n[\xfe\xfe\xfe\xfe\xfe\xfe\xfe\xfe\xfe\xfe\xfe\xfe\xfe\xfe\xfe\xfe\xfe\xfe\xfe\xfe]\r\n",
        // Russian in KOI8-R, Japanese in Shift-JIS, Chinese in GBK.
        b"boot\n\xf0\xd2\xc9\xd7\xc5\xd4, \xcd\xc9\xd2! \xfa\xc1\xc7\xd2\xd5\xda\xcb\xc1...\r\n",
        b"boot\n\x8b\x4e\x93\xae\x82\xb5\x82\xdc\x82\xb5\x82\xbd\x81\x42\r\n",
        b"boot\n\xc6\xf4\xb6\xaf\xcd\xea\xb3\xc9\xa3\xac\xce\xc2\xb6\xc8 25\xa1\xe6\r\n",
        // A bell, colours, padding and one framing byte are text.
        b"boot\nT=25\xb0C\x07\x1b[0m\0\0\0\0\0\0\0\0 \xb5\xb5\xb5 \x02\r\n",
    ] {
        assert_eq!(scan(text, &[]), None, "{text:x?}");
        assert_eq!(scan(&text.repeat(40), &[]), None, "{text:x?}");
    }
}

#[test]
fn a_mixture_pulses_and_endless_words_are_garbage() {
    for (noise, found) in [
        (&b"hello \xf0\x0f\xe6\x18\x9e\x06 world"[..], (6, 12)),
        (&[b"hello ".as_slice(), &[0xf0; 20]].concat(), (6, 22)),
        (b"hello \x80\xf8\xfe\xe0\x80\xf8\xfe\xe0 ", (6, 14)),
        (&[b"hello ".as_slice(), &[0xab, 0x98, b'.', 0xbb].repeat(70)].concat(), (6, 262)),
    ] {
        assert_eq!(scan(noise, &[]), Some(found), "{noise:x?}");
    }
}

#[test]
fn garbage_goes_on_until_text_is_back() {
    let mut scanner = GarbageScanner::new(0);
    let mut fed = 0;
    for (bytes, goes_on) in [
        (&b"booting\n"[..], false),
        (b"\x80\xf0\x03\xff", false),
        (b"\xfe\x01\x06\xe0", true),
        (b"ok\xf0", true),
        (b"case 1: ok\n", false),
        (b"\xff\xff", false),
        (&[0xf0; 8], true),
    ] {
        scanner.feed(fed, bytes);
        fed += bytes.len() as u64;
        assert_eq!(scanner.goes_on(), goes_on, "{bytes:?}");
    }
    assert_eq!(scanner.found(), Some((8, 15)));
}

/// The level of a serial line that carries bytes, in bits of the sender, with idle bits between
/// the characters.
fn level(bytes: &[u8], idle: usize) -> Vec<bool> {
    let character = |&byte: &u8| {
        let data = (0..8).map(move |bit| byte >> bit & 1 == 1);
        std::iter::once(false).chain(data).chain(std::iter::repeat_n(true, 1 + idle))
    };
    bytes.iter().flat_map(character).collect()
}

/// What a receiver reads whose bits last `bit` sixteenths of the sender's, and its framing errors.
fn received(line: &[bool], bit: usize) -> (Vec<u8>, usize) {
    let at = |time: usize| line.get(time / 16).copied().unwrap_or(true);
    let (mut bytes, mut errors, mut time) = (Vec::new(), 0, 0);
    while time / 16 < line.len() {
        if at(time) {
            time += 1;
            continue;
        }
        let sample = |n: usize| at(time + bit / 2 + n * bit);
        bytes.push((0..8).map(|n| u8::from(sample(n + 1)) << n).sum());
        let framed = sample(9);
        errors += usize::from(!framed);
        time += bit / 2 + 9 * bit;
        // After a framing error the receiver waits for an idle line.
        while !framed && !at(time) && time / 16 < line.len() {
            time += 1;
        }
    }
    (bytes, errors)
}

/// Logs as boards print them.
fn log() -> impl Strategy<Value = String> {
    let line = prop::sample::select(
        &[
            "[00000013] uart: hello from board, revision 7\r\n",
            "test_queue_push: PASS\r\n",
            "I (312) main: heap 0x3ffb0000, 176 KiB\r\n",
            "ok 3 - the sensor answers within 20 ms\r\n",
            "*** Booting Zephyr OS build v3.6.0 ***\r\n",
        ][..],
    );
    prop::collection::vec(line, 20..30).prop_map(|lines| lines.concat())
}

/// Letters of an encoding: the bytes that stand for them, two bytes each in the last ones.
const LETTERS: &[(std::ops::RangeInclusive<u8>, usize)] = &[
    // Latin-1, code page 437 with its frames, KOI8-R, Shift-JIS, EUC.
    (0xc0..=0xff, 1),
    (0x80..=0xdf, 1),
    (0xc0..=0xff, 1),
    (0x81..=0x9f, 2),
    (0xa4..=0xf4, 2),
];

/// Lines of words in an encoding.
fn foreign_text() -> impl Strategy<Value = Vec<u8>> {
    prop::sample::select(LETTERS).prop_flat_map(|(letters, width)| {
        let letter = (letters, 0x40..=0x7e_u8).prop_map(move |(first, second)| match width {
            1 => vec![first],
            _ => vec![first, second],
        });
        let word = prop::collection::vec(letter, 1..9).prop_map(|word| word.concat());
        let line = prop::collection::vec(word, 1..9).prop_map(|words| words.join(&b' '));
        prop::collection::vec(line, 1..20).prop_map(|lines| lines.join(&b"\r\n"[..]))
    })
}

proptest! {
    #[test]
    fn utf8_holds_none_however_it_is_cut(
        text in "(?s).{0,40}",
        cuts in prop::collection::vec(1..5_usize, 0..60),
    ) {
        prop_assert_eq!(scan(text.as_bytes(), &cuts), None);
    }

    #[test]
    fn text_of_any_encoding_holds_none(
        text in foreign_text(),
        cuts in prop::collection::vec(1..50_usize, 0..60),
    ) {
        // A word of pulses alone is one that no language has.
        let pulses = text.windows(PULSES as usize).any(|w| w.iter().all(|&b| pulse(b).is_some()));
        prop_assume!(!pulses);
        prop_assert_eq!(scan(&text, &cuts), None);
    }

    #[test]
    fn a_port_at_another_speed_gives_garbage_or_framing_errors(
        text in log(),
        bit in prop::sample::select(&[4_usize, 5, 8, 11, 24, 32, 48][..]),
        idle in prop::sample::select(&[0_usize, 1, 3, 20][..]),
    ) {
        // At half the speed a log of equal lines without pauses may read as text.
        prop_assume!(bit != 32 || idle > 0);
        let (bytes, errors) = received(&level(text.as_bytes(), idle), bit);
        prop_assert!(scan(&bytes, &[]).is_some() || errors > 10, "{bit} {idle} {errors} {bytes:x?}");
    }

    #[test]
    fn a_receiver_at_twice_or_three_times_the_speed_gives_garbage(
        text in log(),
        bit in prop::sample::select(&[5_usize, 8][..]),
    ) {
        // Emulators and network ports count no framing errors.
        let (bytes, _) = received(&level(text.as_bytes(), 3), bit);
        prop_assert!(scan(&bytes, &[]).is_some());
    }

    #[test]
    fn lost_bits_give_garbage_or_framing_errors(
        text in log(),
        lost in prop::collection::vec(any::<prop::sample::Index>(), 40..80),
    ) {
        let mut line = level(text.as_bytes(), 0);
        for index in lost {
            line.remove(index.index(line.len()));
        }
        let (bytes, errors) = received(&line, 16);
        prop_assert!(scan(&bytes, &[]).is_some() || errors > 10, "{errors} {bytes:x?}");
    }

    #[test]
    fn where_it_begins_does_not_depend_on_the_cuts(
        pieces in prop::collection::vec(prop_oneof![
            prop::collection::vec(any::<u8>(), 0..12),
            prop::collection::vec(b'a'..=b'z', 0..200),
            prop::collection::vec(0..3_u8, 0..120),
            Just(b"\r\n".to_vec()),
            Just("gr\u{fc}n \u{2588}".as_bytes().to_vec()),
            prop::collection::vec(prop::sample::select(&[0_u8, 0x80, 0xf0, 0xfe][..]), 0..12),
        ], 0..12),
        cuts in prop::collection::vec(1..90_usize, 0..60),
    ) {
        let bytes = pieces.concat();
        prop_assert_eq!(scan(&bytes, &cuts), scan(&bytes, &[]));
        let small = [1; 2000];
        prop_assert_eq!(scan(&bytes, &small), scan(&bytes, &[]));
        prop_assert_eq!(scanned(&bytes, &cuts).goes_on(), scanned(&bytes, &[]).goes_on());
    }
}
