//! Every fault there is: what it does, where, and what it takes.

use std::time::Duration;

/// The seam at which a fault strikes. The real thing works underneath.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Seam {
    /// The emulator's process.
    Emulator,
    /// The transport of the board's primary console.
    Console,
    /// The debug probe.
    Probe,
    /// Putting an image on the board.
    Deployment,
    /// What switches the board's power.
    Power,
    /// The machine that Jig runs on.
    Host,
}

impl Seam {
    /// Returns the word for it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Emulator => "emulator",
            Self::Console => "console",
            Self::Probe => "probe",
            Self::Deployment => "deployment",
            Self::Power => "power",
            Self::Host => "host",
        }
    }
}

/// What a fault takes behind its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Takes {
    /// Nothing.
    Nothing,
    /// How long it lasts, or how long something is late.
    Time(Duration),
    /// How far a clock jumps, forwards or back.
    Jump(Duration),
    /// How many bytes.
    Bytes(u64),
    /// A file, or nothing.
    File,
}

/// When a fault can strike, and from what its time counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Moments {
    /// A time since the board first had power, or a share of the deployment.
    Running,
    /// A time since the run began, or a share of the deployment.
    Run,
    /// The first command to the power that comes at this time of the run or later.
    Command,
    /// Any share of a deployment, or a time since the board first had power.
    Deploying,
    /// Before a deployment, which is `0%`.
    BeforeDeploying,
}

/// When a fault strikes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum When {
    /// A time after the event from which the fault's time counts.
    After(Duration),
    /// When a percentage of a deployment is done: 0 is before it, 100 after it.
    Share(u8),
}

/// One kind of fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FaultSpec {
    /// The kind.
    pub kind: FaultKind,
    /// Its name, as people write it.
    pub name: &'static str,
    /// What happens, in a few words.
    pub meaning: &'static str,
    /// The type of its argument.
    pub takes: Takes,
    /// Description of the argument in a word or two; empty without an argument.
    pub argument: &'static str,
    /// The part of the rig where it strikes.
    pub seam: Seam,
    /// When it can strike.
    pub moments: Moments,
    /// When it strikes by default.
    pub when: When,
    /// Whether it leaves a trace by which the rig can recognize a rig failure. Without a trace the
    /// target can be kept from blame, but the rig is not recovered.
    pub traced: bool,
}

impl FaultSpec {
    /// Returns the end that the transport of the primary console must have, by its key in rig
    /// files; nothing where any will do.
    pub fn transport(&self) -> Option<&'static str> {
        match self.kind {
            FaultKind::StealTty => Some("tty"),
            FaultKind::SshDrop => Some("command"),
            _ => None,
        }
    }

    /// Says on what boards it strikes.
    pub fn boards(&self) -> &'static str {
        match (self.transport(), self.seam) {
            (Some("tty"), _) => "with a `tty` as console",
            (Some(_), _) => "with a `command` as console",
            (None, Seam::Emulator) => "emulated ones",
            (None, Seam::Console | Seam::Power | Seam::Host) => "all",
            (None, Seam::Probe | Seam::Deployment) => "all that take an image",
        }
    }
}

macro_rules! faults {
    ($($kind:ident = $name:literal, $meaning:literal, $seam:ident, $moments:ident at $when:expr, $takes:expr, $argument:literal $(, $untraced:ident)?;)+) => {
        /// Names every fault.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum FaultKind { $(#[doc = $meaning] $kind,)+ }

        /// Lists every fault, seam by seam.
        pub const CATALOGUE: &[FaultSpec] = &[$(FaultSpec {
            kind: FaultKind::$kind,
            name: $name,
            meaning: $meaning,
            takes: $takes,
            argument: $argument,
            seam: Seam::$seam,
            moments: Moments::$moments,
            when: $when,
            traced: faults!(@traced $($untraced)?),
        },)+];

        impl FaultKind {
            /// Returns its entry in the catalogue.
            pub fn spec(self) -> &'static FaultSpec {
                // The enum and the list are made of the same lines, in the same order.
                &CATALOGUE[self as usize]
            }
        }
    };
    (@traced) => { true };
    (@traced untraced) => { false };
}

const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// An emulated test takes some 50 ms; a fault at 20 ms meets it in the middle.
const SOON: When = When::After(ms(20));
const START: When = When::After(Duration::ZERO);

