//! Selectors and classes.

use std::collections::BTreeSet;

use proptest::prelude::*;

use super::*;
use crate::profile::Arch;

fn place(name: &str, board: &str, tags: &[&str]) -> PlaceTraits {
    PlaceTraits {
        place: name.parse().unwrap(),
        board: board.parse().unwrap(),
        arch: Arch::Arm,
        chip: Some("nRF52840_xxAA".to_owned()),
        tags: tags.iter().map(|tag| tag.parse().unwrap()).collect(),
        parts: BTreeSet::from(["probe", "console"]),
        emulated: false,
    }
}

#[test]
fn every_term_has_to_fit() {
    let place = place("bench-1", "nrf52840dk", &["radio"]);
    for (selector, fits) in [
        ("bench-1", true),
        ("nrf52840dk", true),
        ("bench", false),
        ("place=bench-1", true),
        ("place=nrf52840dk", false),
        ("board=nrf52840dk,tag=radio,arch=arm,has=probe,kind=real", true),
        (" arch = arm , tag = radio ,", true),
        ("chip=nrf52840_XXaa", true),
        ("tag=radio,tag=usb", false),
        ("has=power", false),
        ("kind=emulated", false),
    ] {
        let parsed: PlaceSelector = selector.parse().unwrap();
        assert_eq!(parsed.fits(&place), fits, "{selector}");
    }
}

#[test]
fn a_wrong_selector_is_explained() {
    for (text, words) in [
        ("", "no place is selected"),
        (" , ", "no place is selected"),
        ("tags=radio", "there is no key \"tags\" to select places by; did you mean `tag`?"),
        ("tag=", "\"tag=\" selects nothing"),
        ("tag=a b", "\"tag=a b\" selects nothing"),
        ("tag=../x", "\"tag=../x\" selects nothing"),
    ] {
        let error = text.parse::<PlaceSelector>().unwrap_err().to_string();
        assert!(error.starts_with(words), "{text}: {error}");
    }
    let places = [place("bench-1", "nrf52840dk", &["radio"]), place("bench-2", "microbit", &[])];
    for (selector, words) in [
        ("tag=radoi", "no place has `tag=radoi`; did you mean `radio`?"),
        ("bensh-1", "no place has `bensh-1`; did you mean `bench-1`?"),
        ("place=bench-2,tag=radio", "each part of `place=bench-2,tag=radio` fits some place"),
    ] {
        let selector: PlaceSelector = selector.parse().unwrap();
        let why = selector.why_none(&places);
        assert!(why.starts_with(words), "{why}");
    }
}

#[test]
fn users_have_the_class_that_names_them() {
    let policy = LeasePolicy::default();
    for (identity, class) in [
        ("anna", "engineer"),
        ("ci", "ci"),
        ("ci-4", "ci"),
        ("cicero", "engineer"),
        // A user of the host is no key of that name.
        ("unix:ci", "engineer"),
    ] {
        assert_eq!(policy.class_of(&user(identity)).unwrap().name.as_str(), class, "{identity}");
    }
}

proptest! {
    #[test]
    fn any_text_is_a_selector_or_an_error(text in ".{0,80}") {
        if let Ok(selector) = text.parse::<PlaceSelector>() {
            let again: PlaceSelector = selector.to_string().parse().unwrap();
            prop_assert_eq!(again, selector);
        }
    }
}

fn user(identity: &str) -> RigUser {
    let name = identity.parse().unwrap();
    let identity = crate::Identity { name, ..crate::Identity::default() };
    RigUser { identity, ..RigUser::default() }
}
