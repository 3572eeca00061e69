//! One program in three formats: what runs must not depend on how its bytes were wrapped.

use std::fmt::Write as _;

use jig_model::image::Payload;

use crate::manifest::{elf, entries};
use crate::workshop::{Slot, Workshop};

/// Writes Intel HEX as objcopy does: sixteen bytes a line, addresses in 32 bits.
fn intel_hex(payload: &Payload) -> String {
    fn line(text: &mut String, kind: u8, offset: u16, data: &[u8]) {
        let mut bytes = vec![u8::try_from(data.len()).unwrap()];
        bytes.extend(offset.to_be_bytes());
        bytes.push(kind);
        bytes.extend(data);
        bytes.push(bytes.iter().fold(0_u8, |sum, byte| sum.wrapping_sub(*byte)));
        let digits: String = bytes.iter().map(|byte| format!("{byte:02X}")).collect();
        writeln!(text, ":{digits}\r").unwrap();
    }
    let mut text = String::new();
    for segment in &payload.segments {
        for (n, data) in segment.bytes.chunks(16).enumerate() {
            let address = u32::try_from(segment.start).unwrap() + 16 * u32::try_from(n).unwrap();
            let [high, low] = [address >> 16, address & 0xffff].map(|half| half as u16);
            line(&mut text, 4, 0, &high.to_be_bytes());
            line(&mut text, 0, low, data);
        }
    }
    line(&mut text, 1, 0, &[]);
    text
}

#[test]
fn every_board_runs_every_format() {
    let boards: Vec<String> = entries()
        .into_iter()
        .filter(|entry| entry.fixture == "unity-pass")
        .map(|entry| entry.board)
        .collect();
    assert!(boards.len() >= 9, "{boards:?}");
    for board in boards {
        let workshop = Workshop::new();
        let bytes = std::fs::read(elf(&board, "unity-pass")).unwrap();
        let payload = Payload::parse("app.elf", &bytes, None).unwrap();
        let [segment] = &payload.segments[..] else { panic!("{board}: not one segment") };
        workshop.write("app.hex", intel_hex(&payload));
        workshop.write("app.bin", &segment.bytes);
        for image in ["app.hex".to_owned(), format!("app.bin@{:#x}", segment.start)] {
            let _slot = Slot::take();
            let ran = workshop.run(["run", "-b", &board, &image]);
            assert_eq!(ran.code(), 0, "{board}: {ran}");
            assert!(ran.err().contains("3 tests passed"), "{ran}");
        }
        // What ran is kept under a name that says what it is.
        let kept = |ending: &str| {
            let runs = workshop.run_dirs();
            runs.iter().any(|run| run.join(format!("artefacts/image-1.{ending}")).exists())
        };
        assert!(kept("hex") && kept("bin"), "{board}");
    }
}

#[test]
fn images_that_cannot_be_placed_are_refused_with_the_way_out() {
    let workshop = Workshop::new();
    let bytes = std::fs::read(elf("microbit", "unity-pass")).unwrap();
    let payload = Payload::parse("app.elf", &bytes, None).unwrap();
    workshop.write("app.bin", &payload.segments[0].bytes);
    workshop.write("cut.hex", intel_hex(&payload).replace(":00000001FF", ""));
    workshop.write("bad.hex", intel_hex(&payload).replacen(":10", ":11", 1));
    for (image, words) in [
        ("app.bin", "a raw binary needs its address: app.bin@0x8000"),
        ("app.bin@0x3ffff", "does not fit board microbit"),
        ("app.bin@0x8g", "is no address"),
        ("none.bin@0x0", "No such file"),
        ("cut.hex", "without an end record"),
        ("bad.hex", "line 2: the record announces 17 bytes of data and holds 16"),
    ] {
        workshop.run(["run", "-b", "microbit", image]).says(2, &[words]);
    }
    assert!(workshop.run_dirs().is_empty());
}

#[test]
fn places_on_probes_say_how_they_are_flashed() {
    let workshop = Workshop::new();
    std::fs::create_dir(workshop.path("boards")).unwrap();
    workshop.write(
        "boards/real.toml",
        "version = 1\nid = \"real\"\ntitle = \"Real\"\narch = \"arm\"\n\
         console = [{ name = \"uart0\", kind = \"uart\" }]\n\
         [deploy]\nmethod = \"command\"\nargv = [\"no-such-flasher\", \"{image}\"]\n",
    );
    let place = |name: &str, board: &str, serial: u32| {
        format!(
            "[[place]]\nname = \"{name}\"\nboard = \"{board}\"\n\
             [place.probe]\nselector = \"0d28:0204:{serial}\"\n"
        )
    };
    let places = place("bench-1", "microbit", 9901) + &place("bench-2", "real", 9900);
    workshop.write("rig.toml", format!("version = 1\n{places}"));
    let listed = workshop.run(["--boards", "boards", "boards"]);
    assert!(listed.out().contains("probe 0d28:0204:9900, deploy by no-such-flasher"), "{listed}");
    let json = workshop.run(["--boards", "boards", "--json", "boards"]);
    let json: serde_json::Value = serde_json::from_slice(&json.stdout).unwrap();
    let deploys: Vec<_> = json["places"].as_array().unwrap().iter().map(|p| &p["deploy"]).collect();
    assert_eq!(deploys, ["probe", "command"]);
    let doctor = workshop.run(["--boards", "boards", "doctor"]);
    let said = doctor.out() + &doctor.err();
    assert!(said.contains("not in PATH; needed to flash bench-2"), "{doctor}");
    // What is wrong with a place is shown in its place.
    let bad = workshop.path("bad.toml");
    std::fs::write(
        &bad,
        "version = 1\n".to_owned()
            + &place("bench-3", "microbit", 9900).replace("0d28:0204:9900", "0d28"),
    )
    .unwrap();
    let checked = workshop.run(["profile", "check", bad.to_str().unwrap()]);
    checked.says(3, &["selects no probe", "jig probes"]);
}
