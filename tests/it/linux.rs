//! A Linux machine: its image set boots through its stages, and its shell answers.

use std::ffi::OsString;
use std::path::PathBuf;

use crate::workshop::{Slot, Workshop, ran};

/// Finds the image sets where `cargo xtask images` puts them.
pub(crate) fn image_sets() -> PathBuf {
    let variable = |name: &str| std::env::var_os(name).filter(|value: &OsString| !value.is_empty());
    let below = |name: &str, path: &str| Some(PathBuf::from(variable(name)?).join(path));
    let folder = below("JIG_IMAGES", "")
        .or_else(|| below("XDG_CACHE_HOME", "jig/images"))
        .or_else(|| below("HOME", ".cache/jig/images"))
        .expect("JIG_IMAGES or HOME is set");
    assert!(
        folder.join("arm64-virt/image.json").is_file(),
        "there is no image set arm64-virt in {}\nrun: cargo xtask images",
        folder.display()
    );
    folder
}

const PLAN: &str = r#"
version = 1
name = "linux-shell"
goal = "Linux boots, and its shell counts"
timeout = "140s"

[[stage]]
name = "boot"

[[stage.step]]
name = "boot"
actions = [{ power = "cycle" }, { boot = true }]

[[stage]]
name = "talk"

[[stage.step]]
name = "count"
actions = [
    { send = "\n" },
    { expect = 'jig# ', timeout = "30s" },
    { send = "echo the answer is $((40+2))\n" },
    { expect = '^the answer is 42\r\n', timeout = "30s" },
    { power = "off" },
]
"#;

#[test]
fn linux_boots_and_answers() {
    let images = image_sets();
    let _slot = Slot::take();
    let workshop = Workshop::new();
    let plan = workshop.write("linux.toml", PLAN);
    let mut command = workshop.jig(["--json", "test", "-b", "arm64-virt"]);
    command.arg(plan).env("JIG_IMAGES", images);
    let ran = ran(&mut command).unwrap_or_else(|why| panic!("{why}"));
    ran.says(0, &[]);
    let document = ran.json().unwrap();
    assert_eq!(document["verdict"]["cause"], "expectations_met", "{ran}");
    assert!(workshop.processes().is_empty(), "its emulator is gone: {:?}", workshop.processes());
}
