//! Chooses which of the host's apt sources an image may use.
//!
//! The host's own mirror is the one that is reachable and allowed, so it is preferred; its third
//! party repositories are none of an image's business. Stanzas are copied whole (with their
//! keys), not interpreted.

use std::path::Path;

/// Apt sources in both spellings apt knows.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Sources {
    /// For a `.list` file.
    pub(crate) one_line: String,
    /// For a `.sources` file.
    pub(crate) deb822: String,
}

/// Debian's own mirror, by the name that leads to the nearest one.
const MIRROR: &str = "http://deb.debian.org";
/// Where Debian's package `debian-archive-keyring` puts its keys.
const KEYRING: &str = "/usr/share/keyrings/debian-archive-keyring.gpg";
/// The component everything of ours is in.
const COMPONENT: &str = "main";

impl Sources {
    /// Picks from the host's configuration below `etc_apt`, or falls back to Debian's mirror.
    pub(crate) fn of_host(etc_apt: &Path, suites: &[String]) -> Self {
        let mut sources = Self::default();
        let read = |path: &Path| std::fs::read_to_string(path).unwrap_or_default();
        sources.add_one_line(&read(&etc_apt.join("sources.list")), suites);
        let parts = std::fs::read_dir(etc_apt.join("sources.list.d"));
        let mut parts: Vec<_> = parts.into_iter().flatten().flatten().map(|f| f.path()).collect();
        parts.sort();
        for path in parts {
            match path.extension().and_then(|extension| extension.to_str()) {
                Some("list") => sources.add_one_line(&read(&path), suites),
                Some("sources") => sources.add_deb822(&read(&path), suites),
                Some(_) | None => {}
            }
        }
        if sources == Self::default() { Self::fallback(suites) } else { sources }
    }

    fn fallback(suites: &[String]) -> Self {
        let signed_by = match Path::new(KEYRING).exists() {
            true => format!("[signed-by={KEYRING}] "),
            false => String::new(),
        };
        let mut sources = Self::default();
        for suite in suites {
            let archive = if suite.ends_with("-security") { "debian-security" } else { "debian" };
            sources.one_line += &format!("deb {signed_by}{MIRROR}/{archive} {suite} {COMPONENT}\n");
        }
        sources
    }

    fn add_one_line(&mut self, text: &str, suites: &[String]) {
        for line in text.lines() {
            let bare = line.split('#').next().unwrap_or_default().trim();
            // deb [options] URI suite component...
            let Some(rest) = bare.strip_prefix("deb ") else { continue };
            let rest = rest.trim_start();
            let rest = match rest.strip_prefix('[') {
                Some(options) => options.split_once(']').map_or("", |(_, rest)| rest),
                None => rest,
            };
            let mut words = rest.split_whitespace().skip(1);
            let suite = words.next().unwrap_or_default();
            if suites.iter().any(|one| one == suite) && words.any(|word| word == COMPONENT) {
                self.one_line += &(without_architecture_option(bare) + "\n");
            }
        }
    }

    fn add_deb822(&mut self, text: &str, suites: &[String]) {
        let lines: Vec<&str> = text.lines().filter(|line| !line.starts_with('#')).collect();
        for stanza in lines.split(|line| line.trim().is_empty()).filter(|stanza| !stanza.is_empty())
        {
            let field = |name: &str| {
                stanza.iter().find_map(|line| {
                    let (key, value) = line.split_once(':')?;
                    key.eq_ignore_ascii_case(name).then(|| value.split_whitespace())
                })
            };
            let has =
                |name, word| field(name).is_some_and(|mut words| words.any(|one| one == word));
            let wanted = suites.iter().any(|suite| has("Suites", suite.as_str()));
            if wanted
                && has("Types", "deb")
                && has("Components", COMPONENT)
                && !has("Enabled", "no")
            {
                for line in stanza {
                    // Says which architectures the host wants; the image's is another.
                    if !line.to_ascii_lowercase().starts_with("architectures:") {
                        self.deb822 += line;
                        self.deb822.push('\n');
                    }
                }
                self.deb822.push('\n');
            }
        }
    }
}

fn without_architecture_option(line: &str) -> String {
    let Some((before, rest)) = line.split_once('[') else { return line.to_owned() };
    let Some((options, after)) = rest.split_once(']') else { return line.to_owned() };
    let kept: Vec<&str> =
        options.split_whitespace().filter(|option| !option.starts_with("arch")).collect();
    match kept.is_empty() {
        true => format!("{before}{}", after.trim_start()),
        false => format!("{before}[{}]{after}", kept.join(" ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn suites() -> Vec<String> {
        ["bookworm", "bookworm-security"].map(String::from).to_vec()
    }

    #[test]
    fn debians_stanza_is_copied_with_its_keys_and_without_its_architectures() {
        let mut sources = Sources::default();
        sources.add_deb822(
            "Types: deb deb-src\n# why\nURIs: http://mirror.example/debian\n\
             Suites: bookworm bookworm-updates\nComponents: main contrib\n\
             Architectures: amd64\nSigned-By: /k.gpg\n\n\
             Types: deb\nURIs: http://third.example\nSuites: nodistro\nComponents: main\n",
            &suites(),
        );
        assert_eq!(
            sources.deb822,
            "Types: deb deb-src\nURIs: http://mirror.example/debian\n\
             Suites: bookworm bookworm-updates\nComponents: main contrib\nSigned-By: /k.gpg\n\n"
        );
    }

    #[test]
    fn switched_off_and_source_only_stanzas_are_left_out() {
        let mut sources = Sources::default();
        let stanza = "URIs: http://x\nSuites: bookworm\nComponents: main\n";
        sources.add_deb822(&format!("Types: deb\nEnabled: no\n{stanza}"), &suites());
        sources.add_deb822(&format!("Types: deb-src\n{stanza}"), &suites());
        assert_eq!(sources, Sources::default());
    }

    #[test]
    fn lines_are_chosen_by_suite_and_component() {
        let mut sources = Sources::default();
        sources.add_one_line(
            "deb [arch=amd64 signed-by=/k] http://m/debian bookworm main # mine\n\
             deb [arch=amd64] http://s/debian bookworm-security main\n\
             deb http://docker.example/debian bookworm stable\n\
             deb-src http://m/debian bookworm main\n#deb http://m/debian bookworm main\n\
             deb [broken http://m bookworm main\n",
            &suites(),
        );
        assert_eq!(
            sources.one_line,
            "deb [signed-by=/k] http://m/debian bookworm main\n\
             deb http://s/debian bookworm-security main\n"
        );
    }

    #[test]
    fn a_foreign_host_gets_debians_mirror() {
        let empty = tempfile::tempdir().unwrap();
        let sources = Sources::of_host(empty.path(), &suites());
        assert!(sources.one_line.contains("http://deb.debian.org/debian bookworm main\n"));
        assert!(sources.one_line.contains("/debian-security bookworm-security main\n"));
    }
}
