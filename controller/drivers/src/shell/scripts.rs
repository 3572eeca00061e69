//! The scripts that copy files and tell boots apart, and how their answers are read. Pure.
//!
//! # Design
//! *An answer proves the end.* A server may close a channel without an exit status, and libssh2 then
//! says 0. So each script of a POSIX shell ends with a line of its own on standard error, and without
//! that line the end is not known. Standard error of the program itself joins its output.
//!
//! *A file is there as a whole or not at all*: it is written beside its place, read back, and renamed.

use jig_model::shell::ShellKind;

use super::quote::{QuoteError, command_line, powershell_line, powershell_literal};

const STATUS: &str = "jig-status=";
const BOOT: &str = "jig-boot=";
const HASH: &str = "jig-sha256=";

/// What the script of a copy ends with where the target has no room: ERROR_DISK_FULL of Windows.
const NO_ROOM: i32 = 112;

/// Prints a text that differs from boot to boot: of Linux, of BSD, of anything else.
const BOOT_TEXT: &str = "cat /proc/sys/kernel/random/boot_id 2>/dev/null || \
                         sysctl -n kern.boottime 2>/dev/null || uptime -s 2>/dev/null";

/// Runs `$1` in a session of its own, in the foreground, so that it ignores no signal. Beside it a process
/// of the same session reads the input: its end means that the caller of the command has gone, so the
/// whole process group is ended. Holds no single quote.
const IN_SESSION: &str = "exec 3<&0 </dev/null; \
    ( trap \"\" TERM HUP; cat <&3; kill -TERM 0; sleep 2; kill -KILL 0 ) >/dev/null 2>&1 & w=$!; \
    exec 3<&-; sh -c \"$1\" 2>&1; s=$?; kill -KILL $w; echo \"jig-status=$s\" >&2; exit $s";

fn sh(script: &str, arguments: &[&str]) -> Result<String, QuoteError> {
    let words = ["sh", "-c", script, "jig"].into_iter().chain(arguments.iter().copied());
    let words: Vec<String> = words.map(str::to_owned).collect();
    command_line(ShellKind::Sh, &words)
}

/// Returns the line that runs a command. The end of the line's input, before the command has ended by
/// itself, ends a command of a POSIX shell with all that it has started in its session, where the target
/// has `setsid`.
pub(super) fn exec(kind: ShellKind, argv: &[String]) -> Result<String, QuoteError> {
    let line = command_line(kind, argv)?;
    match kind {
        ShellKind::Sh => sh(
            &format!(
                "echo \"{BOOT}$({BOOT_TEXT})\" >&2; \
                 if command -v setsid >/dev/null 2>&1; then setsid sh -c '{IN_SESSION}' jig \"$1\"; \
                 else sh -c \"$1\" 2>&1 </dev/null; s=$?; echo \"{STATUS}$s\" >&2; fi; exit $s"
            ),
            &[&line],
        ),
        ShellKind::Cmd | ShellKind::PowerShell => Ok(line),
    }
}

/// Returns the line that runs a command, which goes on where the connection is lost.
pub(super) fn exec_detached(kind: ShellKind, argv: &[String]) -> Result<String, QuoteError> {
    let line = command_line(kind, argv)?;
    match kind {
        // A subshell, so that a command such as `exit` does not end the script.
        ShellKind::Sh => {
            sh(&format!("( {line}\n) 2>&1 </dev/null; s=$?; echo \"{STATUS}$s\" >&2; exit $s"), &[])
        }
        ShellKind::Cmd | ShellKind::PowerShell => Ok(line),
    }
}

/// Returns the line that writes its input to a path, and tells the hash of what is there then.
pub(super) fn upload(
    kind: ShellKind,
    (to, name): (&str, &str),
    mode: u32,
) -> Result<String, QuoteError> {
    match kind {
        ShellKind::Sh => sh(
            &format!(
                "LC_ALL=C; export LC_ALL; p=$1; [ -d \"$p\" ] && p=${{p%/}}/$2; t=$p.jig-part-$$; \
                 trap 'rm -f \"$t\"' EXIT; cat >\"$t\" || exit 1; \
                 s=$(sha256sum <\"$t\") || exit 1; \
                 chmod \"$3\" \"$t\" || exit 1; mv -f \"$t\" \"$p\" || exit 1; \
                 echo \"{HASH}${{s%% *}}\" >&2"
            ),
            &[to, name, &format!("{mode:o}")],
        ),
        ShellKind::Cmd | ShellKind::PowerShell => powershell_line(&format!(
            "$p={};$n={};{POWERSHELL_UPLOAD}",
            powershell_literal(to),
            powershell_literal(name)
        )),
    }
}

