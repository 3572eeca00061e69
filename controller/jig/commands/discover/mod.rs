//! `jig discover`: what is attached, as a rig file to edit.

mod draft;

use std::fs::OpenOptions;
use std::io::{self, Write as _};
use std::path::Path;

use jig_drivers::discover::{Roots, hubs, ttys};
use jig_lab::{Catalogue, served_places};
use jig_model::{BoardId, Fault, exit};
use jig_probe::list_probes;
use serde_json::json;

use self::draft::{Discovered, draft};
use super::runtime::runtime;
use crate::args::{Common, DiscoverArgs};
use crate::failure::{Failure, chain};
use crate::render::{Screen, one_line};

/// Looks at what is attached, and drafts a rig file of it. Opens no device.
///
/// JSON: `{"ttys":[{"node","by_id","by_path","driver","interface","usb"}],"probes":[...],"hubs":
/// [{"name","title","ports":[{"number","switches","device"}]}],"served":[{"place","selector"}],
/// "rig"}`; `usb` is `{"vendor","product","serial","title","port"}` or null, probes are as
/// `jig probes` lists them, and `rig` is the text of the rig file.
pub(crate) fn discover(
    common: &Common,
    screen: &Screen,
    args: DiscoverArgs,
) -> Result<u8, Failure> {
    let roots = Roots { sysfs: args.sysfs, dev: args.dev };
    let runtime = runtime()?;
    let probes = runtime.block_on(list_probes());
    let probes = probes.map_err(|error| Failure::of(error.fault(), &error))?;
    // A broken rig file may be the reason for this command.
    let (served, boards) = match Catalogue::load(&common.own_lab()) {
        Ok(catalogue) => {
            let served = served_places(&catalogue)?.into_iter();
            let served = served.map(|served| (served.place, served.selector)).collect();
            (served, catalogue.profiles.into_keys().collect())
        }
        Err(error) => {
            screen.say(&format!("boards and places are unknown: {}", one_line(&chain(&error))));
            (Vec::new(), Vec::<BoardId>::new())
        }
    };
    let found = Discovered { ttys: ttys(&roots), probes, hubs: hubs(&roots), served, boards };
    let text = draft(&found);
    if let Some(path) = &args.output {
        write(path, &text)?;
        screen.say(&format!("wrote {}: name the boards in it, then see `jig boards`", shown(path)));
    }
    if screen.json() {
        let served = found
            .served
            .iter()
            .map(|(place, selector)| json!({ "place": place, "selector": selector }));
        screen.out_json(&json!({
            "ttys": found.ttys,
            "probes": found.probes,
            "hubs": found.hubs,
            "served": served.collect::<Vec<_>>(),
            "rig": text,
        }));
    } else if args.output.is_none() {
        screen.out(text.trim_end());
    }
    Ok(exit::PASS)
}

fn shown(path: &Path) -> String {
    one_line(&path.display().to_string())
}

/// Writes a new file; never replaces an existing rig file.
fn write(path: &Path, text: &str) -> Result<(), Failure> {
    let file = OpenOptions::new().write(true).create_new(true).open(path);
    let written = file.and_then(|mut file| file.write_all(text.as_bytes()));
    written.map_err(|error| match error.kind() {
        io::ErrorKind::AlreadyExists => {
            Failure::new(Fault::Usage, format!("{} is there already", shown(path)))
                .help("choose another name, or compare: jig discover")
        }
        _ => {
            let message = format!("could not write {}: {}", shown(path), chain(&error));
            Failure::new(Fault::Lab, message)
        }
    })
}
