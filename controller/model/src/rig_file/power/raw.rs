//! The tables of power devices as they are written.

use std::path::PathBuf;
use std::time::Duration;

use serde_json::{Value, json};

use crate::document::{Choice, FromToml, Located, Node, TableReader};
use crate::pattern::Pattern;
use crate::power::{
    HttpAuth, HttpMethod, HttpPreset, Parity, RelayProtocol, SecretSource, SnmpAuth, SnmpPreset,
    SnmpPrivacy, SnmpVersion,
};
use crate::{DeviceName, toml_table};

toml_table! {
    /// A device that switches the power of boards. It has exactly one table that says what
    /// it is, such as `[power.snmp]`.
    pub(in super::super) struct RawPower {
        /// Its name; places say it.
        name: DeviceName = required,
        /// Least time between two commands to it; as is usual for its kind if missing.
        min_interval: Duration = optional,
        /// How long a board stays off in a power cycle; "2s" if missing.
        off_time: Duration = optional,
        /// How long one command may take; as is usual for its kind if missing.
        timeout: Duration = optional,
        /// How long after a command it may take until the device reports the new state; as
        /// is usual for its kind if missing.
        settle: Duration = optional,
        /// A program switches it.
        command: RawCommand = optional,
        /// It has a web interface.
        http: RawHttp = optional,
        /// A pdudaemon switches it.
        pdudaemon: RawPduDaemon = optional,
        /// A relay board on a serial port.
        relay: RawRelay = optional,
        /// A relay board that speaks Modbus; an outlet is the address of a coil.
        modbus: RawModbus = optional,
        /// It speaks SNMP.
        snmp: RawSnmp = optional,
        /// A management controller that speaks Redfish; an outlet is the id of a system, or
        /// the path of anything that has a reset or power action.
        redfish: RawRedfish = optional,
        /// A management controller that speaks IPMI (needs the program ipmitool).
        ipmi: RawIpmi = optional,
        /// Lines of a GPIO chip; an outlet is the number or the name of a line.
        gpio: RawGpio = optional,
        /// A USB hub whose ports switch; an outlet is the number of a port.
        usb_hub: RawUsbHub = optional,
        /// A person who is asked to switch.
        manual: RawManual = optional,
    }

    /// A program that switches outlets. Never a shell line.
    pub(in super::super) struct RawCommand {
        /// Program and arguments, with `{outlet}` and `{state}`; exit code 0 means done.
        set: Vec<Located<String>> = required,
        /// Program and arguments that print the state of `{outlet}`.
        status: Vec<Located<String>> = optional,
        /// What stands for on in `{state}`; "on" if missing.
        on: String = optional,
        /// What stands for off in `{state}`; "off" if missing.
        off: String = optional,
        /// What `status` prints when it is on.
        status_on: Pattern = optional,
        /// What `status` prints when it is off.
        status_off: Pattern = optional,
    }

    /// A device with a web interface.
    pub(in super::super) struct RawHttp {
        /// Where it is: "http://HOST", maybe with a port and a path.
        url: String = required,
        /// A device that is known; other keys change what is known about it.
        preset: HttpPreset = optional,
        /// How a command is sent; GET if missing.
        method: HttpMethod = optional,
        /// Path and query that switch an outlet, with `{outlet}` and `{state}`.
        set: String = optional,
        /// Body of that, with the same; sent as JSON.
        body: String = optional,
        /// Path and query that ask for the state of `{outlet}`.
        status: String = optional,
        /// What stands for on in `{state}`; "on" if missing.
        on: String = optional,
        /// What stands for off in `{state}`; "off" if missing.
        off: String = optional,
        /// What `status` is answered with when it is on.
        status_on: Pattern = optional,
        /// What `status` is answered with when it is off.
        status_off: Pattern = optional,
        /// How to prove who one is; "basic" if there is a password and no preset.
        auth: HttpAuth = optional,
        /// The user's name.
        user: String = optional,
        /// The password.
        password: Secret = optional,
        /// PEM file with the certificates that are believed, or have signed those that are; as
        /// this host believes if missing.
        ca: String = optional,
        /// Whether any certificate is believed; false if missing.
        insecure: bool = optional,
    }

    /// A pdudaemon that switches a device; an outlet is the port there.
    pub(in super::super) struct RawPduDaemon {
        /// Where it listens: "http://HOST:16421".
        url: String = required,
        /// The device, as the daemon's configuration names it.
        hostname: String = required,
        /// PEM file with the certificates that are believed, or have signed those that are; as
        /// this host believes if missing.
        ca: String = optional,
        /// Whether any certificate is believed; false if missing.
        insecure: bool = optional,
    }

    /// A relay board on a serial port.
    pub(in super::super) struct RawRelay {
        /// The port, by a path that stays: "/dev/serial/by-id/...".
        port: String = required,
        /// What it speaks.
        protocol: RelayProtocol = required,
        /// Bits per second; 9600 if missing.
        baud: u32 = optional,
    }

    /// A device that speaks Modbus: it has either an `address` or a `port`.
    pub(in super::super) struct RawModbus {
        /// Where it listens: "HOST" or "HOST:PORT".
        address: String = optional,
        /// The serial port, by a path that stays: "/dev/serial/by-id/...".
        port: String = optional,
        /// Bits per second; 9600 if missing.
        baud: u32 = optional,
        /// The parity bit; none if missing.
        parity: Parity = optional,
        /// Its unit number; 1 if missing.
        unit: u8 = optional,
    }

    /// A device that speaks SNMP.
    pub(in super::super) struct RawSnmp {
        /// Where it listens: "HOST" or "HOST:PORT".
        address: String = required,
        /// Version; 2c if missing, 3 if there is a `user`.
        version: SnmpVersion = optional,
        /// The community that may write; "private" if missing.
        community: Secret = optional,
        /// The user's name (version 3).
        user: String = optional,
        /// How messages are signed (version 3); sha256 if there is an `auth_password`.
        auth: SnmpAuth = optional,
        /// The password they are signed with.
        auth_password: Secret = optional,
        /// How messages are encrypted (version 3); aes if there is a `privacy_password`.
        privacy: SnmpPrivacy = optional,
        /// The password they are encrypted with.
        privacy_password: Secret = optional,
        /// A device that is known; other keys change what is known about it.
        preset: SnmpPreset = optional,
        /// Object that switches an outlet, such as "1.3.6.1.4.1.318.1.1.12.3.3.1.1.4.{outlet}".
        set: String = optional,
        /// The number that means on there; 1 if missing.
        on: i32 = optional,
        /// The number that means off there; 2 if missing.
        off: i32 = optional,
        /// Object that tells the state of an outlet; the same as `set` if missing.
        read: String = optional,
        /// The number that means on there; as `on` if missing.
        read_on: i32 = optional,
        /// The number that means off there; as `off` if missing.
        read_off: i32 = optional,
    }

    /// A management controller that speaks Redfish.
    pub(in super::super) struct RawRedfish {
        /// Where it is: "https://HOST".
        url: String = required,
        /// The user's name.
        user: String = optional,
        /// The password.
        password: Secret = optional,
        /// PEM file with the certificates that are believed, or have signed those that are; as
        /// this host believes if missing.
        ca: String = optional,
        /// Whether any certificate is believed; false if missing.
        insecure: bool = optional,
    }

    /// A management controller that speaks IPMI.
    pub(in super::super) struct RawIpmi {
        /// The host, maybe with a port.
        address: String = required,
        /// The user's name.
        user: String = required,
        /// The password.
        password: Secret = required,
        /// Cipher suite; 3 if missing, which all controllers have. Many newer ones want 17.
        cipher_suite: u8 = optional,
    }

    /// Lines of a GPIO chip of this host.
    pub(in super::super) struct RawGpio {
        /// The chip's device: "/dev/gpiochip0".
        chip: String = required,
        /// Whether a low level switches on; false if missing.
        active_low: bool = optional,
    }

    /// A USB hub whose ports switch. Needs Linux 6.0 and the right to write to sysfs.
    pub(in super::super) struct RawUsbHub {
        /// The hub as the kernel names it: "1-1.4", or "usb1" for a root hub.
        hub: String = required,
    }

    /// A person who is asked to switch, on the terminal.
    pub(in super::super) struct RawManual {
        /// What they are told beside the outlet, such as where the switch is.
        hint: String = optional,
    }

    /// What switches the power of a place.
    pub(in super::super) struct RawPlacePower {
        /// The device, by its name: one of `[[power]]`.
        device: DeviceName = required,
        /// Its outlet, in the device's own words; missing where it has only one.
        outlet: String = optional,
        /// How long the board stays off in a power cycle; as the device says if missing.
        off_time: Duration = optional,
        /// Who else sees whether the board has power: its "debug-port", its "console", an outlet
        /// of another device that is only read (the port of a hub that it hangs on, a program
        /// that looks), or "none". If missing: none where the device can be read back, else the
        /// debug port.
        sense: RawSense = optional,
    }

    /// An outlet that is only read, of a device other than the one that switches.
    pub(in super::super) struct RawSenseOutlet {
        /// The device, by its name: one of `[[power]]`.
        device: DeviceName = required,
        /// Its outlet, in the device's own words; missing where it has only one.
        outlet: String = optional,
    }
}

