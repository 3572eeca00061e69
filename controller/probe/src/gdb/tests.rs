//! A real gdb, and clients that misbehave, at a scripted core and at an emulated one.

use std::collections::BTreeSet;
use std::io::{Read, Write as _};
use std::net::TcpStream;
use std::ops::Range;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Condvar, Mutex, mpsc};
use std::time::Duration;

use super::{Debuggee, GdbEndpoint, GdbServer};
use crate::core_dump::tests::gdb_functions;
use crate::debug_info::tests::emulated::{Emulated, M3, fixture};
use crate::{CoreKind, CoreState, HaltReason, ProbeError, RegisterValue, ResetInto};

/// Only a failing test waits this long.
const DEADLINE: Duration = Duration::from_secs(60);

/// The scripted core runs in a circle here.
const LOOP: std::ops::Range<u64> = 0x100..0x140;
const RAM: std::ops::Range<u64> = 0x2000_0000..0x2000_0100;

/// What the scripted core is.
struct Inner {
    running: bool,
    reason: HaltReason,
    registers: Vec<RegisterValue>,
    ram: Vec<u8>,
    breakpoints: BTreeSet<u64>,
    resets: Vec<ResetInto>,
}

impl Inner {
    fn register(&mut self, name: &str) -> &mut RegisterValue {
        self.registers.iter_mut().find(|register| register.name == name).unwrap()
    }

    fn execute(&mut self) {
        let pc = self.register("pc");
        pc.value += 2;
        if !LOOP.contains(&(pc.value as u64)) {
            pc.value = LOOP.start.into();
        }
    }
}

/// A core of a few lines, which a test looks at from the side.
#[derive(Clone)]
struct Scripted(Arc<(Mutex<Inner>, Condvar)>);

impl Scripted {
    fn new(running: bool) -> Self {
        let mut registers: Vec<RegisterValue> = Vec::new();
        let mut add = |name: String, value: u128| {
            registers.push(RegisterValue { name, bits: 32, value });
        };
        for number in 0..13 {
            add(format!("r{number}"), 0x1000 + number);
        }
        add("sp".to_owned(), 0x2000_0080);
        add("lr".to_owned(), u32::MAX.into());
        add("pc".to_owned(), LOOP.start.into());
        add("xpsr".to_owned(), 0x0100_0000);
        for (name, value) in
            [("msp", 0x2000_0080), ("psp", 0x40), ("primask", 1), ("control", 2), ("fpscr", 3)]
        {
            add(name.to_owned(), value);
        }
        for number in 0..32 {
            add(format!("s{number}"), 0x3f80_0000);
        }
        let inner = Inner {
            running,
            reason: HaltReason::Requested,
            registers,
            ram: (0..=255).collect(),
            breakpoints: BTreeSet::new(),
            resets: Vec::new(),
        };
        Self(Arc::new((Mutex::new(inner), Condvar::new())))
    }

    fn with<R>(&self, act: impl FnOnce(&mut Inner) -> R) -> R {
        let result = act(&mut self.0.0.lock().unwrap());
        self.0.1.notify_all();
        result
    }

    /// Waits until something is so.
    fn until(&self, what: impl Fn(&Inner) -> bool) {
        let (inner, changed) = &*self.0;
        let (_inner, timeout) = changed
            .wait_timeout_while(inner.lock().unwrap(), DEADLINE, |inner| !what(inner))
            .unwrap();
        assert!(!timeout.timed_out());
    }
}

impl Debuggee for Scripted {
    fn kind(&self) -> CoreKind {
        CoreKind::Armv7m
    }

    fn flash(&self) -> Vec<Range<u64>> {
        std::iter::once(0..0x1_0000).collect()
    }

    fn state(&mut self) -> Result<CoreState, ProbeError> {
        self.with(|inner| {
            for _ in 0..100 {
                if !inner.running {
                    break;
                }
                inner.execute();
                let pc = inner.register("pc").value as u64;
                if inner.breakpoints.contains(&pc) {
                    (inner.running, inner.reason) = (false, HaltReason::Breakpoint);
                }
            }
            Ok(match inner.running {
                true => CoreState::Running,
                false => CoreState::Halted {
                    reason: inner.reason,
                    pc: inner.register("pc").value as u64,
                },
            })
        })
    }

