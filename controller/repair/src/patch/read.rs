//! Reads a unified diff.

use std::collections::BTreeSet;
use std::iter::Peekable;

use super::error::{MAX_BYTES, PatchError};
use super::{FileChange, Hunk, HunkLine, LineKind, Patch, Special, names};

/// The lines of a diff, without their ends. A carriage return stays: the line of a file may have one.
struct Lines<'a> {
    lines: Peekable<std::iter::Enumerate<std::str::SplitTerminator<'a, char>>>,
}

impl<'a> Lines<'a> {
    fn peek(&mut self) -> Option<&'a str> {
        self.lines.peek().map(|(_, line)| *line)
    }

    fn next(&mut self) -> Option<(usize, &'a str)> {
        self.lines.next().map(|(index, line)| (index + 1, line))
    }

    /// Takes the next line if it begins with a word, and returns what follows.
    fn after(&mut self, word: &str) -> Option<(usize, &'a str)> {
        self.peek()?.strip_prefix(word)?;
        let (number, line) = self.next()?;
        Some((number, line.strip_prefix(word).unwrap_or_default()))
    }
}

pub(super) fn read(text: &str) -> Result<Patch, PatchError> {
    if text.len() > MAX_BYTES {
        return Err(PatchError::TooLarge(text.len()));
    }
    let mut lines = Lines { lines: text.split_terminator('\n').enumerate().peekable() };
    let mut files = Vec::new();
    while let Some(line) = lines.peek() {
        if line.starts_with("diff --git ") || line.starts_with("--- ") {
            files.push(file(&mut lines)?);
        } else {
            lines.next();
        }
    }
    if files.is_empty() {
        return Err(PatchError::Empty);
    }
    let mut seen = BTreeSet::new();
    match files.iter().find(|file| !seen.insert(file.path())) {
        Some(twice) => Err(PatchError::Twice(twice.path().to_owned())),
        None => Ok(Patch { files }),
    }
}

fn file(lines: &mut Lines<'_>) -> Result<FileChange, PatchError> {
    let mut change = FileChange { old: None, new: None, special: None, hunks: Vec::new() };
    let head = lines.after("diff --git ");
    let mut begin = head.map_or(0, |(number, _)| number);
    if head.is_some() {
        extended_headers(lines, &mut change);
    }
    if let Some((number, old)) = lines.after("--- ") {
        begin = number;
        let wanted = PatchError::Form { line: number + 1, wanted: "`+++` line with the new path" };
        let (_, new) = lines.after("+++ ").ok_or(wanted)?;
        (change.old, change.new) = names::changed(old, new, head.map(|(_, paths)| paths))?;
        if change.old.is_some() && change.new.is_some() && change.old != change.new {
            change.special = change.special.or(Some(Special::Renamed));
        }
        while lines.peek().is_some_and(|line| line.starts_with("@@ ")) {
            change.hunks.push(hunk(lines)?);
        }
        if change.hunks.is_empty() {
            return Err(PatchError::Form { line: number + 2, wanted: "hunk (`@@ -1 +1 @@`)" });
        }
    } else if let Some((_, paths)) = head {
        // Without changed lines, only the first line names the file.
        change.new = Some(names::unchanged(paths)?);
        change.old.clone_from(&change.new);
    }
    if change.path().is_empty() {
        return Err(PatchError::Form { line: begin, wanted: "header with the path of a file" });
    }
    Ok(change)
}

/// Reads the lines between `diff --git` and the paths.
fn extended_headers(lines: &mut Lines<'_>, change: &mut FileChange) {
    while let Some(line) = lines.peek().map(|line| line.trim_end_matches('\r')) {
        let special = match line {
            _ if ["--- ", "diff --git ", "@@ "].iter().any(|word| line.starts_with(word)) => return,
            _ if line.ends_with("120000") || line.ends_with("160000") => Some(Special::NotAFile),
            _ if line.starts_with("old mode ") || line.starts_with("new mode ") => {
                Some(Special::Mode)
            }
            "new file mode 100755" => Some(Special::Mode),
            _ if line.starts_with("GIT binary patch") || line.starts_with("Binary files ") => {
                Some(Special::Binary)
            }
            _ if line.starts_with("rename ") || line.starts_with("copy ") => Some(Special::Renamed),
            _ => None,
        };
        // What is no file at all matters most.
        if change.special != Some(Special::NotAFile) {
            change.special = special.or(change.special);
        }
        lines.next();
    }
}