faults! {
    KillEmulator = "kill-emulator", "the emulator is killed (SIGKILL)",
        Emulator, Running at SOON, Takes::Nothing, "";
    StopEmulator = "stop-emulator", "the emulator is stopped for good (SIGSTOP)",
        Emulator, Running at SOON, Takes::Nothing, "";
    PauseEmulator = "pause-emulator", "the emulator and its monitor stall, then go on",
        Emulator, Running at SOON, Takes::Time(ms(3000)), "for how long";
    HangUpConsole = "hang-up-console", "the console's other end goes away, and comes back",
        Console, Running at SOON, Takes::Time(ms(1000)), "for how long";
    CutConsole = "cut-console", "the console's transport breaks for good",
        Console, Running at SOON, Takes::Nothing, "";
    OverrunConsole = "overrun-console", "bytes are lost, and the port has counted them",
        Console, Running at START, Takes::Bytes(64), "bytes";
    DropBytes = "drop-bytes", "bytes are lost without a record",
        Console, Running at START, Takes::Bytes(64), "bytes", untraced;
    CorruptBytes = "corrupt-bytes", "bits of bytes are flipped",
        Console, Running at START, Takes::Bytes(16), "bytes", untraced;
    GarbleConsole = "garble-console", "the port listens at another speed: garbage for text, and errors that it counts",
        Console, Running at START, Takes::Time(ms(500)), "for how long";
    StealTty = "steal-tty", "another program opens the console's tty and reads what it can",
        Console, Running at START, Takes::Time(ms(1000)), "for how long";
    SshDrop = "ssh-drop", "the program that reaches the console is killed, as by a cut connection",
        Console, Running at SOON, Takes::Nothing, "";
    DelayConsole = "delay-console", "bytes are late, from then on",
        Console, Running at START, Takes::Time(ms(300)), "how late", untraced;
    HideBuildId = "hide-build-id", "the build id that the target prints does not arrive",
        Console, Running at START, Takes::Nothing, "", untraced;
    LoseProbe = "lose-probe", "the probe stops answering",
        Probe, Deploying at When::Share(50), Takes::Nothing, "";
    SilenceChip = "silence-chip", "the chip does not answer the probe",
        Probe, BeforeDeploying at When::Share(0), Takes::Nothing, "";
    StaleImage = "stale-image", "the deployment says that it worked, and the old image stays",
        Deployment, BeforeDeploying at When::Share(0), Takes::File, "the old image";
    PowerMismatch = "power-mismatch", "the power says that it is off, and stays on",
        Power, Command at START, Takes::Nothing, "";
    PowerSilent = "power-silent", "what switches the power does not answer",
        Power, Command at START, Takes::Time(ms(1000)), "how long it is waited for";
    PowerBabbles = "power-babbles", "what switches the power answers nonsense",
        Power, Command at START, Takes::Nothing, "";
    OutletSwapped = "outlet-swapped", "another board's outlet is switched, until the attempt ends",
        Power, Command at START, Takes::Nothing, "";
    DiskFull = "disk-full", "no file can grow",
        Host, Run at START, Takes::Time(ms(1000)), "for how long";
    NoHandles = "no-handles", "no file or socket can be opened",
        Host, Run at START, Takes::Time(ms(1000)), "for how long";
    ClockJump = "clock-jump", "the host's clock jumps",
        Host, Run at START, Takes::Jump(ms(3_600_000)), "how far; `-1h` is back";
    PauseHost = "pause-host", "this process is stopped, then goes on",
        Host, Run at START, Takes::Time(ms(3000)), "for how long";
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn names_are_unique_and_entries_agree_with_themselves() {
        let names: BTreeSet<_> = CATALOGUE.iter().map(|spec| spec.name).collect();
        assert_eq!(names.len(), CATALOGUE.len());
        for spec in CATALOGUE {
            assert_eq!(spec.kind.spec(), spec);
            assert_eq!(spec.takes == Takes::Nothing, spec.argument.is_empty(), "{}", spec.name);
            let share = matches!(spec.when, When::Share(_));
            let only_share = spec.moments == Moments::BeforeDeploying;
            assert!(share || !only_share, "{}", spec.name);
        }
    }
}