    fn registers(&mut self) -> Result<Vec<RegisterValue>, ProbeError> {
        self.with(|inner| match inner.running {
            true => Err(ProbeError::NotHalted),
            false => Ok(inner.registers.clone()),
        })
    }

    fn write_register(&mut self, name: &str, value: u128) -> Result<(), ProbeError> {
        self.with(|inner| inner.register(name).value = value);
        Ok(())
    }

    fn read(&mut self, address: u64, bytes: &mut [u8]) -> Result<(), ProbeError> {
        if LOOP.contains(&address) {
            // Instructions that do nothing.
            let nop = |at: u64| if at.is_multiple_of(2) { 0x00 } else { 0xbf };
            bytes.iter_mut().zip(address..).for_each(|(byte, at)| *byte = nop(at));
            return Ok(());
        }
        let last = address + bytes.len() as u64;
        let first_bad = if RAM.contains(&address) { RAM.end } else { address };
        if !RAM.contains(&address) || last > RAM.end {
            return Err(ProbeError::BusFault { access: "read", address: first_bad });
        }
        self.with(|inner| {
            let offset = (address - RAM.start) as usize;
            bytes.copy_from_slice(&inner.ram[offset..offset + bytes.len()]);
        });
        Ok(())
    }

    fn write(&mut self, address: u64, bytes: &[u8]) -> Result<(), ProbeError> {
        let fault = ProbeError::BusFault { access: "write", address };
        let Some(offset) = address.checked_sub(RAM.start) else { return Err(fault) };
        self.with(|inner| {
            let end = offset as usize + bytes.len();
            inner.ram.get_mut(offset as usize..end).ok_or(fault)?.copy_from_slice(bytes);
            Ok(())
        })
    }

    fn halt(&mut self) -> Result<(), ProbeError> {
        self.with(|inner| {
            if inner.running {
                (inner.running, inner.reason) = (false, HaltReason::Requested);
            }
        });
        Ok(())
    }

    fn resume(&mut self) -> Result<(), ProbeError> {
        self.with(|inner| inner.running = true);
        Ok(())
    }

    fn step(&mut self) -> Result<(), ProbeError> {
        self.with(|inner| {
            inner.execute();
            inner.reason = HaltReason::Step;
        });
        Ok(())
    }

    fn set_breakpoint(&mut self, address: u64) -> Result<(), ProbeError> {
        self.with(|inner| {
            if inner.breakpoints.len() >= 2 {
                return Err(ProbeError::NoBreakpointLeft { count: 2 });
            }
            inner.breakpoints.insert(address);
            Ok(())
        })
    }

    fn clear_breakpoint(&mut self, address: u64) -> Result<(), ProbeError> {
        self.with(|inner| assert!(inner.breakpoints.remove(&address)));
        Ok(())
    }

    fn reset(&mut self, into: ResetInto) -> Result<(), ProbeError> {
        self.with(|inner| {
            inner.resets.push(into);
            inner.running = into == ResetInto::Run;
            inner.register("pc").value = LOOP.start.into();
        });
        Ok(())
    }
}

fn anywhere() -> GdbEndpoint {
    GdbEndpoint::Tcp("127.0.0.1:0".parse().unwrap())
}

fn serve(core: &Scripted) -> GdbServer {
    GdbServer::start(&anywhere(), Box::new(core.clone())).unwrap()
}

/// A program that does not outlive its test.
struct Guard(Child);

