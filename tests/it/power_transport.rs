//! Power by serial relays, Modbus, SNMP, IPMI and Redfish, each against a simulator.

use std::fs::{self, File};
use std::io::{Read as _, Write as _};
use std::net::SocketAddrV4;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::thread;

use nix::pty::openpty;
use nix::unistd::ttyname;

use crate::power_lab::{Lab, Simulator, free_address, until_listens};
use crate::workshop::until;

/// A pseudo-terminal that changes no byte.
struct Pty {
    path: PathBuf,
    device: File,
    /// While this end is open, the port exists between two commands, as a real one does.
    held: File,
}

fn pty() -> Pty {
    let pty = openpty(None, None).unwrap();
    let path = ttyname(&pty.slave).unwrap();
    let mut settings = nix::sys::termios::tcgetattr(&pty.slave).unwrap();
    nix::sys::termios::cfmakeraw(&mut settings);
    nix::sys::termios::tcsetattr(&pty.slave, nix::sys::termios::SetArg::TCSANOW, &settings)
        .unwrap();
    Pty { path, device: File::from(pty.master), held: File::from(pty.slave) }
}

/// A serial port whose other end is a function: it gets bytes and returns what to answer.
/// The thread ends when the port is closed for good.
pub(crate) fn serial(mut answer: impl FnMut(&[u8]) -> Vec<u8> + Send + 'static) -> (PathBuf, File) {
    let Pty { path, mut device, held } = pty();
    thread::spawn(move || {
        let mut bytes = [0; 256];
        // An error means that no process has the port open, now or ever again.
        while let Ok(n) = device.read(&mut bytes) {
            if n == 0 || device.write_all(&answer(&bytes[..n])).is_err() {
                return;
            }
        }
    });
    (path, held)
}

/// A serial line with a port at each end: what goes into one comes out of the other.
fn serial_line() -> [Pty; 2] {
    let ends = [pty(), pty()];
    for (from, to) in [(&ends[0], &ends[1]), (&ends[1], &ends[0])] {
        let (mut from, mut to) = (from.device.try_clone().unwrap(), to.device.try_clone().unwrap());
        // It ends when no process has the port open, now or ever again.
        thread::spawn(move || std::io::copy(&mut from, &mut to));
    }
    ends
}

#[test]
fn an_lcus_relay_switches() {
    let heard = Arc::new(Mutex::new(Vec::new()));
    let kept = Arc::clone(&heard);
    let (port, _held) = serial(move |bytes| {
        kept.lock().unwrap().extend_from_slice(bytes);
        Vec::new()
    });
    let device = format!("[power.relay]\nport = \"{}\"\nprotocol = \"lcus\"", port.display());
    let lab = Lab::new(&device, &[("a", "2")]);
    lab.switches(&[], "accepted", || {
        // The relay hears it a moment later.
        let frame: [u8; 4] = until("a whole frame", || {
            let heard = heard.lock().unwrap();
            (heard.len() % 4 == 0).then(|| heard.last_chunk::<4>().copied()).flatten()
        });
        assert_eq!(&frame[..2], &[0xa0, 2]);
        assert_eq!(frame[3], frame[..3].iter().fold(0, |sum: u8, byte| sum.wrapping_add(*byte)));
        if frame[2] == 1 { "on".to_owned() } else { "off".to_owned() }
    });
}

