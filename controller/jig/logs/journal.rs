//! The log as lines of the journal (systemd.journal-fields(7)).
//!
//! The journal knows when a line came and of which process it is; what it cannot know is the level,
//! so each line begins with it (sd-daemon(3)).

use std::fmt;
use std::os::linux::fs::MetadataExt as _;

use tracing::{Event, Level, Subscriber};
use tracing_subscriber::fmt::FmtContext;
use tracing_subscriber::fmt::format::{Compact, Format, FormatEvent, FormatFields, Writer};
use tracing_subscriber::registry::LookupSpan;

/// Tells whether standard error goes to the journal: the variable names its device and inode.
pub(super) fn has_stderr() -> bool {
    let Some(stream) = std::env::var("JOURNAL_STREAM").ok() else { return false };
    let own = std::fs::metadata("/proc/self/fd/2");
    own.is_ok_and(|about| stream == format!("{}:{}", about.st_dev(), about.st_ino()))
}

/// Returns the prefix of a line of a level.
pub(super) fn prefix(level: &Level) -> &'static str {
    match *level {
        Level::ERROR => "<3>",
        Level::WARN => "<4>",
        Level::INFO => "<6>",
        Level::DEBUG | Level::TRACE => "<7>",
    }
}

/// Writes events as text, each line with its level, without time and colour.
pub(super) struct JournalText(Format<Compact, ()>);

impl JournalText {
    pub(super) fn new() -> Self {
        let format = tracing_subscriber::fmt::format().compact();
        Self(format.without_time().with_level(false).with_ansi(false))
    }
}

impl<S, N> FormatEvent<S, N> for JournalText
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(
        &self,
        context: &FmtContext<'_, S, N>,
        mut writer: Writer<'_>,
        event: &Event<'_>,
    ) -> fmt::Result {
        let mut text = String::new();
        self.0.format_event(context, Writer::new(&mut text), event)?;
        // A message of several lines is several entries of the journal.
        for line in text.lines() {
            writeln!(writer, "{}{line}", prefix(event.metadata().level()))?;
        }
        Ok(())
    }
}
