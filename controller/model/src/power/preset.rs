//! What is known about devices that many labs have.

use super::{HttpAuth, HttpCall, HttpMethod};

/// Web interfaces by name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HttpPreset {
    /// Plugs with the Tasmota firmware.
    Tasmota,
    /// Shelly plugs and relays of the second generation and later.
    Shelly,
    /// Shelly plugs and relays of the first generation.
    ShellyGen1,
}

/// What a web interface wants to hear and says.
pub(crate) struct HttpFacts {
    pub(crate) set: HttpCall,
    pub(crate) status: HttpCall,
    pub(crate) words: (&'static str, &'static str),
    pub(crate) says: (&'static str, &'static str),
    pub(crate) refusal: Option<&'static str>,
    pub(crate) auth: HttpAuth,
    /// The user's name if none is given.
    pub(crate) user: &'static str,
}

impl HttpPreset {
    /// Returns what is known. `secured` says that there is a password.
    pub(crate) fn facts(self, secured: bool) -> HttpFacts {
        let get =
            |path: &str| HttpCall { method: HttpMethod::Get, path: path.to_owned(), body: None };
        match self {
            // https://tasmota.github.io/docs/Commands/#with-web-requests: the outlet is the
            // number of the relay; a device with one relay answers `POWER` for `POWER1`. A
            // command that it does not know is answered with success and `Unknown`, and older
            // versions so refuse a wrong password with a `WARNING`.
            Self::Tasmota => {
                let who = if secured { "user={user}&password={password}&" } else { "" };
                HttpFacts {
                    set: get(&format!("/cm?{who}cmnd=Power{{outlet}}%20{{state}}")),
                    status: get(&format!("/cm?{who}cmnd=Power{{outlet}}")),
                    words: ("On", "Off"),
                    says: (r#"(?i)"POWER[0-9]*"\s*:\s*"ON""#, r#"(?i)"POWER[0-9]*"\s*:\s*"OFF""#),
                    refusal: Some(r#""(WARNING|Error)"|"Command"\s*:\s*"(Unknown|Error)""#),
                    auth: HttpAuth::None,
                    user: "admin",
                }
            }
            // https://shelly-api-docs.shelly.cloud/gen2/ComponentsAndServices/Switch: the outlet
            // is the id of the switch, from 0; digest authentication, user `admin`.
            Self::Shelly => HttpFacts {
                set: get("/rpc/Switch.Set?id={outlet}&on={state}"),
                status: get("/rpc/Switch.GetStatus?id={outlet}"),
                words: ("true", "false"),
                says: (r#""output"\s*:\s*true"#, r#""output"\s*:\s*false"#),
                refusal: None,
                auth: if secured { HttpAuth::Digest } else { HttpAuth::None },
                user: "admin",
            },
            // https://shelly-api-docs.shelly.cloud/gen1/#shelly-plug-plugs-relay-0: the outlet
            // is the number of the relay, from 0.
            Self::ShellyGen1 => HttpFacts {
                set: get("/relay/{outlet}?turn={state}"),
                status: get("/relay/{outlet}"),
                words: ("on", "off"),
                says: (r#""ison"\s*:\s*true"#, r#""ison"\s*:\s*false"#),
                refusal: None,
                auth: if secured { HttpAuth::Basic } else { HttpAuth::None },
                user: "admin",
            },
        }
    }
}

/// SNMP devices by name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SnmpPreset {
    /// Rack units by APC (AP79xx, AP89xx): `rPDUOutletControlOutletCommand` of PowerNet-MIB.
    Apc,
    /// Older units by APC: `sPDUOutletCtl` of PowerNet-MIB.
    ApcMasterswitch,
    /// Rack units by Raritan: `outletSwitchingOperation` of PDU2-MIB.
    Raritan,
}

/// Objects of an SNMP device.
pub(crate) struct SnmpFacts {
    pub(crate) set: &'static str,
    pub(crate) set_values: (i64, i64),
    pub(crate) read: &'static str,
    pub(crate) read_values: (i64, i64),
}

impl SnmpPreset {
    /// Returns what is known.
    pub(crate) fn facts(self) -> SnmpFacts {
        // One object that is written, and reads as the state.
        let one = |object| SnmpFacts {
            set: object,
            set_values: (1, 2),
            read: object,
            read_values: (1, 2),
        };
        match self {
            // PowerNet-MIB, sPDUOutletCtl: outletOn(1), outletOff(2).
            Self::ApcMasterswitch => one("1.3.6.1.4.1.318.1.1.4.4.2.1.3.{outlet}"),
            // PowerNet-MIB, rPDUOutletControlOutletCommand: immediateOn(1), immediateOff(2).
            Self::Apc => one("1.3.6.1.4.1.318.1.1.12.3.3.1.1.4.{outlet}"),
            // PDU2-MIB, outletSwitchControlTable and outletSwitchingState: on(7), off(8). The
            // outlet is `PDU.OUTLET`, such as `1.3`.
            Self::Raritan => SnmpFacts {
                set: "1.3.6.1.4.1.13742.6.4.1.2.1.2.{outlet}",
                set_values: (1, 0),
                read: "1.3.6.1.4.1.13742.6.4.1.2.1.3.{outlet}",
                read_values: (7, 8),
            },
        }
    }
}
