//! Programs that flash by a serial boot loader, as published, each with a boot loader that this file
//! plays at the far end of a pseudo-terminal: STK500 of AVR boards for avrdude, the serial protocol of
//! Espressif's chips for esptool. What the programs print of a success and of the failures that take a
//! board is their own.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{Read as _, Write as _};
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::{Arc, Mutex};
use std::thread;

use flate2::read::ZlibDecoder;

use crate::flashers::is_installed;
use crate::serial::terminal;
use crate::workshop::{Ran, Workshop, tied};

/// What is wrong with a board.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Flaw {
    /// Nothing.
    None,
    /// Another chip than the profile's answers.
    OtherChip,
    /// A byte of the flash keeps its old value.
    StuckByte,
}

/// A chip with its boot loader, at a serial port.
struct Chip {
    port: PathBuf,
    flash: Arc<Mutex<Vec<u8>>>,
    /// The port stays open here, so the chip outlives each program that opens and closes it.
    _near: File,
}

impl Chip {
    /// Puts a boot loader with an erased flash at a port. Its thread ends with the port.
    fn new<L: BootLoader + Send + 'static>(size: usize, make: impl FnOnce(Flash) -> L) -> Self {
        let (mut far, near, port) = terminal();
        let flash = Arc::new(Mutex::new(vec![0xff; size]));
        let mut loader = make(Flash(Arc::clone(&flash)));
        thread::spawn(move || {
            let (mut said, mut buf) = (Vec::new(), [0; 4096]);
            while let Ok(count @ 1..) = far.read(&mut buf) {
                said.extend_from_slice(&buf[..count]);
                while let Some((length, answer)) = loader.answer(&said) {
                    said.drain(..length);
                    far.write_all(&answer).unwrap();
                }
            }
        });
        Self { port, flash, _near: near }
    }

    fn holds(&self, at: usize, bytes: &[u8]) -> bool {
        self.flash.lock().unwrap()[at..at + bytes.len()] == *bytes
    }
}

/// The flash of a chip.
struct Flash(Arc<Mutex<Vec<u8>>>);

impl Flash {
    fn write(&self, at: usize, bytes: &[u8], flaw: Flaw) {
        let mut flash = self.0.lock().unwrap();
        flash[at..at + bytes.len()].copy_from_slice(bytes);
        if flaw == Flaw::StuckByte && !bytes.is_empty() {
            flash[at] = !bytes[0];
        }
    }

    fn read(&self, at: usize, count: usize) -> Vec<u8> {
        self.0.lock().unwrap()[at..at + count].to_vec()
    }
}

trait BootLoader {
    /// Answers the first request in what was said; returns its length. Nothing if it is not whole.
    fn answer(&mut self, said: &[u8]) -> Option<(usize, Vec<u8>)>;
}

/// The boot loader of an Arduino Uno: STK500 version 1 (Atmel AVR061), as far as Optiboot has it.
struct Stk500 {
    flash: Flash,
    flaw: Flaw,
    /// Address of the next page, in bytes.
    at: usize,
}

impl BootLoader for Stk500 {
    fn answer(&mut self, said: &[u8]) -> Option<(usize, Vec<u8>)> {
        const END: u8 = 0x20;
        let word =
            |at: usize| Some((usize::from(*said.get(at)?) << 8) | usize::from(*said.get(at + 1)?));
        let command = *said.first()?;
        let length = match command {
            b'A' => 1,
            b'B' => 20,
            b'E' => usize::from(*said.get(1)?),
            b'U' => 2,
            b'V' => 4,
            b'd' => 3 + word(1)?,
            b't' => 3,
            _ => 0,
        };
        if *said.get(1 + length)? != END {
            // Noise of a line: not in sync.
            return Some((1, vec![0x15]));
        }
        let args = &said[1..1 + length];
        let told = match command {
            // Version of the boot loader, and whatever else is asked for.
            b'A' => vec![if args[0] == 0x81 { 8 } else { 3 }],
            b'U' => {
                self.at = 2 * ((usize::from(args[1]) << 8) | usize::from(args[0]));
                vec![]
            }
            b'V' => vec![0],
            b'd' => {
                self.flash.write(self.at, &args[3..], self.flaw);
                vec![]
            }
            b't' => self.flash.read(self.at, word(1)?),
            b'u' if self.flaw == Flaw::OtherChip => vec![0x1e, 0x93, 0x07],
            b'u' => vec![0x1e, 0x95, 0x0f],
            _ => vec![],
        };
        Some((2 + length, [&[0x14][..], &told, &[0x10]].concat()))
    }
}

/// The boot loader of an Arduino Leonardo: AVR109 (Atmel AVR109), as far as Caterina has it.
struct Avr109 {
    flash: Flash,
    flaw: Flaw,
    /// Address of the next block, in bytes.
    at: usize,
}

