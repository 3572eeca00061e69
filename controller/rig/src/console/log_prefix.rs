//! What loggers, shells and other cores put in front of a message. Pure.

/// Most prefixes taken off one line: colour, time, thread, level, tag, file and line.
const MAX_PREFIXES: usize = 6;

/// Fewest digits of a time stamp that is padded with zeros and has no other mark.
const PADDED: usize = 6;

/// Removes one log prefix: a time stamp, a level, a level with a module.
///
/// Only well-known forms are removed, so that prose is never taken for a result.
pub(crate) fn without_prefix(text: &str) -> Option<&str> {
    let body = text.trim_ascii_start();
    let rest = match body.bytes().next()? {
        b'[' => {
            let (inside, rest) = body.get(1..)?.split_once(']')?;
            let inside = inside.trim_ascii();
            if !(is_stamp(inside) || is_thread(inside) || is_level(inside)) {
                return None;
            }
            rest
        }
        b'<' => {
            // Of the kernel: a time stamp follows.
            if let Some((level, rest)) = body.get(1..)?.split_once('>')
                && (1..=3).contains(&level.len())
                && level.bytes().all(|b| b.is_ascii_digit())
            {
                return Some(rest).filter(|rest| rest.starts_with('['));
            }
            let (level, rest) = body.get(1..)?.split_once("> ")?;
            if !matches!(level, "inf" | "wrn" | "err" | "dbg") {
                return None;
            }
            return after_tag(rest);
        }
        b'E' | b'W' | b'I' | b'D' | b'V' if body.as_bytes().get(1..3) == Some(b" (") => {
            let (stamp, rest) = body.get(3..)?.split_once(") ")?;
            return is_stamp(stamp).then(|| after_tag(rest)).flatten();
        }
        b'0'..=b'9' => {
            let (stamp, rest) = body.split_once(' ')?;
            // Milliseconds are padded with zeros, which no count is.
            let padded = stamp.len() >= PADDED && stamp.starts_with('0');
            if !(is_stamp(stamp) && (stamp.contains([':', '.']) || padded)) {
                return None;
            }
            return Some(rest);
        }
        b'A'..=b'Z' => {
            let (level, rest) = body.split_once(' ')?;
            // Pigweed's levels: two blanks follow, which no prose has.
            if matches!(level, "DBG" | "INF" | "WRN" | "ERR" | "CRT" | "FTL") {
                return rest.strip_prefix(' ');
            }
            if !is_level(level) {
                return None;
            }
            // Levels are padded to five columns.
            return Some(if level.len() == 4 {
                rest.strip_prefix(' ').unwrap_or(rest)
            } else {
                rest
            });
        }
        _ => return None,
    };
    Some(rest.strip_prefix(' ').unwrap_or(rest))
}

/// Removes one thing that stands in front of a message: a log prefix, the level or tag of other
/// loggers, a source file and line, a shell's prompt.
///
/// Wider than [`without_prefix`], so that a crash is seen behind any of them. A test result is not
/// looked for behind these. More may follow on a line that is not `complete`: nothing is removed
/// before it is known what it is.
pub(crate) fn without_context(text: &str, complete: bool) -> Option<&str> {
    after_syslog(text).or_else(|| without_prefix(text)).or_else(|| {
        let body = text.trim_ascii_start();
        let rest = after_processor(body)
            .or_else(|| after_named_level(body, complete))
            .or_else(|| after_source(body))
            .or_else(|| after_prompt(body))?;
        Some(rest.trim_ascii_start())
    })
}

/// Lists what stands in a line: itself, then what is left behind each prefix.
pub(super) fn texts(line: &str, complete: bool) -> impl Iterator<Item = &str> {
    std::iter::successors(Some(line), move |text| without_context(text, complete))
        .take(1 + MAX_PREFIXES)
        .map(str::trim_ascii_start)
}

