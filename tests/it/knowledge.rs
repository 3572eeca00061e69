//! What a lab has learnt, as its users meet it: `jig kb`.

use std::path::Path;

use crate::workshop::{Ran, Workshop};

const TITLE: &str = "uart loses the last byte";
const CAUSE: &str = "DMA ends before the FIFO is empty";

/// A store of knowledge of its own.
struct Store<'w> {
    workshop: &'w Workshop,
    state: &'static str,
}

impl Store<'_> {
    fn kb(&self, args: &[&str]) -> Ran {
        self.workshop.run(["--state", self.state, "kb"].iter().chain(args))
    }

    /// Carries a command out and checks what it prints on standard output.
    fn prints(&self, args: &[&str], words: &[&str]) {
        let ran = self.kb(args);
        ran.says(0, &[]);
        let missing = words.iter().find(|word| !ran.out().contains(**word));
        assert_eq!(missing, None, "{ran}");
    }

    /// Adds the unit of these tests and returns its name.
    fn add(&self) -> String {
        let text = ["--cause", CAUSE, "--resolution", "wait for the flag", "--board", "microbit"];
        let added = self.kb(&[&["add", "--title", TITLE][..], &text].concat());
        added.says(0, &[]);
        added.out().trim().to_owned()
    }

    /// Returns the names of the units that a search finds.
    fn found(&self, args: &[&str]) -> Vec<String> {
        let answer = self.kb(&[&["search", "--json"][..], args].concat());
        answer.says(0, &[]);
        let hits = answer.json().unwrap()["hits"].as_array().unwrap().clone();
        hits.iter().map(|hit| hit["unit"]["id"].as_str().unwrap().to_owned()).collect()
    }
}

#[test]
fn a_unit_is_found_judged_and_forgotten() {
    let workshop = Workshop::new();
    let store = Store { workshop: &workshop, state: "state" };
    let unit = store.add();
    // What says the same is the same unit, seen again.
    assert_eq!(store.add(), unit);
    store.prints(&["show", &unit], &[TITLE, CAUSE, "seen       2x", "pending, maturity 0"]);
    assert_eq!(store.found(&["last", "byte", "of", "the", "uart"]), [unit.as_str()]);
    assert_eq!(store.found(&["--board", "nrf52840dk", "uart"]), [""; 0]);
    assert_eq!(store.found(&["--since", "1h", "uart"]), [unit.as_str()]);
    assert_eq!(store.found(&["--until", "1h", "uart"]), [""; 0]);
    store.prints(&["verify", &unit], &["verified, maturity 2"]);
    let edited = ["pending, maturity 1", "wait for TC", "version 2"];
    store.prints(&["edit", &unit, "--resolution", "wait for TC"], &edited);
    store.prints(&["show", &unit, "--history"], &["edited by"]);
    // Rejected twice, it is found only on demand.
    store.prints(&["reject", &unit], &["rejected"]);
    store.prints(&["reject", &unit], &["archived"]);
    assert_eq!(store.found(&["uart"]), [""; 0]);
    assert_eq!(store.found(&["--all", "uart"]), [unit.as_str()]);
    store.prints(&["restore", &unit], &["pending"]);
    store.kb(&["reindex"]).says(0, &[]);
    assert_eq!(store.found(&["uart"]), [unit.as_str()]);
    let stats = store.kb(&["stats", "--json"]).json().unwrap();
    assert_eq!((&stats["store"]["units"], &stats["indexed"]), (&1.into(), &1.into()), "{stats}");
}

#[test]
fn what_a_user_gets_wrong_is_told() {
    let workshop = Workshop::new();
    let store = Store { workshop: &workshop, state: "state" };
    let unit = store.add();
    // No character of a question is an operator.
    for question in ["\"uart* NEAR( AND -", "'; DROP TABLE unit; --", "uart OR", "*", "\u{202e}"] {
        store.kb(&["search", question]).says(0, &[]);
    }
    store.kb(&["show", "k-000000000000"]).says(2, &["there is no unit k-000000000000"]);
    store.kb(&["show", "uart"]).says(2, &["k-0123456789ab"]);
    store.kb(&["import", "absent.jsonl"]).says(2, &["absent.jsonl"]);
    store.kb(&["import", "/dev/zero"]).says(2, &["/dev/zero is no file"]);
    workshop.write("bad.jsonl", "{}\nwhat?\n");
    store.kb(&["import", "bad.jsonl"]).says(2, &["bad.jsonl:1", "bad.jsonl:2"]);
    // A store that is no store is left as it is.
    let damaged = workshop.path("damaged/knowledge");
    std::fs::create_dir_all(&damaged).unwrap();
    let text = b"this is no database".repeat(100);
    std::fs::write(damaged.join("knowledge.db"), &text).unwrap();
    let broken = Store { workshop: &workshop, state: "damaged" };
    broken.kb(&["show", &unit]).says(75, &["knowledge.db"]);
    assert_eq!(std::fs::read(damaged.join("knowledge.db")).unwrap(), text);
}

