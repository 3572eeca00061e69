//! Jobs with a script in place of `jig worker`.

use std::time::Duration;

use jig_model::command::{
    Command, CommandEvent, EndedReply, RecoverySteps, Reply, WorkerLine, to_line,
};
use tokio::time::timeout;

use super::*;

const LIMIT: Duration = Duration::from_secs(60);

/// Makes a worker that does what a shell script says; `$2` is the folder of the job.
pub(crate) fn scripted(script: &str) -> WorkerProgram {
    let args = ["-c", script].map(Into::into).to_vec();
    WorkerProgram { program: "/bin/sh".into(), args, ..WorkerProgram::default() }
}

/// Writes what a worker says when it waits for a place, and its answer.
pub(crate) fn said(holder: &str) -> String {
    let place = "bench".parse().unwrap();
    let event = CommandEvent::Waiting { place, holder: holder.to_owned() };
    to_line(&WorkerLine::Event(event)).unwrap()
}

pub(crate) fn answer() -> String {
    let place = "bench".parse().unwrap();
    to_line(&WorkerLine::Reply(Reply::Ended(EndedReply { place }))).unwrap()
}

fn spec() -> JobSpec {
    let steps = RecoverySteps { place: "bench".parse().unwrap(), from: None };
    let command = Command::RecoverySteps(steps);
    JobSpec { command, by: jig_model::Identity::default(), attached: false, lease: None }
}

fn id() -> JobId {
    JobId::random(jiff::Timestamp::now())
}

/// Returns what a job says, and how it ends.
async fn all(job: &Job, offset: u64) -> (Vec<(u64, WorkerLine)>, Option<String>) {
    let (mut follower, mut lines) = (JobFollower::open(job, offset).unwrap(), Vec::new());
    loop {
        match timeout(LIMIT, follower.next()).await.unwrap().unwrap() {
            JobNews::Line { next, line } => lines.push((next, *line)),
            JobNews::Ended { crashed } => return (lines, crashed),
        }
    }
}

#[tokio::test]
async fn a_job_is_begun_once_and_can_be_followed_from_anywhere() {
    let folder = tempfile::tempdir().unwrap();
    let jobs = JobStore::new(folder.path().join("jobs"));
    let script = format!("echo '{}'; echo '{}'; echo '{}'", said("one"), said("two"), answer());
    let (id, worker) = (id(), scripted(&script));
    let job = jobs.begin(&id, &spec(), &worker).unwrap();
    let (lines, crashed) = all(&job, 0).await;
    assert_eq!((lines.len(), crashed), (3, None));
    // Begun again, by another process: it is the same job.
    let again = JobStore::new(folder.path().join("jobs")).begin(&id, &spec(), &worker).unwrap();
    assert_eq!(all(&again, 0).await.0, lines);
    let (rest, _) = all(&again, lines[0].0).await;
    assert_eq!(rest[..], lines[1..]);
    assert_eq!(again.spec().unwrap(), spec());
    assert_eq!(jobs.list().unwrap().len(), 1);
}

#[tokio::test]
async fn a_closed_store_finds_jobs_and_begins_none() {
    let folder = tempfile::tempdir().unwrap();
    let jobs = JobStore::new(folder.path().to_owned());
    let (early, worker) = (id(), scripted(&format!("echo '{}'", answer())));
    jobs.begin(&early, &spec(), &worker).unwrap();
    jobs.clone().close();
    let again = jobs.begin(&early, &spec(), &worker).unwrap();
    assert_eq!(all(&again, 0).await.1, None);
    let late = jobs.begin(&id(), &spec(), &worker);
    assert!(matches!(late, Err(JobError::Closed)), "{late:?}");
    assert_eq!(jobs.list().unwrap().len(), 1);
}

#[tokio::test]
async fn a_worker_that_ends_without_an_answer_has_crashed() {
    let folder = tempfile::tempdir().unwrap();
    let jobs = JobStore::new(folder.path().to_owned());
    let script = format!("echo '{}'; echo out of luck >&2; kill -9 $$", said("one"));
    let job = jobs.begin(&id(), &spec(), &scripted(&script)).unwrap();
    let (lines, crashed) = all(&job, 0).await;
    assert_eq!((lines.len(), crashed.as_deref()), (1, Some("out of luck")));
    assert!(!job.is_alive());
}

