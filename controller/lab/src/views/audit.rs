//! The audit log.

use jiff::Timestamp;
use jig_rig::audit::{AuditError, AuditItem, AuditLog};
use serde::{Deserialize, Serialize};

/// Length of a page in bytes of JSON, at which it ends: half of what a message may hold.
const PAGE: usize = 1 << 20;

/// What a line has beside its text in JSON: names of fields, and the file. Its text is counted.
const AROUND: usize = 512;

/// Lines of the audit log, the oldest first.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AuditPage {
    /// The lines, and those that are none.
    pub items: Vec<AuditItem>,
    /// How many lines to skip for the next page; nothing if this is the last one.
    pub next: Option<u64>,
}

impl AuditPage {
    /// Reads a page behind so many lines of the log: what is not older than `since`, or not a line.
    pub(super) fn of(
        log: &AuditLog,
        since: Option<Timestamp>,
        skip: u64,
    ) -> Result<Self, AuditError> {
        Self::filled(log, since, skip, PAGE)
    }

    fn filled(
        log: &AuditLog,
        since: Option<Timestamp>,
        skip: u64,
        most: usize,
    ) -> Result<Self, AuditError> {
        let (mut page, mut seen, mut size) = (Self::default(), skip, 0);
        // All lines are read, or what is skipped could not be told from a line that was taken out.
        for item in log.read()?.skip(usize::try_from(skip).unwrap_or(usize::MAX)) {
            let item = item?;
            seen += 1;
            let at = item.content.as_ref().map(|line| line.entry.at);
            if item.finding.is_none() && since.is_some_and(|since| at.is_some_and(|at| at < since))
            {
                continue;
            }
            let text = item.content.as_ref().and_then(|line| serde_json::to_string(line).ok());
            size += AROUND + text.map_or(0, |text| text.len());
            page.items.push(item);
            if size >= most {
                page.next = Some(seen);
                break;
            }
        }
        Ok(page)
    }
}

#[cfg(test)]
mod tests {
    use jig_rig::audit::{AuditDecision, AuditEntry};
    use jig_rig::identity::own_identity;

    use super::*;

    #[test]
    fn pages_hold_each_line_once_whatever_their_size() {
        let state = tempfile::tempdir().unwrap();
        let log = AuditLog::in_state(state.path());
        let at = |second| Timestamp::from_second(1_700_000_000 + second).unwrap();
        for number in 0..20_u32 {
            let entry = AuditEntry {
                at: at(i64::from(number)),
                identity: own_identity(),
                command: format!("command-{number}"),
                place: None,
                right: None,
                decision: AuditDecision::Accepted,
                why: String::new(),
                lease: None,
                of: None,
                run: None,
            };
            log.append(entry).unwrap();
        }
        let told = |since, most| {
            let (mut numbers, mut skip, mut pages) = (Vec::new(), Some(0), 0);
            while let Some(behind) = skip {
                let page = AuditPage::filled(&log, since, behind, most).unwrap();
                numbers.extend(page.items.iter().map(|item| item.content.as_ref().unwrap().number));
                (skip, pages) = (page.next, pages + 1);
            }
            (numbers, pages)
        };
        let all: Vec<u64> = (1..=20).collect();
        assert_eq!(told(None, PAGE), (all.clone(), 1));
        let (numbers, pages) = told(None, 3 * AROUND);
        assert_eq!(numbers, all);
        assert!(pages > 5, "{pages}");
        assert_eq!(told(Some(at(15)), 1).0, (16..=20).collect::<Vec<u64>>());
        assert_eq!(told(Some(at(99)), 1), (Vec::new(), 1));
        // A line that was changed is told whatever its time.
        let path = log.current();
        let text = std::fs::read_to_string(&path).unwrap().replace("command-3", "command-x");
        std::fs::write(&path, text).unwrap();
        let page = AuditPage::of(&log, Some(at(99)), 0).unwrap();
        assert_eq!(page.items.len(), 1);
        assert!(page.items[0].finding.is_some());
    }
}
