//! Measures retrieval on a corpus: documents, questions, an empty folder. Prints tables.
#![expect(clippy::print_stdout, reason = "its output is its result")]

use std::path::PathBuf;

use jig_knowledge::bench::{Corpus, run, table, timing};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut args = std::env::args_os().skip(1).map(PathBuf::from);
    let mut next = || args.next().ok_or("usage: bench DOCUMENTS QUESTIONS EMPTY-FOLDER");
    let (documents, questions, folder) = (next()?, next()?, next()?);
    let corpus = Corpus::read(&documents, &questions)?;
    let (quality, knowledge) = run(&corpus, &folder.join("knowledge"))?;
    let times = timing(&corpus, knowledge, &folder)?;
    println!("{}", table(&quality, &times));
    Ok(())
}
