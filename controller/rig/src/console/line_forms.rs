//! Forms of lines: patterns with names, made of parts, and the examples that belong to them. Pure.

use regex_automata::meta::Regex;
use regex_automata::util::syntax;

use super::scan::searched_once;

/// A form of a line: its name, and its pattern, of ASCII in any case.
pub(super) type Form = (&'static str, &'static str);

/// Compiles forms. Each part is put in for its name; a later one may stand in an earlier one.
pub(super) fn compiled(forms: &[Form], parts: &[(&str, &str)]) -> Option<Regex> {
    let ascii = syntax::Config::new().unicode(false).utf8(false).case_insensitive(true);
    let put = |text: String, (name, part): &(&str, &str)| text.replace(name, part);
    let patterns: Vec<String> =
        forms.iter().map(|(_, text)| parts.iter().fold((*text).to_owned(), put)).collect();
    Regex::builder().configure(searched_once()).syntax(ascii).build_many(&patterns).ok()
}

#[cfg(test)]
pub(super) mod tests {
    use super::super::candidate_lines::candidate;
    use super::super::tells_failure;
    use super::Form;

    #[derive(serde::Deserialize)]
    struct Lines {
        form: Vec<FormLines>,
    }

    #[derive(serde::Deserialize)]
    struct FormLines {
        name: String,
        examples: Vec<String>,
        near_misses: Vec<String>,
    }

    /// Checks that each form has examples, which are searched for and tell of a failure, and near misses,
    /// which do not.
    pub(in super::super) fn have_examples(
        forms: &[Form],
        form_of: impl Fn(&str) -> Option<&'static str>,
        lines: &str,
    ) {
        for example in examples_of(forms, form_of, tells_failure, lines) {
            assert!(candidate(example.as_bytes()).is_some(), "not searched: {example:?}");
        }
    }

    /// Checks that each form has examples, of which something is told, and near misses, of which it is not;
    /// returns the examples.
    pub(in super::super) fn examples_of(
        forms: &[Form],
        form_of: impl Fn(&str) -> Option<&'static str>,
        is_told: impl Fn(&str) -> bool,
        lines: &str,
    ) -> Vec<String> {
        let Lines { form: lines } = toml::from_str(lines).unwrap();
        let names: Vec<_> = lines.iter().map(|line| line.name.as_str()).collect();
        assert_eq!(names, forms.iter().map(|(name, _)| *name).collect::<Vec<_>>());
        for FormLines { name, examples, near_misses } in &lines {
            assert!(!examples.is_empty() && !near_misses.is_empty(), "{name}");
            for example in examples {
                assert_eq!(form_of(example), Some(name.as_str()), "{example:?}");
                assert!(is_told(example), "{example:?}");
            }
            for line in near_misses {
                assert!(!is_told(line), "{line:?}");
            }
        }
        lines.into_iter().flat_map(|line| line.examples).collect()
    }
}
