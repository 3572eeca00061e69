//! How an image gets onto a board at a place.

use super::{EmulatorDeploy, Place, ProbePart};
use crate::profile::{BoardProfile, Deploy, DeployPart, Emulation, FlashCommand};

impl FlashCommand {
    /// Tells whether a place has what the placeholders stand for.
    pub fn can_be_filled(&self, place: &Place) -> bool {
        let serial = place.probe.as_ref().and_then(ProbePart::serial);
        (serial.is_some() || !self.uses(&DeployPart::Serial))
            && (place.flasher_port().is_some() || !self.uses(&DeployPart::Port))
    }
}

impl BoardProfile {
    /// Returns how an image gets onto this board at a place; nothing where nothing there can
    /// put one on it.
    ///
    /// What the place says wins, then what the profile says, as far as it can be done there:
    /// no emulator has a loader for a real board, no external program reaches into an
    /// emulator, and a program that needs a serial number or a port needs a part that has one.
    pub fn deploy_at(&self, place: &Place) -> Option<Deploy> {
        if let Some(emulator) = &place.emulator {
            return Some(match (emulator.deploy, &self.deploy) {
                (Some(EmulatorDeploy::Probe), _) => Deploy::Probe,
                (Some(EmulatorDeploy::Loader), _) => Deploy::EmulatorLoader,
                (None, Some(Deploy::Command(_) | Deploy::Volume(_)) | None) => {
                    default_of(self.emulation.as_ref())
                }
                (None, Some(said)) => said.clone(),
            });
        }
        let copy_of_profile = match &self.deploy {
            Some(Deploy::Volume(copy)) => Some(copy),
            _ => None,
        };
        if let Some(volume) = place.flasher.as_ref().and_then(|flasher| flasher.volume.as_ref()) {
            return Some(Deploy::Volume(volume.over(copy_of_profile)));
        }
        let said = place.flasher.as_ref().and_then(|flasher| flasher.command.as_ref());
        let of_profile = match &self.deploy {
            Some(Deploy::Command(command)) => Some(command),
            _ => None,
        };
        match said.or(of_profile) {
            Some(command) if place.has_probe() || command.can_be_filled(place) => {
                Some(Deploy::Command(command.clone()))
            }
            Some(_) => None,
            None if copy_of_profile.is_some() => copy_of_profile.cloned().map(Deploy::Volume),
            None => place.has_probe().then_some(Deploy::Probe),
        }
    }
}

