//! The shell of a board at a place: what profile and place together say of it.

use super::{BoardProfile, ConsoleKind, ConsoleSpec};
use crate::ConsoleName;
use crate::rig_file::Place;
use crate::shell::{
    HostKeyCheck, SHELL_CONSOLE, SerialAccess, ShellTable, ShellWay, SshAccess, SshHost,
    TargetShell,
};

/// The standard port of SSH.
const SSH_PORT: u16 = 22;

impl BoardProfile {
    /// Returns the shell of the board at a place, if it is reached there.
    ///
    /// A serial console counts where the place has it; a port that an emulator forwards counts at an
    /// emulated place only, and a host at a real one.
    pub fn shell_at(&self, place: &Place) -> Option<TargetShell> {
        let empty = ShellTable::default();
        let base = self.shell.as_ref().unwrap_or(&empty);
        let table = place.shell.as_ref().unwrap_or(&empty).over(base);
        let host = match place.is_emulated() {
            true => table.forwarded.map(SshHost::Forwarded),
            false => {
                table.host.map(|host| SshHost::Named { host, port: table.port.unwrap_or(SSH_PORT) })
            }
        };
        let ssh = host.map(|host| SshAccess {
            // What an emulator forwards is on this host, and its guest makes a new key at each boot.
            host_key: match (&host, table.host_key) {
                (_, Some(said)) => said,
                (SshHost::Forwarded(_), None) => HostKeyCheck::Any,
                (SshHost::Named { .. }, None) => HostKeyCheck::Known,
            },
            host,
            user: table.user,
            identity: table.identity,
            known_hosts: table.known_hosts,
            console: self.shell_console(),
        });
        let console = table.console.or_else(|| {
            let mut uarts = self.uarts().map(|console| &console.name);
            uarts.find(|name| place.is_emulated() || place.console(name).is_some()).cloned()
        });
        let reached = console.filter(|name| {
            place.is_emulated() && self.uarts().any(|console| console.name == *name)
                || place.console(name).is_some()
        });
        let serial = table.prompt.zip(reached);
        let serial =
            serial.map(|(prompt, console)| SerialAccess { console, prompt, login: table.login });
        let kind = table.kind.unwrap_or_default();
        let via = match (&ssh, &serial) {
            (Some(_), Some(_)) => table.via.unwrap_or(ShellWay::Ssh),
            (Some(_), None) => ShellWay::Ssh,
            (None, Some(_)) => ShellWay::Serial,
            (None, None) => return None,
        };
        Some(TargetShell {
            kind,
            encoding: table.encoding.unwrap_or_default(),
            ssh,
            serial,
            via,
            reboot: table.reboot.unwrap_or_else(|| kind.reboot()),
        })
    }

    fn uarts(&self) -> impl Iterator<Item = &ConsoleSpec> {
        let is_uart = |kind| kind == ConsoleKind::Uart;
        self.consoles.iter().filter(move |console| is_uart(console.kind))
    }

    /// Returns the name of the console that has the output of commands over SSH: the one that
    /// [`BoardProfile::at`] has added, or the one that it would add.
    pub(crate) fn shell_console(&self) -> ConsoleName {
        let added = self.consoles.iter().find(|console| console.kind == ConsoleKind::Shell);
        if let Some(added) = added {
            return added.name.clone();
        }
        let taken = |name: &str| self.consoles.iter().any(|c| c.name.as_str() == name);
        let numbered = (2..=self.consoles.len() + 2).map(|n| format!("{SHELL_CONSOLE}{n}"));
        let mut names = std::iter::once(SHELL_CONSOLE.to_owned()).chain(numbered);
        // One more name than there are consoles: one is free.
        let free = names.find(|name| !taken(name));
        ConsoleName::made(free.unwrap_or_else(|| SHELL_CONSOLE.to_owned()))
    }
}
