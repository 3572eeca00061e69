//! What to type next when knowledge could not be used.

use jig_knowledge::KnowledgeError;
use jig_knowledge::bench::{BenchError, CorpusError};
use jig_knowledge::embedding::EmbeddingConfigError;
use jig_knowledge::share::ShareError;
use jig_model::{Fault, chain};
use jig_rig::console::escape;

use super::Failure;

impl From<KnowledgeError> for Failure {
    fn from(error: KnowledgeError) -> Self {
        let failure = Self::new(error.fault(), escape(chain(&error).as_bytes()).to_string());
        match error {
            KnowledgeError::File { .. } | KnowledgeError::Unwritable { .. } => failure.help(
                "let this user write the folder `knowledge` of the state, or name another --state",
            ),
            KnowledgeError::Full { .. } | KnowledgeError::Lost { .. } => {
                failure.help("make room on the disk of --state; then repeat the command")
            }
            KnowledgeError::Busy { .. } => {
                failure.help("repeat the command; another process was writing")
            }
            KnowledgeError::Newer { .. } => {
                failure.help("install the newer jig, or name another --state")
            }
            KnowledgeError::Damaged { path, .. } => failure.help(format!(
                "move {} away with its -wal and -shm files, then `jig kb import` the last export",
                escape(path.display().to_string().as_bytes())
            )),
            KnowledgeError::Unknown(_) => failure.help("jig kb search WORDS"),
            KnowledgeError::Standing { id, .. } => failure.help(format!("jig kb show {id}")),
            KnowledgeError::Stale { id, .. } => {
                failure.help(format!("`jig kb show {id}` shows the newer version; change that"))
            }
            KnowledgeError::Synonyms { .. } | KnowledgeError::Weights { .. } => {
                failure.help("correct the file, or remove it: then the built-in ones are used")
            }
            KnowledgeError::Sqlite { .. }
            | KnowledgeError::Limit(_)
            | KnowledgeError::SelfLink(_)
            | KnowledgeError::Encode(_) => failure,
        }
    }
}

impl From<ShareError> for Failure {
    fn from(error: ShareError) -> Self {
        match error {
            ShareError::Store(error) => error.into(),
            ShareError::Stream(_) => {
                Self::new(Fault::Usage, escape(chain(&error).as_bytes()).to_string())
                    .help("name a file that this user may read or write")
            }
        }
    }
}

impl From<EmbeddingConfigError> for Failure {
    fn from(error: EmbeddingConfigError) -> Self {
        Self::new(Fault::Profile, escape(chain(&error).as_bytes()).to_string())
            .help("correct the file of --embedding; the guide page knowledge.md shows one")
    }
}

impl From<CorpusError> for Failure {
    fn from(error: CorpusError) -> Self {
        Self::new(Fault::Usage, escape(chain(&error).as_bytes()).to_string())
            .help("the guide page knowledge.md describes both files")
    }
}

impl From<BenchError> for Failure {
    fn from(error: BenchError) -> Self {
        match error {
            BenchError::Store(error) => error.into(),
            BenchError::Model(_) => {
                Self::new(Fault::Lab, escape(chain(&error).as_bytes()).to_string())
                    .help("name the model's files with --embedding, or measure without it")
            }
            BenchError::Fts(_) | BenchError::Lost { .. } => Self::new(Fault::Bug, chain(&error)),
            BenchError::Time(_) | BenchError::Name(..) => {
                Self::new(Fault::Usage, escape(chain(&error).as_bytes()).to_string())
            }
        }
    }
}
