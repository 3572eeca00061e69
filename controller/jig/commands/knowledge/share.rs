//! `jig kb export` and `jig kb import`.

use std::fs::{self, File};
use std::io::{self, BufReader, BufWriter, Write as _};
use std::path::Path;

use jig_knowledge::share::{self, ShareError};
use jig_model::{Fault, exit};
use serde_json::json;

use super::{KbFolder, shown};
use crate::args::{KbExportArgs, KbImportArgs};
use crate::failure::Failure;
use crate::render::one_line;

/// Problems that are told one by one.
const TOLD: usize = 20;

pub(super) fn export(at: &KbFolder<'_>, args: &KbExportArgs) -> Result<u8, Failure> {
    let knowledge = at.open()?;
    if args.file == Path::new("-") {
        let mut out = BufWriter::new(io::stdout().lock());
        let written = share::export(&knowledge, args.all, &mut out);
        let written =
            written.and_then(|count| out.flush().map(|()| count).map_err(ShareError::Stream));
        return match written {
            Err(ShareError::Stream(error)) if error.kind() == io::ErrorKind::BrokenPipe => {
                Ok(exit::PASS)
            }
            other => Ok(other.map(|_| exit::PASS)?),
        };
    }
    // A file is replaced as a whole: half an export is none.
    let mut new = args.file.clone().into_os_string();
    new.push(".new");
    let written = File::create(&new).map_err(ShareError::Stream).and_then(|file| {
        let mut out = BufWriter::new(file);
        let count = share::export(&knowledge, args.all, &mut out)?;
        let file = out.into_inner().map_err(|error| ShareError::Stream(error.into_error()))?;
        file.sync_all().and_then(|()| fs::rename(&new, &args.file)).map_err(ShareError::Stream)?;
        Ok(count)
    });
    if written.is_err() {
        // What is left of it is of no use.
        let _ = fs::remove_file(&new);
    }
    let count = written.map_err(|error| match error {
        ShareError::Stream(error) => cannot("write", &args.file, &error),
        other => other.into(),
    })?;
    match at.screen.json() {
        true => at.screen.out_json(&json!({ "exported": count })),
        false => at.screen.say(&format!("exported to {}: {count}", shown(&args.file))),
    }
    Ok(exit::PASS)
}

fn cannot(what: &str, file: &Path, error: &io::Error) -> Failure {
    Failure::new(Fault::Usage, format!("cannot {what} {}: {error}", shown(file)))
}

/// Exit code: 2 if a line was not imported.
pub(super) fn import(at: &KbFolder<'_>, args: &KbImportArgs) -> Result<u8, Failure> {
    let knowledge = at.open()?;
    let report = if args.file == Path::new("-") {
        share::import(&knowledge, &mut io::stdin().lock(), args.trust)?
    } else {
        let unreadable = |error| cannot("read", &args.file, &error);
        let regular = fs::metadata(&args.file).map_err(unreadable)?.is_file();
        if !regular {
            return Err(Failure::new(Fault::Usage, format!("{} is no file", shown(&args.file))));
        }
        let file = File::open(&args.file).map_err(unreadable)?;
        share::import(&knowledge, &mut BufReader::new(file), args.trust)?
    };
    at.maintain(&knowledge);
    for (line, problem) in report.problems.iter().take(TOLD) {
        at.screen.insist(&format!(
            "{}:{line}: {}",
            shown(&args.file),
            one_line(&problem.to_string())
        ));
    }
    if let Some(more) = report.problems.len().checked_sub(TOLD).filter(|more| *more > 0) {
        at.screen.insist(&format!("and {more} more lines"));
    }
    match at.screen.json() {
        true => at.screen.out_json(&report),
        false => at.screen.out(&format!(
            "{} new, {} repeats, {} known, {} not imported",
            report.new,
            report.repeats,
            report.known,
            report.problems.len()
        )),
    }
    Ok(if report.problems.is_empty() { exit::PASS } else { exit::USAGE })
}
