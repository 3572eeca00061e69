//! How a fault is written: `NAME[=ARG][@WHEN][,every]`.
//!
//! Parsing only. An error knows where it is, so that the renderer can point there.

use std::fmt;
use std::ops::Range;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use jig_model::document::{did_you_mean, parse_duration, parse_size};

use super::catalogue::{CATALOGUE, FaultKind, Moments, Takes, When};

/// Longest time that may be written: a run that needs more is no try of a rig.
const MAX_TIME: Duration = Duration::from_secs(24 * 3600);

/// Longest text that is looked at; a path is the longest part.
const MAX_TEXT: usize = 4096;

/// The argument of a fault, as written or by default.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Argument {
    /// Nothing.
    Nothing,
    /// A time.
    Time(Duration),
    /// A jump of a clock in milliseconds.
    Jump(i64),
    /// A number of bytes.
    Bytes(u64),
    /// A file.
    File(PathBuf),
}

/// One fault that is to strike.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Injection {
    /// The kind of fault.
    pub fault: FaultKind,
    /// Its argument.
    pub argument: Argument,
    /// When.
    pub when: When,
    /// Whether it strikes in each attempt, and not only once in a run.
    pub every: bool,
}

/// A syntax error in a fault.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct GrammarError {
    /// What is wrong: lower case, one line.
    pub message: String,
    /// Where, in bytes of the text.
    pub at: Range<usize>,
    /// What to write instead.
    pub help: String,
}

impl FromStr for Injection {
    type Err = GrammarError;

    fn from_str(text: &str) -> Result<Self, GrammarError> {
        if text.len() > MAX_TEXT {
            let at = 0..0;
            return Err(error("this is too long for a fault", at, "see: jig inject --list"));
        }
        let (body, every) = flags(text)?;
        // The last one, because a file's name may hold others.
        let (fault, when) = match body.rsplit_once('@') {
            Some((fault, when)) => (fault, Some((fault.len() + 1, when))),
            None => (body, None),
        };
        let (name, argument) = match fault.split_once('=') {
            Some((name, argument)) => (name, Some((name.len() + 1, argument))),
            None => (fault, None),
        };
        let Some(spec) = CATALOGUE.iter().find(|spec| spec.name == name) else {
            let message = format!("there is no fault `{}`", shown(name));
            let help = did_you_mean(name, CATALOGUE.iter().map(|spec| spec.name));
            return Err(error(message, 0..name.len(), help));
        };
        let argument = match argument {
            None => default(spec.takes),
            Some((start, text)) => {
                let at = start..start + text.len();
                parse_argument(spec.takes, text, spec.name, at)?
            }
        };
        let when = match when {
            None => spec.when,
            Some((start, text)) => {
                let when = parse_when(text, start..start + text.len())?;
                fits(spec.moments, when, start..start + text.len())?;
                when
            }
        };
        Ok(Self { fault: spec.kind, argument, when, every })
    }
}

fn error(message: impl Into<String>, at: Range<usize>, help: impl Into<String>) -> GrammarError {
    GrammarError { message: message.into(), at, help: help.into() }
}

fn shown(text: &str) -> String {
    text.chars().take(40).collect()
}

/// Splits off what stands behind the comma. A file's name may hold commas too, so only what
/// stands behind the moment is a flag.
fn flags(text: &str) -> Result<(&str, bool), GrammarError> {
    if let Some(body) = text.strip_suffix(",every") {
        return Ok((body, true));
    }
    let moment = text.rfind('@').unwrap_or(text.len());
    match text[moment..].find(',') {
        None => Ok((text, false)),
        Some(comma) => {
            let at = moment + comma + 1..text.len();
            let message = format!("`{}` means nothing here", shown(&text[at.clone()]));
            Err(error(message, at, "write `,every` to strike in each attempt, or nothing"))
        }
    }
}

fn default(takes: Takes) -> Argument {
    match takes {
        Takes::Nothing | Takes::File => Argument::Nothing,
        Takes::Time(time) => Argument::Time(time),
        Takes::Jump(time) => Argument::Jump(millis(time)),
        Takes::Bytes(bytes) => Argument::Bytes(bytes),
    }
}

fn millis(time: Duration) -> i64 {
    i64::try_from(time.as_millis()).unwrap_or(i64::MAX)
}

