//! What a program may ask of its host by semihosting, and what it is answered.
//!
//! Text goes to a console and an exit ends the run. Nothing else of this host is offered: no
//! file but the console, no command, no clock. Every argument comes from the target: hostile.
//!
//! # Design
//! A served board leaves semihosting to its debugger, as a chip does: `BKPT 0xab` halts the core. A
//! run on an emulated board of its own leaves it to the emulator, which needs no halt. In a
//! HardFault handler the emulated core locks up over such a call where that of a chip would halt.
//!
//! Source: Arm, "Semihosting for AArch32 and AArch64", release 2024Q3.

use crate::{ProbeError, TargetMemory};

pub(crate) const SYS_OPEN: u32 = 0x01;
pub(crate) const SYS_CLOSE: u32 = 0x02;
const SYS_WRITEC: u32 = 0x03;
const SYS_WRITE0: u32 = 0x04;
pub(crate) const SYS_WRITE: u32 = 0x05;
pub(crate) const SYS_READ: u32 = 0x06;
const SYS_ISERROR: u32 = 0x08;
const SYS_ISTTY: u32 = 0x09;
const SYS_EXIT: u32 = 0x18;
const SYS_EXIT_EXTENDED: u32 = 0x20;

/// The reason of an exit that is a program's normal end.
const APPLICATION_EXIT: u32 = 0x20026;

/// The code of an exit for any other reason, as the emulator reports it.
const ABNORMAL: i32 = 1;

/// The name of the console among files.
const CONSOLE: &[u8] = b":tt";

/// The console's handles: what a program writes to goes the same way, there is no input.
const OUTPUT: u32 = 1;
const ERRORS: u32 = 2;
const INPUT: u32 = 3;

const FAILED: u32 = u32::MAX;

/// Most bytes of one call that are taken: a program that writes more is told how much is
/// left, and a text without an end is cut.
const MOST: usize = 64 << 10;

/// Bytes of a text that are read at once, aligned: memory ends at a multiple of more.
const STRIDE: u32 = 64;

/// How a call is answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum HostAnswer {
    /// The program goes on with this in its result register.
    Value(u32),
    /// The program has ended with this code.
    Exit(i32),
}

/// Carries out a call; what it prints is added to the text.
///
/// # Errors
/// The probe failed. What the target's memory refuses is an answer to the program.
pub(crate) fn answer(
    operation: u32,
    parameter: u32,
    memory: &mut dyn TargetMemory,
    text: &mut Vec<u8>,
) -> Result<HostAnswer, ProbeError> {
    let done = match operation {
        SYS_WRITEC => bytes(memory, parameter, 1, text).map(|()| HostAnswer::Value(0)),
        SYS_WRITE0 => until_zero(memory, parameter, text).map(|()| HostAnswer::Value(0)),
        SYS_WRITE => write(memory, parameter, text),
        // Nothing was read of what was asked for: the end of the input.
        SYS_READ => words::<3>(memory, parameter).map(|[_, _, len]| HostAnswer::Value(len)),
        SYS_OPEN => open(memory, parameter),
        SYS_CLOSE => words::<1>(memory, parameter)
            .map(|[handle]| HostAnswer::Value(if is_console(handle) { 0 } else { FAILED })),
        SYS_ISTTY => words::<1>(memory, parameter)
            .map(|[handle]| HostAnswer::Value(u32::from(is_console(handle)))),
        SYS_ISERROR => words::<1>(memory, parameter)
            .map(|[status]| HostAnswer::Value(u32::from(status >> 31 == 1))),
        SYS_EXIT => Ok(HostAnswer::Exit(if parameter == APPLICATION_EXIT { 0 } else { ABNORMAL })),
        SYS_EXIT_EXTENDED => words::<2>(memory, parameter).map(|[reason, code]| {
            HostAnswer::Exit(if reason == APPLICATION_EXIT { code.cast_signed() } else { ABNORMAL })
        }),
        _ => Ok(HostAnswer::Value(FAILED)),
    };
    match done {
        // An exit that cannot say its code is no good end.
        Err(ProbeError::BusFault { .. }) if operation == SYS_EXIT_EXTENDED => {
            Ok(HostAnswer::Exit(ABNORMAL))
        }
        Err(ProbeError::BusFault { .. }) => Ok(HostAnswer::Value(FAILED)),
        done => done,
    }
}

fn is_console(handle: u32) -> bool {
    matches!(handle, OUTPUT | ERRORS | INPUT)
}

