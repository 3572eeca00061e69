//! `jig completions` and `jig man`: both come from the definition of the command line.

use std::fs;
use std::io::{self, Write as _};
use std::path::Path;

use clap::{Command, CommandFactory as _};
use clap_complete::Shell;
use jig_model::{Fault, exit};

use crate::args::Cli;
use crate::failure::Failure;

/// Prints completions for a shell.
pub(crate) fn completions(shell: Shell) -> Result<u8, Failure> {
    // Into memory first: the generator panics where its writer fails.
    let mut text = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "jig", &mut text);
    match io::stdout().lock().write_all(&text) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(Failure::new(Fault::Lab, format!("could not write to standard output: {error}")))
        }
        Ok(()) | Err(_) => Ok(exit::PASS),
    }
}

/// Writes one page for `jig` and one for each command below it.
pub(crate) fn man(dir: &Path) -> Result<u8, Failure> {
    let fail = |path: &Path, error: &io::Error| {
        Failure::new(Fault::Lab, format!("could not write {}: {error}", path.display()))
            .help("give a folder that this user may write")
    };
    fs::create_dir_all(dir).map_err(|error| fail(dir, &error))?;
    // Values of this environment are not defaults.
    let mut root = Cli::command().mut_args(|arg| arg.hide_env_values(true));
    root.build();
    let mut pages = Vec::new();
    collect(&root, "jig", &mut pages).map_err(|error| fail(dir, &error))?;
    for (name, page) in pages {
        let path = dir.join(format!("{name}.1"));
        fs::write(&path, page).map_err(|error| fail(&path, &error))?;
    }
    Ok(exit::PASS)
}

fn collect(command: &Command, name: &str, pages: &mut Vec<(String, Vec<u8>)>) -> io::Result<()> {
    let mut page = Vec::new();
    clap_mangen::Man::new(command.clone().display_name(name)).title(name).render(&mut page)?;
    pages.push((name.to_owned(), page));
    for below in command.get_subcommands().filter(|below| below.get_name() != "help") {
        collect(below, &format!("{name}-{}", below.get_name()), pages)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_command_has_a_page() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(man(&dir.path().join("new/man1")).unwrap(), 0);
        let read =
            |page: &str| fs::read_to_string(dir.path().join(format!("new/man1/{page}.1"))).unwrap();
        for page in ["jig", "jig-run", "jig-boards", "jig-runs-log", "jig-machine-workflow"] {
            let text = read(page);
            assert!(text.contains(".SH NAME") && text.contains(page), "{page}: {text}");
        }
        // What else a verb may end with than the list of `jig` says.
        for page in ["jig-recover", "jig-health", "jig-discover", "jig-inject"] {
            let text = read(page);
            assert!(text.contains("Exit codes:") && text.contains("75 "), "{page}: {text}");
        }
        assert!(read("jig-recover").contains("hub\\-cycle"), "{}", read("jig-recover"));
    }

    /// `-h` shows each option of the recovery verbs on a line of its own.
    #[test]
    fn new_options_have_short_help() {
        let mut root = Cli::command().mut_args(|arg| arg.hide_env_values(true));
        root.build();
        let options = [
            ("run", "max_recoveries"),
            ("test", "inject"),
            ("run", "console"),
            ("recover", "from"),
            ("recover", "dry_run"),
            ("health", "check"),
            ("health", "history"),
            ("discover", "output"),
            ("inject", "list"),
        ];
        for (verb, name) in options {
            let verb = root.find_subcommand(verb).unwrap();
            let option = verb.get_arguments().find(|arg| arg.get_id() == name).unwrap();
            let help = option.get_help().unwrap().to_string();
            // What is left of a hundred columns beside the names of options.
            assert!(help.len() <= 67 && !help.contains('\n'), "{name}: {help}");
        }
    }

    #[test]
    fn every_shell_is_served() {
        for shell in [Shell::Bash, Shell::Zsh, Shell::Fish, Shell::Elvish, Shell::PowerShell] {
            let mut text = Vec::new();
            clap_complete::generate(shell, &mut Cli::command(), "jig", &mut text);
            let text = String::from_utf8(text).unwrap();
            for word in ["doctor", "recover", "discover", "dry-run", "max-recoveries", "inject"] {
                assert!(text.contains(word), "{shell}: {word}");
            }
            // Not every shell's generator completes values.
            let values = matches!(shell, Shell::Bash | Shell::Zsh | Shell::Fish);
            assert!(!values || text.contains("hub-cycle"), "{shell}");
        }
    }
}