#[test]
fn a_model_that_cannot_be_used_costs_a_warning_and_a_file_that_names_none_is_refused() {
    let workshop = Workshop::new();
    let store = Store { workshop: &workshop, state: "state" };
    let unit = store.add();
    let files = "runtime = \"no.so\"\nmodel = \"no.onnx\"\nvocabulary = \"vocab.txt\"\n";
    workshop.write("embedding.toml", files);
    let model = ["--embedding", "embedding.toml"];
    let ran = store.kb(&[&model[..], &["search", "uart"]].concat());
    ran.says(0, &["searched by words only", "no.onnx"]);
    assert!(ran.out().contains(&unit), "{ran}");
    store.kb(&[&model[..], &["reindex"]].concat()).says(0, &["no.onnx"]);
    store.prints(&[&model[..], &["stats"]].concat(), &["embedding model: none: ", "no.onnx"]);
    store.prints(&["stats"], &["embedding model: none\n"]);
    workshop.write("wrong.toml", "speed = 1\n");
    store.kb(&["--embedding", "wrong.toml", "search", "uart"]).says(3, &["wrong.toml"]);
    store.kb(&["--embedding", "absent.toml", "search", "uart"]).says(3, &["absent.toml"]);
}

#[test]
fn units_go_to_another_lab_and_are_pending_there() {
    let workshop = Workshop::new();
    let [here, there, trusting] =
        ["here", "there", "trusting"].map(|state| Store { workshop: &workshop, state });
    let unit = here.add();
    here.kb(&["verify", &unit]).says(0, &[]);
    here.kb(&["export", "units.jsonl"]).says(0, &[]);
    let path = workshop.path("units.jsonl");
    there.prints(&["import", "units.jsonl"], &["1 new"]);
    there.prints(&["import", "units.jsonl"], &["0 new", "1 known"]);
    there.prints(&["show", &unit], &[TITLE, "pending"]);
    trusting.prints(&["import", "--trust", "units.jsonl"], &["1 new"]);
    trusting.prints(&["show", &unit], &["verified"]);
    // A line that was changed on the way is not taken.
    let changed = read(&path).replace("FIFO", "fifo");
    std::fs::write(&path, changed).unwrap();
    let elsewhere = Store { workshop: &workshop, state: "elsewhere" };
    elsewhere.kb(&["import", "units.jsonl"]).says(2, &["units.jsonl:1"]);
    assert_eq!(elsewhere.found(&["uart"]), [""; 0]);
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap()
}

/// Words of documents and questions: each question has those of one document, and no other has.
const PARTS: [&str; 12] = [
    "uart",
    "dma",
    "watchdog",
    "flash",
    "clock",
    "timer",
    "gpio",
    "ethernet",
    "sensor",
    "bootloader",
    "interrupt",
    "regulator",
];

#[test]
fn searches_are_measured_on_documents_of_the_user() {
    let workshop = Workshop::new();
    let store = Store { workshop: &workshop, state: "state" };
    let line = |value: serde_json::Value| value.to_string() + "\n";
    let documents: String = (0..)
        .zip(PARTS)
        .map(|(n, part)| {
            line(serde_json::json!({ "id": format!("d{n}"), "time": n, "title": format!("{part}: fix"),
                "text": format!("the {part} stops"), "files": [format!("src/{part}.c")] }))
        })
        .collect();
    let questions: String = (0..)
        .zip(PARTS)
        .map(|(n, part)| {
            line(serde_json::json!({ "id": format!("q{n}"), "time": 100 + n,
                "text": format!("why is the {part} silent"), "relevant": [format!("d{n}")] }))
        })
        .collect();
    workshop.write("docs.jsonl", &documents);
    workshop.write("queries.jsonl", &questions);
    let files = ["bench", "--docs", "docs.jsonl", "--queries", "queries.jsonl"];
    // The newest question is answered by another document than the one with its word.
    let wrong = questions.replace("[\"d11\"]", "[\"d0\"]");
    assert_ne!(wrong, questions);
    workshop.write("queries.jsonl", wrong);
    let measured = store.kb(&[&["--json"][..], &files].concat());
    measured.says(0, &["12 documents, 12 questions"]);
    let told = measured.json().unwrap()["quality"].take();
    assert_eq!((&told["learnt_from"], &told["questions"]), (&6.into(), &6.into()), "{told}");
    let systems = told["systems"].as_array().unwrap();
    assert!(systems.len() > 3, "{told}");
    for system in systems {
        let found = system["quality"]["r1"]["mean"].as_f64().unwrap();
        assert!((found - 5.0 / 6.0).abs() < 1e-6, "{system}");
    }
    // A line that is no document is named; too few questions measure nothing.
    workshop.write("docs.jsonl", documents + "what?\n");
    store.kb(&files).says(2, &["docs.jsonl:13"]);
    workshop.write("queries.jsonl", questions.lines().next().unwrap());
    workshop.write("docs.jsonl", "");
    store.kb(&files).says(2, &["fewer than four questions"]);
}

#[test]
fn the_order_of_answers_is_learnt_from_enough_feedback_alone() {
    let workshop = Workshop::new();
    let store = Store { workshop: &workshop, state: "state" };
    let unit = store.add();
    store.kb(&["verify", &unit, "--for", "last byte of the uart"]).says(0, &[]);
    let fitted = store.kb(&["fit"]);
    assert!(
        fitted.code() == 0 && !workshop.path("state/knowledge/weights.json").exists(),
        "{fitted}"
    );
    assert!(format!("{}{}", fitted.out(), fitted.err()).contains("20"), "{fitted}");
}
