//! What fits into a prompt: parts by priority, none of which takes more than its share. Pure.
//!
//! # Design
//! *Estimated, on the safe side.* No tokenizer of a model is at hand. Text costs one token per two bytes, and
//! each byte that is not ASCII one: logs and code, which are dense in digits and punctuation, cost one per 2.2
//! bytes and more with the tokenizers in use, prose one per four.
//!
//! *A share of what is left.* A part takes at most 30 % of what is left when its turn comes, so that a long
//! log leaves room for what follows it. What is cut says so.

/// Share of what is left that one part may take, in percent.
const SHARE: usize = 30;

/// Stands where a part was cut.
const MARK: &str = "\n...[cut]";

/// A part of a prompt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PromptPart {
    /// Its name.
    pub name: &'static str,
    /// Its text; may be hostile.
    pub text: String,
}

/// A part as it fits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FittedPart {
    /// Its name.
    pub name: &'static str,
    /// Its text, with a mark at the end where it was cut.
    pub text: String,
    /// Whether it was cut.
    pub cut: bool,
}

/// Estimates the tokens of a text; never less than a tokenizer in use counts.
pub fn estimated_tokens(text: &str) -> usize {
    let foreign = text.bytes().filter(|byte| !byte.is_ascii()).count();
    foreign + (text.len() - foreign).div_ceil(2)
}

/// Fits parts, the most important first, into what a system prompt leaves of a budget. Parts for which
/// nothing is left are left out. Nothing where the system prompt alone does not fit.
pub fn fitted(system: &str, parts: &[PromptPart], budget: usize) -> Option<Vec<FittedPart>> {
    let mut left = budget.checked_sub(estimated_tokens(system))?;
    let mut all = Vec::new();
    for part in parts {
        let most = left * SHARE / 100;
        let whole = estimated_tokens(&part.text);
        let (text, cut) = if whole <= most {
            (part.text.clone(), false)
        } else {
            let Some(room) = most.checked_sub(estimated_tokens(MARK)).filter(|room| *room > 0)
            else {
                continue;
            };
            (format!("{}{MARK}", head(&part.text, room)), true)
        };
        left -= estimated_tokens(&text).min(left);
        all.push(FittedPart { name: part.name, text, cut });
    }
    Some(all)
}

/// Returns the longest beginning that costs no more than so many tokens.
fn head(text: &str, tokens: usize) -> &str {
    // Twice the cost, so that a byte of ASCII has a whole number.
    let mut cost = 0;
    for (at, c) in text.char_indices() {
        cost += if c.is_ascii() { 1 } else { 2 * c.len_utf8() };
        if cost > 2 * tokens {
            return &text[..at];
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn parts_are_fitted_by_priority_and_cuts_are_marked() {
        let part = |name, len| PromptPart { name, text: "x".repeat(len) };
        let parts = [part("request", 100), part("log", 100_000), part("cases", 400)];
        let fitted = fitted("sys", &parts, 1002).unwrap();
        let cuts: Vec<_> = fitted.iter().map(|part| (part.name, part.cut)).collect();
        assert_eq!(cuts, [("request", false), ("log", true), ("cases", true)]);
        assert!(fitted[1].text.ends_with("...[cut]"));
        assert_eq!(super::fitted("long", &parts, 1), None);
    }

    proptest! {
        #[test]
        fn the_budget_is_never_exceeded(
            texts in prop::collection::vec("\\PC{0,400}", 0..8),
            budget in 0_usize..2000,
        ) {
            let parts: Vec<_> =
                texts.into_iter().map(|text| PromptPart { name: "part", text }).collect();
            if let Some(fitted) = fitted("system", &parts, budget) {
                let used: usize = fitted.iter().map(|part| estimated_tokens(&part.text)).sum();
                prop_assert!(used + estimated_tokens("system") <= budget);
                let most = (budget - estimated_tokens("system")) * SHARE / 100;
                prop_assert!(fitted.iter().all(|part| estimated_tokens(&part.text) <= most));
            }
        }
    }
}
