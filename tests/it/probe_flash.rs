//! Flashing: images of every size and kind, images that cannot be, interruptions.

use std::fmt::Write as _;
use std::fs;
use std::os::unix::process::ExitStatusExt as _;
use std::process::Stdio;
use std::time::{Duration, Instant};

use jig_model::image::{ImageFormat, Payload};
use nix::sys::signal::Signal;
use serde_json::Value;

use crate::dice::Dice;
use crate::manifest::elf;
use crate::served::Served;
use crate::workshop::{DEADLINE, Ran, Slot, Workshop};

const FLASH: usize = 256 << 10;
const SECTOR: usize = 1 << 10;

/// How many kills have to meet a living flasher.
const KILLS: usize = 50;

fn flash(workshop: &Workshop, args: &[&str]) -> Ran {
    let verb = ["--json", "flash", "-b", "microbit"];
    workshop.run(verb.iter().chain(args))
}

/// Flashes what must succeed, and returns the report.
#[track_caller]
fn flashed(workshop: &Workshop, args: &[&str]) -> Value {
    let ran = flash(workshop, args);
    ran.says(0, &[]);
    let document = ran.json().unwrap();
    assert_eq!(document["report"]["verified"], !args.contains(&"--no-verify"), "{ran}");
    document["report"].clone()
}

#[track_caller]
fn counted(report: &Value) -> (u64, u64, u64) {
    let number = |key: &str| report[key].as_u64().unwrap();
    (number("bytes"), number("sectors_erased"), number("sectors_equal"))
}

/// Reads back in another process.
fn read(workshop: &Workshop, address: usize, len: usize) -> Vec<u8> {
    let (address, len) = (format!("{address:#x}"), len.to_string());
    let ran = workshop.run(["mem", "read", "-b", "microbit", &address, &len, "-o", "-"]);
    ran.says(0, &[]);
    ran.stdout
}

/// Bytes without a pattern, so that no sector is like another and none is blank.
fn noise(len: usize, seed: u64) -> Vec<u8> {
    let mut dice = Dice::of(seed);
    (0..len).map(|_| dice.below(255) as u8).collect()
}

/// Writes bytes as Intel HEX, 16 a record.
fn intel_hex(parts: &[(u32, &[u8])]) -> String {
    let mut text = String::new();
    let mut record = |kind: u8, offset: u16, bytes: &[u8]| {
        let mut all = vec![bytes.len() as u8, (offset >> 8) as u8, offset as u8, kind];
        all.extend(bytes);
        let sum = all.iter().fold(0u8, |sum, byte| sum.wrapping_add(*byte));
        all.push(sum.wrapping_neg());
        text.push(':');
        all.iter().for_each(|byte| write!(text, "{byte:02X}").unwrap());
        text.push('\n');
    };
    for (start, bytes) in parts {
        for (nth, line) in bytes.chunks(16).enumerate() {
            let address = start + 16 * nth as u32;
            record(4, 0, &((address >> 16) as u16).to_be_bytes());
            record(0, address as u16, line);
        }
    }
    record(1, 0, &[]);
    text
}

#[test]
fn one_byte_one_sector_all_of_it() {
    let _slot = Slot::take();
    let workshop = Workshop::new();
    workshop.write("byte.bin", [0x5a]);
    let report = flashed(&workshop, &["byte.bin@0x1234"]);
    assert_eq!(counted(&report), (1, 1, 0));
    assert_eq!(read(&workshop, 0x1233, 3), [0xff, 0x5a, 0xff]);

    let sector = noise(SECTOR, 1);
    workshop.write("sector.bin", &sector);
    assert_eq!(counted(&flashed(&workshop, &["sector.bin@0x2000"])), (SECTOR as u64, 1, 0));
    assert_eq!(read(&workshop, 0x2000, SECTOR), sector);
    assert_eq!(read(&workshop, 0x1234, 1), [0x5a], "other sectors are left alone");

    let all = noise(FLASH, 2);
    workshop.write("all.bin", &all);
    let sectors = (FLASH / SECTOR) as u64;
    assert_eq!(counted(&flashed(&workshop, &["all.bin@0"])), (FLASH as u64, sectors, 0));
    assert_eq!(read(&workshop, 0, FLASH), all);

    // What holds the right bytes already is left alone, unless an option insists.
    let again = flashed(&workshop, &["all.bin@0"]);
    assert_eq!((counted(&again), &again["written"]), ((FLASH as u64, 0, sectors), &0.into()));
    let mut changed = all.clone();
    changed[100 * SECTOR] ^= 0xff;
    workshop.write("all.bin", &changed);
    assert_eq!(counted(&flashed(&workshop, &["all.bin@0"])), (FLASH as u64, 1, sectors - 1));
    assert_eq!(counted(&flashed(&workshop, &["sector.bin@0x2000", "--all"])).1, 1);
    let said = workshop.run(["flash", "-b", "microbit", "sector.bin@0x2000"]);
    assert!(said.out().contains("all 1 sectors were equal already, verified"), "{said}");
}

