//! Persistent flash: what is written is read, and nothing else is.

use jig_model::image::Segment;
use jig_model::{BoardId, Fault, PlaceName};
use proptest::prelude::*;
use sha2::{Digest, Sha256};

use crate::store::{FlashFile, FlashFileError, PlaceLock, Places};

struct Bench {
    _state: tempfile::TempDir,
    places: Places,
    lock: PlaceLock,
    file: FlashFile,
    board: BoardId,
}

fn bench() -> Bench {
    let state = tempfile::tempdir().unwrap();
    let places = Places::new(state.path());
    let place: PlaceName = "bench.1".parse().unwrap();
    let lock = places.try_lock(&place).unwrap();
    let file = places.flash(&place);
    Bench { _state: state, places, lock, file, board: "board-a".parse().unwrap() }
}

fn segment(start: u64, bytes: &[u8]) -> Segment {
    Segment { start, bytes: bytes.to_vec() }
}

#[test]
fn what_is_saved_is_loaded_until_it_is_reset() {
    let Bench { lock, file, board, .. } = &bench();
    assert_eq!(file.load(board).unwrap(), None);
    let regions = [segment(0, &[1; 5000]), segment(0x1000_1000, &[2; 7]), segment(u64::MAX, b"")];
    for regions in [&regions[..], &regions[..1], &[]] {
        file.save(lock, board, regions).unwrap();
        assert_eq!(file.load(board).unwrap().as_deref(), Some(regions));
    }
    file.reset(lock).unwrap();
    file.reset(lock).unwrap();
    assert_eq!(file.load(board).unwrap(), None);
}

#[test]
fn every_flipped_byte_and_every_cut_is_noticed() {
    let Bench { lock, file, board, .. } = &bench();
    file.save(lock, board, &[segment(8, b"abc"), segment(16, b"de")]).unwrap();
    let good = std::fs::read(file.path()).unwrap();
    for at in 0..good.len() {
        let mut bad = good.clone();
        bad[at] ^= 0x40;
        for bad in [&bad[..], &good[..at]] {
            std::fs::write(file.path(), bad).unwrap();
            let error = file.load(board).unwrap_err();
            let newer = matches!(error, FlashFileError::Newer { .. }) && (8..12).contains(&at);
            assert!(newer || matches!(error, FlashFileError::Damaged { .. }), "{at}: {error}");
            assert!(error.to_string().contains("jig erase -b bench.1"), "{error}");
            assert_eq!(error.fault(), Fault::Lab);
        }
    }
    std::fs::write(file.path(), [&good[..], b"x"].concat()).unwrap();
    assert!(matches!(file.load(board), Err(FlashFileError::Damaged { .. })));
    // A file that is refused is left alone, and a reset recovers it.
    assert!(file.path().exists());
    file.reset(lock).unwrap();
    assert_eq!(file.load(board).unwrap(), None);
}

#[test]
fn newer_files_and_those_of_other_boards_are_refused_by_name() {
    let Bench { lock, file, board, .. } = &bench();
    std::fs::write(file.path(), b"JIGFLASH\x02\0\0\0something new").unwrap();
    let error = file.load(board).unwrap_err();
    assert!(matches!(error, FlashFileError::Newer { found: 2, known: 1, .. }), "{error}");
    file.save(lock, &"board-b".parse().unwrap(), &[segment(0, b"x")]).unwrap();
    let error = file.load(board).unwrap_err().to_string();
    assert!(error.contains("for board board-b, and the place has board board-a"), "{error}");
}

#[test]
fn what_cannot_be_kept_is_refused_before_anything_is_lost() {
    let Bench { places, lock, file, board, .. } = &bench();
    let kept = [segment(0, b"kept")];
    file.save(lock, board, &kept).unwrap();
    let disorder = [
        vec![segment(4, b"ab"), segment(5, b"c")],
        vec![segment(4, b"ab"), segment(0, b"c")],
        vec![segment(u64::MAX, b"ab")],
    ];
    for regions in disorder {
        let error = file.save(lock, board, &regions).unwrap_err();
        assert!(matches!(error, FlashFileError::Disorder { .. }), "{error}");
    }
    let many: Vec<_> = (0..257).map(|n| segment(n, b"")).collect();
    let error = file.save(lock, board, &many).unwrap_err();
    assert!(matches!(error, FlashFileError::TooLarge { .. }), "{error}");
    let other = places.try_lock(&"bench".parse().unwrap()).unwrap();
    let error = file.save(&other, board, &kept).unwrap_err();
    assert!(matches!(error, FlashFileError::NotLocked { .. }), "{error}");
    assert!(matches!(file.reset(&other), Err(FlashFileError::NotLocked { .. })));
    assert_eq!(file.load(board).unwrap().as_deref(), Some(&kept[..]));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    /// Even a file with the right hash is only believed where it makes sense.
    #[test]
    fn no_content_makes_the_reader_panic(body in proptest::collection::vec(0u8..4, 0..60)) {
        let Bench { file, board, .. } = &bench();
        let mut bytes = b"JIGFLASH\x01\0\0\0\x07\0\0\0board-a".to_vec();
        bytes.extend(body);
        let hash = Sha256::digest(&bytes);
        bytes.extend(hash);
        std::fs::write(file.path(), bytes).unwrap();
        match file.load(board) {
            Ok(regions) => prop_assert!(regions.is_some()),
            Err(error) => {
                let damaged = matches!(error, FlashFileError::Damaged { .. });
                prop_assert!(damaged, "{}", error);
            }
        }
    }
}
