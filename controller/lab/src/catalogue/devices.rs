//! One serial port under two names: two places, or two consoles, that would share it.
//!
//! A port has a name of its own (`/dev/ttyUSB0`) and links to it (`/dev/serial/by-id/...`). The rig
//! file is read without a look at the host, so only the same text is refused there. What the names
//! lead to is looked at when a place is bound, and only of devices that are there then.

use std::path::{Path, PathBuf};

use jig_model::rig_file::{Endpoint, Place};
use jig_model::{ConsoleName, PlaceName};

/// Says which two consoles end at the same port.
#[derive(Debug, thiserror::Error)]
#[error(
    "place {place}, console {console} ({}) and place {other_place}, console {other_console} ({}) \
     are the same device, {}",
    name.display(), other_name.display(), device.display()
)]
pub struct SharedPort {
    place: PlaceName,
    console: ConsoleName,
    name: PathBuf,
    other_place: PlaceName,
    other_console: ConsoleName,
    other_name: PathBuf,
    device: PathBuf,
}

/// A console's port and what its name leads to.
struct Port<'p> {
    place: &'p PlaceName,
    console: &'p ConsoleName,
    name: &'p Path,
    device: PathBuf,
}

/// Lists the ports of a place that are there now.
fn ports<'p>(
    place: &'p Place,
    resolve: &dyn Fn(&Path) -> Option<PathBuf>,
) -> impl Iterator<Item = Port<'p>> {
    place.consoles.iter().filter_map(|transport| {
        let Endpoint::Tty(name) = &transport.end else { return None };
        let name = Path::new(name);
        let device = resolve(name)?;
        Some(Port { place: &place.name, console: &transport.console, name, device })
    })
}

/// Refuses a place with a port that another console of the rig has, too.
pub(super) fn unshared<'p>(
    place: &'p Place,
    rig: impl Iterator<Item = &'p Place> + Clone,
    resolve: &dyn Fn(&Path) -> Option<PathBuf>,
) -> Result<(), Box<SharedPort>> {
    for own in ports(place, resolve) {
        let same = |other: &Port<'_>| {
            other.device == own.device && (other.place, other.console) != (own.place, own.console)
        };
        // A place that the rig file gives the same name is found by that name alone.
        if let Some(other) = rig.clone().flat_map(|all| ports(all, resolve)).find(same) {
            return Err(Box::new(SharedPort {
                place: own.place.clone(),
                console: own.console.clone(),
                name: own.name.to_owned(),
                other_place: other.place.clone(),
                other_console: other.console.clone(),
                other_name: other.name.to_owned(),
                device: own.device,
            }));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use jig_model::rig_file::ConsoleTransport;

    use super::*;

    fn place(name: &str, ports: &[(&str, &str)]) -> Place {
        let place = Place::new(name.parse().unwrap(), "board".parse().unwrap());
        let consoles = ports.iter().map(|(console, port)| ConsoleTransport {
            console: console.parse().unwrap(),
            end: Endpoint::Tty((*port).to_owned()),
            baud: None,
            timeout: None,
            ready: None,
            capture: None,
        });
        Place { consoles: consoles.collect(), ..place }
    }

    #[test]
    fn one_device_under_two_names_is_refused_if_it_is_there() {
        // A link leads to its device, a device to itself; `/dev/gone` is not there.
        let resolve = |path: &Path| match path.to_str().unwrap() {
            "/dev/by-id/a" | "/dev/by-path/a" | "/dev/ttyUSB0" => Some("/dev/ttyUSB0".into()),
            "/dev/gone" | "/dev/by-id/gone" => None,
            other => Some(PathBuf::from(other)),
        };
        for (own, other, words) in [
            (vec![("uart0", "/dev/ttyUSB0")], vec![("uart0", "/dev/ttyUSB1")], None),
            (
                vec![("uart0", "/dev/ttyUSB0")],
                vec![("log", "/dev/by-id/a")],
                Some(
                    "place own, console uart0 (/dev/ttyUSB0) and place other, console log (/dev/by-id/a)",
                ),
            ),
            (
                vec![("uart0", "/dev/by-path/a")],
                vec![("uart0", "/dev/by-id/a")],
                Some("are the same device, /dev/ttyUSB0"),
            ),
            (vec![("uart0", "/dev/gone")], vec![("uart0", "/dev/by-id/gone")], None),
            (
                vec![("uart0", "/dev/ttyUSB0"), ("uart1", "/dev/by-id/a")],
                vec![],
                Some("place own, console uart0 (/dev/ttyUSB0) and place own, console uart1"),
            ),
        ] {
            let (own, other) = (place("own", &own), place("other", &other));
            let found = unshared(&own, [&own, &other].into_iter(), &resolve);
            match words {
                None => assert!(found.is_ok(), "{own:?} {other:?}"),
                Some(words) => {
                    let text = found.unwrap_err().to_string();
                    assert!(text.contains(words), "{text}");
                }
            }
        }
    }
}
