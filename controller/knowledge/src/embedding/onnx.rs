//! A model as ONNX, run by ONNX Runtime. The only file that sees the crate `ort`.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use jig_model::image::hex;
use ort::environment::Environment;
use ort::session::{Session, SessionInputValue};
use ort::value::Tensor;
use sha2::{Digest as _, Sha256};

use super::config::EmbeddingConfig;
use super::wordpiece::Vocabulary;
use super::{EmbedError, Embedder, EmbedderName, LoadEmbedder};

/// Largest model.
const MOST: u64 = 2 << 30;

/// Most numbers of a vector.
const DIMENSION: usize = 4096;

/// What a model may be given. Each is a row of numbers, one for each token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ModelInput {
    Tokens,
    Attention,
    Segment,
}

/// A model that is loaded.
pub struct OnnxEmbedder {
    session: Session,
    inputs: Vec<(String, ModelInput)>,
    vocabulary: Vocabulary,
    max_tokens: usize,
    name: EmbedderName,
}

impl std::fmt::Debug for OnnxEmbedder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("OnnxEmbedder").field("name", &self.name).finish_non_exhaustive()
    }
}

fn load_error(error: impl std::fmt::Display) -> EmbedError {
    EmbedError::Load(error.to_string())
}

/// Returns the environment of this process: there can be only one, of one library.
fn environment(library: &Path) -> Result<Environment, EmbedError> {
    static LOADED: Mutex<Option<(PathBuf, Environment)>> = Mutex::new(None);
    let mut loaded = LOADED.lock().unwrap_or_else(PoisonError::into_inner);
    match &*loaded {
        Some((path, environment)) if path == library => Ok(environment.clone()),
        Some((path, _)) => Err(EmbedError::Load(format!(
            "this process already uses the runtime {}; name the same one",
            path.display()
        ))),
        None => {
            let builder = ort::init_from(library).map_err(load_error)?;
            let environment =
                builder.with_name("jig").with_telemetry(false).build().map_err(load_error)?;
            *loaded = Some((library.to_owned(), environment.clone()));
            Ok(environment)
        }
    }
}

impl OnnxEmbedder {
    /// Returns how a model is loaded. Nothing is read before that.
    pub fn loader(config: EmbeddingConfig) -> LoadEmbedder {
        std::sync::Arc::new(move || Ok(Box::new(Self::load(&config)?)))
    }

    /// Loads a model.
    ///
    /// # Errors
    /// A file cannot be used, the model has another hash, or it is no model of texts.
    pub fn load(config: &EmbeddingConfig) -> Result<Self, EmbedError> {
        let path = &config.model;
        let said = |error: &dyn std::fmt::Display| {
            EmbedError::Load(format!("{}: {error}", path.display()))
        };
        let about = fs::metadata(path).map_err(|error| said(&error))?;
        if !about.is_file() || about.len() > MOST {
            return Err(said(&"it is no file of up to 2 GiB"));
        }
        let bytes = fs::read(path).map_err(|error| said(&error))?;
        let digest = hex(&Sha256::digest(&bytes));
        if let Some(expected) = &config.model_sha256
            && !expected.eq_ignore_ascii_case(&digest)
        {
            return Err(said(&format!("its SHA-256 is {digest}, expected {expected}")));
        }
        let vocabulary = Vocabulary::read(&config.vocabulary, config.lower_case)
            .map_err(|error| EmbedError::Load(jig_model::chain(&error)))?;
        let environment = environment(&config.runtime)?;
        // One thread: a search shares the host with emulators, whose time is the board's.
        let session = Session::builder(&environment)
            .and_then(|builder| Ok(builder.with_intra_threads(1)?))
            .and_then(|mut builder| builder.commit_from_memory(&bytes))
            .map_err(|error| said(&error))?;
        drop(bytes);
        let inputs = session.inputs().iter().map(|input| {
            let kind = match input.name() {
                name if name.contains("input_ids") => ModelInput::Tokens,
                name if name.contains("attention_mask") => ModelInput::Attention,
                name if name.contains("token_type_ids") => ModelInput::Segment,
                other => return Err(said(&format!("it needs {other:?}: it is no BERT model"))),
            };
            Ok((input.name().to_owned(), kind))
        });
        let inputs = inputs.collect::<Result<Vec<_>, _>>()?;
        let words = vocabulary_digest(&config.vocabulary, config)?;
        let stem = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let name = format!("{stem} {} {words}", &digest[..16]);
        let name = EmbedderName { name, dimension: 0 };
        let max_tokens = config.max_tokens;
        let mut model = Self { session, inputs, vocabulary, max_tokens, name };
        // Its first answer tells its size, and that it answers.
        model.name.dimension = model.embed("the board does not boot")?.len();
        Ok(model)
    }
}

/// Returns what tells how texts are given to a model: the same model with other words or more tokens
/// makes other vectors.
fn vocabulary_digest(path: &Path, config: &EmbeddingConfig) -> Result<String, EmbedError> {
    let bytes = fs::read(path).map_err(load_error)?;
    let mut digest = Sha256::new();
    digest.update(bytes);
    digest.update([u8::from(config.lower_case)]);
    digest.update(config.max_tokens.to_le_bytes());
    Ok(hex(&digest.finalize())[..8].to_owned())
}