fn parse_argument(
    takes: Takes,
    text: &str,
    name: &str,
    at: Range<usize>,
) -> Result<Argument, GrammarError> {
    match takes {
        Takes::Nothing => {
            let at = at.start - 1..at.end;
            Err(error(format!("{name} takes nothing behind `=`"), at, format!("write `{name}`")))
        }
        Takes::Time(_) => time(text, at).map(Argument::Time),
        Takes::Jump(_) => match text.strip_prefix('-') {
            Some(back) => time(back, at).map(|time| Argument::Jump(-millis(time))),
            None => time(text, at).map(|time| Argument::Jump(millis(time))),
        },
        Takes::Bytes(_) => match parse_size(text) {
            Ok(size) if size.0 > 0 => Ok(Argument::Bytes(size.0)),
            Ok(_) => Err(error("no byte is no fault", at, "write a number, such as `64` or `1K`")),
            Err(why) => Err(error(why.to_string(), at, "write a number, such as `64` or `1K`")),
        },
        Takes::File if text.is_empty() => {
            Err(error("the file has no name", at, "write the path of an image"))
        }
        Takes::File => Ok(Argument::File(PathBuf::from(text))),
    }
}

fn time(text: &str, at: Range<usize>) -> Result<Duration, GrammarError> {
    let help = "write a number and a unit, such as `250ms`, `2s` or `1m`";
    match parse_duration(text) {
        Ok(time) if time <= MAX_TIME => Ok(time),
        Ok(_) => Err(error(format!("`{text}` is longer than a day"), at, help)),
        Err(why) => Err(error(why.to_string(), at, help)),
    }
}

fn parse_when(text: &str, at: Range<usize>) -> Result<When, GrammarError> {
    let Some(share) = text.strip_suffix('%') else {
        return time(text, at).map(When::After);
    };
    let digits = !share.is_empty() && share.bytes().all(|b| b.is_ascii_digit());
    match share.parse::<u8>() {
        Ok(percent) if digits && percent <= 100 => Ok(When::Share(percent)),
        _ => Err(error(
            format!("`{}` is no share of a deployment", shown(text)),
            at,
            "write a whole number from `0%`, before it, to `100%`, behind it",
        )),
    }
}

fn fits(moments: Moments, when: When, at: Range<usize>) -> Result<(), GrammarError> {
    match (moments, when) {
        (Moments::BeforeDeploying, When::Share(0)) => Ok(()),
        (Moments::BeforeDeploying, _) => {
            Err(error("this fault strikes before a deployment", at, "write `@0%`, or nothing"))
        }
        (Moments::Command, When::Share(_)) => Err(error(
            "this fault strikes at a command to the power, not in a deployment",
            at,
            "write the time of the run from when on it may, such as `@2s`",
        )),
        (Moments::Running | Moments::Run | Moments::Command | Moments::Deploying, _) => Ok(()),
    }
}

impl fmt::Display for Injection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let spec = self.fault.spec();
        write!(f, "{}", spec.name)?;
        match &self.argument {
            Argument::Nothing => {}
            Argument::Time(time) => write!(f, "={}", Time(millis(*time)))?,
            Argument::Jump(jump) => write!(f, "={}", Time(*jump))?,
            Argument::Bytes(bytes) => write!(f, "={bytes}")?,
            Argument::File(path) => write!(f, "={}", path.display())?,
        }
        match self.when {
            When::After(time) => write!(f, "@{}", Time(millis(time)))?,
            When::Share(percent) => write!(f, "@{percent}%")?,
        }
        if self.every { write!(f, ",every") } else { Ok(()) }
    }
}

/// Writes a time as people do.
struct Time(i64);

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            whole if whole % 1000 == 0 => write!(f, "{}s", whole / 1000),
            millis => write!(f, "{millis}ms"),
        }
    }
}

/// Writes the default of what a fault takes, as it would be written; nothing without one.
pub fn default_argument(takes: Takes) -> Option<String> {
    match takes {
        Takes::Nothing | Takes::File => None,
        Takes::Time(time) | Takes::Jump(time) => Some(Time(millis(time)).to_string()),
        Takes::Bytes(bytes) => Some(bytes.to_string()),
    }
}

