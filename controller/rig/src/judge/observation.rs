//! The observation: everything that a verdict may be based on, collected during one attempt.

use std::time::Duration;

use jig_model::result::TestReport;
use jig_model::{Cause, ConsoleName, Evidence, ImageSeen, Note};

use crate::console::AwaitedDoubt;
use crate::workflow::ActionFailure;

/// Bytes of one console's log.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ByteRange {
    /// The log's path relative to the run.
    pub file: String,
    /// First byte.
    pub start: u64,
    /// One past the last byte.
    pub end: u64,
    /// The text, lossy and bounded; hostile.
    pub text: String,
}

impl ByteRange {
    /// Converts the range into evidence.
    pub fn evidence(&self) -> Evidence {
        Evidence {
            file: self.file.clone(),
            start: self.start,
            end: self.end,
            note: self.text.clone(),
        }
    }
}

/// An event of the board or its console that the plan did not cause.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Incident {
    /// What.
    pub kind: IncidentKind,
    /// Where it shows, or where the console stood when it happened.
    pub range: ByteRange,
}

/// Kinds of incidents.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum IncidentKind {
    /// The rig lost the board.
    Lost(Cause),
    /// The processor locked up.
    Lockup,
    /// The target did what its board cannot execute.
    Aborted,
    /// A recogniser named a cause on a console.
    Recognised(Cause),
    /// The driver saw the target's operating system panic.
    GuestPanic,
    /// A watchdog fired.
    Watchdog,
    /// The target reset itself.
    Reset,
    /// The target ended with an exit code.
    Exit(i32),
}

/// A place where console bytes are missing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Gap {
    /// Where.
    pub range: ByteRange,
    /// How many bytes, where known.
    pub lost: Option<u64>,
}

/// A build id that the target printed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PrintedId {
    /// In lower-case hex.
    pub hex: String,
    /// Where.
    pub range: ByteRange,
}

/// A line of an unknown format that looks like a result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResultLike {
    /// The line.
    pub range: ByteRange,
    /// The argument of `--until` that waits for it, quoted for a shell; none where it tells of a
    /// failure.
    pub until: Option<String>,
}

/// What is known of the image that ran.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ImageIdentity {
    /// Whether the emulator has loaded the deployed image.
    pub loaded: bool,
    /// The build id of the deployed image, if it carries one.
    pub deployed: Option<String>,
    /// Whether the image promises to print it.
    pub announces: bool,
    /// The id that this boot printed, if any.
    pub printed: Option<PrintedId>,
    /// Result of reading the board back after the deployment, if that was done.
    pub read_back: Option<ReadBack>,
}

impl ImageIdentity {
    /// Returns what shows that the image that ran is the one that was deployed.
    pub fn seen(&self) -> Option<ImageSeen> {
        let same = |read_back: &ReadBack| read_back.found == read_back.deployed;
        if self.loaded {
            return Some(ImageSeen::Loaded);
        }
        if let Some(read_back) = &self.read_back {
            return same(read_back).then_some(ImageSeen::ReadBack);
        }
        let (deployed, printed) = self.deployed.as_ref().zip(self.printed.as_ref())?;
        deployed.starts_with(&printed.hex).then_some(ImageSeen::BuildId)
    }
}

/// What was read back from a board, and what was deployed to it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ReadBack {
    /// SHA-256 of what was read, in lower-case hex.
    pub found: String,
    /// SHA-256 of what was deployed, in lower-case hex.
    pub deployed: String,
}

/// A report that the plan waited for in a boot before the last.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct EarlierReport {
    /// The results console's output of that boot.
    pub output: ByteRange,
    /// What was reported.
    pub report: TestReport,
}

/// What was reported in one boot on a console that the plan does not wait on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConsoleReport {
    /// The console.
    pub console: ConsoleName,
    /// Its output of that boot.
    pub output: ByteRange,
    /// What was reported.
    pub report: TestReport,
}

/// Output that shows that a target has started again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BootSign {
    /// The first line of the boot, where it comes again.
    FirstLine(ByteRange),
    /// The banner of a boot loader or a system.
    Banner(ByteRange),
}

/// Output behind the end of a report that nothing accounts for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutputBehind {
    /// How many lines, on all consoles.
    pub lines: u64,
    /// The first of them.
    pub first: ByteRange,
}

/// A text that the plan waits for, where it proves nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DoubtfulText {
    /// Its line.
    pub line: ByteRange,
    /// The text.
    pub text: String,
    /// Why it proves nothing.
    pub doubt: AwaitedDoubt,
    /// A pattern that tells a pass from this line, quoted for a shell.
    pub pattern: String,
}

/// What a plan asks of its target before it passes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum AskedOfTarget {
    /// Something that a target does which runs: a text, a report, a reset, the answer to a program.
    #[default]
    Presence,
    /// Only that some text is not printed.
    Absence,
    /// Nothing.
    Nothing,
}