#[test]
fn a_numato_relay_switches_and_is_read_back() {
    let state = Arc::new(Mutex::new(String::from("off")));
    let kept = Arc::clone(&state);
    let mut line = String::new();
    let (port, _held) = serial(move |bytes| {
        let mut answer = Vec::new();
        for &byte in bytes {
            answer.push(byte);
            if byte != b'\r' {
                line.push(char::from(byte));
                continue;
            }
            answer.extend_from_slice(b"\n");
            let mut state = kept.lock().unwrap();
            match std::mem::take(&mut line).as_str() {
                "relay on A" => *state = "on".to_owned(),
                "relay off A" => *state = "off".to_owned(),
                "relay read A" => answer.extend(format!("{state}\n\r").bytes()),
                _ => answer.extend_from_slice(b"bad command\n\r"),
            }
            answer.extend_from_slice(b"\r>");
        }
        answer
    });
    let device = format!(
        "min_interval = \"1ms\"\n[power.relay]\nport = \"{}\"\nprotocol = \"numato\"",
        port.display()
    );
    let lab = Lab::new(&device, &[("a", "A"), ("b", "7")]);
    lab.switches(&[], "read-back", || state.lock().unwrap().clone());
    lab.power(&["-b", "b", "on"]).says(75, &["refused: bad command"]);
    let file = fs::OpenOptions::new().read(true).write(true).open(&port).unwrap();
    file.lock().unwrap();
    lab.power(&["-b", "a", "on"]).says(75, &["another program uses it"]);
}

#[test]
fn a_relay_that_answers_nonsense_or_nothing_is_given_up() {
    let (port, _held) = serial(|_| vec![b'x'; 300]);
    let device = |port: &str| {
        format!("timeout = \"200ms\"\n[power.relay]\nport = \"{port}\"\nprotocol = \"numato\"")
    };
    let lab = Lab::new(&device(port.to_str().unwrap()), &[("a", "1")]);
    lab.power(&["-b", "a", "on"]).says(75, &["answered nonsense"]);
    let (port, _held) = serial(|_| Vec::new());
    lab.declare(&device(port.to_str().unwrap()), &[("a", "1")]);
    lab.power(&["-b", "a", "on"]).says(75, &["did not answer within 200ms"]);
    lab.declare(&device("/dev/no-such-tty"), &[("a", "1")]);
    lab.power(&["-b", "a", "on"]).says(75, &["reach the port /dev/no-such-tty"]);
}

/// A Modbus server with 16 coils in one unit, which writes down what is written.
const MODBUS_SERVER: &str = r#"
import sys
from pymodbus.server import StartSerialServer, StartTcpServer
from pymodbus.server.async_io import ModbusSingleRequestHandler
from pymodbus.datastore import ModbusSequentialDataBlock, ModbusSlaveContext, ModbusServerContext
from pymodbus.transaction import ModbusRtuFramer

class Coils(ModbusSequentialDataBlock):
    def setValues(self, address, values):
        super().setValues(address, values)
        with open("coils", "w") as file:
            file.write("".join("1" if v else "0" for v in self.values))

class OnLine(ModbusSingleRequestHandler):
    def connection_made(self, transport):
        super().connection_made(transport)
        open("ready", "w").close()

unit = ModbusSlaveContext(co=Coils(0, [False] * 16), zero_mode=True)
if sys.argv[1] == "tcp":
    context = ModbusServerContext(slaves=unit, single=True)
    StartTcpServer(context=context, address=(sys.argv[2], int(sys.argv[3])))
else:
    context = ModbusServerContext(slaves={3: unit}, single=False)
    StartSerialServer(context=context, framer=ModbusRtuFramer, handler=OnLine, port=sys.argv[2], baudrate=int(sys.argv[3]))
"#;

/// Starts a Modbus server of 16 coils that keeps them in a file.
fn modbus_server(lab: &Lab, args: [&str; 3]) -> Simulator {
    lab.workshop.write("server.py", MODBUS_SERVER);
    let [kind, place, number] = args;
    let args = ["server.py", kind, place, number];
    Simulator::start("/usr/bin/python3", &args, &lab.workshop.path(""))
}

/// Answers the state of coil 5 of such a server; no other may have been touched.
fn coil_5(lab: &Lab) -> String {
    let coils = fs::read_to_string(lab.workshop.path("coils")).unwrap();
    let others = coils.chars().enumerate().filter(|(n, _)| *n != 5).all(|(_, c)| c == '0');
    assert!(others, "{coils}");
    if coils.as_bytes()[5] == b'1' { "on".to_owned() } else { "off".to_owned() }
}