/// `Nov 23 01:02:03 host app[12]: rest`, `2026-11-23T01:02:03+00:00 host kernel: rest`.
fn after_syslog(text: &str) -> Option<&str> {
    const MONTHS: [&str; 12] =
        ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    let body = text.trim_ascii_start();
    let behind_time = match body.as_bytes() {
        [b'A'..=b'S', _, _, b' ', ..] if MONTHS.iter().any(|month| body.starts_with(month)) => {
            let (day, rest) = body.get(4..)?.trim_ascii_start().split_once(' ')?;
            let (time, rest) = rest.split_once(' ')?;
            let date = day.len() <= 2 && is_stamp(day) && is_stamp(time) && time.contains(':');
            date.then_some(rest)?
        }
        [b'0'..=b'9', _, _, _, b'-', _, _, b'-', _, _, b'T', ..] => {
            let (time, rest) = body.split_once(' ')?;
            is_stamp(time).then_some(rest)?
        }
        _ => return None,
    };
    let (host, rest) = behind_time.split_once(' ')?;
    let (tag, rest) = rest.split_once(": ")?;
    let tag = tag.split_once('[').map_or(tag, |(tag, _)| tag);
    let named = |name: &str| !name.is_empty() && name.bytes().all(is_tag);
    (named(host) && named(tag)).then_some(rest)
}

/// `[CPU0] rest`, `[E] rest`, `[ERR] rest`, `[ERR : App] rest`, `[EROR][net ]: rest`.
fn after_processor(body: &str) -> Option<&str> {
    let (inside, rest) = body.strip_prefix('[')?.split_once(']')?;
    let inside = inside.trim_ascii();
    let (inside, rest) = match (inside.split_once(" : "), rest.strip_prefix('[')) {
        (Some((level, module)), _) if module.bytes().all(|b| is_tag(b) || b == b' ') => {
            (level.trim_ascii(), rest)
        }
        (_, Some(tagged)) => (inside, tagged.split_once("]: ").map_or(rest, |(_, rest)| rest)),
        _ => (inside, rest),
    };
    let number = inside.strip_prefix("CPU").or_else(|| inside.strip_prefix("cpu"));
    let processor = number.is_some_and(|n| !n.is_empty() && n.bytes().all(|b| b.is_ascii_digit()));
    (processor || names_level(inside)).then_some(rest)
}

/// `<error> hardfault: rest`, `<3>rest`, `E: rest`, `ERROR:   rest`, `EMERG: rest`.
fn after_named_level(body: &str, complete: bool) -> Option<&str> {
    if let Some(inside) = body.strip_prefix('<') {
        let (level, rest) = inside.split_once('>')?;
        // Of the kernel, and with the facility of a syslog server.
        let printk = level.len() <= 3 && level.bytes().all(|b| b.is_ascii_digit());
        if !names_level(level) {
            return printk.then_some(rest);
        }
        let rest = rest.trim_ascii_start();
        let may_be_tag = rest.strip_suffix(':').unwrap_or(rest).bytes().all(is_tag);
        return after_tag(rest).or_else(|| (complete || !may_be_tag).then_some(rest));
    }
    let (level, rest) = body.split_once(':')?;
    (names_level(level) && rest.starts_with(' ')).then_some(rest)
}

/// `src/main.c:41: rest`, `main.c:41 => rest`, `(main.c:41) rest`.
fn after_source(body: &str) -> Option<&str> {
    let (inside, bracket) = match body.strip_prefix(['(', '[']) {
        Some(inside) => (inside, true),
        None => (body, false),
    };
    let (file, rest) = inside.split_once(':')?;
    let name = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'.' | b'/' | b'-' | b'\\');
    let extension = file.rsplit_once('.')?.1;
    let source = matches!(extension, "c" | "h" | "cc" | "cpp" | "cxx" | "hpp" | "S" | "s" | "rs");
    if !source || !file.bytes().all(name) {
        return None;
    }
    let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
    let rest = if digits == 0 { return None } else { &rest[digits..] };
    if bracket {
        return rest.strip_prefix([')', ']']);
    }
    rest.strip_prefix(" =>").or_else(|| rest.strip_prefix(": ")).or_else(|| rest.strip_prefix(' '))
}

/// `> rest`, `$ rest`, `uart:~$ rest`.
fn after_prompt(body: &str) -> Option<&str> {
    let (prompt, rest) = body.split_once(' ')?;
    matches!(prompt, ">" | "$" | "uart:~$" | "nsh>" | "=>" | ">>>").then_some(rest)
}