fn hunk(lines: &mut Lines<'_>) -> Result<Hunk, PatchError> {
    let Some((number, header)) = lines.next() else { return Err(PatchError::Empty) };
    let wanted = PatchError::Form { line: number, wanted: "header of a hunk (`@@ -1,2 +1,3 @@`)" };
    let ((old_start, mut old), (new_start, mut new)) = ranges(header).ok_or(wanted)?;
    let mut found: Vec<HunkLine> = Vec::new();
    let count = PatchError::Count { line: number };
    while old > 0 || new > 0 {
        let (_, line) = lines.next().ok_or_else(|| count.clone())?;
        let (kind, text) = match line.split_at_checked(1) {
            Some(("+", text)) => (LineKind::Added, text),
            Some(("-", text)) => (LineKind::Removed, text),
            Some((" ", text)) => (LineKind::Context, text),
            Some(("\\", _)) => {
                ends_file(&mut found);
                continue;
            }
            // Mail programs take the space off an empty line.
            Some(("\r", "")) | None => (LineKind::Context, line),
            Some(_) => return Err(count),
        };
        let counted = |left: u32, there: bool| left.checked_sub(u32::from(there));
        old = counted(old, kind != LineKind::Added).ok_or_else(|| count.clone())?;
        new = counted(new, kind != LineKind::Removed).ok_or_else(|| count.clone())?;
        found.push(HunkLine { kind, text: text.to_owned(), ends_file: false });
    }
    if lines.peek().is_some_and(|line| line.starts_with('\\')) {
        lines.next();
        ends_file(&mut found);
    }
    let more = lines.peek().is_some_and(|line| {
        line.starts_with(['+', ' ']) || (line.starts_with('-') && !line.starts_with("--- "))
    });
    if more || found.iter().all(|line| line.kind == LineKind::Context) {
        return Err(count);
    }
    Ok(Hunk { old_start, new_start, lines: found })
}

/// Takes in that no line end follows the last line.
fn ends_file(found: &mut [HunkLine]) {
    if let Some(last) = found.last_mut() {
        last.ends_file = true;
    }
}

