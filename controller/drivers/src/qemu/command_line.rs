//! The argument list of one launch. Pure.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::path::Path;

use jig_model::image::{Image, ImageFormat};
use jig_model::profile::{ArgPart, BoardProfile, ConsoleKind, ConsoleSpec, Emulation, arg_parts};
use jig_model::rig_file::EmulatorPart;

/// The far ends of what connects the emulator to Jig.
pub(super) struct FarEnds<'a> {
    /// Descriptor of the monitor's socket, which the emulator inherits.
    pub(super) monitor: i32,
    /// Descriptors of the debug channels, if there are any: gdb stub, qtest, second monitor.
    pub(super) debug: Option<[i32; 3]>,
    /// Descriptor of the pipe for what the emulator logs, if there is one.
    pub(super) log: Option<i32>,
    /// Descriptor of the pipe for copies of the consoles' output, which may be the same.
    pub(super) copies: Option<i32>,
    /// Names of the FIFOs, one per console that the emulator carries, in the profile's order.
    pub(super) consoles: Vec<&'a Path>,
}

/// What the placeholders of a profile's arguments stand for.
pub(super) struct PlaceholderValues<'a> {
    pub(super) image: Option<&'a Image>,
    pub(super) image_set: &'a Path,
    pub(super) ports: &'a BTreeMap<String, u16>,
}

/// Lists the consoles that the emulator itself carries.
pub(super) fn own_consoles(profile: &BoardProfile) -> impl Iterator<Item = &ConsoleSpec> {
    let own = [ConsoleKind::Uart, ConsoleKind::Semihosting];
    profile.consoles.iter().filter(move |console| own.contains(&console.kind))
}

/// Builds the argument list.
pub(super) fn arguments(
    profile: &BoardProfile,
    emulation: &Emulation,
    part: &EmulatorPart,
    ends: &FarEnds<'_>,
    places: &PlaceholderValues<'_>,
) -> Vec<OsString> {
    let mut args: Vec<OsString> = Vec::new();
    push(&mut args, &["-machine", &emulation.machine, "-display", "none", "-nodefaults", "-S"]);
    // A guest with semihosting could run programs and change identity on this host; the
    // emulator's own filter takes both away.
    let filter = "on,obsolete=deny,elevateprivileges=deny,spawn=deny,resourcecontrol=deny";
    push(&mut args, &["-sandbox", filter]);
    let monitor = format!("socket,id=jig-monitor,fd={}", ends.monitor);
    push(&mut args, &["-chardev", &monitor, "-mon", "chardev=jig-monitor,mode=control"]);
    if let Some([gdb, qtest, monitor]) = ends.debug {
        debug_channels(&mut args, gdb, qtest, monitor);
    }
    let path_of = |fd: i32| format!("/proc/self/fd/{fd}");
    if let Some(log) = ends.log {
        push(&mut args, &["-D", &path_of(log)]);
    }
    let copies = ends.copies.map(path_of);
    for (console, path) in own_consoles(profile).zip(&ends.consoles) {
        let id = format!("jig-{}", console.name);
        let mut chardev: OsString = format!("pipe,id={id},path=").into();
        chardev.push(path_text(path, true));
        if let Some(path) = &copies {
            chardev.push(format!(",logfile={path},logappend=on"));
        }
        args.extend(["-chardev".into(), chardev]);
        match console.kind {
            ConsoleKind::Uart => push(&mut args, &["-serial", &format!("chardev:{id}")]),
            ConsoleKind::Semihosting => {
                let config = format!("enable=on,target=native,chardev={id}");
                push(&mut args, &["-semihosting-config", &config]);
            }
            ConsoleKind::Rtt | ConsoleKind::Shell => {}
        }
    }
    let has_own = own_consoles(profile).any(|c| c.kind == ConsoleKind::Semihosting);
    if emulation.semihosting && !has_own {
        // Without a console of its own its text would go to the emulator's standard error:
        // a guest could fill the disk there, and forge the emulator's complaints.
        push(&mut args, &["-chardev", "null,id=jig-semihosting"]);
        let config = "enable=on,target=native,chardev=jig-semihosting";
        push(&mut args, &["-semihosting-config", config]);
    }
    for arg in &emulation.args {
        args.push(expand(arg, places));
    }
    if let Some(image) = places.image {
        args.extend(image_args(emulation, image, places));
    }
    args.extend(part.args.iter().map(Into::into));
    args
}