impl Embedder for OnnxEmbedder {
    fn name(&self) -> EmbedderName {
        self.name.clone()
    }

    fn embed(&mut self, text: &str) -> Result<Vec<f32>, EmbedError> {
        let failed = |error: ort::Error| EmbedError::Failed(error.to_string());
        let tokens = self.vocabulary.tokens(text, self.max_tokens);
        let count = tokens.len();
        let mut inputs: Vec<(String, SessionInputValue<'_>)> = Vec::with_capacity(3);
        for (name, kind) in &self.inputs {
            let values = match kind {
                ModelInput::Tokens => tokens.clone(),
                ModelInput::Attention => vec![1; count],
                ModelInput::Segment => vec![0; count],
            };
            let tensor = Tensor::from_array(([1usize, count], values)).map_err(failed)?;
            inputs.push((name.clone(), tensor.into()));
        }
        let outputs = self.session.run(inputs).map_err(failed)?;
        if outputs.len() == 0 {
            return Err(EmbedError::Failed("it has no output".to_owned()));
        }
        let (shape, values) = outputs[0].try_extract_tensor::<f32>().map_err(failed)?;
        pooled(shape, values)
            .ok_or_else(|| EmbedError::Failed(format!("its output has the form {shape:?}")))
    }
}

/// Returns the mean over the tokens, or the one vector that a model returns for a text.
fn pooled(shape: &[i64], values: &[f32]) -> Option<Vec<f32>> {
    let dimension = usize::try_from(*shape.last()?).ok()?;
    let is_one = shape.first() == Some(&1) && matches!(shape.len(), 2 | 3);
    if !is_one || !(1..=DIMENSION).contains(&dimension) || values.len() < dimension {
        return None;
    }
    let rows = values.chunks_exact(dimension);
    let count = rows.len() as f32;
    let mut sum = vec![0f32; dimension];
    for row in rows {
        sum.iter_mut().zip(row).for_each(|(sum, value)| *sum += value);
    }
    sum.iter_mut().for_each(|sum| *sum /= count);
    Some(sum)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Names the file of a model, for the test that needs one.
    const CONFIG: &str = "JIG_TEST_EMBEDDING";

    #[test]
    fn a_vector_is_the_mean_over_the_tokens() {
        assert_eq!(pooled(&[1, 2, 2], &[1.0, 2.0, 3.0, 6.0]), Some(vec![2.0, 4.0]));
        assert_eq!(pooled(&[1, 3], &[1.0, 2.0, 3.0]), Some(vec![1.0, 2.0, 3.0]));
        for shape in [&[][..], &[1], &[2, 3], &[1, 0], &[1, 1, -1], &[1, 1, 1, 3], &[1, 9]] {
            assert_eq!(pooled(shape, &[1.0, 2.0, 3.0]), None, "{shape:?}");
        }
    }

    #[test]
    fn files_that_are_no_model_are_refused_with_their_name() {
        let folder = tempfile::tempdir().unwrap();
        let file = |name: &str, bytes: &[u8]| {
            let path = folder.path().join(name);
            fs::write(&path, bytes).unwrap();
            path
        };
        let config = EmbeddingConfig {
            runtime: file("libonnxruntime.so", b"no library"),
            model: file("model.onnx", b"no model"),
            vocabulary: file("vocab.txt", b"[UNK]\n[CLS]\n[SEP]\n"),
            model_sha256: None,
            max_tokens: 16,
            lower_case: true,
        };
        let refused =
            |config: &EmbeddingConfig| OnnxEmbedder::load(config).unwrap_err().to_string();
        assert!(refused(&config).contains("libonnxruntime.so"), "{}", refused(&config));
        let other = EmbeddingConfig { model_sha256: Some("00".to_owned()), ..config.clone() };
        assert!(refused(&other).contains("expected 00"), "{}", refused(&other));
        let missing = EmbeddingConfig { model: folder.path().join("none"), ..config.clone() };
        assert!(refused(&missing).contains("none"), "{}", refused(&missing));
        let other = EmbeddingConfig { vocabulary: file("other.txt", b"a\n"), ..config };
        assert!(refused(&other).contains("[UNK]"), "{}", refused(&other));
    }

    /// Texts that mean the same are nearer to each other than to others, whatever their words.
    #[test]
    fn a_real_model_tells_meanings() {
        let Some(path) = std::env::var_os(CONFIG) else {
            eprintln!("skipped: {CONFIG} names no embedding.toml");
            return;
        };
        let config = EmbeddingConfig::read(Path::new(&path)).unwrap();
        let mut model = OnnxEmbedder::load(&config).unwrap();
        let dimension = model.name().dimension;
        let mut vector =
            |text: &str| super::super::unit_vector(model.embed(text).unwrap(), dimension).unwrap();
        let one = vector("the system freezes while waking up");
        let same = vector("hang on resume from suspend");
        let other = vector("add a driver for the temperature sensor");
        let cosine = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f32>();
        assert!(cosine(&one, &same) > cosine(&one, &other) + 0.1);
        let long = vector(&"word ".repeat(100_000));
        assert_eq!(long.len(), dimension);
        assert_eq!(vector("").len(), dimension);
    }
}
