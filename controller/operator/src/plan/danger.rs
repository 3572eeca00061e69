//! Which calls are dangerous, and what a confirmation of them is bound to.
//!
//! # Design
//! *The tool and its arguments decide, never the words of a plan.* A call that only reads is harmless. A
//! run, a test, a reset or a recovery at an emulated board is harmless, too: nothing outside the emulator
//! changes. Flash and erase wait there as well: the flash of an emulated place is a file that stays.
//! Everything else that uses a board waits for a confirmation, because a test flashes
//! what it tests. What is unknown, such as a board that no listing names, counts as real. A tool of another
//! server waits unless the configuration trusts it, whatever the server says of it.

use jig_model::access::AccessRight;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::types::RiskLevel;
use crate::digest::value_digest;
use crate::tools::{Danger, ToolRisk};

/// What is known of the board of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BoardNature {
    /// It is emulated.
    pub emulated: bool,
    /// Its outlet switches other boards, too.
    pub shares_outlet: bool,
}

/// How dangerous a call is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CallDanger {
    /// Its risk.
    pub level: RiskLevel,
    /// It waits for a confirmation.
    pub confirm: bool,
}

/// Judges a call.
pub fn call_danger(tool: &str, risk: ToolRisk, board: BoardNature) -> CallDanger {
    let of = |level, confirm| CallDanger { level, confirm };
    // A tool of another server that the configuration trusts has no danger.
    if risk.read_only || risk.danger == Danger::None {
        return of(RiskLevel::Low, false);
    }
    let high = risk.danger == Danger::Host
        || risk.right == AccessRight::Administer
        || tool == "erase"
        || (tool == "power" && board.shares_outlet);
    if high {
        return of(RiskLevel::High, true);
    }
    if board.emulated && matches!(risk.right, AccessRight::Use | AccessRight::Power) {
        return of(RiskLevel::Low, false);
    }
    of(RiskLevel::Medium, true)
}

/// A call that waits for a confirmation, as it is shown.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DangerousCall {
    /// The step.
    pub step: u32,
    /// The tool.
    pub tool: String,
    /// Its arguments.
    pub args: Value,
    /// Its risk.
    pub risk: RiskLevel,
    /// SHA-256 in lower-case hex of each file that it names, by its path.
    #[serde(default, skip_serializing_if = "serde_json::Map::is_empty")]
    pub files: serde_json::Map<String, Value>,
}

/// Returns the SHA-256, in lower-case hex, that a confirmation of these calls is bound to. Another
/// argument, another file content, another order or one call more has another digest.
pub fn confirmation_digest(calls: &[DangerousCall]) -> String {
    value_digest(&json!(calls))
}

#[cfg(test)]
mod tests {
    use super::*;

    const EMULATED: BoardNature = BoardNature { emulated: true, shares_outlet: false };
    const REAL: BoardNature = BoardNature { emulated: false, shares_outlet: false };
    const SHARED: BoardNature = BoardNature { emulated: false, shares_outlet: true };

    #[test]
    fn the_tool_and_the_board_decide() {
        let risk = |right| ToolRisk {
            read_only: false,
            idempotent: false,
            destructive: true,
            danger: Danger::Board,
            right,
        };
        let host = ToolRisk { danger: Danger::Host, ..risk(AccessRight::Use) };
        let table = [
            ("boards", ToolRisk::READ, REAL, RiskLevel::Low, false),
            ("run", risk(AccessRight::Use), EMULATED, RiskLevel::Low, false),
            ("run", risk(AccessRight::Use), REAL, RiskLevel::Medium, true),
            ("flash", risk(AccessRight::Flash), EMULATED, RiskLevel::Medium, true),
            ("flash", risk(AccessRight::Flash), REAL, RiskLevel::Medium, true),
            ("recover", risk(AccessRight::Power), EMULATED, RiskLevel::Low, false),
            ("power", risk(AccessRight::Power), REAL, RiskLevel::Medium, true),
            ("power", risk(AccessRight::Power), SHARED, RiskLevel::High, true),
            ("erase", risk(AccessRight::Flash), EMULATED, RiskLevel::High, true),
            ("exec", host, EMULATED, RiskLevel::High, true),
            (
                "scope__set",
                ToolRisk { read_only: false, ..ToolRisk::READ },
                REAL,
                RiskLevel::Low,
                false,
            ),
            ("scope__set", host, REAL, RiskLevel::High, true),
        ];
        for (tool, risk, board, level, confirm) in table {
            assert_eq!(call_danger(tool, risk, board), CallDanger { level, confirm }, "{tool}");
        }
    }

    #[test]
    fn a_confirmation_is_bound_to_all_that_was_shown() {
        let call = DangerousCall {
            step: 1,
            tool: "flash".to_owned(),
            args: json!({ "place": "bench-3", "image": "app.elf" }),
            risk: RiskLevel::Medium,
            files: serde_json::Map::from_iter([("app.elf".to_owned(), json!("ab"))]),
        };
        let digest = |calls: &[DangerousCall]| confirmation_digest(calls);
        let shown = digest(std::slice::from_ref(&call));
        let mut others = vec![vec![call.clone(), call.clone()], Vec::new()];
        others.push(vec![DangerousCall { step: 2, ..call.clone() }]);
        others.push(vec![DangerousCall { tool: "erase".to_owned(), ..call.clone() }]);
        others.push(vec![DangerousCall { args: json!({ "place": "bench-4" }), ..call.clone() }]);
        others.push(vec![DangerousCall { files: serde_json::Map::default(), ..call.clone() }]);
        for other in others {
            assert_ne!(digest(&other), shown, "{other:?}");
        }
        assert_eq!(digest(&[call]), shown);
    }
}