fn words<const N: usize>(memory: &mut dyn TargetMemory, at: u32) -> Result<[u32; N], ProbeError> {
    let mut words = [0; N];
    for (index, word) in (0u32..).zip(&mut words) {
        let mut bytes = [0; 4];
        memory.read(u64::from(at.wrapping_add(4 * index)), &mut bytes)?;
        *word = u32::from_le_bytes(bytes);
    }
    Ok(words)
}

fn bytes(
    memory: &mut dyn TargetMemory,
    at: u32,
    len: usize,
    text: &mut Vec<u8>,
) -> Result<(), ProbeError> {
    let mut read = vec![0; len];
    memory.read(u64::from(at), &mut read)?;
    text.extend(read);
    Ok(())
}

/// Adds the text up to its zero, or as far as there is memory.
fn until_zero(
    memory: &mut dyn TargetMemory,
    at: u32,
    text: &mut Vec<u8>,
) -> Result<(), ProbeError> {
    let (mut at, end) = (at, text.len() + MOST);
    let mut first = true;
    while text.len() < end {
        let count = (STRIDE - at % STRIDE) as usize;
        let mut chunk = vec![0; count];
        match memory.read(u64::from(at), &mut chunk) {
            Err(ProbeError::BusFault { .. }) if !first => return Ok(()),
            read => read?,
        }
        first = false;
        let zero = chunk.iter().position(|&byte| byte == 0);
        text.extend(&chunk[..zero.unwrap_or(count)]);
        if zero.is_some() {
            return Ok(());
        }
        at = at.wrapping_add(count as u32);
    }
    text.truncate(end);
    Ok(())
}

/// Answers how many bytes were not written.
fn write(
    memory: &mut dyn TargetMemory,
    parameter: u32,
    text: &mut Vec<u8>,
) -> Result<HostAnswer, ProbeError> {
    let [handle, at, len] = words(memory, parameter)?;
    if !matches!(handle, OUTPUT | ERRORS) {
        return Ok(HostAnswer::Value(len));
    }
    let taken = usize::try_from(len).unwrap_or(MOST).min(MOST);
    match bytes(memory, at, taken, text) {
        Err(ProbeError::BusFault { .. }) => Ok(HostAnswer::Value(len)),
        written => written.map(|()| HostAnswer::Value(len - taken as u32)),
    }
}

