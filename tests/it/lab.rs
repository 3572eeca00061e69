//! The rig used by a program instead of by the command line.

use jig_lab::{CatalogueError, CommandError, LabConfig};
use jig_model::VerdictKind;

use crate::manifest::entry;
use crate::workshop::{Slot, Workshop, name_of};

#[allow(dead_code, unreachable_pub, reason = "a program of its own elsewhere")]
#[path = "../../controller/lab/examples/run_test.rs"]
mod run_test;

fn config(workshop: &Workshop) -> LabConfig {
    let (runs, state) = (Some(workshop.runs()), Some(workshop.path("state")));
    LabConfig { runs, state, ..LabConfig::default() }
}

#[tokio::test]
async fn the_example_runs_a_test_on_an_emulated_board() {
    let _slot = Slot::take();
    let workshop = Workshop::new();
    let fixture = entry("microbit", "markers-pass");
    let (plan, image) = (fixture.plan().unwrap(), Some(fixture.elf()));
    let verdict = run_test::run_test(&config(&workshop), "microbit", &plan, image).await.unwrap();
    assert_eq!(verdict.kind, VerdictKind::Pass, "{verdict:?}");
    // It is recorded like any other run.
    let [run] = workshop.run_dirs().try_into().unwrap();
    let list = workshop.run(["runs", "list"]);
    list.says(0, &[]);
    assert!(list.out().contains(name_of(&run)), "{list}");
}

#[tokio::test]
async fn a_wrong_plan_and_an_unknown_place_are_told_by_types() {
    let workshop = Workshop::new();
    let config = config(&workshop);
    let refused = async |place: &str, plan: &std::path::Path| {
        let error = run_test::run_test(&config, place, plan, None).await.unwrap_err();
        *error.downcast::<CommandError>().unwrap()
    };
    let plan = workshop.write("plan.toml", "version = 1\n");
    let error = refused("microbit", &plan).await;
    assert!(matches!(&error, CommandError::Plan(problems) if !problems.list.is_empty()));
    let plan = entry("microbit", "markers-pass").plan().unwrap();
    let error = refused("nowhere", &plan).await;
    let unknown = matches!(&error, CommandError::Catalogue(CatalogueError::UnknownPlace { .. }));
    assert!(unknown, "{error}");
    assert!(workshop.run_dirs().is_empty());
}