/// Writes a moment.
pub fn moment(when: When) -> String {
    match when {
        When::After(time) => Time(millis(time)).to_string(),
        When::Share(percent) => format!("{percent}%"),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn wrong(text: &str) -> (String, String, String) {
        let error = text.parse::<Injection>().unwrap_err();
        (error.message, text[error.at].to_owned(), error.help)
    }

    #[test]
    fn what_is_not_written_is_the_catalogues() {
        for spec in CATALOGUE {
            let injection: Injection = spec.name.parse().unwrap();
            let wanted = (spec.kind, spec.when, false);
            assert_eq!((injection.fault, injection.when, injection.every), wanted);
            assert_eq!(injection.argument, default(spec.takes));
        }
        let all: Injection = "pause-emulator=250ms@50%,every".parse().unwrap();
        assert_eq!(all.argument, Argument::Time(Duration::from_millis(250)));
        assert_eq!((all.when, all.every), (When::Share(50), true));
        let back: Injection = "clock-jump=-90s@1m".parse().unwrap();
        assert_eq!(
            (&back.argument, back.to_string().as_str()),
            (&Argument::Jump(-90_000), "clock-jump=-90s@60s")
        );
        let file: Injection = "stale-image=a,b@c.elf@0%".parse().unwrap();
        assert_eq!(file.argument, Argument::File("a,b@c.elf".into()));
    }

    #[test]
    fn mistakes_are_pointed_at_and_put_right() {
        let (message, at, help) = wrong("kil-emulator@2s");
        assert_eq!(message, "there is no fault `kil-emulator`");
        assert_eq!((at.as_str(), help.as_str()), ("kil-emulator", "did you mean `kill-emulator`?"));
        for (text, at) in [
            ("kill-emulator=3s@2s", "=3s"),
            ("kill-emulator@2", "2"),
            ("kill-emulator@", ""),
            ("kill-emulator@2s,always", "always"),
            ("lose-probe@101%", "101%"),
            ("lose-probe@+5%", "+5%"),
            ("stale-image@50%", "50%"),
            ("stale-image=@0%", ""),
            ("power-mismatch@50%", "50%"),
            ("drop-bytes=0", "0"),
            ("drop-bytes=many", "many"),
            ("pause-host=2d", "2d"),
            ("", ""),
        ] {
            let (message, found, help) = wrong(text);
            assert_eq!(found, at, "{text}: {message}");
            assert!(!help.is_empty() && !message.is_empty(), "{text}");
        }
    }

    fn injections() -> impl Strategy<Value = Injection> {
        let times = 0..MAX_TIME.as_millis() as u64;
        let part = ("[a-z./@,=]{1,12}", times.clone(), 1..u64::MAX, any::<bool>());
        (0..CATALOGUE.len(), part, times, 0..=100_u8, any::<bool>(), any::<bool>()).prop_map(
            |(index, (file, time, bytes, back), after, percent, share, every)| {
                let spec = &CATALOGUE[index];
                let argument = match spec.takes {
                    Takes::Nothing => Argument::Nothing,
                    Takes::Time(_) => Argument::Time(Duration::from_millis(time)),
                    Takes::Jump(_) => {
                        Argument::Jump(if back { -(time as i64) } else { time as i64 })
                    }
                    Takes::Bytes(_) => Argument::Bytes(bytes),
                    Takes::File => Argument::File(file.into()),
                };
                let when = match spec.moments {
                    Moments::BeforeDeploying => When::Share(0),
                    Moments::Command => When::After(Duration::from_millis(after)),
                    _ if share => When::Share(percent),
                    _ => When::After(Duration::from_millis(after)),
                };
                Injection { fault: spec.kind, argument, when, every }
            },
        )
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_back(injection in injections()) {
            prop_assert_eq!(injection.to_string().parse::<Injection>(), Ok(injection));
        }

        #[test]
        fn no_text_panics_and_errors_lie_within_it(text in "(?s).{0,40}") {
            check(&text)?;
        }

        #[test]
        fn nor_does_one_that_is_nearly_right(
            text in "(kill-emulator|clock-jump|stale-image|drop-bytes)[=@,%a-zä0-9-]{0,12}"
        ) {
            check(&text)?;
        }
    }

    fn check(text: &str) -> Result<(), TestCaseError> {
        if let Err(error) = text.parse::<Injection>() {
            prop_assert!(text.get(error.at).is_some());
            prop_assert!(!error.help.is_empty());
        }
        Ok(())
    }
}