fn names_level(text: &str) -> bool {
    const NAMES: [&str; 16] = [
        "e", "w", "i", "d", "f", "err", "eror", "error", "warn", "warning", "notice", "fatal",
        "crit", "emerg", "alert", "critical",
    ];
    NAMES.iter().any(|name| name.eq_ignore_ascii_case(text)) || is_level(text)
}

fn after_tag(text: &str) -> Option<&str> {
    let (tag, rest) = text.split_once(": ")?;
    (!tag.is_empty() && tag.bytes().all(is_tag)).then_some(rest)
}

fn is_tag(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.' | b'/' | b'-')
}

fn is_stamp(text: &str) -> bool {
    let ok = |b: u8| {
        b.is_ascii_digit() || matches!(b, b':' | b'.' | b',' | b'-' | b'+' | b'T' | b'Z' | b' ')
    };
    text.bytes().next().is_some_and(|b| b.is_ascii_digit()) && text.bytes().all(ok)
}

fn is_thread(text: &str) -> bool {
    let digits = text.strip_prefix(['T', 'C']).unwrap_or_default();
    !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit())
}

fn is_level(text: &str) -> bool {
    matches!(text, "TRACE" | "DEBUG" | "INFO" | "WARN" | "ERROR")
}

/// Returns what stands behind a tag in brackets of any kind, whatever is written in it: `[core1] rest`.
pub(crate) fn behind_bracketed_tag(text: &str) -> Option<&str> {
    let body = text.trim_ascii_start();
    let close = match body.bytes().next()? {
        b'[' => ']',
        b'<' => '>',
        b'(' => ')',
        _ => return None,
    };
    Some(body.split_once(close)?.1.trim_ascii_start())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefixes_go_and_prose_stays() {
        for (from, to) in [
            ("[00:00:01.234,000] <inf> app: x", Some("<inf> app: x")),
            ("<inf> app: x", Some("x")),
            ("<inf> my app: x", None),
            ("I (123) tag: x", Some("x")),
            ("I (am) tag: x", None),
            ("[   12.345678]     ok", Some("    ok")),
            ("[    T1] x", Some("x")),
            ("12:30:01.5 x", Some("x")),
            ("3 Tests", None),
            ("INFO  x", Some("x")),
            ("INFORM x", None),
            ("INF  [ RUN      ] a.b", Some("[ RUN      ] a.b")),
            ("ERR x", None),
            ("[ RUN      ] A.B", None),
        ] {
            assert_eq!(without_prefix(from), to, "{from}");
        }
    }

    #[test]
    fn context_goes_and_prose_stays() {
        for (from, to) in [
            ("[    1.0] x", Some("x")),
            ("[CPU0] x", Some("x")),
            ("[E] x", Some("x")),
            ("<error> hardfault: x", Some("x")),
            ("<3>x", Some("x")),
            ("E: x", Some("x")),
            ("Nov 23 01:02:03 host kernel: x", Some("x")),
            ("Nov  3 01:02:03 host app[12]: x", Some("x")),
            ("2026-11-23T01:02:03.5+00:00 host systemd[1]: x", Some("x")),
            ("Nov 23 is the day: x", None),
            ("<14>x", Some("x")),
            ("[ERR : App       ] x", Some("x")),
            ("[EROR][net ]: x", Some("x")),
            ("[RUN : App] x", None),
            ("ERROR:   x", Some("x")),
            ("src/main.c:41 => x", Some("x")),
            ("src/main.c:41: x", Some("x")),
            ("(main.rs:41) x", Some("x")),
            ("> x", Some("x")),
            ("uart:~$ x", Some("x")),
            ("[       OK ] x", None),
            ("PASS: x", None),
            ("ok 3 - x", None),
            ("main.c:x: y", None),
            ("the error: x", None),
            ("test.c:12:name:PASS", None),
        ] {
            assert_eq!(without_context(from, true), to, "{from}");
        }
        assert_eq!(without_context("<error> hardfault:", false), None);
    }
}