/// Who sees the power of a place: a word, or an outlet that is only read.
#[derive(Debug, Clone)]
pub(in super::super) enum RawSense {
    Outlet(RawSenseOutlet),
    Word(SenseWord),
}

/// A power sense that needs no further words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in super::super) enum SenseWord {
    DebugPort,
    Console,
    Absent,
}

impl FromToml for RawSense {
    fn schema() -> Value {
        json!({ "anyOf": [SenseWord::schema(), RawSenseOutlet::schema()] })
    }

    fn read(node: &Node<'_>) -> Option<Self> {
        match node.value() {
            toml::de::DeValue::Table(_) => RawSenseOutlet::read(node).map(Self::Outlet),
            _ => SenseWord::read(node).map(Self::Word),
        }
    }
}

/// Where a secret is kept; the secret itself is refused.
#[derive(Debug, Clone)]
pub(in super::super) struct Secret(pub(super) SecretSource);

const HOW: &str = "name where it is kept: { env = \"PDU_PASSWORD\" }, or \
                   { file = \"~/.config/jig/pdu\" } that only you may read";

impl FromToml for Secret {
    fn how_to_add(key: &str) -> String {
        format!("add `{key} = {{ env = \"PDU_PASSWORD\" }}`")
    }

    fn schema() -> Value {
        let one = |key: &str, what: &str| {
            json!({
                "type": "object",
                "additionalProperties": false,
                "required": [key],
                "properties": { key: { "type": "string", "description": what } },
            })
        };
        json!({ "oneOf": [
            one("env", "Environment variable that holds it."),
            one("file", "File that holds it and only its owner may read; ~/ is the home."),
        ] })
    }

