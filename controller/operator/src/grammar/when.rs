//! Times as people say them: "since yesterday", "in the last 3 hours", "since 2026-11-20". Days begin at
//! midnight UTC, as everywhere in the listings of runs.

use jiff::civil::Date;
use jiff::tz::TimeZone;
use jiff::{Timestamp, ToSpan as _};
use serde::{Deserialize, Serialize};

use super::lex::Token;

/// Longest time back that is understood, in days: ten years.
const MOST_DAYS: i64 = 3660;

/// Since when something is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SinceWord {
    /// The beginning of the day so many days ago.
    DaysAgo(i64),
    /// So many hours ago.
    HoursAgo(i64),
    /// So many minutes ago.
    MinutesAgo(i64),
    /// The beginning of this day.
    Date(Date),
}

impl SinceWord {
    /// Returns the moment.
    pub fn moment(self, now: Timestamp) -> Timestamp {
        let now = now.to_zoned(TimeZone::UTC);
        let hours = |n: i64| now.checked_sub(n.hours());
        let found = match self {
            Self::DaysAgo(n) => now.checked_sub(n.days()).and_then(|day| day.start_of_day()),
            Self::HoursAgo(n) => hours(n),
            Self::MinutesAgo(n) => now.checked_sub(n.minutes()),
            Self::Date(date) => date.to_zoned(TimeZone::UTC),
        };
        found.map_or(Timestamp::MIN, |zoned| zoned.timestamp())
    }

    /// Reads a time behind a `since` or a `last`; returns how many words it has.
    pub(super) fn read(tokens: &[Token]) -> Option<(Self, usize)> {
        let words: Vec<&str> = tokens.iter().map(|token| token.word.as_str()).collect();
        match words.as_slice() {
            ["today", ..] => Some((Self::DaysAgo(0), 1)),
            ["yesterday" | "overnight", ..] => Some((Self::DaysAgo(1), 1)),
            ["last", "night", ..] => Some((Self::DaysAgo(1), 2)),
            ["this", "morning", ..] => Some((Self::DaysAgo(0), 2)),
            ["last" | "this", "week", ..] => Some((Self::DaysAgo(7), 2)),
            ["last" | "this", "month", ..] => Some((Self::DaysAgo(30), 2)),
            ["last" | "past", n, unit, ..] => Self::back(n, unit).map(|since| (since, 3)),
            [n, unit, "ago", ..] => Self::back(n, unit).map(|since| (since, 3)),
            [n, unit, ..] if Self::back(n, unit).is_some() => Self::back(n, unit).map(|s| (s, 2)),
            ["last" | "past", unit @ ("hour" | "day"), ..] => {
                Self::back("1", unit).map(|since| (since, 2))
            }
            [date, ..] => date.parse().ok().map(|date| (Self::Date(date), 1)),
            [] => None,
        }
    }

    fn back(n: &str, unit: &str) -> Option<Self> {
        let n = match n {
            "one" => 1,
            "two" => 2,
            "three" => 3,
            _ => n.parse::<i64>().ok()?,
        };
        let most = |days: i64, per_day: i64| (0..=days * per_day).contains(&n);
        match unit {
            "minute" | "minutes" | "min" if most(MOST_DAYS, 1440) => Some(Self::MinutesAgo(n)),
            "hour" | "hours" | "h" if most(MOST_DAYS, 24) => Some(Self::HoursAgo(n)),
            "day" | "days" if most(MOST_DAYS, 1) => Some(Self::DaysAgo(n)),
            "week" | "weeks" if most(MOST_DAYS / 7, 1) => Some(Self::DaysAgo(n * 7)),
            _ => None,
        }
    }
}
