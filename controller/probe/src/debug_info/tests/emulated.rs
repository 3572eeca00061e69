//! Real cores to look at: an emulator with a firmware, and a debugger's connection to it.
//!
//! The emulator is a managed child: it dies with its owner and with the test process.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use jig_drivers::process::{ManagedProcess, SpawnRequest};
use jig_model::protocol::NoLedger;
use object::{Object as _, ObjectSymbol as _};

use crate::{CoreKind, CoreSnapshot, MemoryRange, RegisterValue};

/// Only a failing test waits this long.
const DEADLINE: Duration = Duration::from_secs(60);

/// A machine, and where its memory is.
#[derive(Clone, Copy)]
pub(crate) struct Machine {
    pub(crate) name: &'static str,
    pub(crate) kind: CoreKind,
    pub(crate) code: (u64, usize),
    pub(crate) ram: (u64, usize),
}

pub(crate) const M0: Machine = Machine {
    name: "microbit",
    kind: CoreKind::Armv6m,
    code: (0, 0x1000),
    ram: (0x2000_0000, 0x1000),
};
pub(crate) const M3: Machine = Machine {
    name: "mps2-an385",
    kind: CoreKind::Armv7m,
    code: (0, 0x1000),
    ram: (0x2000_0000, 0x1000),
};
pub(crate) const M4: Machine = Machine {
    name: "netduinoplus2",
    kind: CoreKind::Armv7m,
    code: (0x0800_0000, 0x1000),
    ram: (0x2000_0000, 0x1000),
};

pub(crate) const M33: Machine = Machine {
    name: "mps2-an505",
    kind: CoreKind::Armv8m,
    code: (0x1000_0000, 0x1000),
    ram: (0x3800_0000, 0x1000),
};
pub(crate) const RISCV: Machine = Machine {
    name: "virt",
    kind: CoreKind::Riscv32,
    code: (0x8000_0000, 0x1000),
    ram: (0x8010_0000, 0x1000),
};

/// Returns the folder that cargo builds into; `cargo xtask fixtures` keeps its images there.
fn target_dir() -> PathBuf {
    let configured = std::env::var_os("CARGO_TARGET_DIR").filter(|dir| !dir.is_empty());
    configured.map_or_else(
        || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target"),
        |dir| std::path::absolute(&dir).unwrap_or_else(|_| dir.into()),
    )
}

/// Returns the path of a fixture's image.
pub(crate) fn fixture(machine: Machine, name: &str) -> PathBuf {
    let board = if machine.kind == CoreKind::Riscv32 { "riscv32-virt" } else { machine.name };
    let path = target_dir().join("fixtures").join(board).join(format!("{name}.elf"));
    assert!(path.exists(), "{} is missing: cargo xtask fixtures", path.display());
    path
}

/// Returns the address of a symbol, Thumb bit cleared.
pub(crate) fn address_of(elf: &[u8], name: &str) -> u64 {
    let file = object::File::parse(elf).unwrap();
    let symbol = file.symbols().find(|symbol| symbol.name() == Ok(name));
    symbol.unwrap_or_else(|| panic!("no symbol {name}")).address() & !1
}

/// An emulated core that stands still, or did until it locked up.
pub(crate) struct Emulated {
    pub(crate) machine: Machine,
    transport: UnixStream,
    inbox: Vec<u8>,
    process: ManagedProcess,
    runtime: tokio::runtime::Runtime,
    dir: tempfile::TempDir,
}