/// Adds the debug channels. The bus channel is given on top of the normal accelerator: the
/// processor executes as always.
fn debug_channels(args: &mut Vec<OsString>, gdb: i32, qtest: i32, monitor: i32) {
    let socket = |id: &str, fd: i32| format!("socket,id={id},fd={fd}");
    push(args, &["-chardev", &socket("jig-gdb", gdb), "-gdb", "chardev:jig-gdb"]);
    // As an object: the option `-qtest` takes no chardev of another name than its own.
    let bus = "qtest,id=jig-bus,chardev=jig-qtest,log=none";
    push(args, &["-chardev", &socket("jig-qtest", qtest), "-object", bus]);
    push(args, &["-chardev", &socket("jig-debug", monitor)]);
    push(args, &["-mon", "chardev=jig-debug,mode=control"]);
}

/// How a profile boots an ELF image where nothing else has to be said.
const KERNEL: [&str; 2] = ["-kernel", "{image}"];

/// Finds the arguments that name the kernel, if the profile gives them so.
fn kernel_at(emulation: &Emulation) -> Option<usize> {
    emulation.image_args.windows(2).position(|pair| pair == KERNEL)
}

/// Tells whether the emulator can load an image of this format.
///
/// `-kernel` takes ELF, and of the rest only what a machine's own boot code expects. The
/// generic loader takes Intel HEX and raw binaries on every machine, but knows nothing of
/// what other arguments a profile boots its images with.
pub(super) fn loads(emulation: &Emulation, format: ImageFormat) -> bool {
    format == ImageFormat::Elf || kernel_at(emulation).is_some()
}

/// Returns the arguments that load an image.
fn image_args(
    emulation: &Emulation,
    image: &Image,
    places: &PlaceholderValues<'_>,
) -> Vec<OsString> {
    let mut args: Vec<OsString> =
        emulation.image_args.iter().map(|arg| expand(arg, places)).collect();
    let device = match image.format {
        ImageFormat::Elf => return args,
        ImageFormat::IntelHex => "loader,file=".to_owned(),
        // Without force-raw the loader would take bytes that look like another format for it.
        ImageFormat::Binary { address } => {
            format!("loader,force-raw=on,addr={:#x},file=", address.0)
        }
    };
    if let Some(at) = kernel_at(emulation) {
        let mut device = OsString::from(device);
        device.push(path_text(&image.path, true));
        args.splice(at..at + KERNEL.len(), ["-device".into(), device]);
    }
    args
}

fn push(args: &mut Vec<OsString>, texts: &[&str]) {
    args.extend(texts.iter().map(OsString::from));
}

/// Lists the names of `{port:NAME}` placeholders.
pub(super) fn port_names(emulation: &Emulation) -> BTreeSet<String> {
    let parts = emulation.args.iter().filter_map(|arg| arg_parts(arg).ok()).flatten();
    let ports = parts.filter_map(|part| match part {
        ArgPart::Port(name) => Some(name.to_owned()),
        ArgPart::Text(_) | ArgPart::Image | ArgPart::Artifact(_) => None,
    });
    ports.collect()
}

/// Fills the placeholders of one argument. The profile was checked, so an argument that
/// does not parse, or names what is not there, is passed on for the emulator to refuse.
fn expand(arg: &str, places: &PlaceholderValues<'_>) -> OsString {
    let Ok(parts) = arg_parts(arg) else { return arg.into() };
    let in_list = arg.contains(',');
    let mut out = OsString::new();
    for part in parts {
        match part {
            ArgPart::Text(text) => out.push(text),
            ArgPart::Image => out.push(
                places.image.map_or_else(OsString::new, |image| path_text(&image.path, in_list)),
            ),
            ArgPart::Artifact(name) => out.push(path_text(&places.image_set.join(name), in_list)),
            ArgPart::Port(name) => {
                out.push(places.ports.get(name).map_or_else(String::new, u16::to_string));
            }
        }
    }
    out
}

