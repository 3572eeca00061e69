//! The known-good image that Jig brings along, on every board that has one, and a boot loader.

use std::fs;
use std::process::{Command, Stdio};

use jig_model::known_good;
use jig_model::profile::{Arch, BoardProfile, FaultSets};

use crate::manifest::repository;
use crate::workshop::{Slot, Workshop, side_by_side};

/// A 64-bit RISC-V machine, which no profile describes.
const RISCV64: &str = r#"
version = 1
id = "rv64"
title = "QEMU's virtual RISC-V machine (RV64)"
arch = "riscv64"
[[memory]]
name = "ram"
kind = "ram"
start = 0x8000_0000
size = "16M"
[[console]]
name = "uart0"
kind = "uart"
[emulation]
program = "qemu-system-riscv64"
machine = "virt"
args = ["-bios", "none", "-m", "16"]
image_args = ["-kernel", "{image}"]
[emulation.known_good]
start = 0x8000_0000
setup = [{ address = 0x8000_1000, value = 7 }]
send = 0x1000_0000
ready = { status = 0x1000_0005, mask = 0x20, value = 0x20 }
bytes = true
"#;

fn profiles() -> Vec<BoardProfile> {
    let sets = FaultSets::default();
    let folder = fs::read_dir(repository().join("board-profiles")).unwrap();
    let files = folder.map(|entry| entry.unwrap().path());
    let texts = files.filter(|path| path.extension().is_some_and(|ending| ending == "toml"));
    // The fault signatures of a board do not matter here.
    let read = |name: &str, text: &str| {
        let lines = text.lines().filter(|line| !line.starts_with("faults ="));
        let text = lines.collect::<Vec<_>>().join("\n");
        BoardProfile::parse(name, &text, &sets).unwrap()
    };
    let mut all: Vec<_> = texts
        .map(|path| read(&path.display().to_string(), &fs::read_to_string(&path).unwrap()))
        .collect();
    all.push(read("rv64.toml", RISCV64));
    all
}

#[test]
fn every_board_that_takes_an_image_runs_its_known_good_one() {
    let workshop = Workshop::new();
    fs::create_dir(workshop.path("boards")).unwrap();
    workshop.write("boards/rv64.toml", RISCV64);
    let emulated = profiles().into_iter().filter(|board| board.emulation.is_some());
    let boards: Vec<_> = emulated.filter(|board| !board.memory.is_empty()).collect();
    assert!(boards.len() > 9, "{}", boards.len());
    side_by_side(boards, |board| {
        let _slot = Slot::take();
        let id = board.id.as_str();
        let image = known_good::image(&board).unwrap_or_else(|| panic!("{id} has none"));
        let image = workshop.write(&format!("{id}.elf"), image).display().to_string();
        let until = format!("^{}$", known_good::LINE);
        let ran = workshop.run(["--boards", "boards", "run", "-b", id, &image, "--until", &until]);
        ran.says(0, &["PASS"]);
    });
}

#[test]
fn a_boot_loader_reaches_its_prompt() {
    let _slot = Slot::take();
    let loader = "/usr/lib/u-boot/qemu_arm64/u-boot.bin@0x0";
    let args = ["run", "-b", "arm64-uboot", loader, "--until", "^=> ", "--timeout", "60s"];
    let ran = Workshop::new().run(args);
    ran.says(0, &["PASS arm64-uboot"]);
    assert!(ran.out().contains("U-Boot 20"), "{ran}");
}

/// Assembles one of the sources and returns its words.
fn assembled(source: &str, assembler: &str, args: &[&str], linker: &[&str]) -> Vec<u32> {
    let workshop = Workshop::new();
    let file = repository().join("controller/model/src/known_good/code").join(source);
    let text = fs::read_to_string(file).unwrap();
    let load = if args.contains(&"-march=rv64i") { "lwu" } else { "lw" };
    let source = workshop.write("source.s", text.replace("LOAD ", &format!("{load} ")));
    let run = |program: &str, args: &[&str]| {
        let mut command = Command::new(program);
        command.args(args).current_dir(workshop.path("")).stdin(Stdio::null());
        let status = command.status().unwrap_or_else(|why| panic!("{program}: {why}"));
        assert!(status.success(), "{program} {args:?}");
    };
    let prefix = assembler.trim_end_matches("as");
    run(assembler, &[args, &["-o", "code.o", source.to_str().unwrap()]].concat());
    run(
        &format!("{prefix}ld"),
        &[linker, &["-Ttext=0x80000000", "code.o", "-o", "code.elf"]].concat(),
    );
    run(&format!("{prefix}objcopy"), &["-O", "binary", "code.elf", "code.bin"]);
    let bytes = fs::read(workshop.path("code.bin")).unwrap();
    bytes.chunks(4).map(|word| u32::from_le_bytes(word.try_into().unwrap())).collect()
}

#[test]
fn machine_code_is_what_its_sources_assemble_to() {
    let arm = assembled("cortex-m.s", "arm-none-eabi-as", &[], &["--entry=0"]);
    assert_eq!(arm, known_good::program(Arch::Arm));
    let riscv = |isa: &str, abi: &str, linker: &str| {
        assembled("riscv.s", "riscv64-unknown-elf-as", &[isa, abi], &["-m", linker])
    };
    let narrow = riscv("-march=rv32i", "-mabi=ilp32", "elf32lriscv");
    assert_eq!(narrow, known_good::program(Arch::Riscv32));
    let wide = riscv("-march=rv64i", "-mabi=lp64", "elf64lriscv");
    assert_eq!(wide, known_good::program(Arch::Riscv64));
}
