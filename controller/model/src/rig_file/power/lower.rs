//! From the tables of a power device to the device. Checks have run before.

use std::path::PathBuf;
use std::time::Duration;

use super::raw::{
    RawHttp, RawModbus, RawPlacePower, RawPower, RawSense, RawSnmp, Secret, SenseWord,
};
use crate::DeviceName;
use crate::document::Located;
use crate::pattern::Pattern;
use crate::power::{
    CommandPower, GpioPower, HttpAuth, HttpCall, HttpFacts, HttpMethod, HttpPower, IpmiPower,
    ManualPower, ModbusLink, ModbusPower, OutletRule, Parity, PduDaemonPower, PlacePower,
    PlaceSense, PowerDevice, PowerDriver, RedfishPower, RelayPower, SecretSource, SenseOutlet,
    SerialLine, SnmpAuth, SnmpFacts, SnmpPower, SnmpPrivacy, SnmpSecurity, SnmpVersion, TlsTrust,
    UsbHubPower, host_and_port,
};

/// What a program or a web interface may say, if nobody knows better.
const SAYS_ON: &str = r"(?i)\b(on|1|true)\b";
const SAYS_OFF: &str = r"(?i)\b(off|0|false)\b";

/// How long a board stays off. Two seconds empty the capacitors of most; what needs more
/// says so.
const OFF_TIME: Duration = Duration::from_secs(2);

/// Speed of the relay boards and Modbus devices as they are delivered.
const BAUD: u32 = 9600;

/// What is usual for a kind of device.
struct Usual {
    min_interval: Duration,
    timeout: Duration,
    settle: Duration,
}

fn usual(driver: &PowerDriver) -> Usual {
    let of = |min_interval_ms, timeout_s, settle_s| Usual {
        min_interval: Duration::from_millis(min_interval_ms),
        timeout: Duration::from_secs(timeout_s),
        settle: Duration::from_secs(settle_s),
    };
    match driver {
        // Small controllers answer one thing at a time and drop the next.
        PowerDriver::Http(_) | PowerDriver::Snmp(_) => of(200, 10, 5),
        PowerDriver::Relay(_) | PowerDriver::Modbus(_) => of(50, 5, 2),
        // The daemon has a queue of its own; it retries five times, five seconds apart.
        PowerDriver::PduDaemon(_) => of(0, 40, 0),
        // A controller takes its time to switch off: seconds are usual, half a minute is seen.
        PowerDriver::Redfish(_) => of(0, 20, 60),
        PowerDriver::Ipmi(_) => of(100, 20, 60),
        PowerDriver::Command(_) => of(0, 30, 5),
        PowerDriver::Gpio(_) | PowerDriver::UsbHub(_) => of(0, 5, 2),
        // Somebody has to come.
        PowerDriver::Manual(_) => of(0, 300, 0),
    }
}

/// Lowers a device; nothing where something of it was reported.
pub(in super::super) fn lower_device(raw: &RawPower, origin: &str) -> Option<PowerDevice> {
    let name = raw.name.as_ref()?.value.clone();
    let driver = lower_driver(raw)?;
    let usual = usual(&driver);
    let said = |time: &Option<Located<Duration>>| time.as_ref().map(|time| time.value);
    Some(PowerDevice {
        name,
        min_interval: said(&raw.min_interval).unwrap_or(usual.min_interval),
        off_time: said(&raw.off_time).unwrap_or(OFF_TIME),
        timeout: said(&raw.timeout).unwrap_or(usual.timeout),
        settle: said(&raw.settle).unwrap_or(usual.settle),
        driver,
        origin: origin.to_owned(),
    })
}

/// Lowers what a place says of its power.
pub(in super::super) fn lower_outlet(
    raw: RawPlacePower,
    devices: &super::Devices,
) -> Option<PlacePower> {
    let device = raw.device?.value;
    let outlet = outlet_of(&device, raw.outlet, devices);
    let sense = match raw.sense {
        Some(sense) => Some(match sense.value {
            RawSense::Word(SenseWord::DebugPort) => PlaceSense::DebugPort,
            RawSense::Word(SenseWord::Console) => PlaceSense::Console,
            RawSense::Word(SenseWord::Absent) => PlaceSense::Absent,
            RawSense::Outlet(other) => {
                let device = other.device?.value;
                let outlet = outlet_of(&device, other.outlet, devices);
                PlaceSense::Outlet(SenseOutlet { device, outlet })
            }
        }),
        None => None,
    };
    Some(PlacePower { device, outlet, off_time: raw.off_time.map(|time| time.value), sense })
}

/// Lowers an outlet that resets a place.
pub(in super::super) fn lower_reset_outlet(
    device: Located<DeviceName>,
    outlet: Option<Located<String>>,
    off_time: Option<Duration>,
    devices: &super::Devices,
) -> Option<PlacePower> {
    let device = device.value;
    let outlet = outlet_of(&device, outlet, devices);
    Some(PlacePower { device, outlet, off_time, sense: None })
}