const POWERSHELL_UPLOAD: &str = r#"
$p=$ExecutionContext.SessionState.Path.GetUnresolvedProviderPathFromPSPath($p);
if([IO.Directory]::Exists($p)){$p=[IO.Path]::Combine($p,$n)}
$t="$p.jig-part-$PID";
try{
$i=[Console]::OpenStandardInput();$o=[IO.File]::Create($t);
try{$i.CopyTo($o)}finally{$o.Close()}
$h=[BitConverter]::ToString([Security.Cryptography.SHA256]::Create().ComputeHash([IO.File]::ReadAllBytes($t))).Replace('-','').ToLower();
if([IO.File]::Exists($p)){[IO.File]::Delete($p)}
[IO.File]::Move($t,$p);
[Console]::Error.WriteLine("jig-sha256=$h");exit 0
}catch{
if([IO.File]::Exists($t)){[IO.File]::Delete($t)}
$e=$_.Exception;while($e.InnerException){$e=$e.InnerException}
[Console]::Error.WriteLine($e.Message);
if($e.HResult -eq -2147024784){exit 112}
exit 1}"#;

/// Returns the line that prints a file.
pub(super) fn download(kind: ShellKind, from: &str) -> Result<String, QuoteError> {
    match kind {
        ShellKind::Sh => sh(
            &format!(
                "LC_ALL=C; export LC_ALL; cat <\"$1\"; s=$?; echo \"{STATUS}$s\" >&2; exit $s"
            ),
            &[from],
        ),
        ShellKind::Cmd | ShellKind::PowerShell => {
            powershell_line(&format!("$p={};{POWERSHELL_DOWNLOAD}", powershell_literal(from)))
        }
    }
}

const POWERSHELL_DOWNLOAD: &str = r#"
$p=$ExecutionContext.SessionState.Path.GetUnresolvedProviderPathFromPSPath($p);
try{
$i=[IO.File]::Open($p,'Open','Read','ReadWrite');$o=[Console]::OpenStandardOutput();
$i.CopyTo($o);$o.Flush();[Console]::Error.WriteLine('jig-status=0');exit 0
}catch{
$e=$_.Exception;while($e.InnerException){$e=$e.InnerException}
[Console]::Error.WriteLine($e.Message);exit 1}"#;

/// Returns the line that prints a text which differs from boot to boot.
pub(super) fn boot_id(kind: ShellKind) -> Result<String, QuoteError> {
    match kind {
        ShellKind::Sh => sh(BOOT_TEXT, &[]),
        ShellKind::Cmd | ShellKind::PowerShell => powershell_line(
            "(Get-CimInstance Win32_OperatingSystem).LastBootUpTime.ToUniversalTime().ToString('s')",
        ),
    }
}

/// What a script of Jig has told on standard error.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct ScriptAnswer {
    /// The exit status of what it ran.
    pub(super) status: Option<i32>,
    /// The boot in which it ran.
    pub(super) boot: Option<String>,
    /// The hash of the file that it has written.
    pub(super) sha256: Option<String>,
    /// What else was printed, the last line of it.
    pub(super) last_line: String,
}

impl ScriptAnswer {
    pub(super) fn read(stderr: &str) -> Self {
        let mut answer = Self::default();
        for line in stderr.lines().map(str::trim) {
            if let Some(status) = line.strip_prefix(STATUS) {
                answer.status = status.parse().ok();
            } else if let Some(boot) = line.strip_prefix(BOOT) {
                answer.boot = Some(boot.to_owned()).filter(|boot| !boot.is_empty());
            } else if let Some(hash) = line.strip_prefix(HASH) {
                answer.sha256 = Some(hash.to_owned());
            } else if !line.is_empty() {
                line.clone_into(&mut answer.last_line);
            }
        }
        answer
    }

    /// Tells whether a copy failed because the target has no room.
    pub(super) fn has_no_room(&self, status: i32) -> bool {
        let words = ["No space left on device", "Disk quota exceeded"];
        status == NO_ROOM || words.iter().any(|words| self.last_line.contains(words))
    }
}

#[cfg(test)]
#[path = "scripts_tests.rs"]
mod tests;
