//! Tells of a snapshot what the image adds to it.

use std::fs;
use std::path::Path;

use jig_model::post_mortem::PostMortem;
use jig_model::protocol::PostMortemRequest;

use crate::{CoreDump, CoreSnapshot, Symbols, SymbolsError, Why, explain};

/// Explains a snapshot and leaves it as a core dump.
pub(crate) fn told(snapshot: &CoreSnapshot, why: Why, request: &PostMortemRequest) -> PostMortem {
    let symbols = request.image.as_deref().map(symbols_of);
    let (symbols, trouble) = match symbols {
        Some(Ok(symbols)) => (Some(symbols), None),
        Some(Err(error)) => (None, Some(error.to_string())),
        None => (None, None),
    };
    let mut post_mortem = explain(snapshot, symbols.as_ref(), why);
    post_mortem.limits.extend(trouble);
    let dumped = fs::File::create(&request.core)
        .and_then(|file| CoreDump::write(snapshot, &mut std::io::BufWriter::new(file)));
    match dumped {
        Ok(()) => post_mortem.core = Some(request.core.clone()),
        Err(error) => post_mortem.limits.push(format!("the core dump was not written: {error}")),
    }
    post_mortem
}

/// Says why an image explains nothing.
#[derive(Debug, thiserror::Error)]
enum NoSymbols {
    #[error("the image cannot be read: {0}")]
    Unreadable(#[from] std::io::Error),
    #[error("no symbols: {0}")]
    Unusable(#[from] SymbolsError),
}

fn symbols_of(image: &Path) -> Result<Symbols, NoSymbols> {
    Ok(Symbols::load(&fs::read(image)?)?)
}
