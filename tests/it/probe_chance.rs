//! Random accesses, checked by an independent debugger: GDB reads and writes memory and registers
//! anywhere, through `jig gdb`; a model says what must be there, and in the end Jig's verbs see the
//! same.
//!
//! One script makes all accesses of a board in one process of GDB. They are random; the seed is
//! printed, and `JIG_TEST_SEED` repeats the same accesses.

use std::fmt::Write as _;
use std::fs;
use std::path::PathBuf;
use std::process::Stdio;

use jig_model::image::{ImageFormat, Payload};

use crate::dice::Dice;
use crate::manifest::elf;
use crate::probe_gdb::Gdb;
use crate::served::{Served, bytes_of};
use crate::workshop::{Slot, Workshop, ran, tied};

/// Accesses a board.
const ACCESSES: usize = 400;

/// RAM that the model holds: all of the smallest board's but the last bytes, which the virtual
/// probe borrows while it works.
const RAM: u64 = 0x2000_0000;
const RAM_LEN: usize = 0x3fc0;

/// Longest block; more than one packet of GDB's carries.
const BLOCK: u64 = 5000;

/// Bits of the program status register that a program may set: N, Z, C, V; Q with ARMv7-M.
/// The rest says what the core does and must stay.
const FLAGS: u32 = 0xf000_0000;
const FLAGS_V7: u32 = 0xf800_0000;

/// Bits of the floating point status register that ARMv7-M has: flags, modes, exceptions.
const FPSCR: u32 = 0xf7c0_009f;

struct Core {
    board: &'static str,
    flags: u32,
    floats: bool,
}

const CORES: [Core; 3] = [
    Core { board: "microbit", flags: FLAGS, floats: false },
    Core { board: "mps2-an385", flags: FLAGS_V7, floats: false },
    Core { board: "netduinoplus2", flags: FLAGS_V7, floats: true },
];

/// What a board must hold, and the script that brings it there and looks.
struct Model {
    dice: Dice,
    core: Core,
    ram: Vec<u8>,
    /// What the image put where it cannot be written like memory.
    program: (u64, Vec<u8>),
    registers: Vec<(String, u32)>,
    noise: (PathBuf, Vec<u8>),
    folder: PathBuf,
    script: String,
    /// A line that GDB must print, and why.
    told: Vec<String>,
    /// A file that GDB must write, and what must be in it.
    dumped: Vec<(PathBuf, Vec<u8>)>,
}

impl Model {
    fn word(&mut self) -> u32 {
        (self.dice.below(1 << 16) << 16 | self.dice.below(1 << 16)) as u32
    }

    /// Chooses where `len` bytes of RAM are, at any alignment.
    fn place(&mut self, len: usize) -> usize {
        self.dice.below((RAM_LEN - len + 1) as u64) as usize
    }

    fn command(&mut self, text: &str) {
        self.script.push_str(text);
        self.script.push('\n');
    }

    /// Expects a value that GDB prints.
    fn shows(&mut self, what: &str, value: u64) {
        let nth = self.told.len();
        self.command(&format!("printf \"{nth}: {what} 0x%lx\\n\", (unsigned long long){what}"));
        self.told.push(format!("{nth}: {what} {value:#x}"));
    }

    fn access(&mut self) {
        match self.dice.below(10) {
            0 | 1 => self.write_value(),
            2 | 3 => self.read_value(),
            4 => self.write_block(),
            5 => self.read_block(),
            6 => self.read_program(),
            7 | 8 => self.write_register(),
            _ => self.read_register(),
        }
    }

    fn kind(&mut self) -> (&'static str, usize) {
        const KINDS: [(&str, usize); 4] = [
            ("unsigned char", 1),
            ("unsigned short", 2),
            ("unsigned int", 4),
            ("unsigned long long", 8),
        ];
        KINDS[self.dice.below(4) as usize]
    }

    fn write_value(&mut self) {
        let (kind, len) = self.kind();
        let at = self.place(len);
        let bytes = (u64::from(self.word()) << 32 | u64::from(self.word())).to_le_bytes();
        let mut value = [0; 8];
        value[..len].copy_from_slice(&bytes[..len]);
        self.ram[at..at + len].copy_from_slice(&bytes[..len]);
        let (address, value) = (RAM + at as u64, u64::from_le_bytes(value));
        self.command(&format!("set {{{kind}}}{address:#x} = {value:#x}ULL"));
    }

