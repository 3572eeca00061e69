//! An independent debugger: GDB sees through `jig gdb` what Jig's verbs see.

use std::process::Stdio;

use jig_model::{Cause, Fault};
use jig_probe::{AttachOptions, ProbeError, ProbeHandle, ProbeSource};
use nix::sys::signal::Signal;

use crate::manifest::elf;
use crate::served::{Served, bytes_of, first_line};
use crate::workshop::{Ran, Slot, Started, Workshop, ran, tied};

/// A GDB server; killed when dropped.
pub(crate) struct Gdb {
    server: Started,
    /// Where it listens.
    pub(crate) address: String,
    image: String,
}

impl Gdb {
    pub(crate) fn start(workshop: &Workshop, board: &str, more: &[&str]) -> Self {
        let mut command = workshop.jig(["gdb", "-b", board]);
        command.args(more).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut server = Started::of(&mut command);
        let (address, _) = first_line(&mut server);
        if address.is_empty() {
            panic!("nothing listens: {}", server.finish());
        }
        Self { server, address, image: elf(board, "unity-pass") }
    }

    /// Lets GDB connect and execute commands.
    #[track_caller]
    fn executes(&self, commands: &[&str]) -> Ran {
        let mut gdb = tied("gdb-multiarch");
        gdb.args(["-batch", "-nx", "-ex", "set confirm off", "-ex", "set remotetimeout 60"]);
        gdb.args(["-ex", &format!("target remote {}", self.address)]);
        gdb.args(commands.iter().flat_map(|command| ["-ex", command]));
        let told = ran(gdb.arg(&self.image).stdin(Stdio::null())).unwrap();
        told.says(0, &[]);
        told
    }

    pub(crate) fn stop(self) {
        self.server.signal(Signal::SIGINT);
        self.server.finish().says(130, &[]);
    }
}

/// Finds the value in a line such as `sp    0x20000800    0x20000800`.
#[track_caller]
fn value_of(told: &Ran, name: &str) -> u64 {
    let out = told.out();
    let mut words = out.lines().map(str::split_whitespace);
    let mut line = words.find(|line| line.clone().next() == Some(name));
    let value = line.as_mut().and_then(|line| line.nth(1));
    let value = value.unwrap_or_else(|| panic!("no {name} in {told}"));
    u64::from_str_radix(value.trim_start_matches("0x"), 16).unwrap()
}

#[test]
fn gdb_sees_the_same_registers_and_memory() {
    let _slot = Slot::take();
    for board in ["microbit", "mps2-an385", "netduinoplus2"] {
        let workshop = Workshop::new();
        let image = elf(board, "unity-pass");
        let served = Served::start(&workshop, board, &["--image", &image]);
        served.prints("\nOK\n");
        served.verb(&["halt"], &[]).says(0, &[]);
        served.verb(&["regs"], &["r4=0x12345678", "r8=0xabcdef"]).says(0, &[]);
        let seen = served.json(&["regs"], &[]);
        let memory = bytes_of(&served.json(&["mem", "read"], &["0x20000700", "256"]));

        let gdb = Gdb::start(&workshop, board, &[]);
        let dump = workshop.path("memory.bin").display().to_string();
        let save = format!("dump binary memory {dump} 0x20000700 0x20000800");
        let told = gdb.executes(&["info registers", "monitor regs", &save, "detach"]);
        for register in seen["registers"].as_array().unwrap() {
            let name = register["name"].as_str().unwrap();
            let general = name.len() <= 3 && !name.starts_with('s') || name == "sp";
            if general || ["xpsr", "msp", "psp"].contains(&name) {
                let value = register["value"].as_u64().unwrap();
                assert_eq!(value_of(&told, name), value, "{board} {name}: {told}");
            }
        }
        assert_eq!(std::fs::read(&dump).unwrap(), memory, "{board}");
        gdb.stop();
        served.stop().says(0, &[]);
    }
}

#[test]
fn gdb_is_served_to_other_machines_only_if_that_is_asked_for() {
    let _slot = Slot::take();
    let workshop = Workshop::new();
    let gdb = Gdb::start(&workshop, "microbit", &["--listen", "0.0.0.0:0", "--allow-remote"]);
    assert!(gdb.address.starts_with("0.0.0.0:"), "{}", gdb.address);
    gdb.stop();
}

