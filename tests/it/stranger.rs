//! A program that knows probe-rs and nothing of Jig, on boards that Jig emulates.

use std::path::PathBuf;
use std::process::Stdio;

use jig_probe::Symbols;

use crate::manifest::elf;
use crate::served::{Served, bytes_of};
use crate::workshop::{Slot, Workshop, ran, tied};

/// Returns an example. Cargo builds those of all packages with `cargo test --workspace`,
/// beside the folder that this test lies in.
pub(crate) fn example(name: &str) -> PathBuf {
    let path = std::env::current_exe().unwrap();
    let path = path.parent().unwrap().with_file_name("examples").join(name);
    assert!(path.is_file(), "{} is missing: cargo build --workspace --examples", path.display());
    path
}

#[test]
fn a_stranger_uses_an_emulated_board() {
    let _slot = Slot::take();
    for board in ["microbit", "mps2-an385", "netduinoplus2"] {
        let workshop = Workshop::new();
        // What a chip is called, and a description of it where probe-rs does not know it.
        let told = Served::start(&workshop, board, &["--json"]);
        let about: serde_json::Value = serde_json::from_str(&told.selector).unwrap();
        told.stop().says(0, &[]);
        let description = about["description"].as_str();
        let description = description.map(|text| workshop.write("chip.yaml", text));

        let served = Served::start(&workshop, board, &[]);
        assert_eq!(about["selector"], served.selector);
        let image = elf(board, "unity-pass");
        let symbols = Symbols::load(&std::fs::read(&image).unwrap()).unwrap();
        let function = |name: &str| symbols.address_of(name).unwrap() & !1;
        let (start, breakpoint) = (function("reset_handler"), function("uart_put"));
        let mut command = tied(example("stranger"));
        command.args([&served.selector, about["chip"].as_str().unwrap(), &image, "20002000"]);
        command.arg(format!("{breakpoint:x}")).args(description).stdin(Stdio::null());
        let told = ran(&mut command).unwrap();
        told.says(0, &[]);
        let out = told.out();
        let lines: Vec<&str> = out.lines().collect();
        let [target, "flashed", reset, "ram kept", halted, stepped, "done"] = lines.as_slice()
        else {
            panic!("{board}: {told}");
        };
        assert!(target.starts_with("target "), "{told}");
        assert_eq!(*reset, format!("reset {start:#x}"), "{board}");
        assert_eq!(*halted, format!("breakpoint {breakpoint:#x}"), "{board}");
        let stepped = u64::from_str_radix(stepped.strip_prefix("step 0x").unwrap(), 16).unwrap();
        assert!((breakpoint + 1..breakpoint + 5).contains(&stepped), "{told}");
        // It was left running, and Jig sees what the stranger flashed.
        served.prints("\nOK\n");
        let vector = served.json(&["mem", "read"], &[&format!("{:#x}", start & !0xffff), "8"]);
        assert_eq!(bytes_of(&vector)[4..], (start as u32 | 1).to_le_bytes(), "{board}");
        served.stop().says(0, &[]);
    }
}
