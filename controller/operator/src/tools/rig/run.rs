//! Arguments of the tools that use a board.

use jig_model::access::AccessRight;
use jig_model::command::{
    AttachCommand, AttachFollow, AttachInput, BoardResetCommand, CheckCommand, Command,
    EraseCommand, FlashBy, FlashImageCommand, PlanText, PowerAction, PowerCommand, ProbeAccess,
    RecoverCommand, RecoverExtent, ResetBy, RunCommand, RunOptions, ShellCommand, ShellTask,
    TestCommand,
};
use jig_model::document::FromToml as _;
use jig_model::pattern::Pattern;
use jig_model::plan::Plan;
use jig_model::recovery::RecoveryStep;
use jig_model::{ConsoleName, PlaceName, Strictness};
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::Deserialize;
use serde_json::Value;

use super::{CHANGE, Named, RigArguments};
use crate::error::{OperatorCode, OperatorError};
use crate::tools::{Danger, RigCalls, RigRequest, ToolRisk};

/// Makes the request of a command without input.
pub(super) fn command(command: Command) -> RigRequest {
    RigRequest::Command { command: Box::new(command), input: Vec::new() }
}

/// How long a place that another process uses is waited for, in milliseconds.
pub(super) const WAIT_MS: u64 = 10_000;

/// Gets at a chip as the place says.
pub(super) fn probe() -> ProbeAccess {
    ProbeAccess { wait_ms: WAIT_MS, ..ProbeAccess::default() }
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Run {
    /// The place, or the kind of an emulated board.
    #[schemars(with = "Named")]
    place: PlaceName,
    /// The image: ELF, Intel HEX, or FILE.bin@ADDRESS; left out where the board boots by itself. Lies
    /// under the working folder.
    #[schemars(length(min = 1, max = 1024))]
    image: Option<String>,
    /// Passes as soon as the console shows this regular expression; no test results are needed then.
    until: Option<Pattern>,
    /// The console on which that is awaited; the primary one if left out.
    #[schemars(with = "Option<Named>")]
    console: Option<ConsoleName>,
    /// Output that fails the run, as regular expressions.
    #[serde(default)]
    #[schemars(length(max = 16))]
    reject: Vec<Pattern>,
    /// Lines that are harmless though they look like a failure, as regular expressions.
    #[serde(default)]
    #[schemars(length(max = 16))]
    allow: Vec<Pattern>,
    /// How long the report is waited for, in seconds; 10 if left out.
    #[schemars(range(min = 1, max = 3600))]
    timeout_s: Option<u64>,
    #[serde(default)]
    options: Options,
}

/// How a run is made.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Options {
    /// How many attempts to make: tells flaky from failing.
    #[schemars(range(min = 1, max = 100))]
    repeat: Option<u32>,
    /// How often the rig may be recovered on the way; as the profile says if left out.
    #[schemars(range(min = 0, max = 20))]
    recoveries: Option<u32>,
    /// Which output has to be known in a pass: true for each line, "behind" for what stands behind the
    /// report.
    #[serde(default)]
    #[schemars(schema_with = "strictness")]
    strict: Strictness,
    /// Whether the lines that are executed are found out and kept; emulated boards only.
    #[serde(default)]
    coverage: bool,
}

fn strictness(_: &mut SchemaGenerator) -> Schema {
    Schema::try_from(Strictness::schema()).unwrap_or_default()
}

impl From<Options> for RunOptions {
    fn from(options: Options) -> Self {
        let Options { repeat, recoveries, strict, coverage } = options;
        let repeat = repeat.unwrap_or(1);
        Self { repeat, recoveries, strict, coverage, ..Self::default() }
    }
}

