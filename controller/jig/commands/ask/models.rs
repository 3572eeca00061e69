//! The model of a session: which one, its key, its endpoint.
//!
//! The key is read from the environment or a file when a session begins or goes on. It is in no journal and in no
//! message.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use jig_agents::ModelKey;
use jig_agents::roles::RoleBook;
use jig_model::document::did_you_mean;
use jig_model::redact::Redactor;
use jig_model::{Fault, chain};
use jig_operator::config::{AgentsFile, ModelEndpoint};
use jig_operator::error::{OperatorCode, OperatorError};
use jig_operator::journal::CharterModel;
use jig_operator::memory::CaseStore;
use jig_operator::models::{EndpointModel, LanguageModel};

use super::bind::agents_path;
use super::folders::secret_variables;
use crate::args::Common;
use crate::failure::Failure;

/// Most bytes of a file with a key.
const MAX_KEY: u64 = 16 << 10;

/// What is written in place of the name of a model to ask none.
const NONE: &str = "none";

/// Chooses the model of a new session: the one of the command line, else the one of `agents.toml`.
pub(super) fn chosen(
    file: &AgentsFile,
    wanted: Option<&str>,
) -> Result<Option<CharterModel>, Failure> {
    match wanted {
        None => Ok(file.planner.clone()),
        Some(NONE) => Ok(None),
        Some(name) if file.models.contains_key(name) => {
            let search = file.planner.as_ref().is_some_and(|planner| planner.search);
            Ok(Some(CharterModel { name: name.to_owned(), first: true, search }))
        }
        Some(name) if file.models.is_empty() => {
            let words =
                format!("there is no model {name:?}: agents.toml has no table [model.NAME]");
            Err(Failure::new(Fault::Usage, words).help("add [model.NAME] with url and name to it"))
        }
        Some(name) => {
            let help = did_you_mean(name, file.models.keys().map(String::as_str));
            Err(Failure::new(Fault::Usage, format!("there is no model {name:?}")).help(help))
        }
    }
}

/// A model as a session is bound to it, or why it cannot be asked.
pub(super) type BoundModel = Option<Result<Arc<dyn LanguageModel>, OperatorError>>;

/// The model of a session, and what removes its key from text.
pub(super) struct SessionModel {
    pub(super) model: BoundModel,
    pub(super) redactor: Redactor,
}

/// Makes the model of a session. What is wrong with it ends the session only where it is asked.
pub(super) fn session_model(
    common: &Common,
    file: &AgentsFile,
    wanted: Option<&CharterModel>,
    sessions: &Path,
) -> SessionModel {
    let without = |model| SessionModel { model, redactor: Redactor::new(secret_variables()) };
    let Some(CharterModel { name, .. }) = wanted else { return without(None) };
    let unusable = |words: String, next: String| {
        let words = format!("model {name}: {words}");
        Some(Err(OperatorError::new(OperatorCode::Model, words).next(next).untouched()))
    };
    let Some(endpoint) = file.models.get(name) else {
        let words = "it is not in agents.toml any more".to_owned();
        return without(unusable(words, format!("add [model.{name}] to agents.toml")));
    };
    let key = match key_of(&agents_path(common), endpoint) {
        Ok(key) => key,
        Err(KeyProblem { why, next }) => return without(unusable(why, next)),
    };
    let secret =
        key.as_ref().map(|key| ("the key of the model".to_owned(), key.exposed().to_owned()));
    let redactor = Redactor::new(secret_variables().chain(secret));
    let model = match EndpointModel::new(name, endpoint, key, redactor.clone()) {
        Ok(model) => {
            let roles = approved(model.roles().clone(), sessions);
            Some(Ok(Arc::new(model.with_roles(roles)) as Arc<dyn LanguageModel>))
        }
        Err(error) => unusable(chain(&error), format!("check [model.{name}] of agents.toml")),
    };
    SessionModel { model, redactor }
}

/// Adds to the instructions of the roles what a person has approved. Without a memory they stay as they are.
pub(crate) fn approved(roles: RoleBook, sessions: &Path) -> RoleBook {
    // None is made where none was kept.
    if !CaseStore::is_in(sessions) {
        return roles;
    }
    let instructed = CaseStore::open(sessions).and_then(|store| store.instructed(&roles));
    instructed.unwrap_or_else(|error| {
        let error = chain(&error);
        tracing::warn!(error, "approved instructions cannot be read; the built-in ones are used");
        roles
    })
}

/// Says why the key of a model cannot be used.
pub(crate) struct KeyProblem {
    /// What is wrong with it.
    pub(crate) why: String,
    /// What to do.
    pub(crate) next: String,
}

/// Looks for the keys of all models: the name of each, and what is wrong with its key.
pub(crate) fn model_keys(
    common: &Common,
    file: &AgentsFile,
) -> Vec<(String, Result<(), KeyProblem>)> {
    let agents = agents_path(common);
    let key = |(name, endpoint): (&String, &ModelEndpoint)| {
        (name.clone(), key_of(&agents, endpoint).map(drop))
    };
    file.models.iter().map(key).collect()
}

/// Reads the key of an endpoint. The error says what is wrong and what to do.
fn key_of(agents: &Path, endpoint: &ModelEndpoint) -> Result<Option<ModelKey>, KeyProblem> {
    if let Some(variable) = &endpoint.key_env {
        let value = std::env::var_os(variable).and_then(|value| value.into_string().ok());
        return match value.as_deref().and_then(ModelKey::new) {
            Some(key) => Ok(Some(key)),
            None => Err(KeyProblem {
                why: format!("the variable {variable} is not set"),
                next: format!("export {variable}, or ask without a model: --model none"),
            }),
        };
    }
    let Some(named) = &endpoint.key_file else { return Ok(None) };
    let path = agents.parent().unwrap_or(Path::new("")).join(named);
    let refused = |why: String| {
        let next = format!("chmod 600 {0}; its first line is the key", path.display());
        KeyProblem { why: format!("the file with its key, {}: {why}", path.display()), next }
    };
    let text = key_text(&path).map_err(|error| refused(error.to_string()))?;
    match text.lines().next().and_then(ModelKey::new) {
        Some(key) => Ok(Some(key)),
        None => Err(refused("it is empty".to_owned())),
    }
}

/// Reads a file with a key: a regular one that only its owner can read.
fn key_text(path: &PathBuf) -> io::Result<String> {
    use std::os::unix::fs::PermissionsExt as _;
    let about = std::fs::metadata(path)?;
    if !about.is_file() {
        return Err(io::Error::other("it is no file"));
    }
    if about.permissions().mode() & 0o077 != 0 {
        return Err(io::Error::other("other users can read it"));
    }
    io::read_to_string(File::open(path)?.take(MAX_KEY))
}
