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
    let runtime = runtime()?;
    let done = runtime.block_on(async {
        let cancel = CancelToken::new();
        cancel_on_signals(&cancel).map_err(|error| Failure::of(Fault::Bug, &error))?;
        work(cancel).await
    });
    // A thread that reads standard input or a broken disk may still wait for it, and is not
    // waited for.
    runtime.shutdown_background();
    done
}
