//! The console: one owner per transport, everything on disk, readers that cannot disturb it.
//!
//! Bytes flow one way: a [`Console`] reads its transport and hands chunks to a disk thread,
//! which appends them to a log (`NAME.raw` and `NAME.idx`) and then publishes how long the
//! log is. All readers ([`Follower`], [`expect`], recognisers, renderers) read the log with a
//! cursor of their own, so a slow one loses no bytes and cannot stall the transport.
//!
//! **Refused here:** knowing what a transport is made of, opening devices, printing, and
//! deciding what output means for a verdict.

mod awaited_text;
mod boot_banner;
mod candidate_lines;
mod capture;
mod clock;
mod count_table;
mod counted_failures;
mod crash_dump;
mod crash_evidence;
mod crash_pairs;
mod cut_headline;
mod denied_rows;
mod disk;
mod error_codes;
mod error_word;
mod escape;
mod expect;
mod failed_result;
mod fallback_boot;
mod fatal_phrases;
mod fault_lines;
mod fault_reason;
mod follow;
mod foreign_crash;
mod foreign_verdict;
mod framework_lines;
mod handle;
mod held_crash;
mod judged_table;
mod legacy_text;
mod line_forms;
pub(crate) mod lines;
mod log;
pub(crate) mod log_prefix;
mod measured_limits;
mod odd_verdicts;
mod open_line;
mod parity;
mod prepared;
mod quantity;
mod queue;
mod read;
mod read_pace;
mod readable;
mod recognise;
mod recognition;
mod refusal;
mod report_counts;
mod required_value;
mod result_lists;
mod result_rows;
mod runner_ends;
mod scan;
mod screen_rows;
mod search;
mod shown_text;
mod signatures;
mod structured_counts;
mod supervision;
mod suspicion;
mod table;
mod tail;
mod test_subject;
#[cfg(test)]
pub(crate) mod test_transport;
mod trouble;
mod trouble_forms;
mod unit_verdicts;
mod verdict_phrases;
mod words;
mod yaml_results;

pub use awaited_text::AwaitedDoubt;
pub(crate) use awaited_text::{awaited_doubt, means_crash};
pub(crate) use boot_banner::{BannerStage, FoundBanner, boot_banner, find_banner};
pub(crate) use candidate_lines::candidate;
pub use capture::{Console, Syncing};
pub use clock::{ConsoleClock, Stamp, UnderWay};
pub(crate) use crash_dump::{CrashDump, DUMP_REACH, registers_in_front, tells_unexpected};
pub(crate) use crash_evidence::{
    alarm_candidate, tells_alarm, tells_crash, tells_crash_of_start, tells_fatal_end,
};
pub(crate) use cut_headline::is_cut_headline;
pub use disk::LogState;
pub(crate) use error_word::says_error;
pub use escape::{Escaper, escape};
pub(crate) use expect::PAUSE;
pub use expect::{ExpectError, expect};
pub(crate) use failed_result::{counts_failure, names_failure, tells_failure};
pub(crate) use fallback_boot::tells_fallback;
pub(crate) use fault_reason::{FaultReasons, REASON_LINES};
pub use follow::{Follow, FollowError, Follower};
pub use handle::{ConsoleError, ConsoleHandle};
pub use held_crash::ExcusedCrash;
pub use log::{GapReason, IndexRecord, LogError, LogPaths, RecordKind};
pub(crate) use open_line::output_of_open_test;
pub(crate) use parity::parity_lines;
pub(crate) use prepared::prepare_search;
pub use queue::TransportEnd;
pub use read::{IndexHealth, LogReader};
pub(crate) use readable::{readable, writes_over};
pub use recognise::Recogniser;
pub use recognition::Recognition;
pub(crate) use refusal::{refusal_candidate, refuses};
pub(crate) use result_lists::{BESIDE, failed_in_list, may_fail_in_list};
pub(crate) use scan::spelled_parts;
pub use scan::{LocatedMatch, PatternSet, PatternSetError, Scanned, Scanner};
pub use search::{Capture, Matched, find_all, find_shown};
pub(crate) use suspicion::is_suspicious;
pub use tail::{LogTail, TailItem};
pub(crate) use trouble::tells_trouble;
pub(crate) use words::{names_test, pieces};