/// Gives an outlet its one name, or two places on it would not know of each other.
fn outlet_of(
    device: &DeviceName,
    outlet: Option<Located<String>>,
    devices: &super::Devices,
) -> String {
    let outlet = outlet.map(|outlet| outlet.value).unwrap_or_default();
    match devices.get(device) {
        Some(Some(OutletRule::Numbers(_) | OutletRule::Dotted)) => {
            let plain = |part: &str| match part.trim_start_matches('0') {
                "" => "0".to_owned(),
                digits => digits.to_owned(),
            };
            outlet.split('.').map(plain).collect::<Vec<_>>().join(".")
        }
        _ => outlet,
    }
}

fn text(value: &Option<Located<String>>) -> Option<String> {
    value.as_ref().map(|value| value.value.clone())
}

fn secret(value: &Option<Located<Secret>>) -> Option<SecretSource> {
    value.as_ref().map(|secret| secret.value.0.clone())
}

fn pattern(said: &Option<Located<Pattern>>, otherwise: &str) -> Option<Pattern> {
    match said {
        Some(said) => Some(said.value.clone()),
        None => Pattern::new(otherwise).ok(),
    }
}

fn trust(ca: &Option<Located<String>>, insecure: &Option<Located<bool>>) -> TlsTrust {
    match (ca, insecure.as_ref().is_some_and(|insecure| insecure.value)) {
        (_, true) => TlsTrust::Anything,
        (Some(ca), false) => TlsTrust::File(PathBuf::from(&ca.value)),
        (None, false) => TlsTrust::System,
    }
}

fn line(
    port: &Option<Located<String>>,
    baud: &Option<Located<u32>>,
    parity: Parity,
) -> Option<SerialLine> {
    let port = PathBuf::from(&port.as_ref()?.value);
    Some(SerialLine { port, baud: baud.as_ref().map_or(BAUD, |baud| baud.value), parity })
}

fn lower_driver(raw: &RawPower) -> Option<PowerDriver> {
    if let Some(command) = &raw.command {
        let raw = &command.value;
        let argv = |list: &Located<Vec<Located<String>>>| {
            list.value.iter().map(|arg| arg.value.clone()).collect::<Vec<_>>()
        };
        return Some(PowerDriver::Command(CommandPower {
            set: raw.set.as_ref().map(argv).filter(|argv| !argv.is_empty())?,
            status: raw.status.as_ref().map(argv),
            words: words(&raw.on, &raw.off, ("on", "off")),
            says: (pattern(&raw.status_on, SAYS_ON)?, pattern(&raw.status_off, SAYS_OFF)?),
        }));
    }
    if let Some(http) = &raw.http {
        return lower_http(&http.value).map(PowerDriver::Http);
    }
    if let Some(daemon) = &raw.pdudaemon {
        let raw = &daemon.value;
        return Some(PowerDriver::PduDaemon(PduDaemonPower {
            url: raw.url.as_ref()?.value.parse().ok()?,
            hostname: text(&raw.hostname)?,
            tls: trust(&raw.ca, &raw.insecure),
        }));
    }
    if let Some(relay) = &raw.relay {
        let raw = &relay.value;
        return Some(PowerDriver::Relay(RelayPower {
            line: line(&raw.port, &raw.baud, Parity::None)?,
            protocol: raw.protocol.as_ref()?.value,
        }));
    }
    if let Some(modbus) = &raw.modbus {
        return lower_modbus(&modbus.value).map(PowerDriver::Modbus);
    }
    if let Some(snmp) = &raw.snmp {
        return lower_snmp(&snmp.value).map(PowerDriver::Snmp);
    }
    if let Some(redfish) = &raw.redfish {
        let raw = &redfish.value;
        return Some(PowerDriver::Redfish(RedfishPower {
            url: raw.url.as_ref()?.value.parse().ok()?,
            user: text(&raw.user),
            password: secret(&raw.password),
            tls: trust(&raw.ca, &raw.insecure),
        }));
    }
    if let Some(ipmi) = &raw.ipmi {
        let raw = &ipmi.value;
        // IANA has given 623 to it.
        let (host, port) = host_and_port(&raw.address.as_ref()?.value, 623)?;
        return Some(PowerDriver::Ipmi(IpmiPower {
            host,
            port,
            user: text(&raw.user)?,
            password: secret(&raw.password)?,
            cipher_suite: raw.cipher_suite.as_ref().map_or(3, |suite| suite.value),
        }));
    }
    if let Some(gpio) = &raw.gpio {
        return Some(PowerDriver::Gpio(GpioPower {
            chip: PathBuf::from(text(&gpio.value.chip)?),
            active_low: gpio.value.active_low.as_ref().is_some_and(|low| low.value),
        }));
    }
    if let Some(hub) = &raw.usb_hub {
        return Some(PowerDriver::UsbHub(UsbHubPower { hub: text(&hub.value.hub)? }));
    }
    let manual = raw.manual.as_ref()?;
    Some(PowerDriver::Manual(ManualPower { hint: text(&manual.value.hint) }))
}

