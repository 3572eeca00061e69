//! `cargo xtask bench knowledge`: how well and how fast knowledge is searched, on documents and questions
//! with known answers.
//!
//! The figures are made by an example of the crate, with an optimised build; this only names the files.

use std::path::PathBuf;

use xtask::failure::TaskFailure;
use xtask::process;

/// What `cargo xtask bench knowledge` can be told.
#[derive(clap::Args)]
pub(crate) struct KnowledgeBenchOptions {
    /// Folder with history-docs.jsonl.gz and history-queries.jsonl.
    #[arg(long, value_name = "DIR")]
    corpus: PathBuf,
    /// File that names an embedding model: searches with vectors are measured, too.
    #[arg(long, value_name = "FILE")]
    embedding: Option<PathBuf>,
}

/// Measures, and prints the tables.
///
/// # Errors
/// Something could not be built or measured.
pub(crate) fn run(options: &KnowledgeBenchOptions) -> Result<(), TaskFailure> {
    let corpus =
        std::path::absolute(&options.corpus).map_err(TaskFailure::io("find", &options.corpus))?;
    let scratch = process::target_dir().join("bench").join("knowledge");
    if scratch.exists() {
        std::fs::remove_dir_all(&scratch).map_err(TaskFailure::io("empty", &scratch))?;
    }
    std::fs::create_dir_all(&scratch).map_err(TaskFailure::io("make", &scratch))?;
    let example =
        ["--release", "--quiet", "--package", "jig-knowledge", "--example", "bench", "--"];
    let mut command = process::cargo(&["run"]);
    command.args(example);
    command.arg(corpus.join("history-docs.jsonl.gz"));
    command.arg(corpus.join("history-queries.jsonl"));
    command.arg(scratch);
    if let Some(file) = &options.embedding {
        command.arg(std::path::absolute(file).map_err(TaskFailure::io("find", file))?);
    }
    process::run(&mut command)
}
