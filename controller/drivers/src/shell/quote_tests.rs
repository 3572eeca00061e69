//! Command lines are read back by parsers: a real `/bin/sh`, a parser of `CommandLineToArgvW`, and
//! models of `cmd` and PowerShell.

use std::process::Command;

use proptest::prelude::*;

use super::*;

fn words(all: &[&str]) -> Vec<String> {
    all.iter().map(|&word| word.to_owned()).collect()
}

/// Reads a line as `cmd` does where no quote is open: a caret makes the next character plain.
///
/// Fails if a character is left that means something to `cmd`.
fn read_by_cmd(line: &str) -> String {
    let mut read = String::new();
    let mut chars = line.chars();
    while let Some(c) = chars.next() {
        match c {
            '^' => read.push(chars.next().expect("nothing behind the last caret")),
            c if "()%!\"<>&|".contains(c) => panic!("{c} means something to cmd in {line}"),
            c => read.push(c),
        }
    }
    read
}

/// Reads the script of an encoded command.
fn decoded(line: &str) -> String {
    let encoded = line.rsplit(' ').next().unwrap();
    let bytes = STANDARD.decode(encoded).unwrap();
    let units: Vec<u16> = bytes.chunks(2).map(|b| u16::from_le_bytes([b[0], b[1]])).collect();
    String::from_utf16(&units).unwrap()
}

/// Reads the literals of a list of PowerShell, by its rule: a quote ends a literal unless another one
/// follows.
fn literals(mut text: &str) -> Vec<String> {
    let is_quote = |c: char| matches!(c, '\'' | '\u{2018}'..='\u{201b}');
    let mut all = Vec::new();
    while let Some(rest) = text.strip_prefix('\'') {
        let mut literal = String::new();
        let mut chars = rest.char_indices().peekable();
        let end = loop {
            let (at, c) = chars.next().expect("a literal that does not end");
            if !is_quote(c) {
                literal.push(c);
            } else if chars.peek().is_some_and(|&(_, next)| is_quote(next)) {
                literal.push(chars.next().unwrap().1);
            } else {
                break at + c.len_utf8();
            }
        };
        all.push(literal);
        text = rest[end..].strip_prefix(',').unwrap_or("");
    }
    all
}

/// Arguments with what shells read as something else, and any other text.
fn argument() -> impl Strategy<Value = String> {
    prop_oneof!["[ -~]{0,12}", "[\\\\\" %^&|<>()!'`$;*?~]{0,8}", "\\PC{0,8}"]
}

#[test]
fn what_no_shell_passes_on_is_refused() {
    for kind in [ShellKind::Sh, ShellKind::Cmd, ShellKind::PowerShell] {
        assert_eq!(command_line(kind, &[]), Err(QuoteError::Empty));
        assert_eq!(command_line(kind, &words(&[""])), Err(QuoteError::Empty));
        let nul = command_line(kind, &words(&["a", "b\0"])).unwrap_err();
        assert!(nul.to_string().contains("argument 1"), "{nul}");
    }
    assert!(command_line(ShellKind::Cmd, &words(&["echo", "a\nb"])).is_err());
    let long = command_line(ShellKind::Cmd, &words(&["echo", &"x".repeat(9000)])).unwrap_err();
    assert!(long.to_string().contains("upload a script"), "{long}");
}

#[test]
fn lines_are_as_a_person_would_write_them() {
    let line = |kind, all: &[&str]| command_line(kind, &words(all)).unwrap();
    assert_eq!(line(ShellKind::Sh, &["ls", "-l", "a b"]), "ls -l 'a b'");
    assert_eq!(line(ShellKind::Cmd, &["dir", "/b", r"C:\Temp"]), r"dir /b C:\Temp");
    assert_eq!(line(ShellKind::Cmd, &["app", r"C:\a b\"]), "app ^\"C:\\a b\\\\^\"");
    assert_eq!(line(ShellKind::Cmd, &["echo", "100%", "a&b"]), "echo 100^% a^&b");
    let script = decoded(&line(ShellKind::PowerShell, &["Get-Item", "it's"]));
    assert!(script.contains("$p='Get-Item';$a=@('it''s');"), "{script}");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn sh_reads_the_arguments_that_were_quoted(args in prop::collection::vec(argument(), 0..6)) {
        let mut argv = words(&["printf", "%s\\0"]);
        // Without an argument printf prints one empty text.
        argv.push("first".to_owned());
        argv.extend(args.clone());
        let line = command_line(ShellKind::Sh, &argv).unwrap();
        let output = Command::new("/bin/sh").arg("-c").arg(&line).output().unwrap();
        let said = String::from_utf8(output.stdout).unwrap();
        let read: Vec<_> = said.split_terminator('\0').skip(1).collect();
        prop_assert_eq!(read, args, "{}", line);
    }

    #[test]
    fn cmd_hands_on_the_arguments_that_were_quoted(args in prop::collection::vec(argument(), 0..6)) {
        prop_assume!(args.iter().all(|arg| !arg.contains(['\n', '\r', '\0'])));
        let mut argv = words(&["app.exe"]);
        argv.extend(args);
        let line = read_by_cmd(&command_line(ShellKind::Cmd, &argv).unwrap());
        let read: Vec<String> = windows_args::Args::parse_cmd(&line).collect();
        prop_assert_eq!(read, argv, "{}", line);
    }

    #[test]
    fn powershell_reads_the_arguments_that_were_quoted(
        args in prop::collection::vec(prop_oneof![argument(), "['\u{2018}-\u{201b}x]{0,6}"], 1..6),
    ) {
        let mut argv = words(&["x"]);
        argv.extend(args.clone());
        let script = decoded(&command_line(ShellKind::PowerShell, &argv).unwrap());
        let list = script.split_once("$a=@(").unwrap().1;
        prop_assert_eq!(literals(list), args);
    }
}
