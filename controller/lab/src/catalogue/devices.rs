//! One serial port under two names: two places, or two consoles, that would share it.
//!
//! A port has a name of its own (`/dev/ttyUSB0`) and links to it (`/dev/serial/by-id/...`). The rig
//! file is read without a look at the host, so only the same text is refused there. What the names
//! lead to is looked at when a place is bound, when the file is checked and when consoles are captured,
//! and only of devices that are there then.

use std::ops::Range;
use std::path::{Path, PathBuf};

use jig_model::rig_file::{Endpoint, Place, Rig};
use jig_model::{ConsoleName, PlaceName};

/// Says which two consoles end at the same port.
#[derive(Debug, thiserror::Error)]
#[error(
    "{at}place {place}, console {console} ({}) and place {other_place}, console {other_console} ({}) \
     are the same device, {}",
    name.display(), other_name.display(), device.display()
)]
pub struct SharedPort {
    /// Where in a rig file the name stands, with a colon; empty if that is not known.
    at: String,
    place: PlaceName,
    console: ConsoleName,
    name: PathBuf,
    other_place: PlaceName,
    other_console: ConsoleName,
    other_name: PathBuf,
    device: PathBuf,
}

impl SharedPort {
    fn new(own: Port<'_>, other: &Port<'_>) -> Self {
        Self {
            at: String::new(),
            place: own.place.clone(),
            console: own.console.clone(),
            name: own.name.to_owned(),
            other_place: other.place.clone(),
            other_console: other.console.clone(),
            other_name: other.name.to_owned(),
            device: own.device,
        }
    }

    /// Returns the console that shares the port with an earlier one.
    pub fn console(&self) -> (&PlaceName, &ConsoleName) {
        (&self.place, &self.console)
    }

    /// Adds where in these rig files, each with its origin, the name of the port stands.
    pub(super) fn located(mut self, mut files: impl Iterator<Item = (String, String)>) -> Self {
        let line = |(origin, text): (String, String)| {
            let start = self.span_in(&text)?.start;
            let line = 1 + text.get(..start)?.matches('\n').count();
            Some(format!("{origin}:{line}: "))
        };
        self.at = files.find_map(line).unwrap_or_default();
        self
    }

    /// Finds the name of the port in the text of a rig file.
    pub fn span_in(&self, text: &str) -> Option<Range<usize>> {
        let name = self.name.to_str()?;
        let quoted = [format!("\"{name}\""), format!("'{name}'")];
        quoted.iter().find_map(|name| text.find(name).map(|at| at..at + name.len()))
    }
}

/// Lists the consoles of a rig that end at the port of an earlier one.
pub fn shared_ports(rig: &Rig) -> Vec<SharedPort> {
    shared(&rig.places, &|path| std::fs::canonicalize(path).ok())
}

fn shared(places: &[Place], resolve: &dyn Fn(&Path) -> Option<PathBuf>) -> Vec<SharedPort> {
    let mut seen: Vec<Port<'_>> = Vec::new();
    let mut found = Vec::new();
    for port in places.iter().flat_map(|place| ports(place, resolve)) {
        match seen.iter().find(|other| other.device == port.device) {
            Some(other) => found.push(SharedPort::new(port, other)),
            None => seen.push(port),
        }
    }
    found
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
            return Err(Box::new(SharedPort::new(own, &other)));
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
    fn each_console_that_shares_a_port_is_listed_once() {
        let resolve = |path: &Path| match path.to_str().unwrap() {
            "/dev/by-id/a" => Some("/dev/ttyUSB0".into()),
            other => Some(PathBuf::from(other)),
        };
        let one = place("one", &[("uart0", "/dev/ttyUSB0"), ("log", "/dev/ttyUSB1")]);
        let two = place("two", &[("uart0", "/dev/by-id/a")]);
        let found = shared(&[one, two], &resolve);
        let [shared] = &found[..] else { panic!("{found:?}") };
        assert_eq!((shared.console().0.as_str(), shared.console().1.as_str()), ("two", "uart0"));
        let text = "tty = '/dev/ttyUSB0'\ntty = '/dev/by-id/a'\n";
        assert_eq!(shared.span_in(text), Some(27..41));
        assert_eq!(shared.span_in("tty = '/dev/by-id/ab'"), None);
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