impl Drop for Guard {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Runs gdb at a server; returns all that it prints.
fn gdb(server: &GdbServer, elf: Option<&Path>, commands: &[&str]) -> String {
    let mut gdb = Command::new("gdb-multiarch");
    gdb.args(["-nx", "-batch", "-ex", "set pagination off", "-ex", "set width 0"]);
    gdb.args(["-ex", "set tcp auto-retry off", "-ex", "set remotetimeout 30"]);
    gdb.arg("-ex").arg(format!("target remote {}", server.address()));
    for command in commands {
        gdb.args(["-ex", command]);
    }
    gdb.args(elf).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = Guard(gdb.spawn().unwrap());
    let (said, texts) = mpsc::channel();
    let streams: [Box<dyn Read + Send>; 2] =
        [Box::new(child.0.stdout.take().unwrap()), Box::new(child.0.stderr.take().unwrap())];
    for (index, mut stream) in streams.into_iter().enumerate() {
        let said = said.clone();
        std::thread::spawn(move || {
            let mut text = String::new();
            stream.read_to_string(&mut text).unwrap();
            let _ = said.send((index, text));
        });
    }
    let mut both: Vec<_> =
        (0..2).map(|_| texts.recv_timeout(DEADLINE).expect("gdb does not end")).collect();
    both.sort();
    both.into_iter().map(|(_, text)| text).collect()
}

#[track_caller]
fn assert_shows(text: &str, expected: &[&str]) {
    for line in expected {
        assert!(text.contains(line), "{line:?} is missing in {text}");
    }
}

#[test]
fn gdb_reads_and_writes_registers_and_memory() {
    let core = Scripted::new(false);
    let server = serve(&core);
    let text = gdb(
        &server,
        None,
        &[
            "info registers r0 r12 sp pc xpsr msp psp primask control fpscr",
            "p/x (unsigned)$s3",
            "p $s2",
            "x/2xw 0x20000004",
            "x/xw 0x60000000",
            "set var $r3 = 0xabcd1234",
            "set var $s5 = 2.0",
            "set var *(unsigned*)0x20000010 = 0x11223344",
            "x/xw 0x20000010",
            "info mem",
        ],
    );
    for line in [
        "r0 0x1000",
        "r12 0x100c",
        "sp 0x20000080",
        "pc 0x100",
        "xpsr 0x1000000",
        "msp 0x20000080",
        "psp 0x40",
        "primask 0x1",
        "control 0x2",
        "fpscr 0x3",
    ] {
        let shown = text
            .lines()
            .any(|l| l.split_whitespace().collect::<Vec<_>>().join(" ").starts_with(line));
        assert!(shown, "{line} is missing in {text}");
    }
    assert_shows(&text, &["$2 = 1", "0x20000004:\t0x07060504\t0x0b0a0908"]);
    assert_shows(&text, &["Cannot access memory at address 0x60000000"]);
    assert_shows(&text, &["0x20000010:\t0x11223344", "0x00000000 0x00010000 ro"]);
    core.with(|inner| {
        assert_eq!(inner.register("r3").value, 0xabcd_1234);
        assert_eq!(inner.register("s5").value, u128::from(2.0_f32.to_bits()));
        assert_eq!(inner.register("s4").value, 0x3f80_0000);
        assert_eq!(inner.ram[16..20], 0x1122_3344_u32.to_le_bytes());
    });
    assert!(server.stop().is_some());
}

#[test]
fn gdb_breaks_steps_and_leaves_the_core_as_it_was() {
    for running in [true, false] {
        let core = Scripted::new(running);
        let server = serve(&core);
        let text = gdb(
            &server,
            None,
            &["break *0x120", "continue", "p/x $pc", "stepi", "p/x $pc", "detach"],
        );
        assert_shows(&text, &["Breakpoint 1, 0x00000120", "$1 = 0x120", "$2 = 0x122"]);
        core.until(|inner| inner.running == running);
        core.with(|inner| assert!(inner.breakpoints.is_empty()));
        // The next one is served as well.
        let text = gdb(&server, None, &["p/x $r1"]);
        assert_shows(&text, &["$1 = 0x1001"]);
    }
}

#[test]
fn too_many_breakpoints_are_refused_and_the_session_goes_on() {
    let core = Scripted::new(false);
    let server = serve(&core);
    let text = gdb(
        &server,
        None,
        &["break *0x120", "break *0x122", "break *0x124", "continue", "delete 3", "continue"],
    );
    assert_shows(&text, &["Cannot insert hardware breakpoint 3", "Breakpoint 1, 0x00000120"]);
}

#[test]
fn monitor_commands_reset_halt_and_show_registers() {
    let core = Scripted::new(false);
    let server = serve(&core);
    let text = gdb(
        &server,
        None,
        &["monitor regs", "monitor reset", "monitor halt", "monitor reset halt", "monitor what"],
    );
    assert_shows(&text, &["r1         0x00001001", "s31        0x3f800000", "reset halt   "]);
    core.with(|inner| assert_eq!(inner.resets, [ResetInto::Run, ResetInto::Halt]));
}

/// A client that speaks the protocol by hand.
struct Client(TcpStream);

impl Client {
    fn new(server: &GdbServer) -> Self {
        let GdbEndpoint::Tcp(address) = server.address() else { panic!() };
        let stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(DEADLINE)).unwrap();
        Self(stream)
    }