#[test]
fn gdb_writes_what_verbs_read() {
    let _slot = Slot::take();
    let workshop = Workshop::new();
    let image = elf("microbit", "unity-pass");
    let served = Served::start(&workshop, "microbit", &["--image", &image]);
    served.prints("\nOK\n");
    served.verb(&["halt"], &[]).says(0, &[]);
    let gdb = Gdb::start(&workshop, "microbit", &[]);
    let words = (0..16u32).map(|n| n.wrapping_mul(0x9e37_79b9));
    let mut commands: Vec<String> = words
        .clone()
        .enumerate()
        .map(|(nth, word)| format!("set {{unsigned}}{:#x} = {word:#x}", 0x2000_3000 + 4 * nth))
        .collect();
    commands.push("x/16xw 0x20003000".to_owned());
    gdb.executes(&commands.iter().map(String::as_str).collect::<Vec<_>>());
    gdb.stop();
    let read = bytes_of(&served.json(&["mem", "read"], &["0x20003000", "64"]));
    let expected: Vec<u8> = words.flat_map(u32::to_le_bytes).collect();
    assert_eq!(read, expected);
    served.stop().says(0, &[]);
}

#[test]
fn gdb_breaks_steps_resets_and_detaches() {
    let _slot = Slot::take();
    let workshop = Workshop::new();
    let image = elf("microbit", "unity-pass");
    workshop.run(["flash", "-b", "microbit", &image]).says(0, &[]);
    let gdb = Gdb::start(&workshop, "microbit", &["--reset"]);
    let told = gdb.executes(&[
        "echo first:",
        "info symbol $pc",
        "break fixture_main",
        "continue",
        "backtrace",
        "stepi",
        "echo stepped:",
        "print/x $pc",
        "break uart_put",
        "continue",
        "delete",
        "monitor reset halt",
        "maintenance flush register-cache",
        "echo again:",
        "info symbol $pc",
        "detach",
    ]);
    let out = told.out();
    assert!(out.contains("first:reset_handler"), "{told}");
    assert!(out.contains("Breakpoint 1, "), "{told}");
    assert!(out.contains("runtime_start"), "the caller: {told}");
    assert!(out.contains("Breakpoint 2, "), "{told}");
    assert!(out.contains("again:reset_handler"), "{told}");
    // The board runs on, and the server takes the next debugger.
    let next = gdb.executes(&["info symbol $pc", "detach"]);
    assert!(next.out().contains(" in section .text"), "{next}");
    gdb.stop();
    workshop.nothing_lives(crate::workshop::DEADLINE).unwrap();
}

#[test]
fn who_has_a_served_board_is_named_to_the_next() {
    let _slot = Slot::take();
    let workshop = Workshop::new();
    let image = elf("microbit", "unity-pass");
    let mut served = Served::start(&workshop, "microbit", &["--image", &image]);
    served.prints("\nOK\n");
    let gdb = Gdb::start(&workshop, "microbit", &[]);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let options =
        AttachOptions { chip: Some("nRF51822_xxAA".to_owned()), ..AttachOptions::default() };
    let source = ProbeSource::Selector(served.selector.clone());
    let error = runtime.block_on(ProbeHandle::attach(source, options)).unwrap_err();
    let ProbeError::Held { selector, holder } = &error else { panic!("{error:?}") };
    assert_eq!(*selector, served.selector);
    assert!(holder.starts_with("another client of jig"), "{holder}");
    assert!(holder.contains(&format!("pid {}", served.pid())), "{holder}");
    assert_eq!((error.fault(), error.cause()), (Fault::Lab, Cause::ProbeBusy));
    served.verb(&["regs"], &["pc"]).says(75, &["another client of jig", "--wait 30s"]);
    // The first client has noticed nothing, and a client that waits is served when it leaves.
    std::thread::scope(|scope| {
        let waits = scope.spawn(|| served.verb(&["regs", "--wait", "60s"], &["pc"]));
        gdb.executes(&["info symbol $pc", "detach"]);
        gdb.stop();
        waits.join().unwrap().says(0, &[]);
    });
    served.stop().says(0, &[]);
}