impl Emulated {
    /// Starts a firmware; it stands before its first instruction.
    pub(crate) fn start(machine: Machine, elf: &Path) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let (transport, theirs) = UnixStream::pair().unwrap();
        transport.set_read_timeout(Some(DEADLINE)).unwrap();
        let theirs = OwnedFd::from(theirs);
        let args = [
            "-M",
            machine.name,
            "-S",
            "-display",
            "none",
            "-monitor",
            "none",
            "-serial",
            "null",
            "-chardev",
            &format!("socket,id=transport,fd={}", theirs.as_raw_fd()),
            "-gdb",
            "chardev:transport",
            "-kernel",
        ]
        .iter()
        .map(Into::into)
        .chain([elf.into()])
        .collect();
        let (program, more): (_, &[&str]) = match machine.kind {
            CoreKind::Riscv32 => ("qemu-system-riscv32", &["-bios", "none", "-m", "16"]),
            _ => ("qemu-system-arm", &[]),
        };
        let mut args: Vec<std::ffi::OsString> = args;
        args.extend(more.iter().map(Into::into));
        let request = SpawnRequest {
            program: program.into(),
            args,
            cwd: None,
            stdin: None,
            stdout: None,
            stderr: Some(File::create(dir.path().join("stderr")).unwrap()),
            inherit: vec![theirs],
            exits_for_target: false,
            env: None,
            ends_itself: false,
            what: "test".to_owned(),
        };
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let process = runtime.block_on(ManagedProcess::spawn(request, Arc::new(NoLedger))).unwrap();
        let mut core = Self { machine, transport, inbox: Vec::new(), process, runtime, dir };
        // Registers are described before they can be read.
        core.ask("qXfer:features:read:target.xml:0,ffb");
        core
    }

    /// Runs until an address is reached.
    pub(crate) fn run_to(&mut self, address: u64) {
        assert_eq!(self.ask(&format!("Z1,{address:x},2")), "OK");
        let stopped = self.ask("c");
        assert!(stopped.starts_with('T'), "{stopped}");
        assert_eq!(self.ask(&format!("z1,{address:x},2")), "OK");
    }

    /// Runs into the lock-up that ends the emulator; returns what it said.
    pub(crate) fn run_to_death(mut self) -> String {
        self.send("c");
        assert_eq!(self.receive(), None);
        self.runtime.block_on(self.process.ended());
        std::fs::read_to_string(self.dir.path().join("stderr")).unwrap()
    }

    pub(crate) fn read(&mut self, start: u64, len: usize) -> Option<Vec<u8>> {
        let mut bytes = Vec::new();
        while bytes.len() < len {
            let chunk = (len - bytes.len()).min(0x400);
            let hex = self.ask(&format!("m{:x},{chunk:x}", start + bytes.len() as u64));
            if hex.starts_with('E') {
                return None;
            }
            bytes.extend(decode(&hex));
        }
        Some(bytes)
    }

    pub(crate) fn registers(&mut self) -> Vec<RegisterValue> {
        let bytes = decode(&self.ask("g"));
        let word = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap());
        if self.machine.kind == CoreKind::Riscv32 {
            let name = |number| if number == 32 { "pc".to_owned() } else { format!("x{number}") };
            return (0..33)
                .map(|n| RegisterValue { name: name(n), bits: 32, value: word(n * 4).into() })
                .collect();
        }
        let mut registers: Vec<_> = (0..16)
            .map(|number| {
                let name = match number {
                    13 => "sp".to_owned(),
                    14 => "lr".to_owned(),
                    15 => "pc".to_owned(),
                    _ => format!("r{number}"),
                };
                RegisterValue { name, bits: 32, value: word(number * 4).into() }
            })
            .collect();
        let xpsr = decode(&self.ask("p19"));
        let value = u32::from_le_bytes(xpsr[..4].try_into().unwrap()).into();
        registers.push(RegisterValue { name: "xpsr".to_owned(), bits: 32, value });
        registers
    }

    /// Takes all of it: registers, code, RAM, system control space.
    pub(crate) fn snapshot(&mut self) -> CoreSnapshot {
        let registers = self.registers();
        let mut ranges = vec![self.machine.code, self.machine.ram];
        if self.machine.kind != CoreKind::Riscv32 {
            ranges.push((0xe000_ed00, 0x40));
        }
        let memory = ranges
            .into_iter()
            .map(|(start, len)| MemoryRange { start, bytes: self.read(start, len).unwrap() })
            .collect();
        CoreSnapshot { kind: self.machine.kind, registers, memory }
    }

    pub(crate) fn ask(&mut self, packet: &str) -> String {
        self.send(packet);
        self.receive().unwrap_or_else(|| panic!("the emulator ended after {packet}"))
    }

    fn send(&mut self, packet: &str) {
        let sum = packet.bytes().fold(0_u8, u8::wrapping_add);
        write!(self.transport, "${packet}#{sum:02x}").unwrap();
    }

    /// Returns the next packet; nothing once the emulator has ended.
    fn receive(&mut self) -> Option<String> {
        loop {
            if let Some(end) = self.inbox.iter().position(|&byte| byte == b'#')
                && self.inbox.len() >= end + 3
            {
                let start = self.inbox.iter().position(|&byte| byte == b'$').unwrap();
                let packet = String::from_utf8_lossy(&self.inbox[start + 1..end]).into_owned();
                self.inbox.drain(..end + 3);
                self.transport.write_all(b"+").unwrap();
                return Some(packet);
            }
            let mut chunk = [0; 4096];
            match self.transport.read(&mut chunk) {
                Ok(0) => return None,
                Err(error) if error.kind() == std::io::ErrorKind::ConnectionReset => return None,
                Ok(count) => self.inbox.extend(&chunk[..count]),
                Err(error) => panic!("the emulator says nothing: {error}"),
            }
        }
    }
}

fn decode(hex: &str) -> Vec<u8> {
    (0..hex.len() / 2)
        // Registers that are not there are told as x.
        .map(|i| u8::from_str_radix(&hex[2 * i..2 * i + 2], 16).unwrap_or(0))
        .collect()
}
