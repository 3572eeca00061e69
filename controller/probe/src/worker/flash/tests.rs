//! Flash that no emulated board has: outside the address space, with odd pages, with bad cells.

use std::sync::{Arc, Mutex};

use sha2::{Digest, Sha256};

use crate::worker::fake::{Fake, Script};
use crate::worker::fake_flash::{BASE, Described, FakeFlash, SECTOR};
use crate::{
    AttachOptions, Cancel, EraseScope, FlashLeft, FlashReport, FlashRequest, Leave, Payload,
    ProbeError, ProbeHandle, Segment,
};

const RAM: u64 = 0x2000_0000;

/// A chip with such a flash, attached.
struct Chip {
    probe: ProbeHandle,
    flash: Arc<Mutex<FakeFlash>>,
}

impl Chip {
    async fn described(described: &Described) -> Self {
        let (fake, flash) = Fake::with_flash(FakeFlash::default());
        let options = AttachOptions {
            chip: Some("fake".to_owned()),
            chip_description: Some(described.text()),
            ..AttachOptions::default()
        };
        let (probe, _) = ProbeHandle::attach(fake.source(), options).await.unwrap();
        Self { probe, flash }
    }

    fn hold(&self, offset: u32, bytes: &[u8]) {
        self.flash.lock().unwrap().hold(BASE + offset, bytes);
    }

    fn read(&self, offset: u32, len: usize) -> Vec<u8> {
        self.flash.lock().unwrap().read(BASE + offset, len)
    }

    async fn flash(&self, request: &FlashRequest) -> Result<FlashReport, ProbeError> {
        self.probe.flash(request.clone(), |_| {}, Cancel::default()).await
    }

    async fn close(self) {
        self.probe.close(Leave::Running).await.unwrap();
    }
}

fn request(offset: u32, bytes: &[u8]) -> FlashRequest {
    let segment = Segment { start: u64::from(BASE + offset), bytes: bytes.to_vec() };
    FlashRequest {
        payload: Payload { segments: vec![segment] },
        verify: true,
        preserve: Vec::new(),
        skip_equal: true,
    }
}

/// Bytes of which no two sectors or pages are alike.
fn pattern(seed: u32, len: usize) -> Vec<u8> {
    (0..len as u32).map(|at| ((at + seed).wrapping_mul(0x9e37_79b9) >> 13) as u8).collect()
}