/// Returns a path as QEMU reads it: in an option list a comma separates, a double one stands
/// for itself; an argument of its own is taken as it is.
fn path_text(path: &Path, in_list: bool) -> OsString {
    use std::os::unix::ffi::{OsStrExt, OsStringExt};
    let bytes = path.as_os_str().as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    for &byte in bytes {
        out.push(byte);
        if byte == b',' && in_list {
            out.push(byte);
        }
    }
    OsString::from_vec(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use jig_model::image::BinAddress;

    fn image(format: ImageFormat) -> Image {
        Image {
            name: "a.elf".to_owned(),
            path: "/a,{port:ssh}.elf".into(),
            format,
            sha256: String::new(),
            payload_sha256: String::new(),
            payload_bytes: 1,
            payload_spans: Vec::new(),
            build_id: None,
            announces: false,
        }
    }

    fn emulation(image_args: &[&str]) -> Emulation {
        Emulation {
            program: "q".to_owned(),
            machine: "m".to_owned(),
            args: Vec::new(),
            image_args: image_args.iter().map(|&arg| arg.to_owned()).collect(),
            image_set: None,
            semihosting: false,
            quirks: jig_model::profile::Quirks::default(),
            debug: None,
            known_good: None,
        }
    }

    #[test]
    fn what_is_no_elf_goes_to_the_generic_loader() {
        let emulation_of = emulation;
        let emulation = emulation_of(&["-cpu", "x", "-kernel", "{image}", "-y"]);
        let ports = BTreeMap::new();
        let bin = ImageFormat::Binary { address: BinAddress(0x8000) };
        for (format, wanted) in [
            (ImageFormat::Elf, ["-kernel", "/a,{port:ssh}.elf"]),
            (ImageFormat::IntelHex, ["-device", "loader,file=/a,,{port:ssh}.elf"]),
            (bin, ["-device", "loader,force-raw=on,addr=0x8000,file=/a,,{port:ssh}.elf"]),
        ] {
            assert!(loads(&emulation, format));
            let image = image(format);
            let places =
                PlaceholderValues { image: Some(&image), image_set: Path::new("/"), ports: &ports };
            let args = image_args(&emulation, &image, &places);
            assert_eq!(args, ["-cpu", "x", wanted[0], wanted[1], "-y"]);
        }
        let other = emulation_of(&["-pflash", "{image}"]);
        assert!(loads(&other, ImageFormat::Elf));
        assert!(!loads(&other, bin) && !loads(&other, ImageFormat::IntelHex));
    }

    #[test]
    fn placeholders_are_replaced_once_and_only_where_known() {
        let ports = BTreeMap::from([("ssh".to_owned(), 4022)]);
        let places = PlaceholderValues {
            image: Some(&image(ImageFormat::Elf)),
            image_set: Path::new("/set"),
            ports: &ports,
        };
        let cases = [
            ("{image}", "/a,{port:ssh}.elf"),
            ("loader,file={image}", "loader,file=/a,,{port:ssh}.elf"),
            ("hostfwd=tcp:127.0.0.1:{port:ssh}-:22", "hostfwd=tcp:127.0.0.1:4022-:22"),
            ("{artifact:vmlinuz}", "/set/vmlinuz"),
            ("{what}", "{what}"),
        ];
        for (arg, want) in cases {
            assert_eq!(expand(arg, &places), *want, "{arg}");
        }
    }

    #[test]
    fn a_guest_never_writes_to_the_emulators_own_words() {
        use jig_model::profile::FaultSets;
        let text = |console: &str| {
            format!(
                "version = 1\nid = \"x\"\ntitle = \"X\"\narch = \"arm\"\n\
                 memory = [{{ name = \"ram\", kind = \"ram\", start = 0, size = \"1M\" }}]\n\
                 console = [{{ name = \"uart0\", kind = \"uart\", baud = 9600 }}{console}]\n\
                 [emulation]\nprogram = \"q\"\nmachine = \"m\"\nsemihosting = true\n\
                 image_args = [\"{{image}}\"]\n"
            )
        };
        let own = ", { name = \"sh\", kind = \"semihosting\" }";
        for (console, chardev) in [("", "jig-semihosting"), (own, "jig-sh")] {
            let sets = FaultSets::parse(std::iter::empty()).unwrap_or_else(|p| panic!("{}", p[0]));
            let profile = BoardProfile::parse("x.toml", &text(console), &sets)
                .unwrap_or_else(|problems| panic!("{problems}"));
            let paths: Vec<_> = profile.consoles.iter().map(|_| Path::new("/c")).collect();
            let ends =
                FarEnds { monitor: 3, debug: None, log: None, copies: None, consoles: paths };
            let ports = BTreeMap::new();
            let places =
                PlaceholderValues { image: None, image_set: Path::new("/"), ports: &ports };
            let emulation = profile.emulation.as_ref().unwrap();
            let args = arguments(&profile, emulation, &EmulatorPart::default(), &ends, &places);
            let configs: Vec<_> = args
                .windows(2)
                .filter(|pair| pair[0] == "-semihosting-config")
                .map(|pair| pair[1].clone())
                .collect();
            let wanted = format!("enable=on,target=native,chardev={chardev}");
            assert_eq!(configs, [OsString::from(wanted)]);
        }
    }
}