#[test]
fn a_modbus_coil_switches_by_tcp() {
    let lab = Lab::new("[power.manual]", &[]);
    let address = free_address();
    let (host, port) = (address.ip().to_string(), address.port().to_string());
    let _server = modbus_server(&lab, ["tcp", &host, &port]);
    until_listens(address);
    let device =
        format!("min_interval = \"1ms\"\n[power.modbus]\naddress = \"{address}\"\nunit = 1");
    lab.declare(&device, &[("a", "5"), ("b", "99")]);
    lab.switches(&[], "read-back", || coil_5(&lab));
    lab.power(&["-b", "b", "on"]).says(75, &["exception 2: it has no such coil"]);
}

#[test]
fn a_modbus_coil_switches_by_a_serial_line() {
    let [ours, theirs] = serial_line();
    let device = |unit: u8, more: &str| {
        format!(
            "min_interval = \"1ms\"\n{more}[power.modbus]\nport = \"{}\"\nunit = {unit}\nbaud = 19200",
            ours.path.display()
        )
    };
    let places = [("a", "5"), ("b", "99")];
    let lab = Lab::new(&device(3, "timeout = \"60s\"\n"), &places);
    let _server = modbus_server(&lab, ["rtu", theirs.path.to_str().unwrap(), "19200"]);
    // It is not asked before: a line keeps what comes too late, and answers have no numbers.
    until("a server on the line", || lab.workshop.path("ready").exists().then_some(()));
    lab.switches(&[], "read-back", || coil_5(&lab));
    lab.power(&["-b", "b", "on"]).says(75, &["exception 2: it has no such coil"]);
    // Another unit on the same line is none of this server's business: it is silent.
    lab.declare(&device(4, "timeout = \"300ms\"\n"), &places);
    lab.power(&["-b", "a", "on"]).says(75, &["did not answer within 300ms"]);
}

/// Keeps an outlet's number in a file, as `pass_persist` wants it (snmpd.conf(5)). It gets an
/// empty line after each set.
const SNMP_SCRIPT: &str = r#"
import os, sys
base = ".1.3.6.1.4.1.318.1.1.12.3.3.1.1.4"
def value(oid):
    try:
        return open("outlet-" + oid.rsplit(".", 1)[1]).read().strip()
    except OSError:
        return None
while True:
    line = sys.stdin.readline()
    if not line:
        break
    line = line.strip()
    if line == "PING":
        print("PONG")
    elif line == "get":
        oid = sys.stdin.readline().strip()
        print("%s\ninteger\n%s" % (oid, value(oid)) if value(oid) else "NONE")
    elif line == "getnext":
        sys.stdin.readline()
        print("NONE")
    elif line == "set":
        oid, new = sys.stdin.readline().strip(), sys.stdin.readline().strip()
        if value(oid) is None:
            print("not-writable")
        elif not os.path.exists("stuck"):
            with open("new", "w") as file:
                file.write(new.split()[-1].strip('"'))
            os.rename("new", "outlet-" + oid.rsplit(".", 1)[1])
            print("DONE")
        else:
            print("DONE")
    sys.stdout.flush()
"#;

/// Starts an agent and waits until it answers.
fn agent(lab: &Lab) -> (Simulator, SocketAddrV4) {
    let folder = lab.workshop.path("");
    lab.workshop.write("outlets.py", SNMP_SCRIPT);
    lab.workshop.write("outlet-3", "1");
    let address = free_address();
    let config = format!(
        "agentAddress udp:{address}\n\
         rwcommunity hunter2 127.0.0.1\n\
         createUser jig SHA-256 \"hunter2-auth\" AES \"hunter2-privacy\"\n\
         rwuser jig authPriv\n\
         pass_persist .1.3.6.1.4.1.318.1.1.12.3.3.1.1.4 /usr/bin/python3 {}\n",
        lab.workshop.path("outlets.py").display()
    );
    lab.workshop.write("snmpd.conf", config);
    fs::create_dir(lab.workshop.path("state")).unwrap();
    let args = [
        "SNMP_PERSISTENT_DIR=state",
        "snmpd",
        "-f",
        "-Lo",
        "-C",
        "-c",
        "snmpd.conf",
        "-I",
        "-smux",
    ];
    let simulator = Simulator::start("/usr/bin/env", &args, &folder);
    // An independent client tells when it is there.
    until("an agent that answers", || {
        let mut get = std::process::Command::new("snmpget");
        let peer = address.to_string();
        get.args([
            "-v2c",
            "-c",
            "hunter2",
            "-r0",
            "-t0.2",
            &peer,
            ".1.3.6.1.4.1.318.1.1.12.3.3.1.1.4.3",
        ]);
        get.env("MIBS", "").output().unwrap().status.success().then_some(())
    });
    (simulator, address)
}

