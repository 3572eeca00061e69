//! Commands by a serial console: typed as a person would, with ends that cannot be mistaken.
//!
//! # Design
//! *A command stands between two lines of Jig*, of which the second has its status. Both hold a random
//! text, which is typed in two parts, so that the echo of the input does not hold it. So neither the command's output nor its echo is taken for an end.
//!
//! *Only plain lines are typed.* A shell edits its line: a tab completes, a long line is cut. What is
//! longer than a line, or holds other characters, goes into a variable as Base64, piece by piece.
//!
//! *Files go as Base64, too*, each piece acknowledged, because a serial line has no flow control. The
//! file is compared by its SHA-256.

use std::fmt::Write as _;
use std::hash::{BuildHasher as _, Hasher as _};
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use jig_model::pattern::Pattern;
use jig_model::protocol::{BoardSink as _, CopiedFile};
use jig_model::shell::{SerialAccess, posix_line, posix_word};
use jig_model::{Cause, ConsoleName, chain};
use sha2::{Digest as _, Sha256};

use super::shell::end_of;
use super::{Actions, compile};
use crate::attempt::abort_condition::abort_condition;
use crate::attempt::board_timeout::BoardTimeout;
use crate::console::{ExpectError, Follower, Matched, PatternSet, expect};
use crate::judge::ByteRange;
use crate::workflow::ActionFailure;

/// Longest line that is typed: busybox edits lines of up to 1024 characters.
const LINE: usize = 700;

/// Bytes of a file in one line; a multiple of three, so that no Base64 is padded in the middle.
const PIECE: usize = 450;

/// How long a console may take to show a prompt behind an empty line, before another one is sent.
const NUDGE: Duration = Duration::from_secs(2);

/// How often a console may ask for the user before the login counts as refused.
const LOGINS: u32 = 3;

/// Most output of a script of Jig that is read: a file that is fetched has four thirds of its size.
const MOST: u64 = 64 << 20;

/// What a script has done.
struct ScriptOutcome {
    status: i32,
    /// Where its output is in the console's log.
    output: Range<u64>,
}

/// Returns a random text of 128 bits.
fn token() -> String {
    let mut text = String::new();
    for _ in 0..2 {
        // Its keys come from the system's random numbers.
        let number = std::hash::RandomState::new().build_hasher().finish();
        let _ = write!(text, "{number:016x}");
    }
    text
}

/// The lines to type for a script, in order; all but the last prepare it.
fn typed(script: &str, token: &str, subshell: bool) -> Vec<String> {
    let plain = script.chars().all(|c| c == ' ' || c.is_ascii_graphic());
    let (open, close) = if subshell { ("(", ")") } else { ("{", ";}") };
    let framed = |body: &str| {
        format!(
            " printf '%s%s\\n' 'jig-' 'begin-{token}'; {open} {body} {close} 2>&1 </dev/null; \
             printf '\\n%s%s:%d:\\n' 'jig-' 'end-{token}' $?"
        )
    };
    let whole = framed(script);
    if plain && whole.len() <= LINE {
        return vec![whole];
    }
    let encoded = STANDARD.encode(script);
    let mut lines = vec![" j=".to_owned()];
    // Base64 is ASCII, so each piece is text.
    let pieces = encoded.as_bytes().chunks(LINE - 20);
    lines.extend(pieces.map(|piece| format!(" j=$j'{}'", String::from_utf8_lossy(piece))));
    lines.push(framed("eval \"$(printf %s \"$j\" | base64 -d)\""));
    lines
}

