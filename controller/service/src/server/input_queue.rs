//! Orders for jobs, in the order in which a connection sends them.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use tokio::sync::{mpsc, oneshot};

use crate::jobs::{Job, JobId, JobInputs, JobOrder, SendOrderError};
use crate::protocol::MOST_CALLS;

/// Most orders of a job that wait for its worker: as many as a connection has calls under way, so that
/// putting one never waits, and the connection goes on to read.
const WAITING: usize = MOST_CALLS;

type Order = (JobOrder, oneshot::Sender<Result<(), SendOrderError>>);

/// Passes orders to jobs, one after the other for each job.
#[derive(Debug, Default)]
pub(super) struct InputQueues(Mutex<HashMap<JobId, mpsc::Sender<Order>>>);

impl InputQueues {
    /// Puts an order behind the earlier ones for the same job; the result comes once the worker has it.
    pub(super) async fn put(
        &self,
        job: &Job,
        order: JobOrder,
    ) -> oneshot::Receiver<Result<(), SendOrderError>> {
        let (reply, done) = oneshot::channel();
        let queue = {
            let mut queues = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            queues.retain(|_, queue| !queue.is_closed());
            queues.entry(job.id().clone()).or_insert_with(|| begin(job)).clone()
        };
        // Where the queue has just ended, the reply is dropped with the order.
        let _ = queue.send((order, reply)).await;
        done
    }
}

/// Begins a queue, which ends with the first order that the job does not take.
fn begin(job: &Job) -> mpsc::Sender<Order> {
    let (queue, mut orders) = mpsc::channel::<Order>(WAITING);
    let mut inputs = JobInputs::of(job);
    tokio::spawn(async move {
        while let Some((order, reply)) = orders.recv().await {
            let sent = inputs.send(order).await;
            let failed = sent.is_err();
            // The caller may have gone.
            let _ = reply.send(sent);
            if failed {
                return;
            }
        }
    });
    queue
}