fn words(
    on: &Option<Located<String>>,
    off: &Option<Located<String>>,
    otherwise: (&str, &str),
) -> (String, String) {
    let said = |word: &Option<Located<String>>, other: &str| {
        text(word).unwrap_or_else(|| other.to_owned())
    };
    (said(on, otherwise.0), said(off, otherwise.1))
}

fn lower_http(raw: &RawHttp) -> Option<HttpPower> {
    let secured = raw.password.is_some();
    let facts: Option<HttpFacts> = raw.preset.as_ref().map(|p| p.value.facts(secured));
    let known = facts.as_ref();
    let method = raw.method.as_ref().map_or(HttpMethod::Get, |method| method.value);
    let set = match text(&raw.set) {
        Some(path) => HttpCall { method, path, body: text(&raw.body) },
        None => known?.set.clone(),
    };
    let status = match text(&raw.status) {
        Some(path) => Some(HttpCall { method: HttpMethod::Get, path, body: None }),
        // A preset's question fits its own command only.
        None => known.filter(|_| raw.set.is_none()).map(|facts| facts.status.clone()),
    };
    let says = known.map_or((SAYS_ON, SAYS_OFF), |facts| facts.says);
    let by_default = if secured { HttpAuth::Basic } else { HttpAuth::None };
    Some(HttpPower {
        url: raw.url.as_ref()?.value.parse().ok()?,
        set,
        status,
        words: words(&raw.on, &raw.off, known.map_or(("on", "off"), |facts| facts.words)),
        says: (pattern(&raw.status_on, says.0)?, pattern(&raw.status_off, says.1)?),
        refusal: match known.and_then(|facts| facts.refusal) {
            Some(refusal) => Some(Pattern::new(refusal).ok()?),
            None => None,
        },
        auth: match &raw.auth {
            Some(auth) => auth.value,
            None => known.map_or(by_default, |facts| facts.auth),
        },
        user: text(&raw.user).or_else(|| known.map(|facts| facts.user.to_owned())),
        password: secret(&raw.password),
        tls: trust(&raw.ca, &raw.insecure),
    })
}

fn lower_modbus(raw: &RawModbus) -> Option<ModbusPower> {
    let parity = raw.parity.as_ref().map_or(Parity::None, |parity| parity.value);
    let link = match &raw.address {
        Some(address) => {
            // IANA has given 502 to it.
            let (host, port) = host_and_port(&address.value, 502)?;
            ModbusLink::Tcp(joined(&host, port))
        }
        None => ModbusLink::Serial(line(&raw.port, &raw.baud, parity)?),
    };
    Some(ModbusPower { link, unit: raw.unit.as_ref().map_or(1, |unit| unit.value) })
}

fn joined(host: &str, port: u16) -> String {
    if host.contains(':') { format!("[{host}]:{port}") } else { format!("{host}:{port}") }
}

fn lower_snmp(raw: &RawSnmp) -> Option<SnmpPower> {
    // IANA has given 161 to it.
    let (host, port) = host_and_port(&raw.address.as_ref()?.value, 161)?;
    let facts: Option<SnmpFacts> = raw.preset.as_ref().map(|preset| preset.value.facts());
    let known = facts.as_ref();
    let set = text(&raw.set).or_else(|| known.map(|facts| facts.set.to_owned()))?;
    let number = |said: &Option<Located<i32>>, other: i64| {
        said.as_ref().map_or(other, |number| i64::from(number.value))
    };
    // Numbers and objects of a preset belong together; what is said replaces both.
    let known = known.filter(|_| raw.set.is_none());
    let usual = known.map_or((1, 2), |facts| facts.set_values);
    let set_values = (number(&raw.on, usual.0), number(&raw.off, usual.1));
    let read = match (text(&raw.read), known) {
        (Some(read), _) => read,
        (None, Some(facts)) => facts.read.to_owned(),
        (None, None) => set.clone(),
    };
    let usual = match known {
        Some(facts) if raw.on.is_none() && raw.off.is_none() => facts.read_values,
        Some(_) | None => set_values,
    };
    let read_values = (number(&raw.read_on, usual.0), number(&raw.read_off, usual.1));
    let version = raw.version.as_ref().map(|version| version.value);
    let security = match (&raw.user, version) {
        (Some(user), None | Some(SnmpVersion::V3)) => SnmpSecurity::User {
            name: user.value.clone(),
            auth: secret(&raw.auth_password)
                .map(|p| (raw.auth.as_ref().map_or(SnmpAuth::Sha256, |auth| auth.value), p)),
            privacy: secret(&raw.privacy_password)
                .map(|p| (raw.privacy.as_ref().map_or(SnmpPrivacy::Aes, |how| how.value), p)),
        },
        (None, Some(SnmpVersion::V3)) => return None,
        (_, version) => SnmpSecurity::Community {
            first: version == Some(SnmpVersion::V1),
            community: secret(&raw.community),
        },
    };
    Some(SnmpPower { address: joined(&host, port), security, set, set_values, read, read_values })
}
