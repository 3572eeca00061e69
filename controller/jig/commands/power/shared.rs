//! Holding every place that loses its power together with one.

use jig_model::{Fault, PlaceName};
use jig_rig::store::{PlaceLock, PlaceLockError, Places};

use super::{Switch, list};
use crate::args::PowerArgs;
use crate::commands::probe::lock;
use crate::commands::turn;
use crate::failure::{Failure, chain};
use crate::render::{Screen, one_line};

/// Holds a place and those on the same outlet, or says who is in the way.
pub(super) async fn hold(
    places: &Places,
    screen: &Screen,
    switch: &Switch<'_>,
    args: &PowerArgs,
) -> Result<Vec<PlaceLock>, Failure> {
    let mut held = Vec::new();
    // In one order for all, so that no two wait for each other.
    let mut names: Vec<&PlaceName> = switch.radius.also.iter().chain([switch.place]).collect();
    names.sort();
    for other in names {
        if other == switch.place {
            held.push(lock(places, other, args.wait, screen).await?);
            continue;
        }
        match turn::take(places, other, args.wait, screen).await {
            Ok(lock) => held.push(lock),
            Err(error @ PlaceLockError::Held { .. }) if args.force => {
                let words = one_line(&chain(&error));
                screen.insist(&format!("disturbing place {other}: {words}"));
            }
            Err(error) => {
                let words = format!(
                    "{} would be disturbed: {}, and it shares {}",
                    other,
                    chain(&error),
                    switch.outlet()
                );
                let also = list(&switch.radius.also);
                return Err(Failure::new(error.fault(), words).help(format!(
                    "wait for it with --wait 30s, or switch all the same with --force; on this \
                     outlet: {}, {also}",
                    switch.place
                )));
            }
        }
    }
    Ok(held)
}

/// Says who holds the other places now, for an explanation.
pub(super) fn holders(
    places: &Places,
    others: &[PlaceName],
) -> Result<Vec<(PlaceName, Option<String>)>, Failure> {
    let who = |place: &PlaceName| {
        let holder = places.holder(place).map_err(|error| Failure::of(Fault::Lab, &error))?;
        let words = holder
            .map(|holder| holder.map_or_else(|| "another process".to_owned(), |h| h.to_string()));
        Ok((place.clone(), words))
    };
    others.iter().map(who).collect()
}
