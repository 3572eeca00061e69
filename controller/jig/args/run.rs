//! What users type after `jig run` and `jig test`. Parsing only.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum, ValueHint};
use jig_model::ConsoleName;
use jig_model::pattern::Pattern;

use super::common::duration;
use super::inject::FaultArgs;
use super::target::TargetArgs;

/// Arguments of `jig run`.
#[derive(Debug, Args)]
pub(crate) struct RunArgs {
    #[command(flatten)]
    pub(crate) target: TargetArgs,
    /// Image to run: ELF, Intel HEX, or FILE.bin@ADDRESS; not needed where the board boots an image
    /// set
    #[arg(value_hint = ValueHint::FilePath)]
    pub(crate) image: Option<PathBuf>,
    /// Expect the target to reset itself this often before that, as bootloaders do
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = clap::value_parser!(u8).range(0..=100))]
    pub(crate) resets: u8,
    /// First line of the boot behind such a reset, where it does not begin as the boot before
    #[arg(long, value_name = "REGEX", requires = "resets")]
    pub(crate) next_boot: Option<Pattern>,
    /// Pass as soon as the console shows this; no test results are needed then
    #[arg(long, value_name = "REGEX")]
    pub(crate) until: Option<Pattern>,
    /// Await that text or the report here, not on the primary console
    #[arg(long, value_name = "NAME")]
    pub(crate) console: Option<ConsoleName>,
    /// Fail as soon as a console shows this, until the board is stopped; may be repeated
    #[arg(long, value_name = "REGEX")]
    pub(crate) reject: Vec<Pattern>,
    /// Lines that show this are harmless, though they look like a failed test or a crash; may be
    /// repeated
    #[arg(long, value_name = "REGEX")]
    pub(crate) allow: Vec<Pattern>,
    /// Give up after this long (10s, 2m, 500ms)
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = duration)]
    pub(crate) timeout: Duration,
    #[command(flatten)]
    pub(crate) reports: ReportArgs,
    #[command(flatten)]
    pub(crate) faults: FaultArgs,
}

/// Arguments of `jig test`.
#[derive(Debug, Args)]
pub(crate) struct TestArgs {
    #[command(flatten)]
    pub(crate) target: TargetArgs,
    /// The plan
    #[arg(value_hint = ValueHint::FilePath)]
    pub(crate) plan: PathBuf,
    /// Image that the plan's `deploy = true` puts on the board
    #[arg(long, value_hint = ValueHint::FilePath)]
    pub(crate) image: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) reports: ReportArgs,
    #[command(flatten)]
    pub(crate) faults: FaultArgs,
}

/// What to make of a run.
#[derive(Debug, Args)]
pub(crate) struct ReportArgs {
    /// Write a report: junit=FILE, json=FILE, tap=FILE, github=FILE, annotations=FILE; `-` is
    /// standard output
    #[arg(long, value_name = "FORMAT=FILE")]
    pub(crate) report: Vec<ReportRequest>,
    /// Tell GitHub's runner: annotations on standard output, and the summary of the step
    ///
    /// As --report annotations=- and, where $GITHUB_STEP_SUMMARY is set, --report
    /// github=$GITHUB_STEP_SUMMARY.
    #[arg(long)]
    pub(crate) github: bool,
    /// Run this many times: tells flaky from failing
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub(crate) repeat: u32,
    /// Watch the board until it is quiet for this long behind the end of what is waited for (50ms,
    /// 2s), in time that the board has, at most five times as long [default: the plan's, else the
    /// profile's]
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub(crate) settle: Option<Duration>,
    /// Pass only if each line of output is part of a report, expected by the plan, or allowed
    ///
    /// The first other line makes the run inconclusive. `--allow` and `allow_output` allow lines. Plan and
    /// place may ask for the same.
    #[arg(long)]
    pub(crate) strict: bool,
    /// Ask the same as `--strict`, but only of lines behind the end of a report
    #[arg(long)]
    pub(crate) strict_behind: bool,
    /// Most recoveries of the rig, each with a retry [default: profile's]
    ///
    /// With 0 there is one attempt, and no known-good image is run.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(0..=20))]
    pub(crate) max_recoveries: Option<u32>,
    /// Find out which source lines are executed; emulated boards only
    ///
    /// The run keeps them as coverage.json, and as coverage.info for programs that read lcov.
    #[arg(long)]
    pub(crate) coverage: bool,
    /// Also find out which test executes which line; as --coverage
    ///
    /// A test is the function of its name. The emulator runs several times slower meanwhile.
    #[arg(long)]
    pub(crate) coverage_by_test: bool,
    /// Compare with an earlier JSON report: tells regressions from known failures
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) baseline: Option<PathBuf>,
}

impl ReportArgs {
    /// Lists the reports that are asked for; `step_summary` is the file of GitHub's runner.
    pub(crate) fn requests(&self, step_summary: Option<OsString>) -> Vec<ReportRequest> {
        let file = |format, path: PathBuf| ReportRequest { format, path };
        let summary = step_summary.filter(|path| self.github && !path.is_empty());
        let annotations = self.github.then(|| file(ReportFormatArg::Annotations, "-".into()));
        let summary = summary.map(|path| file(ReportFormatArg::Github, path.into()));
        self.report.iter().cloned().chain(annotations).chain(summary).collect()
    }
}

/// A report to write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ReportRequest {
    pub(crate) format: ReportFormatArg,
    pub(crate) path: PathBuf,
}

/// Forms of a report.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ReportFormatArg {
    /// JUnit XML
    Junit,
    /// The verdict as JSON
    Json,
    /// TAP 14
    Tap,
    /// Markdown for a CI step summary
    Github,
    /// Workflow commands that mark failures, in the source where a backtrace leads there
    Annotations,
}

impl std::str::FromStr for ReportRequest {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        let (format, path) = text
            .split_once('=')
            .filter(|(_, path)| !path.is_empty())
            .ok_or("expected FORMAT=FILE, such as junit=report.xml")?;
        let format = ReportFormatArg::from_str(format, false).map_err(|_| {
            format!("unknown format {format:?}: use junit, json, tap, github or annotations")
        })?;
        Ok(Self { format, path: path.into() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn report_requests_say_what_is_wrong() {
        assert!("junit=a.xml".parse::<ReportRequest>().is_ok());
        assert!("junit".parse::<ReportRequest>().unwrap_err().contains("FORMAT=FILE"));
        assert!("xml=a".parse::<ReportRequest>().unwrap_err().contains("junit, json"));
    }

    #[test]
    fn github_is_told_where_its_runner_reads() {
        #[derive(clap::Parser)]
        struct Cli {
            #[command(flatten)]
            reports: ReportArgs,
        }
        let parse = |args: &[&str]| {
            <Cli as clap::Parser>::try_parse_from([&["jig"], args].concat()).unwrap().reports
        };
        let paths = |args: &[&str], summary: Option<&str>| {
            let requests = parse(args).requests(summary.map(Into::into));
            requests.into_iter().map(|request| request.path).collect::<Vec<_>>()
        };
        assert_eq!(paths(&[], Some("sum")), [] as [PathBuf; 0]);
        assert_eq!(paths(&["--github"], None), [PathBuf::from("-")]);
        assert_eq!(paths(&["--github"], Some("")), [PathBuf::from("-")]);
        let all = paths(&["--report", "junit=a.xml", "--github"], Some("sum"));
        assert_eq!(all, ["a.xml", "-", "sum"].map(PathBuf::from));
    }
}