fn open(memory: &mut dyn TargetMemory, parameter: u32) -> Result<HostAnswer, ProbeError> {
    let [at, mode, len] = words(memory, parameter)?;
    if len as usize != CONSOLE.len() {
        return Ok(HostAnswer::Value(FAILED));
    }
    let mut name = Vec::new();
    bytes(memory, at, CONSOLE.len(), &mut name)?;
    // To read from it is its input, to write its output, to append to it its errors.
    Ok(HostAnswer::Value(match mode {
        _ if name != CONSOLE => FAILED,
        0..=3 => INPUT,
        4..=7 => OUTPUT,
        8..=11 => ERRORS,
        _ => FAILED,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 4 KiB of memory at an address, and nothing elsewhere.
    struct Ram(Vec<u8>);

    const RAM: u64 = 0x2000_0000;
    const AT: u32 = RAM as u32;
    const SIZE: usize = 4096;

    impl TargetMemory for Ram {
        fn read(&mut self, address: u64, into: &mut [u8]) -> Result<(), ProbeError> {
            let fault = ProbeError::BusFault { access: "read", address };
            let start = address.checked_sub(RAM).and_then(|at| usize::try_from(at).ok());
            let from = start.and_then(|start| self.0.get(start..start.checked_add(into.len())?));
            into.copy_from_slice(from.ok_or(fault)?);
            Ok(())
        }
        fn write(&mut self, address: u64, _bytes: &[u8]) -> Result<(), ProbeError> {
            Err(ProbeError::BusFault { access: "write", address })
        }
    }

    fn call(ram: &mut Ram, operation: u32, parameter: u32) -> (HostAnswer, String) {
        let mut text = Vec::new();
        let answer = answer(operation, parameter, ram, &mut text).unwrap();
        (answer, String::from_utf8_lossy(&text).into_owned())
    }

    fn ram(at: usize, bytes: &[u8]) -> Ram {
        let mut ram = Ram(vec![0; SIZE]);
        ram.0[at..at + bytes.len()].copy_from_slice(bytes);
        ram
    }

    fn block(words: &[u32]) -> Vec<u8> {
        words.iter().flat_map(|word| word.to_le_bytes()).collect()
    }

    #[test]
    fn text_is_taken_by_every_way_of_printing() {
        use HostAnswer::Value;
        let mut some = ram(0x101, b"hello\0x");
        assert_eq!(call(&mut some, SYS_WRITE0, AT + 0x101), (Value(0), "hello".to_owned()));
        assert_eq!(call(&mut some, SYS_WRITEC, AT + 0x102), (Value(0), "e".to_owned()));
        for handle in [OUTPUT, ERRORS] {
            some.0[..12].copy_from_slice(&block(&[handle, AT + 0x101, 4]));
            assert_eq!(call(&mut some, SYS_WRITE, AT), (Value(0), "hell".to_owned()));
        }
        // To what is no console nothing is written.
        for handle in [0, INPUT, 4, u32::MAX] {
            some.0[..12].copy_from_slice(&block(&[handle, AT + 0x101, 4]));
            assert_eq!(call(&mut some, SYS_WRITE, AT), (Value(4), String::new()));
        }
    }

    #[test]
    fn texts_of_a_hostile_target_stay_bounded_and_inside_of_its_memory() {
        use HostAnswer::Value;
        let mut all = Ram(vec![b'x'; SIZE]);
        // No zero before the memory's end.
        assert_eq!(call(&mut all, SYS_WRITE0, AT + 1).1.len(), SIZE - 1);
        let mut huge = Ram(vec![b'x'; 1 << 20]);
        assert_eq!(call(&mut huge, SYS_WRITE0, AT + 3).1.len(), MOST);
        huge.0[..12].copy_from_slice(&block(&[OUTPUT, AT + 64, 1 << 19]));
        let (left, text) = call(&mut huge, SYS_WRITE, AT);
        assert_eq!((left, text.len()), (Value((1 << 19) - MOST as u32), MOST));
        huge.0[..12].copy_from_slice(&block(&[OUTPUT, AT + 64, u32::MAX]));
        assert_eq!(call(&mut huge, SYS_WRITE, AT).0, Value(u32::MAX - MOST as u32));
        for nowhere in [0, 0x1000_0000, AT + (1 << 20), u32::MAX] {
            for operation in 0..=0x40 {
                let (answer, text) = call(&mut huge, operation, nowhere);
                assert!(text.is_empty(), "{operation:#x}");
                let exits = [SYS_EXIT, SYS_EXIT_EXTENDED].contains(&operation);
                let wanted = if exits { HostAnswer::Exit(1) } else { Value(FAILED) };
                assert_eq!(answer, wanted, "{operation:#x} {nowhere:#x}");
            }
        }
    }

    #[test]
    fn the_only_file_is_the_console() {
        use HostAnswer::Value;
        let opens = |name: &[u8], mode| {
            let mut some = ram(0x100, name);
            some.0[..12].copy_from_slice(&block(&[AT + 0x100, mode, name.len() as u32]));
            call(&mut some, SYS_OPEN, AT).0
        };
        assert_eq!(opens(b":tt", 0), Value(INPUT));
        assert_eq!(opens(b":tt", 4), Value(OUTPUT));
        assert_eq!(opens(b":tt", 8), Value(ERRORS));
        for (name, mode) in
            [(&b":tt"[..], 12), (b"tt:", 4), (b"/etc/passwd", 0), (b":semihosting-features", 0)]
        {
            assert_eq!(opens(name, mode), Value(FAILED));
        }
        for (handle, tty, closed) in [(1, 1, 0), (3, 1, 0), (0, 0, FAILED), (9, 0, FAILED)] {
            let mut some = ram(0, &block(&[handle, AT, 7]));
            assert_eq!(call(&mut some, SYS_ISTTY, AT).0, Value(tty));
            assert_eq!(call(&mut some, SYS_CLOSE, AT).0, Value(closed));
            assert_eq!(call(&mut some, SYS_READ, AT).0, Value(7));
        }
        // Removing, renaming, commands, time, the command line, the heap, and what is unknown.
        for operation in [0x0a, 0x0c, 0x0d, 0x0e, 0x0f, 0x10, 0x11, 0x12, 0x13, 0x15, 0x16, 0x99] {
            assert_eq!(call(&mut ram(0, &[]), operation, AT).0, Value(FAILED), "{operation:#x}");
        }
    }

    #[test]
    fn exits_have_the_codes_of_the_emulators() {
        use HostAnswer::Exit;
        assert_eq!(call(&mut ram(0, &[]), SYS_EXIT, APPLICATION_EXIT).0, Exit(0));
        assert_eq!(call(&mut ram(0, &[]), SYS_EXIT, 0x20024).0, Exit(1));
        for (reason, code, wanted) in
            [(APPLICATION_EXIT, 0, 0), (APPLICATION_EXIT, 7, 7), (0x20023, 0, 1)]
        {
            let mut some = ram(0, &block(&[reason, code]));
            assert_eq!(call(&mut some, SYS_EXIT_EXTENDED, AT).0, Exit(wanted));
        }
    }
}