    fn read_value(&mut self) {
        let (kind, len) = self.kind();
        let at = self.place(len);
        let mut value = [0; 8];
        value[..len].copy_from_slice(&self.ram[at..at + len]);
        let address = RAM + at as u64;
        self.shows(&format!("*({kind}*){address:#x}"), u64::from_le_bytes(value));
    }

    fn write_block(&mut self) {
        let len = 1 + self.dice.below(BLOCK) as usize;
        let (at, from) = (self.place(len), self.dice.below(BLOCK) as usize);
        self.ram[at..at + len].copy_from_slice(&self.noise.1[from..from + len]);
        let file = self.noise.0.display().to_string();
        // GDB adds an offset to the place in the file, which may be a negative one.
        let offset = (RAM + at as u64) as i64 - from as i64;
        self.command(&format!("restore {file} binary {offset} {from} {}", from + len));
    }

    fn dump(&mut self, address: u64, bytes: Vec<u8>) {
        let file = self.folder.join(format!("{}.bin", self.dumped.len()));
        let (name, end) = (file.display().to_string(), address + bytes.len() as u64);
        self.command(&format!("dump binary memory {name} {address:#x} {end:#x}"));
        self.dumped.push((file, bytes));
    }

    fn read_block(&mut self) {
        let len = 1 + self.dice.below(BLOCK) as usize;
        let at = self.place(len);
        self.dump(RAM + at as u64, self.ram[at..at + len].to_vec());
    }

    fn read_program(&mut self) {
        let len = 1 + self.dice.below(self.program.1.len() as u64) as usize;
        let at = self.dice.below((self.program.1.len() - len + 1) as u64) as usize;
        let bytes = self.program.1[at..at + len].to_vec();
        self.dump(self.program.0 + at as u64, bytes);
    }

    fn write_register(&mut self) {
        let nth = self.dice.below(self.registers.len() as u64) as usize;
        let (name, old) = self.registers[nth].clone();
        let word = self.word();
        let value = match name.as_str() {
            // Stacks are of words, and GDB looks at them.
            "sp" => RAM as u32 + word % RAM_LEN as u32 / 8 * 8,
            "xpsr" => old & !self.core.flags | word & self.core.flags,
            "fpscr" => word & FPSCR,
            // Neither infinite nor no number, which GDB cannot be told in digits.
            single if single.starts_with('s') => word & !(1 << 30),
            _ => word,
        };
        self.registers[nth].1 = value;
        match single(&name) {
            // Nine digits tell every single from its neighbours.
            true => self.command(&format!("set ${name} = {:.9e}", f32::from_bits(value))),
            false => self.command(&format!("set ${name} = {value:#x}")),
        }
    }

    fn read_register(&mut self) {
        let nth = self.dice.below(self.registers.len() as u64) as usize;
        let (name, value) = self.registers[nth].clone();
        self.shows_register(&name, value);
    }

    /// Expects the bits of a register, whatever its type.
    fn shows_register(&mut self, name: &str, value: u32) {
        let nth = self.told.len();
        let told = format!("{nth}: ${name} = {value:#x}");
        self.command(&format!("printf \"{nth}: ${name} = \""));
        self.command(&format!("output/x ${name}"));
        self.command("printf \"\\n\"");
        // Of no value GDB prints a digit alone.
        self.told.push(told);
    }
}

/// Tells whether a register holds a single.
fn single(name: &str) -> bool {
    name.strip_prefix('s').is_some_and(|number| number.parse::<u8>().is_ok())
}

/// Values that verbs set and GDB is asked for: those that it cannot be told in digits.
const SPECIAL: [u32; 4] = [0x7f80_0000, 0xff80_0000, 0x7fc0_1234, 0x8000_0000];

#[test]
fn gdb_and_a_model_agree_on_memory_and_registers_on_armv6m() {
    let [core, ..] = CORES;
    agree(core);
}

#[test]
fn gdb_and_a_model_agree_on_memory_and_registers_on_armv7m() {
    let [_, core, _] = CORES;
    agree(core);
}

#[test]
fn gdb_and_a_model_agree_on_memory_and_registers_beside_a_floating_point_unit() {
    let [.., core] = CORES;
    agree(core);
}

