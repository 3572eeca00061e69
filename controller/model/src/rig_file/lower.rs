//! From the texts of a rig's files to the rig.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::time::Duration;

use super::claims::Claims;
use super::known_boards::KnownBoards;
use super::power::Devices;
use super::raw::{RawCanary, RawEmulator, RawHub, RawPlace, RawProbe, RawRig, RawRuns};
use super::{
    Canary, CaptureLimits, EmulatorPart, Hub, KnowledgeSettings, Network, Place, ProbePart, Rig,
    RunStorage, ServeSettings, access, capture, checks, console_transports, flasher, knowledge,
    leases, power, reset, serve,
};
use crate::access::AccessRule;
use crate::chip::{ChipSource, NoChips};
use crate::document::{Findings, Located, document_schema, open};
use crate::lease::LeasePolicy;
use crate::power::{PowerDevice, RawPower, SECRET};
use crate::profile::{BoardProfile, ProfileSource};
use crate::{DeviceName, PlaceName, Problems};

const KIND: &str = "rig file";
const VERSION: u32 = 1;

/// Shorter than a minute would remove runs that a user still looks at; ten years is for ever.
const KEEP_RANGE: RangeInclusive<Duration> =
    Duration::from_secs(60)..=Duration::from_secs(3650 * 86_400);

/// Less than one run's logs may take would remove every run at once.
const LEAST_KEEP_SIZE: u64 = 1 << 20;

/// One file of a rig as it was found, before it is read.
#[derive(Debug, Clone, Copy)]
pub struct RigText<'a> {
    /// Where it came from: its path.
    pub origin: &'a str,
    /// The text.
    pub text: &'a str,
}

/// What earlier files of the rig have said.
#[derive(Default)]
struct Earlier {
    /// Each place, and the file it stands in.
    places: BTreeMap<PlaceName, String>,
    /// Each power device, and the file it stands in.
    power: BTreeMap<DeviceName, String>,
    /// Each hub, and the file it stands in.
    hubs: BTreeMap<DeviceName, String>,
    /// The file that says where runs are kept.
    runs: Option<String>,
    /// The file that says how much is kept between runs.
    capture: Option<String>,
    /// The file that says who goes first.
    leases: Option<String>,
    /// The file that says how the service runs.
    serve: Option<String>,
    /// What each place has to itself.
    claims: Claims,
    /// The file that says what is learnt.
    knowledge: Option<String>,
}

/// What one file says.
struct LoweredFile {
    places: Vec<Place>,
    power: Vec<PowerDevice>,
    hubs: Vec<Hub>,
    runs: Option<RunStorage>,
    capture: Option<CaptureLimits>,
    leases: Option<LeasePolicy>,
    serve: Option<ServeSettings>,
    knowledge: Option<KnowledgeSettings>,
    access: Vec<AccessRule>,
}

impl Rig {
    /// Reads a rig from its main file and its drop-ins, in this order: drop-ins add places.
    ///
    /// # Errors
    /// Every problem of every file.
    pub fn parse<'a>(
        files: impl IntoIterator<Item = RigText<'a>>,
        profiles: &[BoardProfile],
    ) -> Result<Self, Vec<Problems>> {
        Self::parse_with(files, &profiles, &NoChips)
    }

    /// Reads a rig as [`Rig::parse`] does; places may name chips, too, as `chip:NAME`.
    ///
    /// # Errors
    /// Every problem of every file.
    pub fn parse_with<'a>(
        files: impl IntoIterator<Item = RigText<'a>>,
        profiles: &dyn ProfileSource,
        chips: &dyn ChipSource,
    ) -> Result<Self, Vec<Problems>> {
        let boards = KnownBoards { profiles, chips };
        let files: Vec<RigText<'_>> = files.into_iter().collect();
        let devices = all_devices(&files);
        let mut rig = Self::default();
        let mut earlier = Earlier::default();
        let mut problems = Vec::new();
        for file in files {
            match parse_file(file, &devices, boards, &mut earlier) {
                Ok(file) => {
                    let LoweredFile {
                        places,
                        power,
                        hubs,
                        runs,
                        capture,
                        leases,
                        serve,
                        knowledge,
                        access,
                    } = file;
                    rig.access.rules.extend(access);
                    rig.places.extend(places);
                    rig.hubs.extend(hubs);
                    rig.power.extend(power);
                    rig.runs = runs.unwrap_or(rig.runs);
                    rig.capture = capture.unwrap_or(rig.capture);
                    rig.leases = leases.unwrap_or(rig.leases);
                    rig.serve = serve.unwrap_or(rig.serve);
                    rig.knowledge = knowledge.unwrap_or(rig.knowledge);
                }
                Err(bad) => problems.push(without_secrets(bad)),
            }
        }
        if problems.is_empty() { Ok(rig) } else { Err(problems) }
    }

    /// Returns the JSON Schema of rig files, as committed in `board-profiles/rig.schema.json`.
    pub fn json_schema() -> String {
        document_schema::<RawRig>("Jig rig file")
    }
}