#[test]
fn holes_stay_holes() {
    let _slot = Slot::take();
    let workshop = Workshop::new();
    let (first, second) = (noise(20, 3), noise(40, 4));
    workshop.write("old.bin", noise(SECTOR, 5));
    flashed(&workshop, &["old.bin@0x8400"]);
    workshop.write("app.hex", intel_hex(&[(0x8000, &first), (0x18ff0, &second)]));
    let report = flashed(&workshop, &["app.hex"]);
    assert_eq!(counted(&report), (60, 3, 0), "the second part reaches into a third sector");
    assert_eq!(read(&workshop, 0x8000, 20), first);
    assert_eq!(read(&workshop, 0x8014, 4), [0xff; 4], "what was in the sector is erased");
    assert_eq!(read(&workshop, 0x18ff0, 40), second);
    assert_eq!(read(&workshop, 0x8400, SECTOR), noise(SECTOR, 5), "the sector in the hole");

    let image = elf("microbit", "unity-pass");
    let payload = Payload::read(ImageFormat::Elf, &fs::read(&image).unwrap()).unwrap();
    let report = flashed(&workshop, &[&image]);
    assert_eq!(report["bytes"], payload.len());
    assert_eq!(report["read_back_sha256"], payload.sha256());
    for segment in &payload.segments {
        assert_eq!(read(&workshop, segment.start as usize, segment.bytes.len()), segment.bytes);
    }
}

#[test]
fn kept_or_not_checked_or_not_started_as_asked() {
    let _slot = Slot::take();
    let workshop = Workshop::new();
    let (old, new) = (noise(SECTOR, 6), noise(64, 7));
    workshop.write("old.bin", &old);
    workshop.write("new.bin", &new);
    flashed(&workshop, &["old.bin@0x4000"]);
    flashed(&workshop, &["new.bin@0x4000", "--preserve", "0x4100..0x4180"]);
    let now = read(&workshop, 0x4000, SECTOR);
    assert_eq!((&now[..64], &now[0x100..0x180]), (&new[..], &old[0x100..0x180]));
    assert!(now[64..0x100].iter().chain(&now[0x180..]).all(|&byte| byte == 0xff));
    let both = flash(&workshop, &["new.bin@0x4000", "--preserve", "0x4000+1"]);
    assert_eq!(both.code(), 2, "{both}");
    assert!(both.out().contains("part of the image and to be preserved"), "{both}");

    let report = flashed(&workshop, &["new.bin@0x5000", "--no-verify"]);
    assert_eq!(report["read_back_sha256"], Value::Null);
    assert_eq!(read(&workshop, 0x5000, 64), new);

    let image = elf("microbit", "unity-pass");
    let served = Served::start(&workshop, "microbit", &[]);
    served.verb(&["flash"], &[&image, "--no-reset"]).says(0, &[]);
    // A core that is stepped stands.
    served.verb(&["step"], &[]).says(0, &[]);
    assert!(!served.printed().contains("jig-fixture"), "it has not begun");
    served.verb(&["go"], &[]).says(0, &[]);
    served.prints("\nOK\n");
    served.stop().says(0, &[]);
}

#[test]
fn what_cannot_be_flashed_leaves_the_flash_alone() {
    let _slot = Slot::take();
    let workshop = Workshop::new();
    let whole = noise(FLASH, 8);
    workshop.write("whole.bin", &whole);
    flashed(&workshop, &["whole.bin@0"]);
    let refused = |image: &str, code: i32, words: &[&str]| {
        workshop.run(["flash", "-b", "microbit", image]).says(code, words);
    };
    workshop.write("large.bin", vec![1; 2 * SECTOR]);
    refused(
        "large.bin@0x3fc00",
        2,
        &["0x3fc00..0x40400 does not fit board microbit", "0x0..0x40000"],
    );
    refused("large.bin@0x30000000", 2, &["does not fit board microbit"]);
    refused("large.bin", 2, &["large.bin@0x8000"]);
    refused("large.bin@0xzz", 2, &["is no address"]);
    let foreign = elf("riscv32-virt", "silent");
    refused(&foreign, 2, &["it is built for", "but board microbit is"]);
    let far = elf("netduinoplus2", "unity-pass");
    refused(&far, 2, &["does not fit board microbit"]);

    let mut hex = intel_hex(&[(0, &[1; 64])]).into_bytes();
    let third: usize = hex.split_inclusive(|&b| b == b'\n').take(3).map(<[u8]>::len).sum();
    hex[third - 2] = if hex[third - 2] == b'0' { b'1' } else { b'0' };
    workshop.write("bad.hex", &hex);
    refused("bad.hex", 2, &["line 3", "bad checksum"]);
    workshop.write("cut.hex", &hex[..third - 20]);
    refused("cut.hex", 2, &["Intel HEX is broken"]);

    // An ELF file whose table of segments is empty.
    let mut empty = fs::read(elf("microbit", "silent")).unwrap();
    empty[44..46].fill(0);
    workshop.write("empty.elf", &empty);
    refused("empty.elf", 2, &["no loadable segment"]);
    workshop.write("cut.elf", &empty[..60]);
    refused("cut.elf", 2, &["cannot be used"]);
    refused("none.elf", 2, &["could not read none.elf"]);
    assert!(read(&workshop, 0, FLASH) == whole, "nothing was written");
    workshop.nothing_lives(Duration::ZERO).unwrap();
}