fn agree(core: Core) {
    let _slot = Slot::take();
    let (workshop, mut dice, board) = (Workshop::new(), Dice::new(), core.board);
    let image = elf(board, "unity-pass");
    let served = Served::start(&workshop, board, &["--image", &image]);
    served.prints("\nOK\n");
    served.verb(&["halt"], &[]).says(0, &[]);

    let mut noise = |len: usize| (0..len).map(|_| dice.below(256) as u8).collect::<Vec<u8>>();
    let (ram, noise) = (noise(RAM_LEN), noise(2 * BLOCK as usize));
    let noise = (workshop.write("noise.bin", &noise), noise);
    // What a verb writes, GDB reads.
    let words: Vec<String> = ram
        .chunks(4)
        .map(|word| format!("{:#x}", u32::from_le_bytes(word.try_into().unwrap())))
        .collect();
    let words = words.iter().map(String::as_str);
    let args: Vec<&str> = ["0x20000000"].into_iter().chain(words).collect();
    served.verb(&["mem", "write"], &args).says(0, &[]);
    let mut names: Vec<String> = (0..13).map(|number| format!("r{number}")).collect();
    names.extend(["sp", "lr", "xpsr"].map(str::to_owned));
    if core.floats {
        names.extend((0..32).map(|number| format!("s{number}")));
        names.push("fpscr".to_owned());
    }
    if core.floats {
        let set: Vec<String> =
            SPECIAL.iter().enumerate().map(|(nth, value)| format!("s{nth}={value:#x}")).collect();
        let set: Vec<&str> = set.iter().map(String::as_str).collect();
        served.verb(&["regs"], &set).says(0, &[]);
    }
    let registers = registers(&served, &names);
    let payload = Payload::read(ImageFormat::Elf, &fs::read(&image).unwrap()).unwrap();
    let first = &payload.segments[0];
    let program = (first.start, first.bytes.clone());
    let (folder, script) = (workshop.path(""), String::new());
    let (told, dumped) = (Vec::new(), Vec::new());
    let mut model =
        Model { dice, core, ram, program, registers, noise, folder, script, told, dumped };

    for (name, value) in model.registers.clone() {
        model.shows_register(&name, value);
    }
    (0..ACCESSES).for_each(|_| model.access());
    model.command("detach");
    let script = workshop.write("accesses.gdb", &model.script);
    let gdb = Gdb::start(&workshop, board, &[]);
    let mut command = tied("gdb-multiarch");
    command.args(["-batch", "-nx", "-ex", "set confirm off", "-ex", "set remotetimeout 60"]);
    command.args(["-ex", &format!("target remote {}", gdb.address)]);
    command.arg("-x").arg(script).arg(&image).stdin(Stdio::null());
    let said = ran(&mut command).unwrap();
    said.says(0, &[]);
    gdb.stop();

    let out = said.out();
    let numbered =
        |line: &&str| line.starts_with(|c: char| c.is_ascii_digit()) && line.contains(": ");
    let lines: Vec<&str> = out.lines().filter(numbered).collect();
    assert_eq!(lines.len(), model.told.len(), "{board}: answers of GDB: {said}");
    let mut wrong = String::new();
    for (line, told) in lines.iter().zip(&model.told).filter(|(line, told)| line != told) {
        writeln!(wrong, "GDB says  {line}\nexpected  {told}").unwrap();
    }
    assert!(wrong.is_empty(), "{board}:\n{wrong}");
    for (nth, (file, bytes)) in model.dumped.iter().enumerate() {
        assert!(fs::read(file).unwrap() == *bytes, "{board}: block {nth} that GDB has read");
    }
    // What GDB wrote, verbs read; and there is nothing else.
    let len = RAM_LEN.to_string();
    let read = bytes_of(&served.json(&["mem", "read"], &["0x20000000", &len]));
    let differs = read.iter().zip(&model.ram).position(|(read, held)| read != held);
    assert_eq!(differs, None, "{board}: offset in RAM that verbs see differently");
    assert_eq!(self::registers(&served, &names), model.registers, "{board}");
    served.stop().says(0, &[]);
}

/// Reads registers by Jig's own verb.
fn registers(served: &Served<'_>, names: &[String]) -> Vec<(String, u32)> {
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let seen = served.json(&["regs"], &names);
    let seen = seen["registers"].as_array().unwrap().iter();
    let pair = |register: &serde_json::Value| {
        let value = register["value"].as_u64().unwrap();
        (register["name"].as_str().unwrap().to_owned(), u32::try_from(value).unwrap())
    };
    seen.map(pair).collect()
}