fn sha256(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Algorithms that look into their flash themselves, in each way there is.
fn that_look() -> [Described; 3] {
    let ways = [(true, false), (false, true), (true, true)];
    ways.map(|(reads, verifies)| Described { reads, verifies, ..Described::default() })
}

#[tokio::test]
async fn flash_outside_the_address_space_is_written_compared_and_skipped() {
    for described in that_look() {
        let chip = Chip::described(&described).await;
        assert!(chip.probe.read(u64::from(BASE), 4).await.is_err(), "no bus reaches it");
        let bytes = pattern(1, 0x1_1000);
        let report = chip.flash(&request(0x40, &bytes)).await.unwrap();
        assert_eq!((report.sectors_erased, report.sectors_equal), (0x89, 0), "{described:?}");
        assert_eq!((report.verified, report.read_back_sha256), (true, Some(sha256(&bytes))));
        assert_eq!(chip.read(0x40, bytes.len()), bytes);
        assert_eq!(chip.read(0, 0x40), [0xff; 0x40]);

        let again = chip.flash(&request(0x40, &bytes)).await.unwrap();
        assert_eq!((again.written, again.sectors_equal), (0, 0x89));
        assert_eq!(again.read_back_sha256, Some(sha256(&bytes)));
        // What is compared at once is a batch.
        let mut changed = bytes.clone();
        *changed.last_mut().unwrap() ^= 1;
        let one = chip.flash(&request(0x40, &changed)).await.unwrap();
        assert_eq!((one.sectors_erased, one.sectors_equal), (0x09, 0x80));
        chip.close().await;
    }
}

#[tokio::test]
async fn cell_that_stays_what_it_is_is_found_and_its_sector_named() {
    for described in that_look() {
        let chip = Chip::described(&described).await;
        chip.flash.lock().unwrap().stuck.insert(BASE + 5 * SECTOR + 7);
        let error = chip.flash(&request(0, &[0; 0x2000])).await.unwrap_err();
        let words = "the flash could not be verified at 0x90000a00..0x90000c00";
        assert_eq!(error.to_string(), words, "{described:?}");
        let mut trusting = request(0, &[0; 0x2000]);
        trusting.verify = false;
        let report = chip.flash(&trusting).await.unwrap();
        assert_eq!((report.verified, report.read_back_sha256), (false, None));
        chip.close().await;
    }
}

#[tokio::test]
async fn sector_that_only_the_algorithm_reads_keeps_all_its_rest() {
    let chip = Chip::described(&Described::default()).await;
    let old = pattern(2, 4 * SECTOR as usize);
    chip.hold(0, &old);
    let mut new = request(SECTOR - 0x10, &[0x5a; 0x20]);
    let kept = u64::from(BASE + 2 * SECTOR - 8);
    new.preserve.push(kept..kept + 0x100);
    let report = chip.flash(&new).await.unwrap();
    assert_eq!((report.sectors_erased, report.verified), (2, true));
    let (first, second) = (SECTOR as usize - 0x10, SECTOR as usize + 0x10);
    let held = chip.read(0, old.len());
    assert!(held[..first].iter().all(|byte| *byte == 0xff), "nothing is kept in this sector");
    assert_eq!(held[first..second], [0x5a; 0x20]);
    assert_eq!(held[second..], old[second..]);
    chip.close().await;
}

#[tokio::test]
async fn pages_that_are_no_multiple_of_a_sector_spoil_no_neighbour() {
    let end = BASE + 0x1_0000 / 0x600 * 0x600;
    let odd = Described { page: 0x300, ends: vec![end], ..Described::default() };
    let chip = Chip::described(&odd).await;
    let old = pattern(3, 0x1800);
    chip.hold(0, &old);
    // Its page reaches into two sectors, and these into another page.
    let report = chip.flash(&request(0x6f0, &[1; 0x10])).await.unwrap();
    assert!(report.verified);
    let held = chip.read(0, old.len());
    assert_eq!(held[..0x600], old[..0x600]);
    assert_eq!(held[0x6f0..0x700], [1; 0x10]);
    assert_eq!(held[0xc00..], old[0xc00..]);
    // All of it, in several runs of the loader, none of which may erase what another wrote.
    let all = pattern(4, (end - BASE) as usize);
    let report = chip.flash(&request(0, &all)).await.unwrap();
    assert_eq!(report.read_back_sha256, Some(sha256(&all)));
    assert!(chip.read(0, all.len()) == all);
    chip.close().await;
}

#[tokio::test]
async fn image_goes_on_from_one_region_of_flash_to_the_next() {
    let two = Described { ends: vec![BASE + 0x1000, BASE + 0x3000], ..Described::default() };
    let chip = Chip::described(&two).await;
    let bytes = pattern(5, 0x1200);
    let report = chip.flash(&request(0xf10, &bytes)).await.unwrap();
    assert_eq!((report.sectors_erased, report.read_back_sha256), (10, Some(sha256(&bytes))));
    assert_eq!(chip.read(0xf10, bytes.len()), bytes);
    let past = chip.flash(&request(0x2fff, &[1, 2])).await.unwrap_err();
    assert!(matches!(past, ProbeError::DoesNotFit { .. }), "{past}");
    chip.close().await;
}

#[tokio::test]
async fn flash_and_ram_are_one_payload() {
    let chip = Chip::described(&Described::default()).await;
    let (rom, ram) = (pattern(6, 100), pattern(7, 0x3000));
    let mut both = request(0, &rom);
    both.payload.segments.insert(0, Segment { start: RAM + 0x10, bytes: ram.clone() });
    let report = chip.flash(&both).await.unwrap();
    assert_eq!(report.read_back_sha256, Some(sha256(&[ram.clone(), rom].concat())));
    assert_eq!(chip.probe.read(RAM + 0x10, ram.len()).await.unwrap(), ram);
    chip.close().await;
}

#[tokio::test]
async fn chip_without_a_flash_algorithm_is_said_and_not_touched() {
    let chip = Chip::described(&Described { served: false, ..Described::default() }).await;
    let words = "fake has no flash algorithm for 0x90000000..0x90040000";
    let error = chip.flash(&request(0, &[1])).await.unwrap_err();
    assert_eq!(error.to_string(), words);
    for scope in [EraseScope::All, EraseScope::Range(BASE.into()..u64::from(BASE) + 1)] {
        let error = chip.probe.erase(scope, Cancel::default()).await.unwrap_err();
        assert_eq!(error.to_string(), words);
    }
    assert!(chip.flash.lock().unwrap().erased.is_empty());
    chip.close().await;
}

#[tokio::test]
async fn cancelled_erasure_ends_with_a_whole_batch() {
    let chip = Chip::described(&Described::default()).await;
    let cancel = Cancel::default();
    let asked = cancel.clone();
    let told = move |at| {
        if at == BASE + 3 * SECTOR {
            asked.cancel();
        }
    };
    chip.flash.lock().unwrap().before_erase = Some(Box::new(told));
    // The algorithm has no function that erases the chip.
    let error = chip.probe.erase(EraseScope::All, cancel).await.unwrap_err();
    let ProbeError::Cancelled { left } = error else { panic!("{error:?}") };
    assert_eq!(left, FlashLeft::Partial);
    let wanted: Vec<u32> = (0..128).map(|nth| BASE + nth * SECTOR).collect();
    assert_eq!(chip.flash.lock().unwrap().erased, wanted);
    let report = chip.probe.erase(EraseScope::All, Cancel::default()).await.unwrap();
    assert_eq!(report.bytes, 0x4_0000);
    chip.close().await;
}

#[tokio::test]
async fn algorithm_that_cannot_be_prepared_touches_nothing() {
    let fake = Fake::new(Script { result: 3, ..Script::default() });
    let (probe, _) = ProbeHandle::attach(fake.source(), AttachOptions::default()).await.unwrap();
    let cancel = Cancel::default();
    let error = probe.erase(EraseScope::Range(0..1), cancel).await.unwrap_err();
    assert!(matches!(error, ProbeError::FlashFailed { .. }), "{error:?}");
    probe.close(Leave::Running).await.unwrap();
}