impl BootLoader for Avr109 {
    fn answer(&mut self, said: &[u8]) -> Option<(usize, Vec<u8>)> {
        let byte = |at: usize| said.get(at).copied().map(usize::from);
        let size = || Some((byte(1)? << 8) | byte(2)?);
        let command = *said.first()?;
        let length = match command {
            b'A' => 3,
            b'B' => 4 + size()?,
            b'g' => 4,
            b'T' => 2,
            _ => 1,
        };
        let args = said.get(1..length)?;
        let told = match command {
            0x1b => vec![],
            b'S' => b"CATERIN".to_vec(),
            b'V' => b"10".to_vec(),
            b'p' => b"S".to_vec(),
            b'a' => b"Y".to_vec(),
            b'b' => vec![b'Y', 0, 128],
            b't' => vec![0x44, 0],
            b's' if self.flaw == Flaw::OtherChip => vec![0x07, 0x93, 0x1e],
            b's' => vec![0x87, 0x95, 0x1e],
            b'A' => {
                self.at = 2 * size()?;
                vec![b'\r']
            }
            b'B' => {
                self.flash.write(self.at, &args[3..], self.flaw);
                self.at += args[3..].len();
                vec![b'\r']
            }
            b'g' => {
                let bytes = self.flash.read(self.at, size()?);
                self.at += bytes.len();
                bytes
            }
            b'T' | b'P' | b'L' | b'E' | b'e' => vec![b'\r'],
            _ => vec![b'?'],
        };
        Some((length, told))
    }
}

/// The boot loader of an Arduino with a SAM D21: SAM-BA with the extensions of Arduino, over USB.
struct SamBa {
    flash: Flash,
    flaw: Flaw,
    /// What was sent into RAM, and where it begins.
    ram: (usize, Vec<u8>),
    /// Where in RAM the bytes are that are written next.
    from: usize,
}

impl SamBa {
    fn word(&self, at: usize) -> u32 {
        match at {
            // A Cortex-M0+; the identity of the chip: SAMD21G18A, and one of another family.
            0xe000_ed00 => 0x410c_c601,
            0x4100_2018 if self.flaw == Flaw::OtherChip => 0x2001_0000,
            0x4100_2018 => 0x1001_0005,
            // The controller of the flash is ready.
            0x4100_4014 => 1,
            0..0x4_0000 => u32::from_le_bytes(self.flash.read(at, 4).try_into().unwrap()),
            _ => 0,
        }
    }
}

impl BootLoader for SamBa {
    fn answer(&mut self, said: &[u8]) -> Option<(usize, Vec<u8>)> {
        let end = said.iter().position(|&byte| byte == b'#')?;
        let text = std::str::from_utf8(&said[1..end]).unwrap();
        let mut numbers = text.split(',').map(|n| usize::from_str_radix(n, 16).unwrap_or_default());
        let (first, second) = (numbers.next().unwrap(), numbers.next());
        let size = second.unwrap_or_default();
        let mut length = end + 1;
        let told = match said[0] {
            b'N' => b"\n\r".to_vec(),
            b'V' => b"v2.0 [Arduino:XYZ] Mar  5 2016 17:46:11\n\r".to_vec(),
            b'w' => self.word(first).to_le_bytes().to_vec(),
            b'o' => vec![0xff],
            b'R' => self.flash.read(first, size),
            b'S' => {
                self.ram = (first, said.get(length..length + size)?.to_vec());
                length += size;
                vec![]
            }
            b'X' => {
                self.flash.0.lock().unwrap()[first..].fill(0xff);
                b"X\n\r".to_vec()
            }
            b'Y' if size == 0 => {
                self.from = first;
                b"Y\n\r".to_vec()
            }
            b'Y' => {
                let begin = self.from - self.ram.0;
                self.flash.write(first, &self.ram.1[begin..begin + size], self.flaw);
                b"Y\n\r".to_vec()
            }
            b'Z' => format!("Z{:08X}#\n\r", crc16(&self.flash.read(first, size))).into_bytes(),
            _ => vec![],
        };
        Some((length, told))
    }
}

/// CRC-16 of XMODEM.
fn crc16(bytes: &[u8]) -> u16 {
    bytes.iter().fold(0, |crc, &byte| {
        (0..8).fold(crc ^ (u16::from(byte) << 8), |crc: u16, _| {
            let carry = crc & 0x8000 != 0;
            (crc << 1) ^ if carry { 0x1021 } else { 0 }
        })
    })
}

/// The boot loader in the ROM of an ESP32, and the flasher stub that is loaded into it: "Serial
/// Protocol" of esptool's documentation.
struct EspRom {
    flash: Flash,
    flaw: Flaw,
    registers: BTreeMap<u32, u32>,
    stub: bool,
    /// Where the data go that are written, and as what.
    at: usize,
    deflated: Vec<u8>,
}