impl Actions<'_> {
    fn serial(&self) -> Result<SerialAccess, ActionFailure> {
        let access = self.shell.as_ref().and_then(|shell| shell.serial.clone());
        access.ok_or_else(|| ActionFailure::new(Cause::ShellRefused, "there is no serial shell"))
    }

    /// Runs a program; returns the console, where its output is, and its status.
    pub(super) async fn exec_serial(
        &mut self,
        argv: &[String],
        limit: BoardTimeout,
    ) -> Result<(ConsoleName, Range<u64>, i32), ActionFailure> {
        let access = self.serial()?;
        if argv.iter().any(|word| word.contains('\0')) {
            let detail = "an argument of the command holds a NUL character";
            return Err(ActionFailure::new(Cause::ShellRefused, detail));
        }
        self.log_in(&access, limit).await?;
        let done = self.script(&access, &posix_line(argv), true, limit).await?;
        Ok((access.console, done.output, done.status))
    }

    pub(super) async fn boot_id_serial(
        &mut self,
        limit: BoardTimeout,
    ) -> Result<String, ActionFailure> {
        let access = self.serial()?;
        self.log_in(&access, limit).await?;
        let script = "cat /proc/sys/kernel/random/boot_id";
        let (status, text) = self.answer(&access, script, limit).await?;
        let text = text.trim();
        if status == 0 && !text.is_empty() {
            return Ok(text.to_owned());
        }
        let detail = "the target does not tell its boots apart: /proc/sys/kernel/random/boot_id \
                      cannot be read";
        Err(ActionFailure::new(Cause::RebootFailed, detail))
    }

    /// Types the command that reboots the target.
    pub(super) async fn reboot_serial(&mut self, limit: BoardTimeout) -> Result<(), ActionFailure> {
        let access = self.serial()?;
        let command = self.shell.as_ref().map(|shell| posix_line(&shell.reboot));
        self.type_line(&access.console, &command.unwrap_or_default(), limit).await
    }

    pub(super) async fn upload_serial(
        &mut self,
        (from, to, mode): (&Path, &str, Option<u32>),
        limit: BoardTimeout,
    ) -> Result<CopiedFile, ActionFailure> {
        let access = self.serial()?;
        let unread = |error: &std::io::Error| {
            let detail = format!("read {}: {error}", from.display());
            ActionFailure::new(Cause::StorageFailed, detail)
        };
        let bytes = tokio::fs::read(from).await.map_err(|error| unread(&error))?;
        let meta = tokio::fs::metadata(from).await.map_err(|error| unread(&error))?;
        use std::os::unix::fs::PermissionsExt as _;
        let mode = mode.unwrap_or(meta.permissions().mode() & 0o777);
        let name = from.file_name().map(|name| name.to_string_lossy()).unwrap_or_default();
        self.log_in(&access, limit).await?;
        let (path, name) = (posix_word(to), posix_word(&name));
        let begin =
            format!("p={path}; [ -d \"$p\" ] && p=${{p%/}}/{name}; t=$p.jig-part; : >\"$t\"");
        let refused = |what: &str, said: &str| {
            let detail = format!("the target cannot {what} {to}: {}", said.trim());
            ActionFailure::new(Cause::TransferFailed, detail)
        };
        let (status, said) = self.answer(&access, &begin, limit).await?;
        if status != 0 {
            return Err(refused("write", &said));
        }
        for piece in bytes.chunks(PIECE) {
            let script = format!("printf %s {} | base64 -d >>\"$t\"", STANDARD.encode(piece));
            let (status, said) = self.answer(&access, &script, limit).await?;
            if status != 0 {
                self.answer(&access, "rm -f \"$t\"", limit).await?;
                return Err(refused("write", &said));
            }
        }
        let (status, found) = self.answer(&access, "sha256sum <\"$t\"", limit).await?;
        let sha256 = hex(&bytes);
        let found = found.split_whitespace().next().unwrap_or_default().to_owned();
        if status != 0 || found != sha256 {
            self.answer(&access, "rm -f \"$t\"", limit).await?;
            let said = format!("it has SHA-256 {found:?} there, and {sha256} was sent");
            // A file that a disk without room has cut was noticed before.
            let detail = format!("the copy to {to} is not whole: {said}");
            return Err(ActionFailure::new(Cause::ShellUnreachable, detail));
        }
        let end = format!("chmod {mode:o} \"$t\" && mv -f \"$t\" \"$p\"");
        let (status, said) = self.answer(&access, &end, limit).await?;
        if status != 0 {
            return Err(refused("write", &said));
        }
        Ok(CopiedFile { bytes: bytes.len() as u64, sha256 })
    }

    pub(super) async fn download_serial(
        &mut self,
        from: &str,
        to: &Path,
        limit: BoardTimeout,
    ) -> Result<CopiedFile, ActionFailure> {
        let access = self.serial()?;
        self.log_in(&access, limit).await?;
        let path = posix_word(from);
        let script = format!("base64 <{path} && sha256sum <{path}");
        let (status, text) = self.answer(&access, &script, limit).await?;
        if status != 0 {
            let detail = format!("the target cannot read {from}: {}", text.trim());
            return Err(ActionFailure::new(Cause::TransferFailed, detail));
        }
        let mut lines: Vec<&str> = text.split_whitespace().collect();
        // `sha256sum` prints the hash, and `-` for its input.
        let hash = lines.iter().rposition(|word| is_hash(word));
        let found = hash.map(|at| lines.split_off(at)[0].to_owned()).unwrap_or_default();
        let bytes = STANDARD.decode(lines.concat()).unwrap_or_default();
        let sha256 = hex(&bytes);
        if found != sha256 {
            let detail = format!(
                "the copy of {from} is not whole: it has SHA-256 {found:?} there, and {sha256} came"
            );
            return Err(ActionFailure::new(Cause::ShellUnreachable, detail));
        }
        tokio::fs::write(to, &bytes).await.map_err(|error| {
            let detail = format!("write {}: {error}", to.display());
            ActionFailure::new(Cause::StorageFailed, detail)
        })?;
        Ok(CopiedFile { bytes: bytes.len() as u64, sha256 })
    }

    /// Runs a script of Jig in the shell itself; returns its status and its output.
    async fn answer(
        &mut self,
        access: &SerialAccess,
        script: &str,
        limit: BoardTimeout,
    ) -> Result<(i32, String), ActionFailure> {
        let ScriptOutcome { status, output } = self.script(access, script, false, limit).await?;
        let mut text = vec![0; (output.end - output.start).min(MOST) as usize];
        let follower = self.cursor(&access.console)?;
        let read = follower.read_at(output.start, &mut text);
        let count =
            read.map_err(|error| ActionFailure::new(Cause::StorageFailed, chain(&error)))?;
        text.truncate(count);
        Ok((status, String::from_utf8_lossy(&text).into_owned()))
    }

    /// Types a script and waits for its end.
    async fn script(
        &mut self,
        access: &SerialAccess,
        script: &str,
        subshell: bool,
        limit: BoardTimeout,
    ) -> Result<ScriptOutcome, ActionFailure> {
        let token = token();
        let pattern = |text: String| {
            Pattern::new(&text)
                .map_err(|error| ActionFailure::new(Cause::InternalError, chain(&error)))
        };
        let begin = compile(&[pattern(format!(r"jig-begin-{token}\r?\n"))?])?;
        let end = compile(&[pattern(format!(r"\r?\njig-end-{token}:(\d+):"))?])?;
        let prompt = compile(std::slice::from_ref(&access.prompt))?;
        let mut lines = typed(script, &token, subshell);
        let last = lines.pop().unwrap_or_default();
        for line in lines {
            let mut follower = self.typing(&access.console)?;
            self.type_line(&access.console, &line, limit).await?;
            // The prompt behind the line: the shell has taken it.
            self.await_text(access, &mut follower, &prompt, limit).await?;
        }
        let mut follower = self.typing(&access.console)?;
        self.type_line(&access.console, &last, limit).await?;
        let begun = self.await_text(access, &mut follower, &begin, limit).await?;
        // The line end in front of the last line may be all that was printed.
        follower.seek(begun.end.saturating_sub(1));
        let ended = self.await_text(access, &mut follower, &end, limit).await?;
        let status = ended.captures.first().and_then(|group| group.bytes.as_deref());
        let status = status.and_then(|digits| std::str::from_utf8(digits).ok()?.parse().ok());
        let output = begun.end..ended.start.max(begun.end);
        Ok(ScriptOutcome { status: status.unwrap_or(-1), output })
    }

    /// Returns a reader of what a console prints from now on.
    fn typing(&mut self, console: &ConsoleName) -> Result<Follower, ActionFailure> {
        let at = end_of(&self.board, console);
        let mut follower = self.cursor(console)?.clone();
        follower.seek(at);
        Ok(follower)
    }

    async fn type_line(
        &mut self,
        console: &ConsoleName,
        line: &str,
        limit: BoardTimeout,
    ) -> Result<(), ActionFailure> {
        let left = limit.until(&self.board).saturating_duration_since(tokio::time::Instant::now());
        self.send(Some(console), format!("{line}\n").as_bytes(), left).await.map(drop)
    }

    /// Waits for text behind a reader, and moves it behind the match.
    async fn await_text(
        &mut self,
        access: &SerialAccess,
        follower: &mut Follower,
        wanted: &PatternSet,
        limit: BoardTimeout,
    ) -> Result<Matched, ActionFailure> {
        let (board, console) = (Arc::clone(&self.board), &access.console);
        let none = compile(&[])?;
        let from = follower.cursor();
        loop {
            let until = limit.until(&board);
            let error = tokio::select! {
                biased;
                failure = abort_condition(&board) => return Err(failure),
                found = expect(follower, wanted, &none, until) => match found {
                    Ok(matched) => return Ok(matched),
                    Err(error) => error,
                },
            };
            let cause = match error {
                ExpectError::TimedOut { .. } if !limit.is_over(&board) => continue,
                ExpectError::Storage(_) => Cause::StorageFailed,
                ExpectError::Ended { .. } => Cause::ConsoleLost,
                ExpectError::TimedOut { .. } | ExpectError::Rejected { .. } => Cause::Hang,
            };
            board.drained().await;
            let file = board.lines.get(console).map(|line| line.file.clone());
            let detail = match cause {
                Cause::Hang => format!(
                    "the shell on console {console} did not finish within {:?}",
                    limit.asked()
                ),
                _ => chain(&error),
            };
            let (file, end) = (file.unwrap_or_default(), end_of(&board, console));
            let range = ByteRange { file, start: from, end, text: detail.clone() };
            let evidence = vec![range.evidence()];
            return Err(limit.judged(&board, ActionFailure { cause, detail, evidence }));
        }
    }

    /// Waits until the shell takes commands; logs in where the console asks for it.
    async fn log_in(
        &mut self,
        access: &SerialAccess,
        limit: BoardTimeout,
    ) -> Result<(), ActionFailure> {
        let mut wanted = vec![access.prompt.clone()];
        if let Some(login) = &access.login {
            wanted.extend([login.user_prompt.clone(), login.password_prompt.clone()]);
        }
        let wanted = compile(&wanted)?;
        let mut answer = String::new();
        let mut asked = 0;
        loop {
            let mut follower = self.typing(&access.console)?;
            self.type_line(&access.console, &answer, limit).await?;
            answer.clear();
            let nudge = limit.part(&self.board, NUDGE);
            let seen = self.await_text(access, &mut follower, &wanted, nudge).await;
            let seen = match seen {
                Ok(seen) => seen.pattern,
                Err(failure) if failure.cause != Cause::Hang => return Err(failure),
                Err(_) if limit.is_over(&self.board) => {
                    let detail = format!(
                        "console {} showed no prompt `{}` within {:?}",
                        access.console,
                        access.prompt,
                        limit.asked()
                    );
                    let failure = ActionFailure::new(Cause::Hang, detail);
                    return Err(limit.judged(&self.board, failure));
                }
                Err(_) => continue,
            };
            match (&access.login, seen) {
                (Some(login), 1) if asked < LOGINS => {
                    asked += 1;
                    answer.clone_from(&login.user);
                }
                (Some(login), 2) if asked < LOGINS => {
                    if let Some(password) = &login.password {
                        let secret = self.host.secret(password);
                        answer = secret.map_err(|error| super::by_driver(&error))?;
                    }
                }
                (Some(login), 1 | 2) => {
                    let detail = format!(
                        "the login of {} on console {} was refused (check `login` in [shell])",
                        login.user, access.console
                    );
                    return Err(ActionFailure::new(Cause::ShellRefused, detail));
                }
                _ => return Ok(()),
            }
        }
    }
}

fn is_hash(word: &str) -> bool {
    word.len() == 64 && word.bytes().all(|byte| byte.is_ascii_hexdigit())
}

fn hex(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

#[cfg(test)]
#[path = "serial_shell_tests.rs"]
mod tests;
