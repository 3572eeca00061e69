//! Writes a patch in the form that git is given.

use std::fmt;

use super::{FileChange, Hunk, HunkLine, LineKind, Patch};

/// Writes the form of `git diff` with the prefixes `a/` and `b/`. A file whose [`FileChange::special`] is
/// set has only its lines in it: a policy refuses it.
impl fmt::Display for Patch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.files.iter().try_for_each(|file| write_file(f, file))
    }
}

fn write_file(f: &mut fmt::Formatter<'_>, file: &FileChange) -> fmt::Result {
    let old = file.old.as_deref().unwrap_or(file.path());
    writeln!(f, "diff --git a/{old} b/{}", file.path())?;
    match (&file.old, &file.new) {
        (None, Some(new)) => {
            writeln!(f, "new file mode 100644\n--- /dev/null\n+++ b/{new}")?;
        }
        (Some(old), None) => {
            writeln!(f, "deleted file mode 100644\n--- a/{old}\n+++ /dev/null")?;
        }
        _ => writeln!(f, "--- a/{old}\n+++ b/{}", file.path())?,
    }
    file.hunks.iter().try_for_each(|hunk| write_hunk(f, hunk))
}

fn write_hunk(f: &mut fmt::Formatter<'_>, hunk: &Hunk) -> fmt::Result {
    let without = |kind| hunk.lines.iter().filter(|line| line.kind != kind).count();
    let (old, new) = (without(LineKind::Added), without(LineKind::Removed));
    writeln!(f, "@@ -{},{old} +{},{new} @@", hunk.old_start, hunk.new_start)?;
    for HunkLine { kind, text, ends_file } in &hunk.lines {
        let sign = match kind {
            LineKind::Context => ' ',
            LineKind::Added => '+',
            LineKind::Removed => '-',
        };
        writeln!(f, "{sign}{text}")?;
        if *ends_file {
            writeln!(f, "\\ No newline at end of file")?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_patch_is_written_as_it_was_read() {
        let text = "\
diff --git a/src/ring.c b/src/ring.c
--- a/src/ring.c
+++ b/src/ring.c
@@ -10,3 +10,3 @@
 {
-\tif (head < SIZE)\r
+\tif (head <= SIZE)\r
 \t\thead++;
diff --git a/new.c b/new.c
new file mode 100644
--- /dev/null
+++ b/new.c
@@ -0,0 +1,1 @@
+int x;
\\ No newline at end of file
diff --git a/old.c b/old.c
deleted file mode 100644
--- a/old.c
+++ /dev/null
@@ -1,1 +0,0 @@
-int x;
";
        assert_eq!(Patch::read(text).unwrap().to_string(), text);
        let bare = text.replace("a/src", "src").replace("b/src", "src");
        assert_eq!(Patch::read(&bare).unwrap().to_string(), text);
    }
}
