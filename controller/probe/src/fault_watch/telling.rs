//! Tells of a snapshot what the image adds to it.

use std::fs;
use std::path::Path;

use jig_model::post_mortem::PostMortem;
use jig_model::protocol::PostMortemRequest;

use crate::{CoreDump, CoreSnapshot, Symbols, SymbolsError, Why, explain};

/// Explains a snapshot and leaves it as a core dump.
pub(crate) fn told(snapshot: &CoreSnapshot, why: Why, request: &PostMortemRequest) -> PostMortem {
    told_with(&RequestSymbols::load(request), snapshot, why, request)
}

/// What the image of a request adds, or why it adds nothing.
pub(super) struct RequestSymbols {
    pub(super) symbols: Option<Symbols>,
    trouble: Option<String>,
}

impl RequestSymbols {
    pub(super) fn load(request: &PostMortemRequest) -> Self {
        match request.image.as_deref().map(symbols_of) {
            Some(Ok(symbols)) => Self { symbols: Some(symbols), trouble: None },
            Some(Err(error)) => Self { symbols: None, trouble: Some(error.to_string()) },
            None => Self { symbols: None, trouble: None },
        }
    }
}

/// As [`told`], where the image was read before.
pub(super) fn told_with(
    image: &RequestSymbols,
    snapshot: &CoreSnapshot,
    why: Why,
    request: &PostMortemRequest,
) -> PostMortem {
    let mut post_mortem = explain(snapshot, image.symbols.as_ref(), why);
    post_mortem.limits.extend(image.trouble.clone());
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