impl EspRom {
    fn new(flash: Flash, flaw: Flaw) -> Self {
        // By the word at this address the chips are told apart: ESP32, ESP32-S2.
        let magic = if flaw == Flaw::OtherChip { 0x0000_07c6 } else { 0x00f0_1d83 };
        // What the flash chip answers to the command that reads its identity: 4 MB.
        let registers = [(0x4000_1000, magic), (0x3ff4_2080, 0x0016_40ef)];
        let (at, deflated) = (0, Vec::new());
        Self { flash, flaw, registers: registers.into(), stub: false, at, deflated }
    }

    /// Carries out a request; returns the value, the data and the status of the response.
    fn carry_out(&mut self, op: u8, data: &[u8]) -> (u32, Vec<u8>, u8) {
        let word = |n: usize| {
            data.get(4 * n..4 * n + 4)
                .map_or(0, |word| u32::from_le_bytes(word.try_into().unwrap()))
        };
        let size = |n: usize| usize::try_from(word(n)).unwrap();
        let block = || data.get(16..16 + size(0)).unwrap_or_default();
        let mut told = Vec::new();
        match op {
            0x08 => return (if self.stub { 0 } else { 0x2012_0707 }, told, 0),
            0x09 => {
                // The command register of the flash: the command is done at once.
                let value = if word(0) == 0x3ff4_2000 { 0 } else { word(1) };
                let identity = (0x3ff4_2080..0x3ff4_20c0).contains(&word(0));
                if !identity {
                    self.registers.insert(word(0), value);
                }
            }
            0x0a => return (self.registers.get(&word(0)).copied().unwrap_or(0), told, 0),
            0x02 | 0x10 => {
                self.at = size(3);
                self.deflated.clear();
            }
            0x03 => {
                self.flash.write(self.at, block(), self.flaw);
                self.at += block().len();
            }
            0x11 => {
                self.deflated.extend_from_slice(block());
                let mut plain = Vec::new();
                // Only the whole of it can be inflated; until then it fails.
                if ZlibDecoder::new(self.deflated.as_slice()).read_to_end(&mut plain).is_ok() {
                    self.flash.write(self.at, &plain, self.flaw);
                }
            }
            0x13 => {
                told = md5(&self.flash.read(size(0), size(1)));
                if !self.stub {
                    told = told.iter().map(|byte| format!("{byte:02x}")).collect::<String>().into();
                }
            }
            // RAM, SPI flash, speed, ends: nothing that could be seen from here.
            0x04..=0x07 | 0x0b | 0x0d | 0x0f | 0x12 => {}
            _ => return (0, told, 1),
        }
        (0, told, 0)
    }
}

impl BootLoader for EspRom {
    fn answer(&mut self, said: &[u8]) -> Option<(usize, Vec<u8>)> {
        const FRAME: u8 = 0xc0;
        // What stands before a frame is none.
        if *said.first()? != FRAME {
            return Some((1, Vec::new()));
        }
        let end = said.iter().skip(1).position(|&byte| byte == FRAME)? + 1;
        if end == 1 {
            return Some((1, Vec::new()));
        }
        let request = unescaped(&said[1..end]);
        let [0, op, _, _, _, _, _, _, data @ ..] = request.as_slice() else {
            return Some((end + 1, Vec::new()));
        };
        let (value, mut told, status) = self.carry_out(*op, data);
        // The ROM has four bytes of status, the stub two; 5 says that a request is unknown.
        let ends = [status, 5 * status, 0, 0];
        told.extend_from_slice(if self.stub { &ends[..2] } else { &ends });
        let length = u16::try_from(told.len()).unwrap().to_le_bytes();
        let head = [1, *op, length[0], length[1]];
        let mut answer = frame(&[&head[..], &value.to_le_bytes(), &told].concat());
        if *op == 0x08 {
            // Eight times, as it is.
            answer = answer.repeat(8);
        }
        if *op == 0x06 && data.get(..4) == Some(&[0; 4]) {
            self.stub = true;
            answer.extend(frame(b"OHAI"));
        }
        Some((end + 1, answer))
    }
}

/// Puts bytes into a frame of SLIP.
fn frame(bytes: &[u8]) -> Vec<u8> {
    let escaped = bytes.iter().flat_map(|&byte| match byte {
        0xc0 => vec![0xdb, 0xdc],
        0xdb => vec![0xdb, 0xdd],
        byte => vec![byte],
    });
    [0xc0].into_iter().chain(escaped).chain([0xc0]).collect()
}