    fn send(&mut self, packet: &str) {
        let sum = packet.bytes().fold(0_u8, u8::wrapping_add);
        write!(self.0, "${packet}#{sum:02x}").unwrap();
    }

    /// Returns the next packet, without acknowledgements; nothing at the end.
    fn receive(&mut self) -> Option<String> {
        let mut packet = Vec::new();
        while !packet.contains(&b'#') {
            let mut byte = [0];
            match self.0.read(&mut byte) {
                Ok(1) if byte[0] == b'+' && packet.is_empty() => {}
                Ok(1) => packet.push(byte[0]),
                Ok(_) => return None,
                Err(error) if error.kind() == std::io::ErrorKind::ConnectionReset => return None,
                Err(error) => panic!("{error}"),
            }
        }
        self.0.read_exact(&mut [0; 2]).unwrap();
        Some(String::from_utf8_lossy(&packet[1..packet.len() - 1]).into_owned())
    }
}

#[test]
fn an_interrupt_halts_a_running_core() {
    let core = Scripted::new(false);
    let server = serve(&core);
    let mut client = Client::new(&server);
    client.send("vCont;c");
    core.until(|inner| inner.running);
    client.0.write_all(&[3]).unwrap();
    let stopped = client.receive().unwrap();
    assert!(stopped.starts_with("S02") || stopped.starts_with("T02"), "{stopped}");
    core.with(|inner| assert!(!inner.running));
}

#[test]
fn a_client_that_vanishes_takes_its_breakpoints_along() {
    for running in [true, false] {
        let core = Scripted::new(running);
        let server = serve(&core);
        let mut client = Client::new(&server);
        client.send("Z1,8000,2");
        assert_eq!(client.receive().as_deref(), Some("OK"));
        client.send("vCont;c");
        core.until(|inner| inner.running);
        drop(client);
        core.until(|inner| inner.running == running && inner.breakpoints.is_empty());
        let mut client = Client::new(&server);
        client.send("?");
        assert!(client.receive().is_some());
    }
}

#[test]
fn a_second_client_is_turned_away_and_the_first_stays() {
    let core = Scripted::new(false);
    let server = serve(&core);
    let mut first = Client::new(&server);
    first.send("?");
    assert!(first.receive().is_some());
    let mut second = Client::new(&server);
    assert_eq!(second.receive(), None);
    first.send("m20000000,4");
    assert_eq!(first.receive().as_deref(), Some("00010203"));
    // Memory that ends within what is asked for is told up to its end.
    first.send("m200000fe,8");
    assert_eq!(first.receive().as_deref(), Some("feff"));
    first.send("m60000000,4");
    assert_eq!(first.receive().as_deref(), Some("E0e"));
}

