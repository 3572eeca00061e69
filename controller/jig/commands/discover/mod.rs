//! `jig discover`: what is attached, as a rig file to edit.

mod draft;

use std::fs::OpenOptions;
use std::io::Write as _;
use std::path::Path;

use jig_drivers::discover::Roots;
use jig_lab::{AttachedDevices, RigQuery, RigView};
use jig_model::exit;
use serde_json::json;

use self::draft::draft;
use super::execute::unexpected;
use super::rig::view;
use super::runtime::runtime;
use crate::args::{Common, DiscoverArgs};
use crate::failure::{Failure, shell_word};
use crate::render::{Screen, one_line};

/// Looks at what is attached to the rig's host, and drafts a rig file of it, which is written at this
/// host. Opens no device.
///
/// JSON: `{"ttys":[{"node","by_id","by_path","driver","interface","usb"}],"probes":[...],"hubs":
/// [{"name","title","ports":[{"number","switches","device"}]}],"candidates":{DEVICE:[{"board","title",
/// "console"}]},"served":[{"place","selector"}],"rig"}`; `usb` is `{"vendor","product","serial","title","port"}` or null, probes are as
/// `jig probes` lists them, and `rig` is the text of the rig file.
pub(crate) fn discover(
    common: &Common,
    screen: &Screen,
    args: DiscoverArgs,
) -> Result<u8, Failure> {
    let found = attached(common, &args)?;
    if let Some(why) = &found.unknown {
        screen.say(&format!("boards and places are unknown: {}", one_line(why)));
    }
    let text = draft(&found);
    if let Some(path) = &args.output {
        write(path, &text)?;
        // Of another name or in another folder it is no rig file that is found by itself.
        let by_itself = path == Path::new("rig.toml") || path == Path::new("./rig.toml");
        let named = match by_itself {
            true => String::new(),
            false => format!("--rig {} ", shell_word(&path.display().to_string())),
        };
        screen.say(&format!(
            "wrote {}: name the boards that are not certain, then see `jig {named}boards`",
            shown(path)
        ));
    }
    if screen.json() {
        let served = found.served.iter();
        let served =
            served.map(|served| json!({ "place": served.place, "selector": served.selector }));
        screen.out_json(&json!({
            "ttys": found.ttys,
            "probes": found.probes,
            "hubs": found.hubs,
            "candidates": found.candidates,
            "served": served.collect::<Vec<_>>(),
            "rig": text,
        }));
    } else if args.output.is_none() {
        screen.out(text.trim_end());
    }
    Ok(exit::PASS)
}

/// Looks around at the rig's host.
fn attached(common: &Common, args: &DiscoverArgs) -> Result<AttachedDevices, Failure> {
    if common.is_elsewhere() {
        return match view(common, RigQuery::Attached)? {
            RigView::Attached(found) => Ok(found),
            _ => Err(unexpected()),
        };
    }
    let roots = Roots { sysfs: args.sysfs.clone(), dev: args.dev.clone() };
    let looked =
        runtime()?.block_on(AttachedDevices::at(&roots, &common.reader, &common.own_lab()));
    Ok(looked?)
}

fn shown(path: &Path) -> String {
    one_line(&path.display().to_string())
}

/// Writes a new file; never replaces an existing rig file.
fn write(path: &Path, text: &str) -> Result<(), Failure> {
    let file = OpenOptions::new().write(true).create_new(true).open(path);
    let written = file.and_then(|mut file| file.write_all(text.as_bytes()));
    written.map_err(|error| {
        Failure::of_new_file(path, &error, "choose another name, or compare: jig discover")
    })
}