/// Everything observed in one attempt. All of it belongs to the last boot that the plan started,
/// except `earlier`, `elsewhere`, `incidents` and `gaps`, which belong to the whole attempt.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Observation {
    /// The run was cancelled.
    pub cancelled: bool,
    /// The results console's output of the last boot.
    pub output: ByteRange,
    /// The first garbage of that output, or the first place after characters that came with errors,
    /// if there is any.
    pub garbage: Option<ByteRange>,
    /// The first line behind the end of the report, or behind the last expected text, on any
    /// console, that looks like a crash and is not allowed.
    pub suspicious: Option<ByteRange>,
    /// The first line among the results of a report, or on another console meanwhile, that looks like a
    /// crash, says nothing of a test, and is not allowed.
    pub alarm: Option<ByteRange>,
    /// What was printed behind a fault that the core took behind that end, and whose handler it has
    /// left.
    pub fault_behind: Option<ByteRange>,
    /// What shows that the target has started again behind that end.
    pub begun_again: Option<BootSign>,
    /// The first line that says that a test failed, and that is part of no report.
    pub failed_result: Option<ByteRange>,
    /// The first line that nothing accounts for, where it has to be known.
    pub unaccounted: Option<ByteRange>,
    /// What nothing accounts for behind the end of a report; decides nothing.
    pub output_behind: Option<OutputBehind>,
    /// The text that ends the plan, if it proves nothing where it stands.
    pub doubtful_text: Option<DoubtfulText>,
    /// The line that looks most like a result, where no known format was found.
    pub result_like: Option<ResultLike>,
    /// Whether another console printed in the last boot.
    pub printed_elsewhere: bool,
    /// What was reported there.
    pub report: TestReport,
    /// Reports on other consoles than the one that the plan waits on: they cannot pass a run, and
    /// none may contradict its pass.
    pub elsewhere: Vec<ConsoleReport>,
    /// Reports of earlier boots, in order: a later boot does not undo them.
    pub earlier: Vec<EarlierReport>,
    /// Whether the plan waits for results at all.
    pub results_wanted: bool,
    /// What the plan asks of the target.
    pub asked: AskedOfTarget,
    /// Incidents, in order.
    pub incidents: Vec<Incident>,
    /// Where bytes are missing.
    pub gaps: Vec<Gap>,
    /// The action that failed.
    pub failure: Option<ActionFailure>,
    /// How often a behaviour was started again.
    pub restarts: u32,
    /// The failure that the first of these followed.
    pub restarted_after: Option<ActionFailure>,
    /// Which image ran.
    pub identity: ImageIdentity,
    /// What the debug port found at the end, if it was asked and found something.
    pub post_mortem: Option<CoreFinding>,
    /// Stops of the emulator and of Jig.
    pub standstill: Standstill,
    /// What became of a crash of the last boot that the plan expected.
    pub expected_crash: ExpectedCrash,
    /// How long the board was watched behind the end, if it was.
    pub listened: Option<Listened>,
    /// What the rig had to do extra; decides nothing.
    pub notes: Vec<Note>,
}

/// What became of a crash that the plan expected.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ExpectedCrash {
    /// The plan expected none.
    #[default]
    None,
    /// Nothing shows that the target went on: a core that stands in a fault stands in this one.
    Last,
    /// The plan expected another text behind it, which the handler may have printed.
    TextBehind,
    /// A report ended behind it, so the target went on.
    ReportBehind,
}

impl ExpectedCrash {
    /// Tells whether a core that stands in a fault, and has taken this many, stands in the crash that
    /// was expected; nothing where that is not known.
    pub fn excuses(self, taken: Option<u32>) -> Option<bool> {
        match self {
            Self::None | Self::ReportBehind => Some(false),
            Self::Last => Some(true),
            Self::TextBehind => taken.map(|taken| taken <= 1),
        }
    }
}

/// Time in which the board was stopped. The clock of a target continues meanwhile, so its watchdog
/// and its own time-outs may fail it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Standstill {
    /// For how long the emulator was stopped, in all.
    pub stopped: Duration,
    /// The longest stop of Jig itself, which may have stopped the board, too.
    pub latest: Duration,
}

/// The quiet period behind what a plan waits for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Listened {
    /// How long it was, in time that the board had.
    pub had: Duration,
    /// Whether the board was still printing at its end.
    pub printing: bool,
}

/// What a debug port found out about a failed target.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CoreFinding {
    /// The cause that the core's own state proves, if it proves one.
    pub proves: Option<Cause>,
    /// The file with the whole finding; its text is the summary in one line.
    pub range: ByteRange,
    /// How many faults the core had taken in this boot, where each is seen.
    pub taken: Option<u32>,
}

impl Observation {
    /// Tells whether the target printed anything in the last boot, on any console.
    pub fn printed(&self) -> bool {
        self.printed_elsewhere || self.output.end > self.output.start
    }
}