/// Looks what power devices there are, because a place may stand in an earlier file than the
/// device it names. What is wrong with them is found when their own file is read.
fn all_devices(files: &[RigText<'_>]) -> Devices {
    let raw = files
        .iter()
        .filter_map(|file| open::<RawRig>(KIND, VERSION, file.text, &Findings::new())?.value.power);
    let list: Vec<_> = raw.flat_map(|list| list.value).collect();
    power::devices(list.iter().map(|power| &power.value))
}

/// Blanks out secrets that stand in the file: what is reported is shown, logged and pasted.
fn without_secrets(mut problems: Problems) -> Problems {
    for problem in problems.list.iter().filter(|problem| problem.check == SECRET) {
        let Some(span) = problem.span.clone() else { continue };
        if let Some(secret) = problems.source.get(span.clone()) {
            let blank: String =
                secret.bytes().map(|b| if b == b'\n' { '\n' } else { '*' }).collect();
            problems.source.replace_range(span, &blank);
        }
    }
    problems
}

fn parse_file(
    RigText { origin, text }: RigText<'_>,
    devices: &Devices,
    boards: KnownBoards<'_>,
    earlier: &mut Earlier,
) -> Result<LoweredFile, Problems> {
    let findings = Findings::new();
    let raw = open::<RawRig>(KIND, VERSION, text, &findings);
    let lowered = raw.and_then(|raw| {
        let runs = raw.value.runs.map(|runs| {
            once(&runs, origin, &mut earlier.runs, "rig::runs-twice", &findings);
            lower_runs(runs.value, origin, &findings)
        });
        let capture = raw.value.capture.map(|capture| {
            once(&capture, origin, &mut earlier.capture, "rig::capture-twice", &findings);
            capture::lower(capture.value, origin, &findings)
        });
        let leases = raw.value.leases.map(|leases| {
            once(&leases, origin, &mut earlier.leases, "rig::leases-twice", &findings);
            leases::lower(leases.value, &findings)
        });
        let serve = raw.value.serve.map(|table| {
            once(&table, origin, &mut earlier.serve, "rig::serve-twice", &findings);
            serve::lower(table.value, &findings)
        });
        let knowledge = raw.value.knowledge.map(|table| {
            once(&table, origin, &mut earlier.knowledge, "rig::knowledge-twice", &findings);
            knowledge::lower(table.value, &findings)
        });
        let access = raw.value.access.map(|list| list.value).unwrap_or_default().into_iter();
        let access: Vec<Option<AccessRule>> =
            access.map(|rule| access::lower(rule, (origin, text), &findings)).collect();
        let places = raw.value.place.map(|list| list.value).unwrap_or_default();
        let places: Vec<Option<Place>> = places
            .into_iter()
            .map(|place| {
                check_name(&place.value, origin, earlier, &findings);
                let board = checks::run(&place, devices, boards, &findings);
                let file = (origin, text);
                earlier.claims.claim(&place.value, board.as_deref(), file, &findings);
                lower_place(place.value, devices, origin)
            })
            .collect();
        let list = raw.value.power.map(|list| list.value).unwrap_or_default();
        let power: Vec<Option<PowerDevice>> = list
            .iter()
            .map(|device| {
                check_device_name(&device.value, origin, earlier, &findings);
                power::check_device(device, &findings);
                power::lower_device(&device.value, origin)
            })
            .collect();
        let list = raw.value.hub.map(|list| list.value).unwrap_or_default();
        let hubs: Vec<Option<Hub>> = list
            .into_iter()
            .map(|hub| {
                check_hub_name(&hub.value, origin, earlier, &findings);
                lower_hub(hub.value, devices, &findings)
            })
            .collect();
        Some(LoweredFile {
            hubs: hubs.into_iter().collect::<Option<_>>()?,
            places: places.into_iter().collect::<Option<_>>()?,
            power: power.into_iter().collect::<Option<_>>()?,
            runs,
            capture,
            leases,
            serve,
            knowledge,
            access: access.into_iter().collect::<Option<_>>()?,
        })
    });
    findings.finish(KIND, origin, text, lowered)
}

/// Names a file in a message about a problem in another file or in the same one.
fn which(earlier: &str, origin: &str) -> String {
    if earlier == origin { format!("{origin} itself") } else { earlier.to_owned() }
}

/// Checks that a table that stands once in a rig has not been met before.
fn once<T>(
    table: &Located<T>,
    origin: &str,
    earlier: &mut Option<String>,
    check: &'static str,
    findings: &Findings,
) {
    let (what, name) = match check {
        "rig::runs-twice" => ("where runs are kept", "[runs]"),
        "rig::leases-twice" => ("who goes first", "[leases]"),
        "rig::serve-twice" => ("how the service runs", "[serve]"),
        "rig::knowledge-twice" => ("what is learnt", "[knowledge]"),
        _ => ("how much is kept between runs", "[capture]"),
    };
    match earlier {
        Some(other) => findings.add(
            check,
            table.at(),
            format!("{origin} says {what}, but {} does so already", which(other, origin)),
            format!("keep `{name}` in one file"),
        ),
        None => *earlier = Some(origin.to_owned()),
    }
}

fn check_name(place: &RawPlace, origin: &str, earlier: &mut Earlier, findings: &Findings) {
    let Some(name) = &place.name else { return };
    if name.value.chip().is_some() {
        let message = "a place cannot be named as a chip is";
        let help = "give it a name of its own, such as \"bench-1\", and the chip in `board`";
        findings.add("rig::place-name", name.at(), message, help);
    }
    match earlier.places.get(&name.value) {
        Some(other) => findings.add(
            "rig::place-twice",
            name.at(),
            format!(
                "place {:?} of {origin} is also declared in {}",
                name.value.as_str(),
                which(other, origin)
            ),
            "rename or remove one of the two",
        ),
        None => {
            earlier.places.insert(name.value.clone(), origin.to_owned());
        }
    }
}

fn check_device_name(device: &RawPower, origin: &str, earlier: &mut Earlier, findings: &Findings) {
    let Some(name) = &device.name else { return };
    if let Some(other) = earlier.power.insert(name.value.clone(), origin.to_owned()) {
        findings.add(
            "rig::power-twice",
            name.at(),
            format!(
                "power device {:?} of {origin} is also declared in {}",
                name.value.as_str(),
                which(&other, origin)
            ),
            "rename or remove one of the two",
        );
    }
}

fn check_hub_name(hub: &RawHub, origin: &str, earlier: &mut Earlier, findings: &Findings) {
    let Some(name) = &hub.name else { return };
    if let Some(other) = earlier.hubs.insert(name.value.clone(), origin.to_owned()) {
        let (name_text, other) = (name.value.as_str(), which(&other, origin));
        let message = format!("hub {name_text:?} of {origin} is also declared in {other}");
        findings.add("rig::hub-twice", name.at(), message, "rename or remove one of the two");
    }
}

fn lower_hub(raw: RawHub, devices: &Devices, findings: &Findings) -> Option<Hub> {
    let power = raw.power?;
    power::check_hub_outlet(&power, devices, findings);
    Some(Hub { name: raw.name?.value, power: power::lower_outlet(power.value, devices)? })
}

/// Lowers what the checks have passed; `None` only where something was reported.
fn lower_place(raw: RawPlace, devices: &Devices, origin: &str) -> Option<Place> {
    let flasher = raw.flasher.as_ref().map(|flasher| flasher::lower(&flasher.value));
    let power = match raw.power {
        Some(power) => Some(power::lower_outlet(power.value, devices)?),
        None => None,
    };
    Some(Place {
        name: raw.name?.value,
        board: raw.board?.value,
        tags: raw.tags.into_iter().flat_map(|tags| tags.value).map(|tag| tag.value).collect(),
        emulator: raw.emulator.map(|emulator| lower_emulator(emulator.value)),
        probe: match raw.probe {
            Some(probe) => Some(lower_probe(probe.value)?),
            None => None,
        },
        consoles: console_transports::lower(raw.console)?,
        power,
        reset: match raw.reset {
            Some(reset) => Some(reset::lower(reset.value, devices)?),
            None => None,
        },
        flasher,
        hub: raw.hub.map(|hub| hub.value),
        canary: match raw.canary {
            Some(canary) => Some(lower_canary(canary.value)?),
            None => None,
        },
        shell: match raw.shell {
            Some(shell) => Some(crate::shell::lower(shell.value)?),
            None => None,
        },
        network: raw.network.map_or_else(Network::default, |network| Network {
            tcp: network.value.tcp.map(|at| at.value),
            ssh: network.value.ssh.map(|at| at.value),
        }),
        strict: raw.strict.map(|strict| strict.value).unwrap_or_default(),
        origin: origin.to_owned(),
    })
}

fn lower_emulator(raw: RawEmulator) -> EmulatorPart {
    let args = raw.args.map(|args| args.value).unwrap_or_default();
    EmulatorPart {
        args: args.into_iter().map(|arg| arg.value).collect(),
        deploy: raw.deploy.map(|deploy| deploy.value),
    }
}

fn lower_probe(raw: RawProbe) -> Option<ProbePart> {
    Some(ProbePart {
        selector: raw.selector?.value,
        chip: raw.chip.map(|chip| chip.value),
        speed_khz: raw.speed_khz.map(|speed| speed.value),
        protocol: raw.protocol.map(|protocol| protocol.value),
        under_reset: raw.under_reset.is_some_and(|under| under.value),
        port: raw.port.map(|port| port.value),
    })
}

/// A canary is a small test; half a minute is long for one.
const CANARY: Duration = Duration::from_secs(30);

fn lower_canary(raw: RawCanary) -> Option<Canary> {
    Some(Canary {
        image: PathBuf::from(raw.image?.value),
        until: raw.until.map(|until| until.value),
        timeout: raw.timeout.map_or(CANARY, |time| time.value),
    })
}

fn lower_runs(raw: RawRuns, origin: &str, findings: &Findings) -> RunStorage {
    if let Some(dir) = raw.dir.as_ref().filter(|d| d.value.is_empty() || d.value.contains('\0')) {
        let help = "name a directory, or remove the line";
        findings.add("rig::runs-dir", dir.at(), "`dir` is no directory name", help);
    }
    if let Some(keep) = raw.keep.as_ref().filter(|keep| !KEEP_RANGE.contains(&keep.value)) {
        let help = "use \"1m\" to \"3650d\", or remove the line to keep runs for ever";
        findings.add("rig::runs-keep", keep.at(), "runs cannot be kept that short or long", help);
    }
    if let Some(size) = raw.keep_size.as_ref().filter(|size| size.value.0 < LEAST_KEEP_SIZE) {
        let help = "use \"1M\" or more, or remove the line to keep all";
        findings.add("rig::runs-keep-size", size.at(), "so little space holds no run", help);
    }
    RunStorage {
        dir: raw.dir.map(|dir| PathBuf::from(dir.value)),
        keep: raw.keep.map(|keep| keep.value),
        keep_size: raw.keep_size.map(|size| size.value.0),
        origin: Some(origin.to_owned()),
    }
}
