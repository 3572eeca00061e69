//! The names of a changed file, as the headers of a diff tell them.

use super::error::PatchError;

/// Paths of a file before and after a change; `None` for no file.
pub(super) type Names = (Option<String>, Option<String>);

/// Prefixes that git writes in place of `a/` and `b/` (`diff.mnemonicPrefix`).
const MNEMONIC: [&str; 7] = ["i/", "w/", "c/", "o/", "1/", "2/", "h/"];

/// Reads the names behind `---` and `+++`; `/dev/null` stands for no file. `head` is what stands behind
/// `diff --git`: it tells the prefix where one of the names is missing.
pub(super) fn changed(old: &str, new: &str, head: Option<&str>) -> Result<Names, PatchError> {
    // Other tools write a time behind a tabulator.
    let name = |text| str::split(text, '\t').next().unwrap_or_default().trim_end_matches('\r');
    let is_file = |text: &&str| *text != "/dev/null";
    let (old, new) = (Some(name(old)).filter(is_file), Some(name(new)).filter(is_file));
    let of_head = || head.and_then(halves).and_then(|(old, new)| without_prefixes(old, new));
    match (old, new) {
        (Some(old), Some(new)) => {
            let refused = || PatchError::Prefix { old: old.to_owned(), new: new.to_owned() };
            let (old, new) = without_prefixes(old, new).ok_or_else(refused)?;
            Ok((Some(path(old)?), Some(path(new)?)))
        }
        (None, None) => Ok((None, None)),
        (old, new) => {
            let is_new = old.is_none();
            let text = old.or(new).unwrap_or_default();
            let told = of_head().map(|(old, new)| if is_new { new } else { old });
            let usual = if is_new { "b/" } else { "a/" };
            let plain = || text.strip_prefix(usual).unwrap_or(text);
            let path = path(told.filter(|name| text.ends_with(name)).unwrap_or_else(plain))?;
            Ok(if is_new { (None, Some(path)) } else { (Some(path), None) })
        }
    }
}

/// Reads the name behind `diff --git`, where no line of the file changes and nothing else tells it.
pub(super) fn unchanged(head: &str) -> Result<String, PatchError> {
    let head = head.trim_end_matches('\r');
    let same = halves(head).and_then(|(old, new)| without_prefixes(old, new));
    let renamed = || head.split_once(" b/").map_or(head, |(_, new)| new);
    path(same.map_or_else(renamed, |(_, new)| new))
}

/// Parts two names of one length.
fn halves(head: &str) -> Option<(&str, &str)> {
    let head = head.trim_end_matches('\r');
    let (old, new) = head.split_at_checked(head.len() / 2)?;
    Some((old, new.strip_prefix(' ')?)).filter(|(old, new)| old.len() == new.len())
}

/// Takes off the prefixes of a pair of names: `a/` and `b/`; of the same name none, one of these alone, or
/// two others of git. Where it is not known what a prefix is, there is no answer.
fn without_prefixes<'a>(old: &'a str, new: &'a str) -> Option<(&'a str, &'a str)> {
    let usual = old.strip_prefix("a/").zip(new.strip_prefix("b/"));
    let mnemonic = |name: &'a str| MNEMONIC.iter().find_map(|prefix| name.strip_prefix(prefix));
    let others = || mnemonic(old).zip(mnemonic(new)).filter(|(old, new)| old == new);
    let one = || {
        let of_old = old.strip_prefix("a/").filter(|name| *name == new);
        of_old.or_else(|| new.strip_prefix("b/").filter(|name| *name == old))
    };
    let same = || (old == new).then_some(new).or_else(one).map(|name| (name, name));
    usual.or_else(same).or_else(others)
}

/// Checks that a name is that of a file inside of the repository.
fn path(name: &str) -> Result<String, PatchError> {
    let bad = name.is_empty()
        || name.starts_with(['/', '"', '~'])
        || name.contains(|one: char| one == '\\' || one.is_ascii_control())
        || name
            .split('/')
            .any(|part| matches!(part, "" | "." | "..") || part.eq_ignore_ascii_case(".git"));
    if bad { Err(PatchError::Path(name.to_owned())) } else { Ok(name.to_owned()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(old: &str, new: &str) -> Result<(String, String), PatchError> {
        let (old, new) = changed(old, new, None)?;
        Ok((old.unwrap_or_default(), new.unwrap_or_default()))
    }

    #[test]
    fn names_with_the_prefixes_of_git_and_with_none_are_read() {
        let same = |path: &str| Ok((path.to_owned(), path.to_owned()));
        for (old, new, path) in [
            ("a/src/ring.c", "b/src/ring.c", "src/ring.c"),
            ("src/ring.c", "src/ring.c", "src/ring.c"),
            ("src/ring.c\t2024-01-01", "src/ring.c\t2024-01-02", "src/ring.c"),
            ("i/src/ring.c", "w/src/ring.c", "src/ring.c"),
            ("ring.c\r", "ring.c\r", "ring.c"),
            ("a/src/ring.c", "src/ring.c", "src/ring.c"),
            ("src/ring.c", "b/src/ring.c", "src/ring.c"),
            // Without a prefix, a folder of this name is a folder.
            ("a/ring.c", "a/ring.c", "a/ring.c"),
            ("w/ring.c", "w/ring.c", "w/ring.c"),
        ] {
            assert_eq!(names(old, new), same(path), "{old} {new}");
        }
        let new = |name: &str| Ok((String::new(), name.to_owned()));
        assert_eq!(names("/dev/null", "b/src/new.c"), new("src/new.c"));
        // git would take any first folder for a prefix; here it is a part of the path.
        assert_eq!(names("/dev/null", "x/src/boot/new.c"), new("x/src/boot/new.c"));
    }

    #[test]
    fn a_pair_of_names_that_is_none_of_one_file_is_refused() {
        for (old, new) in [
            ("a/src/ring.c", "ring.c"),
            ("x/src/ring.c", "y/src/ring.c"),
            ("a/ring.c", "a/other.c"),
            ("i/ring.c", "w/other.c"),
        ] {
            let refused = PatchError::Prefix { old: old.to_owned(), new: new.to_owned() };
            assert_eq!(names(old, new), Err(refused));
        }
        assert_eq!(names("a/x", "b/.GIT/hooks/x"), Err(PatchError::Path(".GIT/hooks/x".into())));
    }

    #[test]
    fn the_first_line_of_a_file_tells_a_prefix_that_a_new_file_has() {
        let new = |head, name| changed("/dev/null", name, head).unwrap().1.unwrap();
        assert_eq!(new(Some("i/src/new.c w/src/new.c"), "w/src/new.c"), "src/new.c");
        assert_eq!(new(Some("b/new.c b/new.c"), "b/new.c"), "b/new.c");
        assert_eq!(new(Some("a/other.c b/other.c"), "b/new.c"), "new.c");
        assert_eq!(unchanged("a/a b.c b/a b.c"), Ok("a b.c".to_owned()));
        assert_eq!(unchanged("tool.sh tool.sh"), Ok("tool.sh".to_owned()));
        assert_eq!(unchanged("a/old.c b/renamed.c"), Ok("renamed.c".to_owned()));
    }
}
