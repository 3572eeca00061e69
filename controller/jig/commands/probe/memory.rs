//! `jig mem`.

use std::path::Path;

use jig_model::command::{DebugAction, Reply};
use jig_model::debug::MemoryWidth;
use jig_model::{Fault, byte_size, exit, image::hex};
use serde_json::json;

use super::access::{debug, quiet};
use crate::args::{Common, MemCommand, Width};
use crate::commands::execute::unexpected;
use crate::failure::Failure;
use crate::render::{Screen, hex_dump};

/// Reads and writes memory.
///
/// JSON of a read: `{"place","address","bytes":HEX}`, or `{"place","address","length","output"}`
/// where a file gets the bytes; of a write `{"place","address","written"}`.
pub(crate) fn memory(common: &Common, screen: &Screen, command: MemCommand) -> Result<u8, Failure> {
    match command {
        MemCommand::Read { at, address, length, width, output } => {
            let width = access(width, MemoryWidth::Any);
            let stdout = output.as_deref() == Some(Path::new("-"));
            if stdout && screen.json() {
                let words = "--output - and --json both write to standard output";
                return Err(Failure::new(Fault::Usage, words).help("leave one of them out"));
            }
            let file = output.filter(|_| !stdout);
            let output = file.clone();
            let action = DebugAction::ReadMemory { address, length, width, output };
            let Reply::MemoryRead(read) = debug(common, &at, action, quiet(screen))? else {
                return Err(unexpected());
            };
            match file {
                Some(path) if screen.json() => screen.out_json(&json!({
                    "place": read.place,
                    "address": address,
                    "length": read.length,
                    "output": path.display().to_string(),
                })),
                Some(path) => {
                    screen.say(&format!("{} to {}", byte_size(read.length), path.display()));
                }
                None if stdout => screen.out_bytes(&read.bytes),
                None if screen.json() => screen.out_json(&json!({
                    "place": read.place,
                    "address": address,
                    "bytes": hex(&read.bytes),
                })),
                None => screen.out(&hex_dump(address, &read.bytes)),
            }
        }
        MemCommand::Write { at, address, values, width } => {
            let width = access(width, MemoryWidth::Word);
            let bytes = packed(&values, width)?;
            let action = DebugAction::WriteMemory { address, bytes, width };
            let Reply::MemoryWritten(written) = debug(common, &at, action, quiet(screen))? else {
                return Err(unexpected());
            };
            if screen.json() {
                screen.out_json(&written);
            }
        }
    }
    Ok(exit::PASS)
}

fn access(width: Width, auto: MemoryWidth) -> MemoryWidth {
    match width {
        Width::Auto => auto,
        Width::Byte => MemoryWidth::Byte,
        Width::Half => MemoryWidth::Half,
        Width::Word => MemoryWidth::Word,
    }
}

/// Lays values out as they are in memory.
fn packed(values: &[u64], width: MemoryWidth) -> Result<Vec<u8>, Failure> {
    let len = match width {
        MemoryWidth::Byte => 1,
        MemoryWidth::Half => 2,
        MemoryWidth::Any | MemoryWidth::Word => 4,
    };
    let mut bytes = Vec::with_capacity(values.len() * len);
    for value in values {
        let all = value.to_le_bytes();
        if all[len..].iter().any(|&byte| byte != 0) {
            let words = format!("{value:#x} has more than {} bits", len * 8);
            return Err(Failure::new(Fault::Usage, words).help("choose another --width"));
        }
        bytes.extend_from_slice(&all[..len]);
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_laid_out_little_endian_and_must_fit() {
        assert_eq!(packed(&[0x0102, 3], MemoryWidth::Half).unwrap(), [2, 1, 3, 0]);
        assert_eq!(packed(&[u64::from(u32::MAX)], MemoryWidth::Word).unwrap(), [0xff; 4]);
        assert!(packed(&[256], MemoryWidth::Byte).is_err());
        assert!(packed(&[1 << 32], MemoryWidth::Word).is_err());
    }
}