    fn read(node: &Node<'_>) -> Option<Self> {
        if matches!(node.value(), toml::de::DeValue::String(_) | toml::de::DeValue::Integer(_)) {
            let message = format!("`{}` is a secret and does not belong into a file", node.key());
            node.refuse(super::SECRET, message, HOW);
            return None;
        }
        let table = TableReader::open(node)?;
        let (env, file) = (table.optional::<String>("env"), table.optional::<String>("file"));
        table.finish();
        match (env, file) {
            (Some(env), None) => {
                let head = |b: u8| b.is_ascii_alphabetic() || b == b'_';
                let fits = env.value.bytes().all(|b| head(b) || b.is_ascii_digit())
                    && env.value.bytes().next().is_some_and(head);
                if !fits {
                    // Somebody may have written the secret where its name belongs.
                    let message = format!("`{}` names no variable", node.key());
                    node.refuse(super::SECRET, message, HOW);
                }
                fits.then_some(Self(SecretSource::Env(env.value)))
            }
            (None, Some(file)) => {
                let fits = file.value.starts_with('/') || file.value.starts_with("~/");
                if !fits || file.value.contains('\0') {
                    let message = format!("`{}` names no file", node.key());
                    let help = "write a path that begins with `/` or `~/`";
                    node.refuse("rig::secret-file", message, help);
                    return None;
                }
                Some(Self(SecretSource::File(PathBuf::from(file.value))))
            }
            (Some(_), Some(_)) | (None, None) => {
                let message = format!("`{}` must be kept in one place", node.key());
                node.refuse("rig::secret-file", message, HOW);
                None
            }
        }
    }
}

/// Says which word of a rig file stands for which value.
macro_rules! words {
    ($($kind:ident, $what:literal: $($word:literal = $value:ident),+;)+) => {$(
        impl Choice for $kind {
            const WHAT: &'static str = $what;
            const CHOICES: &'static [(&'static str, Self)] = &[$(($word, Self::$value)),+];
        }
    )+};
}

words! {
    SenseWord, "sense of the power":
        "debug-port" = DebugPort, "console" = Console, "none" = Absent;
    HttpPreset, "known web interface":
        "tasmota" = Tasmota, "shelly" = Shelly, "shelly-gen1" = ShellyGen1;
    HttpMethod, "HTTP method": "GET" = Get, "POST" = Post, "PUT" = Put;
    HttpAuth, "way to prove who one is": "none" = None, "basic" = Basic, "digest" = Digest;
    RelayProtocol, "protocol of relay boards": "lcus" = Lcus, "numato" = Numato;
    Parity, "parity": "none" = None, "even" = Even, "odd" = Odd;
    SnmpVersion, "version of SNMP": "1" = V1, "2c" = V2c, "3" = V3;
    SnmpAuth, "way to sign": "md5" = Md5, "sha1" = Sha1, "sha256" = Sha256, "sha512" = Sha512;
    SnmpPrivacy, "cipher": "des" = Des, "aes" = Aes, "aes256" = Aes256;
    SnmpPreset, "known SNMP device":
        "apc" = Apc, "apc-masterswitch" = ApcMasterswitch, "raritan" = Raritan;
}
