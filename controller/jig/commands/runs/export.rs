//! `jig runs export`.

use std::fs::{self, File};
use std::io::{self, BufWriter, IsTerminal as _, Write};
use std::path::{Path, PathBuf};

use jig_model::{Fault, byte_size, exit};
use jig_service::client::RunPart;
use serde_json::json;

use super::source::open;
use crate::args::Common;
use crate::failure::Failure;
use crate::render::{Screen, one_line};

/// Packs a run. JSON, unless the archive goes to standard output: `{"file","bytes"}`.
pub(super) fn export(
    common: &Common,
    screen: &Screen,
    run: &str,
    output: Option<PathBuf>,
) -> Result<u8, Failure> {
    if output.as_deref() == Some(Path::new("-")) && io::stdout().is_terminal() {
        return Err(Failure::new(Fault::Usage, "an archive is nothing for a terminal")
            .help("name a file with --output, or pipe it on"));
    }
    let opened = open(common, run, RunPart::Whole)?;
    // `last` may be another run a moment later.
    let (id, store) = (opened.entry.dir.id().to_string(), &opened.store);
    let path = output.unwrap_or_else(|| format!("{id}.tar.gz").into());
    if path == Path::new("-") {
        store.export(&id, Stdout(screen)).map_err(Failure::from)?;
        return Ok(exit::PASS);
    }
    let shown = path.display().to_string();
    let file = File::create_new(&path).map_err(|error| match error.kind() {
        io::ErrorKind::AlreadyExists => {
            Failure::new(Fault::Usage, format!("{shown} exists; nothing is overwritten"))
                .help("remove it, or name another file with --output")
        }
        _ => Failure::new(Fault::Usage, format!("could not create {shown}: {error}"))
            .help("name a file that can be written with --output"),
    })?;
    let written = store.export(&id, BufWriter::new(file)).map_err(Failure::from);
    let written = written.and_then(|writer| {
        let unwritten = |error: io::Error| {
            Failure::new(Fault::Lab, format!("could not write {shown}: {error}"))
        };
        let file = writer.into_inner().map_err(|error| unwritten(error.into_error()))?;
        file.metadata().map(|meta| meta.len()).map_err(unwritten)
    });
    // Half an archive is worse than none: it was made here, so it may go.
    let bytes = written.inspect_err(|_| drop(fs::remove_file(&path)))?;
    if screen.json() {
        screen.out_json(&json!({ "file": shown, "bytes": bytes }));
    } else {
        screen.out(&format!("{} ({})", one_line(&shown), byte_size(bytes)));
    }
    Ok(exit::PASS)
}

/// Standard output as the screen guards it.
struct Stdout<'s>(&'s Screen);

impl Write for Stdout<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.out_bytes(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