/// Reads `@@ -first,count +first,count @@`; a count that is not there is 1.
fn ranges(header: &str) -> Option<((u32, u32), (u32, u32))> {
    let (ranges, _) = header.strip_prefix("@@ -")?.split_once(" @@")?;
    let (old, new) = ranges.split_once(" +")?;
    let range = |text: &str| {
        let (first, count) = text.split_once(',').unwrap_or((text, "1"));
        let digits = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
        if !digits(first) || !digits(count) {
            return None;
        }
        Some((first.parse().ok()?, count.parse().ok()?))
    };
    Some((range(old)?, range(new)?))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const SIMPLE: &str = "\
diff --git a/src/ring.c b/src/ring.c
index 1111111..2222222 100644
--- a/src/ring.c
+++ b/src/ring.c
@@ -10,3 +10,3 @@ int push(void)
 {
-\tif (head < SIZE)
+\tif (head <= SIZE)
 \t\thead++;
";

    #[test]
    fn a_diff_of_git_is_read() {
        let patch = Patch::read(&format!("an explanation\n\n{SIMPLE}")).unwrap();
        let [file] = patch.files.as_slice() else { panic!("{patch:?}") };
        assert_eq!((file.path(), file.special, file.changed_lines()), ("src/ring.c", None, 2));
        assert_eq!((file.hunks[0].old_start, file.hunks[0].lines.len()), (10, 4));
        assert_eq!(file.hunks[0].lines[1].text, "\tif (head < SIZE)");
    }

    #[test]
    fn new_deleted_and_special_files_are_told_apart() {
        let read = |text: &str| Patch::read(text).unwrap().files.remove(0);
        let new = read(
            "--- /dev/null\n+++ b/x.c\n@@ -0,0 +1 @@\n+int x;\n\\ No newline at end of file\n",
        );
        assert_eq!((new.old, new.new.as_deref()), (None, Some("x.c")));
        let gone = read("--- a/x.c\n+++ /dev/null\n@@ -1 +0,0 @@\n-int x;\n");
        assert_eq!((gone.old.as_deref(), gone.new), (Some("x.c"), None));
        for (headers, special) in [
            ("old mode 100644\nnew mode 100755\n", Special::Mode),
            ("new file mode 120000\nindex 0..1\n", Special::NotAFile),
            ("index 1..2 160000\n", Special::NotAFile),
            ("index 1..2\nBinary files a/x and b/x differ\n", Special::Binary),
            ("similarity index 90%\nrename from y\nrename to x\n", Special::Renamed),
            ("new file mode 100755\nindex 0..1\n", Special::Mode),
        ] {
            let file = read(&format!("diff --git a/x b/x\n{headers}"));
            assert_eq!((file.path(), file.special), ("x", Some(special)), "{headers}");
        }
    }

    #[test]
    fn two_names_of_a_file_are_a_new_name() {
        let renamed =
            Patch::read(&SIMPLE.replace("+++ b/src/ring.c", "+++ b/src/wring.c")).unwrap();
        assert_eq!(renamed.files[0].special, Some(Special::Renamed));
    }

    #[test]
    fn a_diff_that_is_not_what_it_says_is_refused() {
        let with = |from: &str, to: &str| SIMPLE.replace(from, to);
        let count = PatchError::Count { line: 5 };
        for (text, error) in [
            (String::new(), PatchError::Empty),
            ("just talk\n".to_owned(), PatchError::Empty),
            (with("-10,3 +10,3", "-10,4 +10,3"), count.clone()),
            (with("-10,3 +10,3", "-10,3 +10,2"), count.clone()),
            (with("+\tif (head <= SIZE)\n", ""), count.clone()),
            (with("\t\thead++;\n", "\t\thead++;\n+more\n"), count),
            (
                with("-10,3", "-x,3"),
                PatchError::Form { line: 5, wanted: "header of a hunk (`@@ -1,2 +1,3 @@`)" },
            ),
            (
                with("+++ b/src/ring.c\n", ""),
                PatchError::Form { line: 4, wanted: "`+++` line with the new path" },
            ),
            (with("b/src/ring.c", "b/../ring.c"), PatchError::Path("../ring.c".into())),
            (with("b/src/ring.c", "b/.git/hooks/x"), PatchError::Path(".git/hooks/x".into())),
            (
                with("+++ b/src/ring.c", "+++ /etc/passwd"),
                PatchError::Prefix { old: "a/src/ring.c".into(), new: "/etc/passwd".into() },
            ),
            (format!("{SIMPLE}{SIMPLE}"), PatchError::Twice("src/ring.c".into())),
        ] {
            assert_eq!(Patch::read(&text), Err(error), "{text}");
        }
    }

    #[test]
    fn identity_is_that_of_the_change_and_of_the_lines_around_it() {
        let id = |text: &str| Patch::read(text).unwrap().id();
        let moved = SIMPLE.replace("-10,3 +10,3", "-70,3 +70,3").replace(" int push(void)", "");
        assert_eq!(id(SIMPLE), id(&moved));
        assert_ne!(id(SIMPLE), id(&SIMPLE.replace("\t\thead++;", "\t\ttail++;")), "another place");
        assert_eq!(id(SIMPLE), id(&SIMPLE.replace("+\tif", "+        if")));
        assert_ne!(id(SIMPLE), id(&SIMPLE.replace("<= SIZE", "< SIZE - 1")));
        assert_ne!(id(SIMPLE), id(&SIMPLE.replace("ring.c", "wring.c")));
    }

    proptest! {
        #[test]
        fn hostile_text_is_refused_or_read(text in "([-+ @\\\\a1,/\n]|--- a/x\n|\\+\\+\\+ b/x\n|@@ -1,2 \\+1 @@\n|diff --git a/x b/x\n){0,40}") {
            if let Ok(patch) = Patch::read(&text) {
                prop_assert!(!patch.files.is_empty());
                prop_assert!(patch.files.iter().all(|file| !file.path().is_empty()));
                let written = patch.to_string();
                if patch.files.iter().all(|file| file.special.is_none() && !file.hunks.is_empty()) {
                    prop_assert_eq!(Patch::read(&written), Ok(patch));
                }
            }
        }
    }
}
