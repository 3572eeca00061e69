//! Run ids: sortable, unique, readable.

use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use jig_model::RunId;

/// Sub-second steps: four hex digits, so about 15 microseconds each.
const STEPS: i64 = 0x1_0000;

/// Builds the `n`-th id to try for a run that starts at `now`; none where the time does
/// not fit four digits of year. Ids sort by the time of the start, within a second, too.
pub fn id_to_try(now: Timestamp, n: u32) -> Option<RunId> {
    let fraction = i64::from(now.subsec_nanosecond()).max(0) * STEPS / 1_000_000_000;
    let step = fraction + i64::from(n);
    // Counting up past the second carries into it: order is kept even under clashes.
    let second = now.as_second().checked_add(step / STEPS)?;
    let stamp = Timestamp::from_second(second).ok()?.strftime("%Y%m%d-%H%M%S").to_string();
    let id: RunId = format!("{stamp}-{:04x}", step % STEPS).parse().ok()?;
    started(&id).map(|_| id)
}

/// Returns the second a run began in, as its id says, or nothing if it is no id of ours.
pub(super) fn started(id: &RunId) -> Option<Timestamp> {
    let mut parts = id.as_str().split('-');
    let (date, time, step) = (parts.next()?, parts.next()?, parts.next()?);
    let digits = |text: &str| text.bytes().all(|b| b.is_ascii_digit());
    let hex = |b: u8| b.is_ascii_digit() || (b'a'..=b'f').contains(&b);
    if parts.next().is_some()
        || date.len() != 8
        || time.len() != 6
        || step.len() != 4
        || !digits(date)
        || !digits(time)
        || !step.bytes().all(hex)
    {
        return None;
    }
    let civil = DateTime::strptime("%Y%m%d%H%M%S", format!("{date}{time}")).ok()?;
    Some(civil.to_zoned(TimeZone::UTC).ok()?.timestamp())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_sort_by_start_and_carry() {
        let now: Timestamp = "2026-11-21T22:15:30.5Z".parse().unwrap();
        let id = id_to_try(now, 0).unwrap();
        assert_eq!(id.as_str(), "20261121-221530-8000");
        assert_eq!(started(&id), Some("2026-11-21T22:15:30Z".parse().unwrap()));
        assert_eq!(id_to_try(now, 0x8000).unwrap().as_str(), "20261121-221531-0000");
        assert!(id_to_try(now, 1).unwrap() > id);
    }

    #[test]
    fn other_names_are_no_ids() {
        for other in ["20261121-221530", "20261121-221530-7F3A", "20261321-221530-7f3a", "x"] {
            assert_eq!(started(&other.parse().unwrap()), None, "{other}");
        }
        assert_eq!(id_to_try(Timestamp::MIN, 0), None);
    }
}
