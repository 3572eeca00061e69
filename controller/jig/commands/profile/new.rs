//! `jig profile new`: a board profile to edit, out of what is known of a chip and of a program.

use std::fs::OpenOptions;
use std::io::Write as _;
use std::path::Path;

use jig_model::chip::ChipSource as _;
use jig_model::image::ElfHints;
use jig_model::{BoardId, Fault, exit};
use jig_probe::DescribedChips;
use jig_rig::store::read_whole;

use super::draft::{Drafted, draft};
use crate::args::NewProfileArgs;
use crate::failure::{Failure, chain};
use crate::render::{Screen, one_line};

/// Most bytes of a program with its debug information.
const MAX_ELF: u64 = 1 << 30;

/// Writes the profile.
///
/// JSON: `{"id","profile","output"}`: the text, and the file that has it or null.
pub(super) fn new(screen: &Screen, args: &NewProfileArgs) -> Result<u8, Failure> {
    let facts = DescribedChips
        .chip(&args.chip)
        .map_err(|unknown| Failure::of(Fault::Usage, &unknown).help(unknown.help()))?;
    let hints = args.from_elf.as_deref().map(hints).transpose()?;
    let id = id(args, &facts.name)?;
    let text = draft(&Drafted { id: &id, facts: &facts, hints: hints.as_ref() });
    if let Some(path) = &args.output {
        write(path, &text)?;
        let path = one_line(&path.display().to_string());
        screen.say(&format!("wrote {path}: edit it, then: jig profile check {path}"));
    }
    if screen.json() {
        let output = args.output.as_ref().map(|path| path.display().to_string());
        screen.out_json(&serde_json::json!({ "id": id, "profile": text, "output": output }));
    } else if args.output.is_none() {
        screen.out(text.trim_end());
    }
    Ok(exit::PASS)
}

/// Names the board: as the file, else as the chip in lower case.
fn id(args: &NewProfileArgs, chip: &str) -> Result<BoardId, Failure> {
    let named = match &args.output {
        Some(path) => {
            let stem = path.file_stem().filter(|_| path.extension().is_some_and(|e| e == "toml"));
            stem.unwrap_or_default().to_string_lossy().into_owned()
        }
        None => chip.to_ascii_lowercase().replace('+', "-"),
    };
    let wrong = || {
        let words = format!("{:?} is no file name of a board profile", one_line(&named));
        Failure::new(Fault::Usage, words).help("write it to board-profiles/MY-BOARD.toml")
    };
    named.parse::<BoardId>().ok().filter(|id| id.chip().is_none()).ok_or_else(wrong)
}

fn hints(path: &Path) -> Result<ElfHints, Failure> {
    let shown = one_line(&path.display().to_string());
    let bytes = read_whole(path, MAX_ELF).map_err(|error| {
        Failure::new(Fault::Usage, format!("could not read {shown}: {error}"))
            .help("give the ELF file that the linker wrote")
    })?;
    ElfHints::read(&bytes).map_err(|error| {
        let words = format!("{shown} is no ELF file that can be read: {}", chain(&error));
        Failure::new(Fault::Usage, words).help("give the ELF file that the linker wrote")
    })
}

/// Writes a new file; never replaces an existing one.
fn write(path: &Path, text: &str) -> Result<(), Failure> {
    let file = OpenOptions::new().write(true).create_new(true).open(path);
    let written = file.and_then(|mut file| file.write_all(text.as_bytes()));
    written.map_err(|error| Failure::of_new_file(path, &error, "choose another name with --output"))
}
