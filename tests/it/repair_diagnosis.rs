//! A failure that shows nothing: the agent is asked for a change that does, before it repairs.

use std::fs;

use crate::repair_project::{RING, RepairProject};
use crate::workshop::{Slot, Workshop, ran};

/// Shows where the firmware is, when that is asked for, and repairs it once that was seen.
const SCRIPT: &str = r#"
if grep -q 'propose a change that shows it' "$1/TASK.md"; then
    sed -i 's/^{$/{ void put(const char *); put("in ring_put\\n");/' src/ring.c
    echo HYPOTHESIS: ring_put may not return
else
    grep -q 'in ring_put' "$1/log.txt" || exit 9
    sed -i '/int go/d' src/ring.c
    echo HYPOTHESIS: the loop has no end
fi
"#;

#[test]
fn a_diagnostic_change_is_run_once_and_is_in_no_repair() {
    let workshop = Workshop::new();
    let project = RepairProject::new(&workshop);
    // It hangs before it prints, and its image names no line and no function.
    let hangs = RING
        .replace("> 8", ">= 8")
        .replace("    if (r", "    for (volatile int go = 1; go;) { }\n    if (r");
    fs::write(project.repo.join("src/ring.c"), &hangs).unwrap();
    let makefile = fs::read_to_string(project.repo.join("Makefile")).unwrap();
    fs::write(project.repo.join("Makefile"), makefile.replace(" -g ", " -s ")).unwrap();
    project.commit("a hang that shows nothing");
    let plan = fs::read_to_string(workshop.path("plan.toml")).unwrap();
    let plan = plan.replace("wait_for_results = true", "wait_for_results = true, timeout = \"2s\"");
    workshop.write("plan.toml", plan);
    let task = project.task("[\"command:script\"]", Some(SCRIPT));
    let _slot = Slot::take();
    let ran = ran(workshop.jig(["--json", "repair"]).arg(task)).unwrap();
    let log = workshop.run(["repair", "log", "last"]).out();
    assert_eq!(ran.code(), 0, "{ran}\n{log}");
    let document = ran.json().unwrap();
    assert_eq!((&document["state"], &document["iterations"]), (&"SUCCESS".into(), &2.into()));
    for words in
        ["proposes to diagnose: ring_put may not return", "the diagnostic change is taken back"]
    {
        assert_eq!(log.matches(words).count(), 1, "{words:?}: {log}");
    }
    let commit = document["commit"].as_str().unwrap();
    let diff = project.git(&["diff", "HEAD", commit]);
    assert!(diff.contains("-    for (volatile int go") && !diff.contains("in ring_put"), "{diff}");
    let kept = fs::read_to_string(document["diff"].as_str().unwrap()).unwrap();
    assert!(!kept.contains("in ring_put"), "{kept}");
    assert_eq!(fs::read_to_string(project.repo.join("src/ring.c")).unwrap(), hangs);
}
