//! The scripts for CI jobs, with a program in place of `jig`.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::process::Command;

use crate::manifest::{elf, repository};
use crate::workshop::{Ran, Slot, Workshop, ran, tied};

/// Gives leases of `bench-1`, `bench-2` and so on, and ends with the codes of a file in turn.
const FAKE: &str = r#"#!/bin/sh
if [ "$1" = shell ]; then
    echo "$*" >> asked
    number=$(($(cat number 2>/dev/null || echo 0) + 1))
    echo "$number" > number
    while [ "$1" != -- ]; do shift; done
    shift
    JIG_BOARD=bench-$number JIG_LEASE=lease-$number exec "$@"
fi
for word in "$@"; do
    case $word in
    *=*/*) echo "${word%%=*} of $JIG_BOARD" > "${word#*=}" ;;
    esac
    echo "<$word>" >> arguments
done
echo "${JIG_SSH_COMMAND:-}" > ssh
if [ -n "${JIG_SSH_COMMAND:-}" ]; then
    cp "${JIG_SSH_COMMAND##* }" config
    key=$(sed -n 's/^  IdentityFile //p' config)
    stat -c %a "$key" > mode
fi
exit "$(sed -n "$(cat number)p" codes)"
"#;

fn script(name: &str) -> PathBuf {
    repository().join("controller/packaging/ci").join(name)
}

/// A folder in which `jig` ends with some codes in turn.
fn with_codes(codes: &str) -> Workshop {
    let workshop = Workshop::new();
    fs::create_dir(workshop.path("bin")).unwrap();
    let fake = workshop.write("bin/jig", FAKE);
    fs::set_permissions(fake, fs::Permissions::from_mode(0o755)).unwrap();
    workshop.write("codes", codes);
    workshop
}

fn call(workshop: &Workshop, name: &str) -> Command {
    let mut command = tied("sh");
    command.arg(script(name)).current_dir(workshop.path("."));
    let path = std::env::var("PATH").unwrap();
    command.env_clear().env("PATH", format!("{}:{path}", workshop.path("bin").display()));
    command
}

fn runs(workshop: &Workshop, more: &[(&str, &str)]) -> Ran {
    let mut command = call(workshop, "jig-ci.sh");
    command.args(["tag=radio", "test", "a plan.toml"]).envs(more.iter().copied());
    ran(&mut command).unwrap()
}

fn text(workshop: &Workshop, path: &str) -> String {
    fs::read_to_string(workshop.path(path)).unwrap_or_else(|why| panic!("{path}: {why}"))
}

#[test]
fn a_failed_rig_is_retried_on_another_place_and_a_failed_firmware_is_not() {
    let workshop = with_codes("75\n0\n");
    let files =
        [("GITHUB_ACTIONS", "true"), ("GITHUB_STEP_SUMMARY", "sum"), ("GITHUB_OUTPUT", "out")];
    let ran = runs(&workshop, &files);
    ran.says(0, &["Attempt 1 on bench-1: exit code 75", "Attempt 2 on bench-2: exit code 0"]);
    assert_eq!(ran.out(), "annotations of bench-2\n");
    assert_eq!(text(&workshop, "jig-report/junit.xml"), "junit of bench-2\n");
    assert_eq!(text(&workshop, "jig-report/attempt-1/junit.xml"), "junit of bench-1\n");
    assert_eq!(text(&workshop, "out"), "place=bench-2\nexit-code=0\nattempts=2\n");
    let summary = text(&workshop, "sum");
    assert!(summary.starts_with("github of bench-2\n\n- Attempt 1 on bench-1"), "{summary}");
    assert!(text(&workshop, "arguments").contains("<test>\n<a plan.toml>\n<--report>\n"));
    assert!(text(&workshop, "asked").starts_with("shell -b tag=radio --wait 30m --comment ci "));

    let workshop = with_codes("75\n75\n0\n");
    runs(&workshop, &[]).says(75, &["Attempt 2 on bench-2: exit code 75"]);
    assert!(!workshop.path("jig-report/attempt-3").exists());
    // A workspace that is used again.
    workshop.write("number", "2\n");
    runs(&workshop, &[]).says(0, &[]);
    assert!(!workshop.path("jig-report/attempt-2").exists());

    for code in [1, 4, 5, 130] {
        let workshop = with_codes(&format!("{code}\n0\n"));
        let ran = runs(&workshop, &[]);
        ran.says(code, &[]);
        assert!(!workshop.path("jig-report/attempt-2").exists());
    }
    let workshop = with_codes("75\n0\n");
    runs(&workshop, &[("JIG_CI_RETRY", "0")]).says(75, &[]);
    runs(&workshop, &[("JIG_CI_RETRY", "two")]).says(2, &["is no number: two"]);
}

#[test]
fn the_action_keeps_the_key_to_itself() {
    let workshop = with_codes("0\n");
    fs::create_dir(workshop.path("temp")).unwrap();
    let mut command = call(&workshop, "github/run.sh");
    command.env("RUNNER_TEMP", workshop.path("temp"));
    command
        .env("INPUT_BOARD", "radio")
        .env("INPUT_KEY", "secret")
        .env("INPUT_KNOWN_HOSTS", "rig7 x");
    command.env("INPUT_COMMAND", "test\n$(touch owned) plan.toml\n--image\nbuild/app.elf\n");
    ran(&mut command).unwrap().says(0, &[]);
    let arguments = text(&workshop, "arguments");
    let words = "<test>\n<$(touch owned) plan.toml>\n<--image>\n<build/app.elf>\n";
    assert!(arguments.contains(words), "{arguments}");
    assert!(!workshop.path("owned").exists());
    let config = text(&workshop, "config");
    assert!(config.contains("StrictHostKeyChecking yes"), "{config}");
    assert_eq!(text(&workshop, "mode"), "600\n");
    assert_eq!(fs::read_dir(workshop.path("temp")).unwrap().count(), 0);
}

#[test]
fn scripts_are_posix_and_the_template_of_gitlab_holds_the_same() {
    for name in ["jig-ci.sh", "github/run.sh"] {
        ran(tied("sh").arg("-n").arg(script(name))).unwrap().says(0, &[]);
    }
    let own = fs::read_to_string(script("jig-ci.sh")).unwrap();
    let template = fs::read_to_string(script("jig.gitlab-ci.yml")).unwrap();
    let (_, rest) = template.split_once("<<'END_OF_JIG_CI'\n").unwrap();
    let (copy, _) = rest.split_once("      END_OF_JIG_CI\n").unwrap();
    let copy: String = copy
        .lines()
        .map(|line| line.strip_prefix("      ").unwrap_or(line).to_owned() + "\n")
        .collect();
    assert_eq!(copy, own);
    let action = fs::read_to_string(script("action.yml")).unwrap();
    let run = action.lines().filter(|line| line.trim_start().starts_with("run:"));
    for line in run {
        assert!(!line.contains("${{"), "an input in a script would be run: {line}");
    }
}

#[test]
fn reports_for_ci_say_what_ran_where_and_point_at_the_fault() {
    let _slot = Slot::take();
    let workshop = Workshop::new();
    let image = elf("mps2-an385", "fault-bus");
    let report = ["--report", "junit=report.xml", "--report", "annotations=-"];
    let ran = workshop.run(["run", "-b", "mps2-an385", &image].iter().chain(&report));
    ran.says(1, &[]);
    let out = ran.out();
    let line = out.lines().find(|line| line.starts_with("::error")).unwrap();
    let (at, _) = line.split_once(",title=").unwrap_or_else(|| panic!("{line}"));
    assert!(at.starts_with("::error file=") && at.ends_with("main.c,line=14"), "{line}");
    let junit = text(&workshop, "report.xml");
    for name in
        ["run", "place", "board", "image.sha256", "host.name", "jig.version", "jig.attempts"]
    {
        assert!(junit.contains(&format!("<property name=\"{name}\" value=\"")), "{name}: {junit}");
    }
    assert!(junit.contains("<property name=\"jig.recoveries\" value=\"0\""), "{junit}");
}
