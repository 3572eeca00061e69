//! `jig mem`.

use std::fs;
use std::path::Path;

use jig_model::{Fault, byte_size, exit, image::hex};
use jig_probe::{CoreState, Leave, MemoryWidth};
use serde_json::json;

use super::help::failed;
use super::port::{Lasting, Port, with_port};
use crate::args::{Common, MemCommand, Width};
use crate::failure::Failure;
use crate::render::{Screen, hex_dump};

/// Most bytes of one read: what a person or a file can want of a microcontroller.
const MOST: u64 = 64 << 20;

/// Reads and writes memory.
///
/// JSON of a read: `{"place","address","bytes":HEX}`; of a write `{"place","address","written"}`.
pub(crate) fn memory(common: &Common, screen: &Screen, command: MemCommand) -> Result<u8, Failure> {
    match command {
        MemCommand::Read { at, address, length, width, output } => {
            let len = usize::try_from(length.min(MOST + 1)).unwrap_or(usize::MAX);
            if length > MOST {
                return Err(Failure::new(Fault::Usage, "more than 64 MiB cannot be read at once"));
            }
            with_port(common, screen, "mem", &at, Lasting::Flash, async |port: &Port| {
                let leave = left(port).await?;
                let bytes = port.handle.read_as(access(width, MemoryWidth::Any), address, len);
                let bytes = bytes.await.map_err(|error| failed(&error, &port.place))?;
                show(screen, port, address, &bytes, output.as_deref())?;
                Ok((exit::PASS, leave))
            })
        }
        MemCommand::Write { at, address, values, width } => {
            let width = access(width, MemoryWidth::Word);
            let bytes = packed(&values, width)?;
            with_port(common, screen, "mem", &at, Lasting::Board, async |port: &Port| {
                let leave = left(port).await?;
                let written = bytes.len();
                let done = port.handle.write_as(width, address, bytes).await;
                done.map_err(|error| failed(&error, &port.place))?;
                if screen.json() {
                    screen.out_json(
                        &json!({ "place": port.place, "address": address, "written": written }),
                    );
                }
                Ok((exit::PASS, leave))
            })
        }
    }
}

/// A look at memory leaves the core as it was.
async fn left(port: &Port) -> Result<Leave, Failure> {
    let state = port.handle.state().await.map_err(|error| failed(&error, &port.place))?;
    Ok(match state {
        CoreState::Halted { .. } => Leave::Halted,
        CoreState::Running | CoreState::Sleeping | CoreState::LockedUp => Leave::Running,
    })
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

fn show(
    screen: &Screen,
    port: &Port,
    address: u64,
    bytes: &[u8],
    output: Option<&Path>,
) -> Result<(), Failure> {
    match output {
        Some(path) if path == Path::new("-") => screen.out_bytes(bytes),
        Some(path) => {
            fs::write(path, bytes).map_err(|error| {
                Failure::new(Fault::Lab, format!("could not write {}: {error}", path.display()))
            })?;
            screen.say(&format!("{} to {}", byte_size(bytes.len() as u64), path.display()));
        }
        None if screen.json() => screen
            .out_json(&json!({ "place": port.place, "address": address, "bytes": hex(bytes) })),
        None => screen.out(&hex_dump(address, bytes)),
    }
    Ok(())
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
