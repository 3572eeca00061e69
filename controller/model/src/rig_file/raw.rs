//! The tables of a rig file as they are written.

use std::time::Duration;

use super::power::RawPlacePower;
use super::raw_parts::{RawFlasher, RawReset};
use crate::access::AccessRight;
use crate::debug::WireProtocol;
use crate::document::{ByteSize, Located};
use crate::pattern::Pattern;
use crate::power::RawPower;
use crate::rig_file::EmulatorDeploy;
use crate::shell::RawShell;
use crate::toml_table;
use crate::{BoardId, ClassName, ConsoleName, DeviceName, PlaceName, Strictness, TagName};

toml_table! {
    /// A rig file: the places of a rig, and where runs are kept.
    pub(super) struct RawRig {
        /// Version of this format: 1.
        version: u32 = required,
        /// The places.
        place: Vec<Located<RawPlace>> = optional,
        /// The devices that switch the power of places.
        power: Vec<Located<RawPower>> = optional,
        /// Hubs whose own power can be switched.
        hub: Vec<Located<RawHub>> = optional,
        /// Where runs are kept, and for how long.
        runs: RawRuns = optional,
        /// How much is kept of what consoles print between runs, while `jig serve` runs.
        capture: RawCapture = optional,
        /// Who goes first where several users want a place, and for how long.
        leases: RawLeases = optional,
        /// How `jig serve` runs; its command line overrides each key.
        serve: RawServe = optional,
        /// What is learnt from runs, recoveries and repairs by itself.
        knowledge: RawKnowledge = optional,
        /// Who may do what at which places. Without a rule, all may do all.
        access: Vec<Located<RawAccess>> = optional,
    }

    /// How `jig serve` runs, as far as its command line does not say otherwise. Read when it starts.
    pub(super) struct RawServe {
        /// The health of idle real boards is checked this often, "0s" for never; each as its profile says
        /// if missing.
        check_every: Duration = optional,
        /// A stop waits this long for commands under way; "2m" if missing.
        drain: Duration = optional,
        /// Prometheus is answered here: "unix:PATH" or "127.0.0.1:PORT"; nowhere if missing.
        metrics: String = optional,
        /// Permissions of the socket of the rig, in octal; "600" if missing.
        socket_mode: String = optional,
        /// Group of the socket of the rig, by name or number.
        socket_group: String = optional,
    }

    /// What is learnt from runs, recoveries and repairs by itself.
    pub(super) struct RawKnowledge {
        /// Whether anything is learnt or looked up by itself; true if missing.
        enabled: bool = optional,
        /// A failure that was seen this often becomes a unit; 3 if missing.
        repeats: u32 = optional,
        /// So many fixes of one class of failure on one kind of board become a unit of their own; 10 if
        /// missing.
        threshold: u32 = optional,
        /// No unit is made by itself where there are this many; 20000 if missing.
        most_units: u32 = optional,
    }

    /// Gives rights to identities at places. Rules only give: their order means nothing.
    pub(super) struct RawAccess {
        /// To whom: the name of a key ("ci", "ci-*"), a user ("unix:alice", "unix:*") or a group of
        /// users ("group:lab") of this host.
        identity: Vec<Located<String>> = required,
        /// Which rights: "see", "use", "power", "flash", "administer".
        may: Vec<Located<AccessRight>> = required,
        /// Where: places, boards, or terms that all have to fit, such as "tag=radio,has=probe". Each
        /// place if missing.
        places: Vec<Located<String>> = optional,
    }

    /// Who goes first where several users want a place, and for how long.
    pub(super) struct RawLeases {
        /// How long a lease lasts if its user does not say; "30m" if missing.
        ttl: Duration = optional,
        /// Waiting for this long is worth one step of priority; "1m" if missing.
        ageing: Duration = optional,
        /// The classes of users; the first one is that of users who are in none. If missing:
        /// `engineer` (priority 10) and `ci` (priority 0, members "ci" and "ci-*").
        class: Vec<Located<RawLeaseClass>> = optional,
    }

    /// Users who are treated alike.
    pub(super) struct RawLeaseClass {
        /// Its name.
        name: ClassName = required,
        /// Higher ones go first, from -1000 to 1000; 0 if missing.
        priority: i32 = optional,
        /// The users: names as in `jig lease ls` ("ci", "unix:alice"), with `*` at the end for any
        /// ending, or "group:lab".
        members: Vec<Located<String>> = optional,
        /// Whether a lease may be ended for one of a class with a higher priority, while no command
        /// runs under it; false if missing.
        yields: bool = optional,
        /// How long a lease may last in all, unless a process keeps it; for ever if missing.
        longest: Duration = optional,
    }

    /// A hub whose own power can be switched: every place on it is disturbed then.
    pub(super) struct RawHub {
        /// Its name, as places name it in `hub`.
        name: DeviceName = required,
        /// What switches its power.
        power: RawPlacePower = required,
    }

    /// A place: one board of the rig, and the parts that make it real. Each part is optional,
    /// and a place has at least one; an `emulator` is all parts at once.
    pub(super) struct RawPlace {
        /// Its name.
        name: PlaceName = required,
        /// The profile of its board.
        board: BoardId = required,
        /// What it has in common with other places, such as ["radio"]: users select places by it.
        tags: Vec<Located<TagName>> = optional,
        /// Says that the board is emulated. It has power, reset, consoles and a loader then.
        emulator: RawEmulator = optional,
        /// The debug probe on a real board.
        probe: RawProbe = optional,
        /// What switches the power of a real board.
        power: RawPlacePower = optional,
        /// What resets a real board: "probe", "power" (it is cut and given back), or a table. If
        /// missing: the probe, else the power.
        reset: RawReset = optional,
        /// The program that flashes a real board. If missing: the profile's, else the probe.
        flasher: RawFlasher = optional,
        /// The hub that it hangs on with others: a name that they share, and that of a `[[hub]]`
        /// if its power can be switched.
        hub: DeviceName = optional,
        /// Transports to consoles of a real board.
        console: Vec<Located<RawTransport>> = optional,
        /// An image that is known to work on the board. It may be put there at any time to
        /// tell a broken rig from broken firmware.
        canary: RawCanary = optional,
        /// The shell of a board that runs an operating system.
        shell: RawShell = optional,
        /// Where a real board, or what it needs, is reached over a network while it has power.
        network: RawNetwork = optional,
        /// Whether a pass of any run or test on it needs that each line of output is part of a report,
        /// expected or allowed: true, or "behind" for the lines behind the end of a report only.
        strict: Strictness = optional,
    }

    /// Where a place is reached over a network: by one of these, or by both.
    pub(super) struct RawNetwork {
        /// A server that accepts connections, as "HOST:PORT".
        tcp: String = optional,
        /// A server that says which SSH it speaks, as "HOST:PORT".
        ssh: String = optional,
    }

    /// An image that is known to work.
    pub(super) struct RawCanary {
        /// The file, relative to this one.
        image: String = required,
        /// Text that its primary console shows when it works; a test report if missing.
        until: Pattern = optional,
        /// How long it may take; "30s" if missing.
        timeout: Duration = optional,
    }

    /// A transport to a console of a real board. Each kind of transport is a key of its own; one is
    /// given.
    pub(super) struct RawTransport {
        /// The console, as the board's profile names it.
        name: ConsoleName = required,
        /// A serial port of this host, by its path: best one of /dev/serial/by-id/.
        tty: String = optional,
        /// A server that passes the bytes of a serial port on as they are, as "HOST:PORT".
        tcp: String = optional,
        /// A server that speaks RFC 2217 (telnet with control of the port), as "HOST:PORT".
        rfc2217: String = optional,
        /// A socket of this host that passes the bytes on as they are, by its path.
        unix: String = optional,
        /// A program whose input and output are the console, and its arguments, one by one, such
        /// as ["ssh", "-T", "lab-1", "socat - /dev/ttyUSB0,rawer,b115200"]. No secrets: messages
        /// show it.
        command: Vec<Located<String>> = optional,
        /// Text of the line by which a `command` says that it is connected; that line and what
        /// stands before it are not the console's. Without it the console counts as connected
        /// when the program prints anything or has run for a second.
        ready: String = optional,
        /// Speed in bits per second, any that the port can do; the profile's if missing. Only
        /// of a `tty` or `rfc2217`.
        baud: u32 = optional,
        /// How long to wait for the other end: to be there when the board gets power, and to
        /// come back when it goes away in a run; "10s" if missing.
        timeout: Duration = optional,
    }

    /// An emulated board.
    pub(super) struct RawEmulator {
        /// Arguments after those of the profile, one by one.
        args: Vec<Located<String>> = optional,
        /// How an image gets onto the board: by a virtual debug probe, as onto the real one,
        /// or by the emulator's loader. As the profile says if missing.
        deploy: EmulatorDeploy = optional,
    }

    /// The debug probe of a real board.
    pub(super) struct RawProbe {
        /// Which probe: "VID:PID" or "VID:PID:SERIAL", as `jig probes` shows it.
        selector: String = required,
        /// The chip, where it differs from the profile's; by the name probe-rs knows it by.
        chip: String = optional,
        /// Speed of the debug wire in kHz; the probe's own default if missing.
        speed_khz: u32 = optional,
        /// Protocol of the debug wire; as the chip prefers if missing.
        protocol: WireProtocol = optional,
        /// Whether the chip is held in reset while the probe attaches, for firmware that
        /// sleeps or takes the debug pins; false if missing.
        under_reset: bool = optional,
        /// Serial port that a flasher of the profile is told as `{port}`, by its path.
        port: String = optional,
    }

    /// Where runs are kept, and for how long. Nothing is removed if nothing is said.
    pub(super) struct RawRuns {
        /// The directory; relative to the rig file.
        dir: String = optional,
        /// Runs older than this are removed, such as "30d".
        keep: Duration = optional,
        /// The oldest runs are removed while all together take more, such as "2G".
        keep_size: ByteSize = optional,
    }

    /// How much is kept of what each console prints between runs, while `jig serve` runs.
    pub(super) struct RawCapture {
        /// A file of the log is followed by the next one at this size; "16M" if missing.
        file_size: ByteSize = optional,
        /// And at this age, if anything stands in it; "1d" if missing.
        file_age: Duration = optional,
        /// The oldest files are removed while those of one console take more; "256M" if missing.
        keep_size: ByteSize = optional,
        /// Files whose last byte is older are removed; "14d" if missing.
        keep: Duration = optional,
    }
}