#[test]
fn noise_ends_a_session_at_most() {
    let core = Scripted::new(true);
    let server = serve(&core);
    let long = vec![b'a'; 100_000];
    let noise: [&[u8]; 6] = [
        b"GET / HTTP/1.1\r\n\r\n",
        b"$m20000000,ffffffffffffffff#9c$g#67",
        b"$#00$$$$##\x03\x03\x03",
        b"$P99=zz#00$Z9,x,y#00$vCont;q#00",
        b"$X20000000,fffffff:\0#00",
        &long,
    ];
    for bytes in noise {
        let mut client = Client::new(&server);
        // The server may close while this is written.
        let _ = client.0.write_all(b"$").and_then(|()| client.0.write_all(bytes));
        drop(client);
        core.until(|inner| inner.running);
    }
    let text = gdb(&server, None, &["p/x $r2"]);
    assert_shows(&text, &["$1 = 0x1002"]);
}

#[test]
fn stopping_gives_the_core_back_as_it_was_under_a_client() {
    let core = Scripted::new(true);
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("gdb.sock");
    let server =
        GdbServer::start(&GdbEndpoint::Unix(path.clone()), Box::new(core.clone())).unwrap();
    let client = std::os::unix::net::UnixStream::connect(&path).unwrap();
    core.until(|inner| !inner.running);
    let mut debuggee = server.stop().unwrap();
    assert_eq!(debuggee.state().unwrap(), CoreState::Running);
    assert!(!path.exists());
    drop(client);
}

#[test]
fn an_address_that_is_taken_is_named() {
    let first = serve(&Scripted::new(false));
    let error =
        GdbServer::start(first.address(), Box::new(Scripted::new(false))).unwrap_err().to_string();
    assert_eq!(error, format!("listen for gdb on {}", first.address()));
}

/// An emulated core behind the server: real code for a real gdb.
struct Behind(Emulated);

impl Debuggee for Behind {
    fn kind(&self) -> CoreKind {
        self.0.machine.kind
    }

    fn flash(&self) -> Vec<Range<u64>> {
        std::iter::once(0..0x40_0000).collect()
    }

    fn state(&mut self) -> Result<CoreState, ProbeError> {
        let pc = self.0.registers()[15].value as u64;
        Ok(CoreState::Halted { reason: HaltReason::Breakpoint, pc })
    }

    fn registers(&mut self) -> Result<Vec<RegisterValue>, ProbeError> {
        Ok(self.0.registers())
    }

    fn write_register(&mut self, _: &str, _: u128) -> Result<(), ProbeError> {
        Err(ProbeError::Gone)
    }

    fn read(&mut self, address: u64, bytes: &mut [u8]) -> Result<(), ProbeError> {
        let read = self.0.read(address, bytes.len());
        bytes.copy_from_slice(&read.ok_or(ProbeError::BusFault { access: "read", address })?);
        Ok(())
    }

    fn write(&mut self, address: u64, _: &[u8]) -> Result<(), ProbeError> {
        Err(ProbeError::BusFault { access: "write", address })
    }

    fn halt(&mut self) -> Result<(), ProbeError> {
        Ok(())
    }

    fn resume(&mut self) -> Result<(), ProbeError> {
        self.0.ask("c");
        Ok(())
    }

    fn step(&mut self) -> Result<(), ProbeError> {
        self.0.ask("s");
        Ok(())
    }

    fn set_breakpoint(&mut self, address: u64) -> Result<(), ProbeError> {
        self.0.ask(&format!("Z1,{address:x},2"));
        Ok(())
    }

    fn clear_breakpoint(&mut self, address: u64) -> Result<(), ProbeError> {
        self.0.ask(&format!("z1,{address:x},2"));
        Ok(())
    }

    fn reset(&mut self, _: ResetInto) -> Result<(), ProbeError> {
        Err(ProbeError::Gone)
    }
}

#[test]
fn gdb_debugs_real_code_through_the_server() {
    let elf = fixture(M3, "fault-bus");
    let core = Box::new(Behind(Emulated::start(M3, &elf)));
    let server = GdbServer::start(&anywhere(), core).unwrap();
    let text = gdb(&server, Some(&elf), &["break uart_put", "continue", "up", "finish", "bt"]);
    assert_shows(&text, &["Breakpoint 1, uart_put (byte="]);
    assert_eq!(
        gdb_functions(&text).last_chunk::<3>().unwrap(),
        &["banner", "runtime_start", "reset_handler"].map(str::to_owned),
        "{text}"
    );
}
