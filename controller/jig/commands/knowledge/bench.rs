//! `jig kb bench`: how well and how fast searches are on a corpus.

use jig_knowledge::bench::{Corpus, run, table, timing};
use jig_knowledge::embedding::{EmbeddingConfig, OnnxEmbedder};
use jig_model::{Fault, exit};
use serde_json::json;

use crate::args::KbBenchArgs;
use crate::failure::Failure;
use crate::render::Screen;

pub(super) fn bench(
    screen: &Screen,
    embedding: Option<EmbeddingConfig>,
    args: &KbBenchArgs,
) -> Result<u8, Failure> {
    let corpus = Corpus::read(&args.docs, &args.queries)?;
    let scratch = match &args.scratch {
        Some(parent) => tempfile::tempdir_in(parent),
        None => tempfile::tempdir(),
    };
    let scratch = scratch.map_err(|error| {
        Failure::new(Fault::Lab, format!("could not make a folder for the store: {error}"))
            .help("name one with --scratch")
    })?;
    screen.say(&format!(
        "{} documents, {} questions",
        corpus.documents.len(),
        corpus.questions.len()
    ));
    let progress = screen.progress();
    let mut told = |done: u64, all: u64| {
        progress.set(&format!("{done} of {all} documents have vectors"));
    };
    let folder = scratch.path().join("knowledge");
    let (quality, knowledge) =
        run(&corpus, &folder, embedding.map(OnnxEmbedder::loader), &mut told)?;
    drop(progress);
    let times = timing(&corpus, knowledge, scratch.path())?;
    match screen.json() {
        true => screen.out_json(&json!({ "quality": quality, "times": times })),
        false => screen.out(&table(&quality, &times)),
    }
    Ok(exit::PASS)
}
