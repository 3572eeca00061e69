//! Simulators of power devices, started by a test and gone with it: programs on loopback,
//! and small servers in threads where no program is at hand.

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddrV4, TcpListener, TcpStream};
use std::path::Path;
use std::process::Stdio;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use crate::workshop::{Ran, Started, Workshop, until};

/// A lab: a rig file of power devices and of places on them.
pub(crate) struct Lab {
    pub(crate) workshop: Workshop,
}

impl Lab {
    /// Makes a lab of one device, `pdu`; its places are given as name and outlet. The boards
    /// behind the probes are not there: power does not need them.
    pub(crate) fn new(device: &str, places: &[(&str, &str)]) -> Self {
        let lab = Self { workshop: Workshop::new() };
        lab.declare(device, places);
        lab
    }

    /// Writes the rig file.
    pub(crate) fn declare(&self, device: &str, places: &[(&str, &str)]) {
        let mut rig = format!("version = 1\n[[power]]\nname = \"pdu\"\n{device}\n");
        for (name, outlet) in places {
            let outlet = match *outlet {
                "" => String::new(),
                outlet => format!(", outlet = \"{outlet}\""),
            };
            rig += &format!(
                "[[place]]\nname = \"{name}\"\nboard = \"microbit\"\n\
                 probe = {{ selector = \"0d28:0204:{name}\" }}\n\
                 power = {{ device = \"pdu\", off_time = \"20ms\"{outlet} }}\n"
            );
        }
        self.workshop.write("rig.toml", rig);
    }

    /// Switches a place, with variables in the environment.
    pub(crate) fn power_with(&self, args: &[&str], variables: &[(&str, &str)]) -> Ran {
        let mut jig = self.workshop.jig(["power"].iter().chain(args));
        jig.envs(variables.iter().copied());
        crate::workshop::ran(&mut jig).unwrap_or_else(|why| panic!("{why}"))
    }

    /// Switches a place.
    pub(crate) fn power(&self, args: &[&str]) -> Ran {
        self.power_with(args, &[])
    }

    /// Switches place `a` off and on, reads it each time, and cycles it; `truth` tells what
    /// the device really did. `confirmed` is how Jig knows.
    #[track_caller]
    pub(crate) fn switches(
        &self,
        variables: &[(&str, &str)],
        confirmed: &str,
        mut truth: impl FnMut() -> String,
    ) {
        for (action, state) in [("off", "off"), ("on", "on"), ("off", "off"), ("cycle", "on")] {
            let ran = self.power_with(&["-b", "a", action, "--json"], variables);
            ran.says(0, &[]);
            let json = ran.json().unwrap();
            assert_eq!(json["state"], state, "{ran}");
            assert_eq!(json["confirmation"], confirmed, "{ran}");
            let known =
                if confirmed == "accepted" { serde_json::Value::Null } else { state.into() };
            assert_eq!(truth(), state, "after {action}: {ran}");
            let status = self.power_with(&["-b", "a", "status", "--json"], variables);
            status.says(0, &[]);
            assert_eq!(status.json().unwrap()["state"], known, "{status}");
        }
    }
}

/// Returns an address that no process listens on. The host part is of this call alone, so no other
/// test takes the port before a program listens there.
pub(crate) fn free_address() -> SocketAddrV4 {
    static CALLS: AtomicU8 = AtomicU8::new(1);
    let [.., high, low] = std::process::id().to_be_bytes();
    let host = Ipv4Addr::new(127, CALLS.fetch_add(1, Ordering::SeqCst), high, low.max(1));
    let port = TcpListener::bind((host, 0)).unwrap().local_addr().unwrap().port();
    SocketAddrV4::new(host, port)
}

/// A program that stands for a device. It dies with the test, also if the test is killed.
pub(crate) struct Simulator {
    _started: Started,
}

impl Simulator {
    /// Starts a program.
    pub(crate) fn start(program: &str, args: &[&str], folder: &Path) -> Self {
        let log = fs::File::create(folder.join(format!("{}.log", program.replace('/', "_"))));
        let log = log.unwrap();
        let mut command = crate::workshop::tied(program);
        command.args(args).current_dir(folder);
        command.stdin(Stdio::null()).stdout(log.try_clone().unwrap()).stderr(log);
        let started = Started::of(&mut command);
        Self { _started: started }
    }
}

/// Waits until a TCP port answers.
pub(crate) fn until_listens(address: SocketAddrV4) {
    until("a listening port", || TcpStream::connect(address).ok());
}

/// One request to a [`Web`]: the first line without the version, and the whole head and body.
pub(crate) struct Asked {
    pub(crate) line: String,
    pub(crate) text: String,
}

/// A web server of one thread.
pub(crate) struct Web {
    port: u16,
    stop: Arc<AtomicBool>,
    asked: Arc<Mutex<Vec<String>>>,
    thread: Option<JoinHandle<()>>,
}

impl Web {
    /// Starts a server; `answer` makes the whole answer to each request, head and body.
    pub(crate) fn start(mut answer: impl FnMut(&Asked) -> Vec<u8> + Send + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let (stop, asked) = (Arc::new(AtomicBool::new(false)), Arc::new(Mutex::new(Vec::new())));
        let (ended, list) = (Arc::clone(&stop), Arc::clone(&asked));
        let thread = std::thread::spawn(move || {
            for stream in listener.incoming() {
                if ended.load(Ordering::SeqCst) {
                    return;
                }
                let Ok(mut stream) = stream else { continue };
                let Some(asked) = read_request(&stream) else { continue };
                list.lock().unwrap().push(asked.line.clone());
                // The client may have gone away.
                let _ = stream.write_all(&answer(&asked));
            }
        });
        Self { port, stop, asked, thread: Some(thread) }
    }

    /// Returns its address.
    pub(crate) fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// Returns the first lines of all requests so far.
    pub(crate) fn asked(&self) -> Vec<String> {
        self.asked.lock().unwrap().clone()
    }
}

impl Drop for Web {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::SeqCst);
        drop(TcpStream::connect(("127.0.0.1", self.port)));
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
            && !std::thread::panicking()
        {
            panic!("the simulator panicked");
        }
    }
}

fn read_request(stream: &TcpStream) -> Option<Asked> {
    let mut reader = BufReader::new(stream);
    let mut text = String::new();
    let mut length = 0;
    loop {
        let start = text.len();
        if reader.read_line(&mut text).ok()? == 0 {
            return None;
        }
        let line = text[start..].trim().to_ascii_lowercase();
        if let Some(value) = line.strip_prefix("content-length:") {
            length = value.trim().parse().ok()?;
        }
        if line.is_empty() {
            break;
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    text += &String::from_utf8(body).ok()?;
    let line = text.lines().next()?.strip_suffix(" HTTP/1.1")?.to_owned();
    Some(Asked { line, text })
}

/// Makes an answer of a status and a JSON body.
pub(crate) fn json_answer(status: &str, body: &str) -> Vec<u8> {
    format!(
        "HTTP/1.1 {status}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    )
    .into_bytes()
}
