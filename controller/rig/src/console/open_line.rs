//! What a test prints on the line that its framework has begun. Pure.

/// Words by which libtest ends such a line.
const RESULTS: [&str; 4] = ["ok", "FAILED", "ignored", "bench:"];

/// Returns what follows `test NAME ... ` of libtest, or `TEST(GROUP, NAME)` of CppUTest, on the same line,
/// if it is no result.
pub(crate) fn output_of_open_test(line: &str) -> Option<&str> {
    let line = line.trim_ascii();
    let output = match line.strip_prefix("test ") {
        Some(named) => {
            let (name, output) = named.split_once(" ... ")?;
            // The panic that is expected.
            let expected = name.ends_with(" - should panic") && output.contains("panicked at ");
            if expected { "" } else { output.trim_ascii() }
        }
        None => without_time(line.strip_prefix("TEST(")?.split_once(')')?.1),
    };
    let is_result = RESULTS.iter().any(|result| output.starts_with(result));
    (!output.is_empty() && !is_result).then_some(output)
}

/// Takes ` - 2 ms` off the end.
fn without_time(text: &str) -> &str {
    let timed =
        text.strip_suffix(" ms").map(|text| text.trim_end_matches(|c: char| c.is_ascii_digit()));
    timed.and_then(|text| text.strip_suffix("- ")).unwrap_or(text).trim_ascii()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn output_is_told_from_a_result() {
        for (line, output) in [
            ("test q::push ... Exception: stack overflow", Some("Exception: stack overflow")),
            ("test q::push - should panic ... pid 4: exited", Some("pid 4: exited")),
            ("TEST(Pll, Locks)MEM MANAGE FAULT - 2 ms", Some("MEM MANAGE FAULT")),
            ("TEST(Pll, Locks) - 2 ms", None),
            ("TEST(Pll, Locks)", None),
            ("test q::push - should panic ... panicked at src/q.rs:12:5:", None),
            ("test q::push ... ok", None),
            ("test q::push ... ignored, needs a radio", None),
            ("test q::push ... ", None),
            ("testing q ... Exception", None),
        ] {
            assert_eq!(output_of_open_test(line), output, "{line}");
        }
    }
}
