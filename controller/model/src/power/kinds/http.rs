//! A device with a web interface.

use serde::Serialize;

use super::fields::{
    SAYS_OFF, SAYS_ON, check_template, check_trust, check_url, have, pattern, secret, text, trust,
    words,
};
use crate::document::{Findings, Located};
use crate::pattern::Pattern;
use crate::power::kind::{PowerKind, PowerTable, PowerTimes};
use crate::power::{PowerPart, SecretSource, TlsTrust, WebAddress};
use crate::toml_table;

/// How a web interface wants to be asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum HttpMethod {
    /// To ask.
    Get,
    /// To submit.
    Post,
    /// To replace.
    Put,
}
choices!(HttpMethod, "HTTP method": "GET" = Get, "POST" = Post, "PUT" = Put);

/// Authentication to a web interface.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum HttpAuth {
    /// Not at all, or by the placeholders of a template.
    None,
    /// Name and password in a header (RFC 7617).
    Basic,
    /// A hash of them (RFC 7616, SHA-256 only).
    Digest,
}
choices!(HttpAuth, "authentication method": "none" = None, "basic" = Basic, "digest" = Digest);

/// One request to a web interface.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct HttpCall {
    /// How.
    pub method: HttpMethod,
    /// Path and query, with placeholders; begins with `/`.
    pub path: String,
    /// Body, with placeholders. Sent as JSON.
    pub body: Option<String>,
}

/// A device with a web interface.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct HttpPower {
    /// Where it is.
    pub url: WebAddress,
    /// Switches an outlet.
    pub set: HttpCall,
    /// Asks for the state of an outlet.
    pub status: Option<HttpCall>,
    /// The words that stand for on and off in `{state}`.
    pub words: (String, String),
    /// What the answer to `status` looks like when it is on, and when it is off.
    pub says: (Pattern, Pattern),
    /// An answer that means that it was not done, although the device calls it a success.
    pub refusal: Option<Pattern>,
    /// Authentication that the device wants.
    pub auth: HttpAuth,
    /// The user's name.
    pub user: Option<String>,
    /// The password.
    pub password: Option<SecretSource>,
    /// Which certificates are believed.
    pub tls: TlsTrust,
}

impl PowerKind for HttpPower {
    /// Small controllers answer one thing at a time and drop the next.
    fn times(&self) -> PowerTimes {
        PowerTimes::new(200, 10, 5)
    }

    fn reads_back(&self) -> bool {
        self.status.is_some()
    }
}

toml_table! {
    /// A device with a web interface.
    pub(crate) struct RawHttp {
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
        password: SecretSource = optional,
        /// PEM file with the certificates that are believed, or have signed those that are; as
        /// this host believes if missing.
        ca: String = optional,
        /// Whether any certificate is believed; false if missing.
        insecure: bool = optional,
    }
}

impl PowerTable for RawHttp {
    type Kind = HttpPower;

    fn check(http: &Located<Self>, findings: &Findings) {
        const CHECK: &str = "rig::power-http";
        let raw = &http.value;
        check_url(raw.url.as_ref(), findings);
        check_trust(raw.ca.as_ref(), raw.insecure.as_ref(), findings);
        for (text, set) in [(&raw.set, true), (&raw.body, true), (&raw.status, false)] {
            if let Some(text) = text {
                check_template(text, set, findings);
            }
        }
        for path in [&raw.set, &raw.status].into_iter().flatten() {
            let fits =
                path.value.starts_with('/') && path.value.bytes().all(|b| b.is_ascii_graphic());
            if !fits {
                let help = "begin it with `/`, and write a space as %20";
                findings.add(CHECK, path.at(), "this is no path of a web interface", help);
            }
        }
        if let Some(password) = raw.password.as_ref().filter(|_| raw.user.is_none())
            && raw.preset.is_none()
        {
            let help = "add `user = \"...\"`";
            findings.add("rig::power-user", password.at(), "whose password is this?", help);
        }
        match (&raw.set, raw.preset.is_some()) {
            (None, false) => {
                let help =
                    "add `set = \"/path?outlet={outlet}&state={state}\"` or `preset = \"...\"`";
                findings.add(CHECK, http.at(), "nothing says how an outlet is switched", help);
            }
            (Some(set), _) => {
                let texts = [&raw.set, &raw.body].into_iter().flatten();
                if !have(&PowerPart::State, texts.map(|text| text.value.as_str())) {
                    let help = "put {state} where the device expects on or off";
                    findings.add(CHECK, set.at(), "this does the same for on and off", help);
                }
            }
            (None, true) => {}
        }
    }

    fn lower(&self) -> Option<HttpPower> {
        let secured = self.password.is_some();
        let facts: Option<HttpFacts> = self.preset.as_ref().map(|p| p.value.facts(secured));
        let known = facts.as_ref();
        let method = self.method.as_ref().map_or(HttpMethod::Get, |method| method.value);
        let set = match text(&self.set) {
            Some(path) => HttpCall { method, path, body: text(&self.body) },
            None => {
                let preset = &known?.set;
                HttpCall {
                    method: self.method.as_ref().map_or(preset.method, |method| method.value),
                    path: preset.path.clone(),
                    body: text(&self.body).or_else(|| preset.body.clone()),
                }
            }
        };
        let status = match text(&self.status) {
            Some(path) => Some(HttpCall { method: HttpMethod::Get, path, body: None }),
            // A preset's question fits its own command only.
            None => known.filter(|_| self.set.is_none()).map(|facts| facts.status.clone()),
        };
        let says = known.map_or((SAYS_ON, SAYS_OFF), |facts| facts.says);
        let by_default = if secured { HttpAuth::Basic } else { HttpAuth::None };
        Some(HttpPower {
            url: self.url.as_ref()?.value.parse().ok()?,
            set,
            status,
            words: words(&self.on, &self.off, known.map_or(("on", "off"), |facts| facts.words)),
            says: (pattern(&self.status_on, says.0)?, pattern(&self.status_off, says.1)?),
            refusal: match known.and_then(|facts| facts.refusal) {
                Some(refusal) => Some(Pattern::new(refusal).ok()?),
                None => None,
            },
            auth: match &self.auth {
                Some(auth) => auth.value,
                None => known.map_or(by_default, |facts| facts.auth),
            },
            user: text(&self.user).or_else(|| known.map(|facts| facts.user.to_owned())),
            password: secret(&self.password),
            tls: trust(&self.ca, &self.insecure),
        })
    }
}

/// Web interfaces that many labs have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum HttpPreset {
    /// Plugs with the Tasmota firmware.
    Tasmota,
    /// Shelly plugs and relays of the second generation and later.
    Shelly,
    /// Shelly plugs and relays of the first generation.
    ShellyGen1,
}

choices!(HttpPreset, "known web interface":
    "tasmota" = Tasmota, "shelly" = Shelly, "shelly-gen1" = ShellyGen1);

/// What a web interface wants to hear and says.
struct HttpFacts {
    set: HttpCall,
    status: HttpCall,
    words: (&'static str, &'static str),
    says: (&'static str, &'static str),
    refusal: Option<&'static str>,
    auth: HttpAuth,
    /// The user's name if none is given.
    user: &'static str,
}

impl HttpPreset {
    /// Returns what is known. `secured` says that there is a password.
    fn facts(self, secured: bool) -> HttpFacts {
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
