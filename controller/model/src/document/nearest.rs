//! What was probably meant.

/// Longest text that is compared, in bytes; keys and names are shorter, and comparing
/// costs the product of both lengths.
const MAX_COMPARED: usize = 64;

/// Least similarity (Jaro-Winkler, 0 to 1) that is worth a suggestion: `bard` and `baud`
/// are at 0.87, unrelated keys stay below 0.6.
const SIMILAR: f64 = 0.75;

/// Returns the known name that is most like a text, if one is like it at all.
pub fn nearest<'k>(text: &str, known: impl IntoIterator<Item = &'k str>) -> Option<&'k str> {
    if text.len() > MAX_COMPARED {
        return None;
    }
    let text = text.to_ascii_lowercase();
    known
        .into_iter()
        .map(|name| (strsim::jaro_winkler(&text, &name.to_ascii_lowercase()), name))
        .filter(|(similarity, _)| *similarity >= SIMILAR)
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .map(|(_, name)| name)
}

/// Returns the help line for a name that is not known: the nearest one, or all of them.
pub fn did_you_mean<'k>(
    text: &str,
    known: impl IntoIterator<Item = &'k str, IntoIter: Clone>,
) -> String {
    let known = known.into_iter();
    match nearest(text, known.clone()) {
        Some(name) => format!("did you mean `{name}`?"),
        None => {
            let list: Vec<&str> = known.collect();
            if list.is_empty() {
                "none is known here; remove it".to_owned()
            } else {
                format!("use one of: {}", list.join(", "))
            }
        }
    }
}
