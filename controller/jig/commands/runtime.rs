//! The runtime of a verb, and the signals that end it.

use jig_model::Fault;
use jig_rig::workflow::CancelToken;
use tokio::runtime::Runtime;

use super::stop::cancel_on_signals;
use crate::failure::Failure;

/// Makes the runtime of a verb.
pub(crate) fn runtime() -> Result<Runtime, Failure> {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .map_err(|error| Failure::of(Fault::Bug, &error))
}

/// Does something within a runtime. The first signal asks it to stop in order; a repeated one ends
/// this process at once, also behind the work (see [`super::stop`]). Emulators die with it, and the next start sweeps
/// the rest.
pub(crate) fn until_signalled<T>(
    work: impl AsyncFnOnce(CancelToken) -> Result<T, Failure>,
) -> Result<T, Failure> {
    VerbRuntime::new()?.until_signalled(work)
}

/// The runtime of a verb that does several things one after the other, such as calls by one connection.
pub(crate) struct VerbRuntime(Option<Runtime>);

impl VerbRuntime {
    pub(crate) fn new() -> Result<Self, Failure> {
        Ok(Self(Some(runtime()?)))
    }

    /// Does something as [`until_signalled`] does.
    pub(crate) fn until_signalled<T>(
        &self,
        work: impl AsyncFnOnce(CancelToken) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        let Some(runtime) = &self.0 else {
            return Err(Failure::new(Fault::Bug, "the runtime has ended"));
        };
        runtime.block_on(async {
            let cancel = CancelToken::new();
            cancel_on_signals(&cancel).map_err(|error| Failure::of(Fault::Bug, &error))?;
            work(cancel).await
        })
    }
}

impl Drop for VerbRuntime {
    fn drop(&mut self) {
        // A thread that reads standard input or a broken disk may still wait for it, and is not
        // waited for.
        if let Some(runtime) = self.0.take() {
            runtime.shutdown_background();
        }
    }
}