impl RigArguments for Run {
    fn request(self, at: &dyn RigCalls) -> Result<RigRequest, OperatorError> {
        let image = self.image.as_deref().map(|image| at.image(image)).transpose()?;
        Ok(command(Command::Run(RunCommand {
            place: self.place,
            image,
            resets: 0,
            next_boot: None,
            until: self.until,
            console: self.console,
            reject: self.reject,
            allow: self.allow,
            timeout_ms: self.timeout_s.unwrap_or(10).saturating_mul(1000),
            options: self.options.into(),
        })))
    }
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Test {
    /// The place, or the kind of an emulated board.
    #[schemars(with = "Named")]
    place: PlaceName,
    /// The file of the plan, under the working folder. Either this or `plan_text`.
    #[schemars(length(min = 1, max = 1024))]
    plan: Option<String>,
    /// The plan itself, in TOML.
    #[schemars(length(min = 1, max = 65536))]
    plan_text: Option<String>,
    /// The image that the plan deploys, under the working folder.
    #[schemars(length(min = 1, max = 1024))]
    image: Option<String>,
    #[serde(default)]
    options: Options,
}

/// Tells the risk of a test. A plan may run programs on the rig's host.
pub(super) fn test_risk(arguments: &Value) -> ToolRisk {
    let plan = arguments["plan_text"].as_str();
    let plan = plan.and_then(|text| Plan::parse("plan_text", text).ok());
    match plan.is_some_and(|plan| plan.reaches_host()) {
        true => ToolRisk { danger: Danger::Host, right: AccessRight::Administer, ..CHANGE },
        false => CHANGE,
    }
}

impl RigArguments for Test {
    fn request(self, at: &dyn RigCalls) -> Result<RigRequest, OperatorError> {
        let plan = match (self.plan, self.plan_text) {
            (Some(file), None) => at.plan(&file)?,
            (None, Some(text)) => PlanText { origin: "plan_text".to_owned(), text },
            (Some(_), Some(_)) | (None, None) => {
                let words = "arguments of test: give either `plan` or `plan_text`";
                return Err(OperatorError::new(OperatorCode::InvalidArgs, words)
                    .next("jig mcp tools test")
                    .untouched());
            }
        };
        let image = self.image.as_deref().map(|image| at.image(image)).transpose()?;
        let options = self.options.into();
        Ok(command(Command::Test(TestCommand { place: self.place, plan, image, options })))
    }
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ConsoleSend {
    /// The place.
    #[schemars(with = "Named")]
    place: PlaceName,
    /// The console; the primary one if left out.
    #[schemars(with = "Option<Named>")]
    console: Option<ConsoleName>,
    /// What is sent, as it is: end it with "\n" where the target reads lines.
    #[schemars(length(min = 1, max = 4096))]
    text: String,
    /// How long the console must have been quiet before the call ends, in milliseconds; 500 if left
    /// out.
    #[schemars(range(min = 10, max = 10_000))]
    quiet_ms: Option<u64>,
}

impl RigArguments for ConsoleSend {
    fn request(self, _: &dyn RigCalls) -> Result<RigRequest, OperatorError> {
        let attach = AttachCommand {
            place: self.place,
            console: self.console,
            since_ms: 0,
            follow: AttachFollow::Captured,
            input: AttachInput::Send,
            quiet_ms: self.quiet_ms.unwrap_or(500),
            boot: None,
        };
        let command = Box::new(Command::Attach(attach));
        Ok(RigRequest::Command { command, input: self.text.into_bytes() })
    }
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Exec {
    /// The place.
    #[schemars(with = "Named")]
    place: PlaceName,
    /// Program and arguments. A shell line needs a shell: ["sh", "-c", "..."].
    #[schemars(length(min = 1, max = 64), inner(length(max = 8192)))]
    argv: Vec<String>,
    /// How long it may take, in seconds; 60 if left out.
    #[schemars(range(min = 1, max = 3600))]
    timeout_s: Option<u64>,
}

impl RigArguments for Exec {
    fn request(self, _: &dyn RigCalls) -> Result<RigRequest, OperatorError> {
        Ok(command(Command::Shell(ShellCommand {
            place: self.place,
            what: ShellTask::Exec { argv: self.argv },
            via: None,
            timeout_ms: self.timeout_s.unwrap_or(60).saturating_mul(1000),
        })))
    }
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Check {
    /// The place.
    #[schemars(with = "Named")]
    place: PlaceName,
}

impl RigArguments for Check {
    fn request(self, _: &dyn RigCalls) -> Result<RigRequest, OperatorError> {
        let wait_ms = Some(WAIT_MS);
        Ok(command(Command::Check(CheckCommand { place: self.place, wait_ms })))
    }
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Reset {
    /// The place.
    #[schemars(with = "Named")]
    place: PlaceName,
}

impl RigArguments for Reset {
    fn request(self, _: &dyn RigCalls) -> Result<RigRequest, OperatorError> {
        let (place, by) = (self.place, ResetBy::Usual);
        Ok(command(Command::Reset(BoardResetCommand { place, probe: probe(), by })))
    }
}

/// What to do with the power.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Switch {
    On,
    Off,
    Cycle,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Power {
    /// The place.
    #[schemars(with = "Named")]
    place: PlaceName,
    /// What to do.
    action: Switch,
    /// How long a cycle stays off, in milliseconds; as the rig file says if left out.
    #[schemars(range(min = 0, max = 60_000))]
    off_ms: Option<u64>,
}

impl RigArguments for Power {
    fn request(self, _: &dyn RigCalls) -> Result<RigRequest, OperatorError> {
        let action = match self.action {
            Switch::On => PowerAction::On,
            Switch::Off => PowerAction::Off,
            Switch::Cycle => PowerAction::Cycle,
        };
        Ok(command(Command::Power(PowerCommand {
            place: self.place,
            action,
            off_ms: self.off_ms,
            force: false,
            wait_ms: WAIT_MS,
        })))
    }
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Recover {
    /// The place.
    #[schemars(with = "Named")]
    place: PlaceName,
    /// The first step, taken whether the place works or not; only what is needed if left out.
    from: Option<RecoveryStep>,
}

impl RigArguments for Recover {
    fn request(self, _: &dyn RigCalls) -> Result<RigRequest, OperatorError> {
        let extent = self.from.map_or(RecoverExtent::Recover, RecoverExtent::From);
        Ok(command(Command::Recover(RecoverCommand { place: self.place, extent })))
    }
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Flash {
    /// The place.
    #[schemars(with = "Named")]
    place: PlaceName,
    /// The image: ELF, Intel HEX, or FILE.bin@ADDRESS. Lies under the working folder.
    #[schemars(length(min = 1, max = 1024))]
    image: String,
}

impl RigArguments for Flash {
    fn request(self, at: &dyn RigCalls) -> Result<RigRequest, OperatorError> {
        let (place, image) = (self.place, at.image(&self.image)?);
        let by = FlashBy::Usual;
        Ok(command(Command::Flash(FlashImageCommand { place, probe: probe(), image, by })))
    }
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Erase {
    /// The place.
    #[schemars(with = "Named")]
    place: PlaceName,
}

impl RigArguments for Erase {
    fn request(self, _: &dyn RigCalls) -> Result<RigRequest, OperatorError> {
        let (place, range) = (self.place, None);
        Ok(command(Command::Erase(EraseCommand { place, probe: probe(), range })))
    }
}
