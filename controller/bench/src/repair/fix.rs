//! Fixes that the authors of a library have made: taken out of its source again, each is a bug that
//! was real. Pure.

use serde::Deserialize;

/// A fix, as the few lines that it changed.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct UpstreamFix {
    /// What was wrong.
    pub(super) what: String,
    /// The version or commit of the library that has it first.
    pub(super) fixed_in: String,
    /// The package is older than the fix: it is put into the library before anything is changed.
    #[serde(default)]
    pub(super) missing: bool,
    /// The file of the project.
    pub(super) file: String,
    /// What it changed; each text stands in the file once.
    pub(super) change: Vec<FixedText>,
}

/// One place of a fix.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct FixedText {
    with: String,
    without: String,
}

/// Says that a fix does not fit a source.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("{file} has {found} times what {fixed_in} has changed: {text:?}")]
pub(super) struct UnfitFix {
    file: String,
    fixed_in: String,
    found: usize,
    text: String,
}

impl UpstreamFix {
    /// Takes the fix out of a source.
    pub(super) fn taken_out(&self, source: &str) -> Result<String, UnfitFix> {
        self.replaced(source, |text| (&text.with, &text.without))
    }

    /// Puts the fix into a source.
    pub(super) fn put_in(&self, source: &str) -> Result<String, UnfitFix> {
        self.replaced(source, |text| (&text.without, &text.with))
    }

    fn replaced(
        &self,
        source: &str,
        from_to: impl Fn(&FixedText) -> (&String, &String),
    ) -> Result<String, UnfitFix> {
        self.change.iter().try_fold(source.to_owned(), |source, text| {
            let (from, to) = from_to(text);
            match source.matches(from.as_str()).count() {
                1 => Ok(source.replacen(from.as_str(), to, 1)),
                found => Err(UnfitFix {
                    file: self.file.clone(),
                    fixed_in: self.fixed_in.clone(),
                    found,
                    text: from.clone(),
                }),
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fix() -> UpstreamFix {
        let text = r#"
            what = "reads too far"
            fixed-in = "2.0"
            file = "src/a.c"
            change = [{ with = "i < n", without = "i <= n" }, { with = "  a;\n", without = "" }]
        "#;
        toml::from_str(text).unwrap()
    }

    #[test]
    fn a_fix_is_taken_out_in_all_its_places() {
        assert_eq!(fix().taken_out("x(i < n);\n  a;\n  b;\n").unwrap(), "x(i <= n);\n  b;\n");
    }

    #[test]
    fn a_fix_that_does_not_fit_is_told() {
        for (source, found) in [("x(i < n);", 0), ("  a;\n  a;\n i < n", 2)] {
            let unfit = fix().taken_out(source).unwrap_err();
            assert_eq!((unfit.found, unfit.text.as_str()), (found, "  a;\n"));
        }
    }

    #[test]
    fn what_is_put_in_is_taken_out_again() {
        let mut fix = fix();
        fix.change.truncate(1);
        let source = "x(i <= n);";
        assert_eq!(fix.taken_out(&fix.put_in(source).unwrap()).unwrap(), source);
    }
}
