//! Programs that a build misses: how its log names them, and the package of Debian that has them. Pure.

use std::fmt;
use std::sync::LazyLock;

use regex::Regex;

/// A program that is not installed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MissingProgram {
    /// Its name; comes from a log, so it may be hostile.
    pub name: String,
}

impl MissingProgram {
    /// Finds the first program that a build could not start, by what shells, make and CMake print. That a
    /// file is missing, such as a header, says nothing of a program.
    pub fn named_in(log: &str) -> Option<Self> {
        let found = log.lines().find_map(|line| {
            let line = line.trim();
            SHAPES.iter().find_map(|shape| shape.captures(line))
        })?;
        Some(Self { name: found["program"].to_owned() })
    }

    /// Says how it is installed, behind what else is said; nothing where that is not known.
    pub fn fix(&self) -> String {
        let package = self.package().map(|package| format!(" (on Debian: apt install {package})"));
        package.unwrap_or_default()
    }

    /// Returns the package of Debian that has it, where that is known.
    pub fn package(&self) -> Option<&'static str> {
        let name = self.name.rsplit('/').next().unwrap_or_default();
        let found = PACKAGES.iter().find(|(front, _)| name.starts_with(front));
        found.map(|(_, package)| *package)
    }
}

impl fmt::Display for MissingProgram {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} is not installed{}", self.name, self.fix())
    }
}

/// How programs say that they could not start another one.
static SHAPES: LazyLock<Vec<Regex>> = LazyLock::new(|| {
    let shapes = [
        // make: arm-none-eabi-gcc: No such file or directory
        r"^(?:g?make(?:\[\d+\])?|(?:/\S*/)?env|(?:/\S*/)?xargs): [‘'`]?(?<program>[^\s:‘’'`]+)[’']?: No such file or directory$",
        // /bin/sh: 1: west: not found
        r"^(?:/\S*/)?(?:ba|da|z|k)?sh: (?:line )?(?:\d+: )?(?<program>[^\s:]+): (?:command )?not found$",
        r#"unable to find a build program corresponding to "(?<program>\S+)""#,
    ];
    shapes.iter().filter_map(|shape| Regex::new(shape).ok()).collect()
});

/// Packages by the beginning of a program's name; the first that fits counts.
const PACKAGES: &[(&str, &str)] = &[
    ("arm-none-eabi-gdb", "gdb-multiarch"),
    ("arm-none-eabi-g++", "gcc-arm-none-eabi libstdc++-arm-none-eabi-newlib"),
    ("arm-none-eabi-gcc", "gcc-arm-none-eabi"),
    ("arm-none-eabi-", "binutils-arm-none-eabi"),
    ("riscv64-unknown-elf-gcc", "gcc-riscv64-unknown-elf"),
    ("riscv64-unknown-elf-g++", "gcc-riscv64-unknown-elf"),
    ("riscv64-unknown-elf-", "binutils-riscv64-unknown-elf"),
    ("avr-gcc", "gcc-avr"),
    ("avr-g++", "gcc-avr"),
    ("avr-", "binutils-avr"),
    ("msp430-elf-", "gcc-msp430"),
    ("clang", "clang"),
    ("cmake", "cmake"),
    ("ninja", "ninja-build"),
    ("Ninja", "ninja-build"),
    ("meson", "meson"),
    ("scons", "scons"),
    ("make", "make"),
    ("gcc", "gcc"),
    ("g++", "g++"),
    ("cc", "gcc"),
    ("python3", "python3"),
    ("west", "west"),
    ("dtc", "device-tree-compiler"),
    ("ccache", "ccache"),
    ("git", "git"),
    ("cargo", "cargo"),
    ("perl", "perl"),
    ("xxd", "xxd"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_that_could_not_be_started_is_named_with_its_package() {
        for (line, said) in [
            (
                "make: arm-none-eabi-gcc: No such file or directory",
                "arm-none-eabi-gcc is not installed (on Debian: apt install gcc-arm-none-eabi)",
            ),
            (
                "make[2]: /opt/x/riscv64-unknown-elf-objcopy: No such file or directory",
                "/opt/x/riscv64-unknown-elf-objcopy is not installed (on Debian: apt install \
                 binutils-riscv64-unknown-elf)",
            ),
            (
                "/bin/sh: 1: ninja: not found",
                "ninja is not installed (on Debian: apt install ninja-build)",
            ),
            (
                "sh: cmake: command not found",
                "cmake is not installed (on Debian: apt install cmake)",
            ),
            ("bash: line 3: xtensa-cc: command not found", "xtensa-cc is not installed"),
            (
                "/usr/bin/env: ‘python3’: No such file or directory",
                "python3 is not installed (on Debian: apt install python3)",
            ),
            (
                "CMake Error: CMake was unable to find a build program corresponding to \"Ninja\".  CMAKE_MAKE_PROGRAM is not set.",
                "Ninja is not installed (on Debian: apt install ninja-build)",
            ),
        ] {
            let log =
                format!("mkdir -p out\n{line}\nmake: *** [Makefile:3: out/app.elf] Error 127\n");
            let found = MissingProgram::named_in(&log).map(|one| one.to_string());
            assert_eq!(found.as_deref(), Some(said), "{line}");
        }
    }

    #[test]
    fn a_missing_file_is_no_missing_program() {
        for line in [
            "src/a.c:1:10: fatal error: west.h: No such file or directory",
            "cat: make: No such file or directory",
            "arm-none-eabi-gcc: error: src/b.c: No such file or directory",
            "make: *** No rule to make target 'x'.  Stop.",
            "/usr/bin/ld: cannot find -lc: No such file or directory",
            "int found = 0; // not found",
        ] {
            assert_eq!(MissingProgram::named_in(line), None, "{line}");
        }
        assert_eq!(SHAPES.len(), 3, "a pattern is wrong");
    }
}
