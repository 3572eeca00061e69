//! What must hold in a profile beyond the types of its values: a list of named checks.
//!
//! Each check looks at the whole profile as it was written, reports what it finds, and
//! repairs nothing. A value that was already refused is missing here and skipped.

mod board;
mod debug;
mod deploy;
mod emulation;
mod known_good;
mod recovery;

use super::FaultSets;
use super::raw::RawProfile;
use crate::document::{Findings, Located};

pub(crate) use emulation::emulator_args;

/// The profile under check.
pub(super) struct Subject<'a> {
    pub(super) raw: &'a RawProfile,
    pub(super) origin: &'a str,
    pub(super) faults: &'a FaultSets,
    pub(super) findings: &'a Findings,
}

/// One check; it gets its own name, to report under.
type Check = fn(&Subject<'_>, &'static str);

/// Every check, by its stable name.
pub(super) const CHECKS: &[(&str, Check)] = &[
    ("profile::id", board::id_is_the_file_name),
    ("profile::title", board::title_says_something),
    ("profile::features", board::features_come_once),
    ("profile::fault-set", board::fault_sets_exist),
    ("profile::fault-name", board::fault_names_are_unique),
    ("profile::fault-text", board::faults_have_one_text),
    ("profile::memory-name", board::memory_names_are_unique),
    ("profile::memory-size", board::memory_has_a_size),
    ("profile::memory-overlap", board::memory_does_not_overlap),
    ("profile::no-ram", board::memory_has_ram),
    ("profile::usb", super::usb::devices_are_sound),
    ("profile::no-console", board::a_console_exists),
    ("profile::console-name", board::console_names_are_unique),
    ("profile::baud", board::baud_rates_are_sane),
    ("profile::channel", board::channels_belong_to_rtt),
    ("profile::semihosting", board::semihosting_consoles_have_semihosting),
    ("profile::program", emulation::program_is_a_plain_name),
    ("profile::machine", emulation::machine_is_a_plain_word),
    ("profile::args", emulation::args_are_left_to_the_profile),
    ("profile::placeholder", emulation::placeholders_can_be_filled),
    ("profile::boots", emulation::something_boots),
    ("profile::image-set", emulation::image_set_is_a_folder_name),
    ("profile::deploy-method", deploy::method_fits_the_board),
    ("profile::deploy-keys", deploy::keys_fit_the_method),
    ("profile::deploy-preset", deploy::preset_is_known),
    ("profile::deploy-program", deploy::program_is_a_plain_name),
    ("profile::deploy-placeholder", deploy::placeholders_can_be_filled),
    ("profile::deploy-codes", deploy::codes_are_exit_codes),
    ("profile::deploy-progress", deploy::progress_is_captured),
    ("profile::deploy-timeout", deploy::time_is_sane),
    ("profile::debug-scratch", debug::scratch_lies_in_ram),
    ("profile::debug-identity", debug::identity_fits_its_fields),
    ("profile::debug-program", debug::program_memory_exists),
    ("profile::debug-overlay", debug::overlay_words_are_aligned),
    ("profile::known-good", known_good::start_lies_in_memory),
    ("profile::known-good-word", known_good::words_are_aligned),
    ("profile::known-good-status", known_good::a_status_can_be_met),
    ("profile::stage-name", board::stage_names_are_unique),
    ("profile::stage-probe", board::stages_have_one_probe),
    ("profile::stage-port", emulation::banner_ports_are_forwarded),
    ("profile::stage-timeout", board::stage_times_are_sane),
    ("profile::shell", board::shell_is_sound),
    ("profile::limits", board::limits_are_sane),
    ("profile::recovery-step", recovery::steps_come_once),
    ("profile::recovery", recovery::numbers_are_sane),
    ("profile::health", board::health_is_sane),
];

/// Runs every check.
pub(super) fn run(subject: &Subject<'_>) {
    for (name, check) in CHECKS {
        check(subject, name);
    }
}

/// Reports names that are empty, unfit or come twice. `text` shows a name's text.
pub(super) fn unique<'n, T: 'n>(
    check: &'static str,
    what: &str,
    names: impl IntoIterator<Item = &'n Located<T>>,
    text: impl Fn(&T) -> &str,
    findings: &Findings,
) {
    let mut seen = std::collections::BTreeSet::new();
    for name in names {
        let word = text(&name.value);
        if !super::placeholder::is_name(word) {
            let help = "use 1 to 64 of a-z, A-Z, 0-9, `.`, `_` and `-`, a letter or digit first";
            findings.add(check, name.at(), format!("this cannot name a {what}"), help);
        } else if !seen.insert(word.to_owned()) {
            let message = format!("there are two {what} entries called {word:?}");
            findings.add(check, name.at(), message, "give each a name of its own");
        }
    }
}