fn default_of(emulation: Option<&Emulation>) -> Deploy {
    match emulation {
        Some(emulation) if emulation.image_set.is_some() => Deploy::ImageSet,
        Some(_) | None => Deploy::EmulatorLoader,
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::flasher::{VolumeChoice, VolumeCopy, VolumeFormat};
    use crate::profile::tests::shipped;
    use crate::rig_file::{ConsoleTransport, EmulatorPart, Endpoint, FlasherPart};

    fn place() -> Place {
        Place::new("p".parse().unwrap(), "b".parse().unwrap())
    }

    #[test]
    fn boards_that_say_nothing_are_deployed_as_their_place_suggests() {
        let probe = place().with_probe(ProbePart::default());
        for profile in shipped() {
            assert_eq!(profile.deploy, None, "{}", profile.id);
            let emulated = profile.deploy_at(&place().with_emulator(EmulatorPart::default()));
            let boots_alone = profile.emulation.as_ref().unwrap().image_set.is_some();
            let wanted = if boots_alone { Deploy::ImageSet } else { Deploy::EmulatorLoader };
            assert_eq!(emulated, Some(wanted), "{}", profile.id);
            assert_eq!(profile.deploy_at(&probe), Some(Deploy::Probe));
            assert_eq!(profile.deploy_at(&place()), None);
        }
    }

    fn program(argv: &[&str]) -> FlashCommand {
        FlashCommand::new(argv.iter().map(|&arg| arg.to_owned()).collect())
    }

    #[test]
    fn a_place_wins_over_its_profile_where_it_can() {
        let command = program(&["dfu-util", "-D", "{image}"]);
        let of_profile = Deploy::Command(command.clone());
        let own = program(&["esptool", "write_flash", "{image}"]);
        let emulator =
            |deploy| place().with_emulator(EmulatorPart { deploy, ..Default::default() });
        let probe = place().with_probe(ProbePart::default());
        let flasher = FlasherPart { command: Some(own.clone()), ..FlasherPart::default() };
        let with_own = Place { flasher: Some(flasher), ..place() };
        let mut profile = shipped().into_iter().find(|p| p.chip.is_some()).unwrap();
        let (by_probe, by_loader) = (Some(EmulatorDeploy::Probe), Some(EmulatorDeploy::Loader));
        for (said, place, wanted) in [
            (Some(Deploy::Probe), emulator(None), Deploy::Probe),
            (Some(Deploy::Probe), emulator(by_loader), Deploy::EmulatorLoader),
            (None, emulator(by_probe), Deploy::Probe),
            (Some(of_profile.clone()), emulator(None), Deploy::EmulatorLoader),
            (Some(of_profile.clone()), probe.clone(), of_profile.clone()),
            (Some(of_profile.clone()), place(), of_profile.clone()),
            (Some(of_profile), with_own.clone(), Deploy::Command(own.clone())),
            (None, with_own, Deploy::Command(own)),
            (Some(Deploy::EmulatorLoader), probe, Deploy::Probe),
        ] {
            profile.deploy = said;
            assert_eq!(profile.deploy_at(&place), Some(wanted));
        }
    }

    #[test]
    fn a_volume_of_the_profile_is_used_where_the_place_names_no_flasher() {
        let copy = |volume: &str, format, family, seconds| VolumeCopy {
            volume: volume.to_owned(),
            format,
            family,
            timeout: Duration::from_secs(seconds),
            touch: Some(Duration::from_secs(3)),
        };
        let named = |volume: &str| VolumeChoice {
            volume: volume.to_owned(),
            format: None,
            family: None,
            timeout: None,
            touch: None,
        };
        let with = |volume: VolumeChoice| {
            let flasher = FlasherPart { volume: Some(volume), ..FlasherPart::default() };
            Place { flasher: Some(flasher), ..place() }
        };
        let of_profile = copy("RPI-RP2", VolumeFormat::Uf2, Some(7), 9);
        let mut profile = shipped().remove(0);
        profile.deploy = Some(Deploy::Volume(of_profile.clone()));
        let other = copy("/mnt/b", VolumeFormat::Uf2, Some(7), 9);
        let hex = VolumeChoice { format: Some(VolumeFormat::Hex), ..named("MICROBIT") };
        let family = VolumeChoice { family: Some(1), ..named("/mnt/b") };
        let probe = place().with_probe(ProbePart::default());
        for (place, wanted) in [
            (place(), of_profile.clone()),
            (probe, of_profile),
            (with(named("/mnt/b")), other),
            (with(hex), copy("MICROBIT", VolumeFormat::Hex, None, 9)),
            (with(family.clone()), copy("/mnt/b", VolumeFormat::Uf2, Some(1), 9)),
        ] {
            assert_eq!(profile.deploy_at(&place), Some(Deploy::Volume(wanted)));
        }
        let own = FlasherPart { command: Some(program(&["f", "{image}"])), ..Default::default() };
        let with_own = Place { flasher: Some(own), ..place() };
        assert_eq!(profile.deploy_at(&with_own), Some(Deploy::Command(program(&["f", "{image}"]))));
        let emulated = place().with_emulator(EmulatorPart::default());
        assert!(!matches!(profile.deploy_at(&emulated), Some(Deploy::Volume(_))));
        profile.deploy = None;
        let untouched = |copy: VolumeCopy| VolumeCopy { touch: None, ..copy };
        let alone = untouched(copy("/mnt/b", VolumeFormat::Hex, None, 60));
        let uf2 = untouched(copy("/mnt/b", VolumeFormat::Uf2, Some(1), 60));
        assert_eq!(profile.deploy_at(&with(named("/mnt/b"))), Some(Deploy::Volume(alone)));
        assert_eq!(profile.deploy_at(&with(family)), Some(Deploy::Volume(uf2)));
    }

    #[test]
    fn a_program_that_a_place_cannot_fill_flashes_nothing_there() {
        let mut profile = shipped().remove(0);
        let console = |path: &str| ConsoleTransport {
            console: "uart0".parse().unwrap(),
            end: Endpoint::Tty(path.to_owned()),
            baud: None,
            timeout: None,
            ready: None,
            capture: None,
        };
        let with_console = Place { consoles: vec![console("/dev/ttyUSB0")], ..place() };
        let by_port = program(&["esptool", "--port", "{port}", "{image}"]);
        profile.deploy = Some(Deploy::Command(by_port.clone()));
        assert_eq!(profile.deploy_at(&place()), None);
        assert_eq!(with_console.flasher_port(), Some("/dev/ttyUSB0"));
        assert_eq!(profile.deploy_at(&with_console), Some(Deploy::Command(by_port)));
        profile.deploy = Some(Deploy::Command(program(&["f", "{serial}", "{image}"])));
        assert_eq!(profile.deploy_at(&with_console), None);
    }
}
