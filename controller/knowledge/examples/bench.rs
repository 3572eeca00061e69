//! Measures retrieval on a corpus: documents, questions, an empty folder, an embedding.toml on demand.
//! Prints tables. The store of many units is measured by another process, which is this program, too.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "its output is its result")]

use std::error::Error;
use std::path::{Path, PathBuf};
use std::process::Command;

use jig_knowledge::bench::{
    Corpus, ScaleTiming, fill, measure, read_questions, run, scale_table, table, timing,
};
use jig_knowledge::embedding::{EmbeddingConfig, OnnxEmbedder};

/// Units of the large store.
const MANY: usize = 100_000;

/// First argument of the process that measures the large store.
const MEASURE: &str = "--measure";

fn main() -> Result<(), Box<dyn Error>> {
    let mut args = std::env::args_os().skip(1).map(PathBuf::from).peekable();
    let is_measure = args.next_if(|first| first == Path::new(MEASURE)).is_some();
    let mut next =
        || args.next().ok_or("usage: bench DOCUMENTS QUESTIONS EMPTY-FOLDER [EMBEDDING]");
    if is_measure {
        let (questions, folder) = (next()?, next()?);
        let times = measure(&read_questions(&questions)?, &folder)?;
        println!("{}", serde_json::to_string(&times)?);
        return Ok(());
    }
    let (documents, questions, folder) = (next()?, next()?, next()?);
    let corpus = Corpus::read(&documents, &questions)?;
    let model = args.next().map(|path| EmbeddingConfig::read(&path)).transpose()?;
    let mut progress = |done: u64, all: u64| {
        if done > 0 && done.is_multiple_of(1000) {
            eprintln!("{done} of {all} documents have vectors");
        }
    };
    let (quality, knowledge) =
        run(&corpus, &folder.join("knowledge"), model.map(OnnxEmbedder::loader), &mut progress)?;
    let times = timing(&corpus, knowledge, &folder)?;
    println!("{}", table(&quality, &times));
    let large = folder.join("large");
    let build = fill(&corpus, &large, MANY)?;
    drop(corpus);
    let mut child = Command::new(std::env::current_exe()?);
    let output = child.arg(MEASURE).args([&questions, &large]).output()?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into_owned().into());
    }
    let times: ScaleTiming = serde_json::from_slice(&output.stdout)?;
    println!("{}", scale_table(&build, &times));
    Ok(())
}
