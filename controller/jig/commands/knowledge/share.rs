//! `jig kb export` and `jig kb import`.

use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, BufWriter, Read as _, Write};
use std::path::Path;

use jig_knowledge::share::{ExportPage, ImportReport, LineProblem, MOST_SHARED_LINE};
use jig_lab::{KnowledgeOrder, KnowledgeReply};
use jig_model::{Fault, exit};
use serde_json::json;

use super::{KbDesk, shown};
use crate::args::{KbExportArgs, KbImportArgs};
use crate::commands::execute::unexpected;
use crate::failure::Failure;
use crate::render::one_line;

/// Problems that are told one by one.
const TOLD: usize = 20;

/// Bytes of lines that are imported at once.
const AT_ONCE: usize = 512 << 10;

/// Longest line that travels: a message has twice as much, and each byte may take two.
const MOST_TRAVELS: usize = 1 << 20;

pub(super) fn export(at: &KbDesk<'_>, args: &KbExportArgs) -> Result<u8, Failure> {
    if args.file == Path::new("-") {
        let mut out = BufWriter::new(io::stdout().lock());
        return match written(at, args.all, &mut out)? {
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(exit::PASS),
            Err(error) => Err(cannot("write", &args.file, &error)),
            Ok(_) => Ok(exit::PASS),
        };
    }
    // A file is replaced as a whole: half an export is none.
    let mut new = args.file.clone().into_os_string();
    new.push(".new");
    let cannot_write = |error| cannot("write", &args.file, &error);
    let kept = File::create(&new).map_err(cannot_write).and_then(|file| {
        let mut out = BufWriter::new(file);
        let count = written(at, args.all, &mut out)?.map_err(cannot_write)?;
        let file = out.into_inner().map_err(|error| cannot_write(error.into_error()))?;
        let placed = file.sync_all().and_then(|()| fs::rename(&new, &args.file));
        placed.map_err(cannot_write)?;
        Ok(count)
    });
    if kept.is_err() {
        // What is left of it is of no use.
        let _ = fs::remove_file(&new);
    }
    let count = kept?;
    match at.screen.json() {
        true => at.screen.out_json(&json!({ "exported": count })),
        false => at.screen.say(&format!("exported to {}: {count}", shown(&args.file))),
    }
    Ok(exit::PASS)
}

/// Writes all units, a page at a time. Returns how many, or why they cannot be written.
fn written(
    at: &KbDesk<'_>,
    archived: bool,
    out: &mut dyn Write,
) -> Result<io::Result<usize>, Failure> {
    let (mut behind, mut written) = (Some(0), 0);
    while let Some(from) = behind {
        let order = KnowledgeOrder::Export { behind: from, archived };
        let KnowledgeReply::Exported(page) = at.ask(order)? else { return Err(unexpected()) };
        let ExportPage { lines, count, next } = page;
        if let Err(error) = out.write_all(lines.as_bytes()) {
            return Ok(Err(error));
        }
        // A host that does not get on is not asked for ever.
        behind = next.filter(|next| *next > from);
        written += count;
    }
    Ok(out.flush().map(|()| written))
}

fn cannot(what: &str, file: &Path, error: &io::Error) -> Failure {
    Failure::new(Fault::Usage, format!("cannot {what} {}: {error}", shown(file)))
}

/// Exit code: 2 if a line was not imported.
pub(super) fn import(at: &KbDesk<'_>, args: &KbImportArgs) -> Result<u8, Failure> {
    let report = if args.file == Path::new("-") {
        imported(at, args, &mut io::stdin().lock())?
    } else {
        let unreadable = |error| cannot("read", &args.file, &error);
        let regular = fs::metadata(&args.file).map_err(unreadable)?.is_file();
        if !regular {
            return Err(Failure::new(Fault::Usage, format!("{} is no file", shown(&args.file))));
        }
        let file = File::open(&args.file).map_err(unreadable)?;
        imported(at, args, &mut BufReader::new(file))?
    };
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

/// Has lines imported, many at once; adds up what became of them.
fn imported(
    at: &KbDesk<'_>,
    args: &KbImportArgs,
    lines: &mut dyn BufRead,
) -> Result<ImportReport, Failure> {
    let most = if at.is_elsewhere() { MOST_TRAVELS } else { MOST_SHARED_LINE };
    let mut parts = LineParts { lines, number: 0, most };
    let mut report = ImportReport::default();
    loop {
        let before = parts.number;
        let part = parts.next(&mut report).map_err(|error| cannot("read", &args.file, &error))?;
        if parts.number == before {
            break;
        }
        if part.is_empty() {
            continue;
        }
        let order = KnowledgeOrder::Import { lines: part, trusted: args.trust };
        let reply = at.ask(order)?;
        at.settle(&reply);
        let KnowledgeReply::Imported(of_part) = reply else { return Err(unexpected()) };
        report.new += of_part.new;
        report.repeats += of_part.repeats;
        report.known += of_part.known;
        let problems = of_part.problems.into_iter();
        report.problems.extend(problems.map(|(line, problem)| (before + line, problem)));
    }
    report.problems.sort_by_key(|(line, _)| *line);
    Ok(report)
}

/// Lines, some at a time.
struct LineParts<'a> {
    lines: &'a mut dyn BufRead,
    /// How many were read.
    number: usize,
    /// Longest line that is taken.
    most: usize,
}

impl LineParts<'_> {
    /// Returns the next lines. One that is not taken is noted as a problem and stands as an empty line.
    fn next(&mut self, report: &mut ImportReport) -> io::Result<String> {
        let mut part = String::new();
        while part.len() < AT_ONCE {
            let mut line = Vec::new();
            let most = u64::try_from(self.most).unwrap_or(u64::MAX).saturating_add(1);
            if (&mut *self.lines).take(most).read_until(b'\n', &mut line)? == 0 {
                break;
            }
            self.number += 1;
            let problem = if line.len() > self.most && !line.ends_with(b"\n") {
                self.skip_line()?;
                Some(match self.most {
                    MOST_SHARED_LINE => LineProblem::TooLong,
                    most => LineProblem::Refused {
                        why: format!("longer than {most} bytes; import it at the rig's host"),
                    },
                })
            } else {
                match std::str::from_utf8(&line) {
                    Ok(text) => {
                        part.push_str(text);
                        None
                    }
                    Err(error) => Some(LineProblem::Unreadable { why: error.to_string() }),
                }
            };
            if let Some(problem) = problem {
                report.problems.push((self.number, problem));
                part.push('\n');
            }
        }
        Ok(part)
    }

    fn skip_line(&mut self) -> io::Result<()> {
        loop {
            let part = self.lines.fill_buf()?;
            let (length, ends) = match part.iter().position(|byte| *byte == b'\n') {
                Some(at) => (at + 1, true),
                None => (part.len(), part.is_empty()),
            };
            self.lines.consume(length);
            if ends {
                return Ok(());
            }
        }
    }
}
