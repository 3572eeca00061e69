//! C as far as it takes to know which function, variable or macro names which others. Pure.
//!
//! Refuses to be a parser: a call through a pointer is not seen, and a macro that makes a function is
//! taken for a function of the macro's name.

use std::collections::BTreeMap;

/// A function of a C file, or a variable or macro outside of functions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Definition {
    /// Whether it is a function.
    pub(crate) is_code: bool,
    pub(crate) file: String,
    /// Numbers of its first and last line, from 1.
    pub(crate) lines: (u32, u32),
    /// Names that are called or mentioned in it, each with the first line on which it is.
    pub(crate) names: BTreeMap<String, u32>,
}

/// Lists what a file defines, by its name.
pub(crate) fn definitions(file: &str, text: &str) -> Vec<(String, Definition)> {
    let mut found = functions_of(file, text);
    found.extend(macros_of(file, text));
    found
}

/// Lists the functions that a file defines, also those inside of `extern "C"` and `namespace`, each with
/// the words in its parentheses: a macro such as `TEST(Ring, Wraps)` names there what it makes.
pub(crate) fn function_heads(text: &str) -> Vec<(String, Vec<String>)> {
    let mut found = Vec::new();
    let mut head: Vec<(String, u32)> = Vec::new();
    let mut depth = 0u32;
    for (token, line) in tokens(text) {
        match (token.as_str(), depth) {
            ("{", 0)
                if head.iter().any(|(word, _)| word == "namespace" || word == "extern")
                    && head.iter().all(|(word, _)| word != ")") =>
            {
                head.clear()
            }
            ("{", 0) => {
                depth = 1;
                let words = head.iter().skip_while(|(word, _)| word != "(");
                let words = words.map(|(word, _)| word.clone()).filter(|word| {
                    word.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '_')
                });
                found.extend(name_of(&head).map(|(name, _)| (name, words.collect())));
                head.clear();
            }
            ("{", _) => depth += 1,
            ("}", _) => depth = depth.saturating_sub(1),
            (";", 0) => head.clear(),
            (_, 0) => head.push((token, line)),
            _ => {}
        }
    }
    found
}

/// Splits a text into names and numbers.
pub(crate) fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').filter(|word| !word.is_empty())
}

/// Lists the statements at the outer level of a function's body, each by its first and last line. What
/// follows an `else` belongs to the `if` before it.
pub(crate) fn statements(text: &str, function: &Definition) -> Vec<(u32, u32)> {
    let (first, last) = function.lines;
    let inside = tokens(text).into_iter().filter(|(_, line)| (first..=last).contains(line));
    let mut found: Vec<(u32, u32)> = Vec::new();
    let (mut braces, mut others, mut began, mut goes_on) = (0u32, 0u32, None, false);
    for (token, line) in inside.skip_while(|(token, _)| token != "{") {
        if braces == 1 && began.is_none() && token != "}" {
            began = Some(line);
            goes_on = token == "else";
        }
        match token.as_str() {
            "{" => braces += 1,
            "}" => braces = braces.saturating_sub(1),
            "(" | "[" => others += 1,
            ")" | "]" => others = others.saturating_sub(1),
            _ => {}
        }
        let ends = matches!(token.as_str(), ";" | "}") && braces == 1 && others == 0;
        if let Some(begin) = began.filter(|_| ends) {
            match found.last_mut().filter(|_| goes_on) {
                Some(before) => before.1 = line,
                None => found.push((begin, line)),
            }
            began = None;
        }
    }
    found
}

/// Lists the functions and variables that a file defines, by their names.
fn functions_of(file: &str, text: &str) -> Vec<(String, Definition)> {
    let mut found = Vec::new();
    let mut head: Vec<(String, u32)> = Vec::new();
    let mut body: Option<(String, u32, BTreeMap<String, u32>)> = None;
    let mut depth = 0u32;
    for (token, line) in tokens(text) {
        match (token.as_str(), depth) {
            ("{", 0) => {
                depth = 1;
                body = name_of(&head).map(|(name, first)| (name, first, BTreeMap::new()));
                head.clear();
            }
            ("{", _) => depth += 1,
            ("}", 1) => {
                depth = 0;
                if let Some((name, first, names)) = body.take() {
                    let lines = (first, line);
                    let file = file.to_owned();
                    found.push((name, Definition { is_code: true, file, lines, names }));
                }
            }
            ("}", _) => depth = depth.saturating_sub(1),
            (";", 0) => {
                found.extend(variable(file, &head, line));
                head.clear();
            }
            (_, 0) => head.push((token, line)),
            _ => {
                if let Some((_, _, names)) = &mut body
                    && token.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
                {
                    names.entry(token).or_insert(line);
                }
            }
        }
    }
    found
}

/// Reads the declaration of a variable; what has parentheses in front of its value is none.
fn variable(file: &str, head: &[(String, u32)], last: u32) -> Option<(String, Definition)> {
    let end = head.iter().position(|(token, _)| matches!(token.as_str(), "=" | "["));
    let declared = &head[..end.unwrap_or(head.len())];
    let other = |token: &str| matches!(token, "(" | "typedef" | "struct" | "enum" | "union");
    let (name, _) = declared.last().filter(|_| declared.len() > 1)?;
    if declared.iter().any(|(token, _)| other(token)) {
        return None;
    }
    let lines = (head[0].1, last);
    let file = file.to_owned();
    Some((name.clone(), Definition { is_code: false, file, lines, names: BTreeMap::new() }))
}