fn outlet_3(lab: &Lab) -> String {
    let number = fs::read_to_string(lab.workshop.path("outlet-3")).unwrap();
    if number == "1" { "on".to_owned() } else { "off".to_owned() }
}

#[test]
fn an_snmp_outlet_switches_with_every_version() {
    let lab = Lab::new("[power.manual]", &[]);
    let (_agent, address) = agent(&lab);
    let device = |more: &str| {
        format!(
            "min_interval = \"1ms\"\nsettle = \"200ms\"\ntimeout = \"60s\"\n[power.snmp]\n\
             address = \"{address}\"\npreset = \"apc\"\n{more}"
        )
    };
    let places = [("a", "3"), ("b", "4")];
    let secrets = [("C", "hunter2"), ("A", "hunter2-auth"), ("P", "hunter2-privacy")];
    let third =
        "user = \"jig\"\nauth_password = { env = \"A\" }\nprivacy_password = { env = \"P\" }";
    let second = "community = { env = \"C\" }";
    for more in [second, "community = { env = \"C\" }\nversion = \"1\"", third] {
        lab.declare(&device(more), &places);
        lab.switches(&secrets, "read-back", || outlet_3(&lab));
        let none = lab.power_with(&["-b", "b", "on"], &secrets);
        none.says(75, &["the SNMP agent at 127.", "refused"]);
    }
    // Wrong secrets: silence, or a refusal.
    let bad = [("C", "hunter3"), ("A", "hunter3-auth"), ("P", "hunter2-privacy")];
    let ran = lab.power_with(&["-b", "a", "off", "-vvv"], &bad);
    ran.says(75, &[]);
    assert!(!ran.err().contains("hunter"), "{ran}");
    lab.declare(&device(second), &places);
    let ran = lab.power_with(&["-b", "a", "off"], &bad);
    ran.says(75, &["silent also if the community is wrong", "did not answer within 4s"]);
    // An agent that says yes and does nothing.
    lab.workshop.write("stuck", "");
    let lied = lab.power_with(&["-b", "a", "off"], &secrets);
    lied.says(
        75,
        &["outlet 3 of pdu was switched off, but still says the contrary", "right outlet"],
    );
    assert_eq!(outlet_3(&lab), "on");
}

#[test]
fn an_snmp_agent_that_answers_nonsense_is_survived() {
    let socket = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    let port = socket.local_addr().unwrap().port();
    socket.set_read_timeout(Some(crate::workshop::DEADLINE)).unwrap();
    let answers: [&'static [u8]; 4] = [
        b"hello",
        b"\x30\x84\xff\xff\xff\xff",
        b"\x30\x0a\x02\x01\x01\x04\x01x\xa2\x82\xff\xff",
        b"\x30\x03\x02\x09\xff",
    ];
    let lab = Lab::new(
        &format!(
            "min_interval = \"1ms\"\n[power.snmp]\naddress = \"127.0.0.1:{port}\"\npreset = \"apc\""
        ),
        &[("a", "3")],
    );
    for answer in answers {
        thread::scope(|scope| {
            let server = scope.spawn(|| {
                let (_, peer) = socket.recv_from(&mut [0; 2048]).unwrap();
                socket.send_to(answer, peer).unwrap();
            });
            lab.power(&["-b", "a", "on"]).says(75, &["nonsense"]);
            server.join().unwrap();
        });
    }
}

