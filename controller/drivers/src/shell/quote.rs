//! Command lines for the shells of targets: one argument in, the same argument out. Pure.
//!
//! # Design
//! A server of SSH hands the text of a command to the login shell of the user, so a list of arguments
//! has to be written in that shell's own language. Each function here is total over lists of arguments:
//! it returns a line that the shell reads as exactly that list, or says why there is none.
//!
//! *`cmd`* has no quotes of its own that stop it from reading `%` and `&`. The line is first made for the
//! program, by the rules of `CommandLineToArgvW`; then each character that means something to `cmd`,
//! quotes included, gets a `^`. So `cmd` sees no quote, and its state never depends on the text.
//!
//! *PowerShell* gets a script in UTF-16 as Base64, which passes every shell in front of it. The script
//! holds the arguments between single quotes. Versions before 7.3 hand arguments with quotes to programs
//! unescaped, so for these versions the script escapes them.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use jig_model::shell::ShellKind;

use crate::ssh::shell_line;

/// Longest command line of `cmd`, and of a process of Windows, in characters.
const CMD_LINE: usize = 8191;
const PROCESS_LINE: usize = 32_767;

/// Says why a list of arguments is no command line.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum QuoteError {
    /// There is no program.
    #[error("the command is empty (expected a program and its arguments)")]
    Empty,
    /// No program can be given such an argument.
    #[error("argument {index} of the command holds {what}, which {shell} cannot pass on")]
    Character {
        /// Its number; the program is 0.
        index: usize,
        /// What it holds.
        what: &'static str,
        /// The shell.
        shell: &'static str,
    },
    /// The line is longer than the shell takes.
    #[error(
        "the command line has {length} characters, and {shell} takes {most}: upload a script, and run that"
    )]
    TooLong {
        /// Its length.
        length: usize,
        /// The longest one.
        most: usize,
        /// The shell.
        shell: &'static str,
    },
}

/// Writes a command for a shell.
///
/// # Errors
/// No line of this shell is that command.
pub fn command_line(kind: ShellKind, argv: &[String]) -> Result<String, QuoteError> {
    if argv.first().is_none_or(String::is_empty) {
        return Err(QuoteError::Empty);
    }
    let refuse = |wanted: char, what, shell| {
        let index = argv.iter().position(|arg| arg.contains(wanted));
        index.map_or(Ok(()), |index| Err(QuoteError::Character { index, what, shell }))
    };
    match kind {
        ShellKind::Sh => {
            refuse('\0', "a NUL character", "sh")?;
            shell_line(argv).map_err(|_| QuoteError::Empty)
        }
        ShellKind::Cmd => {
            refuse('\0', "a NUL character", "cmd")?;
            refuse('\n', "a line end", "cmd")?;
            refuse('\r', "a carriage return", "cmd")?;
            let line = cmd_line(argv);
            short_enough(line, CMD_LINE, "cmd")
        }
        ShellKind::PowerShell => {
            refuse('\0', "a NUL character", "PowerShell")?;
            powershell_line(&invocation(argv))
        }
    }
}

/// Writes a script of PowerShell as a command line that any shell of Windows passes on.
///
/// # Errors
/// It is longer than a command line may be.
pub(super) fn powershell_line(script: &str) -> Result<String, QuoteError> {
    let script = format!("$ProgressPreference='SilentlyContinue';{script}");
    let utf16: Vec<u8> = script.encode_utf16().flat_map(u16::to_le_bytes).collect();
    let encoded = STANDARD.encode(utf16);
    let line = format!(
        "powershell -NoProfile -NonInteractive -OutputFormat Text -EncodedCommand {encoded}"
    );
    short_enough(line, PROCESS_LINE, "PowerShell")
}

fn short_enough(line: String, most: usize, shell: &'static str) -> Result<String, QuoteError> {
    let length = line.encode_utf16().count();
    if length > most { Err(QuoteError::TooLong { length, most, shell }) } else { Ok(line) }
}

/// Writes a command line for `cmd /c`.
fn cmd_line(argv: &[String]) -> String {
    let line: Vec<String> = argv.iter().map(|arg| windows_argument(arg)).collect();
    line.join(" ").chars().fold(String::new(), |mut line, c| {
        if "()%!^\"<>&|".contains(c) {
            line.push('^');
        }
        line.push(c);
        line
    })
}

/// Quotes an argument by the rules of `CommandLineToArgvW`: backslashes are themselves, unless a quote
/// follows them.
fn windows_argument(arg: &str) -> String {
    let plain = |c: char| !c.is_whitespace() && c != '"';
    if !arg.is_empty() && arg.chars().all(plain) {
        return arg.to_owned();
    }
    let mut quoted = String::from('"');
    let mut backslashes = 0;
    for c in arg.chars() {
        match c {
            '\\' => backslashes += 1,
            '"' => {
                // Those before a quote are doubled, and one more escapes it.
                quoted.extend(std::iter::repeat_n('\\', backslashes + 1));
                backslashes = 0;
            }
            _ => backslashes = 0,
        }
        quoted.push(c);
    }
    quoted.extend(std::iter::repeat_n('\\', backslashes));
    quoted.push('"');
    quoted
}

/// Writes a text as a literal of PowerShell.
///
/// PowerShell takes four further characters for a single quote: U+2018 to U+201B.
pub(super) fn powershell_literal(text: &str) -> String {
    let mut literal = String::from('\'');
    for c in text.chars() {
        if matches!(c, '\'' | '\u{2018}'..='\u{201b}') {
            literal.push(c);
        }
        literal.push(c);
    }
    literal.push('\'');
    literal
}

/// The end of a script that runs `$p` with `$a`: arguments for programs are escaped where this version
/// of PowerShell does not, and the exit code is that of the program, or 1 after an error.
const RUN: &str = r#"
$old=$PSVersionTable.PSVersion -lt [version]'7.3';
$c=Get-Command -Name $p -ErrorAction SilentlyContinue|Select-Object -First 1;
if(-not $c){[Console]::Error.WriteLine("$p : there is no such command");exit 127}
if($old -and $c.CommandType -eq 'Application'){
$a=@($a|ForEach-Object{$s=$_ -replace '(\\*)"','$1$1\"';if($s -match '\s'){$s=$s -replace '(\\+)$','$1$1'};if($s -eq ''){'""'}else{$s}})}
$global:LASTEXITCODE=$null;
& $c @a;
$ok=$?;
if($null -ne $LASTEXITCODE){exit $LASTEXITCODE}
if(-not $ok){exit 1}
exit 0"#;

/// Writes the script that runs a command.
fn invocation(argv: &[String]) -> String {
    let program = powershell_literal(argv.first().map_or("", String::as_str));
    let arguments: Vec<_> = argv.iter().skip(1).map(|arg| powershell_literal(arg)).collect();
    format!("$p={program};$a=@({});{RUN}", arguments.join(","))
}

#[cfg(test)]
#[path = "quote_tests.rs"]
mod tests;
