//! Where a program comes from.

use serde::Serialize;

/// Says which package has a program.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct InstallHint {
    /// Package of Debian.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub debian: Option<String>,
    /// Package of PyPI.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pip: Option<String>,
    /// Crate of crates.io.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cargo: Option<String>,
    /// Page of its maker.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
}

impl InstallHint {
    /// Returns the command that installs the program, or the page that has it.
    pub fn command(&self) -> Option<String> {
        let debian = self.debian.as_ref().map(|name| format!("sudo apt-get install {name}"));
        let pip = || self.pip.as_ref().map(|name| format!("pipx install {name}"));
        let cargo = || self.cargo.as_ref().map(|name| format!("cargo install --locked {name}"));
        let url = || self.url.as_ref().map(|url| format!("get it from {url}"));
        debian.or_else(pip).or_else(cargo).or_else(url)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_source_is_told() {
        let of = |text: &str| Some(text.to_owned());
        let mut hint = InstallHint { url: of("https://e.example"), ..InstallHint::default() };
        assert_eq!(hint.command(), of("get it from https://e.example"));
        hint.cargo = of("espflash");
        assert_eq!(hint.command(), of("cargo install --locked espflash"));
        hint.pip = of("pyocd");
        assert_eq!(hint.command(), of("pipx install pyocd"));
        hint.debian = of("openocd");
        assert_eq!(hint.command(), of("sudo apt-get install openocd"));
        assert_eq!(InstallHint::default().command(), None);
    }
}