#[test]
fn flash_killed_at_any_moment() {
    let _slot = Slot::take();
    let (workshop, mut dice) = (Workshop::new(), Dice::new());
    let images = [noise(64 << 10, 9), noise(64 << 10, 10)];
    for (nth, bytes) in images.iter().enumerate() {
        workshop.write(&format!("{nth}.bin"), bytes);
    }
    let began = Instant::now();
    flashed(&workshop, &["0.bin@0"]);
    let mut takes = began.elapsed();
    let mut landed = 0;
    let mut met = 0;
    for throw in 0..KILLS * 4 {
        let image = format!("{}.bin@0", (throw + 1) % images.len());
        let mut command = workshop.jig(["flash", "-b", "microbit", &image]);
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        // This is no wait for anything: the moment is what is thrown.
        let moment = Duration::from_micros(dice.below((takes.as_micros() as u64).max(1)));
        std::thread::sleep(moment);
        met += usize::from(!workshop.emulators().is_empty());
        child.kill().unwrap();
        match child.wait().unwrap().signal() {
            Some(9) => landed += 1,
            // It was quicker than before, when the machine may have been busier.
            _ => takes = moment,
        }
        if let Err(left) = workshop.nothing_lives(DEADLINE) {
            panic!("killed after {moment:?}: {left}");
        }
        if landed == KILLS {
            break;
        }
    }
    assert_eq!(landed, KILLS, "kills that met a living flasher");
    assert!(met > 0, "no kill met an emulator");
    // The flash is whole whatever it holds: one of the images, or what was before.
    let kept = read(&workshop, 0, images[0].len());
    assert!(images.contains(&kept), "the flash holds half an image");
    flashed(&workshop, &["1.bin@0"]);
    assert!(read(&workshop, 0, images[1].len()) == images[1]);
    workshop.nothing_lives(Duration::ZERO).unwrap();
}

#[test]
fn flash_asked_to_stop() {
    let _slot = Slot::take();
    let workshop = Workshop::new();
    workshop.write("all.bin", noise(FLASH, 11));
    let mut command = workshop.jig(["flash", "-b", "microbit", "all.bin@0"]);
    let mut run =
        crate::workshop::Started::of(command.stdout(Stdio::piped()).stderr(Stdio::piped()));
    // Its first word is about the first phase; the others take longer than a signal.
    let mut first = [0; 4];
    let err = run.child().stderr.as_mut().unwrap();
    std::io::Read::read_exact(err, &mut first).unwrap();
    run.signal(Signal::SIGINT);
    let ran = run.finish();
    assert!(ran.code() == 130 || ran.code() == 0, "{ran}");
    if ran.code() == 130 {
        ran.says(130, &["cancelled: "]);
        let (untouched, left) = ("nothing was written", "flash it again");
        assert!(ran.err().contains(untouched) != ran.err().contains(left), "{ran}");
    }
    workshop.nothing_lives(DEADLINE).unwrap();
    flashed(&workshop, &["all.bin@0"]);
}

#[test]
fn a_server_whose_emulator_is_gone_ends_and_says_so() {
    let _slot = Slot::take();
    let workshop = Workshop::new();
    let served = Served::start(&workshop, "microbit", &[]);
    let emulators = workshop.emulators();
    let [emulator] = emulators.as_slice() else { panic!("one emulator runs: {emulators:?}") };
    nix::sys::signal::kill(*emulator, Signal::SIGKILL).unwrap();
    served.ended().says(75, &["is gone: emulator_killed", "jig probe serve -b microbit"]);
    workshop.write("new.bin", noise(SECTOR, 14));
    flashed(&workshop, &["new.bin@0"]);
}
