//! The embedding model of this process, where its environment names one.

use std::path::Path;

use jig_knowledge::embedding::EmbeddingConfig;

/// Reads which embedding model the searches of callers use, as `JIG_EMBEDDING` of this process says.
pub(crate) fn model_of_host() -> Option<EmbeddingConfig> {
    let path = std::env::var_os("JIG_EMBEDDING").filter(|path| !path.is_empty())?;
    match EmbeddingConfig::read(Path::new(&path)) {
        Ok(config) => Some(config),
        Err(error) => {
            let error = jig_model::chain(&error);
            tracing::warn!(error, "knowledge is searched by words only");
            None
        }
    }
}
