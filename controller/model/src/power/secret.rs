//! Where a secret is kept.

use std::path::PathBuf;

use serde::Serialize;
use serde_json::{Value, json};

use crate::document::{FromToml, Node, TableReader};

/// The check that refuses a secret; the code that reports the problem blanks it out.
pub(crate) const SECRET: &str = "rig::secret";

/// Where a secret is kept. Rig files are shared and committed, so none stands in them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum SecretSource {
    /// In an environment variable of this name.
    Env(String),
    /// In a file that only its owner may read; `~/` is the user's home.
    File(PathBuf),
}

impl std::fmt::Display for SecretSource {
    /// Names the place; the secret itself is not known here.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Env(name) => write!(f, "the variable {name}"),
            Self::File(path) => write!(f, "the file {}", path.display()),
        }
    }
}

const HOW: &str = "name where it is kept: { env = \"PDU_PASSWORD\" }, or \
                   { file = \"~/.config/jig/pdu\" } that only you may read";

impl FromToml for SecretSource {
    fn how_to_add(key: &str) -> String {
        format!("add `{key} = {{ env = \"PDU_PASSWORD\" }}`")
    }

    fn schema() -> Value {
        let one = |key: &str, what: &str| {
            json!({
                "type": "object",
                "additionalProperties": false,
                "required": [key],
                "properties": { key: { "type": "string", "description": what } },
            })
        };
        json!({ "oneOf": [
            one("env", "Environment variable that holds it."),
            one("file", "File that holds it and only its owner may read; ~/ is the home."),
        ] })
    }

    fn read(node: &Node<'_>) -> Option<Self> {
        if matches!(node.value(), toml::de::DeValue::String(_) | toml::de::DeValue::Integer(_)) {
            let message = format!("`{}` is a secret and does not belong into a file", node.key());
            node.refuse(SECRET, message, HOW);
            return None;
        }
        let table = TableReader::open(node)?;
        let (env, file) = (table.optional::<String>("env"), table.optional::<String>("file"));
        table.finish();
        match (env, file) {
            (Some(env), None) => {
                let head = |b: u8| b.is_ascii_alphabetic() || b == b'_';
                let fits = env.value.bytes().all(|b| head(b) || b.is_ascii_digit())
                    && env.value.bytes().next().is_some_and(head);
                if !fits {
                    // The user may have written the secret where its name belongs.
                    let message = format!("`{}` names no variable", node.key());
                    node.refuse(SECRET, message, HOW);
                }
                fits.then_some(Self::Env(env.value))
            }
            (None, Some(file)) => {
                let fits = file.value.starts_with('/') || file.value.starts_with("~/");
                if !fits || file.value.contains('\0') {
                    let message = format!("`{}` names no file", node.key());
                    let help = "write a path that begins with `/` or `~/`";
                    node.refuse("rig::secret-file", message, help);
                    return None;
                }
                Some(Self::File(PathBuf::from(file.value)))
            }
            (Some(_), Some(_)) | (None, None) => {
                let message = format!("`{}` must be kept in one place", node.key());
                node.refuse("rig::secret-file", message, HOW);
                None
            }
        }
    }
}