#[tokio::test]
async fn input_reaches_a_worker_in_its_order_from_its_first_moment_on() {
    let folder = tempfile::tempdir().unwrap();
    let jobs = JobStore::new(folder.path().to_owned());
    let script = format!("head -n 3 \"$2/input\" > \"$2/got\"; echo '{}'", answer());
    let job = jobs.begin(&id(), &spec(), &scripted(&script)).unwrap();
    let mut inputs = JobInputs::of(&job);
    // The script has hardly begun.
    for order in [JobOrder::Input(b"hi".to_vec()), JobOrder::Input(Vec::new()), JobOrder::End] {
        inputs.send(order).await.unwrap();
    }
    all(&job, 0).await;
    let got = std::fs::read_to_string(folder.path().join(job.id().as_str()).join("got")).unwrap();
    assert_eq!(got, "{\"input\":\"aGk=\"}\n{\"input\":\"\"}\n\"end\"\n");
    let late = JobInputs::of(&job).send(JobOrder::End).await;
    assert!(matches!(late, Err(SendOrderError::Ended)), "{late:?}");
}

#[tokio::test]
async fn a_cancellation_passes_input_that_no_worker_reads() {
    let folder = tempfile::tempdir().unwrap();
    let jobs = JobStore::new(folder.path().to_owned());
    let script =
        format!("exec 3<>\"$2/input\"; head -c 1 \"$2/cancel\" >/dev/null; echo '{}'", answer());
    let job = jobs.begin(&id(), &spec(), &scripted(&script)).unwrap();
    let mut inputs = JobInputs::of(&job);
    let fill = async {
        // More than a FIFO holds: the last ones wait for a reader.
        let mut sent = Ok(());
        while sent.is_ok() {
            sent = inputs.send(JobOrder::Input(vec![0; MOST_JOB_INPUT])).await;
        }
        sent
    };
    let cancel = async {
        job.cancel().await.unwrap();
        all(&job, 0).await
    };
    let (filled, (lines, crashed)) = tokio::join!(fill, cancel);
    assert!(matches!(filled, Err(SendOrderError::Ended)), "{filled:?}");
    assert_eq!((lines.len(), crashed), (1, None));
    let late = job.cancel().await;
    assert!(matches!(late, Err(SendOrderError::Ended)), "{late:?}");
}

#[tokio::test]
async fn a_worker_sees_a_cancellation_once_or_many_times_asked() {
    let folder = tempfile::tempdir().unwrap();
    let jobs = JobStore::new(folder.path().to_owned());
    // Alive, and deaf: the test listens in its place.
    let job = jobs.begin(&id(), &spec(), &scripted("exec 3<>\"$2/input\"; read x <&3")).unwrap();
    let mut asked = JobCancellation::listen(&folder.path().join(job.id().as_str())).unwrap();
    // More bytes than the FIFO holds.
    for _ in 0..70_000 {
        job.cancel().await.unwrap();
    }
    timeout(LIMIT, asked.asked()).await.unwrap();
    JobInputs::of(&job).send(JobOrder::End).await.unwrap();
    all(&job, 0).await;
}

#[tokio::test]
async fn a_follower_is_known_while_it_lives() {
    let folder = tempfile::tempdir().unwrap();
    let jobs = JobStore::new(folder.path().to_owned());
    let script = format!("head -c 1 \"$2/cancel\" > /dev/null; echo '{}'", answer());
    let job = jobs.begin(&id(), &spec(), &scripted(&script)).unwrap();
    assert!(job.is_alive() && !job.is_followed());
    let follower = JobFollower::open(&job, 0).unwrap();
    assert!(job.is_followed());
    drop(follower);
    assert!(!job.is_followed());
    job.cancel().await.unwrap();
    assert_eq!(all(&job, 0).await.1, None);
}

#[test]
fn names_are_one_component_of_a_path() {
    for bad in ["", "..", "a/b", "A", "a b", &"x".repeat(41)] {
        assert!(bad.parse::<JobId>().is_err(), "{bad:?}");
    }
    let (one, two) = (id(), id());
    assert_ne!(one, two);
    assert_eq!(one.as_str().parse::<JobId>().unwrap(), one);
}