fn unescaped(bytes: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    let mut bytes = bytes.iter();
    while let Some(&byte) = bytes.next() {
        out.push(match (byte, if byte == 0xdb { bytes.next() } else { None }) {
            (_, Some(0xdc)) => 0xc0,
            (_, Some(_)) => 0xdb,
            (byte, None) => byte,
        });
    }
    out
}

fn md5(bytes: &[u8]) -> Vec<u8> {
    let mut sum = tied("md5sum").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    sum.stdin.take().unwrap().write_all(bytes).unwrap();
    let text = String::from_utf8(sum.wait_with_output().unwrap().stdout).unwrap();
    (0..16).map(|n| u8::from_str_radix(&text[2 * n..2 * n + 2], 16).unwrap()).collect()
}

/// A shipped board, how it is flashed beside its profile, and the address of its image.
struct Kind {
    board: &'static str,
    flasher: &'static str,
    program: &'static str,
    at: usize,
}

impl Kind {
    /// Flashes a raw binary to a chip whose port is the console of the place.
    fn flash(&self, more: &[&str], chip: &Chip, image: &[u8]) -> Ran {
        let workshop = Workshop::new();
        let path = workshop.write("app.bin", image);
        workshop.write(
            "rig.toml",
            format!(
                "version = 1\n[[place]]\nname = \"bench\"\nboard = \"{}\"\n{}\n\
                 console = [{{ name = \"uart0\", tty = \"{}\" }}]\n",
                self.board,
                self.flasher,
                chip.port.display()
            ),
        );
        let image = format!("{}@{:#x}", path.display(), self.at);
        workshop.run([more, &["flash", "-b", "bench", &image]].concat())
    }

    /// Flashes a chip that works, one of another kind, and one with a byte that cannot be written.
    fn is_flashed_or_says_why<L: BootLoader + Send + 'static>(
        &self,
        size: usize,
        bytes: usize,
        loader: impl Fn(Flash, Flaw) -> L,
        other: [&str; 2],
    ) {
        let image = image(bytes);
        let chip = |flaw| Chip::new(size, |flash| loader(flash, flaw));
        let good = chip(Flaw::None);
        let flashed = self.flash(&["--json"], &good, &image);
        flashed.says(0, &[]);
        let report = flashed.json().unwrap()["report"].clone();
        assert_eq!((&report["method"], &report["verified"]), (&self.program.into(), &true.into()));
        assert!(good.holds(self.at, &image));
        self.flash(&[], &chip(Flaw::OtherChip), &image).says(75, &other);
        let stuck = format!("{}: the flash holds other bytes than were written", self.program);
        self.flash(&[], &chip(Flaw::StuckByte), &image).says(75, &[&stuck, "flasher-1.log"]);
    }
}

/// An image without a period that a page or a block could hide.
fn image(size: usize) -> Vec<u8> {
    let next = |state: &u32| Some(state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223));
    std::iter::successors(Some(1), next).map(|state| state.to_be_bytes()[0]).take(size).collect()
}

#[test]
fn avrdude_flashes_an_uno_or_says_why_not() {
    let uno = Kind { board: "arduino-uno", flasher: "", program: "avrdude", at: 0 };
    let loader = |flash, flaw| Stk500 { flash, flaw, at: 0 };
    let other = ["avrdude: the board holds another chip", "options = { part"];
    uno.is_flashed_or_says_why(32 << 10, 3000, loader, other);
}

#[test]
fn avrdude_flashes_a_leonardo_or_says_why_not() {
    let flasher = "flasher = { preset = \"arduino-32u4\" }";
    let leonardo = Kind { board: "arduino-uno", flasher, program: "avrdude", at: 0 };
    let loader = |flash, flaw| Avr109 { flash, flaw, at: 0 };
    let other = ["avrdude: the board holds another chip", "options = { part"];
    leonardo.is_flashed_or_says_why(32 << 10, 3000, loader, other);
}

#[test]
fn bossac_flashes_a_samd21_or_says_why_not() {
    let flasher = "flasher = { preset = \"arduino-samd\" }";
    let zero = Kind { board: "arduino-zero", flasher, program: "bossac", at: 0x2000 };
    let loader = |flash, flaw| SamBa { flash, flaw, ram: (0, Vec::new()), from: 0 };
    let other = ["bossac: what answers on the port is no chip that bossac knows", "bossac --info"];
    zero.is_flashed_or_says_why(256 << 10, 9000, loader, other);
}

#[test]
fn esptool_flashes_an_esp32_or_says_why_not() {
    if !is_installed("esptool") {
        return;
    }
    let esp32 = Kind { board: "esp32-devkitc", flasher: "", program: "esptool", at: 0x10000 };
    let other = ["esptool: the board holds another chip", "options = { family"];
    esp32.is_flashed_or_says_why(4 << 20, 40_000, EspRom::new, other);
}