/// A controller for `ipmi_sim`; its chassis is a script that keeps the state in a file.
fn controller(lab: &Lab) -> (Simulator, SocketAddrV4) {
    let folder = lab.workshop.path("");
    let script = "#!/bin/sh\ncd \"$(dirname \"$0\")\"\nshift\n\
                  if [ \"$1\" = get ]; then echo \"power:$(cat chassis)\"; exit; fi\n\
                  shift\nwhile [ $# -gt 1 ]; do [ \"$1\" = power ] && { echo $2 > chassis; }; shift 2; done\n";
    let script = lab.workshop.write("chassis-control", script);
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).unwrap();
    lab.workshop.write("chassis", "1\n");
    lab.workshop.write("sim.emu", "mc_setbmc 0x20\nmc_add 0x20 0 no-device-sdrs 0x23 9 8 0x9f 0x1291 0xf02\nsel_enable 0x20 1000 0x0a\nmc_enable 0x20\n");
    fs::create_dir(lab.workshop.path("state")).unwrap();
    let address = free_address();
    let (host, port) = (address.ip(), address.port());
    let config = format!(
        "name \"bmc\"\nset_working_mc 0x20\n  startlan 1\n    addr {host} {port}\n    \
         priv_limit admin\n    allowed_auths_callback none md2 md5 straight\n    \
         allowed_auths_user none md2 md5 straight\n    allowed_auths_operator none md2 md5 straight\n    \
         allowed_auths_admin none md2 md5 straight\n    guid a123456789abcdefa123456789abcdef\n  endlan\n  \
         chassis_control \"{} 0x20\"\n  startnow false\n  \
         user 1 true  \"\"        \"test\" user     10       none md2 md5 straight\n  \
         user 2 true  \"jig\" \"hunter2\" admin    10       none md2 md5 straight\n",
        script.display()
    );
    lab.workshop.write("lan.conf", config);
    let args = ["-c", "lan.conf", "-f", "sim.emu", "-s", "state", "-n"];
    (Simulator::start("ipmi_sim", &args, &folder), address)
}

#[test]
fn an_ipmi_controller_switches() {
    let lab = Lab::new("[power.manual]", &[]);
    let (_controller, address) = controller(&lab);
    let device = format!(
        "min_interval = \"1ms\"\ntimeout = \"60s\"\n[power.ipmi]\naddress = \"{address}\"\n\
         user = \"jig\"\npassword = {{ env = \"BMC\" }}"
    );
    lab.declare(&device, &[("a", "")]);
    let secret = [("BMC", "hunter2")];
    until("a controller that answers", || {
        let status = lab.power_with(&["-b", "a", "status"], &secret);
        (status.code() == 0).then_some(())
    });
    lab.switches(&secret, "read-back", || {
        let chassis = fs::read_to_string(lab.workshop.path("chassis")).unwrap();
        if chassis.trim() == "1" { "on".to_owned() } else { "off".to_owned() }
    });
    let ran = lab.power_with(&["-b", "a", "off", "-vvv"], &[("BMC", "hunter3")]);
    ran.says(75, &["ipmitool refused"]);
    assert!(!format!("{ran}").contains("hunter"), "{ran}");
    let nobody = free_address().to_string();
    let device = device.replace(&address.to_string(), &nobody).replace("60s", "300ms");
    lab.declare(&device, &[("a", "")]);
    lab.power_with(&["-b", "a", "on"], &secret).says(75, &["did not answer within 300ms"]);
}

#[test]
fn nobody_is_asked_where_there_is_no_terminal() {
    let lab = Lab::new("[power.manual]\nhint = \"under the desk\"", &[("a", "plug-3")]);
    lab.power(&["-b", "a", "off"]).says(75, &["a person must switch it, and there is no terminal"]);
    let status = lab.power(&["-b", "a", "status"]);
    status.says(0, &[]);
    assert_eq!(status.out(), "a: unknown (outlet plug-3 of pdu, it cannot be asked)\n");
}