/// Lists the macros that a file defines, by their names.
fn macros_of(file: &str, text: &str) -> Vec<(String, Definition)> {
    let mut found = Vec::new();
    let mut numbered = text.lines().zip(1..);
    while let Some((line, first)) = numbered.next() {
        let Some(body) = defined(line) else { continue };
        let (mut last, mut names, mut name) = (first, BTreeMap::new(), None);
        let mut part = Some((body, first));
        while let Some((body, number)) = part {
            last = number;
            let mut words = words(body);
            if name.is_none() {
                name = words.next().map(str::to_owned);
            }
            for word in words {
                names.entry(word.to_owned()).or_insert(number);
            }
            part = body.ends_with('\\').then(|| numbered.next()).flatten();
        }
        let definition =
            Definition { is_code: false, file: file.to_owned(), lines: (first, last), names };
        found.extend(name.map(|name| (name, definition)));
    }
    found
}

fn defined(line: &str) -> Option<&str> {
    line.trim_start().strip_prefix('#')?.trim_start().strip_prefix("define")
}

/// Finds the name of a function in what stands in front of its body: the word before the last pair of
/// parentheses at the outer level.
fn name_of(head: &[(String, u32)]) -> Option<(String, u32)> {
    let close = head.iter().rposition(|(token, _)| token == ")")?;
    let mut depth = 0;
    for at in (0..=close).rev() {
        match head[at].0.as_str() {
            ")" => depth += 1,
            "(" => {
                depth -= 1;
                if depth == 0 {
                    let (name, line) = head.get(at.checked_sub(1)?)?;
                    let is_name = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
                    return is_name.then(|| (name.clone(), *line));
                }
            }
            _ => {}
        }
    }
    None
}

/// Splits C into words and single characters, each with its line; leaves out comments, texts and
/// lines of the preprocessor.
pub(crate) fn tokens(text: &str) -> Vec<(String, u32)> {
    let mut found = Vec::new();
    let mut chars = text.chars().peekable();
    let (mut line, mut fresh) = (1, true);
    while let Some(c) = chars.next() {
        match c {
            '\n' => (line, fresh) = (line + 1, true),
            c if c.is_whitespace() => {}
            '#' if fresh => {
                let mut escaped = false;
                while let Some(&c) = chars.peek() {
                    if c == '\n' && !escaped {
                        break;
                    }
                    line += u32::from(c == '\n');
                    escaped = c == '\\';
                    chars.next();
                }
            }
            '/' if chars.peek() == Some(&'/') => {
                while chars.peek().is_some_and(|&c| c != '\n') {
                    chars.next();
                }
            }
            '/' if chars.peek() == Some(&'*') => {
                let mut before = ' ';
                for c in chars.by_ref() {
                    line += u32::from(c == '\n');
                    if before == '*' && c == '/' {
                        break;
                    }
                    before = c;
                }
            }
            '"' | '\'' => {
                fresh = false;
                let mut escaped = false;
                while let Some(inner) = chars.next_if(|&c| c != '\n') {
                    if inner == c && !escaped {
                        break;
                    }
                    escaped = inner == '\\' && !escaped;
                }
            }
            c if c.is_ascii_alphanumeric() || c == '_' => {
                fresh = false;
                let mut word = String::from(c);
                while let Some(c) = chars.next_if(|c| c.is_ascii_alphanumeric() || *c == '_') {
                    word.push(c);
                }
                found.push((word, line));
            }
            c => {
                fresh = false;
                found.push((c.to_string(), line));
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn heads_of_functions_are_found_in_namespaces_and_behind_macros() {
        let text = "extern \"C\" {\nint test_a(void) { if (x) { y(); } return 0; }\n}\n\
            int declared(void);\nTEST(Ring, Wraps)\n{\n}\nnamespace n {\nstatic void b(int c) {}\n}\n";
        let found = function_heads(text);
        let found: Vec<_> =
            found.iter().map(|(name, words)| (name.as_str(), words.join(" "))).collect();
        let wanted = [("test_a", "void"), ("TEST", "Ring Wraps"), ("b", "int c")];
        assert_eq!(found, wanted.map(|(name, words)| (name, words.to_owned())));
    }

    #[test]
    fn statements_are_those_of_the_outer_level() {
        let text = "int run(void)\n{\n    int n = 0;\n    for (int i = 0; i < 2; i++) {\n        a(i);\n    }\n    \
            if (n)\n        b();\n    else\n        c();\n    return n;\n}\n";
        let found: BTreeMap<_, _> = definitions("t.c", text).into_iter().collect();
        assert_eq!(statements(text, &found["run"]), [(3, 3), (4, 6), (7, 10), (11, 11)]);
        assert_eq!(
            statements("void f(void) { }\n", &definitions("t.c", "void f(void) { }\n")[0].1),
            []
        );
    }

    #[test]
    fn what_each_definition_names_is_known_with_its_line() {
        let text = "#define CHECK(x) \\\n    do { if (!(x)) \\\n        fail(1); } while (0)\n\
            static int count = 3;\n\
            void test(void)\n{\n    CHECK(count);\n    more(count);\n}\n";
        let found: BTreeMap<_, _> = definitions("t.c", text).into_iter().collect();
        let check = &found["CHECK"];
        assert_eq!((check.lines, check.names["fail"], check.is_code), ((1, 3), 3, false));
        let test = &found["test"];
        assert_eq!((test.lines, test.is_code), ((5, 9), true));
        assert_eq!((test.names["CHECK"], test.names["count"], test.names["more"]), (7, 7, 8));
        assert_eq!(found["count"].lines, (4, 4));
    }
}
