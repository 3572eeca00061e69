//! Short quotes of hostile output for messages: bounded, on few lines, without control characters.

pub(crate) use jig_agents::beginning;

/// Most characters of a quote.
const MAX_CHARS: usize = 600;

/// Most lines of a quote.
const MAX_LINES: usize = 6;

/// Most errors of a build that are quoted.
const MAX_ERRORS: usize = 8;

/// What a line says that names an error of a compiler, an assembler or a linker.
const ERRORS: [&str; 5] =
    [" error: ", " fatal error: ", "undefined reference to ", "multiple definition of ", "error[E"];

/// Tells whether a line of a build's output names an error.
fn names_error(line: &str) -> bool {
    line.starts_with("error: ") || ERRORS.iter().any(|error| line.contains(error))
}

/// Quotes the errors that a build printed, the first ones first, and behind them its last lines, joined by
/// ` / `: a compiler shows the source behind each error, and `make` has the last word.
pub(crate) fn build_failure(output: &[u8]) -> String {
    let text = String::from_utf8_lossy(output);
    let mut errors: Vec<String> = Vec::new();
    let mut more = 0;
    for line in text.lines().map(str::trim).filter(|line| names_error(line)) {
        let line = beginning(line);
        if errors.contains(&line) {
            continue;
        }
        if errors.len() < MAX_ERRORS {
            errors.push(line);
        } else {
            more += 1;
        }
    }
    let last = last_lines(output);
    if errors.is_empty() {
        return last;
    }
    let more = if more > 0 { format!(" / and {more} more errors") } else { String::new() };
    format!("{}{more}; its last lines: {last}", errors.join(" / "))
}

/// Returns the range of bytes of the first line that names an error.
pub(crate) fn first_error(output: &[u8]) -> Option<(u64, u64)> {
    let mut start = 0;
    for line in output.split_inclusive(|&byte| byte == b'\n') {
        let end = start + line.len() as u64;
        if names_error(String::from_utf8_lossy(line).trim()) {
            return Some((start, end));
        }
        start = end;
    }
    None
}

/// Quotes the last lines of what a program printed, joined by ` / `.
pub(crate) fn last_lines(output: &[u8]) -> String {
    // A line may be huge; four bytes are the most that a character has.
    let from = output.len().saturating_sub(MAX_CHARS * 4);
    let text = String::from_utf8_lossy(&output[from..]);
    let lines: Vec<_> = text.lines().map(str::trim_end).filter(|line| !line.is_empty()).collect();
    let joined = lines[lines.len().saturating_sub(MAX_LINES)..].join(" / ");
    let plain: String = joined.chars().filter(|c| !c.is_control()).collect();
    let skip = plain.chars().count().saturating_sub(MAX_CHARS);
    plain.chars().skip(skip).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_output_is_quoted_without_control_characters() {
        let output: String = (0..50).map(|line| format!("\x1b[31mline {line}\r\n")).collect();
        assert_eq!(
            last_lines(output.as_bytes()),
            "[31mline 44 / [31mline 45 / [31mline 46 / [31mline 47 / [31mline 48 / [31mline 49"
        );
        assert_eq!(last_lines(&vec![0xff; 1 << 20]).chars().count(), MAX_CHARS);
        assert_eq!(last_lines(b"\n\n"), "");
    }

    #[test]
    fn errors_of_a_build_come_before_its_last_lines() {
        let error = |line: u32| {
            format!(
                "src/ring.c:{line}:5: error: 'cuont' undeclared\n    {line} |  if (cuont)\n      |  ^~~~~\n"
            )
        };
        let log: String = (1..=3).map(error).collect();
        let log = format!("make\n{log}{}make: *** [Makefile:3: out/app.elf] Error 1\n", error(1));
        let quoted = build_failure(log.as_bytes());
        let first = "src/ring.c:1:5: error: 'cuont' undeclared / src/ring.c:2:5: error: 'cuont' \
                     undeclared / src/ring.c:3:5: error: 'cuont' undeclared; its last lines: ";
        assert!(quoted.starts_with(first) && quoted.ends_with("Error 1"), "{quoted}");
        let (start, end) = first_error(log.as_bytes()).unwrap();
        assert_eq!(
            &log[start as usize..end as usize],
            "src/ring.c:1:5: error: 'cuont' undeclared\n"
        );
        let many: String = (0..50).map(error).collect();
        assert!(build_failure(many.as_bytes()).contains(" / and 42 more errors; "));
        assert_eq!(build_failure(b"make: *** no rule\n"), "make: *** no rule");
        assert_eq!(first_error(b"make: *** no rule\n"), None);
    }
}
