//! Whether the words of a person name a call that something else has planned. Pure.
//!
//! Errs on the side of "no": then the person is asked. A sentence with a negation, a condition or a question names
//! nothing.

use serde_json::Value;

use super::lex::words;
use super::request::ActionVerb;
use super::vocabulary::{power_around, turns, verb};

/// Words that name every board.
const ALL: &[&str] = &["every", "all", "each"];

/// Tells whether a text names the verb, the board and the files of a call. `board` is the name of the place and the
/// kind of its board.
pub fn names_call(text: &str, tool: &str, args: &Value, (place, kind): (&str, &str)) -> bool {
    let Some(tokens) = words(text) else { return false };
    if tokens.iter().any(turns) {
        return false;
    }
    let word = |field: &str| args.get(field).and_then(Value::as_str);
    let said = |name: &str| tokens.iter().any(|token| !name.is_empty() && token.text == name);
    let verbs = (0..tokens.len()).filter_map(|at| {
        let around =
            || power_around(&tokens[at..]).map(|(power, ..)| (ActionVerb::Power, Some(power)));
        verb(&tokens[at..]).map(|(verb, power, _)| (verb, power)).or_else(around)
    });
    let acts = verbs.into_iter().any(|(verb, power)| {
        let same = verb.as_str() == tool;
        same && power.is_none_or(|power| word("action") == Some(power.as_str()))
    });
    // "every board" names each of them, "all boards of that kind" those of the kind.
    let all = tokens.iter().any(|token| token.is(ALL));
    let everything = tokens.windows(2).any(|two| two[0].is(ALL) && two[1].is(&["board", "boards"]));
    let board = said(place) || (all && said(kind)) || everything;
    let files = ["image", "plan"].iter().filter_map(|field| word(field)).all(said);
    acts && board && files
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const BOARD: (&str, &str) = ("bench-3", "nrf52");

    fn named(text: &str, tool: &str, args: &Value) -> bool {
        names_call(text, tool, args, BOARD)
    }

    #[test]
    fn verb_board_and_files_have_to_be_said() {
        let flash = json!({ "place": "bench-3", "image": "build/app.elf" });
        for text in [
            "get bench-3 going: flash build/app.elf and tell me a joke",
            "please deploy build/app.elf to every nrf52 tonight",
            "flash build/app.elf onto all boards and celebrate",
        ] {
            assert!(named(text, "flash", &flash), "{text}");
        }
        for text in [
            "get bench-3 going with build/app.elf",
            "flash build/app.elf to bench-4",
            "flash build/app.elf to an nrf52",
            "flash other.elf to bench-3",
            "never flash build/app.elf to bench-3",
            "flash build/app.elf to bench-3 if it is free",
            "how do I flash build/app.elf to bench-3",
            "tell me why \"flash\" of build/app.elf to bench-3 is odd",
        ] {
            assert!(!named(text, "flash", &flash), "{text}");
        }
    }

    #[test]
    fn other_verbs_and_other_power_actions_are_not_named() {
        let place = json!({ "place": "bench-3" });
        assert!(!named("flash a.elf to bench-3", "erase", &place));
        assert!(named("wipe bench-3 clean", "erase", &place));
        let power = |action: &str| json!({ "place": "bench-3", "action": action });
        assert!(named("power off bench-3 for tonight", "power", &power("off")));
        assert!(named("turn bench-3 off and have a rest", "power", &power("off")));
        assert!(!named("turn bench-3 on", "power", &power("off")));
        assert!(!named("switch bench-3 off and on again", "power", &power("off")));
        assert!(!named("power off bench-3 for tonight", "power", &power("cycle")));
        assert!(!named("erase bench-3", "memory_write", &place));
        assert!(!named(&"erase bench-3 ".repeat(1000), "erase", &place));
    }
}
